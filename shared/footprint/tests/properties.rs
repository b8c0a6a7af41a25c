//! What holds for every input: no panic, the same answer twice, nothing written where nothing changed.

use proptest::prelude::*;
use zit_footprint::{
    Carved, Conflict, ConflictKind, FileFootprint, FileKind, Footprint, Language, MAX_FILE, Parsed,
    Side, Unknown, WriteKind, compare, conflicts,
};
use zit_model::Resource;

/// One source for each grammar, with most of what it carves.
const SOURCES: &[(&str, &str)] = &[
    (
        "x.rs",
        "use a::b;\n/// Doc.\n#[derive(Clone)]\npub struct T<A> { a: A }\nimpl<A: B> T<A> {\n    \
         fn m(&self) -> u8 { self.a.get(\"s\\n\") }\n}\nmod x {\n    fn y() { z!(1, 2.0) }\n}\nconst C: u8 = 1;\n",
    ),
    (
        "x.py",
        "import a.b\nX = 1\n@d\nclass C(B):\n    \"doc\"\n    y: int = 1\n    def m(self, *a, k=1):\n        \
         for i in a:\n            yield f\"{i}{k}\"\n        return lambda q: q\n\ndef f(): pass\n",
    ),
    (
        "x.ts",
        "import * as a from 'a'\nexport const x = 1, { y } = z\nexport class C extends B<T> {\n  p = () => 1;\n  \
         get q(): number { return `a${1}b` }\n}\ninterface I { a: string }\nenum E { A }\nmain();\n",
    ),
    ("x.jsx", "export default function F({ a }) {\n  return <div a={a}>text {a}</div>\n}\n"),
    (
        "x.go",
        "package a\n\nimport (\n\t\"b\"\n)\n\nconst (\n\tA = iota\n\tB\n)\n\ntype T struct{ a int }\n\n\
         func (t *T) M(x int) (int, error) {\n\tfor i := range t.a {\n\t\tb.F(i)\n\t}\n\treturn 1, nil\n}\n\nfunc init() {}\n",
    ),
    ("x.md", "intro\n\n# A\ntext\n\n## B\n- c\n\n# A\n```\n# no\n```\n"),
];

/// Files of more than a few units.
const LONGER: &[(&str, &str)] = &[
    ("x.rs", include_str!("../src/compare.rs")),
    ("x.py", include_str!("longer.py.txt")),
    ("x.ts", include_str!("longer.ts.txt")),
    ("x.go", include_str!("longer.go.txt")),
];

/// All that is found in each version, with what is known of the one before or without.
fn taken_apart(path: &str, versions: &[&[u8]], with_earlier: bool) -> Vec<String> {
    let language = Language::of_path(path).expect("a language");
    let mut before: Option<Parsed> = None;
    let apart = versions.iter().map(|bytes| {
        let side = Side { kind: FileKind::Regular, bytes };
        let known = before.take().filter(|_| with_earlier);
        let (carved, parsed) = Carved::after(language, side, known.as_ref()).unzip();
        before = parsed.flatten();
        format!("{carved:#?}")
    });
    apart.collect()
}

fn run(path: &str, old: Option<&[u8]>, new: Option<&[u8]>) -> FileFootprint {
    let side = |bytes| Side { kind: FileKind::Regular, bytes };
    compare(&Resource::file(path).expect("a path"), old.map(side), new.map(side))
}

#[test]
fn every_source_parses() {
    for (path, source) in SOURCES {
        let footprint = run(path, None, Some(source.as_bytes()));
        assert_eq!(footprint.fallback, None, "{path}");
        assert!(footprint.writes.len() > 1 || *path == "x.jsx", "{path}");
    }
}

#[test]
fn windows_line_endings_and_blank_lines_write_nothing() {
    for (path, source) in SOURCES {
        for same in [source.replace('\n', "\r\n"), source.replace("\n\n", "\n\n\n") + "\n\n"] {
            let footprint = run(path, Some(source.as_bytes()), Some(same.as_bytes()));
            assert_eq!(footprint.writes.len(), 0, "{path}: {footprint:?}");
        }
    }
}

