//! Reading refs, in whichever of the two forms the repository keeps them: [`files`], or a [`reftable`].
//!
//! For deferred refs ([`table`]), a referee's store asks its table instead: their files follow.
//!
//! Never writes, and never decides: what may become of a ref is the transaction's.

mod cache;
mod files;
mod reftable;
mod table;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use bstr::{BStr, BString, ByteSlice};
use zit_model::{Oid, RefName};

use crate::Kind;
use crate::error::StoreError;
use crate::objects::Objects;
use crate::packed::Peeled;

pub(crate) use files::Files;
pub(crate) use reftable::{Reftable, TABLES};
pub(crate) use table::{Table, is_deferred};

use cache::List;

/// How many symbolic refs are followed. Source: git's `SYMREF_MAXDEPTH`.
const MAX_SYMREFS: usize = 5;

/// What HEAD is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// HEAD names a ref, which need not exist.
    Symbolic(RefName),
    /// HEAD names a commit.
    Detached(Oid),
}

/// What HEAD leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedHead {
    /// The ref that it names in the end, whether or not that exists; `None` when it names a commit.
    pub target: Option<RefName>,
    /// What it resolves to; `None` when it leads nowhere.
    pub oid: Option<Oid>,
    /// What the tag object `oid` leads to in the end; `None` when `oid` is no tag object.
    pub peeled: Option<Oid>,
}

/// One ref of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRef {
    /// Its full name.
    pub name: RefName,
    /// What it resolves to.
    pub oid: Oid,
    /// What the tag object `oid` leads to in the end; `None` when `oid` is no tag object.
    pub peeled: Option<Oid>,
    /// The ref that it names, where it is symbolic.
    pub symref_target: Option<RefName>,
}

/// What a ref holds, before anything is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Oid(Oid),
    Symbolic(BString),
    /// A file that git could not read either.
    Broken,
}

impl From<StoredRef> for Value {
    fn from(stored: StoredRef) -> Self {
        match stored.symref_target {
            Some(target) => Self::Symbolic(target.as_bstr().to_owned()),
            None => Self::Oid(stored.oid),
        }
    }
}

/// One ref as it is stored.
pub(crate) struct Found {
    name: BString,
    value: Value,
    peeled: Peeled,
}

/// How a repository keeps its refs. Source: git-config(1), `extensions.refStorage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Each in a file, or a line of `packed-refs`.
    Files,
    /// All in the tables of `reftable/`, which git reads and writes.
    Reftable,
}

/// The refs as they are stored; each form lists them, reads one, and says what HEAD is. How they are written:
/// [`crate::tx`].
pub(crate) enum Form {
    Files(Files),
    Reftable(Reftable),
}

/// Where deferred refs are.
const DEFERRED: &[u8] = b"refs/zit/";

/// A list that was read: two are equal only if it is the same reading.
#[derive(Clone)]
pub(crate) struct KnownList(Arc<List>);

impl PartialEq for KnownList {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The refs of one repository.
pub(crate) struct Refs {
    form: Form,
    /// A referee's answer for deferred refs; whoever only reads looks at what is stored.
    table: OnceLock<Table>,
}

impl Refs {
    /// Of the repository at `common_dir`; HEAD is that of `git_dir`, which a linked work tree has of its own.
    pub(crate) fn new(
        storage: Storage,
        common_dir: &Path,
        git_dir: &Path,
        kind: gix_hash::Kind,
    ) -> Self {
        let form = match storage {
            Storage::Files => Form::Files(Files::new(common_dir, git_dir.join("HEAD"), kind)),
            Storage::Reftable => Form::Reftable(Reftable::new(common_dir, git_dir)),
        };
        Self { form, table: OnceLock::new() }
    }

    /// How they are stored.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// Reads the deferred refs as they are stored. From then on the table answers for them.
    pub(crate) fn defer(&self, objects: &Objects) -> Result<&Table, StoreError> {
        if let Some(table) = self.table.get() {
            return Ok(table);
        }
        // Past the lists that are kept: from now on they hold no deferred ref.
        let found = self.list(BStr::new("refs/zit/"), objects)?.refs;
        let deferred = found.into_iter().filter(|stored| is_deferred(stored.name.as_bstr()));
        Ok(self.table.get_or_init(|| Table::new(deferred)))
    }

    /// The table, which a referee's store has; empty before [`Refs::defer`].
    pub(crate) fn table(&self) -> &Table {
        self.table.get_or_init(Table::default)
    }

    /// The table, where it answers for the name.
    fn deferred(&self, name: &BStr) -> Option<&Table> {
        self.table.get().filter(|_| is_deferred(name))
    }

