//! Receiving: a pack into the quarantine, and the check that nothing its tips need is missing.
//!
//! A small pack is read into memory and unpacked, checked and indexed here ([`crate::unpack`], [`crate::fsck`]). Any other
//! is streamed into `git index-pack`, which does the same; no more than a buffer of it is in memory at once, and git may
//! not have more at a time than [`MAX_OBJECT`]. A pack without objects, as a push that only deletes or claims sends, makes
//! no folder.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

use gix_hash::{Hasher, ObjectId};
use zit_model::Oid;

use crate::connected::{self, Connected, Ground};
use crate::crash::crash_point;
use crate::error::StoreError;
use crate::fsck::{Fsck, Verdict};
use crate::git::{Finished, said};
use crate::objects::Objects;
use crate::quarantine::Quarantine;
use crate::refs::StoredRef;
use crate::shallow::shallow;
use crate::unpack::{self, Base, Object, Stop, Unpacked};

/// Magic, version and number of objects. Source: gitformat-pack(5).
pub(crate) const HEADER_LEN: usize = 12;

/// How many objects a pack has at most that is unpacked in memory.
const SMALL_OBJECTS: u32 = 20_000;

/// How many bytes such a pack has at most.
const SMALL_BYTES: u64 = 4 << 20;

/// The most memory that git may ask for at once. What it does not make deltas of, it streams.
const MAX_OBJECT: &str = "513m";

/// From what size on git streams blobs that are no deltas.
const STREAM_FROM: &str = "core.bigFileThreshold=16m";

