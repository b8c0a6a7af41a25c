//! Loose objects: a few small ones from memory, each into a file of its own.
//!
//! [`stage`] writes and flushes them under names that nobody reads; the caller then gives each its place. Nothing is
//! ever written under an object's own name, so that a file with such a name is whole.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_hash::ObjectId;
use gix_odb::memory::Storage;
use tempfile::{NamedTempFile, TempPath};

use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::objects::Kind;
use crate::quarantine::PREFIX;

/// What git gives a loose object, before the umask: nobody writes to it again.
pub(crate) const MODE: u32 = 0o444;

/// Writes the objects that have no loose file below `objects_dir` yet; each with the place that it is to be moved to. A
/// file that is there is made young, so that garbage collection leaves it until a ref names it.
///
/// A file that is not moved goes with its path.
pub(crate) fn stage(
    objects_dir: &Path,
    written: &Storage,
) -> Result<Vec<(TempPath, PathBuf)>, StoreError> {
    let mut objects: Vec<_> = written.iter().collect();
    objects.sort_by_key(|(id, _)| **id);
    let mut staged = Vec::new();
    for (id, (kind, data)) in objects {
        let place = place(objects_dir, id);
        if !fsio::freshen(&place)? {
            let file = create(objects_dir, *kind, data)?;
            file.as_file().sync_all().doing("flush", file.path())?;
            staged.push((file.into_temp_path(), place));
        }
    }
    Ok(staged)
}

/// The file of an object.
fn place(objects_dir: &Path, id: &ObjectId) -> PathBuf {
    let hex = id.to_hex().to_string();
    let (fan_out, rest) = hex.split_at(2);
    objects_dir.join(fan_out).join(rest)
}

fn create(objects_dir: &Path, kind: Kind, data: &[u8]) -> Result<NamedTempFile, StoreError> {
    let mut file = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(objects_dir)
        .doing("create an object in", objects_dir)?;
    let encoded = encode(kind, data).doing("compress an object for", objects_dir)?;
    file.write_all(&encoded).doing("write", file.path())?;
    Ok(file)
}

/// # Source
/// git's `loose_object_info`: the header `<kind> <size>\0`, then the data, deflated as one stream.
fn encode(kind: Kind, data: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&gix_object::encode::loose_header(kind, data.len() as u64))?;
    encoder.write_all(data)?;
    encoder.finish()
}
