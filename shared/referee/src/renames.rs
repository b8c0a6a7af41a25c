//! Which files of a change went from one path to another, as git would tell: same content, or half of it the same.
//!
//! Use: [`renames`] on the differing paths of two trees. A pair that is missed costs a refusal at worst: its file is then
//! removed at one path and added at the other. One that git does not see either is settled by git, which merges.
//! Never looks at names within files.
//!
//! Source: git `diffcore-rename.c`, whose order it follows: equal content, then equal names, then the most alike.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bstr::{BStr, ByteSlice};
use zit_footprint::{Language, MAX_FILE};
use zit_model::Oid;
use zit_store::{Blob, Entry, EntryMode, Objects, StoreError, TreeChange};

/// How much of the larger file must lie in the other, in per cent. Source: git, `DEFAULT_RENAME_SCORE`.
const MIN_SCORE: usize = 50;

/// How much that is of files with one name. Source: git, half way from the least to all.
const MIN_SCORE_OF_NAMESAKES: usize = 75;

/// How many pairs of files are compared at most. Source: ours; git's limit for differences is 1,000 files on each side.
const MAX_PAIRS: usize = 40_000;

/// How many bytes are read for it at most.
const MAX_BYTES: usize = 16 << 20;

/// The longest piece that is counted by itself; a line is one. Source: git `diffcore-delta.c`.
const MAX_PIECE: usize = 64;

/// Pairs of places in `changes`: where a path went away, and where it came.
///
/// # Errors
/// [`StoreError`] when a blob cannot be read.
pub(crate) fn renames(
    objects: &Objects,
    changes: &[TreeChange],
) -> Result<Vec<(usize, usize)>, StoreError> {
    let side = |pick: fn(&TreeChange) -> Option<Entry>| {
        let files = changes.iter().enumerate().filter_map(|(at, change)| {
            let entry = pick(change).filter(|entry| is_file(*entry))?;
            Some(End { at, path: change.path.as_bstr(), oid: entry.oid })
        });
        files.collect::<Vec<_>>()
    };
    let mut gone = side(|change| change.old.filter(|_| change.new.is_none()));
    let mut come = side(|change| change.new.filter(|_| change.old.is_none()));
    if gone.is_empty() || come.is_empty() {
        return Ok(Vec::new());
    }
    drop_empty(objects, &mut gone)?;
    let mut pairs = same_content(&gone, &come);
    drop_paired(&pairs, &mut gone, &mut come);
    if gone.is_empty() || come.is_empty() || gone.len() * come.len() > MAX_PAIRS {
        return Ok(pairs);
    }
    let Some(pieces) = pieces_of_all(objects, gone.iter().chain(&come))? else { return Ok(pairs) };
    pairs.extend(alike(&gone, &come, &pieces));
    Ok(pairs)
}

/// One end of a possible move.
struct End<'a> {
    at: usize,
    path: &'a BStr,
    oid: Oid,
}

impl End<'_> {
    fn name(&self) -> &[u8] {
        self.path.rsplit_once_str("/").map_or(self.path.as_bytes(), |(_, name)| name)
    }

    /// Units of one file mean something in another only within one family of languages.
    fn family(&self) -> Option<Language> {
        Language::of_path(&self.path.to_str_lossy()).map(Language::family)
    }
}

fn is_file(entry: Entry) -> bool {
    matches!(entry.mode, EntryMode::Regular | EntryMode::Executable)
}

/// All that is empty is the same, and says nothing about where it went. Source: git `merge-ort.c`, `rename_empty`.
fn drop_empty(objects: &Objects, ends: &mut Vec<End<'_>>) -> Result<(), StoreError> {
    let mut full = BTreeSet::new();
    for end in ends.iter() {
        if matches!(objects.blob(end.oid, 0)?, Blob::TooLarge(_)) {
            full.insert(end.at);
        }
    }
    ends.retain(|end| full.contains(&end.at));
    Ok(())
}

