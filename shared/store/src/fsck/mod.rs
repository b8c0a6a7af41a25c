//! Object checks: what git's own receiver refuses, by the same message ids, severities and settings.
//!
//! [`Fsck::object`] looks at one object; [`Fsck::finish`] then looks at the blobs that trees name `.gitmodules` or
//! `.gitattributes`. What is found is told as git tells it: `error: object <oid>: <id>: <text>`.
//!
//! Never weaker than git. Where a `.gitmodules` file is not plainly harmless, nothing is decided here
//! ([`Verdict::AskGit`]).
//!
//! # Source
//! git-fsck(1), "FSCK MESSAGES"; git-config(1), `receive.fsck.<msg-id>`. A test tries each rule with real git.

mod blob;
mod header;
mod names;
mod table;
mod tree;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use zit_model::Oid;

use crate::objects::Kind;

pub(crate) use table::{Id, Severity};

/// How many complaints are kept.
const MAX_LINES: usize = 20;

/// Which findings refuse a push: git's defaults, with what the repository's configuration says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FsckRules {
    changed: BTreeMap<Id, Severity>,
    skip_lists: Vec<PathBuf>,
}

impl FsckRules {
    /// Reads `receive.fsck.<msg-id>` and `receive.fsck.skipList`; paths are relative to `git_dir`. What git would not
    /// understand is left out with a warning.
    pub(crate) fn from_config(file: &gix_config::File, git_dir: &Path) -> Self {
        let mut rules = Self::default();
        for section in file.sections_by_name("receive").into_iter().flatten() {
            if section.header().subsection_name().is_none_or(|name| name != "fsck") {
                continue;
            }
            for key in section.value_names() {
                let value = section.value(&key).unwrap_or_default();
                rules.set(key.as_bytes(), value.as_bytes(), git_dir);
            }
        }
        rules
    }

    fn set(&mut self, key: &[u8], value: &[u8], git_dir: &Path) {
        if key.eq_ignore_ascii_case(b"skipList") {
            self.skip_lists.push(git_dir.join(value.to_os_str_lossy()));
            return;
        }
        let severity = Severity::parse(value);
        let may_be = |(id, severity): &(Id, Severity)| {
            *severity == Severity::Error || id.severity() != Severity::Fatal
        };
        if let Some((id, severity)) = Id::parse(key).zip(severity).filter(may_be) {
            self.changed.insert(id, severity);
        } else {
            tracing::warn!(key = %key.as_bstr(), "a setting of receive.fsck is not understood");
        }
    }

    /// The same in the form of the argument of `git index-pack --strict=`; empty when nothing differs.
    pub(crate) fn argument(&self) -> String {
        let changed = self.changed.iter().map(|(id, severity)| format!("{}={severity}", id.name()));
        let lists = self.skip_lists.iter().map(|path| format!("skiplist={}", path.display()));
        changed.chain(lists).collect::<Vec<_>>().join(",")
    }

    fn severity(&self, id: Id) -> Severity {
        let default = || match id.severity() {
            // A receiver is strict.
            Severity::Warn => Severity::Error,
            other @ (Severity::Fatal | Severity::Error | Severity::Info | Severity::Ignore) => {
                other
            }
        };
        self.changed.get(&id).copied().unwrap_or_else(default)
    }

    fn skips(&self, oid: Oid) -> bool {
        let hex = oid.to_string();
        self.skip_lists.iter().any(|path| {
            let list = std::fs::read(path).unwrap_or_default();
            list.lines().any(|line| {
                let line = line.split_str("#").next().unwrap_or_default();
                line.trim() == hex.as_bytes()
            })
        })
    }
}

/// What became of a pack's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Git would take them.
    Fine,
    /// Git would refuse them: its complaints, one a line.
    Refused(String),
    /// Git may find something that is not looked for here.
    AskGit,
}

/// One run over the objects of a push.
pub(crate) struct Fsck<'a> {
    rules: &'a FsckRules,
    hash: gix_hash::Kind,
    lines: Vec<String>,
    is_refused: bool,
    /// The object that is being looked at.
    oid: Option<Oid>,
    modules: HashSet<Oid>,
    attributes: HashSet<Oid>,
}

impl<'a> Fsck<'a> {
    pub(crate) fn new(rules: &'a FsckRules, hash: gix_hash::Kind) -> Self {
        Self {
            rules,
            hash,
            lines: Vec::new(),
            is_refused: false,
            oid: None,
            modules: HashSet::new(),
            attributes: HashSet::new(),
        }
    }

    /// Looks at one object.
    pub(crate) fn object(&mut self, oid: Oid, kind: Kind, data: &[u8]) {
        self.oid = Some(oid);
        match kind {
            Kind::Tree => self.tree(data),
            Kind::Commit => _ = self.commit(data),
            Kind::Tag => _ = self.tag(data),
            // Only those that a tree gives a special name, at the end.
            Kind::Blob => {}
        }
    }

    /// Looks at what trees gave special names; `read` gets an object of the push or the repository, `None` when it is
    /// nowhere.
    pub(crate) fn finish(
        mut self,
        mut read: impl FnMut(Oid) -> Option<(Kind, Vec<u8>)>,
    ) -> Verdict {
        let sorted = |set: HashSet<Oid>| set.into_iter().collect::<std::collections::BTreeSet<_>>();
        let mut is_sure = true;
        for oid in sorted(std::mem::take(&mut self.modules)) {
            self.oid = Some(oid);
            is_sure &= self.modules(read(oid));
        }
        for oid in sorted(std::mem::take(&mut self.attributes)) {
            self.oid = Some(oid);
            self.attributes(read(oid));
        }
        match (self.is_refused, is_sure) {
            (true, _) => Verdict::Refused(self.lines.join("\n")),
            (false, true) => Verdict::Fine,
            (false, false) => Verdict::AskGit,
        }
    }

    /// Notes a finding; whether it refuses the object.
    fn report(&mut self, id: Id, text: &str) -> bool {
        let severity = self.rules.severity(id);
        let Some(oid) = self.oid else { return false };
        if severity == Severity::Ignore || self.rules.skips(oid) {
            return false;
        }
        let is_error = matches!(severity, Severity::Fatal | Severity::Error);
        if is_error && self.lines.len() < MAX_LINES {
            self.lines.push(format!("error: object {oid}: {}: {text}", id.name()));
        } else if !is_error {
            tracing::info!(%oid, id = id.name(), text, "an object is odd");
        }
        self.is_refused |= is_error;
        is_error
    }
}
