//! Recovery: finishes what the journal says has happened, and undoes what it does not know.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bstr::BStr;
use zit_model::{Oid, RefChange, RefName, RefUpdate};

use super::apply::{self, PackedLock, Step};
use super::check;
use super::ends;
use super::ledger::{Ledger, stored};
use super::lock::{self, Lock, LockError};
use super::tables::Tables;
use crate::backlog::{Content, Debt, Mark};
use crate::error::{Doing, StoreError};
use crate::journal::{Draft, Origin, Record, Seq};
use crate::refs::{Files, Form, Reftable, Value, is_deferred};
use crate::{Store, fsio, shallow, update_ref};

/// How often refs of a reftable are looked at again that others move meanwhile.
const ATTEMPTS: u32 = 3;

/// How long a program is waited for that outlived its parent, and how long between two looks.
const ORPHAN_WAIT: Duration = Duration::from_secs(5);
const ORPHAN_PAUSE: Duration = Duration::from_millis(2);

/// Carries out every record that may not be in the files, and leaves no lock of ours anywhere. Can itself be
/// interrupted at any point.
pub(crate) fn recover(store: &Store, ledger: &mut Ledger) -> Result<(), StoreError> {
    // What is staged while the journal is whole waits for its flush like before.
    ledger.flush(store, None, None)?;
    // After a failed append only the disk knows how the journal ends.
    if std::mem::replace(&mut ledger.unfinished, true) {
        ledger.reopen(&store.common_dir().join("zit"))?;
    }
    undo_folder(store, &ledger.folder)?;
    let from = unsettled(store, ledger);
    let mut debt = Debt { seq: ledger.last_seq(), ..Debt::default() };
    let (mut chains, mut roots) = (BTreeMap::new(), BTreeSet::new());
    let journal = Arc::clone(&ledger.journal);
    for record in journal.read_from(ledger.checkpoint.next())? {
        let record = record?;
        ledger.learn(&record);
        if record.seq >= from {
            follow(&record, &mut debt, &mut chains);
            roots.extend(ends::of(&record));
        }
    }
    show(store, &debt)?;
    store.backlog()?.place(&mut debt)?;
    ends::again(store, ledger, roots)?;
    let overtaken = carry_out(store, ledger, &chains)?;
    let backlog = store.backlog()?;
    backlog.follow(journal, ledger.base(), ledger.checkpoint, from.0.saturating_sub(1));
    backlog.owe(debt);
    ledger.unfinished = false;
    for (update, time_ms) in overtaken {
        let mut draft = Draft::new(time_ms, "", Origin::Override);
        draft.changes = vec![update];
        ledger.enter(store, draft)?;
    }
    ledger.flush(store, None, None)
}

/// The first record that may not be in the files. What this process has settled is; what another one has settled is
/// as long as the machine has not been started again since and this is no copy; and all up to the checkpoint is.
fn unsettled(store: &Store, ledger: &Ledger) -> Seq {
    let settled = store.backlog().map_or(0, |backlog| backlog.settled());
    let marked = Mark::read(store.common_dir()).filter(|mark| {
        // One that is ahead belongs to a journal that is gone.
        mark.holds(store.common_dir()) && mark.seq <= ledger.last_seq()
    });
    let marked = marked.map_or(0, |mark| mark.seq);
    Seq(settled.max(marked).max(ledger.checkpoint.0).saturating_add(1))
}

/// The values that one ref took, as the records tell.
struct Chain {
    /// Every value but the last.
    before: Vec<Option<Oid>>,
    last: Option<Oid>,
    time_ms: u64,
}

fn follow(record: &Record, debt: &mut Debt, chains: &mut BTreeMap<RefName, Chain>) {
    for object in &record.objects {
        let content: Content = (object.kind, Arc::from(object.bytes.as_slice()));
        debt.objects.insert(object.oid.as_gix().to_owned(), content);
    }
    for update in &record.changes {
        let (old, new) = (update.change.old_value(), update.change.new_value());
        if is_deferred(update.name.as_bstr()) {
            debt.refs.insert(update.name.clone(), new);
            continue;
        }
        let none = || Chain { before: Vec::new(), last: None, time_ms: 0 };
        let chain = chains.entry(update.name.clone()).or_insert_with(none);
        chain.before.push(old);
        if !chain.before.contains(&chain.last) {
            chain.before.push(chain.last);
        }
        (chain.last, chain.time_ms) = (new, record.time_ms);
    }
}

/// Shows readers the deferred refs and the objects.
fn show(store: &Store, debt: &Debt) -> Result<(), StoreError> {
    let objects = debt.objects.iter().map(|(id, content)| (*id, content.clone()));
    store.backlog()?.pending().insert(objects);
    let handle = store.objects()?;
    let table = store.refs.table();
    table.discard();
    for (name, new) in &debt.refs {
        let stored = new.map(|oid| {
            let change = RefChange::Create { new: oid };
            stored(&RefUpdate { name: name.clone(), change }, &handle)
        });
        let stored = stored.transpose()?.flatten();
        table.stage([(name.as_bstr().to_owned(), stored)]);
    }
    table.publish();
    Ok(())
}