    pub(crate) fn head(&self) -> Result<Head, StoreError> {
        match &self.form {
            Form::Files(files) => files.head(),
            Form::Reftable(tables) => tables.head(),
        }
    }

    /// What HEAD leads to, as git lists it.
    pub(crate) fn resolved_head(&self, objects: &Objects) -> Result<ResolvedHead, StoreError> {
        match self.head()? {
            Head::Detached(oid) => Self::at_end(None, Some(oid), objects),
            Head::Symbolic(name) => self.led_to(name, objects),
        }
    }

    /// What a ref that stands for HEAD leads to; `None` when there is none.
    pub(crate) fn resolved_as_head(
        &self,
        name: &BStr,
        objects: &Objects,
    ) -> Result<Option<ResolvedHead>, StoreError> {
        match self.value(name)? {
            Some(Value::Oid(oid)) => Self::at_end(None, Some(oid), objects).map(Some),
            Some(Value::Symbolic(target)) => match RefName::new(&target) {
                Ok(target) => self.led_to(target, objects).map(Some),
                Err(_) => Ok(None),
            },
            Some(Value::Broken) | None => Ok(None),
        }
    }

    /// Where a symbolic HEAD leads that names `name`.
    fn led_to(&self, name: RefName, objects: &Objects) -> Result<ResolvedHead, StoreError> {
        let end = self.end(name.as_bstr().to_owned())?;
        let target = RefName::new(&end).unwrap_or(name);
        let oid = self.resolve(end.as_bstr())?;
        Self::at_end(Some(target), oid, objects)
    }

    fn at_end(
        target: Option<RefName>,
        oid: Option<Oid>,
        objects: &Objects,
    ) -> Result<ResolvedHead, StoreError> {
        let peeled = oid.map_or(Ok(None), |oid| peeled(oid, objects))?;
        Ok(ResolvedHead { target, oid, peeled })
    }

    /// What the ref holds; `None` when it does not exist.
    pub(crate) fn value(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        match self.deferred(name) {
            Some(table) => Ok(table.find(name).map(Value::from)),
            None => self.filed(name),
        }
    }

    /// What the ref will hold once everything staged is flushed.
    pub(crate) fn staged(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        match self.deferred(name) {
            Some(table) => Ok(table.find_staged(name).map(Value::from)),
            None => self.filed(name),
        }
    }

    /// What is stored for the ref, whatever the table says.
    pub(crate) fn filed(&self, name: &BStr) -> Result<Option<Value>, StoreError> {
        match &self.form {
            Form::Files(files) => files.value(name),
            Form::Reftable(tables) => tables.value(name),
        }
    }

    /// What the ref resolves to; `None` when it does not exist, is broken or leads nowhere.
    pub(crate) fn resolve(&self, name: &BStr) -> Result<Option<Oid>, StoreError> {
        self.follow(name, Self::value)
    }

    /// As [`Refs::resolve`], once everything staged is flushed.
    pub(crate) fn resolve_staged(&self, name: &BStr) -> Result<Option<Oid>, StoreError> {
        self.follow(name, Self::staged)
    }