#[test]
fn every_byte_that_goes_missing_is_noticed_or_did_not_count() {
    for (path, source) in SOURCES {
        for at in 0..source.len() {
            let mut new = source.as_bytes().to_vec();
            let gone = new.remove(at);
            let footprint = run(path, Some(source.as_bytes()), Some(&new));
            let counts = gone.is_ascii_alphanumeric() || matches!(gone, b'"' | b'.' | b'=');
            let in_comment =
                source[..at].rsplit('\n').next().is_some_and(|line| line.contains("//"));
            if counts && !in_comment {
                assert!(!footprint.writes.is_empty(), "{path} at {at}: {:?}", gone as char);
            }
        }
    }
}

fn mutated() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let edit = (any::<prop::sample::Index>(), 0_usize..12, "[ -~\n\t\u{e9}]{0,6}");
    (0..SOURCES.len(), prop::collection::vec(edit, 1..4)).prop_map(|(which, edits)| {
        let mut bytes = SOURCES[which].1.as_bytes().to_vec();
        for (at, length, text) in edits {
            let start = at.index(bytes.len() + 1);
            let end = (start + length).min(bytes.len());
            bytes.splice(start..end, text.bytes());
        }
        (which, bytes)
    })
}

fn is_mirror(there: &FileFootprint, back: &FileFootprint) -> bool {
    let mirror = |change| match change {
        WriteKind::Added => WriteKind::Removed,
        WriteKind::Removed | WriteKind::Renamed => WriteKind::Added,
        // What may be left out may not be asked for, so one way a change is noticed and back it is not.
        WriteKind::Signature | WriteKind::Body => WriteKind::Body,
        WriteKind::Docs | WriteKind::File | WriteKind::Moved => change,
    };
    let plain = |change| if change == WriteKind::Signature { WriteKind::Body } else { change };
    let plain =
        |change| if change == WriteKind::Renamed { WriteKind::Removed } else { plain(change) };
    there.writes.len() == back.writes.len()
        && there.writes.iter().zip(&back.writes).all(|((a, there), (b, back))| {
            a == b
                && mirror(there.change) == plain(back.change)
                && (there.old, there.new) == (back.new, back.old)
        })
}

#[test]
fn a_letter_that_changes_writes_one_unit_unless_it_renames_one() {
    for (path, source) in SOURCES {
        for (at, _) in source.char_indices().filter(|(_, c)| c.is_ascii_alphanumeric()) {
            let mut new = source.as_bytes().to_vec();
            new[at] = if new[at].is_ascii_digit() { b'7' } else { b'q' };
            let footprint = run(path, Some(source.as_bytes()), Some(&new));
            let names = |write: &zit_footprint::Write| write.old.is_none() || write.new.is_none();
            if new != source.as_bytes() && !footprint.writes.values().any(names) {
                let written: Vec<_> = footprint.writes.keys().map(ToString::to_string).collect();
                assert_eq!(written.len(), 1, "{path} at {at}: {written:?}");
            }
        }
    }
}