/// The referee's documents have no history, and a broken one must not stop the pushes of others.
pub(crate) const OWN_REFS: [&str; 2] =
    ["--exclude=refs/zit/agents/*", "--exclude=refs/zit/claims/*"];

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
        let max = self.receive.max_input_size.unwrap_or(u64::MAX).min(limits.max_bytes);
        let bytes = if objects == 0 {
            self.empty_pack(header, pack)?
        } else if objects <= SMALL_OBJECTS {
            self.maybe_small_pack(header, pack, objects, max)?
        } else {
            self.index_pack(&header, pack, max)?
        };
        crash_point("quarantine.received");
        Ok(Received { objects, bytes })
    }

    /// Checks that everything reachable from `tips` is here, as far as `refs` do not vouch for it.
    ///
    /// # Errors
    /// [`PackError::MissingObjects`] with what git found missing.
    pub fn check_connected(&mut self, tips: &[Oid], refs: &[StoredRef]) -> Result<(), PackError> {
        self.check_connected_cut(tips, refs, &BTreeSet::new())
    }

    /// The same, with history that may end at `cut` too.
    pub(crate) fn check_connected_cut(
        &mut self,
        tips: &[Oid],
        refs: &[StoredRef],
        cut: &BTreeSet<Oid>,
    ) -> Result<(), PackError> {
        match self.connected_cut(tips, refs, cut) {
            Connected::Whole => Ok(()),
            Connected::Missing(_) | Connected::Unsure => self.check_connected_by_git(tips, cut),
        }
    }

    /// What can be said without a program of whether everything reachable from `tips` is here. `refs` are the
    /// repository's.
    #[must_use]
    pub fn connected(&self, tips: &[Oid], refs: &[StoredRef]) -> Connected {
        self.connected_cut(tips, refs, &BTreeSet::new())
    }

    fn connected_cut(&self, tips: &[Oid], refs: &[StoredRef], cut: &BTreeSet<Oid>) -> Connected {
        let (objects, repository) = (self.objects(), self.repository_objects());
        let mut shallow = shallow(self.git_dir());
        shallow.extend(cut);
        let ground = Ground { objects: &objects, repository: &repository, refs, shallow };
        connected::check(tips, ground, connected::Limits::default())
    }

    fn check_connected_by_git(
        &mut self,
        tips: &[Oid],
        cut: &BTreeSet<Oid>,
    ) -> Result<(), PackError> {
        let ends = if cut.is_empty() { None } else { Some(self.shallow_file(cut)?) };
        let mut git = self.reading_git("rev-list")?;
        if let Some(ends) = ends {
            git = git.env("GIT_SHALLOW_FILE", &ends);
        }
        let finished = git
            .args(["--objects", "--stdin", "--quiet", "--not"])
            .args(OWN_REFS)
            .args(["--all", "--alternate-refs"])
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

    /// Reads a pack as far as a small one goes, and unpacks it if that was all.
    fn maybe_small_pack(
        &mut self,
        header: [u8; HEADER_LEN],
        pack: &mut dyn Read,
        n_objects: u32,
        max: u64,
    ) -> Result<u64, PackError> {
        let mut start = header.to_vec();
        let at_most = max.min(SMALL_BYTES).saturating_sub(HEADER_LEN as u64) + 1;
        pack.take(at_most).read_to_end(&mut start).map_err(PackError::Read)?;
        let n_bytes = start.len() as u64;
        if n_bytes > max {
            return Err(PackError::TooLarge(max));
        }
        if n_bytes <= SMALL_BYTES && self.unpack(&start, n_objects)? {
            return Ok(n_bytes);
        }
        self.index_pack(&start, pack, max)
    }

    /// Unpacks a whole pack; `false` when it is left to git.
    fn unpack(&mut self, pack: &[u8], n_objects: u32) -> Result<bool, PackError> {
        let repository = self.repository_objects();
        let mut base = |id, room| base(&repository, id, room);
        let mut unpacked = match unpack::unpack(pack, n_objects, self.kind, &mut base) {
            Ok(unpacked) => unpacked,
            Err(Stop::TooBig) => return Ok(false),
            Err(Stop::Refused(error)) => return Err(error),
        };
        // What is missing makes the database look for packs that arrived; the others need not look again.
        if let Some(oid) = unpacked.objects.first().and_then(|object| Oid::from_gix(object.id)) {
            repository.kind(oid)?;
        }
        for object in &unpacked.objects {
            not_another(&repository, object)?;
        }
        match self.fsck(&unpacked) {
            Verdict::Fine => {}
            Verdict::Refused(lines) => {
                let lines = lines.replace('\n', "; ");
                return Err(PackError::BadObject(format!("{lines}; fsck error in packed object")));
            }
            Verdict::AskGit => return Ok(false),
        }
        // Git refuses a pack whose objects name what is nowhere, in words of its own.
        if self.receive.fsck.is_some()
            && !connected::is_closed(&unpacked.objects, &repository, &self.ends)
        {
            return Ok(false);
        }
        let objects =
            |unpacked: Unpacked| unpacked.objects.into_iter().map(|o| (o.id, o.kind, o.data));
        if n_objects < self.receive.unpack_limit {
            self.hold(objects(unpacked));
            return Ok(true);
        }
        match unpacked.index(pack.to_vec()) {
            Ok(indexed) => self.add_pack(&indexed, objects(unpacked))?,
            Err(Stop::TooBig) => return Ok(false),
            Err(Stop::Refused(error)) => return Err(error),
        }
        Ok(true)
    }

    fn fsck(&self, unpacked: &Unpacked) -> Verdict {
        let Some(rules) = &self.receive.fsck else { return Verdict::Fine };
        let mut fsck = Fsck::new(rules, self.kind);
        for object in &unpacked.objects {
            if let Some(oid) = Oid::from_gix(object.id) {
                fsck.object(oid, object.kind, &object.data);
            }
        }
        let repository = self.repository_objects();
        let mut is_sure = true;
        let verdict = fsck.finish(|oid| {
            let found = unpacked.objects.iter().find(|object| object.id == oid.as_gix());
            if let Some(object) = found {
                return Some((object.kind, object.data.clone()));
            }
            let stored = base(&repository, oid.as_gix().to_owned(), unpack::MAX_MEMORY);
            is_sure &= stored.is_ok();
            stored.ok().flatten().map(|base| (base.kind, base.data))
        });
        if is_sure { verdict } else { Verdict::AskGit }
    }

    fn index_pack(
        &mut self,
        start: &[u8],
        pack: &mut dyn Read,
        max: u64,
    ) -> Result<u64, PackError> {
        let mut fed = Fed { bytes: 0, end: None };
        let ends = self.ends.clone();
        let shallow = if ends.is_empty() { None } else { Some(self.shallow_file(&ends)?) };
        let strict = self.receive.fsck.as_ref().map(|rules| match rules.argument() {
            argument if argument.is_empty() => "--strict".to_owned(),
            argument => format!("--strict={argument}"),
        });
        let mut git = self.git(&[STREAM_FROM], "index-pack")?;
        if let Some(shallow) = shallow {
            git = git.env("GIT_SHALLOW_FILE", &shallow);
        }
        let finished = git
            .env("GIT_ALLOC_LIMIT", MAX_OBJECT)
            .args(["--stdin", "--fix-thin"])
            .args(strict)
            .arg(format!("--max-input-size={max}"))
            .finish(|stdin| fed.copy(start, pack, stdin, max));
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

/// An object of the repository to build on, if it has at most so many bytes.
fn base(objects: &Objects, id: ObjectId, room: usize) -> Result<Option<Base>, Stop> {
    let refused = |error: StoreError| Stop::Refused(error.into());
    let Some(oid) = Oid::from_gix(id) else { return Ok(None) };
    match objects.header(oid).map_err(refused)? {
        None => Ok(None),
        Some((_, size)) if size > room as u64 => Err(Stop::TooBig),
        Some((kind, _)) => {
            let data = objects.read(oid, kind).map_err(refused)?;
            Ok(Some(Base { kind, data }))
        }
    }
}

/// An object that the repository has under the same id must be the same. Whatever comes in, that one stays.
fn not_another(repository: &Objects, object: &Object) -> Result<(), PackError> {
    let oid = Oid::from_gix(object.id).filter(|oid| repository.has_at_once(*oid));
    let Some(oid) = oid else { return Ok(()) };
    let is_same = match repository.header(oid)? {
        None => true,
        Some((kind, size)) => {
            kind == object.kind
                && size == object.data.len() as u64
                && repository.read(oid, kind)? == object.data
        }
    };
    let what = || format!("SHA1 COLLISION FOUND WITH {oid} !");
    if is_same { Ok(()) } else { Err(PackError::Refused(what())) }
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
        start: &[u8],
        pack: &mut dyn Read,
        stdin: &mut dyn Write,
        max: u64,
    ) -> io::Result<()> {
        stdin.write_all(start)?;
        self.bytes = start.len() as u64;
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
