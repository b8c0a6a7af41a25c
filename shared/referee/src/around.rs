//! The repository around two changes: its modules and packages, and which names are declared once.
//!
//! Use [`Footprinter::around`] with the state that both changes started from, hand it to `zit_footprint::conflicts`, then
//! ask [`Around::finish`] whether everything could be read. Nothing is read before it is asked for, and what was read is
//! remembered by blob. Forgetting everything loses nothing.

use std::cell::{Cell, OnceCell, RefCell};
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Arc, Mutex};

use bstr::ByteSlice;
use foldhash::fast::FixedState;
use zit_footprint::{
    Alike, Language, Layout, MAX_FILE, Reach, Surroundings, Symbol, Versions, apart,
};
use zit_model::{Oid, Resource};
use zit_store::{Blob, EntryMode, Objects, StoreError};

use crate::footprints::{Footprinter, lock};
use crate::recent::Recent;

/// How many files the kept trees have in all. One takes about a hundred bytes.
const MAX_FILES: usize = 256 * 1024;

/// How many words the kept files have in all. One takes four bytes.
const MAX_WORDS: usize = 8 << 20;

/// How many answers about names are kept.
const MAX_NAMES: usize = 64 * 1024;

/// How many files are looked through for a name; in a repository with more, no name is known to be the only one.
const MAX_LOOKED_AT: usize = 50_000;

/// How many units of two changes are looked at in parts; further ones count as written by both.
const MAX_APART: usize = 100;

/// What is remembered of repositories' states and files.
pub(crate) struct Landscape {
    trees: Mutex<Recent<Oid, Arc<Files>>>,
    words: Mutex<Recent<Oid, Arc<[u32]>>>,
    names: Mutex<Recent<Question, bool>>,
}

/// A tree, and what is asked about a name in it.
type Question = (Oid, Language, String, Option<Option<String>>);

/// The files of one tree.
struct Files {
    layout: Layout,
    sources: Vec<(Language, Oid)>,
}

impl Default for Landscape {
    fn default() -> Self {
        Self {
            trees: Mutex::new(Recent::new(MAX_FILES)),
            words: Mutex::new(Recent::new(MAX_WORDS)),
            names: Mutex::new(Recent::new(MAX_NAMES)),
        }
    }
}

/// What is known of a repository in one state.
pub struct Around<'a> {
    footprinter: &'a Footprinter,
    objects: &'a Objects,
    /// The commit that both changes started from; without one nothing is known.
    base: Option<Oid>,
    /// What both changes made of it, where that is known.
    sides: Option<[Oid; 2]>,
    n_apart: Cell<usize>,
    /// The tree, and its files.
    files: OnceCell<(Oid, Arc<Files>)>,
    failed: RefCell<Option<StoreError>>,
    nothing: Layout,
}

impl Footprinter {
    /// What is known of the repository in the state of the commit `base`.
    #[must_use]
    pub fn around<'a>(&'a self, objects: &'a Objects, base: Option<Oid>) -> Around<'a> {
        Around {
            footprinter: self,
            objects,
            base,
            sides: None,
            n_apart: Cell::new(0),
            files: OnceCell::new(),
            failed: RefCell::new(None),
            nothing: Layout::default(),
        }
    }
}