/// How many cases each property tries; `ZIT_CASES` asks for more.
fn n_cases() -> u32 {
    std::env::var("ZIT_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(400)
}

fn exchanged(mut conflict: Conflict) -> Conflict {
    std::mem::swap(&mut conflict.mine, &mut conflict.theirs);
    conflict.kind = match conflict.kind {
        ConflictKind::WriteWrite => ConflictKind::WriteWrite,
        ConflictKind::ReadWrite => ConflictKind::WriteRead,
        ConflictKind::WriteRead => ConflictKind::ReadWrite,
    };
    conflict
}

proptest! {
    #![proptest_config(ProptestConfig { cases: n_cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_edit_gives_the_same_answer_twice_and_its_mirror_back((which, new) in mutated()) {
        let (path, old) = SOURCES[which];
        let there = run(path, Some(old.as_bytes()), Some(&new));
        prop_assert_eq!(&there, &run(path, Some(old.as_bytes()), Some(&new)));
        prop_assert!(is_mirror(&there, &run(path, Some(&new), Some(old.as_bytes()))));
        prop_assert!(run(path, Some(&new), Some(&new)).writes.is_empty());
        for resource in there.writes.keys() {
            prop_assert_eq!(&resource.to_string().parse::<Resource>().expect("canonical"), resource);
        }
        let footprint = Footprint::from_files([there]);
        prop_assert_eq!(conflicts(&footprint, &footprint, &Unknown::default()), []);
    }

    #[test]
    fn files_in_any_order_are_one_footprint_and_sides_in_any_order_meet_alike(
        mine in prop::collection::vec(mutated(), 1..4),
        theirs in prop::collection::vec(mutated(), 1..4),
    ) {
        let files = |side: &[(usize, Vec<u8>)]| {
            let files: std::collections::BTreeMap<_, _> = side.iter().cloned().collect();
            let file = |(which, new): (usize, Vec<u8>)| {
                let (path, old) = SOURCES[which];
                run(path, Some(old.as_bytes()), Some(&new))
            };
            files.into_iter().map(file).collect::<Vec<_>>()
        };
        let (mine, theirs) = (files(&mine), files(&theirs));
        let backwards = Footprint::from_files(mine.iter().rev().cloned());
        let (mine, theirs) = (Footprint::from_files(mine), Footprint::from_files(theirs));
        prop_assert_eq!(&mine, &backwards);
        let there = conflicts(&mine, &theirs, &Unknown::default());
        let mut back: Vec<_> =
            conflicts(&theirs, &mine, &Unknown::default()).into_iter().map(exchanged).collect();
        back.sort();
        prop_assert_eq!(there, back);
    }

    #[test]
    fn what_is_known_of_a_version_makes_no_difference_to_the_next((which, new) in mutated()) {
        let (path, old) = SOURCES[which];
        let versions = [old.as_bytes(), &new, old.as_bytes()];
        prop_assert_eq!(taken_apart(path, &versions, true), taken_apart(path, &versions, false));
    }

}

proptest! {
    // The files are long, and each case takes them apart a dozen times.
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nor_where_lines_of_a_longer_file_are_moved_taken_out_and_written_twice(
        which in 0..LONGER.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..30, 0..4), 1..6),
    ) {
        let (path, old) = LONGER[which];
        let mut lines: Vec<&str> = old.split_inclusive('\n').collect();
        let mut versions = vec![old.to_owned()];
        for (at, length, what) in edits {
            let start = at.index(lines.len());
            let end = (start + length).min(lines.len());
            match what {
                0 => drop(lines.drain(start..end)),
                1 => lines.splice(start..start, lines[start..end].to_vec()).for_each(drop),
                2 => lines.rotate_left(start),
                _ => lines.insert(start, "\n\n\n"),
            }
            versions.push(lines.concat());
        }
        let versions: Vec<&[u8]> = versions.iter().map(String::as_bytes).collect();
        prop_assert_eq!(taken_apart(path, &versions, true), taken_apart(path, &versions, false));
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300), which in 0..SOURCES.len()) {
        let (path, old) = SOURCES[which];
        let footprint = run(path, Some(old.as_bytes()), Some(&bytes));
        prop_assert!(!footprint.writes.is_empty());
    }
}

#[test]
fn what_is_built_to_be_slow_ends() {
    let hostile = [
        ("x.rs", "a<".repeat(MAX_FILE / 8)),
        ("x.ts", "(a,".repeat(MAX_FILE / 12)),
        ("x.py", "if x:\n ".repeat(MAX_FILE / 28)),
        ("x.go", "func(".repeat(MAX_FILE / 20)),
        ("x.md", "[".repeat(MAX_FILE / 4)),
        ("y.ts", "{a:".repeat(MAX_FILE / 3)),
        ("y.rs", "\"".repeat(MAX_FILE / 16)),
        ("y.py", "(a,".repeat(MAX_FILE / 3)),
    ];
    for (path, source) in hostile {
        let footprint = run(path, None, Some(source.as_bytes()));
        assert!(!footprint.writes.is_empty(), "{path}");
    }
}
