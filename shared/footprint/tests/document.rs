//! The document against its schema, `spec/footprint.schema.json`: real footprints hold only what the schema lists, and
//! between them all that it lists.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;
use zit_footprint::document::{MAX_JSON, MAX_USES, to_json};
use zit_footprint::{FileKind, Footprint, Side, compare};
use zit_model::Resource;

const SCHEMA: &str = include_str!("../../../spec/footprint.schema.json");

fn change(files: &[(&str, &str, &str)]) -> Footprint {
    Footprint::from_files(files.iter().map(|(path, old, new)| {
        let side = |text: &'static str| Side { kind: FileKind::Regular, bytes: text.as_bytes() };
        let side =
            |text: &str| Some(side(String::leak(text.to_owned()))).filter(|s| !s.bytes.is_empty());
        compare(&Resource::file(path).unwrap(), side(old), side(new))
    }))
}

/// A change with something of everything.
fn full() -> Footprint {
    let mut footprint = change(&[
        (
            "src/a.rs",
            "use std::fmt;\nuse serde::Serialize as S;\npub fn f() {}\npub struct T { pub a: u8 }\nimpl T { pub fn new() -> T { T { a: 1 } } }\nmod inner { pub fn g() {} }\n",
            "use crate::b::Deep;\npub fn f(x: u8) { T::new().run(); other::call(); }\npub struct T { pub a: u16 }\nimpl T { pub fn new(d: Deep) -> T { T { a: 1 } } }\nmod inner { pub fn g(x: u8) {} }\n",
        ),
        (
            "web/b.ts",
            "",
            "import { one as two } from './c';\nexport function go(x) { return two(x.y()); }\n",
        ),
        ("image.bin", "1", "2"),
    ]);
    footprint.reads.insert("y.rs#T::m".parse().unwrap());
    footprint
}

/// More of everything than fits.
fn vast() -> Footprint {
    let names = |file: usize| (0..500).map(move |n| format!("name_{file}_{n}_{}", "x".repeat(200)));
    let files: Vec<(String, String)> = (0..4)
        .map(|file| {
            let code = names(file).fold(String::new(), |mut code, name| {
                writeln!(code, "pub fn {name}(x: {name}_t) {{ {name}_call(x) }}").unwrap();
                code
            });
            (format!("src/{file}.rs"), code)
        })
        .collect();
    let many = (0..=MAX_USES).map(|n| format!("call_{n}(); ")).collect::<String>();
    let many = format!("fn many() {{ {many} }}\n");
    let mut all: Vec<_> =
        files.iter().map(|(path, code)| (path.as_str(), "", code.as_str())).collect();
    all.push(("a.rs", "", many.as_str()));
    change(&all)
}

#[test]
fn real_documents_hold_what_the_schema_lists_and_no_more() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut seen = BTreeSet::new();
    for footprint in [full(), vast(), Footprint::default()] {
        let document: Value = serde_json::from_str(&to_json(&footprint)).unwrap();
        check(&schema, &schema, "", &document, &mut seen);
    }
    let mut listed = BTreeSet::new();
    properties(&schema, &schema, "", &mut listed);
    // Three lists are never longer than a document's size, unless somebody means them to be.
    let rare = ["/truncated/files", "/truncated/reads", "/truncated/signatures"];
    let unseen: Vec<_> =
        listed.difference(&seen).filter(|at| !rare.contains(&at.as_str())).collect();
    assert!(unseen.is_empty(), "the schema lists what no document has: {unseen:?}");
}

