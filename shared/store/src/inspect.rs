//! Looking a repository over: journal, refs, objects, and what crashes left, each thing that is not as it should be as one
//! [`Finding`].
//!
//! Use [`Store::inspect`] on a store that is opened for reading. A server may be running: what it is about to write is
//! told from what is wrong by the order of reading, `zit/settled` first, then refs, then the journal.
//!
//! Never writes, and never knows what a ref means.

mod dangling;
mod follow;
mod leftovers;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};

use bstr::{BString, ByteSlice};
use zit_model::{Oid, quote};

use crate::Store;
use crate::backlog::Mark;
use crate::error::{Doing, StoreError};
use crate::fsio::is_absent;
use crate::git::Git;
use crate::journal::{Checkpoint, Fact, JOURNAL_FOLDER, Journal, JournalError, Record, Seq};
use crate::tx::decode_state;

/// How many lines of git's are kept.
const MAX_LINES: usize = 100;

/// How often a journal is opened again from which a running server has just dropped a segment.
const ATTEMPTS: usize = 3;

/// One thing that is not as it should be, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether something is wrong; else it only is to be known.
    pub problem: bool,
    /// What it is about, one word: `journal`, `object`, `ref`, `pending`, `leftover`, …
    pub about: &'static str,
    /// What was found, on one line.
    pub what: String,
    /// What to do about it, on one line.
    pub next: String,
}

impl Finding {
    /// Something that is wrong.
    #[must_use]
    pub fn problem(about: &'static str, what: &str, next: &str) -> Self {
        Self { problem: true, about, what: quote::one_line(what), next: quote::one_line(next) }
    }

    /// Something that is to be known.
    #[must_use]
    pub fn note(about: &'static str, what: &str, next: &str) -> Self {
        Self { problem: false, ..Self::problem(about, what, next) }
    }
}

/// What [`Store::inspect`] found.
#[derive(Clone, Debug, Default)]
pub struct Inspected {
    /// Everything that is to be told.
    pub findings: Vec<Finding>,
    /// How many refs were looked at.
    pub n_refs: usize,
    /// The first record that is kept and the last.
    pub records: Option<(Seq, Seq)>,
    /// The highest number that the journal gave out; `None` where there is no journal that can be read.
    pub highest: Option<u64>,
    /// Whether a referee has the repository open.
    pub in_use: bool,
}

impl Store {
    /// Looks the repository over.
    ///
    /// # Errors
    /// As the file system says, and when git cannot be run. What is damaged is a finding.
    pub fn inspect(&self) -> Result<Inspected, StoreError> {
        let mark = Mark::read(self.common_dir()).filter(|mark| mark.holds(self.common_dir()));
        let mut inspected = Inspected { in_use: self.is_in_use()?, ..Inspected::default() };
        let refs = self.refs()?;
        inspected.n_refs = refs.len();
        let objects = self.objects()?;
        let mut values: BTreeMap<BString, Oid> = BTreeMap::new();
        for stored in refs {
            if objects.kind(stored.oid)?.is_none() {
                let what = format!("{} names {}, which is missing", stored.name, stored.oid);
                inspected.findings.push(Finding::problem("ref", &what, RESTORE));
            }
            values.insert(stored.name.as_bstr().to_owned(), stored.oid);
        }
        match self.read_journal(inspected.in_use) {
            Ok(Some(read)) => {
                let settled = mark.map_or(0, |mark| mark.seq);
                // One that is ahead belongs to a journal that is gone.
                let settled = if settled > read.last.0 { 0 } else { settled };
                let settled = Seq(settled.max(read.checkpoint.0));
                let in_use = inspected.in_use;
                let behind = follow::compare(&read.records, settled, &values, in_use);
                inspected.findings.extend(behind);
                inspected.records = Some((read.first, read.last));
                inspected.highest = Some(read.highest);
            }
            Ok(None) => {}
            Err(error) => {
                let next = error.hint().unwrap_or(RESTORE);
                inspected.findings.push(Finding::problem("journal", &error.to_string(), next));
            }
        }
        self.fsck(&mut inspected, &values)?;
        if !inspected.in_use {
            inspected.findings.extend(leftovers::find(self)?);
        }
        Ok(inspected)
    }

