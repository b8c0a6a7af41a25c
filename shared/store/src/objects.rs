//! Reading objects: a cheap handle per thread, which also sees what arrives in the repository after it was made.
//!
//! Sizes are looked at before anything is decoded, so that no object, however large it claims to be, costs more memory
//! than its caller allows. Replacement refs and grafts are not followed: an oid means the object with that hash.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use gix_object::Find as _;
use gix_odb::Header as _;
use gix_odb::memory::{Proxy, Storage};
use zit_model::{Oid, UnixSeconds};

use crate::backlog::{Beside, Pending, Unpacked};
use crate::error::StoreError;

pub use gix_object::Kind;

/// The largest commit, tree or tag that is decoded, in bytes.
pub const MAX_STRUCTURE: u64 = 64 << 20;

/// How many tags in a row are followed.
const MAX_TAGS: usize = 64;

/// The largest tag that is followed, in bytes. Each listing of refs reads the loose ones again.
const MAX_TAG: u64 = 1 << 20;

/// How many more packs than there are may arrive before the database has to be opened again.
const SPARE_PACKS: usize = 512;

/// Where handles come from: the files of an object database, and what is journaled and not in a file yet.
#[derive(Clone)]
pub(crate) struct Database {
    pub(crate) files: Arc<gix_odb::Store>,
    pub(crate) pending: Pending,
}

/// Reads the objects of a repository, or of a quarantine and the repository below it.
pub struct Objects {
    pub(crate) handle: Proxy<Beside>,
    pub(crate) kind: gix_hash::Kind,
}

/// A blob, unless it is larger than asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blob {
    /// The content.
    Bytes(Vec<u8>),
    /// The size in bytes of a blob past the caller's limit.
    TooLarge(u64),
}

/// Who made a commit, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name; any bytes.
    pub name: BString,
    /// The mail address, without angle brackets.
    pub email: BString,
    /// When.
    pub time: UnixSeconds,
    /// The offset from UTC in minutes.
    pub offset_minutes: i32,
}

/// What a commit says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its tree.
    pub tree: Oid,
    /// Its parents, in order.
    pub parents: Vec<Oid>,
    /// Who wrote the change.
    pub author: Signature,
    /// Who made the commit.
    pub committer: Signature,
    /// The whole message, as stored.
    pub message: BString,
}

/// What a tag names by its first line. Git reads no more of a tag to follow it, whatever other lines it has.
pub(crate) fn tag_target(tag: &[u8]) -> Result<Oid, String> {
    let line = tag.lines().next().and_then(|line| line.strip_prefix(b"object "));
    let hex = line.ok_or("a tag without an object line")?;
    Oid::from_hex(hex).map_err(|error| error.to_string())
}

/// Opens a database that leaves room for packs to come.
pub(crate) fn open(folder: &Path, kind: gix_hash::Kind) -> Result<Arc<gix_odb::Store>, StoreError> {
    let options = gix_odb::store::init::Options {
        slots: gix_odb::store::init::Slots::AsNeededByDiskState {
            multiplier: 1.5,
            minimum: SPARE_PACKS,
        },
        ..Default::default()
    };
    gix_odb::Store::at_opts(folder.to_owned(), kind, &mut std::iter::empty(), options)
        .map(Arc::new)
        .map_err(|error| StoreError::OpenObjects {
            path: folder.to_owned(),
            why: error.to_string(),
        })
}

impl Objects {
    pub(crate) fn new(database: &Database, kind: gix_hash::Kind) -> Self {
        Self::with(database, kind, Storage::default(), Unpacked::default())
    }

    /// Also sees the objects of `written`, which are nowhere but in memory, and reads those of `unpacked` from there.
    pub(crate) fn with(
        database: &Database,
        kind: gix_hash::Kind,
        written: Storage,
        unpacked: Unpacked,
    ) -> Self {
        let files = database.files.to_cache_arc();
        let mut handle = Proxy::new(Beside::new(files, database.pending.clone(), unpacked), kind);
        handle.set_object_memory(written);
        Self { handle, kind }
    }

