//! Reading refs: loose files first and `packed-refs` after them, in that order, so that a ref that stock git packs
//! in between is seen in one of the two.
//!
//! For deferred refs ([`table`]), a referee's store asks its table instead: their files follow.
//!
//! Never writes, and never decides: what may become of a ref is the transaction's.

mod cache;
mod table;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use bstr::{BStr, BString, ByteSlice};
use zit_model::{Oid, RefName};

use crate::Kind;
use crate::error::{Doing, StoreError};
use crate::fsio::is_absent;
use crate::objects::Objects;
use crate::packed::{PackedRefs, Peeled};

pub(crate) use table::{Table, is_deferred};

use cache::{Cache, List};

/// How many symbolic refs are followed. Source: git's `SYMREF_MAXDEPTH`.
const MAX_SYMREFS: usize = 5;

/// The longest component of a path, in bytes. Source: `NAME_MAX` of Linux.
const MAX_COMPONENT: usize = 255;

/// What HEAD is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// HEAD names a ref, which need not exist.
    Symbolic(RefName),
    /// HEAD names a commit.
    Detached(Oid),
}

/// What HEAD leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedHead {
    /// The ref that it names in the end, whether or not that exists; `None` when it names a commit.
    pub target: Option<RefName>,
    /// What it resolves to; `None` when it leads nowhere.
    pub oid: Option<Oid>,
    /// What the tag object `oid` leads to in the end; `None` when `oid` is no tag object.
    pub peeled: Option<Oid>,
}

/// One ref of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRef {
    /// Its full name.
    pub name: RefName,
    /// What it resolves to.
    pub oid: Oid,
    /// What the tag object `oid` leads to in the end; `None` when `oid` is no tag object.
    pub peeled: Option<Oid>,
    /// The ref that it names, where it is symbolic.
    pub symref_target: Option<RefName>,
}

/// What a ref holds, before anything is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Oid(Oid),
    Symbolic(BString),
    /// A file that git could not read either.
    Broken,
}

impl From<StoredRef> for Value {
    fn from(stored: StoredRef) -> Self {
        match stored.symref_target {
            Some(target) => Self::Symbolic(target.as_bstr().to_owned()),
            None => Self::Oid(stored.oid),
        }
    }
}

/// The refs of one repository.
pub(crate) struct Refs {
    pub(crate) git_dir: PathBuf,
    head: PathBuf,
    pub(crate) packed: PackedRefs,
    /// A referee's answer for deferred refs; whoever only reads looks at the files.
    table: OnceLock<Table>,
    cache: Cache,
}

impl Refs {
    /// `git_dir` holds `refs/` and `packed-refs`; `head` is the file HEAD, which a linked work tree has of its own.
    pub(crate) fn new(git_dir: &Path, head: PathBuf, kind: gix_hash::Kind) -> Self {
        let packed = PackedRefs::new(git_dir.join("packed-refs"), kind);
        Self {
            git_dir: git_dir.to_owned(),
            head,
            packed,
            table: OnceLock::new(),
            cache: Cache::default(),
        }
    }