#[test]
fn a_footprint_is_told_with_effects_uses_and_reasons() {
    let document: Value = serde_json::from_str(&to_json(&full())).unwrap();
    let write = |resource: &str| {
        let writes = document["writes"].as_array().unwrap();
        writes.iter().find(|write| write["resource"] == resource).unwrap().clone()
    };
    let method = write("src/a.rs#T::new");
    assert_eq!(method["container"], "T");
    assert_eq!(method["module"], "src/a");
    assert_eq!(method["breaking"], true);
    assert_eq!(method["oldSignature"], "pub fn new() -> T");
    assert_eq!(write("src/a.rs#inner::g")["module"], "src/a/inner");
    let effect = &write("src/a.rs#T")["effects"][0];
    assert_eq!((&effect["subject"], &effect["member"]), (&"member".into(), &"a".into()));
    assert_eq!(effect["why"], "member");
    let uses = method["uses"].as_array().unwrap();
    let deep = uses.iter().find(|used| used["name"] == "Deep").unwrap();
    assert_eq!(deep["places"][0]["module"], "src/b");
    let uses = write("web/b.ts#go")["uses"].clone();
    let member = uses.as_array().unwrap().iter().find(|used| used["name"] == "y").unwrap();
    assert_eq!(member["unresolved"], "type-not-known");
    assert_eq!(
        document["files"][0],
        serde_json::json!({"path": "image.bin", "fallback": "no-grammar"})
    );
    assert_eq!(document["reads"], serde_json::json!(["y.rs#T::m"]));
    assert!(document.get("truncated").is_none());
}

#[test]
fn a_document_is_bounded_and_says_what_it_leaves_out() {
    let footprint = vast();
    let json = to_json(&footprint);
    assert!(json.len() <= MAX_JSON, "{}", json.len());
    assert!(json.len() > MAX_JSON - 4096, "it is filled: {}", json.len());
    let document: Value = serde_json::from_str(&json).unwrap();
    let truncated = |list: &str| document["truncated"][list].as_u64().unwrap_or(0);
    let told = document["writes"].as_array().unwrap().len() as u64;
    assert!(told > 100, "{told}");
    assert_eq!(told + truncated("writes"), footprint.writes.len() as u64);
    assert_eq!(document["refs"], serde_json::json!([]));
    assert!(truncated("refs") > 3000, "{}", truncated("refs"));
    assert_eq!(truncated("uses"), 1);
    assert_eq!(document["files"].as_array().unwrap().len(), 5);
}

/// Follows a reference within the schema.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    schema["$ref"].as_str().map_or(schema, |at| root.pointer(at.trim_start_matches('#')).unwrap())
}

/// Holds `value` against `schema`, and notes the properties met. Knows the keywords that the schema uses.
#[track_caller]
fn check(root: &Value, schema: &Value, at: &str, value: &Value, seen: &mut BTreeSet<String>) {
    let schema = resolve(root, schema);
    for (keyword, rule) in schema.as_object().unwrap() {
        match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => {}
            "type" => assert!(is_a(rule.as_str().unwrap(), value), "{at}: {value} is no {rule}"),
            "const" => assert_eq!(rule, value, "{at}"),
            "enum" => assert!(rule.as_array().unwrap().contains(value), "{at}: {value}"),
            "minimum" => assert!(value.as_u64() >= rule.as_u64(), "{at}: {value}"),
            "minItems" => {
                assert!(value.as_array().unwrap().len() as u64 >= rule.as_u64().unwrap(), "{at}");
            }
            "maxItems" => {
                assert!(value.as_array().unwrap().len() as u64 <= rule.as_u64().unwrap(), "{at}");
            }
            "required" => {
                for key in rule.as_array().unwrap() {
                    assert!(value.get(key.as_str().unwrap()).is_some(), "{at}: no {key}");
                }
            }
            "properties" => {
                for (key, value) in value.as_object().unwrap() {
                    let at = format!("{at}/{key}");
                    let property = rule.get(key).unwrap_or_else(|| panic!("{at} is not listed"));
                    check(root, property, &at, value, seen);
                    seen.insert(at);
                }
            }
            "items" => {
                for value in value.as_array().unwrap() {
                    check(root, rule, at, value, seen);
                }
            }
            other => panic!("{at}: this check does not know {other}"),
        }
    }
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64(),
        other => panic!("this check does not know the type {other}"),
    }
}

/// Every property that the schema lists, by its path.
fn properties(root: &Value, schema: &Value, at: &str, listed: &mut BTreeSet<String>) {
    let schema = resolve(root, schema);
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let at = format!("{at}/{key}");
        properties(root, property, &at, listed);
        listed.insert(at);
    }
    if let Some(items) = schema.get("items") {
        properties(root, items, at, listed);
    }
}
