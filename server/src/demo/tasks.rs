//! What the demo's agents do to the sample.
//!
//! The first two tasks both change [`CONTESTED`], in lines far enough apart for git to merge them without a word. Whether
//! they mean the same together is for somebody to look at: a `#` inside a quoted name begins a comment then.

use std::fs;
use std::path::Path;

use super::DemoError;
use super::rename::Renames;

/// The function that both agents want.
pub(crate) const CONTESTED: &str = "engine/src/config.rs#parse_config";

/// One piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// The branch it is done on.
    pub(crate) branch: &'static str,
    /// What it is for, in one sentence.
    pub(crate) intent: &'static str,
    /// What it changes.
    pub(crate) edits: &'static [Edit],
}

/// One replacement in one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit {
    /// The file.
    pub(crate) path: &'static str,
    /// What stands there once.
    pub(crate) old: &'static str,
    /// What stands there then.
    pub(crate) new: &'static str,
}

/// Changes [`CONTESTED`].
pub(crate) const COMMENTS: Task = Task {
    branch: "comments",
    intent: "let a comment follow a value",
    edits: &[Edit {
        path: "engine/src/config.rs",
        old: "        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
",
        new: "        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
",
    }],
};

/// Changes [`CONTESTED`] in other lines, which go on with what the other change makes.
pub(crate) const COLONS: Task = Task {
    branch: "colons",
    intent: "take a colon for an equals sign",
    edits: &[Edit {
        path: "engine/src/config.rs",
        old: "line.split_once('=')",
        new: "line.split_once(['=', ':'])",
    }],
};

/// Changes another function of the same file, and others elsewhere.
pub(crate) const LENGTHS: Task = Task {
    branch: "lengths",
    intent: "say how long the berths are",
    edits: &[
        Edit {
            path: "engine/src/config.rs",
            old: "    format!(\"{}: {} berths\", config.harbour, config.berths)",
            new: "    let Config { harbour, berths, longest_m } = config;
    format!(\"{harbour}: {berths} berths up to {longest_m} m\")",
        },
        Edit {
            path: "tools/report.py",
            old: "{entry.mean_length():.1f} m\")",
            new: "mean {entry.mean_length():.1f} m\")",
        },
        Edit {
            path: "web/src/Board.tsx",
            old: "      <td>{berth.metres} m</td>",
            new: "      <td>up to {berth.metres} m</td>",
        },
    ],
};

impl Task {
    /// Makes the task's edits in the work tree `folder`.
    ///
    /// # Errors
    /// [`DemoError::NoPlaceToEdit`] unless each edit finds what it replaces exactly once.
    pub(crate) fn edit(&self, folder: &Path, renames: &Renames) -> Result<(), DemoError> {
        for edit in self.edits {
            let path = renames.apply(edit.path);
            let file = folder.join(&path);
            let failed = |source| DemoError::io(format!("edit {}", file.display()), source);
            let text = fs::read_to_string(&file).map_err(failed)?;
            let (old, new) = (renames.apply(edit.old), renames.apply(edit.new));
            if text.matches(&old).count() != 1 {
                return Err(DemoError::NoPlaceToEdit { path });
            }
            fs::write(&file, text.replacen(&old, &new, 1)).map_err(failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_edit_finds_its_place_in_the_sample_and_is_made_there() {
        for task in [COMMENTS, COLONS, LENGTHS] {
            let folder = tempfile::tempdir().unwrap();
            sample::write(folder.path(), &Renames::default()).unwrap();
            task.edit(folder.path(), &Renames::default()).unwrap();
            for edit in task.edits {
                let text = fs::read_to_string(folder.path().join(edit.path)).unwrap();
                assert!(text.contains(edit.new), "{}: {}", task.branch, edit.path);
            }
        }
    }

    #[test]
    fn an_edit_without_its_place_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        sample::write(folder.path(), &Renames::default()).unwrap();
        fs::write(folder.path().join("tools/report.py"), "").unwrap();
        let error = LENGTHS.edit(folder.path(), &Renames::default()).unwrap_err();
        assert!(error.to_string().contains("tools/report.py"), "{error}");
    }
}
