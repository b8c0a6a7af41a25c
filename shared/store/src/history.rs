//! History: common ancestors, ancestry, and the commits between two. In process, also across a quarantine.

use gix_revision::merge_base::Flags;
use gix_revision::{Graph, graph};
use zit_model::Oid;

use crate::error::StoreError;
use crate::objects::{Objects, broken};

/// How many commits between two are listed at most.
pub const MAX_COMMITS_BETWEEN: usize = 100_000;

impl Objects {
    /// The best common ancestor of two commits; `None` when they share no history. Of several, the one that a walk by
    /// date meets first.
    ///
    /// # Errors
    /// [`StoreError`] when a commit on the way is missing or does not decode.
    pub fn merge_base(&self, a: Oid, b: Oid) -> Result<Option<Oid>, StoreError> {
        let bases = self.merge_bases(a, b)?;
        Ok(bases.into_iter().next())
    }

    /// Whether `ancestor` is `of`, or in its history.
    ///
    /// # Errors
    /// [`StoreError`] when a commit on the way is missing or does not decode.
    pub fn is_ancestor(&self, ancestor: Oid, of: Oid) -> Result<bool, StoreError> {
        if ancestor == of {
            return Ok(true);
        }
        // A commit in the other's history is their only merge base.
        Ok(self.merge_bases(ancestor, of)? == [ancestor])
    }

    /// The commits in the history of `tip` that are not in that of `base`, newest first; all without a base.
    ///
    /// # Errors
    /// [`StoreError`] when a commit on the way is missing or does not decode; [`StoreError::TooManyCommits`]
    /// past [`MAX_COMMITS_BETWEEN`].
    pub fn commits_between(&self, base: Option<Oid>, tip: Oid) -> Result<Vec<Oid>, StoreError> {
        use gix_traverse::commit::simple::{CommitTimeOrder, Sorting};
        base.iter().chain([&tip]).try_for_each(|oid| self.must_exist(*oid))?;
        let walk = gix_traverse::commit::Simple::new([tip.as_gix().to_owned()], &self.handle)
            .sorting(Sorting::ByCommitTime(CommitTimeOrder::NewestFirst))
            .and_then(|walk| walk.hide(base.map(|base| base.as_gix().to_owned())))
            .map_err(|error| broken(tip, &error))?;
        let mut commits = Vec::new();
        for commit in walk {
            let commit = commit.map_err(|error| broken(tip, &error))?;
            if commits.len() == MAX_COMMITS_BETWEEN {
                return Err(StoreError::TooManyCommits(MAX_COMMITS_BETWEEN));
            }
            commits.extend(Oid::from_gix(commit.id));
        }
        Ok(commits)
    }

    fn merge_bases(&self, a: Oid, b: Oid) -> Result<Vec<Oid>, StoreError> {
        [a, b].iter().try_for_each(|oid| self.must_exist(*oid))?;
        let mut graph: Graph<'_, '_, graph::Commit<Flags>> = Graph::new(&self.handle, None);
        let (first, other) = (a.as_gix().to_owned(), b.as_gix().to_owned());
        let bases = gix_revision::merge_base(first, &[other], &mut graph)
            .map_err(|error| broken(b, &error))?;
        Ok(bases.into_iter().flatten().filter_map(Oid::from_gix).collect())
    }

    /// The walks below must not meet an oid of the other hash function.
    fn must_exist(&self, oid: Oid) -> Result<(), StoreError> {
        self.kind(oid)?.map(|_| ()).ok_or(StoreError::MissingObject(oid))
    }
}
