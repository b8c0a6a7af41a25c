//! Which branches work trees have checked out: the repository's own, and those that `git worktree add` linked to it.
//!
//! A push that moves such a branch leaves the work tree behind. Source: git's `branch.c` and `worktree.c`,
//! `find_shared_symref`; of a rebase or bisection under way nothing is known here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bstr::ByteSlice;
use zit_model::RefName;

use crate::error::{Doing, StoreError};
use crate::fsio::is_absent;
use crate::git::Git;
use crate::refs::Form;
use crate::{Head, Store};

impl Store {
    /// The branches that are checked out now.
    ///
    /// # Errors
    /// [`StoreError`] when the configuration, HEAD or the folder of work trees cannot be read.
    pub fn checked_out(&self) -> Result<BTreeSet<RefName>, StoreError> {
        let mut found = BTreeSet::new();
        if !self.config()?.bare
            && let Head::Symbolic(name) = self.head()?
        {
            found.insert(name);
        }
        let folder = self.common_dir().join("worktrees");
        if let Form::Reftable(_) = self.refs.form() {
            if folder.is_dir() {
                found.extend(self.listed_work_trees()?);
            }
            return Ok(found);
        }
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if is_absent(&error) => return Ok(found),
            Err(error) => return Err(error).doing("list", &folder),
        };
        for entry in entries {
            found.extend(branch(&entry.doing("list", &folder)?.path().join("HEAD")));
        }
        Ok(found)
    }

    /// The branches of linked work trees, as git lists them: each has a reftable of its own.
    fn listed_work_trees(&self) -> Result<BTreeSet<RefName>, StoreError> {
        let git = Git::at(self.common_dir(), &[], "worktree");
        let listed = git.args(["list", "--porcelain", "-z"]).output()?;
        // The first is the repository itself.
        let linked = listed.split_str("\0\0").skip(1);
        let lines = linked.flat_map(|tree| tree.split_str("\0"));
        Ok(lines.filter_map(|line| RefName::new(line.strip_prefix(b"branch ")?).ok()).collect())
    }
}

/// The ref that a work tree's HEAD names. One that cannot be read protects nothing, as in git.
fn branch(head: &Path) -> Option<RefName> {
    let content = fs::read(head).ok()?;
    RefName::new(content.strip_prefix(b"ref:")?.trim()).ok()
}
