//! The last trailer block of a commit message, as git's own parser reads it.
//!
//! Trailers claim, they never prove: nothing here says who wrote a commit.
//!
//! Source: git-interpret-trailers(1); oracle-tested against `git interpret-trailers --parse --no-divider`.

/// One `Key: value` line, continuation lines folded in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// The key as written; keys compare without case.
    pub key: String,
    /// The value, trimmed.
    pub value: String,
}

/// Git writes these itself; a block with one of them may hold other lines too.
const GENERATED: [&str; 2] = ["Signed-off-by: ", "(cherry picked from commit "];

/// Reads the trailers of a commit message.
#[must_use]
pub fn parse(message: &str) -> Vec<Trailer> {
    let mut trailers: Vec<Trailer> = Vec::new();
    for line in block(message) {
        if line.starts_with([' ', '\t']) {
            if let Some(last) = trailers.last_mut() {
                last.value.push(' ');
                last.value.push_str(line.trim());
            }
        } else if let Some((key, value)) = split(line) {
            trailers.push(Trailer { key: key.to_owned(), value: value.to_owned() });
        }
    }
    trailers
}

/// The values of one key, in order.
pub fn values<'a>(trailers: &'a [Trailer], key: &'a str) -> impl Iterator<Item = &'a str> {
    trailers.iter().filter(move |t| t.key.eq_ignore_ascii_case(key)).map(|t| t.value.as_str())
}

/// The lines of the last paragraph, if it is a trailer block. The first paragraph never is.
fn block(message: &str) -> Vec<&str> {
    let lines: Vec<&str> = message.lines().filter(|line| !line.starts_with('#')).collect();
    let Some(end) = lines.iter().rposition(|line| !line.trim().is_empty()) else {
        return Vec::new();
    };
    let Some(blank) = lines[..=end].iter().rposition(|line| line.trim().is_empty()) else {
        return Vec::new();
    };
    let block = lines[blank + 1..=end].to_vec();
    if is_trailer_block(&block) { block } else { Vec::new() }
}

/// All lines are trailers, or git generated one and at least a quarter are.
fn is_trailer_block(block: &[&str]) -> bool {
    let (mut trailers, mut others, mut generated, mut after_trailer) = (0, 0, false, false);
    for line in block {
        if GENERATED.iter().any(|prefix| line.starts_with(prefix)) {
            generated = true;
            trailers += 1;
            after_trailer = true;
        } else if line.starts_with([' ', '\t']) {
            // A continuation shares the fate of the line it continues.
            others += usize::from(!after_trailer);
        } else if split(line).is_some() {
            trailers += 1;
            after_trailer = true;
        } else {
            others += 1;
            after_trailer = false;
        }
    }
    trailers > 0 && (others == 0 || (generated && trailers * 3 >= others))
}

/// `Key: value`, the key of letters, digits and dashes, blanks allowed before the colon.
fn split(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end_matches([' ', '\t']);
    let ok = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    ok.then(|| (key, value.trim()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn trailers_are_those_that_git_sees() {
        for message in [
            "subject\n\nbody\n\nZit-Agent: a\nZit-Read: src/a.rs#x\n",
            "Zit-Agent: only-the-subject\n",
            "subject\n\nZit-Agent: a\n\nnot a trailer block\n",
            "subject\n\nZit-Agent: a\nfree text\n",
            "subject\n\nSigned-off-by: A <a@x>\nfree text\nmore\n",
            "subject\n\nSigned-off-by: A <a@x>\none\ntwo\nthree\nfour\n",
            "subject\n\nKey: a\n  continued\n\tagain\nOther : b\n\n\n",
            "subject\n\nZit-Read: a#b\n# comment\nZit-Agent: x\n",
            "subject\n\nhttps://x.y/z\nZit-Agent: a\n",
            "\n\nZit-Agent: a\n",
            "subject\n\n(cherry picked from commit 0123)\nZit-Agent: a\n",
            "",
            "\n",
        ] {
            let ours: String =
                parse(message).iter().map(|t| format!("{}: {}\n", t.key, t.value)).collect();
            let git: String = git_trailers(message)
                .lines()
                .filter(|line| !line.starts_with("(cherry picked"))
                .map(|line| format!("{line}\n"))
                .collect();
            assert_eq!(ours, git, "{message:?}");
        }
    }

    #[allow(clippy::disallowed_methods, reason = "git is the oracle")]
    fn git_trailers(message: &str) -> String {
        let mut child = Command::new("git")
            .args(["interpret-trailers", "--parse", "--no-divider"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(message.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    }
}
