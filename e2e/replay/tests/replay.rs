//! Runs `zit-replay` on a repository that the test makes, so that the tool does not rot between measurements.
//!
//! No network, no history of others: three merges of which one is bad, and a handful of declarations.

use std::path::Path;
use std::process::{Command, Output};

#[expect(
    clippy::disallowed_methods,
    reason = "the tool under test, and the git that makes its input"
)]
fn run(program: &str, at: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.current_dir(at).args(args);
    for key in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
        command.env(key, "tester");
    }
    for key in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
        command.env(key, "tester@example.org");
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.output().expect("the program starts")
}

fn git(at: &Path, args: &[&str]) {
    let output = run("git", at, args);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn replay(at: &Path, args: &[&str]) -> (Output, String) {
    let output = run(env!("CARGO_BIN_EXE_zit-replay"), at, args);
    let text = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    (output, text)
}

fn commit(at: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = at.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, text).expect("it can be written");
    }
    git(at, &["add", "."]);
    git(at, &["commit", "-q", "-m", "change"]);
}

/// Two changes of where the repository stands, and their merge.
fn merge(at: &Path, mine: &[(&str, &str)], theirs: &[(&str, &str)]) {
    git(at, &["checkout", "-q", "-b", "side"]);
    commit(at, theirs);
    git(at, &["checkout", "-q", "main"]);
    commit(at, mine);
    git(at, &["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    git(at, &["branch", "-q", "-D", "side"]);
}

const LOAD: &str = "pub fn load(path: &str) -> u8 {\n    1\n}\n";
const USER: &str = "use crate::a::load;\n\nfn one() {}\n\nfn two() {}\n";
const CHOICE: &str = "fn f(x: u8) -> u8 {\n    match x {\n        0 => 1,\n        1 => 2,\n        2 => 3,\n        _ => 4,\n    }\n}\n";

fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    git(at, &["init", "-q", "-b", "main"]);
    let manifest = "[package]\nname = \"sample\"\n";
    commit(
        at,
        &[("Cargo.toml", manifest), ("src/a.rs", LOAD), ("src/b.rs", USER), ("src/c.rs", CHOICE)],
    );
    folder
}

#[test]
fn merges_are_judged_and_the_bad_one_is_told_with_its_cause() {
    let folder = repository();
    let at = folder.path();
    // Other files.
    merge(at, &[("src/a.rs", &LOAD.replace('1', "2"))], &[("src/c.rs", &CHOICE.replace('4', "5"))]);
    // Other arms of one match.
    let choice = CHOICE.replace('4', "5");
    let (first, last) = (choice.replace("0 => 1", "0 => 7"), choice.replace("2 => 3", "2 => 8"));
    merge(at, &[("src/c.rs", &first)], &[("src/c.rs", &last)]);
    // A call of what takes another parameter now.
    let changed = LOAD.replace("path: &str", "path: &str, strict: bool").replace('1', "2");
    let used = USER.replace("fn two() {}", "fn two() {\n    load(\"x\");\n}");
    merge(at, &[("src/a.rs", &changed)], &[("src/b.rs", &used)]);

    let (output, text) = replay(at, &["merges", "."]);
    assert!(output.status.success(), "{text}");
    assert!(text.starts_with("3 two-sided merges, 3 of them made by git as recorded\n1 refused"));
    assert!(text.contains("    1     1  Yes: takes other parameters (rs)\n"), "{text}");
    assert!(text.contains("src/b.rs#two | src/a.rs#load"), "{text}");
}

#[test]
fn breaks_are_made_of_what_is_there_and_none_is_missed() {
    let folder = repository();
    let record =
        "pub struct Point {\n    pub x: u8,\n    pub y: u8,\n}\n\npub const LIMIT: u8 = 3;\n";
    commit(folder.path(), &[("src/d.rs", record)]);
    let (output, text) = replay(folder.path(), &["breaks", "."]);
    assert!(output.status.success(), "{text}");
    for (what, alteration) in [
        ("function", "parameter more"),
        ("function", "removed"),
        ("record", "member renamed"),
        ("value", "other value"),
    ] {
        let row = format!("{:12} {what:10} {alteration:20}", "rust");
        assert!(text.contains(&row), "{row}\n{text}");
    }
    assert!(text.contains(" pairs, 0 missed\n"), "{text}");
}
