//! Deltas to objects: from bases inward, with a list of what is ready in place of recursion.

use std::collections::{BTreeMap, HashMap, HashSet};

use gix_hash::ObjectId;
use gix_pack::data::entry::Header as What;

use super::entry::Entry;
use super::{Base, Object, Stop, Unpacked, bad_object, delta, reserve};
use crate::objects::Kind;
use crate::pack::PackError;

/// Resolves every entry, with bases from the repository where the pack lacks them.
pub(super) fn resolve(
    entries: Vec<Entry>,
    hash: gix_hash::Kind,
    room: &mut usize,
    base: &mut dyn FnMut(ObjectId, usize) -> Result<Option<Base>, Stop>,
) -> Result<Unpacked, Stop> {
    let objects = Vec::with_capacity(entries.len());
    let mut resolver = Resolver {
        unpacked: Unpacked { objects, bases: Vec::new(), hash },
        deltas: HashMap::new(),
        at: HashMap::new(),
        of: BTreeMap::new(),
        room,
    };
    let ready = resolver.sort(entries)?;
    resolver.settle(ready)?;
    for id in resolver.of.keys().copied().collect::<Vec<_>>() {
        // One that came up meanwhile, as an object of the pack, waits no more.
        if resolver.of.contains_key(&id)
            && let Some(base) = base(id, *resolver.room)?
        {
            resolver.add_base(id, base)?;
        }
    }
    resolver.finish()
}

/// A resolution under way.
struct Resolver<'a> {
    unpacked: Unpacked,
    /// Unresolved deltas by their offset.
    deltas: HashMap<usize, Delta>,
    /// The offsets of deltas, by the offset of their base.
    at: HashMap<usize, Vec<usize>>,
    /// The offsets of deltas, by the id of their base.
    of: BTreeMap<ObjectId, Vec<usize>>,
    room: &'a mut usize,
}

struct Delta {
    data: Vec<u8>,
    crc32: u32,
}

/// An object without a name.
struct Ready {
    offset: usize,
    kind: Kind,
    data: Vec<u8>,
    crc32: u32,
}

impl Resolver<'_> {
    /// Tells objects and deltas apart.
    fn sort(&mut self, entries: Vec<Entry>) -> Result<Vec<Ready>, Stop> {
        let mut ready = Vec::new();
        for Entry { offset, what, data, crc32 } in entries {
            let kind = match what {
                What::Commit => Kind::Commit,
                What::Tree => Kind::Tree,
                What::Blob => Kind::Blob,
                What::Tag => Kind::Tag,
                What::OfsDelta { base_distance } => {
                    let distance = usize::try_from(base_distance).ok().filter(|d| *d > 0);
                    let at = distance.and_then(|distance| offset.checked_sub(distance));
                    let at = at.ok_or_else(|| bad_object("delta base offset is out of bound"))?;
                    self.at.entry(at).or_default().push(offset);
                    self.deltas.insert(offset, Delta { data, crc32 });
                    continue;
                }
                What::RefDelta { base_id } => {
                    self.of.entry(base_id).or_default().push(offset);
                    self.deltas.insert(offset, Delta { data, crc32 });
                    continue;
                }
            };
            ready.push(Ready { offset, kind, data, crc32 });
        }
        Ok(ready)
    }

    /// Names what is ready, and makes ready what waited for it.
    fn settle(&mut self, mut ready: Vec<Ready>) -> Result<(), Stop> {
        while let Some(Ready { offset, kind, data, crc32 }) = ready.pop() {
            let id = gix_object::compute_hash(self.unpacked.hash, kind, &data)
                .map_err(|error| bad_object(error.to_string()))?;
            let waiting = self.at.remove(&offset).unwrap_or_default();
            ready.extend(self.applied(waiting, kind, &data)?);
            let waiting = self.of.remove(&id).unwrap_or_default();
            ready.extend(self.applied(waiting, kind, &data)?);
            self.unpacked.objects.push(Object { id, kind, data, offset, crc32 });
        }
        Ok(())
    }

    fn add_base(&mut self, id: ObjectId, base: Base) -> Result<(), Stop> {
        let Base { kind, data } = base;
        reserve(self.room, data.len())?;
        let waiting = self.of.remove(&id).unwrap_or_default();
        let ready = self.applied(waiting, kind, &data)?;
        self.unpacked.bases.push(Object { id, kind, data, offset: 0, crc32: 0 });
        self.settle(ready)
    }

    /// What the deltas at these offsets make of their base.
    fn applied(
        &mut self,
        offsets: Vec<usize>,
        kind: Kind,
        base: &[u8],
    ) -> Result<Vec<Ready>, Stop> {
        let mut made = Vec::new();
        for offset in offsets {
            if let Some(Delta { data, crc32 }) = self.deltas.remove(&offset) {
                let data = delta::apply(base, &data, self.room)?;
                made.push(Ready { offset, kind, data, crc32 });
            }
        }
        Ok(made)
    }

    /// All is resolved, and an index names each object once.
    fn finish(self) -> Result<Unpacked, Stop> {
        if !self.deltas.is_empty() {
            let s = if self.deltas.len() == 1 { "" } else { "s" };
            let what = format!("pack has {} unresolved delta{s}", self.deltas.len());
            return Err(PackError::MissingBase(what).into());
        }
        let mut unpacked = self.unpacked;
        unpacked.objects.sort_by_key(|object| object.offset);
        let mut ids = HashSet::with_capacity(unpacked.objects.len());
        for object in &unpacked.objects {
            if !ids.insert(object.id) {
                let what = format!("The same object {} appears twice in the pack", object.id);
                return Err(PackError::Refused(what).into());
            }
        }
        unpacked.bases.retain(|base| !ids.contains(&base.id));
        Ok(unpacked)
    }
}
