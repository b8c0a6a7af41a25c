//! Runs the languages' fixtures: what each change writes, as `src/lang/<x>/fixture.txt` documents it.
//!
//! A case is `=== title (ending)`, or `(whole.name)`, then `--- before`, `--- after`, `--- writes` and perhaps `--- refs`, each
//! ended by the next. A missing version is a file that does not exist. A line of `writes` is `change  #unit`;
//! `!` after the change says that code elsewhere may notice. A line of `refs` is `#unit  names…`.

use std::fmt::Write as _;

use zit_footprint::{FileFootprint, FileKind, Side, compare};
use zit_model::Resource;

#[test]
fn rust_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/rust/fixture.txt"));
}

#[test]
fn python_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/python/fixture.txt"));
}

#[test]
fn typescript_and_javascript_write_what_their_fixture_says() {
    run(include_str!("../src/lang/typescript/fixture.txt"));
}

#[test]
fn go_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/go/fixture.txt"));
}

#[test]
fn markdown_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/markdown/fixture.txt"));
}

#[test]
fn toml_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/toml/fixture.txt"));
}

#[test]
fn json_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/json/fixture.txt"));
}

#[test]
fn yaml_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/yaml/fixture.txt"));
}

#[test]
fn ini_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/ini/fixture.txt"));
}

#[test]
fn go_mod_writes_what_its_fixture_says() {
    run(include_str!("../src/lang/gomod/fixture.txt"));
}

struct Case<'a> {
    title: &'a str,
    extension: &'a str,
    before: Option<String>,
    after: Option<String>,
    writes: String,
    refs: Option<String>,
}

fn run(fixture: &str) {
    let cases = parse(fixture);
    assert!(!cases.is_empty());
    let mut failures = String::new();
    for case in cases {
        let name = case.extension;
        let name = if name.contains('.') { name.to_owned() } else { format!("x.{name}") };
        let path = Resource::file(&name).expect("a path");
        let footprint =
            compare(&path, case.before.as_deref().map(regular), case.after.as_deref().map(regular));
        let found = writes(&footprint);
        if found != case.writes {
            let _ =
                write!(failures, "\n=== {}\nexpected:\n{}found:\n{found}", case.title, case.writes);
        }
        if let Some(expected) = &case.refs {
            let found = refs(&footprint);
            if found != *expected {
                let _ = write!(
                    failures,
                    "\n=== {}\nexpected refs:\n{expected}found:\n{found}",
                    case.title
                );
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn regular(text: &str) -> Side<'_> {
    Side { kind: FileKind::Regular, bytes: text.as_bytes() }
}

fn unit(resource: &Resource) -> String {
    let text = resource.to_string();
    text.find('#').map_or("(file)", |at| &text[at..]).to_owned()
}

fn writes(footprint: &FileFootprint) -> String {
    let mut out = String::new();
    for (resource, write) in &footprint.writes {
        let notice = match (write.is_breaking(), write.is_noticed()) {
            (true, _) => "!",
            (false, true) => "~",
            (false, false) => "",
        };
        let reason = footprint.fallback.map(|f| format!("  {}", f.as_str())).unwrap_or_default();
        let _ = writeln!(out, "{}{notice}  {}{reason}", write.change.as_str(), unit(resource));
    }
    out
}

fn refs(footprint: &FileFootprint) -> String {
    let mut out = String::new();
    for (resource, write) in footprint.writes.iter().filter(|(_, w)| !w.names.is_empty()) {
        let names: Vec<_> = write.names.iter().map(|name| &**name).collect();
        let _ = writeln!(out, "{}  {}", unit(resource), names.join(" "));
    }
    out
}

fn parse(fixture: &str) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for block in fixture.split("\n=== ").skip(1) {
        let (title, rest) = block.split_once('\n').expect("a title");
        let (title, extension) =
            title.trim_end_matches(')').rsplit_once(" (").expect("an extension");
        let mut case =
            Case { title, extension, before: None, after: None, writes: String::new(), refs: None };
        for section in rest.split("--- ").skip(1) {
            let (name, text) = section.split_once('\n').expect("a section");
            match name {
                "before" => case.before = Some(text.to_owned()),
                "after" => case.after = Some(text.to_owned()),
                "writes" => case.writes = lines(text),
                "refs" => case.refs = Some(lines(text)),
                other => panic!("{title}: {other}"),
            }
        }
        cases.push(case);
    }
    cases
}

/// The lines without blank ones at the ends.
fn lines(text: &str) -> String {
    text.trim().lines().map(|line| format!("{}\n", line.trim())).collect()
}
