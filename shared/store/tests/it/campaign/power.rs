//! What a power failure may do: whatever was written since its last flush is lost or torn.
//!
//! What is flushed is known from the order in which the store does things: all files up to the newest checkpoint,
//! packs, `packed-refs`, and the journal, but for an append that was cut short. Files come and go in the order in
//! which they were made, as on any file system that journals names; what is in them may be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use bstr::BString;
use fastrand::Rng;
use zit_model::{Oid, RefName};
use zit_store::journal::{Fact, Journal, Seq};

use crate::support::{Repo, wait_until_gone};

/// Lets power fail. `cut_short` says that the last append was not flushed.
pub(super) fn fail(repo: &Repo, cut_short: bool, random: &mut Rng) {
    // A program that outlives the store does not outlive the power; it must not go on writing meanwhile.
    wait_until_gone(&repo.path.join("reftable/tables.list.lock"));
    let folder = repo.path.join("zit/journal");
    let newest = files(&folder).into_iter().rfind(|file| ends_with(file, ".log"));
    let unflushed = newest.filter(|_| cut_short);
    // No file has a value of that batch yet.
    let end = unflushed.as_deref().map_or(Seq(u64::MAX), first_of_last_batch);
    lose_refs(repo, end, random);
    lose_ends(repo, end, random);
    if let Some(segment) = unflushed {
        cut(&segment, random);
    }
    lose_locks(repo, random);
    let mark = repo.path.join("zit/settled");
    match random.u8(0..3) {
        0 => drop(fs::remove_file(mark)),
        1 => fs::write(mark, "").unwrap(),
        _ => fs::write(mark, "another-boot 100000\n").unwrap(),
    }
    for keep in files(&repo.path.join("objects/pack")) {
        if ends_with(&keep, ".keep") && random.bool() {
            fs::remove_file(keep).unwrap();
        }
    }
}

/// Each ref that moved since the newest checkpoint holds any of the values that it had since, or nothing that can be
/// read.
fn lose_refs(repo: &Repo, end: Seq, random: &mut Rng) {
    if repo.path.join("reftable").exists() {
        // Each table is flushed before it is named.
        return;
    }
    let (journal, checkpoint) = Journal::read_only(&repo.path.join("zit/journal")).unwrap();
    let from = checkpoint.map_or(Seq::NONE, |checkpoint| checkpoint.seq).next();
    let mut values: BTreeMap<RefName, Vec<Option<Oid>>> = BTreeMap::new();
    for record in journal.read_from(from).unwrap().map(Result::unwrap) {
        for update in record.changes.iter().filter(|_| record.seq < end) {
            let values = values.entry(update.name.clone()).or_default();
            values.push(update.change.old_value());
        }
    }
    let packed = fs::read_to_string(repo.path.join("packed-refs")).unwrap_or_default();
    for (name, values) in values {
        let file = repo.path.join(name.to_string());
        let value = *random.choice(&values).unwrap();
        match (random.u8(0..4), value) {
            (0, _) if file.is_file() => fs::write(&file, "").unwrap(),
            (1 | 2, Some(value)) if fs::create_dir_all(file.parent().unwrap()).is_ok() => {
                fs::write(&file, format!("{value}\n")).unwrap();
            }
            // What is packed would show, and was flushed before the file went.
            (1 | 2, None) if file.is_file() && !packed.contains(&format!(" {name}\n")) => {
                fs::remove_file(&file).unwrap();
            }
            _ => {}
        }
    }
}

/// The file `shallow` lacks what was added to it since the newest checkpoint.
fn lose_ends(repo: &Repo, end: Seq, random: &mut Rng) {
    let file = repo.path.join("shallow");
    let Ok(text) = fs::read_to_string(&file) else { return };
    if random.bool() {
        return;
    }
    let (journal, checkpoint) = Journal::read_only(&repo.path.join("zit/journal")).unwrap();
    let from = checkpoint.map_or(Seq::NONE, |checkpoint| checkpoint.seq).next();
    let mut added = BTreeSet::new();
    for record in journal.read_from(from).unwrap().map(Result::unwrap) {
        let facts = record.draft.facts.into_iter().filter(|_| record.seq < end);
        added.extend(facts.filter(|fact| fact.kind == Fact::SHALLOW).map(|fact| fact.value));
    }
    let kept = text.lines().filter(|line| !added.contains(&BString::from(*line)));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    if kept.is_empty() { fs::remove_file(file).unwrap() } else { fs::write(file, kept).unwrap() }
}

/// A lock goes before the file that it is linked to does.
fn lose_locks(repo: &Repo, random: &mut Rng) {
    let mut kept = false;
    for lock in repo.files().into_iter().filter(|file| ends_with(file, ".lock")) {
        if random.bool() {
            fs::remove_file(lock).unwrap();
        } else {
            kept = true;
        }
    }
    for folder in ["zit/tx", "zit/settle"] {
        for file in files(&repo.path.join(folder)) {
            if !kept && random.bool() {
                fs::remove_file(file).unwrap();
            }
        }
    }
}

/// Cuts the file, or leaves sectors of zeroes, somewhere in the batch that was not flushed.
fn cut(segment: &Path, random: &mut Rng) {
    const SECTOR: usize = 512;
    let mut bytes = fs::read(segment).unwrap();
    let start = last_batch(&bytes);
    let at = random.usize(start..=bytes.len());
    match random.u8(0..3) {
        0 => return,
        1 => bytes.truncate(at),
        _ => {
            // Whole sectors are written or not; a part of one before the batch was flushed.
            let sector = at / SECTOR * SECTOR;
            let end = (sector + SECTOR).min(bytes.len());
            bytes[sector.max(start)..end].fill(0);
        }
    }
    fs::write(segment, bytes).unwrap();
}

/// Where the last batch of a segment begins.
///
/// Source: `spec/journal.md`, "Batch".
fn last_batch(bytes: &[u8]) -> usize {
    const HEADER: usize = 80;
    const HASH: usize = 32;
    let (mut start, mut next) = (0, 0);
    while next < bytes.len() {
        start = next;
        let length: [u8; 4] = bytes[start + 8..start + 12].try_into().unwrap();
        next = start + HEADER + usize::try_from(u32::from_be_bytes(length)).unwrap() + HASH;
    }
    start
}

/// The number of the first record of a segment's last batch.
fn first_of_last_batch(segment: &Path) -> Seq {
    let bytes = fs::read(segment).unwrap();
    let start = last_batch(&bytes);
    Seq(u64::from_be_bytes(bytes[start + 16..start + 24].try_into().unwrap()))
}

/// The files of a folder by name; none where there is no folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn ends_with(path: &Path, end: &str) -> bool {
    path.to_string_lossy().ends_with(end)
}
