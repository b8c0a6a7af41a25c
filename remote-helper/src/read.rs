//! What stands in a remote repository, read from it: one list of refs, and one fetch of the small documents behind them.
//!
//! Nothing is stored in the repository that this runs in: the documents go into a folder that is gone when they are read.
//!
//! Source: gitprotocol-v2(5), `ls-refs` and `fetch`; `spec/refs.md`, "Documents".

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use gix_protocol::fetch::{Arguments, Response};
use gix_protocol::handshake::Ref;
use gix_protocol::ls_refs::RefPrefixes;
use gix_protocol::transport::client::git::{ConnectMode, blocking_io::Connection};
use gix_protocol::transport::{Protocol, Service};
use gix_protocol::{Command, Handshake, LsRefsCommand};
use gix_utils::progress::Discard;
use zit_model::document::{AgentState, CLAIM_FILE, ClaimRecord, MAX_DOCUMENT, STATE_FILE};
use zit_model::refs::{self, Address};
use zit_model::{Oid, RefName};
use zit_store::{Access, Blob, Objects, PackError, PackLimits, Store, StoreError};

use crate::channel::{Carrier, Channel};

/// What the documents of a repository may take, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// How many objects they may be: a commit, a tree and a file each.
const MAX_OBJECTS: u32 = 3_000_000;

/// The refs that are asked for.
const PREFIXES: [&str; 3] = ["refs/zit/current", "refs/zit/claims/", "refs/zit/agents/"];

