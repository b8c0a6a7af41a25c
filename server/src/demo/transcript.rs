//! Prints the demo as a person at a terminal would have seen it.
//!
//! It never colours, and it changes nothing in what git printed but invisible ends of lines.

use std::io::Write;

use zit_model::quote;

use super::DemoError;

/// Where the demo is printed.
pub(crate) struct Transcript<W> {
    out: W,
    n_steps: u32,
    /// Whether the last thing printed wants an empty line after it.
    apart: bool,
}

impl<W: Write> Transcript<W> {
    /// A transcript that begins on `out`.
    pub(crate) fn new(out: W) -> Self {
        Self { out, n_steps: 0, apart: false }
    }

    /// Begins the next step.
    pub(crate) fn step(&mut self, title: &str) -> Result<(), DemoError> {
        self.n_steps += 1;
        let number = self.n_steps;
        self.paragraph(&format!("== {number}. {title}\n"))
    }

    /// One paragraph of ours.
    pub(crate) fn prose(&mut self, text: &str) -> Result<(), DemoError> {
        self.paragraph(&format!("{text}\n"))
    }

    /// A command as `who` types it, and what it printed. Commands that print nothing stand together.
    pub(crate) fn command(
        &mut self,
        who: &str,
        command: &str,
        output: &str,
    ) -> Result<(), DemoError> {
        let lines: String = output.lines().map(|line| format!("{}\n", seen(line))).collect();
        let blank = if self.apart { "\n" } else { "" };
        self.apart = !lines.is_empty();
        self.print(&format!("{blank}{who}$ {command}\n{lines}"))
    }

    fn paragraph(&mut self, text: &str) -> Result<(), DemoError> {
        self.apart = true;
        self.print(&format!("\n{text}"))
    }

    fn print(&mut self, text: &str) -> Result<(), DemoError> {
        self.out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(DemoError::Print)
    }
}

/// A git command as a person types it.
pub(crate) fn typed(args: &[&str]) -> String {
    std::iter::once("git")
        .chain(args.iter().copied())
        .map(quote::shell_word)
        .collect::<Vec<_>>()
        .join(" ")
}

/// What a terminal shows of a line: git pads the lines of a remote with blanks, and overwrites after a carriage return.
fn seen(line: &str) -> &str {
    let line = line.trim_end();
    line.rsplit_once('\r').map_or(line, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_as_it_was_typed_and_answered() {
        let mut out = Vec::new();
        let mut transcript = Transcript::new(&mut out);
        transcript.step("First").unwrap();
        let typed = typed(&["push", "-o", "zit.intent=a b", "origin", "x:refs/zit/claim/a.rs#f"]);
        transcript.command("ada", &typed, "50%\r100%\nremote: done        \n").unwrap();
        transcript.command("ada", "git fetch -q", "").unwrap();
        transcript.command("ben", "git log", "").unwrap();
        transcript.prose("Bye.").unwrap();
        let expected = "
== 1. First

ada$ git push -o 'zit.intent=a b' origin x:refs/zit/claim/a.rs#f
100%
remote: done

ada$ git fetch -q
ben$ git log

Bye.
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
