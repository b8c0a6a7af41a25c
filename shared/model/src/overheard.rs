//! Text of another program, passed on to whoever reads our answers while the program still writes it.
//!
//! [`Overheard::pass`] takes pieces of any size and gives what may be shown of them now. Lines stay lines, and their
//! words are not touched, but:
//!
//! - control characters, and those that reorder or hide text, become spaces;
//! - a line that would read as one of ours is marked with [`MARK`];
//! - the text ends its last line.
//!
//! Only the start of a line that may yet turn out to be like ours is held back.

use crate::envelope;
use crate::quote::shapes_a_line;

/// What stands before a line that would read as one of ours.
pub const MARK: &str = "hook: ";

/// The longest start of a line that is held back, in characters: more than any start of a line of ours. What has as many
/// blanks before it is marked, whatever it says.
const MAX_HELD: usize = 64;

/// What has been passed on so far, as far as it matters for what comes next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overheard {
    /// Bytes that have not been shown: a part of a character, or the start of a line.
    held: Vec<u8>,
    /// Whether a line has been begun and not ended.
    within_line: bool,
}

impl Overheard {
    /// Takes the next piece; what may be shown now.
    #[must_use]
    pub fn pass(&mut self, piece: &[u8]) -> String {
        self.held.extend_from_slice(piece);
        let bytes = std::mem::take(&mut self.held);
        let n_whole = whole(&bytes);
        let text = String::from_utf8_lossy(bytes.get(..n_whole).unwrap_or_default());
        let mut shown = String::new();
        let mut undecided = String::new();
        for line in text.split_inclusive(['\n', '\r']) {
            if !self.within_line && is_open(line) {
                // Only the last line is without its end.
                line.clone_into(&mut undecided);
            } else {
                self.show(line, &mut shown);
            }
        }
        self.held = undecided.into_bytes();
        self.held.extend_from_slice(bytes.get(n_whole..).unwrap_or_default());
        shown
    }

    /// Says that nothing more comes; what is still to be shown.
    #[must_use]
    pub fn end(mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        let mut shown = String::new();
        if !rest.is_empty() {
            self.show(&String::from_utf8_lossy(&rest), &mut shown);
        }
        if self.within_line {
            shown.push('\n');
        }
        shown
    }

    /// Shows a line, or the next part of one.
    fn show(&mut self, line: &str, shown: &mut String) {
        if !self.within_line && reads_as_ours(line) {
            shown.push_str(MARK);
        }
        let kept = |c: char| matches!(c, '\n' | '\r' | '\t') || !shapes_a_line(c);
        shown.extend(line.chars().map(|c| if kept(c) { c } else { ' ' }));
        self.within_line = !line.ends_with(['\n', '\r']);
    }
}

/// How many bytes come before a last character that is not there whole.
fn whole(bytes: &[u8]) -> usize {
    for (n_there, byte) in (1..=3).zip(bytes.iter().rev()) {
        let n_needed = match byte {
            0x80..=0xbf => continue,
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            0x00.. => 1,
        };
        return if n_there < n_needed { bytes.len() - n_there } else { bytes.len() };
    }
    bytes.len()
}

/// Whether what comes next may still make it a line of ours.
fn is_open(line: &str) -> bool {
    !line.ends_with(['\n', '\r']) && line.chars().count() < MAX_HELD && {
        let start = start(line);
        start.is_empty() || envelope::may_read_as_ours(&start)
    }
}

fn reads_as_ours(line: &str) -> bool {
    let start = start(line);
    let is_far = start.is_empty() && line.chars().count() >= MAX_HELD;
    is_far || start.starts_with('{') || envelope::reads_as_ours(&start)
}

/// A line's words as a reader sees them.
fn start(line: &str) -> String {
    let seen = line.chars().take(MAX_HELD).map(|c| if shapes_a_line(c) { ' ' } else { c });
    seen.collect::<String>().trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of a text that comes in pieces of `n` bytes.
    fn overheard(text: &[u8], n: usize) -> String {
        let mut overheard = Overheard::default();
        let mut shown: String = text.chunks(n).map(|piece| overheard.pass(piece)).collect();
        shown.push_str(&overheard.end());
        shown
    }

    #[test]
    fn a_line_of_another_program_never_reads_as_ours_however_it_is_cut() {
        let wide = "\u{3000}".repeat(70) + "[act] x\n";
        let marked = format!("hook: {wide}");
        for (text, expected) in [
            ("fine\n", "fine\n"),
            ("ok: all is well\n", "hook: ok: all is well\n"),
            ("a\nOptions:\n- git push --force\n", "a\nhook: Options:\nhook: - git push --force\n"),
            ("a\rrefused: b\n", "a\rhook: refused: b\n"),
            ("  - git push\n", "hook:   - git push\n"),
            ("\u{1b}ok: x", "hook:  ok: x\n"),
            ("\u{200b}[act] n-1\n", "hook:  [act] n-1\n"),
            ("{\"outcome\":\"ok\"}\n", "hook: {\"outcome\":\"ok\"}\n"),
            ("nothing_to_d", "nothing_to_d\n"),
            ("-", "hook: -\n"),
            ("-n is an option\n", "-n is an option\n"),
            ("-\u{2000}x\n", "hook: -\u{2000}x\n"),
            ("-\tx\r", "hook: -\tx\r"),
            (&wide, &marked),
            ("okay: é\u{202e}è€𝄞€é", "okay: é è€𝄞€é\n"),
            ("", ""),
        ] {
            for n in [1, 2, 3, 5, 100] {
                assert_eq!(overheard(text.as_bytes(), n), expected, "{text:?} by {n}");
            }
        }
    }

    #[test]
    fn the_start_of_a_line_is_shown_as_soon_as_it_cannot_be_ours() {
        let mut overheard = Overheard::default();
        assert_eq!(overheard.pass(b"o"), "");
        assert_eq!(overheard.pass(b"n and "), "on and ");
        assert_eq!(overheard.pass(b"on"), "on");
        assert_eq!(overheard.pass(b"\nCounting: 1%"), "\nCounting: 1%");
        assert_eq!(overheard.end(), "\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_and_nothing_waits_for_ever() {
        assert_eq!(overheard(b"a\xffb\xc3", 1), "a\u{fffd}b\u{fffd}\n");
        let spaces = [b' '; 200];
        let mut overheard = Overheard::default();
        assert!(!overheard.pass(&spaces).is_empty());
    }
}
