//! `git zit <verb>` on a small repository.

use insta::assert_snapshot;
use zit_tests::{Git, World};

use crate::git;

const LIB: &str = "\
use std::fmt;

pub fn area(width: u32, height: u32) -> u32 {
    width * height
}

pub fn name() -> &'static str {
    \"shape\"
}
";

/// One base and several changes of it, each a tag.
fn repository(world: &World) -> Git {
    let git = git(world);
    git.ok(["init", "--quiet", "work"]);
    let git = git.at("work");
    let change = |name: &str, message: &str, files: &[(&str, &str)]| {
        git.ok(["checkout", "--quiet", "--detach", "base"]);
        git.commit(message, files);
        git.ok(["tag", name]);
    };
    git.commit("Base", &[("src/lib.rs", LIB), ("README.md", "# Shapes\n\nText.\n")]);
    git.ok(["tag", "base"]);
    let wider = LIB.replace("width: u32, height: u32", "width: u64, height: u64");
    change("wider", "Take wide shapes", &[("src/lib.rs", &wider)]);
    change("rename", "Say square", &[("src/lib.rs", &LIB.replace("shape\"", "square\""))]);
    change("recall", "Say circle", &[("src/lib.rs", &LIB.replace("shape\"", "circle\""))]);
    let user = "use crate::area;\n\npub fn twice() -> u32 {\n    area(1, 2)\n}\n";
    change("user", "Use the area", &[("src/twice.rs", user)]);
    change("notes", "Explain", &[("README.md", "# Shapes\n\nMine.\n"), ("data.bin", "\0")]);
    change("more-notes", "Explain too", &[("README.md", "# Shapes\n\nTheirs.\n")]);
    change("reader", "Read\n\nZit-Read: src/lib.rs#name", &[("other.txt", "x\n")]);
    git
}

