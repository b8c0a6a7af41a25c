//! A disk in memory that fails on request and forgets what was not flushed.
//!
//! - A power loss keeps flushed bytes; of the others any set of sectors, and any length in between.
//! - A failed flush leaves what was to be flushed readable and marks it clean: no later flush makes it durable.
//! - Names that were not flushed appear, vanish or stay in any combination.
//! - A full disk takes a part of a write.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::disk::{Disk, DiskFile, Open};

const SECTOR: usize = 512;

/// What happens at the operation that was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The operation fails.
    Error,
    /// A write finds the disk full; other operations work.
    Full,
    /// The operation happens in part, and from then on nothing works until the machine starts again.
    Crash,
}

#[derive(Clone)]
pub(super) struct SimDisk(Arc<Mutex<Sim>>);

struct Sim {
    dice: fastrand::Rng,
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending: Vec<Naming>,
    /// Operations until the fault.
    fault: Option<(u64, Fault)>,
    down: bool,
}

#[derive(Clone, Default)]
struct Inode {
    live: Vec<u8>,
    /// What the sectors hold, also past the length.
    durable: Vec<u8>,
    durable_len: usize,
    dirty: BTreeSet<usize>,
}

/// A change of names that was not flushed.
enum Naming {
    Link(String, usize),
    Unlink(String),
}

struct SimFile {
    disk: SimDisk,
    inode: usize,
}

impl SimDisk {
    pub(super) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Sim {
            dice: fastrand::Rng::with_seed(seed),
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            pending: Vec::new(),
            fault: None,
            down: false,
        })))
    }

    /// Lets the operation after `operations` more go wrong.
    pub(super) fn plan(&self, operations: u64, fault: Fault) {
        self.sim().fault = Some((operations, fault));
    }

    pub(super) fn calm(&self) {
        self.sim().fault = None;
    }

    pub(super) fn is_down(&self) -> bool {
        self.sim().down
    }

    /// The power goes and comes back.
    pub(super) fn power_loss(&self) {
        let mut sim = self.sim();
        let Sim { dice, inodes, names, durable_names, pending, fault, down } = &mut *sim;
        for inode in inodes {
            inode.lose_power(dice);
        }
        for naming in pending.drain(..) {
            match naming {
                Naming::Link(name, inode) if dice.bool() => _ = durable_names.insert(name, inode),
                Naming::Unlink(name) if dice.bool() => _ = durable_names.remove(&name),
                Naming::Link(..) | Naming::Unlink(_) => {}
            }
        }
        names.clone_from(durable_names);
        (*fault, *down) = (None, false);
    }

    /// Changes a file in place, as damage does.
    pub(super) fn damage(&self, name: &str, harm: impl FnOnce(&mut Vec<u8>)) {
        let mut sim = self.sim();
        let inode = sim.names[name];
        let inode = &mut sim.inodes[inode];
        harm(&mut inode.live);
        inode.durable.clone_from(&inode.live);
        inode.durable_len = inode.live.len();
    }

    pub(super) fn content(&self, name: &str) -> Vec<u8> {
        let sim = self.sim();
        sim.inodes[sim.names[name]].live.clone()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.sim().names.keys().cloned().collect()
    }

    fn sim(&self) -> MutexGuard<'_, Sim> {
        self.0.lock().unwrap()
    }
}

impl Sim {
    /// Counts an operation; says what goes wrong with it.
    fn operation(&mut self) -> Option<Fault> {
        if self.down {
            return Some(Fault::Error);
        }
        let (left, fault) = self.fault.as_mut()?;
        if *left > 0 {
            *left -= 1;
            return None;
        }
        let fault = *fault;
        // A full disk stays full until somebody makes room.
        if fault != Fault::Full {
            self.fault = None;
        }
        self.down = fault == Fault::Crash;
        Some(fault)
    }

    /// An operation that happens or does not: whether it does, and whether it says so.
    fn whole(&mut self) -> (bool, io::Result<()>) {
        match self.operation() {
            None | Some(Fault::Full) => (true, Ok(())),
            Some(Fault::Error) => (false, Err(broken())),
            Some(Fault::Crash) => (self.dice.bool(), Err(broken())),
        }
    }

    fn inode(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn link(&mut self, name: &str, inode: usize) {
        self.names.insert(name.to_owned(), inode);
        self.pending.push(Naming::Link(name.to_owned(), inode));
    }

    fn unlink(&mut self, name: &str) {
        self.names.remove(name);
        self.pending.push(Naming::Unlink(name.to_owned()));
    }
}

impl Inode {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[offset..end].copy_from_slice(bytes);
        self.dirty.extend(offset / SECTOR..=(end - 1) / SECTOR);
    }

