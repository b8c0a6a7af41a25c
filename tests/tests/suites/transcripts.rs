//! Every transcript of `e2e/` and every page of `spec/` is run; a file without a test fails here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use zit_tests::transcript;

/// The workspace's root.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Declares one test for each file, and the list that the folders are compared with.
macro_rules! transcripts {
    ($($folder:ident / { $($name:ident),* $(,)? })*) => {
        const LISTED: &[&str] = &[$($(concat!(stringify!($folder), "/", stringify!($name), ".md")),*),*];
        $(#[allow(non_snake_case, reason = "a test is named as its file")]
        mod $folder {
            $(#[test]
            fn $name() {
                let file = concat!(stringify!($folder), "/", stringify!($name), ".md");
                super::transcript::check(&super::workspace().join(file));
            })*
        })*
    };
}

transcripts! {
    e2e / { accept, claim, refusals }
    spec / {
        README, accept, claims, footprints, hooks, identity, journal, options, refs, resources,
        results, settings, vocabulary,
    }
}

#[test]
fn every_transcript_has_a_test() {
    let listed = LISTED.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(found("e2e").chain(found("spec")).collect::<BTreeSet<_>>(), listed);
}

/// The Markdown files of a folder, as `<folder>/<file>`.
fn found(folder: &'static str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(workspace().join(folder)).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "md"))
        .map(move |name| format!("{folder}/{name}"))
}