/// Moves the refs whose files lag behind; those that another program moved come back, with when that was noticed.
fn carry_out(
    store: &Store,
    ledger: &Ledger,
    chains: &BTreeMap<RefName, Chain>,
) -> Result<Vec<(RefUpdate, u64)>, StoreError> {
    match store.refs.form() {
        Form::Files(files) => carry_out_files(store, files, ledger, chains),
        Form::Reftable(tables) => carry_out_tables(store, tables, ledger, chains),
    }
}

fn carry_out_files(
    store: &Store,
    files: &Files,
    ledger: &Ledger,
    chains: &BTreeMap<RefName, Chain>,
) -> Result<Vec<(RefUpdate, u64)>, StoreError> {
    let Behind { updates, overtaken } = behind(store, chains)?;
    let mut steps = Vec::new();
    for (i, update) in updates.into_iter().enumerate() {
        let file = ledger.folder.join(i.to_string());
        if let Some(lock) = lock_again(store, files, file, &update)?
            // Once more, now that nobody can move it.
            && let Some(chain) = chains.get(&update.name)
            && matches!(standing(store, &update.name, chain)?, Standing::Behind(_))
        {
            steps.push(Step { update, lock });
        }
    }
    let deleted: BTreeSet<&BStr> = steps
        .iter()
        .filter(|step| step.is_delete())
        .map(|step| step.update.name.as_bstr())
        .collect();
    let mut packed = None;
    if !deleted.is_empty() {
        let mut held = PackedLock::new(lock_packed_again(store, files, ledger)?);
        let next = ledger.folder.join("packed.next");
        fsio::remove_file(&next)?;
        held.write_next(next, &deleted)?;
        packed = Some(held);
    }
    drop(deleted);
    note_finished(steps.len());
    apply::apply(store.common_dir(), &mut steps, packed.as_mut())?;
    Ok(overtaken)
}

/// In one transaction of git's, but for deletions, which make way for the others.
fn carry_out_tables(
    store: &Store,
    tables: &Reftable,
    ledger: &Ledger,
    chains: &BTreeMap<RefName, Chain>,
) -> Result<Vec<(RefUpdate, u64)>, StoreError> {
    let mut attempts = ATTEMPTS;
    loop {
        let Behind { updates, overtaken } = behind(store, chains)?;
        let (deletes, mut writes): (Vec<_>, Vec<_>) =
            updates.into_iter().partition(|update| update.change.new_value().is_none());
        note_finished(deletes.len() + writes.len());
        let mut done = Tables::again(store, tables, ledger, deletes);
        if done.is_ok() {
            let mut clear = Vec::new();
            for update in writes.drain(..) {
                match check::name_conflict(&store.refs, &update.name)? {
                    None => clear.push(update),
                    Some(with) => {
                        tracing::warn!(%with, "a committed update lost its name to another program");
                    }
                }
            }
            done = Tables::again(store, tables, ledger, clear);
        }
        attempts -= 1;
        match done {
            Ok(()) => return Ok(overtaken),
            // Somebody moved one of them in between.
            Err(error) if attempts > 0 => tracing::info!(%error, "looks at refs once more"),
            Err(_) if lock::lock_path(&tables.tables()).exists() => {
                return Err(StoreError::Locked(lock::lock_path(&tables.tables())));
            }
            Err(error) => return Err(error),
        }
    }
}

fn note_finished(refs: usize) {
    if refs > 0 {
        tracing::info!(refs, "finishes what a crash interrupted");
    }
}

/// What the refs lack that the records tell.
struct Behind {
    updates: Vec<RefUpdate>,
    /// What another program did, with when that was noticed.
    overtaken: Vec<(RefUpdate, u64)>,
}

fn behind(store: &Store, chains: &BTreeMap<RefName, Chain>) -> Result<Behind, StoreError> {
    let mut behind = Behind { updates: Vec::new(), overtaken: Vec::new() };
    for (name, chain) in chains {
        match standing(store, name, chain)? {
            Standing::There => {}
            Standing::Behind(found) => {
                let change = RefChange::between(found, chain.last);
                behind
                    .updates
                    .extend(change.map(|change| RefUpdate { name: name.clone(), change }));
            }
            Standing::Overtaken(found) => {
                tracing::warn!(%name, ?found, "a committed update was overtaken by another program");
                if let Some(change) = RefChange::between(chain.last, found) {
                    let update = RefUpdate { name: name.clone(), change };
                    behind.overtaken.push((update, chain.time_ms));
                }
            }
        }
    }
    Ok(behind)
}

/// How a ref's file stands to the journal.
enum Standing {
    There,
    /// It holds an earlier value, or none that can be read; one that is to go counts as holding an earlier value.
    Behind(Option<Oid>),
    /// It holds a value that the journal does not know.
    Overtaken(Option<Oid>),
}

