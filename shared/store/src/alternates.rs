//! The repositories that this one borrows objects from (`objects/info/alternates`, through several levels), and what
//! their refs name. A pusher is told of these oids, so that it need not send what is there already.
//!
//! Source: gitrepository-layout(5), `objects/info/alternates`; git's `object-file.c`, `for_each_alternate_ref`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use zit_model::Oid;

use crate::Store;
use crate::error::StoreError;
use crate::git::Git;

/// How many levels are followed. Source: git's `link_alt_odb_entries`.
const MAX_DEPTH: usize = 5;

/// How the refs of an alternate are found, as far as the configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AlternateRefs {
    /// `core.alternateRefsCommand`: prints them, given the git directory.
    command: Option<BString>,
    /// `core.alternateRefsPrefixes`: the only ones that count.
    prefixes: Vec<BString>,
}

impl AlternateRefs {
    pub(crate) fn read(file: &gix_config::File) -> Self {
        let prefixes = file.string("core.alternateRefsPrefixes").unwrap_or_default();
        Self {
            command: file.string("core.alternateRefsCommand").filter(|command| !command.is_empty()),
            prefixes: prefixes.fields().map(BString::from).collect(),
        }
    }
}

impl Store {
    /// What the refs of the repositories that this one borrows from name; nothing, at the price of one look, without any.
    ///
    /// One that cannot be read is passed over, as in git.
    ///
    /// # Errors
    /// [`StoreError`] when the configuration cannot be read.
    pub fn alternate_refs(&self) -> Result<BTreeSet<Oid>, StoreError> {
        let mut found = BTreeSet::new();
        let objects = self.objects_dir();
        if !objects.join("info/alternates").exists() {
            return Ok(found);
        }
        let how = self.config()?.alternate_refs.clone();
        for folder in git_dirs(&objects) {
            match self.refs_of(&folder, &how) {
                Ok(lines) => {
                    found.extend(lines.lines().filter_map(|line| Oid::from_hex(line).ok()));
                }
                Err(error) => tracing::warn!(%error, "the refs of an alternate cannot be read"),
            }
        }
        Ok(found)
    }

    fn refs_of(&self, folder: &Path, how: &AlternateRefs) -> Result<Vec<u8>, StoreError> {
        let git = match &how.command {
            // An alias is a command of the shell with arguments, which is what git makes of this setting.
            Some(command) => {
                let alias = format!("alias.zit-alternate-refs=!{command}");
                Git::at(self.common_dir(), &[&alias], "zit-alternate-refs").arg(folder)
            }
            None => Git::at(folder, &["safe.directory=*"], "for-each-ref")
                .args(["--format=%(objectname)", "--"])
                .args(how.prefixes.iter().map(|prefix| prefix.to_os_str_lossy().into_owned())),
        };
        Ok(git.output()?)
    }
}

/// The git directories that the objects are borrowed from, where there are some with refs.
fn git_dirs(objects: &Path) -> BTreeSet<PathBuf> {
    all(objects)
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "objects"))
        .filter_map(|path| path.parent().map(Path::to_owned))
        .filter(|folder| folder.join("refs").is_dir())
        .collect()
}

/// Every folder that objects are borrowed from, as git finds them: a relative path begins at the folder that names it.
fn all(objects: &Path) -> BTreeSet<PathBuf> {
    let own = objects.canonicalize().unwrap_or_else(|_| objects.to_owned());
    let (mut found, mut todo) = (BTreeSet::new(), vec![(own.clone(), 0)]);
    while let Some((folder, depth)) = todo.pop() {
        let Ok(text) = fs::read(folder.join("info/alternates")) else { continue };
        let paths = gix_odb::alternate::parse(&text).unwrap_or_else(|error| {
            tracing::warn!(folder = %folder.display(), %error, "its alternates cannot be read");
            Vec::new()
        });
        for path in paths.iter().filter_map(|path| folder.join(path).canonicalize().ok()) {
            if path != own && found.insert(path.clone()) && depth < MAX_DEPTH {
                todo.push((path, depth + 1));
            }
        }
    }
    found
}

/// The first folder that git borrows from and the object database does not: what is there would count as missing.
///
/// The database takes a relative path of an alternate's own alternate from the repository's folder.
pub(crate) fn unseen(objects: &Path) -> Option<PathBuf> {
    if !objects.join("info/alternates").exists() {
        return None;
    }
    let seen = gix_odb::alternate::resolve(objects.to_owned(), Path::new("/"));
    let seen: BTreeSet<PathBuf> =
        seen.unwrap_or_default().iter().filter_map(|path| path.canonicalize().ok()).collect();
    all(objects).into_iter().find(|path| !seen.contains(path))
}
