//! Objects that are journaled and not yet in a file of the object database.
//!
//! Every handle on the repository's objects looks here first. An object leaves only after its file is in place, so that
//! a reader finds it in one of the two.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use gix_hash::{ObjectId, oid};
use gix_object::Data;
use gix_odb::find::Header;

use crate::Kind;

/// The content of an object, shared between the journal's batch, readers and whoever writes the file.
pub(crate) type Content = (Kind, Arc<[u8]>);

/// The objects, shared by all handles of one store.
#[derive(Clone, Default)]
pub(crate) struct Pending(Arc<RwLock<HashMap<ObjectId, Content>>>);

impl Pending {
    pub(crate) fn get(&self, id: &oid) -> Option<Content> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(crate) fn insert(&self, objects: impl IntoIterator<Item = (ObjectId, Content)>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).extend(objects);
    }

    pub(crate) fn remove<'a>(&self, ids: impl IntoIterator<Item = &'a ObjectId>) {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            objects.remove(id);
        }
    }
}

/// The objects of a pack, for the time in which they are looked at again and again. Their files are there too.
#[derive(Clone, Default)]
pub(crate) struct Unpacked(Arc<HashMap<ObjectId, (Kind, Vec<u8>)>>);

impl Unpacked {
    pub(crate) fn new(objects: impl IntoIterator<Item = (ObjectId, (Kind, Vec<u8>))>) -> Self {
        Self(Arc::new(objects.into_iter().collect()))
    }
}

/// A handle on files that looks among what is in memory first.
pub(crate) struct Beside {
    files: gix_odb::HandleArc,
    pending: Pending,
    unpacked: Unpacked,
}

impl Beside {
    pub(crate) fn new(files: gix_odb::HandleArc, pending: Pending, unpacked: Unpacked) -> Self {
        Self { files, pending, unpacked }
    }

    /// Whether the object is there, as far as that is known without looking for packs that arrived since.
    pub(crate) fn exists_without_refresh(&self, id: &oid) -> bool {
        self.header(id).is_some() || self.files.exists_without_refresh(id)
    }

    /// Does not look again for packs that arrive later.
    pub(crate) fn refresh_never(&mut self) {
        self.files.refresh_never();
    }

    /// The header of an object in memory.
    fn header(&self, id: &oid) -> Option<gix_object::Header> {
        let (kind, size) = match self.unpacked.0.get(id) {
            Some((kind, data)) => (*kind, data.len()),
            None => self.pending.get(id).map(|(kind, data)| (kind, data.len()))?,
        };
        Some(gix_object::Header { kind, size: size as u64 })
    }
}

impl gix_object::Find for Beside {
    fn try_find<'a>(
        &self,
        id: &oid,
        buffer: &'a mut Vec<u8>,
    ) -> gix_error::Result<Option<Data<'a>>> {
        let kind = if let Some((kind, data)) = self.unpacked.0.get(id) {
            buffer.clear();
            buffer.extend_from_slice(data);
            *kind
        } else if let Some((kind, data)) = self.pending.get(id) {
            buffer.clear();
            buffer.extend_from_slice(&data);
            kind
        } else {
            return self.files.try_find(id, buffer);
        };
        Ok(Some(Data { kind, object_hash: id.kind(), data: buffer }))
    }
}

impl gix_odb::Header for Beside {
    fn try_header(&self, id: &oid) -> gix_error::Result<Option<Header>> {
        match self.header(id) {
            Some(header) => Ok(Some(Header::Loose { kind: header.kind, size: header.size })),
            None => self.files.try_header(id),
        }
    }
}

impl gix_object::FindHeader for Beside {
    fn try_header(&self, id: &oid) -> gix_error::Result<Option<gix_object::Header>> {
        match self.header(id) {
            Some(header) => Ok(Some(header)),
            None => gix_object::FindHeader::try_header(&self.files, id),
        }
    }
}
