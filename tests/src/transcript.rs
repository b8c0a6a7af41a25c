//! Runs the console blocks of a Markdown file and compares what they print.
//!
//! ````text
//! ```console
//! $ git push origin HEAD:refs/for/main
//! To $URL/app.git
//! ...
//!  * [new reference]   HEAD -> refs/zit/[..]
//! $ false
//! [1]
//! ```
//! ````
//!
//! A command starts with `$ `, its further lines with `> `; what follows is its output, standard error
//! included. `...` alone stands for any lines, `[..]` for any text within a line, `<oid>` for 40 hex
//! digits. A command that fails prints its exit code in brackets. All blocks of a file share one bash,
//! in an empty folder, with a server for `$ROOT` at `$URL` and this workspace's programs on the `PATH`.
//!
//! With `ZIT_BLESS=1` in the environment, outputs that differ are written into the file instead; read
//! the change as code. Nothing else is ever written outside the temporary folder.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use crate::process;
use crate::world::text;
use crate::{Server, World};

/// Printed by bash after each command; no command prints it by accident.
const SENTINEL: &str = "--zit-transcript-exit--";

/// The date of every commit, so that their oids are the same in every run.
const DATE: &str = "2026-01-05T10:00:00Z";

/// Runs every console block of the file at `path` and panics with a diff where the output differs.
#[track_caller]
pub fn check(path: &Path) {
    let source = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let pieces = parse(&source);
    if !pieces.iter().any(|piece| matches!(piece, Piece::Step(_))) {
        return;
    }
    let world = World::new();
    let server = Server::start(&world);
    let mut shell = Shell::start(&world, &server);
    let (mut blessed, mut differences) = (String::new(), String::new());
    for piece in &pieces {
        match piece {
            Piece::Prose(line) => push_line(&mut blessed, line),
            Piece::Step(step) => {
                let actual = shell.run(&step.command());
                let same = matches(&step.expected, &actual);
                if !same {
                    differences.push_str(&diff(step, &actual));
                }
                let output = if same { &step.expected } else { &actual };
                for line in step.lines.iter().chain(output) {
                    push_line(&mut blessed, line);
                }
            }
        }
    }
    if env::var_os("ZIT_BLESS").is_some() {
        fs::write(path, blessed).expect("a blessed transcript is writable");
    } else {
        assert!(differences.is_empty(), "{} differs:\n{differences}", path.display());
    }
}

/// A line of the file, or a command with its output.
#[derive(Debug, PartialEq)]
enum Piece {
    Prose(String),
    Step(Step),
}

#[derive(Debug, Default, PartialEq)]
struct Step {
    /// The command as written, with its `$ ` and `> `.
    lines: Vec<String>,
    expected: Vec<String>,
}