    /// Whether a referee holds the repository's lock. Takes it, shared, for as long as it takes to ask.
    fn is_in_use(&self) -> Result<bool, StoreError> {
        let path = self.common_dir().join("zit/lock");
        let lock = match File::open(&path) {
            Err(error) if is_absent(&error) => return Ok(false),
            lock => lock.doing("open", &path)?,
        };
        match lock.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error).doing("lock", &path),
        }
    }

    fn read_journal(&self, in_use: bool) -> Result<Option<Read>, JournalError> {
        let folder = self.common_dir().join(JOURNAL_FOLDER);
        if !folder.is_dir() {
            return Ok(None);
        }
        let mut attempts = if in_use { ATTEMPTS } else { 1 };
        loop {
            attempts -= 1;
            match Read::of(&folder) {
                Err(error) if attempts == 0 || matches!(error, JournalError::Damaged { .. }) => {
                    return Err(error);
                }
                Err(_) => {}
                Ok(read) => return Ok(Some(read)),
            }
        }
    }

    /// `git fsck --strict`.
    fn fsck(
        &self,
        inspected: &mut Inspected,
        values: &BTreeMap<BString, Oid>,
    ) -> Result<(), StoreError> {
        let git = Git::at(self.common_dir(), &[], "fsck");
        let checked =
            git.args(["--strict", "--no-dangling", "--no-progress"]).finish(|_| Ok(()))?;
        if checked.status.success() {
            return Ok(());
        }
        let unfinished = inspected.findings.iter().any(|finding| finding.about == follow::PENDING);
        let next = if unfinished { follow::START } else { RESTORE };
        let said = [checked.stdout, checked.stderr].concat();
        let lines = said.lines().filter(|line| !line.trim().is_empty()).take(MAX_LINES);
        let n_before = inspected.findings.len();
        for line in lines {
            if let Some(finding) = dangling::find(self, line.as_bstr(), values) {
                inspected.findings.push(finding);
                continue;
            }
            // What it tells of HEAD's branch is no fault, and told beside one.
            if line.starts_with(b"notice: ") {
                continue;
            }
            let what = format!("git fsck: {}", line.to_str_lossy());
            inspected.findings.push(Finding::problem("object", &what, next));
        }
        if inspected.findings.len() == n_before {
            let what = format!("git fsck: {}", checked.status);
            inspected.findings.push(Finding::problem("object", &what, next));
        }
        Ok(())
    }
}

/// What to do about things that are gone.
const RESTORE: &str = "restore it from a backup or from a clone that has it";

/// A journal, read and verified.
struct Read {
    first: Seq,
    last: Seq,
    checkpoint: Seq,
    highest: u64,
    records: Vec<Record>,
}

impl Read {
    fn of(folder: &std::path::Path) -> Result<Self, JournalError> {
        let (journal, checkpoint) = Journal::read_only(folder)?;
        journal.verify()?;
        let last = journal.tail().0;
        let first = journal.oldest()?.unwrap_or(last.next());
        let mut records = Vec::new();
        for record in journal.read_from(first)? {
            let mut record = record?;
            // They are verified and not needed any more.
            (record.draft.objects, record.draft.packs) = (Vec::new(), Vec::new());
            records.push(record);
        }
        let highest = last.0.saturating_add(base(checkpoint.as_ref(), &records));
        let checkpoint = checkpoint.map_or(Seq::NONE, |checkpoint| checkpoint.seq);
        Ok(Self { first, last, checkpoint, highest, records })
    }
}

/// What is added to a record's number. See [`crate::tx::Ledger`].
fn base(checkpoint: Option<&Checkpoint>, records: &[Record]) -> u64 {
    let facts = records.iter().flat_map(|record| &record.facts);
    let epochs = facts.filter(|fact| fact.kind == Fact::EPOCH);
    let given = epochs.filter_map(|fact| fact.value.to_str().ok()?.parse().ok());
    given.chain(checkpoint.map(|checkpoint| decode_state(&checkpoint.state))).max().unwrap_or(0)
}