    fn persist(&mut self, sector: usize) {
        let start = sector * SECTOR;
        let end = (start + SECTOR).min(self.live.len()).min(self.durable.len());
        if start < end {
            self.durable[start..end].copy_from_slice(&self.live[start..end]);
        }
    }

    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        self.durable_len = self.live.len();
        for sector in std::mem::take(&mut self.dirty) {
            self.persist(sector);
        }
    }

    /// Some of it reaches the disk, and nobody learns which. Content and length go their own ways.
    fn sync_in_part(&mut self, dice: &mut fastrand::Rng) {
        let [low, high] =
            [self.durable_len.min(self.live.len()), self.durable_len.max(self.live.len())];
        self.durable_len = match dice.u8(..3) {
            0 => low,
            1 => high,
            _ => dice.usize(low..=high),
        };
        let content = self.durable.len().max(self.live.len());
        self.durable.resize(content, 0);
        let odds = dice.u8(..4);
        for sector in std::mem::take(&mut self.dirty) {
            if dice.u8(..3) < odds {
                self.persist(sector);
            }
        }
    }

    fn lose_power(&mut self, dice: &mut fastrand::Rng) {
        self.sync_in_part(dice);
        self.durable.resize(self.durable_len, 0);
        self.live.clone_from(&self.durable);
    }
}

impl Disk for SimDisk {
    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut sim = self.sim();
        sim.whole().1?;
        let len = |inode: &usize| sim.inodes[*inode].live.len() as u64;
        Ok(sim.names.iter().map(|(name, inode)| (name.clone(), len(inode))).collect())
    }

    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut sim = self.sim();
        let there = sim.inode(name);
        let (happens, answer) = sim.whole();
        let inode = match (how, there) {
            (Open::New, Ok(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Open::Existing, found) => found?,
            (Open::New | Open::Emptied, _) => {
                if happens {
                    // A new inode is as good as an old one emptied, and forgets as much.
                    sim.inodes.push(Inode::default());
                    let inode = sim.inodes.len() - 1;
                    sim.link(name, inode);
                }
                sim.inodes.len().saturating_sub(1)
            }
        };
        answer?;
        Ok(Box::new(SimFile { disk: self.clone(), inode }))
    }

    fn read(&self, name: &str, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut sim = self.sim();
        sim.whole().1?;
        let live = &sim.inodes[sim.inode(name)?].live;
        let start = usize::try_from(offset).unwrap().min(live.len());
        Ok(live[start..start.saturating_add(len).min(live.len())].to_vec())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut sim = self.sim();
        let inode = sim.inode(from)?;
        let (happens, answer) = sim.whole();
        if happens {
            sim.link(to, inode);
            sim.unlink(from);
        }
        answer
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut sim = self.sim();
        sim.inode(name)?;
        let (happens, answer) = sim.whole();
        if happens {
            sim.unlink(name);
        }
        answer
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut sim = self.sim();
        sim.whole().1?;
        sim.durable_names = sim.names.clone();
        sim.pending.clear();
        Ok(())
    }

    fn folder(&self) -> &Path {
        Path::new("sim")
    }
}

impl DiskFile for SimFile {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut sim = self.disk.sim();
        let fault = sim.operation();
        let part = sim.dice.usize(..=bytes.len());
        let offset = usize::try_from(offset).unwrap();
        let down_before = sim.down && fault == Some(Fault::Error);
        if down_before {
            return Err(broken());
        }
        let len = if fault.is_none() { bytes.len() } else { part };
        sim.inodes[self.inode].write(offset, &bytes[..len]);
        match fault {
            None => Ok(()),
            Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Error | Fault::Crash) => Err(broken()),
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let mut sim = self.disk.sim();
        let (happens, answer) = sim.whole();
        if happens {
            let inode = &mut sim.inodes[self.inode];
            let len = usize::try_from(len).unwrap();
            inode.live.resize(len, 0);
            inode.dirty.retain(|sector| sector * SECTOR < len);
        }
        answer
    }

    fn sync(&self) -> io::Result<()> {
        let mut sim = self.disk.sim();
        let was_down = sim.down;
        match sim.operation() {
            None | Some(Fault::Full) => {
                sim.inodes[self.inode].sync();
                Ok(())
            }
            Some(Fault::Error | Fault::Crash) => {
                if !was_down {
                    let Sim { dice, inodes, .. } = &mut *sim;
                    inodes[self.inode].sync_in_part(dice);
                }
                Err(broken())
            }
        }
    }
}

fn broken() -> io::Error {
    io::Error::other("injected")
}
