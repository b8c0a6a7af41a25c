//! Refs as files: a loose file each, and `packed-refs`; loose files first and `packed-refs` after them, in that order, so
//! that a ref that stock git packs in between is seen in one of the two.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use zit_model::{Oid, RefName};

use super::cache::{Cache, List};
use super::{DEFERRED, Found, Head, Value};
use crate::error::{Doing, StoreError};
use crate::fsio::is_absent;
use crate::packed::{PackedRefs, Peeled};

/// The longest component of a path, in bytes. Source: `NAME_MAX` of Linux.
const MAX_COMPONENT: usize = 255;

/// The files that hold the refs of one repository.
pub(crate) struct Files {
    git_dir: PathBuf,
    head: PathBuf,
    packed: PackedRefs,
    cache: Cache,
}

impl Files {
    /// `git_dir` holds `refs/` and `packed-refs`; `head` is the file HEAD, which a linked work tree has of its own.
    pub(super) fn new(git_dir: &Path, head: PathBuf, kind: gix_hash::Kind) -> Self {
        let packed = PackedRefs::new(git_dir.join("packed-refs"), kind);
        Self { git_dir: git_dir.to_owned(), head, packed, cache: Cache::default() }
    }

    /// The file of a loose ref.
    pub(crate) fn path(&self, name: &BStr) -> PathBuf {
        self.git_dir.join(OsStr::from_bytes(name))
    }

    pub(crate) fn head_path(&self) -> &Path {
        &self.head
    }

    pub(crate) fn packed_path(&self) -> &Path {
        self.packed.path()
    }

    pub(super) fn head(&self) -> Result<Head, StoreError> {
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

    /// What the ref's file or its line of `packed-refs` holds; `None` when there is neither.
    pub(super) fn value(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        if let Some(value) = read_value(&self.path(name))? {
            return Ok(Some(value));
        }
        Ok(self.packed.find(name)?.map(|found| Value::Oid(found.oid)))
    }

    /// A list that was read before, or is read now with `read`.
    pub(super) fn cached(
        &self,
        prefix: &BStr,
        read: impl Fn() -> Result<List, StoreError>,
    ) -> Result<Arc<List>, StoreError> {
        self.cache.list(prefix, self.packed.path(), read)
    }

    /// A list that was read before, if it is known to be as it was without reading anything.
    pub(super) fn known(&self, prefix: &BStr) -> Result<Option<Arc<List>>, StoreError> {
        self.cache.known(prefix, self.packed.path())
    }

    /// The refs outside `refs/zit/` whose files say what `packed-refs` says too.
    pub(crate) fn packed_too(&self) -> Result<Vec<BString>, StoreError> {
        let mut names = Vec::new();
        let skip = |name: &BStr| name.starts_with(DEFERRED);
        self.walk("refs".into(), "refs/".into(), &skip, &mut |name, _| names.push(name))?;
        let mut packed = Vec::new();
        for name in names {
            if self.is_packed_too(name.as_bstr())? {
                packed.push(name);
            }
        }
        Ok(packed)
    }

    /// Whether the ref's file says what `packed-refs` says too, and so may go.
    pub(crate) fn is_packed_too(&self, name: &BStr) -> Result<bool, StoreError> {
        let Some(Value::Oid(oid)) = read_value(&self.path(name))? else { return Ok(false) };
        Ok(self.packed.find(name)?.is_some_and(|packed| packed.oid == oid))
    }

    /// Every ref whose name starts with `prefix` and that is not to be skipped, by name, and which folders were looked
    /// into.
    pub(super) fn below(
        &self,
        prefix: &BStr,
        skip: &dyn Fn(&BStr) -> bool,
    ) -> Result<(Vec<PathBuf>, Vec<Found>), StoreError> {
        let mut found = BTreeMap::new();
        let mut folders = Vec::new();
        let folder = prefix.rfind_byte(b'/').map_or(&b"refs"[..], |end| &prefix[..end]);
        if is_folder(folder) {
            folders = self.walk(folder.as_bstr(), prefix, skip, &mut |name, value| {
                if name.starts_with(prefix) {
                    found.insert(name, (value, Peeled::Unknown));
                }
            })?;
        }
        for packed in self.packed.below(prefix)? {
            if !skip(packed.name.as_bstr()) {
                found.entry(packed.name).or_insert((Value::Oid(packed.oid), packed.peeled));
            }
        }
        let found = found.into_iter().map(|(name, (value, peeled))| Found { name, value, peeled });
        Ok((folders, found.collect()))
    }

    /// The first ref below the folder `name/` that is not to be skipped. Locks and empty folders are none.
    pub(super) fn first_below(
        &self,
        name: &BStr,
        skip: &dyn Fn(&BStr) -> bool,
    ) -> Result<Option<BString>, StoreError> {
        let mut first = None;
        self.walk(name, name, skip, &mut |name, _| {
            if first.as_ref().is_none_or(|first| name < *first) {
                first = Some(name);
            }
        })?;
        if first.is_some() {
            return Ok(first);
        }
        let below = [name.as_bytes(), b"/"].concat();
        let packed = self.packed.first_below(below.as_bstr())?;
        Ok(packed.filter(|name| !skip(name.as_bstr())))
    }

    /// Calls `found` with loose ref files below a folder, in no order: at least those whose names start with `prefix`.
    /// What lies elsewhere is not looked at.
    fn walk(
        &self,
        folder: &BStr,
        prefix: &BStr,
        skip: &dyn Fn(&BStr) -> bool,
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
                if aside || skip(name.as_bstr()) {
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
