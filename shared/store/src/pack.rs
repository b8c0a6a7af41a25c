//! Receiving: a pack into the quarantine, and the check that nothing its tips need is missing.
//!
//! The pack is streamed into `git index-pack`, which checks every object and completes a thin pack from the repository.
//! No more than a buffer of it is in memory at once. A pack without objects, as a push that only deletes or claims
//! sends, starts no program and makes no folder.

use std::io::{self, Read, Write};

use gix_hash::Hasher;
use zit_model::Oid;

use crate::connected::{self, Connected, Ground};
use crate::crash::crash_point;
use crate::error::StoreError;
use crate::git::{Finished, said};
use crate::quarantine::Quarantine;
use crate::refs::StoredRef;

/// Magic, version and number of objects. Source: gitformat-pack(5).
const HEADER_LEN: usize = 12;

/// What a pack may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackLimits {
    /// Its size in bytes.
    pub max_bytes: u64,
    /// How many objects it may announce.
    pub max_objects: u32,
}

/// 2 GiB, more than most histories in one push, and a disk survives it; and twice as many objects as the largest public
/// histories have, because a header of twelve bytes makes the receiving program set memory aside for each.
impl Default for PackLimits {
    fn default() -> Self {
        Self { max_bytes: 2 * 1024 * 1024 * 1024, max_objects: 20_000_000 }
    }
}

/// What came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The number of objects that the pack announced.
    pub objects: u32,
    /// The number of bytes read.
    pub bytes: u64,
}

/// Why a pack is refused. The quarantine is then fit for nothing but being dropped.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The stream itself failed.
    #[error("cannot read the pack")]
    Read(#[source] io::Error),
    /// The first bytes are not a pack's.
    #[error("not a pack: {0}")]
    NotAPack(String),
    /// The stream ended early.
    #[error("the pack is truncated")]
    Truncated,
    /// The bytes are not what the sender sent.
    #[error("the pack's checksum does not match")]
    Checksum,
    /// More bytes than allowed.
    #[error("the pack is over the limit of {0} bytes")]
    TooLarge(u64),
    /// More objects than allowed.
    #[error("the pack has {found} objects; at most {limit} are taken")]
    TooManyObjects {
        /// What it announces.
        found: u32,
        /// The limit.
        limit: u32,
    },
    /// A delta against an object that is neither in the pack nor here.
    #[error("the pack has deltas without their base: {0}")]
    MissingBase(String),
    /// An object that git refuses.
    #[error("the pack holds an object that git refuses: {0}")]
    BadObject(String),
    /// An object that a tip needs is neither in the pack nor here.
    #[error("objects are missing: {0}")]
    MissingObjects(String),
    /// Anything else that git said.
    #[error("the pack is refused: {0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PackError {
    /// What the pusher can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Read(_) | Self::Truncated | Self::Checksum => Some("push again"),
            Self::NotAPack(_) => Some("push with a git client"),
            Self::TooLarge(_) | Self::TooManyObjects { .. } => {
                Some("push the history in several steps")
            }
            Self::MissingBase(_) | Self::MissingObjects(_) => {
                Some("fetch, then push again; a shallow clone may need `git fetch --unshallow`")
            }
            Self::BadObject(_) => Some("run `git fsck` in your clone and rewrite the object"),
            Self::Refused(_) | Self::Store(_) => None,
        }
    }
}

impl Quarantine {
    /// Reads one pack to its end.
    ///
    /// # Errors
    /// [`PackError`], one variant for each way a pack goes wrong.
    pub fn receive_pack(
        &mut self,
        pack: &mut dyn Read,
        limits: &PackLimits,
    ) -> Result<Received, PackError> {
        let mut header = [0; HEADER_LEN];
        read_exact(pack, &mut header)?;
        let objects = count(header)?;
        if objects > limits.max_objects {
            return Err(PackError::TooManyObjects { found: objects, limit: limits.max_objects });
        }
        let bytes = if objects == 0 {
            self.empty_pack(header, pack)?
        } else {
            self.index_pack(header, pack, limits.max_bytes)?
        };
        crash_point("quarantine.received");
        Ok(Received { objects, bytes })
    }

    /// Checks that everything reachable from `tips` is here, as far as `refs` do not vouch for it.
    ///
    /// # Errors
    /// [`PackError::MissingObjects`] with what git found missing.
    pub fn check_connected(&mut self, tips: &[Oid], refs: &[StoredRef]) -> Result<(), PackError> {
        match self.connected(tips, refs) {
            Connected::Whole => Ok(()),
            Connected::Missing(_) | Connected::Unsure => self.check_connected_by_git(tips),
        }
    }

    /// What can be said without a program of whether everything reachable from `tips` is here. `refs` are the
    /// repository's.
    #[must_use]
    pub fn connected(&self, tips: &[Oid], refs: &[StoredRef]) -> Connected {
        let (objects, repository) = (self.objects(), self.repository_objects());
        let shallow = connected::shallow(self.git_dir());
        let ground = Ground { objects: &objects, repository: &repository, refs, shallow };
        connected::check(tips, ground, connected::Limits::default())
    }

