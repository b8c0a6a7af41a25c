//! Plays `zit-server demo` with stock git and reads what a person would have read.
//!
//! Nothing here knows the server's sentences by heart beyond what the story turns on: who won, who was refused and why,
//! what landed, what composed, what was stale.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONTESTED: &str = "engine/src/config.rs#parse_config";

#[test]
fn the_demo_tells_who_won_who_was_refused_and_what_landed() {
    let transcript = demo(&[]);
    let told = Told::read(&transcript, CONTESTED);

    let [won, lost] = told.claims;
    assert!(won.contains("-> refs/zit/claims/"), "{won}");
    assert!(!won.contains("! [remote rejected]"), "{won}");
    assert!(lost.contains("! [remote rejected]"), "{lost}");
    for fact in [told.first, CONTESTED, "remote: "] {
        assert!(lost.contains(fact), "the loser should be told {fact}: {lost}");
    }
    let typed = lost.lines().any(|line| line.contains("remote: - git "));
    assert!(typed, "the loser should be told what to type: {lost}");

    let overlap = step(&transcript, "edits the same function");
    assert!(overlap.contains(told.first) && overlap.contains(CONTESTED), "{overlap}");
    let disjoint = step(&transcript, "edits other functions");
    for word in ["new notes", "warning", "rejected"] {
        assert!(!disjoint.contains(word), "nobody else is there: {disjoint}");
    }

    for landing in [format!("{} lands", told.first), format!("{} lands", told.second)] {
        let landing = step(&transcript, &landing);
        assert!(landing.contains("landed on main"), "{landing}");
        assert!(landing.contains("refs/zit/current"), "{landing}");
        assert!(!landing.contains("rejected"), "{landing}");
    }
    let stale = step(&transcript, "tries to land the overlapping work");
    for fact in ["! [remote rejected]", "stale", told.first, CONTESTED] {
        assert!(stale.contains(fact), "the refusal should say {fact}: {stale}");
    }

    let rebuilt = step(&transcript, "types what it was told to type");
    let command = rebuilt.lines().find_map(|line| line.split_once("$ ")).unwrap().1;
    assert!(stale.contains(&format!("remote: - {command}")), "{command} should be told: {stale}");
    let end = step(&transcript, "What stands in the end");
    for subject in
        ["let a comment follow a value", "take a colon for an equals sign", "say how long"]
    {
        assert!(end.contains(subject), "{subject} should stand on the mainline: {end}");
    }
}

#[test]
fn the_transcript_follows_the_names_of_the_symbols() {
    let renames = [
        ("parse_config", "read_settings"),
        ("describe", "headline"),
        ("summarise", "condense"),
        ("BerthRow", "PlaceLine"),
    ];
    let options: Vec<String> =
        renames.iter().map(|(old, new)| format!("--rename={old}={new}")).collect();
    let transcript = demo(&options.iter().map(String::as_str).collect::<Vec<_>>());
    for (old, new) in renames {
        assert!(transcript.contains(new), "{new} should be told of:\n{transcript}");
        assert!(!transcript.contains(old), "{old} is no more, but is told of:\n{transcript}");
    }
    let told = Told::read(&transcript, "engine/src/config.rs#read_settings");
    let lost = told.claims[1];
    assert!(lost.contains("engine/src/config.rs#read_settings"), "{lost}");
    let stale = step(&transcript, "tries to land the overlapping work");
    assert!(stale.contains("engine/src/config.rs#read_settings"), "{stale}");
}

#[test]
fn without_exit_the_demo_serves_on_until_it_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = zit_server(folder.path())
        .arg("demo")
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let serving = lines.find(|line| line.starts_with("serving http://")).expect("it should serve");
    let url = serving.split_whitespace().nth(1).unwrap();

    let cloned = program("git", folder.path()).args(["clone", "-q", url, "mine"]).output().unwrap();
    assert!(cloned.status.success(), "{}", text(&cloned));
    assert!(folder.path().join("mine/engine/src/config.rs").exists());

    let pid = demo.id().to_string();
    assert!(program("kill", folder.path()).args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(demo.wait().unwrap().code(), Some(0));
    std::fs::remove_dir_all(folder.path().join("mine")).unwrap();
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn a_rename_of_no_symbol_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = zit_server(folder.path())
        .args(["demo", "--exit", "--rename=nosuchword=other"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("error: the sample has no symbol nosuchword"),
        "{}",
        text(&output)
    );
}

/// Who played which part, and what the two who raced were answered: the winner first.
struct Told<'a> {
    first: &'a str,
    second: &'a str,
    claims: [&'a str; 2],
}

impl<'a> Told<'a> {
    #[track_caller]
    fn read(transcript: &'a str, contested: &str) -> Self {
        let race = step(transcript, "Both claim");
        assert!(race.starts_with(&format!("Both claim {contested}")), "{race}");
        let prompts: Vec<usize> = race.match_indices("$ git push").map(|(at, _)| at - 3).collect();
        let [one, two] = prompts[..] else { panic!("two should claim: {race}") };
        let told = Self {
            first: &race[one..one + 3],
            second: &race[two..two + 3],
            claims: [&race[one..two], &race[two..]],
        };
        let mut who = [told.first, told.second];
        who.sort_unstable();
        assert_eq!(who, ["ada", "ben"], "{race}");
        told
    }
}

/// The one step with `title` in its title, from its title to its end.
#[track_caller]
fn step<'a>(transcript: &'a str, title: &str) -> &'a str {
    let steps = transcript.split("\n== ").skip(1).filter_map(|step| step.split_once(". "));
    let found: Vec<&str> = steps
        .map(|(_, step)| step)
        .filter(|step| step.lines().next().is_some_and(|line| line.contains(title)))
        .collect();
    let [step] = found[..] else { panic!("one step should be titled {title}:\n{transcript}") };
    step
}

#[track_caller]
fn demo(options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = zit_server(folder.path()).args(["demo", "--exit"]).args(options).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let left: Vec<_> = folder.path().read_dir().unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The server's binary, with its temporary files below `folder`.
fn zit_server(folder: &Path) -> Command {
    program(env!("CARGO_BIN_EXE_zit-server"), folder)
}

#[allow(clippy::disallowed_methods, reason = "the programs under test and their clients")]
fn program(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder).env("TMPDIR", folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}