impl Around<'_> {
    /// Also what the two changes made of the state: the commits `mine` and `theirs`.
    #[must_use]
    pub fn with_sides(mut self, mine: Oid, theirs: Oid) -> Self {
        self.sides = Some([mine, theirs]);
        self
    }

    /// Whether everything that was asked for could be read.
    ///
    /// # Errors
    /// The first [`StoreError`] met. What was answered since counts for nothing.
    pub fn finish(self) -> Result<(), StoreError> {
        self.failed.into_inner().map_or(Ok(()), Err)
    }

    fn read<T>(&self, what: Result<T, StoreError>) -> Option<T> {
        what.map_err(|error| self.failed.borrow_mut().get_or_insert(error).to_string()).ok()
    }

    fn files(&self) -> Option<&(Oid, Arc<Files>)> {
        if self.files.get().is_none() {
            let files = self.read(self.read_files())??;
            let _ = self.files.set(files);
        }
        self.files.get()
    }

    fn read_files(&self) -> Result<Option<(Oid, Arc<Files>)>, StoreError> {
        let Some(base) = self.base else { return Ok(None) };
        let tree = self.objects.commit(base)?.tree;
        if let Some(known) = lock(&self.footprinter.landscape.trees).get(&tree) {
            return Ok(Some((tree, known)));
        }
        let mut files = Files { layout: Layout::default(), sources: Vec::new() };
        for change in self.objects.tree_changes(None, tree)? {
            let Some(entry) = change.new else { continue };
            let path = change.path.to_str_lossy();
            if !matches!(entry.mode, EntryMode::Regular | EntryMode::Executable) {
                continue;
            }
            files.layout.add_file(&path);
            files.sources.extend(Language::of_path(&path).map(|l| (l.family(), entry.oid)));
            if Layout::is_manifest(&path)
                && let Blob::Bytes(text) = self.objects.blob(entry.oid, MAX_FILE as u64)?
            {
                files.layout.add_manifest(&path, &text.to_str_lossy());
            }
        }
        let (files, weight) = (Arc::new(files), 1);
        let weight = weight + files.sources.len();
        lock(&self.footprinter.landscape.trees).insert(tree, Arc::clone(&files), weight);
        Ok(Some((tree, files)))
    }

    /// Whether at most one declaration is meant by the name.
    fn look_for(
        &self,
        symbol: &Symbol<'_>,
        reach: Reach,
        files: &Files,
    ) -> Result<bool, StoreError> {
        if files.sources.len() > MAX_LOOKED_AT {
            return Ok(false);
        }
        let family = symbol.language.family();
        let (word, mut alike) = (word(symbol.name), Alike::default());
        for (_, oid) in files.sources.iter().filter(|source| source.0 == family) {
            if self.words(*oid)?.binary_search(&word).is_ok() {
                let carved = self.footprinter.version(self.objects, symbol.language, *oid)?;
                alike =
                    alike.and(carved.map_or_else(Alike::default, |carved| {
                        carved.declarations_like(symbol, reach)
                    }));
            }
            if alike.declared > 1 {
                return Ok(false);
            }
        }
        Ok(alike.is_one())
    }

    /// Whether the two changes of a unit lie apart.
    fn look_at_parts(
        &self,
        unit: &Resource,
        base: Oid,
        sides: [Oid; 2],
    ) -> Result<bool, StoreError> {
        let Some(language) = Language::of_path(unit.path()) else { return Ok(false) };
        let text = |commit| self.text(commit, unit.path());
        let three = (text(base)?, text(sides[0])?, text(sides[1])?);
        let (Some(base), Some(mine), Some(theirs)) = three else { return Ok(false) };
        let versions = Versions { base: &base, mine: &mine, theirs: &theirs };
        Ok(apart(language, unit.part(), versions))
    }

    /// The text of a file in a commit; `None` of one that is not there, too large, or no text.
    fn text(&self, commit: Oid, path: &str) -> Result<Option<String>, StoreError> {
        let tree = self.objects.commit(commit)?.tree;
        let Some(entry) = self.objects.entry_at(tree, path.into())? else { return Ok(None) };
        if !matches!(entry.mode, EntryMode::Regular | EntryMode::Executable) {
            return Ok(None);
        }
        Ok(match self.objects.blob(entry.oid, MAX_FILE as u64)? {
            Blob::Bytes(bytes) => String::from_utf8(bytes).ok(),
            Blob::TooLarge(_) => None,
        })
    }

    /// The words of a file, hashed and sorted; none of one that is too large to be taken apart.
    fn words(&self, oid: Oid) -> Result<Arc<[u32]>, StoreError> {
        if let Some(known) = lock(&self.footprinter.landscape.words).get(&oid) {
            return Ok(known);
        }
        let words: Arc<[u32]> = match self.objects.blob(oid, MAX_FILE as u64)? {
            Blob::Bytes(bytes) => words(&bytes).into(),
            Blob::TooLarge(_) => Arc::default(),
        };
        lock(&self.footprinter.landscape.words).insert(oid, Arc::clone(&words), words.len());
        Ok(words)
    }
}

impl Surroundings for Around<'_> {
    fn layout(&self) -> &Layout {
        self.files().map_or(&self.nothing, |(_, files)| &files.layout)
    }

    fn is_unique(&self, symbol: &Symbol<'_>, reach: Reach) -> bool {
        let Some((tree, files)) = self.files() else { return false };
        let there = (reach != Reach::IfUnique).then(|| symbol.container.map(str::to_owned));
        let question = (*tree, symbol.language.family(), symbol.name.to_owned(), there);
        if let Some(known) = lock(&self.footprinter.landscape.names).get(&question) {
            return known;
        }
        let Some(unique) = self.read(self.look_for(symbol, reach, files)) else { return false };
        lock(&self.footprinter.landscape.names).insert(question, unique, 1);
        unique
    }

    fn is_apart(&self, unit: &Resource) -> bool {
        let Some((base, sides)) = self.base.zip(self.sides) else { return false };
        self.n_apart.set(self.n_apart.get() + 1);
        self.n_apart.get() <= MAX_APART
            && self.read(self.look_at_parts(unit, base, sides)).unwrap_or(false)
    }
}

/// Everything in a text that may be a name, hashed, sorted, once each.
fn words(text: &[u8]) -> Vec<u32> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    let words = text.split(|byte| !is_part(byte)).filter(|word| !word.is_empty());
    let mut words: Vec<u32> = words.map(hashed).collect();
    words.sort_unstable();
    words.dedup();
    words
}

fn word(name: &str) -> u32 {
    hashed(name.as_bytes())
}

/// Two words of one hash only make a file be looked into that need not be.
#[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
fn hashed(word: &[u8]) -> u32 {
    FixedState::default().hash_one(Bytes(word)) as u32
}

/// Bytes hashed without their length.
struct Bytes<'a>(&'a [u8]);

impl Hash for Bytes<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_a_text_is_one_of_its_words() {
        let words = words("fn größe(a_1: &str) -> Vec<T> { self.größe(a_1) }".as_bytes());
        for name in ["fn", "größe", "a_1", "str", "Vec", "T", "self"] {
            assert!(words.binary_search(&word(name)).is_ok(), "{name}");
        }
        assert!(words.binary_search(&word("gr")).is_err());
        assert_eq!(words.len(), 7);
    }
}
