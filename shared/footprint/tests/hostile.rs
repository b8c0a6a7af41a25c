//! What no honest editor writes, in every language: it is answered, with units or with the reason why not.

use zit_footprint::{Fallback, FileFootprint, FileKind, MAX_FILE, Side, WriteKind, compare};
use zit_model::Resource;

/// A file of each language, a good version of it, and how a text that does not end begins.
const LANGUAGES: &[(&str, &str, &str)] = &[
    ("x.rs", "fn f() {}\nfn g() {}\n", "fn h() { \"ab"),
    ("x.py", "def f():\n    pass\n\nA = 1\n", "B = '''ab"),
    ("x.ts", "function f() {}\nconst a = 1;\n", "const b = `ab"),
    ("x.tsx", "function f() { return <p>a</p> }\nconst a = 1;\n", "const b = <p>ab"),
    ("x.js", "function f() {}\nconst a = 1;\n", "const b = `ab"),
    ("x.go", "package x\n\nfunc f() {}\n\nvar a = 1\n", "var b = `ab"),
    ("x.md", "# A\na\n\n# B\nb\n", "```\nab"),
    ("x.toml", "a = 1\n\n[b]\nc = 2\n", "d = '''ab"),
    ("x.json", "{\n\"a\": 1,\n\"b\": { \"c\": 2 }\n}\n", "\"ab"),
    ("x.yml", "a: 1\n\nb:\n  c: 2\n", "d: \"ab"),
    ("x.ini", "a = 1\n\n[b]\nc = 2\n", "d = \"ab"),
    ("go.mod", "module a\n\ngo 1.22\n", "require ("),
];

/// What a text that does not end means where lines or sections say all there is.
const ANY_TEXT: &[&str] = &["x.md", "x.yml", "x.ini", "go.mod"];

fn run(path: &str, old: Option<&[u8]>, new: &[u8]) -> FileFootprint {
    let side = |bytes| Side { kind: FileKind::Regular, bytes };
    let footprint = compare(&Resource::file(path).expect("a path"), old.map(side), Some(side(new)));
    let is_whole = footprint.writes.values().any(|write| write.change == WriteKind::File);
    assert_eq!(is_whole, footprint.fallback.is_some(), "{path}: {footprint:?}");
    footprint
}

#[test]
fn a_mark_of_the_byte_order_and_windows_line_ends_write_nothing() {
    for (path, good, _) in LANGUAGES {
        for same in [format!("\u{feff}{good}"), good.replace('\n', "\r\n")] {
            let footprint = run(path, Some(good.as_bytes()), same.as_bytes());
            assert_eq!(footprint.writes.len(), 0, "{path}: {footprint:?}");
        }
    }
}

#[test]
fn null_bytes_and_what_is_not_utf8_keep_a_file_whole_and_say_so() {
    for (path, good, _) in LANGUAGES {
        for (bad, why) in [(&b"\0"[..], Fallback::Binary), (b"\xff", Fallback::NotUtf8)] {
            let bad = [good.as_bytes(), bad].concat();
            assert_eq!(run(path, Some(good.as_bytes()), &bad).fallback, Some(why), "{path}");
            assert_eq!(run(path, Some(&bad), good.as_bytes()).fallback, Some(why), "{path}");
        }
    }
}

#[test]
fn symlinks_submodules_and_changed_modes_keep_a_file_whole_and_say_so() {
    use FileKind::{Executable, Regular, Submodule, Symlink};
    for (path, good, _) in LANGUAGES {
        let file = Resource::file(path).expect("a path");
        let side = |kind| Some(Side { kind, bytes: good.as_bytes() });
        for (old, new, why) in [
            (side(Regular), side(Symlink), Fallback::NotRegular),
            (None, side(Symlink), Fallback::NotRegular),
            (side(Submodule), side(Regular), Fallback::NotRegular),
            (side(Regular), side(Executable), Fallback::ModeChange),
        ] {
            let footprint = compare(&file, old, new);
            assert_eq!(footprint.fallback, Some(why), "{path}");
            assert!(footprint.writes.keys().eq([&file]), "{path}: {footprint:?}");
        }
    }
}

#[test]
fn what_does_not_end_is_a_whole_file_or_a_unit() {
    for (path, good, open) in LANGUAGES {
        let open = if *path == "x.json" { (*open).to_owned() } else { format!("{good}{open}") };
        let footprint = run(path, Some(good.as_bytes()), open.as_bytes());
        let expected = (!ANY_TEXT.contains(path)).then_some(Fallback::DoesNotParse);
        assert_eq!(footprint.fallback, expected, "{path}: {footprint:?}");
        // Without a token there is nothing to write: a block that opens and holds nothing.
        assert!(!footprint.writes.is_empty() || *path == "go.mod", "{path}");
    }
}