impl Step {
    fn command(&self) -> String {
        let lines = self.lines.iter().map(|line| line.get(2..).unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn parse(source: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut inside = false;
    for line in source.lines() {
        if line.starts_with("```") {
            inside = !inside && line.trim_end() == "```console";
            pieces.push(Piece::Prose(line.to_owned()));
        } else if inside && line.starts_with("$ ") {
            pieces.push(Piece::Step(Step { lines: vec![line.to_owned()], expected: Vec::new() }));
        } else if let (true, Some(Piece::Step(step))) = (inside, pieces.last_mut()) {
            if line.starts_with("> ") && step.expected.is_empty() {
                step.lines.push(line.to_owned());
            } else {
                step.expected.push(line.to_owned());
            }
        } else {
            pieces.push(Piece::Prose(line.to_owned()));
        }
    }
    pieces
}

/// One bash that runs commands one after another.
struct Shell {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// Texts that differ from run to run, and the names they get.
    names: Vec<(String, &'static str)>,
}

impl Shell {
    fn start(world: &World, server: &Server) -> Self {
        let work = world.path("work");
        fs::create_dir(&work).expect("a world has one transcript");
        let url = format!("http://{}", server.address());
        let root = world.root();
        let mut path = process::product_folder().into_os_string();
        path.push(":");
        path.push(process::search_path());
        let mut command = process::command("bash");
        command.args(["--norc", "--noprofile"]).current_dir(&work);
        command.env("PATH", path).env("HOME", world.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("URL", &url).env("ROOT", &root).env("WORK", &work);
        command.env("GIT_AUTHOR_DATE", DATE).env("GIT_COMMITTER_DATE", DATE);
        command.env("GIT_TERMINAL_PROMPT", "0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("bash can be started");
        let stdin = child.stdin.take().expect("standard input was asked to be a pipe");
        let stdout = child.stdout.take().expect("standard output was asked to be a pipe");
        let names = vec![
            (url, "$URL"),
            (text(&root).to_owned(), "$ROOT"),
            (text(&work).to_owned(), "$WORK"),
        ];
        let mut shell = Self { child, stdin, stdout: BufReader::new(stdout), names };
        writeln!(shell.stdin, "exec 2>&1").expect("bash reads its input");
        shell
    }

    /// Runs `command`; its output's lines, normalised.
    fn run(&mut self, command: &str) -> Vec<String> {
        let script = format!("{{ {command}\n}} </dev/null; printf '\\n{SENTINEL}%d\\n' $?\n");
        self.stdin.write_all(script.as_bytes()).expect("bash reads its input");
        let mut output = String::new();
        let code = loop {
            let mut line = Vec::new();
            let n_read = self.stdout.read_until(b'\n', &mut line).expect("a pipe can be read");
            assert!(n_read > 0, "bash ended during {command:?} after: {output}");
            let line = String::from_utf8_lossy(&line).into_owned();
            match line.strip_prefix(SENTINEL) {
                Some(code) => break code.trim_end().to_owned(),
                None => output.push_str(&line),
            }
        };
        // The first line feed is the sentinel's own.
        let output = output.strip_suffix('\n').unwrap_or(&output);
        let mut lines = output.lines().map(|line| self.normalise(line)).collect::<Vec<_>>();
        if code != "0" {
            lines.push(format!("[{code}]"));
        }
        lines
    }

    fn normalise(&self, line: &str) -> String {
        // A progress line that was redrawn is what it was last.
        let line = line.trim_end().rsplit('\r').next().unwrap_or_default().trim_end();
        let mut line = line.to_owned();
        for (text, name) in &self.names {
            line = line.replace(text, name);
        }
        hide_oids(&line)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Replaces every run of exactly 40 hex digits.
fn hide_oids(line: &str) -> String {
    let is_hex = |c: char| c.is_ascii_hexdigit() && !c.is_ascii_uppercase();
    let mut hidden = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_hex(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        hidden.push_str(if run.len() == 40 { "<oid>" } else { run });
        let next = after.find(is_hex).unwrap_or(after.len());
        hidden.push_str(&after[..next]);
        rest = &after[next..];
    }
    hidden
}

/// Whether `actual` is what `expected` describes.
fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((line, rest)) if line.trim() == "..." => {
            (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..]))
        }
        Some((line, rest)) => actual
            .split_first()
            .is_some_and(|(found, others)| line_matches(line, found) && matches(rest, others)),
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.trim_end().split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts = parts.collect::<Vec<_>>();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn diff(step: &Step, actual: &[String]) -> String {
    let mut text = step.lines.join("\n") + "\n";
    for line in &step.expected {
        let mark = if actual.iter().any(|found| line_matches(line, found)) { ' ' } else { '-' };
        push_line(&mut text, &format!("{mark}{line}"));
    }
    for line in actual {
        if !step.expected.iter().any(|pattern| line_matches(pattern, line)) {
            push_line(&mut text, &format!("+{line}"));
        }
    }
    text + "\n"
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn only_console_blocks_hold_commands() {
        let pieces = parse("a\n```sh\n$ no\n```\n```console\n$ echo \\\n> b\nb\n```\n");
        let steps = pieces.iter().filter_map(|piece| match piece {
            Piece::Step(step) => Some((step.command(), step.expected.clone())),
            Piece::Prose(_) => None,
        });
        assert_eq!(steps.collect::<Vec<_>>(), [("echo \\\nb".to_owned(), lines("b"))]);
    }

    #[test]
    fn wildcards_stand_for_lines_and_for_parts_of_a_line() {
        for (expected, actual, same) in [
            ("a\n...\nd", "a\nb\nc\nd", true),
            ("...", "", true),
            ("a\n...\nd", "a\nb", false),
            ("x [..] z", "x 1 2 z", true),
            ("x [..] z", "x 1 2 y", false),
            ("x", "x y", false),
            ("[..]b[..]", "abc", true),
        ] {
            assert_eq!(matches(&lines(expected), &lines(actual)), same, "{expected:?} {actual:?}");
        }
    }

    #[test]
    fn only_whole_oids_are_hidden() {
        let oid = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(hide_oids(&format!("at {oid}, {oid}8 é")), format!("at <oid>, {oid}8 é"));
    }
}
