//! The targets that need a repository: packs and their objects, the journal, and files that another program may have
//! written. Each thread has one, in a temporary folder.

use std::cell::RefCell;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use bstr::ByteSlice as _;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use zit_model::RefName;
use zit_store::journal::{Journal, JournalOptions, MemorySlots, Seq, Slots as _};
use zit_store::{Access, PackLimits, Store};

use crate::seeds;

/// More than a pack has that is read in memory: what comes with so much goes through git.
const PADDING: usize = 4 << 20;

const LIMITS: PackLimits = PackLimits { max_bytes: 16 << 20, max_objects: 1000 };

thread_local! {
    static STORE: RefCell<Option<(TempDir, Store)>> = const { RefCell::new(None) };
    static FOLDER: RefCell<Option<TempDir>> = const { RefCell::new(None) };
}

/// A pack is received or refused, with its checksum as it is and with one that is right.
pub(crate) fn pack(bytes: &[u8]) {
    let body = bytes.get(..bytes.len().saturating_sub(20)).unwrap_or_default();
    let _ = receive(bytes);
    let _ = receive(&seeds::signed(body.to_vec()));
}

/// Objects that are received in a small pack are received in a large one as well, which git reads: no check here is
/// weaker than git's. The first byte of each object is its kind.
pub(crate) fn objects(bytes: &[u8]) {
    let entries = bytes.split_str(seeds::BORDER).filter_map(|piece| {
        let (&kind, content) = piece.split_first()?;
        Some((kind % 4 + 1, content))
    });
    let entries: Vec<_> = entries.take(100).collect();
    if receive(&seeds::pack_of(&entries)) {
        let padding = vec![b'x'; PADDING];
        let padded: Vec<_> =
            [(3, &padding[..])].into_iter().chain(entries.iter().copied()).collect();
        assert!(receive(&seeds::pack_of_stored(&padded)), "git refuses what was taken");
    }
}

/// Whether the pack was taken.
fn receive(pack: &[u8]) -> bool {
    STORE.with_borrow_mut(|store| {
        let (_, store) = store.get_or_insert_with(|| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("r.git");
            Store::init(&path).expect("an empty folder");
            let store = Store::open(&path, Access::Referee).expect("a new repository");
            (folder, store)
        });
        let mut quarantine = store.quarantine().expect("the folder is there");
        quarantine.receive_pack(&mut &*pack, &LIMITS).is_ok()
    })
}

/// A journal that holds these bytes as a batch or as a checkpoint opens or says why not.
pub(crate) fn journal(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes)] {
        let batch = MemorySlots::default();
        if batch.create(Seq(1), bytes).is_ok()
            && let Ok((journal, _)) = Journal::over(Box::new(batch), [7; 16])
        {
            read(&journal);
        }
        let checkpoint = MemorySlots::default();
        if checkpoint.put_checkpoint(Seq(1), bytes).is_ok() {
            let _ =
                Journal::over(Box::new(checkpoint), [7; 16]).map(|(journal, _)| journal.verify());
        }
    }
}

/// A journal in a folder reads the same by looking and by opening, and once opened it opens again.
pub(crate) fn journal_file(bytes: &[u8]) {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().expect("a folder")).path();
        let segment = folder.join("00000000000000000001.log");
        for bytes in [bytes, &sealed(bytes)] {
            fs::write(&segment, bytes).expect("a folder that can be written");
            let looked = Journal::read_only(folder).map(|(journal, _)| journal.tail());
            let Ok((journal, _)) = Journal::open(folder, JournalOptions::default()) else {
                continue;
            };
            read(&journal);
            assert_eq!(looked.ok(), Some(journal.tail()));
            drop(journal);
            Journal::open(folder, JournalOptions::default()).expect("it was opened before");
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let _ = fs::remove_file(entry.path());
        }
    });
}

fn read(journal: &Journal) {
    let _ = journal.verify();
    let records = journal.read_from(Seq(1));
    assert!(records.is_err() || records.is_ok_and(|records| records.take(10_000).count() < 10_000));
}

/// With the length, checks and hashes that the bytes have, as far as they are a batch or a checkpoint, so that what is
/// behind them is read.
///
/// # Source
/// `spec/journal.md`, "Batch" and "Checkpoint".
fn sealed(bytes: &[u8]) -> Vec<u8> {
    const HASH: usize = 32;
    const HEADER: usize = 80;
    let mut bytes = bytes.to_vec();
    if bytes.starts_with(b"zitk") && bytes.len() > HASH {
        let body = bytes.len() - HASH;
        let hash = Sha256::digest(&bytes[..body]);
        bytes[body..].copy_from_slice(&hash);
    } else if bytes.starts_with(b"zitj") && bytes.len() > HEADER + HASH {
        let end = bytes.len() - HASH;
        let payload = u32::try_from(end - HEADER).unwrap_or(u32::MAX);
        bytes[8..12].copy_from_slice(&payload.to_be_bytes());
        let check = Sha256::digest(&bytes[..72]);
        bytes[72..HEADER].copy_from_slice(&check[..8]);
        let hash = chained(&bytes[..end]);
        bytes[end..].copy_from_slice(&hash);
    }
    bytes
}

/// The hash that ends the chain of a batch.
fn chained(batch: &[u8]) -> [u8; 32] {
    let (header, mut payload) = batch.split_at(80);
    let mut hash: [u8; 32] = header[40..72].try_into().expect("32 bytes");
    let mut seq = u64::from_be_bytes(header[16..24].try_into().expect("8 bytes"));
    while let Some((len, rest)) = payload.split_first_chunk() {
        let len = usize::try_from(u32::from_be_bytes(*len)).unwrap_or(usize::MAX);
        let Some((record, rest)) = rest.split_at_checked(len) else { break };
        hash = Sha256::new()
            .chain_update(hash)
            .chain_update(seq.to_be_bytes())
            .chain_update(record)
            .finalize()
            .into();
        seq = seq.wrapping_add(1);
        payload = rest;
    }
    hash
}

/// A repository with such a file can be read, or the error says what is wrong. Nothing but the file is different.
pub(crate) fn file(name: &str, bytes: &[u8]) {
    FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().expect("a folder")).path();
        let path = folder.join("r.git");
        if !path.exists() {
            Store::init(&path).expect("an empty folder");
        }
        let before = fs::read(path.join(name)).ok();
        replace(&path.join(name), bytes);
        for access in [Access::Fetch, Access::ReadOnly, Access::Referee] {
            match Store::open(&path, access) {
                Ok(store) => look(&store),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
        match before {
            Some(before) => replace(&path.join(name), &before),
            None => fs::remove_file(path.join(name)).unwrap_or_default(),
        }
    });
}

fn look(store: &Store) {
    let main = RefName::new("refs/heads/main").expect("a refname");
    let _ = (store.config(), store.head(), store.resolved_head());
    let _ = (store.refs(), store.refs_below("refs/heads/"), store.find_ref(&main));
}

fn replace(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it can be made");
    let next = path.with_extension("fuzz");
    let mut file = fs::File::create(&next).expect("a folder that can be written");
    file.write_all(bytes).expect("a file that can be written");
    fs::rename(&next, path).expect("a folder that can be written");
}
