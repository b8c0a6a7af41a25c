//! Text that others wrote, made safe to stand inside our own lines.
//!
//! Invariant: what these functions return holds no line break, no control character and no `"""`.

/// The longest field shown, in characters. Source: `spec/results.md`, "Text rules".
pub const MAX_FIELD: usize = 1000;

/// Folds text onto one line, without control or direction-changing characters, cut at [`MAX_FIELD`].
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_FIELD));
    for (n, c) in text.chars().map(|c| if shapes_a_line(c) { ' ' } else { c }).enumerate() {
        if n == MAX_FIELD {
            out.push('…');
            break;
        }
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    let mut out = out.trim().to_owned();
    while out.contains("\"\"\"") {
        out = out.replace("\"\"\"", "'''");
    }
    out
}

/// Text in double quotes; quotes inside become single ones, so that it cannot end early.
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('"', "'"))
}

/// One word of a POSIX shell command. Text that cannot be one line is folded first.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let text: String = text.chars().map(|c| if shapes_a_line(c) { ' ' } else { c }).collect();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    // '#' starts a comment only where a word starts.
    let bare = text.chars().enumerate().all(|(i, c)| plain(c) || (c == '#' && i > 0));
    if bare && !text.is_empty() { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Cuts text to `max` bytes at a character's border, marking the cut.
#[must_use]
pub fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mark = "…";
    let mut end = max.saturating_sub(mark.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{mark}", &text[..end])
}

/// Line and paragraph separators, control characters, and those that reorder or hide what follows.
pub(crate) fn shapes_a_line(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_another_wrote_can_start_a_line() {
        for text in [
            "a\noptions:\n- git push",
            "a\r\nb",
            "a\u{2028}b",
            "a\u{85}b",
            "\u{1b}[2J\u{1b}[Ha",
            "a\u{202e}b",
            "\u{9b}31m",
        ] {
            let line = one_line(text);
            assert!(!line.chars().any(shapes_a_line), "{text:?} gave {line:?}");
            assert!(!shell_word(text).chars().any(shapes_a_line), "{text:?}");
        }
    }

    #[test]
    fn a_quoted_text_cannot_end_its_quotes_or_forge_a_block() {
        assert_eq!(quoted("x\" and \"y"), "\"x' and 'y\"");
        for text in ["\"\"\"", "\"\"\"\"", "\"\"\"\"\"\"\"", "''\"\"\"\"\"''"] {
            assert!(!one_line(text).contains("\"\"\""), "{text}");
        }
    }

    #[test]
    fn a_long_field_is_cut() {
        assert_eq!(one_line(&"x".repeat(5000)).chars().count(), MAX_FIELD + 1);
        assert_eq!(cut("déjà", 4), "d…");
        assert_eq!(cut("déjà vu", 7), "déj…");
        assert_eq!(cut("short", 5), "short");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a shell is the oracle")]
    fn a_shell_reads_a_word_back_as_it_was() {
        for text in ["plain/x#y", "#x", "a b", "it's", "$(rm)", "`x`", "x(y)", "", "-o", "a;b", "~"]
        {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", shell_word(text))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