    /// The kind of an object; `None` when it is missing.
    ///
    /// # Errors
    /// [`StoreError::Object`] when it is there but cannot be read.
    pub fn kind(&self, oid: Oid) -> Result<Option<Kind>, StoreError> {
        Ok(self.header(oid)?.map(|(kind, _)| kind))
    }

    /// The kind of an object and its size in bytes; `None` when it is missing.
    ///
    /// # Errors
    /// [`StoreError::Object`] when it is there but cannot be read.
    pub fn header(&self, oid: Oid) -> Result<Option<(Kind, u64)>, StoreError> {
        if oid.kind() != self.kind {
            return Ok(None);
        }
        let header = self.handle.try_header(oid.as_gix()).map_err(|error| broken(oid, &error))?;
        Ok(header.map(|header| (header.kind(), header.size())))
    }

    /// The sizes in bytes of those of `oids` that are here and can be read. The packs on disk are looked at once at most:
    /// a peer may name many objects that were never here.
    pub(crate) fn sizes(mut self, oids: &[Oid]) -> HashMap<Oid, u64> {
        let mut sizes = HashMap::new();
        for &oid in oids {
            match self.header(oid) {
                Ok(Some((_, size))) => {
                    sizes.insert(oid, size);
                }
                Ok(None) => self.handle.refresh_never(),
                Err(error) => tracing::warn!(%error, "no size is told"),
            }
        }
        sizes
    }

    /// Whether an object is here, without a look for packs that arrived since the last.
    pub(crate) fn has_at_once(&self, oid: Oid) -> bool {
        oid.kind() == self.kind && self.handle.exists_without_refresh(oid.as_gix())
    }

    /// A blob's content, if it has at most `max` bytes.
    ///
    /// # Errors
    /// [`StoreError`] when it is missing, unreadable or no blob.
    pub fn blob(&self, oid: Oid, max: u64) -> Result<Blob, StoreError> {
        match self.checked(oid, Kind::Blob)? {
            size if size > max => Ok(Blob::TooLarge(size)),
            _ => self.read(oid, Kind::Blob).map(Blob::Bytes),
        }
    }

    /// A commit.
    ///
    /// # Errors
    /// [`StoreError`] when it is missing, unreadable, no commit, or larger than [`MAX_STRUCTURE`].
    pub fn commit(&self, oid: Oid) -> Result<Commit, StoreError> {
        let bytes = self.structure(oid, Kind::Commit)?;
        let commit = gix_object::CommitRef::from_bytes(&bytes, self.kind)
            .map_err(|error| broken(oid, &error))?;
        let id = |hex: &[u8]| Oid::from_hex(hex).map_err(|error| broken(oid, &error));
        Ok(Commit {
            tree: id(commit.tree)?,
            parents: commit.parents.iter().map(|hex| id(hex)).collect::<Result<_, _>>()?,
            author: Signature::parse(commit.author),
            committer: Signature::parse(commit.committer),
            message: commit.message.to_owned(),
        })
    }

    /// What a tag leads to in the end; the object itself when it is no tag.
    ///
    /// # Errors
    /// [`StoreError`] when an object on the way is missing or unreadable.
    pub fn peel(&self, oid: Oid) -> Result<Oid, StoreError> {
        let mut at = oid;
        for _ in 0..MAX_TAGS {
            match self.kind(at)?.ok_or(StoreError::MissingObject(at))? {
                Kind::Blob | Kind::Tree | Kind::Commit => return Ok(at),
                Kind::Tag => {
                    let size = self.checked(at, Kind::Tag)?;
                    if size > MAX_TAG {
                        return Err(StoreError::TooLarge { oid: at, size, limit: MAX_TAG });
                    }
                    at = tag_target(&self.read(at, Kind::Tag)?).map_err(|why| broken(at, &why))?;
                }
            }
        }
        Err(broken(oid, &"too many tags in a row"))
    }

