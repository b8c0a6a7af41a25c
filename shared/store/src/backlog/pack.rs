//! Journaled objects as a pack and its index, without deltas.
//!
//! A pack rather than loose files: together with a `.keep` file it is safe from `git prune` and `git repack` at any
//! moment, also before a ref names what is in it. What piles up, maintenance folds.
//!
//! Source: gitformat-pack(5).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_hash::ObjectId;

use super::Content;
use crate::crash::crash_point;
use crate::error::{Doing, StoreError};
use crate::fetch::write_header;
use crate::fsio;
use crate::quarantine::{self, PREFIX};
use crate::sharing::Sharing;

/// What git gives a pack, before the umask: nobody writes to it again.
const MODE: u32 = 0o444;

/// Magic and version of an index.
const INDEX: &[u8] = b"\xfftOc\0\0\0\x02";

/// Writes journaled objects into packs.
pub(super) struct Packer {
    objects_dir: PathBuf,
    kind: gix_hash::Kind,
    /// The `.keep` files of packs, each with the last record whose refs need it.
    kept: BTreeMap<PathBuf, u64>,
    /// Who may read the packs.
    pub(super) sharing: Sharing,
}

/// The objects of a pack, as its entries are written.
type Entries = BTreeMap<ObjectId, Vec<u8>>;

impl Packer {
    pub(super) fn new(objects_dir: PathBuf, kind: gix_hash::Kind) -> Self {
        Self { objects_dir, kind, kept: BTreeMap::new(), sharing: Sharing::Umask }
    }

    /// Makes the objects visible, flushed, and keeps them until the refs of record `seq` are in their files.
    pub(super) fn write<'a>(
        &mut self,
        objects: impl IntoIterator<Item = (&'a ObjectId, &'a Content)>,
        seq: u64,
    ) -> Result<(), StoreError> {
        let mut objects = objects.into_iter().peekable();
        if objects.peek().is_none() {
            return Ok(());
        }
        let mut entries = Entries::new();
        // One for all: to set one up costs more than most objects do.
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        for (id, (kind, data)) in objects {
            let entry = entry(*kind, data, &mut encoder).map_err(|error| failed(&error))?;
            entries.insert(*id, entry);
        }
        let (pack, sum) = self.pack(&entries)?;
        let folder = self.objects_dir.join("pack");
        let name = folder.join(format!("pack-{sum}"));
        self.keep(name.with_extension("keep"), seq)?;
        if name.with_extension("idx").exists() {
            return Ok(());
        }
        self.place(&name.with_extension("pack"), &pack)?;
        crash_point("settle.packed");
        self.place(&name.with_extension("idx"), &self.index(&entries, &sum)?)?;
        fsio::sync(&folder)
    }

    fn keep(&mut self, file: PathBuf, seq: u64) -> Result<(), StoreError> {
        if let Some(kept) = self.kept.get_mut(&file) {
            *kept = seq.max(*kept);
        } else if quarantine::keep(&file)? {
            self.kept.insert(file, seq);
        }
        Ok(())
    }

    /// Lets go of packs whose refs, up to those of record `settled`, are in their files.
    pub(super) fn release(&mut self, settled: u64) -> Result<(), StoreError> {
        let due = self.kept.iter().filter(|(_, seq)| **seq <= settled);
        let due: Vec<PathBuf> = due.map(|(file, _)| file.clone()).collect();
        for file in due {
            fsio::remove_file(&file)?;
            self.kept.remove(&file);
        }
        Ok(())
    }

    fn pack(&self, entries: &Entries) -> Result<(Vec<u8>, ObjectId), StoreError> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend_from_slice(&count(entries.len())?.to_be_bytes());
        pack.extend(entries.values().flatten());
        let sum = self.checksum(&pack)?;
        pack.extend_from_slice(sum.as_bytes());
        Ok((pack, sum))
    }

    /// Fan-out, names, checksums of entries, their places, then the checksums of pack and index.
    fn index(&self, entries: &Entries, pack: &ObjectId) -> Result<Vec<u8>, StoreError> {
        let mut index = INDEX.to_vec();
        let mut fan_out = [0u32; 256];
        for id in entries.keys() {
            fan_out[usize::from(id.first_byte())] += 1;
        }
        let mut total = 0;
        for n_here in fan_out {
            total += n_here;
            index.extend_from_slice(&total.to_be_bytes());
        }
        for id in entries.keys() {
            index.extend_from_slice(id.as_bytes());
        }
        for entry in entries.values() {
            index.extend_from_slice(&crc32fast::hash(entry).to_be_bytes());
        }
        let mut offset = 12;
        for entry in entries.values() {
            index.extend_from_slice(&count(offset)?.to_be_bytes());
            offset += entry.len();
        }
        index.extend_from_slice(pack.as_bytes());
        let sum = self.checksum(&index)?;
        index.extend_from_slice(sum.as_bytes());
        Ok(index)
    }

    fn checksum(&self, bytes: &[u8]) -> Result<ObjectId, StoreError> {
        let mut hasher = gix_hash::hasher(self.kind);
        hasher.update(bytes);
        hasher.try_finalize().map_err(|error| failed(&error))
    }

    /// Writes a file of `objects/pack` beside its place, flushes it, and moves it there.
    fn place(&self, to: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(fs::Permissions::from_mode(MODE))
            .tempfile_in(&self.objects_dir)
            .doing("create a pack in", &self.objects_dir)?;
        file.write_all(bytes).doing("write", file.path())?;
        file.as_file().sync_all().doing("flush", file.path())?;
        let path = file.path().to_owned();
        self.sharing.share(&path);
        file.persist(to).map(drop).map_err(|error| error.error).doing("rename", &path)
    }
}

fn entry(
    kind: crate::Kind,
    data: &[u8],
    encoder: &mut ZlibEncoder<Vec<u8>>,
) -> std::io::Result<Vec<u8>> {
    write_header(kind, data.len(), encoder.get_mut());
    encoder.write_all(data)?;
    encoder.reset(Vec::new())
}

/// A number of the format. A pack of the journal's is far from its bound.
fn count(n: usize) -> Result<u32, StoreError> {
    u32::try_from(n).ok().filter(|n| *n < 1 << 31).ok_or_else(|| failed(&"the pack is too large"))
}

fn failed(why: &dyn std::fmt::Display) -> StoreError {
    StoreError::WriteObject(why.to_string())
}
