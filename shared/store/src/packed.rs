//! `packed-refs`: a snapshot that is current whenever it is asked for, and the file's content without some refs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use gix_ref::packed::Buffer;
use zit_model::Oid;

use crate::error::{Doing, StoreError};
use crate::fsio::Stamp;

/// One state of the file.
pub(crate) struct Snapshot {
    buffer: Buffer,
    /// Whether a ref without a peeled line is known to name something other than a tag object.
    fully_peeled: bool,
}

/// One line of the file.
pub(crate) struct PackedRef {
    pub(crate) name: BString,
    pub(crate) oid: Oid,
    pub(crate) peeled: Peeled,
}

/// What the file says about the object that a ref's tag leads to.
#[derive(Clone, Copy)]
pub(crate) enum Peeled {
    To(Oid),
    NotATag,
    Unknown,
}

/// The file, and its last snapshot.
pub(crate) struct PackedRefs {
    path: PathBuf,
    kind: gix_hash::Kind,
    read: Mutex<Option<(Stamp, Arc<Snapshot>)>>,
}

impl PackedRefs {
    pub(crate) fn new(path: PathBuf, kind: gix_hash::Kind) -> Self {
        Self { path, kind, read: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it is now; `None` when there is none. Git replaces the file and never writes into it, so inode
    /// and times tell the versions apart.
    pub(crate) fn current(&self) -> Result<Option<Arc<Snapshot>>, StoreError> {
        let Some(stamp) = Stamp::of(&self.path)? else { return Ok(None) };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((seen, snapshot)) = &*read
            && *seen == stamp
        {
            return Ok(Some(Arc::clone(snapshot)));
        }
        let bytes = std::fs::read(&self.path).doing("read", &self.path)?;
        let snapshot = Arc::new(self.snapshot(&bytes)?);
        *read = Some((stamp, Arc::clone(&snapshot)));
        Ok(Some(snapshot))
    }

    fn snapshot(&self, bytes: &[u8]) -> Result<Snapshot, StoreError> {
        let header = bytes.lines().next().unwrap_or_default();
        let fully_peeled =
            header.starts_with(b"# pack-refs") && header.contains_str(" fully-peeled");
        let buffer = Buffer::from_bytes(bytes, self.kind).map_err(|error| self.damaged(&error))?;
        Ok(Snapshot { buffer, fully_peeled })
    }

    fn damaged(&self, error: &dyn std::fmt::Display) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), why: error.to_string() }
    }

    /// What the file says about one ref.
    pub(crate) fn find(&self, name: &BStr) -> Result<Option<PackedRef>, StoreError> {
        let Some(snapshot) = self.current()? else { return Ok(None) };
        let Ok(wanted) = <&gix_ref::FullNameRef>::try_from(name) else { return Ok(None) };
        let found = snapshot.buffer.try_find(wanted).map_err(|error| self.damaged(&error))?;
        Ok(found.and_then(|found| snapshot.read(&found)))
    }

    /// Every ref whose name starts with `prefix`, in order. Lines with a name that git refuses are left out.
    pub(crate) fn below(&self, prefix: &BStr) -> Result<Vec<PackedRef>, StoreError> {
        let Some(snapshot) = self.current()? else { return Ok(Vec::new()) };
        let lines =
            snapshot.buffer.iter_prefixed(prefix.into()).map_err(|error| self.damaged(&error))?;
        let mut found = Vec::new();
        for line in lines {
            match line {
                Ok(line) => found.extend(snapshot.read(&line)),
                Err(error) => {
                    tracing::warn!(path = %self.path.display(), %error, "skipped a line of packed-refs");
                }
            }
        }
        Ok(found)
    }

    /// The first ref below `prefix`, where there is one.
    pub(crate) fn first_below(&self, prefix: &BStr) -> Result<Option<BString>, StoreError> {
        let Some(snapshot) = self.current()? else { return Ok(None) };
        let mut lines =
            snapshot.buffer.iter_prefixed(prefix.into()).map_err(|error| self.damaged(&error))?;
        Ok(lines.find_map(Result::ok).map(|line| line.name.as_bstr().to_owned()))
    }
}

impl Snapshot {
    fn read(&self, line: &gix_ref::packed::Reference<'_>) -> Option<PackedRef> {
        let oid = Oid::from_gix(line.target())?;
        let peeled = match line.object {
            Some(_) => Oid::from_gix(line.object()).map_or(Peeled::Unknown, Peeled::To),
            None if self.fully_peeled => Peeled::NotATag,
            None => Peeled::Unknown,
        };
        Some(PackedRef { name: line.name.as_bstr().to_owned(), oid, peeled })
    }
}

/// The file's bytes less the lines of `names`; header, order and peeled lines of the others stay as they are.
pub(crate) fn without(content: &[u8], names: &BTreeSet<&BStr>) -> Vec<u8> {
    let mut kept = Vec::with_capacity(content.len());
    let mut dropping = false;
    for line in content.lines_with_terminator() {
        if !line.starts_with(b"^") {
            let name = line.splitn_str(2, " ").nth(1).unwrap_or_default().trim_end().as_bstr();
            dropping = !line.starts_with(b"#") && names.contains(name);
        }
        if !dropping {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ref_leaves_with_its_peeled_line_and_nothing_else_changes() {
        let id = "1".repeat(40);
        let before = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{id} refs/a\n{id} refs/tags/v1\n^{id}\n{id} refs/tags/v10\n"
        );
        let names = BTreeSet::from([BStr::new("refs/tags/v1")]);
        let after = without(before.as_bytes(), &names);
        assert_eq!(
            after.as_bstr(),
            format!(
                "# pack-refs with: peeled fully-peeled sorted \n{id} refs/a\n{id} refs/tags/v10\n"
            )
        );
    }
}
