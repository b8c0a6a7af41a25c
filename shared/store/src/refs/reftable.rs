//! Refs as a reftable: a stack of tables below `reftable/`, which stock git alone reads and writes.
//!
//! `reftable/tables.list` names the tables, each by a name that no other ever had, and every change replaces that list. So
//! its content is the stamp of all refs: what `git for-each-ref` said is kept in memory until the list is another one.
//! Nothing is locked; git reads a stack as of one moment.
//!
//! Source: git's `Documentation/technical/reftable.adoc`.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use zit_model::{Oid, RefName};

use super::{Found, Head, Value};
use crate::error::{Doing, StoreError};
use crate::fsio::is_absent;
use crate::git::Git;
use crate::objects::Objects;
use crate::packed::Peeled;

/// The list of tables, below a git directory.
pub(crate) const TABLES: &str = "reftable/tables.list";

/// How often refs are read again that change meanwhile; the last reading is right, but not kept.
const READINGS: usize = 3;

/// The reftable of one repository.
pub(crate) struct Reftable {
    common_dir: PathBuf,
    /// A linked work tree has a stack of its own, with HEAD.
    git_dir: PathBuf,
    read: Mutex<Option<Arc<Snapshot>>>,
    /// What tag objects lead to; `None` for other objects.
    peeled: Mutex<HashMap<Oid, Option<Oid>>>,
}

/// What the lists of tables say, and so which refs there are.
type Stamp = [Vec<u8>; 2];

/// All refs as of one moment.
struct Snapshot {
    stamp: Stamp,
    head: Head,
    refs: BTreeMap<BString, Value>,
}

impl Reftable {
    pub(super) fn new(common_dir: &Path, git_dir: &Path) -> Self {
        Self {
            common_dir: common_dir.to_owned(),
            git_dir: git_dir.to_owned(),
            read: Mutex::default(),
            peeled: Mutex::default(),
        }
    }

    /// The list that a writer of refs locks.
    pub(crate) fn tables(&self) -> PathBuf {
        self.common_dir.join(TABLES)
    }

    pub(super) fn head(&self) -> Result<Head, StoreError> {
        Ok(self.current()?.head.clone())
    }

    /// What one ref holds.
    pub(super) fn value(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        Ok(self.current()?.refs.get(name).cloned())
    }

    /// Every ref whose name starts with `prefix` and that is not to be skipped, by name.
    pub(super) fn below(
        &self,
        prefix: &BStr,
        skip: &dyn Fn(&BStr) -> bool,
        objects: &Objects,
    ) -> Result<Vec<Found>, StoreError> {
        let snapshot = self.current()?;
        let mut known = self.known_tags();
        let mut found = Vec::new();
        for (name, value) in snapshot.below(prefix).filter(|(name, _)| !skip(name.as_bstr())) {
            let peeled = match value {
                Value::Oid(oid) => peeled(*oid, &mut known, objects)?,
                Value::Symbolic(_) | Value::Broken => Peeled::Unknown,
            };
            found.push(Found { name: name.clone(), value: value.clone(), peeled });
        }
        Ok(found)
    }

    /// The first ref below the folder `name/` that is not to be skipped.
    pub(super) fn first_below(
        &self,
        name: &BStr,
        skip: &dyn Fn(&BStr) -> bool,
    ) -> Result<Option<BString>, StoreError> {
        let below = [name.as_bytes(), b"/"].concat();
        let snapshot = self.current()?;
        let mut names = snapshot.below(below.as_bstr()).map(|(name, _)| name);
        Ok(names.find(|name| !skip(name.as_bstr())).cloned())
    }

