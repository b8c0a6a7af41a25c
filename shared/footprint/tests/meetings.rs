//! Runs the languages' meetings: where two changes of one base meet, as `src/lang/<x>/meetings.txt` documents it.
//!
//! A case is `=== title`, then files: `--- base <path>`, `--- mine <path>`, `--- theirs <path>`, each with the text of the
//! file in that version, and `--- meets` with one line for each conflict: `kind  mine  theirs  reason`, `~` before it
//! when it only informs. A file that one side does not name is as in the base; `(gone)` is a file that it removes.
//! `--- mine <path> from <path of the base>` is a file that the side moved.
//! What holds of the two sides holds, mirrored, of the exchanged ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use zit_footprint::{
    Alike, Because, Carved, Conflict, ConflictKind, FileKind, Footprint, Language, Layout, Reach,
    Side, Surroundings, Symbol, Versions, Weight, apart, compare, compare_moved, conflicts,
};
use zit_model::Resource;

#[test]
fn rust_changes_meet_where_their_file_says() {
    run(include_str!("../src/lang/rust/meetings.txt"));
}

#[test]
fn python_changes_meet_where_their_file_says() {
    run(include_str!("../src/lang/python/meetings.txt"));
}

#[test]
fn typescript_and_javascript_changes_meet_where_their_file_says() {
    run(include_str!("../src/lang/typescript/meetings.txt"));
}

#[test]
fn go_changes_meet_where_their_file_says() {
    run(include_str!("../src/lang/go/meetings.txt"));
}

/// Files by path; `None` is one that a side removes.
type Files = BTreeMap<String, Option<String>>;

#[derive(Default)]
struct Case<'a> {
    title: &'a str,
    base: Files,
    mine: Files,
    theirs: Files,
    meets: String,
}

fn run(text: &str) {
    let cases = parse(text);
    assert!(!cases.is_empty());
    let mut failures = String::new();
    for case in cases {
        let around = Base::of(&case);
        let (mine, theirs) =
            (footprint(&case.base, &case.mine), footprint(&case.base, &case.theirs));
        let found = conflicts(&mine, &theirs, &around);
        let mut shown: Vec<_> = found.iter().map(show).collect();
        shown.sort_by_key(|line| line.trim_start_matches('~').to_owned());
        let shown = shown.concat();
        if shown != case.meets {
            let (title, expected) = (case.title, &case.meets);
            let _ = write!(failures, "\n=== {title}\nexpected:\n{expected}found:\n{shown}");
        }
        let mut back: Vec<Conflict> = conflicts(&theirs, &mine, &around);
        back.iter_mut().for_each(exchange);
        back.sort();
        assert_eq!(found, back, "{}: exchanged sides meet otherwise", case.title);
    }
    assert!(failures.is_empty(), "{failures}");
}

fn exchange(conflict: &mut Conflict) {
    std::mem::swap(&mut conflict.mine, &mut conflict.theirs);
    conflict.kind = match conflict.kind {
        ConflictKind::WriteWrite => ConflictKind::WriteWrite,
        ConflictKind::ReadWrite => ConflictKind::WriteRead,
        ConflictKind::WriteRead => ConflictKind::ReadWrite,
    };
}

fn show(conflict: &Conflict) -> String {
    let Conflict { kind, mine, theirs, weight, because } = conflict;
    let informs = if *weight == Weight::Informs { "~" } else { "" };
    let because = match because {
        Because::Overlap => "both write it".to_owned(),
        Because::Apart => "both write it, apart".to_owned(),
        Because::SameName => "both add the name".to_owned(),
        Because::Declared => "declared".to_owned(),
        Because::Import { name } => format!("{name} is imported no more"),
        Because::Reference { name, why, .. } => format!("{name} {}", why.as_str()),
        Because::Name { name } => name.clone(),
    };
    format!("{informs}{}  {mine}  {theirs}  {because}\n", kind.as_str())
}

fn footprint(base: &Files, side: &Files) -> Footprint {
    let text = |files: &Files, path: &str| files.get(path).cloned().flatten();
    Footprint::from_files(side.keys().map(|path| {
        let file = |path: &str| Resource::file(path).expect("a path");
        if let Some((to, from)) = path.split_once(" from ") {
            let (old, new) = (text(base, from).expect("a base"), text(side, path).expect("a text"));
            return compare_moved(&file(from), &file(to), regular(&old), regular(&new));
        }
        let (old, new) = (text(base, path), text(side, path));
        let resource = file(path);
        compare(&resource, old.as_deref().map(regular), new.as_deref().map(regular))
    }))
}

fn regular(text: &str) -> Side<'_> {
    Side { kind: FileKind::Regular, bytes: text.as_bytes() }
}

/// The base of a case: what it declares, by name and container.
struct Base<'a> {
    layout: Layout,
    files: Vec<Carved>,
    case: &'a Case<'a>,
}

impl<'a> Base<'a> {
    fn of(case: &'a Case<'a>) -> Self {
        let (mut layout, mut carved) = (Layout::default(), Vec::new());
        for (path, text) in &case.base {
            let text = text.as_deref().unwrap_or_default();
            layout.add_file(path);
            if Layout::is_manifest(path) {
                layout.add_manifest(path, text);
            }
            let language = Language::of_path(path);
            carved.extend(language.and_then(|language| Carved::new(language, regular(text))));
        }
        Self { layout, files: carved, case }
    }
}

impl Surroundings for Base<'_> {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn is_unique(&self, symbol: &Symbol<'_>, reach: Reach) -> bool {
        let alike = self.files.iter().map(|file| file.declarations_like(symbol, reach));
        alike.fold(Alike::default(), Alike::and).is_one()
    }

    fn is_apart(&self, unit: &Resource) -> bool {
        let text = |files: &'_ Files| files.get(unit.path()).cloned().flatten();
        let three = (text(&self.case.base), text(&self.case.mine), text(&self.case.theirs));
        let (Some(base), Some(mine), Some(theirs)) = three else { return false };
        let versions = Versions { base: &base, mine: &mine, theirs: &theirs };
        Language::of_path(unit.path())
            .is_some_and(|language| apart(language, unit.part(), versions))
    }
}

fn parse(text: &str) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for block in text.split("\n=== ").skip(1) {
        let (title, rest) = block.split_once('\n').expect("a title");
        let mut case = Case { title, ..Case::default() };
        let mut seen = BTreeSet::new();
        for section in rest.split("--- ").skip(1) {
            let (head, body) = section.split_once('\n').expect("a section");
            assert!(seen.insert(head), "{title}: {head} twice");
            let file = (body.trim() != "(gone)").then(|| body.to_owned());
            match head.split_once(' ') {
                Some(("base", path)) => drop(case.base.insert(path.to_owned(), file)),
                Some(("mine", path)) => drop(case.mine.insert(path.to_owned(), file)),
                Some(("theirs", path)) => drop(case.theirs.insert(path.to_owned(), file)),
                _ if head == "meets" => {
                    let lines = body.trim().lines();
                    let mut lines: Vec<_> = lines.map(|line| format!("{line}\n")).collect();
                    lines.sort_by_key(|line| line.trim_start_matches('~').to_owned());
                    case.meets = lines.concat();
                }
                _ => panic!("{title}: {head}"),
            }
        }
        cases.push(case);
    }
    cases
}