/// Why a remote cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The other side says something else than expected, or nothing.
    #[error("cannot {doing}")]
    Exchange {
        /// What was tried.
        doing: &'static str,
        /// What came of it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It answers in an older version.
    #[error("it does not speak protocol 2 of git")]
    TooOld,
    /// The documents are no good, or too many.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// They cannot be kept while they are read.
    #[error("cannot make a folder to read the documents in")]
    Scratch(#[source] io::Error),
    /// They cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What stands in a repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Where `refs/zit/current` is.
    pub current: Option<Oid>,
    /// Every claim, by its ref.
    pub claims: BTreeMap<RefName, ClaimRecord>,
    /// Every agent's state, by its ref.
    pub agents: BTreeMap<RefName, AgentState>,
    /// Refs whose document cannot be read.
    pub unreadable: Vec<RefName>,
}

/// Reads what stands in the repository at the other end.
///
/// # Errors
/// [`ReadError`] when it cannot be read.
pub fn standing(channel: Channel, url: &str) -> Result<Standing, ReadError> {
    let mut remote = Remote::greet(channel, url)?;
    let listed = remote.list()?;
    let mut standing =
        Standing { current: listed.get(&refs::current()).copied(), ..Standing::default() };
    let documents: BTreeMap<_, _> =
        listed.into_iter().filter(|(name, _)| *name != refs::current()).collect();
    if documents.is_empty() {
        return Ok(standing);
    }
    let scratch = tempfile::tempdir().map_err(ReadError::Scratch)?;
    make_repository(scratch.path(), remote.hash()).map_err(ReadError::Scratch)?;
    let store = Store::open(scratch.path(), Access::Referee)?;
    let mut quarantine = store.quarantine()?;
    let limits = PackLimits { max_bytes: MAX_BYTES, max_objects: MAX_OBJECTS };
    let wants: BTreeSet<Oid> = documents.values().copied().collect();
    remote.fetch(&wants, |pack| Ok(quarantine.receive_pack(pack, &limits).map(drop)?))?;
    let objects = quarantine.objects();
    for (name, oid) in documents {
        standing.take(&objects, name, oid);
    }
    Ok(standing)
}

impl Standing {
    /// Takes in the document that a ref names.
    fn take(&mut self, objects: &Objects, name: RefName, oid: Oid) {
        let read = |file| document(objects, oid, file);
        match refs::address(&name) {
            Address::Claim(_) => {
                match read(CLAIM_FILE).and_then(|json| ClaimRecord::from_json(&json).ok()) {
                    Some(claim) => drop(self.claims.insert(name, claim)),
                    None => self.unreadable.push(name),
                }
            }
            Address::AgentState(_) => {
                match read(STATE_FILE).and_then(|json| AgentState::from_json(&json).ok()) {
                    Some(state) => drop(self.agents.insert(name, state)),
                    None => self.unreadable.push(name),
                }
            }
            Address::Head
            | Address::Tag
            | Address::Other
            | Address::Current
            | Address::Change(_)
            | Address::Wip(..)
            | Address::Footprint(_)
            | Address::Request(_)
            | Address::Unknown => {}
        }
    }
}

/// The file of a document's commit; `None` when there is no such file, or it is too large for one.
fn document(objects: &Objects, commit: Oid, file: &str) -> Option<Vec<u8>> {
    let tree = objects.commit(commit).ok()?.tree;
    let entry = objects.entry_at(tree, file.into()).ok()??;
    match objects.blob(entry.oid, MAX_DOCUMENT).ok()? {
        Blob::Bytes(bytes) => Some(bytes),
        Blob::TooLarge(_) => None,
    }
}

/// A bare repository without anything in it.
fn make_repository(path: &Path, hash: gix_hash::Kind) -> io::Result<()> {
    for folder in ["objects/pack", "objects/info", "refs/heads"] {
        fs::create_dir_all(path.join(folder))?;
    }
    fs::write(path.join("HEAD"), "ref: refs/heads/main\n")?;
    let format = if hash == gix_hash::Kind::Sha1 {
        "[core]\n\trepositoryFormatVersion = 0\n\tbare = true\n"
    } else {
        "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
    };
    fs::write(path.join("config"), format)
}

/// The other side, once it has said what it can. In the order of dropping: the streams end before their carrier.
struct Remote {
    connection: Connection<Box<dyn io::Read>, Box<dyn io::Write>>,
    handshake: Handshake,
    _carrier: Option<Carrier>,
}

impl Remote {
    fn greet(channel: Channel, url: &str) -> Result<Self, ReadError> {
        let Channel { from, to, carrier } = channel;
        let mode = ConnectMode::Process;
        let nowhere = None::<(String, Option<u16>)>;
        let mut connection = Connection::new(from, to, Protocol::V2, url, nowhere, mode, false);
        let handshake = gix_protocol::handshake(
            &mut connection,
            Service::UploadPack,
            |_| Ok(None),
            Vec::new(),
            &mut Discard,
        )
        .map_err(failed("find out what it can"))?;
        if handshake.server_protocol_version != Protocol::V2 {
            return Err(ReadError::TooOld);
        }
        Ok(Self { connection, handshake, _carrier: carrier })
    }

    /// The hash function of the repository.
    fn hash(&self) -> gix_hash::Kind {
        let format = self.handshake.capabilities.capability("object-format");
        let is_sha256 = format.is_some_and(|format| format.value() == Some("sha256".into()));
        if is_sha256 { gix_hash::Kind::Sha256 } else { gix_hash::Kind::Sha1 }
    }

    /// The refs that documents are behind. What has no name or oid of ours is left out.
    fn list(&mut self) -> Result<BTreeMap<RefName, Oid>, ReadError> {
        let mut prefixes = RefPrefixes::new();
        prefixes.extend(PREFIXES.map(Into::into));
        let command = LsRefsCommand::new(Some(prefixes), &self.handshake.capabilities, agent());
        let listed = command
            .invoke_blocking(&mut self.connection, &mut Discard, false)
            .map_err(failed("list its refs"))?;
        let read = |listed: &Ref| {
            let (name, oid, _) = listed.unpack();
            let name = RefName::new(name).ok()?;
            let is_ours =
                PREFIXES.iter().any(|prefix| name.as_bstr().starts_with(prefix.as_bytes()));
            Some((name, Oid::from_gix(oid?.to_owned())?)).filter(|_| is_ours)
        };
        Ok(listed.iter().filter_map(read).collect())
    }

    /// Fetches objects with all that they need; `take` reads the pack.
    fn fetch(
        &mut self,
        wants: &BTreeSet<Oid>,
        take: impl FnOnce(&mut dyn io::Read) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let version = Protocol::V2;
        let mut features = Command::Fetch.default_features(version, &self.handshake.capabilities);
        features.push(agent());
        let mut arguments = Arguments::new(version, features, false);
        for want in wants {
            arguments.want(want.as_gix());
        }
        let doing = "fetch its documents";
        let mut reader = arguments.send(&mut self.connection, true).map_err(failed(doing))?;
        let response =
            Response::from_line_reader(version, &mut reader, true, false).map_err(failed(doing))?;
        if !response.has_pack() {
            return Err(failed(doing)("there is no pack in the answer"));
        }
        reader.set_progress_handler(Some(Box::new(|_, _| ControlFlow::Continue(()))));
        take(&mut reader)
    }
}

/// This program, as it is told to the other side.
fn agent() -> gix_protocol::command::Feature {
    ("agent", Some(concat!("git-zit/", env!("CARGO_PKG_VERSION")).into()))
}

fn failed<E: Into<Box<dyn Error + Send + Sync>>>(doing: &'static str) -> impl Fn(E) -> ReadError {
    move |source| ReadError::Exchange { doing, source: source.into() }
}