    /// Reads the deferred refs from their files. From then on the table answers for them.
    pub(crate) fn defer(&self, objects: &Objects) -> Result<&Table, StoreError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        // Past the lists that are kept: from now on they hold no deferred ref.
        let found = self.list(BStr::new("refs/zit/"), objects)?.refs;
        let deferred = found.into_iter().filter(|stored| is_deferred(stored.name.as_bstr()));
        Ok(self.table.get_or_init(|| Table::new(deferred)))
    }

    /// The table, which a referee's store has; empty before [`Refs::defer`].
    pub(crate) fn table(&self) -> &Table {
        self.table.get_or_init(Table::default)
    }

    /// The table, where it answers for the name.
    fn deferred(&self, name: &BStr) -> Option<&Table> {
        self.table.get().filter(|_| is_deferred(name))
    }

    /// The file of a loose ref.
    pub(crate) fn path(&self, name: &BStr) -> PathBuf {
        self.git_dir.join(OsStr::from_bytes(name))
    }

    pub(crate) fn head_path(&self) -> &Path {
        &self.head
    }

    pub(crate) fn head(&self) -> Result<Head, StoreError> {
        let damaged =
            |why: &str| StoreError::Damaged { path: self.head.clone(), why: why.to_owned() };
        match read_value(&self.head)? {
            Some(Value::Oid(oid)) => Ok(Head::Detached(oid)),
            Some(Value::Symbolic(name)) => {
                RefName::new(&name).map(Head::Symbolic).map_err(|error| damaged(&error.to_string()))
            }
            Some(Value::Broken) => Err(damaged("it names neither a ref nor an object")),
            None => Err(damaged("there is none")),
        }
    }

    /// What HEAD leads to, as git lists it.
    pub(crate) fn resolved_head(&self, objects: &Objects) -> Result<ResolvedHead, StoreError> {
        let (target, oid) = match self.head()? {
            Head::Detached(oid) => (None, Some(oid)),
            Head::Symbolic(name) => {
                let end = self.end(name.as_bstr().to_owned())?;
                let target = RefName::new(&end).unwrap_or(name);
                (Some(target), self.resolve(end.as_bstr())?)
            }
        };
        let peeled = oid.map_or(Ok(None), |oid| peeled(oid, objects))?;
        Ok(ResolvedHead { target, oid, peeled })
    }

    /// What the loose file holds; `None` when there is none.
    pub(crate) fn loose(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        read_value(&self.path(name))
    }

    /// What the ref holds; `None` when it does not exist.
    pub(crate) fn value(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        match self.deferred(name) {
            Some(table) => Ok(table.find(name).map(Value::from)),
            None => self.filed(name),
        }
    }

    /// What the ref will hold once everything staged is flushed.
    pub(crate) fn staged(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        match self.deferred(name) {
            Some(table) => Ok(table.find_staged(name).map(Value::from)),
            None => self.filed(name),
        }
    }

    /// What the ref's file or its line of `packed-refs` holds.
    pub(crate) fn filed(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        if let Some(value) = self.loose(name)? {
            return Ok(Some(value));
        }
        Ok(self.packed.find(name)?.map(|found| Value::Oid(found.oid)))
    }

    /// What the ref resolves to; `None` when it does not exist, is broken or leads nowhere.
    pub(crate) fn resolve(&self, name: &BStr) -> Result<Option<Oid>, StoreError> {
        self.follow(name, Self::value)
    }

    /// As [`Refs::resolve`], once everything staged is flushed.
    pub(crate) fn resolve_staged(&self, name: &BStr) -> Result<Option<Oid>, StoreError> {
        self.follow(name, Self::staged)
    }

    fn follow(
        &self,
        name: &BStr,
        value: impl Fn(&Self, &BStr) -> Result<Option<Value>, StoreError>,
    ) -> Result<Option<Oid>, StoreError> {
        let mut name = name.to_owned();
        for _ in 0..MAX_SYMREFS {
            match value(self, name.as_bstr())? {
                Some(Value::Oid(oid)) => return Ok(Some(oid)),
                Some(Value::Symbolic(target)) => name = target,
                Some(Value::Broken) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The last name of a chain of symbolic refs that begins with `name`; git names that one, too.
    fn end(&self, mut name: BString) -> Result<BString, StoreError> {
        for _ in 0..MAX_SYMREFS {
            match self.value(name.as_bstr())? {
                Some(Value::Symbolic(target)) => name = target,
                Some(Value::Oid(_) | Value::Broken) | None => break,
            }
        }
        Ok(name)
    }

    /// Every ref whose name starts with `prefix`, by name.
    pub(crate) fn below(
        &self,
        prefix: &BStr,
        objects: &Objects,
    ) -> Result<Vec<StoredRef>, StoreError> {
        let filed = self.cache.list(prefix, self.packed.path(), || self.list(prefix, objects))?;
        let mut refs = filed.refs.clone();
        let n_filed = refs.len();
        for stored in self.table.get().map(|table| table.below(prefix)).unwrap_or_default() {
            match stored.symref_target.clone() {
                // What that names moves by itself.
                Some(to) => {
                    let name = stored.name.as_bstr().to_owned();
                    let value = Value::Symbolic(to.as_bstr().into());
                    refs.extend(self.stored(&name, value, objects)?);
                }
                None => refs.push(stored),
            }
        }
        if refs.len() > n_filed {
            refs.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(refs)
    }

    /// What the files say, and which folders were looked into.
    fn list(&self, prefix: &BStr, objects: &Objects) -> Result<List, StoreError> {
        let mut loose = BTreeMap::new();
        let mut folders = Vec::new();
        let folder = prefix.rfind_byte(b'/').map_or(&b"refs"[..], |end| &prefix[..end]);
        if is_folder(folder) {
            folders = self.walk(folder.as_bstr(), prefix, &mut |name, value| {
                if name.starts_with(prefix) {
                    loose.insert(name, value);
                }
            })?;
        }
        let mut found = BTreeMap::new();
        for packed in self.packed.below(prefix)? {
            if let Some(name) = valid(&packed.name)
                && self.deferred(packed.name.as_bstr()).is_none()
                && !loose.contains_key(&packed.name)
            {
                let peeled = match packed.peeled {
                    Peeled::To(oid) => Some(oid),
                    Peeled::NotATag => None,
                    Peeled::Unknown => peeled(packed.oid, objects)?,
                };
                let stored = StoredRef { name, oid: packed.oid, peeled, symref_target: None };
                found.insert(packed.name, stored);
            }
        }
        for (name, value) in loose {
            if let Some(stored) = self.stored(&name, value, objects)? {
                found.insert(name, stored);
            }
        }
        Ok(List { folders, refs: found.into_values().collect() })
    }

    fn stored(
        &self,
        name: &BString,
        value: Value,
        objects: &Objects,
    ) -> Result<Option<StoredRef>, StoreError> {
        let Some(valid_name) = valid(name) else { return Ok(None) };
        let (oid, symref_target) = match value {
            Value::Oid(oid) => (Some(oid), None),
            Value::Symbolic(target) => {
                let end = self.end(target)?;
                (self.resolve(end.as_bstr())?, RefName::new(&end).ok())
            }
            Value::Broken => (None, None),
        };
        let Some(oid) = oid else {
            tracing::warn!(%name, "skipped a ref that leads nowhere");
            return Ok(None);
        };
        Ok(Some(StoredRef { name: valid_name, oid, peeled: peeled(oid, objects)?, symref_target }))
    }

    /// The first ref below the folder `name/`, where there is one. Locks and empty folders are none.
    pub(crate) fn first_staged_below(&self, name: &BStr) -> Result<Option<BString>, StoreError> {
        if let Some(table) = self.deferred(name) {
            return Ok(table.first_staged_below(name));
        }
        if let Some(found) = self.first_loose_below(name)? {
            return Ok(Some(found));
        }
        let below = [name.as_bytes(), b"/"].concat();
        let packed = self.packed.first_below(below.as_bstr())?;
        if let Some(packed) = packed.filter(|name| self.deferred(name.as_bstr()).is_none()) {
            return Ok(Some(packed));
        }
        // Above `refs/zit/` there are files and deferred refs.
        Ok(self.table.get().and_then(|table| table.first_staged_below(name)))
    }

    fn first_loose_below(&self, name: &BStr) -> Result<Option<BString>, StoreError> {
        let mut first = None;
        self.walk(name, name, &mut |name, _| {
            if first.as_ref().is_none_or(|first| name < *first) {
                first = Some(name);
            }
        })?;
        Ok(first)
    }

    /// Calls `found` with loose ref files below a folder, in no order: at least those whose names start with `prefix`.
    /// What lies elsewhere is not looked at.
    fn walk(
        &self,
        folder: &BStr,
        prefix: &BStr,
        found: &mut dyn FnMut(BString, Value),
    ) -> Result<Vec<PathBuf>, StoreError> {
        let mut walked = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let path = self.path(folder.as_bstr());
            walked.push(path.clone());
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(error).doing("list", &path),
            };
            for entry in entries {
                let entry = entry.doing("list", &path)?;
                let mut name = folder.clone();
                name.push(b'/');
                name.extend_from_slice(&entry.file_name().into_vec());
                let aside = !name.starts_with(prefix) && !prefix.starts_with(&name);
                if aside || self.deferred(name.as_bstr()).is_some() {
                    continue;
                }
                let kind = match entry.file_type() {
                    Ok(kind) => kind,
                    Err(error) if is_absent(&error) => continue,
                    Err(error) => return Err(error).doing("look at", &entry.path()),
                };
                if kind.is_dir() {
                    folders.push(name);
                } else if !name.ends_with(b".lock")
                    && let Some(value) = read_value(&entry.path())?
                {
                    found(name, value);
                }
            }
        }
        Ok(walked)
    }
}

/// Whether a folder of refs may have that name. A peer chooses prefixes; what is no path must not be looked up as one.
fn is_folder(name: &[u8]) -> bool {
    let plain = |component: &[u8]| {
        !matches!(component, b"" | b"." | b"..")
            && component.len() <= MAX_COMPONENT
            && !component.contains(&0)
    };
    name.starts_with(b"refs") && name.split(|&byte| byte == b'/').all(plain)
}

/// What a tag leads to. One that cannot be followed is listed without: whoever pushed it must not take the list away from
/// everybody.
pub(crate) fn peeled(oid: Oid, objects: &Objects) -> Result<Option<Oid>, StoreError> {
    match objects.kind(oid)? {
        Some(Kind::Tag) => Ok(objects
            .peel(oid)
            .inspect_err(|error| tracing::warn!(%oid, %error, "listed a tag that leads nowhere"))
            .ok()),
        Some(Kind::Blob | Kind::Tree | Kind::Commit) | None => Ok(None),
    }
}

fn valid(name: &BString) -> Option<RefName> {
    RefName::new(name)
        .inspect_err(|_| tracing::warn!(%name, "skipped a ref with a name that git refuses"))
        .ok()
}

/// Reads one file of `refs/`, or HEAD. A folder is no ref.
fn read_value(path: &Path) -> Result<Option<Value>, StoreError> {
    let content = match fs::read(path) {
        Ok(content) => content,
        Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::IsADirectory => {
            return Ok(None);
        }
        Err(error) => return Err(error).doing("read", path),
    };
    Ok(Some(parse_value(&content)))
}

fn parse_value(content: &[u8]) -> Value {
    if let Some(target) = content.strip_prefix(b"ref:") {
        return Value::Symbolic(target.trim().into());
    }
    // Git takes anything that begins with an oid and a blank.
    let hex = content.fields().next().unwrap_or_default();
    if !content.starts_with(hex) {
        return Value::Broken;
    }
    Oid::from_hex(hex).map_or(Value::Broken, Value::Oid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_file_holds_an_oid_or_names_a_ref_or_is_broken() {
        let oid = Oid::from_hex(&[b'1'; 40]).unwrap();
        assert_eq!(parse_value(format!("{oid}\n").as_bytes()), Value::Oid(oid));
        assert_eq!(parse_value(b"ref: refs/heads/x\n"), Value::Symbolic("refs/heads/x".into()));
        for broken in ["", "\n", "123\n", &format!(" {oid}\n"), &"0".repeat(40)] {
            assert_eq!(parse_value(broken.as_bytes()), Value::Broken, "{broken:?}");
        }
    }
}