    /// The refs as they are now.
    fn current(&self) -> Result<Arc<Snapshot>, StoreError> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut stamp = self.stamp()?;
        if let Some(snapshot) = read.as_ref().filter(|snapshot| snapshot.stamp == stamp) {
            return Ok(Arc::clone(snapshot));
        }
        let mut readings = 1;
        loop {
            let (head, refs) = self.read()?;
            let after = self.stamp()?;
            let same = after == stamp;
            let snapshot = Arc::new(Snapshot { stamp, head, refs });
            if same {
                self.forget_tags(&snapshot);
                *read = Some(Arc::clone(&snapshot));
            }
            if same || readings == READINGS {
                return Ok(snapshot);
            }
            (stamp, readings) = (after, readings + 1);
        }
    }

    fn stamp(&self) -> Result<Stamp, StoreError> {
        let common = list(&self.common_dir)?;
        let own = if self.git_dir == self.common_dir { Vec::new() } else { list(&self.git_dir)? };
        Ok([common, own])
    }

    /// Asks git for everything.
    fn read(&self) -> Result<(Head, BTreeMap<BString, Value>), StoreError> {
        let listed = Git::at(&self.git_dir, &[], "for-each-ref")
            .args(["--include-root-refs", "--format=%(objectname) %(refname) %(symref)"])
            .output()?;
        let mut head = None;
        let mut refs = BTreeMap::new();
        for line in listed.lines() {
            let (name, value) = self.parse(line)?;
            if name == "HEAD" {
                head = Some(value);
            } else if name.starts_with(b"refs/") {
                refs.insert(name, value);
            }
        }
        let head = match head {
            Some(Value::Oid(oid)) => Head::Detached(oid),
            Some(Value::Symbolic(name)) => self.symbolic(&name)?,
            // It leads nowhere yet.
            Some(Value::Broken) | None => {
                let named = Git::at(&self.git_dir, &[], "symbolic-ref").arg("HEAD").output()?;
                self.symbolic(named.trim_end())?
            }
        };
        Ok((head, refs))
    }

    fn symbolic(&self, name: &[u8]) -> Result<Head, StoreError> {
        RefName::new(name).map(Head::Symbolic).map_err(|error| self.damaged(error.to_string()))
    }

    /// Reads `<oid> SP <refname> SP <target>`; the target is empty unless the ref is symbolic.
    fn parse(&self, line: &[u8]) -> Result<(BString, Value), StoreError> {
        let mut words = line.splitn_str(3, " ");
        let (oid, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let value = match words.next() {
            Some(b"") => Oid::from_hex(oid).map(Value::Oid).map_err(|error| error.to_string()),
            Some(target) => Ok(Value::Symbolic(target.into())),
            None => Err("a line without a name".to_owned()),
        };
        value.map(|value| (name.into(), value)).map_err(|why| self.damaged(why))
    }

    fn damaged(&self, why: String) -> StoreError {
        StoreError::Damaged { path: self.tables(), why }
    }

    fn known_tags(&self) -> MutexGuard<'_, HashMap<Oid, Option<Oid>>> {
        self.peeled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What no ref names any more need not be known.
    fn forget_tags(&self, snapshot: &Snapshot) {
        let mut known = self.known_tags();
        if known.len() > 2 * snapshot.refs.len() {
            known.clear();
        }
    }
}

impl Snapshot {
    fn below<'a>(&'a self, prefix: &'a BStr) -> impl Iterator<Item = (&'a BString, &'a Value)> {
        let from = (Bound::Included(prefix.as_bytes()), Bound::Unbounded);
        self.refs.range::<[u8], _>(from).take_while(move |(name, _)| name.starts_with(prefix))
    }
}

/// What an object that is a tag leads to; looked up once.
fn peeled(
    oid: Oid,
    known: &mut HashMap<Oid, Option<Oid>>,
    objects: &Objects,
) -> Result<Peeled, StoreError> {
    let to = if let Some(to) = known.get(&oid) {
        *to
    } else {
        let to = super::peeled(oid, objects)?;
        // One that is missing may come back.
        if objects.kind(oid)?.is_some() {
            known.insert(oid, to);
        }
        to
    };
    Ok(to.map_or(Peeled::NotATag, Peeled::To))
}

/// The content of a list of tables; empty where there is none.
fn list(git_dir: &Path) -> Result<Vec<u8>, StoreError> {
    let path = git_dir.join(TABLES);
    match fs::read(&path) {
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        content => content.doing("read", &path),
    }
}