    fn follow(
        &self,
        name: &BStr,
        value: impl Fn(&Self, &BStr) -> Result<Option<Value>, StoreError>,
    ) -> Result<Option<Oid>, StoreError> {
        let mut name = name.to_owned();
        for _ in 0..MAX_SYMREFS {
            match value(self, name.as_bstr())? {
                Some(Value::Oid(oid)) => return Ok(Some(oid)),
                Some(Value::Symbolic(target)) => name = target,
                Some(Value::Broken) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The last name of a chain of symbolic refs that begins with `name`; git names that one, too.
    pub(crate) fn end(&self, mut name: BString) -> Result<BString, StoreError> {
        for _ in 0..MAX_SYMREFS {
            match self.value(name.as_bstr())? {
                Some(Value::Symbolic(target)) => name = target,
                Some(Value::Oid(_) | Value::Broken) | None => break,
            }
        }
        Ok(name)
    }

    /// Every ref whose name starts with `prefix`, by name.
    pub(crate) fn below(
        &self,
        prefix: &BStr,
        objects: &Objects,
    ) -> Result<Vec<StoredRef>, StoreError> {
        self.filed_with(prefix, &[prefix], objects)
    }

    /// The refs below `prefix` that have files of their own, and the deferred ones below each of `deferred`, by name.
    pub(crate) fn filed_with(
        &self,
        prefix: &BStr,
        deferred: &[impl AsRef<[u8]>],
        objects: &Objects,
    ) -> Result<Vec<StoredRef>, StoreError> {
        let mut refs = match &self.form {
            Form::Files(files) => files.cached(prefix, || self.list(prefix, objects))?.refs.clone(),
            Form::Reftable(_) => self.list(prefix, objects)?.refs,
        };
        let n_filed = refs.len();
        let table = self.table.get();
        let below = |prefix: &_| table.map(|table| table.below(prefix)).unwrap_or_default();
        for stored in deferred.iter().flat_map(|prefix| below(BStr::new(prefix.as_ref()))) {
            match stored.symref_target.clone() {
                // What that names moves by itself.
                Some(to) => {
                    let name = stored.name.as_bstr().to_owned();
                    let value = Value::Symbolic(to.as_bstr().into());
                    let found = Found { name, value, peeled: Peeled::Unknown };
                    refs.extend(self.stored(found, objects)?);
                }
                None => refs.push(stored),
            }
        }
        if refs.len() > n_filed {
            refs.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(refs)
    }

    /// The list of what has files of its own below `prefix`, if it is known without reading anything.
    pub(crate) fn known_list(&self, prefix: &BStr) -> Result<Option<KnownList>, StoreError> {
        match &self.form {
            Form::Files(files) => Ok(files.known(prefix)?.map(KnownList)),
            Form::Reftable(_) => Ok(None),
        }
    }

    /// As [`Table::version`]; also `None` where no table answers.
    pub(crate) fn deferred_version(&self) -> Option<u64> {
        self.table.get().and_then(Table::version)
    }

    /// Whether deferred refs may start with `prefix`.
    pub(crate) fn may_be_deferred(prefix: &BStr) -> bool {
        prefix.starts_with(DEFERRED) || DEFERRED.starts_with(prefix)
    }

    /// What is stored, without what the table answers for, and which folders were looked into.
    fn list(&self, prefix: &BStr, objects: &Objects) -> Result<List, StoreError> {
        let skip = |name: &BStr| self.deferred(name).is_some();
        let (folders, found) = match &self.form {
            Form::Files(files) => files.below(prefix, &skip)?,
            Form::Reftable(tables) => (Vec::new(), tables.below(prefix, &skip, objects)?),
        };
        let has_symbolic = found.iter().any(|found| matches!(found.value, Value::Symbolic(_)));
        let mut refs = Vec::with_capacity(found.len());
        for found in found {
            refs.extend(self.stored(found, objects)?);
        }
        Ok(List { folders, refs, has_symbolic })
    }

    fn stored(&self, found: Found, objects: &Objects) -> Result<Option<StoredRef>, StoreError> {
        let Found { name, value, peeled } = found;
        let Some(valid_name) = valid(&name) else { return Ok(None) };
        let (oid, symref_target) = match value {
            Value::Oid(oid) => (Some(oid), None),
            Value::Symbolic(target) => {
                let end = self.end(target)?;
                (self.resolve(end.as_bstr())?, RefName::new(&end).ok())
            }
            Value::Broken => (None, None),
        };
        let Some(oid) = oid else {
            tracing::warn!(%name, "skipped a ref that leads nowhere");
            return Ok(None);
        };
        let peeled = match peeled {
            Peeled::To(oid) => Some(oid),
            Peeled::NotATag => None,
            Peeled::Unknown => self::peeled(oid, objects)?,
        };
        Ok(Some(StoredRef { name: valid_name, oid, peeled, symref_target }))
    }

    /// The first ref below the folder `name/`, where there is one.
    pub(crate) fn first_staged_below(&self, name: &BStr) -> Result<Option<BString>, StoreError> {
        if let Some(table) = self.deferred(name) {
            return Ok(table.first_staged_below(name));
        }
        let skip = |name: &BStr| self.deferred(name).is_some();
        let found = match &self.form {
            Form::Files(files) => files.first_below(name, &skip)?,
            Form::Reftable(tables) => tables.first_below(name, &skip)?,
        };
        if found.is_some() {
            return Ok(found);
        }
        // Above `refs/zit/` there are other refs and deferred ones.
        Ok(self.table.get().and_then(|table| table.first_staged_below(name)))
    }
}

/// What a tag leads to. One that cannot be followed is listed without: whoever pushed it must not take the list away from
/// everybody.
pub(crate) fn peeled(oid: Oid, objects: &Objects) -> Result<Option<Oid>, StoreError> {
    match objects.kind(oid)? {
        Some(Kind::Tag) => Ok(objects
            .peel(oid)
            .inspect_err(|error| tracing::warn!(%oid, %error, "listed a tag that leads nowhere"))
            .ok()),
        Some(Kind::Blob | Kind::Tree | Kind::Commit) | None => Ok(None),
    }
}

fn valid(name: &BString) -> Option<RefName> {
    RefName::new(name)
        .inspect_err(|_| tracing::warn!(%name, "skipped a ref with a name that git refuses"))
        .ok()
}
