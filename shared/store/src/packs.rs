//! The opened packs of a repository, for as long as all of them are there.
//!
//! The library looks for packs that arrived, and goes on reading those that vanished: an object that garbage collection
//! has pruned would count as here, and a ref could come to name it. So whoever takes a handle asks [`Packs::has_lost_any`]
//! first, which costs one stat while nothing changes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::{Doing, StoreError};
use crate::fsio::{Stamp, is_absent};
use crate::objects;

/// Longer than any tick by which file systems count: what changed that short ago may change again under the same stamp.
const COARSE: Duration = Duration::from_millis(30);

/// An open object database, and the packs that were seen in its folder.
pub(crate) struct Packs {
    store: Arc<gix_odb::Store>,
    /// The folder's stamp when its names were read; `None` if it may not tell them from others.
    stamp: Option<Stamp>,
    names: BTreeSet<OsString>,
}

impl Packs {
    /// Opens those in the folder `objects`.
    pub(crate) fn open(objects: &Path, kind: gix_hash::Kind) -> Result<Self, StoreError> {
        // Whatever is opened was there after this look, or arrives later.
        let (stamp, names) = look(&objects.join("pack"))?;
        Ok(Self { store: objects::open(objects, kind)?, stamp, names })
    }

    pub(crate) fn store(&self) -> &Arc<gix_odb::Store> {
        &self.store
    }

    /// Whether a pack that was there is gone.
    pub(crate) fn has_lost_any(&mut self, objects: &Path) -> Result<bool, StoreError> {
        let folder = objects.join("pack");
        if self.stamp.is_some() && Stamp::of(&folder)? == self.stamp {
            return Ok(false);
        }
        let (stamp, names) = look(&folder)?;
        let has_lost_any = !self.names.is_subset(&names);
        (self.stamp, self.names) = (stamp, names);
        Ok(has_lost_any)
    }
}

/// The packs in a folder, and its stamp from before they were listed.
fn look(folder: &Path) -> Result<(Option<Stamp>, BTreeSet<OsString>), StoreError> {
    let stamp = Stamp::of(folder)?;
    let changed = fs::metadata(folder).and_then(|meta| meta.modified());
    let is_old = |at: SystemTime| at.elapsed().is_ok_and(|age| age > COARSE);
    let stamp = stamp.filter(|_| changed.is_ok_and(is_old));
    let mut names = BTreeSet::new();
    match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => {}
        entries => {
            for entry in entries.doing("list", folder)? {
                let name = entry.doing("list", folder)?.file_name();
                if Path::new(&name).extension().is_some_and(|extension| extension == "pack") {
                    names.insert(name);
                }
            }
        }
    }
    Ok((stamp, names))
}
