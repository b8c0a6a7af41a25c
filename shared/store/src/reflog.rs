//! Reflogs: one line for each move of a ref, kept where the repository's configuration or an existing log asks for it.
//!
//! Where refs are files, the lines are appended once refs have moved. A log is for people: it is not flushed, and a crash
//! in between costs its last lines. Logs of deleted refs go with them, in the transaction. In a reftable, git writes them
//! with the refs.
//!
//! Source: git-config(1), `core.logAllRefUpdates`; git's `refs/files-backend.c`, `log_ref_write`.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::ByteSlice;
use zit_model::{RefName, RefUpdate};

use crate::error::{Doing, StoreError};
use crate::git::Git;
use crate::sharing::Sharing;
use crate::{Head, Signature, Store, fsio};

/// Which refs get a log that have none: `core.logAllRefUpdates`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogRefs {
    /// None. What git does in a bare repository unless it is told otherwise.
    #[default]
    Existing,
    /// HEAD and those below `refs/heads/`, `refs/remotes/` and `refs/notes/`.
    Branches,
    /// All.
    Always,
}

/// What the logs say of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Who moved the refs, and when.
    pub by: Signature,
    /// Why, in a word.
    pub message: String,
}

impl LogEntry {
    /// Tells a program of git who moves refs.
    pub(crate) fn sign(&self, git: Git) -> Git {
        // Without what would end a field early, as in a file.
        let Signature { name, email, .. } = Signature::parse(&self.by.line());
        git.env("GIT_COMMITTER_NAME", OsStr::from_bytes(&name))
            .env("GIT_COMMITTER_EMAIL", OsStr::from_bytes(&email))
            .env("GIT_COMMITTER_DATE", format!("@{}", self.by.when()))
    }
}

impl LogRefs {
    pub(crate) fn read(file: &gix_config::File) -> Self {
        let key = "core.logAllRefUpdates";
        if file.string(key).is_some_and(|value| value.eq_ignore_ascii_case(b"always")) {
            return Self::Always;
        }
        match file.boolean(key).ok().flatten() {
            Some(true) => Self::Branches,
            None if file.boolean("core.bare").ok().flatten() == Some(false) => Self::Branches,
            Some(false) | None => Self::Existing,
        }
    }

    fn begins(self, name: &[u8]) -> bool {
        let branches = [b"refs/heads/".as_slice(), b"refs/remotes/", b"refs/notes/"];
        match self {
            Self::Existing => false,
            Self::Branches => name == b"HEAD" || branches.iter().any(|way| name.starts_with(way)),
            Self::Always => true,
        }
    }
}

impl Store {
    /// Appends the moves of refs to their files of logs, and those of HEAD's branch also to HEAD's.
    ///
    /// # Errors
    /// [`StoreError`] when a log cannot be written; the others are.
    pub(crate) fn log_moves<'a>(
        &self,
        updates: impl IntoIterator<Item = &'a RefUpdate>,
        entry: &LogEntry,
    ) -> Result<(), StoreError> {
        let config = self.config()?;
        let rules = Rules { which: config.log_refs, sharing: config.sharing };
        if rules.which == LogRefs::Existing && !self.common_dir().join("logs").is_dir() {
            return Ok(());
        }
        let head = match self.head()? {
            Head::Symbolic(target) => Some(target),
            Head::Detached(_) => None,
        };
        let mut written = Ok(());
        for update in updates {
            written = written.and(self.log_move(rules, update, head.as_ref(), entry));
        }
        written
    }

    fn log_move(
        &self,
        rules: Rules,
        update: &RefUpdate,
        head: Option<&RefName>,
        LogEntry { by, message }: &LogEntry,
    ) -> Result<(), StoreError> {
        let hex = |oid: Option<zit_model::Oid>| {
            oid.map_or_else(|| self.hash_kind().null().to_string(), |oid| oid.to_string())
        };
        let (old, new) = (update.change.old_value(), update.change.new_value());
        let mut line = format!("{} {} ", hex(old), hex(new)).into_bytes();
        line.extend_from_slice(&by.line());
        line.extend_from_slice(format!("\t{message}\n").as_bytes());
        let name = update.name.as_bstr();
        // The log of a deleted ref has gone with it.
        let own = match new {
            Some(_) => append(self.common_dir(), name, rules, &line),
            None => Ok(()),
        };
        let heads = match head {
            Some(head) if *head == update.name => append(self.git_dir(), b"HEAD", rules, &line),
            Some(_) | None => Ok(()),
        };
        own.and(heads)
    }
}

/// How logs are begun.
#[derive(Clone, Copy)]
struct Rules {
    which: LogRefs,
    sharing: Sharing,
}

fn append(git_dir: &Path, name: &[u8], rules: Rules, line: &[u8]) -> Result<(), StoreError> {
    let Ok(name_path) = name.to_path() else { return Ok(()) };
    let path = git_dir.join("logs").join(name_path);
    let is_new = !path.is_file();
    if is_new {
        if !rules.which.begins(name) {
            return Ok(());
        }
        // Where a folder of logs was, a ref of that name may be now.
        fsio::remove_empty_folders(&path);
        if let Some(folder) = path.parent() {
            rules.sharing.create_folders(folder).doing("create", folder)?;
        }
    }
    let mut log = OpenOptions::new().create(true).append(true).open(&path).doing("open", &path)?;
    if is_new {
        rules.sharing.share(&path);
    }
    log.write_all(line).doing("write", &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_repository_begins_a_log_only_where_it_is_told_to() {
        let read = |text: &str| {
            let meta = gix_config::file::Metadata::from(gix_config::Source::Local);
            let options = gix_config::file::init::Options::default();
            let file = gix_config::File::from_bytes_no_includes(text.as_bytes(), meta, options);
            LogRefs::read(&file.unwrap())
        };
        for (text, expected) in [
            ("", LogRefs::Existing),
            ("[core]\nbare = true\n", LogRefs::Existing),
            ("[core]\nbare = false\n", LogRefs::Branches),
            ("[core]\nlogAllRefUpdates\n", LogRefs::Branches),
            ("[core]\nbare = false\nlogAllRefUpdates = no\n", LogRefs::Existing),
            ("[core]\nlogAllRefUpdates = Always\n", LogRefs::Always),
        ] {
            assert_eq!(read(text), expected, "{text:?}");
        }
        assert!(LogRefs::Branches.begins(b"refs/heads/x") && LogRefs::Branches.begins(b"HEAD"));
        assert!(
            !LogRefs::Branches.begins(b"refs/tags/x") && LogRefs::Always.begins(b"refs/tags/x")
        );
    }
}
