//! Pushes from shallow clones: where the history that comes in ends, and the repository's file `shallow`.
//!
//! ```text
//! Quarantine::ends_at               what the client says, before its pack is read
//! Quarantine::roots                 at which of these commits the new history of each tip ends
//! Quarantine::unreached             whether they still do, once refs are locked
//! Quarantine::check_connected_above whether the tip is whole down to there
//! Prepared::end_at                  takes them for ends of the repository's own history
//! ```
//!
//! What the client says is never believed of a commit that refs reach: the repository has its parents.
//!
//! # Source
//! git's `shallow.c`, `prepare_shallow_info` and `assign_shallow_commits_to_refs`; gitrepository-layout(5), `shallow`.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use zit_model::Oid;

use crate::error::{Doing, StoreError};
use crate::objects::Kind;
use crate::pack::{OWN_REFS, PackError};
use crate::quarantine::Quarantine;
use crate::refs::StoredRef;

/// The file's name in the git directory.
pub(crate) const FILE: &str = "shallow";

/// The commits that the repository's file `shallow` lists.
pub(crate) fn shallow(git_dir: &Path) -> HashSet<Oid> {
    let lines = fs::read(git_dir.join(FILE)).unwrap_or_default();
    lines.lines().filter_map(|line| Oid::from_hex(line.trim()).ok()).collect()
}

impl Quarantine {
    /// Notes the commits whose parents the client lacks. Those where the repository's history ends too say nothing new.
    ///
    /// Before the pack is read: one that is not whole is refused unless this explains it.
    pub fn ends_at(&mut self, said: &[Oid]) {
        if said.is_empty() {
            return;
        }
        let known = shallow(self.git_dir());
        let ends = said.iter().copied().filter(|oid| !known.contains(oid));
        self.ends = ends.filter(|oid| oid.kind() == self.kind).collect();
    }

    /// For each tip, the commits at which its new history ends because the client's does; none for a tip whose history
    /// does not, or cannot be read.
    ///
    /// # Errors
    /// [`StoreError`] when objects cannot be read or git cannot be run.
    pub fn roots(&mut self, tips: &[Oid]) -> Result<Vec<BTreeSet<Oid>>, StoreError> {
        let mut ends = BTreeSet::new();
        let objects = self.objects();
        for &oid in &self.ends {
            if objects.kind(oid)? == Some(Kind::Commit) {
                ends.insert(oid);
            }
        }
        let ends = self.unreached(ends)?;
        let mut roots = Vec::with_capacity(tips.len());
        for tip in tips {
            let new = self.new_commits([tip], &ends)?.unwrap_or_default();
            roots.push(ends.intersection(&new).copied().collect());
        }
        Ok(roots)
    }

    /// Those of the commits that no ref reaches now: at the others, history goes on.
    ///
    /// # Errors
    /// As [`Quarantine::roots`].
    pub fn unreached(&mut self, mut ends: BTreeSet<Oid>) -> Result<BTreeSet<Oid>, StoreError> {
        let mut old = BTreeSet::new();
        let repository = self.repository_objects();
        for &oid in &ends {
            if repository.kind(oid)?.is_some() {
                old.insert(oid);
            }
        }
        // Cutting history at one that refs reach may hide another one that they reach, so the others are looked at again
        // without it.
        while !old.is_empty() {
            let apart = self.new_commits(old.iter(), &old)?.unwrap_or_default();
            let reached: BTreeSet<Oid> = old.difference(&apart).copied().collect();
            if reached.is_empty() {
                break;
            }
            old.retain(|oid| apart.contains(oid));
            ends.retain(|oid| !reached.contains(oid));
        }
        Ok(ends)
    }

    /// As [`Quarantine::check_connected`] of one tip, with history that may end at `roots`.
    ///
    /// # Errors
    /// As [`Quarantine::check_connected`].
    pub fn check_connected_above(
        &mut self,
        roots: &BTreeSet<Oid>,
        tip: Oid,
        refs: &[StoredRef],
    ) -> Result<(), PackError> {
        self.check_connected_cut(&[tip], refs, roots)
    }

    /// The commits that `tips` reach and refs do not, if all history ended at `cut` too; `None` when some are missing.
    fn new_commits<'a>(
        &mut self,
        tips: impl IntoIterator<Item = &'a Oid>,
        cut: &BTreeSet<Oid>,
    ) -> Result<Option<BTreeSet<Oid>>, StoreError> {
        let file = self.shallow_file(cut)?;
        let finished = self
            .reading_git("rev-list")?
            .env("GIT_SHALLOW_FILE", &file)
            .args(["--stdin", "--not"])
            .args(OWN_REFS)
            .args(["--all", "--alternate-refs"])
            .finish(|stdin| tips.into_iter().try_for_each(|tip| writeln!(stdin, "{tip}")))?;
        if !finished.status.success() {
            return Ok(None);
        }
        let lines = finished.stdout.lines();
        Ok(Some(lines.filter_map(|line| Oid::from_hex(line).ok()).collect()))
    }

    /// Writes a file for git to read in place of the repository's `shallow`, with `cut` beside what that holds.
    pub(crate) fn shallow_file<'a>(
        &mut self,
        cut: impl IntoIterator<Item = &'a Oid>,
    ) -> Result<PathBuf, StoreError> {
        let mut ends = shallow(self.git_dir());
        ends.extend(cut);
        // Beside the folders of objects: only these are migrated.
        let path = self.materialise()?.join("shallow");
        fs::write(&path, lines(ends)).doing("write", &path)?;
        Ok(path)
    }
}

/// The file's text, in the order of oids.
pub(crate) fn lines(ends: HashSet<Oid>) -> Vec<u8> {
    let ends: BTreeSet<Oid> = ends.into_iter().collect();
    ends.iter().flat_map(|oid| format!("{oid}\n").into_bytes()).collect()
}