/// Files with the same content; of several, those with the same name. Linear, as a change may move all there is.
fn same_content(gone: &[End<'_>], come: &[End<'_>]) -> Vec<(usize, usize)> {
    let (mut pairs, mut used) = (Vec::new(), BTreeSet::new());
    for by_name in [true, false] {
        fn key<'a>(end: &'a End<'_>, by_name: bool) -> (Oid, Option<Language>, Option<&'a [u8]>) {
            (end.oid, end.family(), by_name.then(|| end.name()))
        }
        let mut left: BTreeMap<_, VecDeque<usize>> = BTreeMap::new();
        for from in gone.iter().filter(|end| !used.contains(&end.at)) {
            left.entry(key(from, by_name)).or_default().push_back(from.at);
        }
        for to in come {
            if used.contains(&to.at) {
                continue;
            }
            if let Some(from) = left.get_mut(&key(to, by_name)).and_then(VecDeque::pop_front) {
                used.extend([from, to.at]);
                pairs.push((from, to.at));
            }
        }
    }
    pairs
}

fn drop_paired(pairs: &[(usize, usize)], gone: &mut Vec<End<'_>>, come: &mut Vec<End<'_>>) {
    let (from, to): (BTreeSet<usize>, BTreeSet<usize>) = pairs.iter().copied().unzip();
    gone.retain(|end| !from.contains(&end.at));
    come.retain(|end| !to.contains(&end.at));
}

/// Files of which enough is the same, the most alike first.
fn alike(gone: &[End<'_>], come: &[End<'_>], pieces: &HashMap<Oid, Pieces>) -> Vec<(usize, usize)> {
    let once =
        |ends: &[End<'_>], name: &[u8]| ends.iter().filter(|e| e.name() == name).count() == 1;
    let mut scored = Vec::new();
    for from in gone {
        for to in come.iter().filter(|to| from.family() == to.family()) {
            let (Some(old), Some(new)) = (pieces.get(&from.oid), pieces.get(&to.oid)) else {
                continue;
            };
            let (score, is_namesake) = (old.score(new), from.name() == to.name());
            if score >= MIN_SCORE {
                let first = is_namesake
                    && score >= MIN_SCORE_OF_NAMESAKES
                    && once(gone, from.name())
                    && once(come, to.name());
                scored.push((!first, std::cmp::Reverse((score, is_namesake)), from.at, to.at));
            }
        }
    }
    scored.sort_unstable();
    let (mut left, mut taken) = (BTreeSet::new(), BTreeSet::new());
    let mut pairs = Vec::new();
    for (_, _, from, to) in scored {
        if !left.contains(&from) && !taken.contains(&to) {
            left.insert(from);
            taken.insert(to);
            pairs.push((from, to));
        }
    }
    pairs
}

/// A file as bytes in lines, each line by its hash.
struct Pieces {
    n_bytes: usize,
    by_hash: HashMap<u64, usize>,
}

impl Pieces {
    fn of(bytes: &[u8]) -> Self {
        let mut by_hash = HashMap::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let most = rest.len().min(MAX_PIECE);
            let line = rest.iter().take(most).position(|byte| *byte == b'\n');
            let (piece, after) = rest.split_at(line.map_or(most, |at| at + 1));
            *by_hash.entry(fnv(piece)).or_insert(0) += piece.len();
            rest = after;
        }
        Self { n_bytes: bytes.len(), by_hash }
    }

    /// How much of the larger of two files lies in the other, in per cent.
    fn score(&self, new: &Self) -> usize {
        let most = self.n_bytes.max(new.n_bytes);
        if most == 0 || self.n_bytes.min(new.n_bytes) * 100 < most * MIN_SCORE {
            return 0;
        }
        let kept = |(hash, n): (&u64, &usize)| new.by_hash.get(hash).map_or(0, |m| *n.min(m));
        self.by_hash.iter().map(kept).sum::<usize>() * 100 / most
    }
}