#[test]
fn a_footprint_lists_each_write_and_read() {
    let world = World::new();
    let git = repository(&world);
    let footprint = |tip: &str| git.ok(["zit", "footprint", "base", tip]);
    assert_snapshot!(footprint("wider"), @"signature  src/lib.rs#area  3-5  pub fn area(width: u32, height: u32) -> u32  =>  pub fn area(width: u64, height: u64) -> u32");
    assert_snapshot!(footprint("rename"), @"body       src/lib.rs#name  7-9");
    assert_snapshot!(footprint("user"), @r"
    added      src/twice.rs#(imports)  1-1
    added      src/twice.rs#twice  3-5
    ");
    assert_snapshot!(footprint("notes"), @r"
    body       README.md#Shapes  1-3
    file       data.bin  (binary)
    ");
    assert_snapshot!(footprint("reader"), @r"
    file       other.txt  (no-grammar)
    reads      src/lib.rs#name
    ");
    assert_snapshot!(footprint("base"), @"");
}

#[test]
fn a_footprint_is_one_document_on_request() {
    let world = World::new();
    let json = repository(&world).ok(["zit", "footprint", "--json", "base", "user"]);
    let hash = json.split("\"new\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert_snapshot!(json.replace(hash, "HASH"), @r#"{"format":2,"version":4,"files":[{"path":"src/twice.rs"}],"reads":[],"signatures":[],"writes":[{"resource":"src/twice.rs#(imports)","change":"added","interface":false,"breaking":false,"language":"rust","new":"HASH","newSignature":"use crate::area;","lines":[1,1],"uses":[{"name":"area","written":"crate","kinds":["value","import"],"places":[{"module":"src"}]}]},{"resource":"src/twice.rs#twice","change":"added","interface":false,"breaking":false,"language":"rust","name":"twice","module":"src/twice","new":"69c2ec7f3cd1e9bf5ab68c6e4e85872e","newSignature":"pub fn twice() -> u32","lines":[3,5],"uses":[{"name":"area","kinds":["call"],"places":[{"module":"src"}]}]}],"refs":["area"]}"#);
}

#[test]
fn a_judgement_says_where_two_changes_meet() {
    let world = World::new();
    let git = repository(&world);
    for (mine, theirs, code) in [
        ("wider", "rename", 0),
        ("rename", "recall", 1),
        ("user", "wider", 1),
        ("wider", "user", 1),
        ("reader", "rename", 1),
        ("notes", "more-notes", 0),
        ("rename", "rename", 0),
    ] {
        let text = git.shell(&format!("git zit judge base {mine} {theirs}; echo $?")).text();
        let first = if code == 0 { "composes" } else { "1 conflict" };
        assert!(text.starts_with(first), "{mine} and {theirs}: {text}");
        assert!(text.ends_with(&format!("\n{code}")), "{mine} and {theirs}: {text}");
    }
    let judge = |mine: &str, theirs: &str| git.run(["zit", "judge", "base", mine, theirs]).text();
    assert_snapshot!(judge("rename", "recall"), @r"
    1 conflict
    write-write: both write src/lib.rs#name (lines 7-9)
      past: git rebase --onto recall base rename   # then make your change of src/lib.rs#name on theirs
    ");
    assert_snapshot!(judge("user", "wider"), @r"
    1 conflict
    read-write: mine uses area in src/twice.rs#twice (lines 3-5), theirs changes src/lib.rs#area (lines 3-5): area takes other parameters
      meant: it is imported from there, or declared beside it
      old: pub fn area(width: u32, height: u32) -> u32
      new: pub fn area(width: u64, height: u64) -> u32
      past: git rebase --onto wider base user   # then make src/twice.rs#twice fit src/lib.rs#area as it is now
    ");
    assert_snapshot!(judge("wider", "user"), @r"
    1 conflict
    write-read: mine changes src/lib.rs#area (lines 3-5), theirs uses area in src/twice.rs#twice (lines 3-5): area takes other parameters
      meant: it is imported from there, or declared beside it
      old: pub fn area(width: u32, height: u32) -> u32
      new: pub fn area(width: u64, height: u64) -> u32
      past: git rebase --onto user base wider   # then make src/twice.rs#twice fit your change of src/lib.rs#area
    ");
    assert_snapshot!(judge("reader", "rename"), @r"
    1 conflict
    read-write: mine reads src/lib.rs#name, theirs changes src/lib.rs#name (lines 7-9)
      past: git rebase --onto rename base reader   # then see whether what you read in src/lib.rs#name still holds
    ");
    assert_snapshot!(judge("notes", "more-notes"), @r"
    composes
    left to git's text merge: both write README.md#Shapes
    ");
}

#[test]
fn a_judgement_is_one_document_on_request() {
    let world = World::new();
    let git = repository(&world);
    let judge =
        |mine: &str, theirs: &str| git.run(["zit", "judge", "--json", "base", mine, theirs]);
    assert_snapshot!(judge("user", "wider").text(), @r#"{"format":2,"composes":false,"conflicts":[{"kind":"read-write","mine":"src/twice.rs#twice","theirs":"src/lib.rs#area","mineLines":[3,5],"theirsLines":[3,5],"name":"area","why":"area takes other parameters","meant":"it is imported from there, or declared beside it","oldSignature":"pub fn area(width: u32, height: u32) -> u32","newSignature":"pub fn area(width: u64, height: u64) -> u32","past":{"run":"git rebase --onto wider base user","then":"make src/twice.rs#twice fit src/lib.rs#area as it is now"}}],"leftToTextMerge":[],"informs":[]}"#);
    assert_snapshot!(judge("notes", "more-notes").text(), @r#"{"format":2,"composes":true,"conflicts":[],"leftToTextMerge":[{"kind":"write-write","mine":"README.md#Shapes","theirs":"README.md#Shapes","mineLines":[1,3],"theirsLines":[1,3]}],"informs":[]}"#);
}

#[test]
fn the_command_past_a_conflict_puts_mine_on_theirs() {
    let world = World::new();
    let git = repository(&world);
    let json = git.run(["zit", "judge", "--json", "base", "user", "wider"]).text();
    let judgement: serde_json::Value = serde_json::from_str(&json).unwrap();
    let _ = git.shell(judgement["conflicts"][0]["past"]["run"].as_str().unwrap()).ok();
    assert!(git.ok(["show", "HEAD:src/lib.rs"]).contains("width: u64"));
    assert!(git.ok(["show", "HEAD:src/twice.rs"]).contains("area(1, 2)"));
}

#[test]
fn by_names_alone_a_mention_is_enough() {
    let world = World::new();
    let git = repository(&world);
    git.ok(["checkout", "--quiet", "--detach", "base"]);
    let other = "use other::area;\n\npub fn thrice() -> u32 {\n    area(1, 3)\n}\n";
    git.commit("Use another area", &[("src/thrice.rs", other)]);
    let judge =
        |flag: &str| git.shell(&format!("git zit judge base HEAD wider {flag}; echo $?")).text();
    assert_snapshot!(judge(""), @r"
    composes
    0
    ");
    assert_snapshot!(judge("--names"), @r"
    1 conflict
    read-write: mine uses area in src/thrice.rs#(imports) (lines 1-1), theirs changes src/lib.rs#area (lines 3-5)
      old: pub fn area(width: u32, height: u32) -> u32
      new: pub fn area(width: u64, height: u64) -> u32
      past: git rebase --onto wider base HEAD   # then make src/thrice.rs#(imports) fit src/lib.rs#area as it is now
    1
    ");
}

#[test]
fn what_cannot_be_told_is_neither_a_yes_nor_a_no() {
    let world = World::new();
    let git = repository(&world);
    for (line, says) in [
        (
            "git zit judge base wider nowhere",
            "fatal: \"nowhere\" names no commit in this repository",
        ),
        ("git zit judge base wider --output=x", "unexpected argument"),
        ("git zit judge base wider -- --output=x", "fatal: \"--output=x\" names no commit"),
        ("git zit judge base wider base:README.md", "names no commit"),
        ("git zit judge base wider", "<THEIRS>"),
        ("git zit whatever", "unrecognized subcommand"),
        ("cd / && git zit judge a b c", "fatal: not a git repository"),
    ] {
        let run = git.shell(&format!("({line}); echo $?")).ok();
        assert_eq!(run.text(), "2", "{line}: {run}");
        let _ = run.says(says);
    }
}

#[test]
fn a_repository_is_found_as_git_finds_it() {
    let world = World::new();
    let git = repository(&world);
    git.ok(["worktree", "add", "--quiet", "--detach", "../tree", "base"]);
    let here = git.ok(["zit", "footprint", "base", "user"]);
    for line in [
        "cd src && git zit footprint base user",
        "cd .git && git zit footprint base user",
        "cd ../tree && git zit footprint base user",
        "cd / && git --git-dir=$OLDPWD/.git zit footprint base user",
        "cd / && git -C $OLDPWD zit footprint base user",
    ] {
        assert_eq!(git.shell(line).ok().text(), here, "{line}");
    }
}

#[test]
fn help_names_the_verbs() {
    let world = World::new();
    let help = git(&world).ok(["zit", "help"]);
    assert_snapshot!(help, @r"
    See what changes touch, whether they compose, and what other agents are at

    Usage: git zit <COMMAND>

    Commands:
      footprint  List what a change writes and reads, down to functions
      status     Show what has landed, who holds what, and who works on what at a remote
      claims     List the claims at a remote
      items      List the open work at a remote
      judge      Tell whether two changes of the same base compose
      help       Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help
      -V, --version  Print version
    ");
}