fn standing(store: &Store, name: &RefName, chain: &Chain) -> Result<Standing, StoreError> {
    let found = match store.refs.filed(name.as_bstr())? {
        // A power failure leaves a file of the right name and no content, also where it is to go.
        Some(Value::Broken) => {
            let gone = chain.last.is_none();
            let earlier = chain.before.iter().rev().copied().flatten().next();
            return Ok(Standing::Behind(earlier.filter(|_| gone)));
        }
        Some(Value::Symbolic(_)) => return Ok(Standing::Overtaken(None)),
        Some(Value::Oid(oid)) => Some(oid),
        None => None,
    };
    Ok(if found == chain.last {
        Standing::There
    } else if chain.before.contains(&found) {
        Standing::Behind(found)
    } else {
        Standing::Overtaken(found)
    })
}

/// The ref's lock. `None` when another ref is now in the way.
fn lock_again(
    store: &Store,
    files: &Files,
    file: PathBuf,
    update: &RefUpdate,
) -> Result<Option<Lock>, StoreError> {
    fsio::write_unflushed(&file, &apply::content(update.change.new_value()))?;
    let target = files.path(update.name.as_bstr());
    if !fsio::remove_empty_folders(&target) {
        tracing::warn!(name = %update.name, "a committed update lost its name to another program");
        return Ok(None);
    }
    let config = store.config()?;
    let mut lock = Lock::planned(store.common_dir(), file, target).shared(config.sharing);
    match lock.take(config.ref_lock_wait) {
        Ok(()) => Ok(Some(lock)),
        Err(LockError::Blocked(_)) => {
            tracing::warn!(name = %update.name, "a committed update lost its name to another program");
            Ok(None)
        }
        Err(error) => Err(error.into_store()),
    }
}

fn lock_packed_again(store: &Store, files: &Files, ledger: &Ledger) -> Result<Lock, StoreError> {
    let file = ledger.folder.join("packed");
    fsio::write_unflushed(&file, b"")?;
    let (config, target) = (store.config()?, files.packed_path().to_owned());
    let mut lock = Lock::planned(store.common_dir(), file, target).shared(config.sharing);
    lock.take(config.packed_refs_wait).map_err(LockError::into_store)?;
    Ok(lock)
}

/// Removes the files of a folder where locks are made, and the locks.
pub(crate) fn undo_folder(store: &Store, folder: &Path) -> Result<(), StoreError> {
    let mut files = Vec::new();
    let mut linked = BTreeSet::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if fsio::is_absent(&error) => return Ok(()),
        entries => entries.doing("list", folder)?,
    };
    for entry in entries {
        let path = entry.doing("list", folder)?.path();
        let meta = fs::symlink_metadata(&path).doing("look at", &path)?;
        if meta.nlink() > 1 {
            linked.insert((meta.dev(), meta.ino()));
        }
        files.push(path);
    }
    if !linked.is_empty() {
        let mut locks = match store.refs.form() {
            Form::Files(refs) => file_locks(refs)?,
            Form::Reftable(tables) => {
                let lock = lock::lock_path(&tables.tables());
                if files.iter().any(|file| update_ref::is_of_this_boot(file)) {
                    await_orphan(&lock, &linked);
                }
                vec![lock]
            }
        };
        locks.push(lock::lock_path(&store.common_dir().join(shallow::FILE)));
        remove_locks(store, &linked, locks)?;
    }
    files.iter().try_for_each(|path| fsio::remove_file(path))
}

/// Waits for a program that outlived its parent: it commits what it was told to, or gives up.
fn await_orphan(lock: &Path, ours: &BTreeSet<(u64, u64)>) {
    let started = Instant::now();
    while fsio::inode(lock).is_some_and(|inode| ours.contains(&inode))
        && started.elapsed() < ORPHAN_WAIT
    {
        std::thread::sleep(ORPHAN_PAUSE);
    }
}

/// Every lock on a ref, HEAD or `packed-refs`.
fn file_locks(files: &Files) -> Result<Vec<PathBuf>, StoreError> {
    let mut locks = vec![lock::lock_path(files.head_path()), lock::lock_path(files.packed_path())];
    let mut folders = vec![files.path(BStr::new("refs"))];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).doing("list", &folder)? {
            let entry = entry.doing("list", &folder)?;
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == "lock") {
                locks.push(entry.path());
            }
        }
    }
    Ok(locks)
}

fn remove_locks(
    store: &Store,
    ours: &BTreeSet<(u64, u64)>,
    locks: Vec<PathBuf>,
) -> Result<(), StoreError> {
    for path in locks {
        if fsio::inode(&path).is_some_and(|inode| ours.contains(&inode)) {
            tracing::info!(path = %path.display(), "removed a lock that a crash left");
            fsio::remove_file(&path)?;
            lock::remove_empty_parents(store.common_dir(), &path);
        }
    }
    Ok(())
}