    /// The bytes of a commit, tree or tag.
    pub(crate) fn structure(&self, oid: Oid, kind: Kind) -> Result<Vec<u8>, StoreError> {
        let size = self.checked(oid, kind)?;
        if size > MAX_STRUCTURE {
            return Err(StoreError::TooLarge { oid, size, limit: MAX_STRUCTURE });
        }
        self.read(oid, kind)
    }

    /// The size of an object that must be of the kind.
    fn checked(&self, oid: Oid, expected: Kind) -> Result<u64, StoreError> {
        match self.header(oid)? {
            None => Err(StoreError::MissingObject(oid)),
            Some((found, _)) if found != expected => {
                Err(StoreError::WrongKind { oid, expected, found })
            }
            Some((_, size)) => Ok(size),
        }
    }

    /// The bytes of an object of any size; the caller has looked at it.
    pub(crate) fn read(&self, oid: Oid, expected: Kind) -> Result<Vec<u8>, StoreError> {
        let mut buffer = Vec::new();
        let found = self
            .handle
            .try_find(oid.as_gix(), &mut buffer)
            .map_err(|error| broken(oid, &error))?
            .ok_or(StoreError::MissingObject(oid))?
            .kind;
        if found != expected {
            return Err(StoreError::WrongKind { oid, expected, found });
        }
        Ok(buffer)
    }
}

pub(crate) fn broken(oid: Oid, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::Object { oid, why: why.to_string() }
}

impl Signature {
    /// Reads `Name <mail> seconds +hhmm` as git does: from the right, and what is missing is empty or zero.
    pub(crate) fn parse(line: &[u8]) -> Self {
        let open = line.find_byte(b'<').unwrap_or(line.len());
        let close = line.rfind_byte(b'>').unwrap_or(line.len());
        let name = line.get(..open).unwrap_or_default().trim();
        let email = line.get(open + 1..close).unwrap_or_default().trim();
        let when = line.get(close + 1..).unwrap_or_default().to_str_lossy();
        let mut when = when.split_ascii_whitespace();
        let seconds = when.next().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let offset: i32 = when.next().and_then(|text| text.parse().ok()).unwrap_or(0);
        Self {
            name: name.into(),
            email: email.into(),
            time: UnixSeconds(u64::try_from(seconds).unwrap_or(0)),
            offset_minutes: (offset / 100).clamp(-24, 24) * 60 + offset % 100,
        }
    }

    /// The line as a commit holds it. What would end a field early is left out.
    pub(crate) fn line(&self) -> Vec<u8> {
        let clean = |text: &[u8]| {
            let kept = text.iter().copied().filter(|byte| !matches!(byte, b'<' | b'>' | b'\n' | 0));
            BString::from(kept.collect::<Vec<_>>()).trim().to_owned()
        };
        let mut line = clean(&self.name);
        line.extend_from_slice(b" <");
        line.extend_from_slice(&clean(&self.email));
        line.extend_from_slice(format!("> {}", self.when()).as_bytes());
        line
    }

    /// Seconds and offset, as git writes them.
    pub(crate) fn when(&self) -> String {
        let (sign, minutes) = if self.offset_minutes < 0 {
            ('-', -self.offset_minutes)
        } else {
            ('+', self.offset_minutes)
        };
        format!("{} {sign}{:02}{:02}", self.time.0, minutes / 60, minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_reads_back_as_it_was_written() {
        let written = Signature {
            name: "Zoë \n<K>".into(),
            email: "z@example.org>".into(),
            time: UnixSeconds(1_700_000_000),
            offset_minutes: -210,
        };
        assert_eq!(written.line().as_bstr(), "Zoë K <z@example.org> 1700000000 -0330");
        let read = Signature::parse(&written.line());
        assert_eq!((read.name.as_bstr(), read.offset_minutes), ("Zoë K".into(), -210));
    }

    #[test]
    fn a_malformed_signature_reads_as_far_as_it_goes() {
        for line in ["", "<", ">", "a", "> <", "a <b", "a b> 1"] {
            assert!(Signature::parse(line.as_bytes()).time.0 <= 1, "{line:?}");
        }
    }
}
