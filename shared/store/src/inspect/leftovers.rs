//! What crashes left: only told while no referee has the repository open, because a running one makes such files, too.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{Finding, follow};
use crate::Store;
use crate::error::{Doing, StoreError};
use crate::fsio::is_absent;
use crate::quarantine;

const LEFTOVER: &str = "leftover";

/// Locks, quarantines, half-made transactions, and packs that are kept.
pub(super) fn find(store: &Store) -> Result<Vec<Finding>, StoreError> {
    let git_dir = store.common_dir();
    let mut findings = Vec::new();
    for path in locks(git_dir)? {
        findings.extend(lock(git_dir, &path));
    }
    for folder in ["zit/tx", "zit/settle"] {
        let files = list(&git_dir.join(folder))?;
        findings.extend(files.iter().map(|path| ours(git_dir, path)));
    }
    let incoming = list(&git_dir.join("objects"))?.into_iter().filter(|path| {
        let name = path.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(quarantine::PREFIX.as_bytes())
    });
    let packs = list(&git_dir.join("objects/pack"))?;
    let kept = packs.into_iter().filter(|path| quarantine::is_keep(path));
    findings.extend(incoming.chain(kept).map(|path| ours(git_dir, &path)));
    Ok(findings)
}

/// A file of ours: the next opening removes it.
fn ours(git_dir: &Path, path: &Path) -> Finding {
    Finding::note(LEFTOVER, &format!("{} was left by a crash", shown(git_dir, path)), follow::START)
}

fn lock(git_dir: &Path, path: &Path) -> Option<Finding> {
    let links = fs::symlink_metadata(path).ok()?.nlink();
    // A lock of ours is linked to a file of ours, or says so.
    if links > 1 || fs::read(path).is_ok_and(|text| text.starts_with(b"zit ")) {
        return Some(ours(git_dir, path));
    }
    let what = format!("{} is the lock of another program", shown(git_dir, path));
    Some(Finding::problem(LEFTOVER, &what, "if no git program is running there, remove it"))
}

fn shown(git_dir: &Path, path: &Path) -> String {
    path.strip_prefix(git_dir).unwrap_or(path).display().to_string()
}

/// Every lock that git takes in a bare repository.
fn locks(git_dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut found = Vec::new();
    let names = [
        "HEAD.lock",
        "packed-refs.lock",
        "reftable/tables.list.lock",
        "config.lock",
        "shallow.lock",
        "objects/maintenance.lock",
    ];
    found.extend(names.map(|name| git_dir.join(name)).into_iter().filter(|path| path.exists()));
    let mut folders = vec![git_dir.join("refs")];
    while let Some(folder) = folders.pop() {
        for path in list(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lock") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// What is in a folder, sorted; nothing where there is no folder.
fn list(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        entries => entries.doing("list", folder)?,
    };
    let paths = entries.map(|entry| Ok(entry.doing("list", folder)?.path()));
    let mut paths = paths.collect::<Result<Vec<_>, StoreError>>()?;
    paths.sort();
    Ok(paths)
}
