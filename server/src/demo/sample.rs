//! The program that the demo's agents work on: berths for a small harbour, in five languages.
//!
//! The files lie in `demo-sample/` as they are and are part of the binary. They are never compiled with it.

use std::fs;
use std::path::Path;

use super::DemoError;
use super::rename::Renames;

/// One file of the sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Its path in the repository, with `/`.
    pub(crate) path: &'static str,
    /// What it says.
    pub(crate) text: &'static str,
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(File { path: $path, text: include_str!(concat!("../../demo-sample/", $path)) }),*]
    };
}

/// Every file of the sample.
pub(crate) const FILES: &[File] = files![
    "README.md",
    "docs/handbook.md",
    "docs/moorings.conf",
    "engine/src/allot.rs",
    "engine/src/config.rs",
    "engine/src/main.rs",
    "gate/limit.go",
    "gate/serve.go",
    "tools/report.py",
    "web/src/Board.tsx",
    "web/src/api.ts",
    "web/src/poll.js",
];

/// Writes the sample below `folder`.
///
/// # Errors
/// [`DemoError::Io`] when a file cannot be written.
pub(crate) fn write(folder: &Path, renames: &Renames) -> Result<(), DemoError> {
    for file in FILES {
        let path = folder.join(renames.apply(file.path));
        let written = match path.parent() {
            Some(parent) => fs::create_dir_all(parent),
            None => Ok(()),
        };
        written
            .and_then(|()| fs::write(&path, renames.apply(file.text)))
            .map_err(|source| DemoError::io(format!("write {}", path.display()), source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_list() {
        fn walk(folder: &Path, found: &mut Vec<String>, root: &Path) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found, root);
                } else {
                    let path = path.strip_prefix(root).unwrap();
                    found.push(path.to_str().unwrap().replace('\\', "/"));
                }
            }
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo-sample");
        let mut found = Vec::new();
        walk(&root, &mut found, &root);
        found.sort();
        assert_eq!(found, FILES.iter().map(|file| file.path).collect::<Vec<_>>());
    }
}