/// The same on every machine; who makes two lines of one hash gets two files paired.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The pieces of every file; `None` when they are too much to read. A file that is never taken apart has none.
fn pieces_of_all<'a>(
    objects: &Objects,
    ends: impl Iterator<Item = &'a End<'a>>,
) -> Result<Option<HashMap<Oid, Pieces>>, StoreError> {
    let (mut pieces, mut n_bytes) = (HashMap::new(), 0);
    for end in ends {
        let Blob::Bytes(bytes) = objects.blob(end.oid, MAX_FILE as u64)? else { continue };
        n_bytes += bytes.len();
        if n_bytes > MAX_BYTES {
            return Ok(None);
        }
        pieces.entry(end.oid).or_insert_with(|| Pieces::of(&bytes));
    }
    Ok(Some(pieces))
}

#[cfg(test)]
mod tests {
    use super::*;
    use zit_store::{Access, Store};

    /// The pairs that two sets of files give, as `from to`.
    fn pairs(old: &[(&str, &str)], new: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.git");
        Store::init(&path).unwrap();
        let mut quarantine = Store::open(&path, Access::Referee).unwrap().quarantine().unwrap();
        let mut tree = |files: &[(&str, &str)]| {
            let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
            quarantine.write_tree(&files).unwrap()
        };
        let (old, new) = (tree(old), tree(new));
        let objects = quarantine.objects();
        let changes = objects.tree_changes(Some(old), new).unwrap();
        let mut renames = renames(&objects, &changes).unwrap();
        renames.sort_unstable();
        renames.iter().map(|(a, b)| format!("{} {}", changes[*a].path, changes[*b].path)).collect()
    }

    const ONE: &str = "one\ntwo\nthree\nfour\n";
    const MOST: &str = "one\ntwo\nthree\nand four\n";
    const LITTLE: &str = "one\n2222\n3333\n4444\n5555\n";

    #[test]
    fn a_file_goes_where_its_content_or_most_of_it_lies() {
        assert_eq!(pairs(&[("a.rs", ONE)], &[("b.rs", ONE)]), ["a.rs b.rs"]);
        assert_eq!(pairs(&[("a.rs", ONE)], &[("b.rs", MOST)]), ["a.rs b.rs"]);
        assert_eq!(pairs(&[("a.rs", ONE)], &[("b.rs", LITTLE)]), [""; 0]);
        let [old, new] = [&[("a.rs", ONE), ("b.rs", MOST)][..], &[("c.rs", MOST), ("d.rs", ONE)]];
        assert_eq!(pairs(old, new), ["a.rs d.rs", "b.rs c.rs"]);
        // The file that stays is no source: nothing is taken for copied.
        assert_eq!(pairs(&[("a.rs", ONE)], &[("a.rs", ONE), ("b.rs", ONE)]), [""; 0]);
    }

    #[test]
    fn what_is_empty_or_of_another_language_went_nowhere() {
        assert_eq!(pairs(&[("a.rs", "")], &[("b.rs", "")]), [""; 0]);
        assert_eq!(pairs(&[("a.py", ONE)], &[("a.rs", ONE)]), [""; 0]);
        assert_eq!(pairs(&[("a.bin", ONE)], &[("a.rs", ONE)]), [""; 0]);
        assert_eq!(pairs(&[("a.js", ONE)], &[("a.ts", ONE)]), ["a.js a.ts"]);
        assert_eq!(pairs(&[("a", ONE)], &[("b", ONE)]), ["a b"]);
    }

    #[test]
    fn more_pairs_than_are_compared_leave_those_of_the_same_content() {
        let line = |n: usize| format!("{n}\nb\nc\nd\ne\nf\ng\n");
        let names: Vec<_> = (0..=200).map(|n| (format!("a{n}"), format!("b{n}"))).collect();
        let texts: Vec<_> = (0..=200).map(|n| (line(n), line(n + 1000))).collect();
        let mut old: Vec<_> = names.iter().zip(&texts).map(|(n, t)| (&*n.0, &*t.0)).collect();
        let mut new: Vec<_> = names.iter().zip(&texts).map(|(n, t)| (&*n.1, &*t.1)).collect();
        old.push(("same", "x\n"));
        new.push(("samy", "x\n"));
        assert_eq!(pairs(&old, &new), ["same samy"]);
        assert_eq!(pairs(&old[..100], &new[..100]).len(), 100);
    }
}