    fn check_connected_by_git(&mut self, tips: &[Oid]) -> Result<(), PackError> {
        let finished = self
            .reading_git("rev-list")?
            // The referee's documents have no history, and a broken one must not stop the pushes of others.
            .args(["--objects", "--stdin", "--quiet", "--not"])
            .args(["--exclude=refs/zit/agents/*", "--exclude=refs/zit/claims/*", "--all"])
            .args(["--alternate-refs"])
            .finish(|stdin| tips.iter().try_for_each(|tip| writeln!(stdin, "{tip}")))
            .map_err(StoreError::Git)?;
        if finished.status.success() {
            return Ok(());
        }
        Err(PackError::MissingObjects(said(&finished.stderr)))
    }

    fn empty_pack(&self, header: [u8; HEADER_LEN], pack: &mut dyn Read) -> Result<u64, PackError> {
        let mut trailer = vec![0; self.kind.len_in_bytes()];
        read_exact(pack, &mut trailer)?;
        let mut hasher: Hasher = gix_hash::hasher(self.kind);
        hasher.update(&header);
        let sum = hasher.try_finalize().map_err(|error| PackError::Refused(error.to_string()))?;
        if sum.as_bytes() != trailer {
            return Err(PackError::Checksum);
        }
        Ok((header.len() + trailer.len()) as u64)
    }

    fn index_pack(
        &mut self,
        header: [u8; HEADER_LEN],
        pack: &mut dyn Read,
        max: u64,
    ) -> Result<u64, PackError> {
        let mut fed = Fed { bytes: 0, end: None };
        let finished = self
            .git(&[], "index-pack")?
            .args(["--stdin", "--strict", "--fix-thin"])
            .arg(format!("--max-input-size={max}"))
            .finish(|stdin| fed.copy(header, pack, stdin, max));
        match fed.end {
            Some(End::Reader(error)) => return Err(PackError::Read(error)),
            Some(End::TooLarge) => return Err(PackError::TooLarge(max)),
            None => {}
        }
        match finished {
            Ok(finished) if finished.status.success() => Ok(fed.bytes),
            Ok(finished) => Err(refusal(&finished, max)),
            Err(error) => Err(PackError::Store(error.into())),
        }
    }
}

/// How much of a pack was handed on, and why not all.
struct Fed {
    bytes: u64,
    end: Option<End>,
}

enum End {
    Reader(io::Error),
    TooLarge,
}

impl Fed {
    fn copy(
        &mut self,
        header: [u8; HEADER_LEN],
        pack: &mut dyn Read,
        stdin: &mut dyn Write,
        max: u64,
    ) -> io::Result<()> {
        stdin.write_all(&header)?;
        self.bytes = header.len() as u64;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match pack.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.end = Some(End::Reader(error));
                    return Err(io::Error::other("the pack ended with an error"));
                }
            };
            self.bytes += read as u64;
            if self.bytes > max {
                self.end = Some(End::TooLarge);
                return Err(io::Error::other("the pack is too large"));
            }
            stdin.write_all(buffer.get(..read).unwrap_or_default())?;
        }
    }
}

fn read_exact(pack: &mut dyn Read, buffer: &mut [u8]) -> Result<(), PackError> {
    pack.read_exact(buffer).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            PackError::Truncated
        } else {
            PackError::Read(error)
        }
    })
}

/// The number of objects that a header announces.
fn count(header: [u8; HEADER_LEN]) -> Result<u32, PackError> {
    let [b'P', b'A', b'C', b'K', version @ .., a, b, c, d] = header else {
        return Err(PackError::NotAPack("it does not begin with PACK".to_owned()));
    };
    match u32::from_be_bytes(version) {
        2 | 3 => Ok(u32::from_be_bytes([a, b, c, d])),
        other => Err(PackError::NotAPack(format!("version {other} is unknown"))),
    }
}

/// What index-pack complained of.
///
/// # Source
/// The messages of git's `builtin/index-pack.c` in the C locale; an unknown one is passed on as it is.
fn refusal(finished: &Finished, max: u64) -> PackError {
    let said = said(&finished.stderr);
    let has = |needles: &[&str]| needles.iter().any(|needle| said.contains(needle));
    if has(&["pack exceeds maximum allowed size"]) {
        PackError::TooLarge(max)
    } else if has(&["early EOF"]) {
        PackError::Truncated
    } else if has(&["pack is corrupted", "checksum mismatch"]) {
        PackError::Checksum
    } else if has(&["unresolved delta"]) {
        PackError::MissingBase(said)
    } else if has(&["did not receive expected object"]) {
        PackError::MissingObjects(said)
    } else if has(&[
        "fsck error",
        "inflate",
        "invalid",
        "bad object",
        "unknown object type",
        "serious inflate",
    ]) {
        PackError::BadObject(said)
    } else {
        PackError::Refused(said)
    }
}