#[test]
fn a_file_may_have_so_many_bytes_and_no_more() {
    for (path, good, _) in LANGUAGES {
        let end = if *path == "x.json" { " " } else { "\n" };
        let full = format!("{good}{}", end.repeat(MAX_FILE - good.len()));
        let footprint = run(path, Some(good.as_bytes()), full.as_bytes());
        assert_eq!((footprint.fallback, footprint.writes.len()), (None, 0), "{path}");
        let over = format!("{full}{end}");
        let footprint = run(path, Some(good.as_bytes()), over.as_bytes());
        assert_eq!(footprint.fallback, Some(Fallback::TooLarge), "{path}");
    }
}

/// One line of nearly 1 MiB that means something in the language, as generators write it.
fn one_line(path: &str, n_bytes: usize) -> String {
    let (before, item, after) = match path {
        "x.rs" => ("const T: &[u32] = &[", "1, ", "];"),
        "x.py" => ("T = [", "1, ", "]"),
        "x.go" => ("package x; var t = []int{", "1, ", "}"),
        "x.md" => ("# A ", "word ", ""),
        "x.toml" => ("t = [", "1, ", "]"),
        "x.json" => ("{\"t\": [0", ", 1", "]}"),
        "x.yml" => ("t: [", "1, ", "]"),
        "x.ini" => ("t = ", "1, ", ""),
        "go.mod" => ("require a ", "1, ", ""),
        _ => ("const t=[", "1,", "];"),
    };
    let n = (n_bytes - before.len() - after.len()) / item.len();
    format!("{before}{}{after}", item.repeat(n))
}

#[test]
fn a_long_line_is_taken_apart_or_says_why_not() {
    for (path, good, _) in LANGUAGES {
        let line = one_line(path, MAX_FILE / 8);
        let footprint = run(path, Some(good.as_bytes()), line.as_bytes());
        assert!(!footprint.writes.is_empty(), "{path}");
        assert_eq!(footprint.fallback, None, "{path}");
    }
}

#[test]
fn depth_is_taken_apart_or_says_why_not() {
    for (path, good, _) in LANGUAGES {
        for (open, close) in [("[", "]"), ("{", "}"), ("(", ")"), ("<a>", "</a>"), ("> ", "")] {
            let deep = open.repeat(5000) + &close.repeat(5000);
            let footprint = run(path, Some(good.as_bytes()), deep.as_bytes());
            assert!(!footprint.writes.is_empty(), "{path} {open}");
            // Elements may nest: what reads them does not recurse.
            let may = ANY_TEXT.contains(path) || open == "<a>" && matches!(*path, "x.tsx" | "x.js");
            assert!(footprint.fallback.is_some() || may, "{path} {open}: {footprint:?}");
        }
    }
}

#[test]
fn a_version_that_did_not_parse_keeps_the_file_whole_when_it_does_again() {
    for (path, good, _) in LANGUAGES.iter().filter(|row| !ANY_TEXT.contains(&row.0)) {
        let broken = format!("{good}\n)]}}");
        let why = Some(Fallback::DoesNotParse);
        assert_eq!(run(path, Some(good.as_bytes()), broken.as_bytes()).fallback, why, "{path}");
        assert_eq!(run(path, Some(broken.as_bytes()), good.as_bytes()).fallback, why, "{path}");
        assert_eq!(run(path, None, broken.as_bytes()).fallback, why, "{path}");
    }
}

#[test]
fn a_path_of_any_length_is_told_in_few_bytes() {
    let path = |by: &str| vec!["a"; 5000].join(by);
    for (file, text) in [
        ("x.rs", format!("fn f() {{ {}(); }}\n", path("::"))),
        ("x.rs", format!("fn f() {{ {}; }}\n", path("."))),
        ("x.py", format!("def f():\n    {}()\n", path("."))),
        ("x.ts", format!("function f() {{ {}(); }}\n", path("."))),
        ("x.go", format!("package x\n\nfunc f() {{ {}() }}\n", path("."))),
    ] {
        let footprint = run(file, None, text.as_bytes());
        for reference in footprint.writes.values().flat_map(|write| &write.references) {
            let n_bytes = format!("{reference:?}").len();
            assert!(n_bytes < 8 * 1024, "{file}: {n_bytes} bytes for one reference");
        }
    }
}
