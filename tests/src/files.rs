//! What is on disk, to show that a refused push leaves nothing behind.

use std::fs;
use std::path::{Path, PathBuf};

use crate::git;

/// What grows with every transaction.
const JOURNAL: &[&str] = &["zit/journal", "zit/settle", "zit/settled"];

/// Every file, link and folder below `dir`, relative and sorted; a folder ends in `/`.
///
/// A file that goes away during the walk is left out, as if the walk had come later.
///
/// A running referee has first put there what it owes; its journal, and what belongs to that, is not listed.
pub fn file_list(dir: &Path) -> Vec<String> {
    git::settled(dir);
    git::let_go(dir);
    let mut names = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(dir.join(&folder)) else { continue };
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            let name = path.to_string_lossy().into_owned();
            if JOURNAL.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                names.push(format!("{name}/"));
                open.push(path);
            } else {
                names.push(name);
            }
        }
    }
    names.sort();
    names
}

/// The lines of `after` that `before` lacks, marked `+`, and the reverse, marked `-`.
pub fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let gone = before.iter().filter(|name| !after.contains(name)).map(|name| format!("- {name}"));
    let new = after.iter().filter(|name| !before.contains(name)).map(|name| format!("+ {name}"));
    gone.chain(new).collect()
}

/// Asserts that `dir` holds exactly the files of `before`.
#[track_caller]
pub fn assert_unchanged(dir: &Path, before: &[String], case: &str) {
    let found = difference(before, &file_list(dir));
    assert!(found.is_empty(), "{case}: files changed: {found:#?}");
}

/// Locks, quarantines and half-made transactions below the git directory `dir`.
pub fn leftovers(dir: &Path) -> Vec<String> {
    let mut names = file_list(dir);
    names.retain(|name| {
        let last = name.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
        Path::new(last).extension().is_some_and(|extension| extension == "lock")
            || last.starts_with("incoming-")
            || last.starts_with("tmp_")
            || (name.starts_with("zit/tx/") && name != "zit/tx/")
    });
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_a_quarantine_and_a_half_made_transaction_are_leftovers() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["refs/heads", "objects/incoming-zit-1", "zit/tx"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        for name in ["refs/heads/a", "refs/heads/a.lock", "zit/lock", "zit/tx/intent"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(
            leftovers(dir.path()),
            ["objects/incoming-zit-1/", "refs/heads/a.lock", "zit/tx/intent"]
        );
    }

    #[test]
    fn a_difference_names_what_came_and_what_went() {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(difference(&list(&["a", "b"]), &list(&["b", "c"])), ["- a", "+ c"]);
    }
}
