//! Merging two commits, by `git merge-tree`, into a tree in the quarantine.
//!
//! Settings that change the outcome are pinned, so that a merge depends on the two commits and not on a machine.

use bstr::{BString, ByteSlice};
use zit_model::Oid;

use crate::error::StoreError;
use crate::git::said;
use crate::quarantine::Quarantine;

/// How many paths, and how many bytes of messages, a conflict reports.
const MAX_PATHS: usize = 1000;
const MAX_MESSAGES: usize = 16 * 1024;

/// Settings of git that decide what merges cleanly.
const PINNED: &[&str] = &[
    "merge.renames=true",
    "merge.renameLimit=7000",
    "merge.directoryRenames=conflict",
    "merge.renormalize=false",
    "merge.conflictStyle=merge",
    "diff.algorithm=histogram",
    "core.attributesFile=/dev/null",
];

/// How two commits go together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Without a conflict, as this tree.
    Clean(Oid),
    /// Not without a decision.
    Conflict {
        /// The paths in conflict, sorted, each once; at most 1,000.
        paths: Vec<BString>,
        /// What git says of them, at most 16 KiB, without control characters but line ends.
        messages: String,
    },
}

impl Quarantine {
    /// Merges two commits. The merged tree's objects are written to the quarantine.
    ///
    /// # Errors
    /// [`StoreError::Unrelated`] without a common ancestor; [`StoreError::Git`] when git fails.
    pub fn merge_tree(&mut self, ours: Oid, theirs: Oid) -> Result<Merge, StoreError> {
        let finished = self
            .git(PINNED, "merge-tree")?
            .args(["--write-tree", "-z", "--name-only", "--messages"])
            .args([ours.to_string(), theirs.to_string()])
            .finish(|_| Ok(()))?;
        let damaged = |out: &[u8]| StoreError::Damaged {
            path: "git merge-tree".into(),
            why: format!("its output is not understood: {}", said(out)),
        };
        match finished.status.code() {
            Some(0) => {
                let tree = finished.stdout.split(|&byte| byte == 0).next().unwrap_or_default();
                Oid::from_hex(tree).map(Merge::Clean).map_err(|_| damaged(&finished.stdout))
            }
            Some(1) => conflict(&finished.stdout).ok_or_else(|| damaged(&finished.stdout)),
            _ if self.objects().merge_base(ours, theirs)?.is_none() => {
                Err(StoreError::Unrelated { ours, theirs })
            }
            _ => Err(finished.failed().into()),
        }
    }
}

/// Reads the output of a merge with conflicts: the tree, paths up to an empty one, then messages.
///
/// # Source
/// git-merge-tree(1), "Output", with `-z`.
fn conflict(output: &[u8]) -> Option<Merge> {
    let mut fields = output.split(|&byte| byte == 0);
    Oid::from_hex(fields.next()?).ok()?;
    let mut paths: Vec<BString> =
        fields.by_ref().take_while(|path| !path.is_empty()).map(BString::from).collect();
    paths.sort();
    paths.dedup();
    paths.truncate(MAX_PATHS);
    Some(Merge::Conflict { paths, messages: messages(&mut fields) })
}

/// Each message: the number of its paths, the paths, its type, its text.
fn messages<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> String {
    let mut text = String::new();
    while let Some(count) =
        fields.next().and_then(|count| count.to_str().ok()?.parse::<usize>().ok())
    {
        let message = fields.nth(count.saturating_add(1)).unwrap_or_default().to_str_lossy();
        if message.starts_with("Auto-merging") {
            continue;
        }
        text.extend(message.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }));
        if text.len() > MAX_MESSAGES {
            let end = text.floor_char_boundary(MAX_MESSAGES);
            text.truncate(end);
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_lists_each_path_once_and_what_git_says() {
        let tree = "1".repeat(40);
        let output = format!(
            "{tree}\0b\0a\0b\0\x001\0b\0Auto-merging\0Auto-merging b\n\x002\0a\0b\0CONFLICT (x)\0CONFLICT: \x1b[1ma\n\0"
        );
        let Some(Merge::Conflict { paths, messages }) = conflict(output.as_bytes()) else {
            panic!("not a conflict");
        };
        assert_eq!(paths, ["a", "b"]);
        assert_eq!(messages, "CONFLICT:  [1ma\n");
    }
}
