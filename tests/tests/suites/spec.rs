//! The pages of `spec/` and `docs/` hold together with the code and with each other.
//!
//! Every clause that a source file cites exists, every link leads somewhere, and the documents shown as examples are
//! read by the code that reads documents. What the console blocks print is checked in `transcripts`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use zit_model::document::{AgentState, ClaimRecord, ClaimRequest};
use zit_model::settings::Settings;

/// The workspace's root.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file below `folder` whose name ends in `.<extension>`, by path.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn is_page(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "md")
}

/// The headings of a page, without those that stand in fences.
fn headings(page: &str) -> BTreeSet<String> {
    let (mut fenced, mut headings) = (false, BTreeSet::new());
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced && line.starts_with('#') {
            headings.insert(line.trim_start_matches('#').trim().to_owned());
        }
    }
    headings
}

/// The headings cited right behind a page's name: `, "One", "Two"`.
fn cited(mut rest: &str) -> Vec<&str> {
    let mut headings = Vec::new();
    while let Some(quoted) = rest.strip_prefix(", \"")
        && let Some((heading, after)) = quoted.split_once('"')
    {
        headings.push(heading);
        rest = after;
    }
    headings
}

/// The names of the pages that follow each `before`, up to `after`, with what stands behind.
fn names<'t>(
    text: &'t str,
    before: &'t str,
    after: char,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    text.split(before).skip(1).filter_map(move |rest| rest.split_once(after))
}

/// The fenced blocks of a page that are marked `kind`.
fn blocks(page: &Path, kind: &str) -> Vec<String> {
    let text = read(page);
    let fences = text.split("```").skip(1).step_by(2);
    let marked =
        fences.filter_map(|block| block.split_once('\n').filter(|(mark, _)| *mark == kind));
    marked.map(|(_, body)| body.to_owned()).collect()
}

#[test]
fn every_clause_that_the_code_cites_exists() {
    let root = workspace();
    let pages: BTreeMap<String, BTreeSet<String>> = files(&root.join("spec"), "md")
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (name.into_owned(), headings(&read(path)))
        })
        .collect();
    // In two pieces, or this file would cite nothing.
    let before = concat!("`", "spec/");
    let (mut n_cited, mut broken) = (0, Vec::new());
    for folder in ["shared", "server", "remote-helper", "hooks", "tests"] {
        for source in files(&root.join(folder), "rs") {
            let text = read(&source);
            for (name, rest) in names(&text, before, '`').filter(|(name, _)| is_page(name)) {
                n_cited += 1;
                let page = pages.get(name);
                if page.is_none() {
                    broken.push(format!("{}: spec/{name} does not exist", source.display()));
                }
                for heading in cited(rest).into_iter().filter(|_| page.is_some()) {
                    if !page.is_some_and(|page| page.contains(heading)) {
                        broken
                            .push(format!("{}: spec/{name} has no {heading:?}", source.display()));
                    }
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(n_cited > 20, "only {n_cited} citations were found");
}

#[test]
fn every_link_between_pages_leads_to_a_page_and_its_headings() {
    let root = workspace();
    let mut pages = files(&root.join("spec"), "md");
    pages.extend(files(&root.join("docs"), "md"));
    pages.extend([root.join("README.md"), root.join("CHANGELOG.md")]);
    let mut broken = Vec::new();
    for page in pages {
        let text = read(&page);
        let folder = page.parent().unwrap_or(&root);
        for (target, rest) in names(&text, "](", ')').filter(|(to, _)| !to.contains("://")) {
            let path = folder.join(target);
            if !path.exists() {
                broken.push(format!("{}: {target} does not exist", page.display()));
            } else if is_page(target) {
                let there = headings(&read(&path));
                let missing = cited(rest).into_iter().filter(|heading| !there.contains(*heading));
                broken
                    .extend(missing.map(|h| format!("{}: {target} has no {h:?}", page.display())));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_documents_of_the_pages_are_read_as_they_stand() {
    let spec = workspace().join("spec");
    let claims = blocks(&spec.join("claims.md"), "json");
    let states = blocks(&spec.join("refs.md"), "json");
    assert_eq!((claims.len(), states.len()), (1, 1));
    for claim in &claims {
        let stored = ClaimRecord::from_json(claim.as_bytes()).unwrap();
        let asked = ClaimRequest::from_json(claim.as_bytes()).unwrap();
        assert_eq!((stored.resource, Some(stored.item)), (asked.resource, asked.item));
    }
    for state in &states {
        assert_eq!(AgentState::from_json(state.as_bytes()).unwrap().items.len(), 1);
    }
}

#[test]
fn the_settings_of_the_page_are_the_defaults() {
    let shown = blocks(&workspace().join("spec/settings.md"), "toml");
    assert_eq!(shown.len(), 1);
    for text in shown {
        assert!(text.matches(" = ").count() >= 5, "{text}");
        assert_eq!(Settings::parse(&text).unwrap(), Settings::default());
    }
}

#[test]
fn the_readme_shows_what_happens() {
    zit_tests::transcript::check(&workspace().join("README.md"));
}

#[test]
fn the_guide_shows_what_happens() {
    zit_tests::transcript::check(&workspace().join("docs/GUIDE.md"));
}
