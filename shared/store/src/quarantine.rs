//! Quarantine: objects of a push that nobody but its judge sees, until they are migrated or thrown away.
//!
//! Objects come in as a pack ([`Quarantine::receive_pack`]), from a merge, or are written one by one. Those written one
//! by one are few and small; they stay in memory until they are migrated or a program of git has to see them. Everything
//! else is in a folder `objects/incoming-zit-…` that names the repository's objects as its alternate and is made once
//! there is something to put into it. Dropping the quarantine removes the folder; [`Quarantine::migrate`] moves the
//! objects into the repository, flushed, so that a ref may name them.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::BStr;
use gix_hash::ObjectId;
use gix_object::Write as _;
use gix_odb::memory::Storage;
use tempfile::TempDir;
use zit_model::Oid;

use crate::backlog::{Backlog, Pending, Unpacked};
use crate::crash::crash_point;
use crate::error::{Doing, StoreError};
use crate::fsio;
use crate::git::Git;
use crate::loose;
use crate::objects::{self, Database, Kind, Objects, Signature};
use crate::receive_config::ReceiveConfig;
use crate::sharing::Sharing;
use crate::unpack::Indexed;

/// How often a folder that garbage collection took away is made again.
const MOVE_ATTEMPTS: usize = 10;

/// How the names of a quarantine's folder, and of objects on their way out of memory, begin.
pub(crate) const PREFIX: &str = "incoming-zit-";

/// How many bytes of objects a journal record carries.
const MAX_INLINE: usize = 1 << 20;

/// What became of a quarantine's objects.
pub(crate) struct Migrated {
    /// Those that are in no file yet and go into the journal.
    pub(crate) inline: Storage,
    pub(crate) kept: Kept,
}

/// Objects that were moved into the repository before refs.
#[must_use = "once dropped, a repack may take the objects"]
pub struct Published {
    _kept: Kept,
}

/// Objects apart from the repository's.
pub struct Quarantine {
    git_dir: PathBuf,
    repository: Database,
    backlog: Arc<Backlog>,
    folder: Option<Folder>,
    /// What was written one by one and is not in the folder.
    written: Storage,
    /// What a small pack in the folder holds.
    unpacked: Unpacked,
    pub(crate) kind: gix_hash::Kind,
    pub(crate) receive: Arc<ReceiveConfig>,
    sharing: Sharing,
    /// The commits whose parents the client lacks, as it says, and that are no ends of the repository's history.
    pub(crate) ends: HashSet<Oid>,
}

/// Where the objects are, and the database that reads them and the repository's.
struct Folder {
    dir: TempDir,
    objects: Database,
}

/// Removes what crashes left. Only while no quarantine is in use: at opening, under the repository's lock.
pub(crate) fn remove_stale(objects_dir: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(objects_dir).doing("list", objects_dir)? {
        let entry = entry.doing("list", objects_dir)?;
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            let path = entry.path();
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.doing("remove", &path)?;
        }
    }
    let packs = objects_dir.join("pack");
    for entry in fs::read_dir(&packs).into_iter().flatten() {
        let path = entry.doing("list", &packs)?.path();
        if is_keep(&path) {
            fsio::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Whether the file keeps a pack, and is ours.
pub(crate) fn is_keep(path: &Path) -> bool {
    let keep = path.extension().is_some_and(|extension| extension == "keep");
    keep && fs::read(path).is_ok_and(|text| text == KEEP.as_bytes())
}

impl Quarantine {
    /// An empty quarantine beside the objects of `git_dir`, which `repository` reads.
    pub(crate) fn new(
        git_dir: &Path,
        repository: Database,
        backlog: Arc<Backlog>,
        kind: gix_hash::Kind,
    ) -> Self {
        let git_dir = git_dir.to_owned();
        let receive = Arc::default();
        let written = Storage::default();
        Self {
            git_dir,
            repository,
            backlog,
            folder: None,
            written,
            unpacked: Unpacked::default(),
            kind,
            receive,
            sharing: Sharing::Umask,
            ends: HashSet::new(),
        }
    }

    /// With objects that others may read as the configuration says.
    pub(crate) fn shared(self, sharing: Sharing) -> Self {
        Self { sharing, ..self }
    }

    /// With what the repository's configuration asks of a pack.
    pub(crate) fn receiving(self, receive: Arc<ReceiveConfig>) -> Self {
        Self { receive, ..self }
    }

    /// A handle on the objects of the repository and on those that the quarantine holds now.
    ///
    /// What comes into the quarantine later may need a new handle.
    #[must_use]
    pub fn objects(&self) -> Objects {
        let objects = self.folder.as_ref().map_or(&self.repository, |folder| &folder.objects);
        Objects::with(objects, self.kind, self.written.clone(), self.unpacked.clone())
    }

    /// A handle on what the repository has without the quarantine.
    pub(crate) fn repository_objects(&self) -> Objects {
        Objects::new(&self.repository, self.kind)
    }

    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Writes an object, which is held in memory.
    ///
    /// # Errors
    /// [`StoreError::WriteObject`] when it cannot be given a name.
    pub fn write(&mut self, kind: Kind, data: &[u8]) -> Result<Oid, StoreError> {
        let id = gix_object::compute_hash(self.kind, kind, data)
            .map_err(|error| StoreError::WriteObject(error.to_string()))?;
        let oid = Oid::from_gix(id)
            .ok_or_else(|| StoreError::WriteObject("it hashes to zero".to_owned()))?;
        self.written.entry(id).or_insert_with(|| (kind, data.to_owned()));
        Ok(oid)
    }

    /// Writes a commit whose tree holds one file: the form of every document that a ref names.
    ///
    /// `file` is one path component.
    ///
    /// # Errors
    /// As [`Quarantine::write`].
    pub fn write_document_commit(
        &mut self,
        file: &str,
        content: &[u8],
        parents: &[Oid],
        message: &str,
        by: &Signature,
    ) -> Result<Oid, StoreError> {
        let tree = self.write_tree(&[(file, content)])?;
        self.commit_tree(tree, parents, by, by, message)
    }

    /// Writes a tree of regular files, none in a folder. A name that occurs twice keeps its last content.
    ///
    /// # Errors
    /// As [`Quarantine::write`]; also for a name that is no path component.
    pub fn write_tree(&mut self, files: &[(&str, &[u8])]) -> Result<Oid, StoreError> {
        let mut entries = std::collections::BTreeMap::new();
        for (name, content) in files {
            if name.is_empty() || name.contains(['/', '\0']) || [".", "..", ".git"].contains(name) {
                return Err(StoreError::WriteObject(format!("{name:?} is no file name")));
            }
            entries.insert(*name, self.write(Kind::Blob, content)?);
        }
        let mut tree = Vec::new();
        for (name, blob) in entries {
            tree.extend_from_slice(format!("100644 {name}\0").as_bytes());
            tree.extend_from_slice(blob.as_bytes());
        }
        self.write(Kind::Tree, &tree)
    }

    /// Writes a commit of a tree. NUL bytes, at which git would end the message, are left out of it.
    ///
    /// # Errors
    /// As [`Quarantine::write`].
    pub fn commit_tree(
        &mut self,
        tree: Oid,
        parents: &[Oid],
        author: &Signature,
        committer: &Signature,
        message: impl AsRef<[u8]>,
    ) -> Result<Oid, StoreError> {
        let mut commit = format!("tree {tree}\n").into_bytes();
        for parent in parents {
            commit.extend_from_slice(format!("parent {parent}\n").as_bytes());
        }
        for (field, who) in [("author ", author), ("committer ", committer)] {
            commit.extend_from_slice(field.as_bytes());
            commit.extend_from_slice(&who.line());
            commit.push(b'\n');
        }
        commit.push(b'\n');
        commit.extend(message.as_ref().iter().filter(|byte| **byte != 0));
        self.write(Kind::Commit, &commit)
    }

    /// Moves the objects into the repository, all but a few small ones, which come back to be journaled. Packs come
    /// before their indexes; everything is flushed before it is visible, and its folders after. What the repository has
    /// already stays as it is.
    ///
    /// Hold what comes back until refs name the objects: it keeps the packs from a `git repack -ad` in between.
    ///
    /// # Errors
    /// [`StoreError::Io`] as the file system says. Objects already moved stay: no ref names them, and git's garbage
    /// collection takes them.
    pub(crate) fn migrate(mut self) -> Result<Migrated, StoreError> {
        let target = self.git_dir.join("objects");
        let mut touched = BTreeSet::new();
        let mut kept = Kept::nothing();
        let size: usize = self.written.values().map(|(_, data)| data.len()).sum();
        let inline =
            if size <= MAX_INLINE { std::mem::take(&mut self.written) } else { Storage::default() };
        for (mut from, to) in loose::stage(&target, &self.written)? {
            touched.extend(move_into(&from, &to, &target, self.sharing)?);
            from.disable_cleanup(true);
            crash_point("quarantine.migrating");
        }
        let files = self.folder.as_ref().map_or(Ok(Vec::new()), Folder::files)?;
        for (from, name) in files {
            let to = target.join(&name);
            if name.extension().is_some_and(|extension| extension == "pack") {
                kept.keep(to.with_extension("keep"))?;
            }
            if fsio::freshen(&to)? {
                continue;
            }
            fsio::sync(&from)?;
            touched.extend(move_into(&from, &to, &target, self.sharing)?);
            crash_point("quarantine.migrating");
        }
        touched.iter().try_for_each(|folder| fsio::sync_if_there(folder))?;
        crash_point("quarantine.migrated");
        Ok(Migrated { inline, kept })
    }

    /// Moves all objects into the repository before any ref names them: a program is to make refs of its own.
    ///
    /// # Errors
    /// As [`Quarantine::write`], and as the file system says.
    pub fn publish(mut self) -> Result<Published, StoreError> {
        self.materialise()?;
        let Migrated { kept, .. } = self.migrate()?;
        Ok(Published { _kept: kept })
    }

    /// Holds objects whose names are known, in memory as those that are written one by one.
    pub(crate) fn hold(&mut self, objects: impl IntoIterator<Item = (ObjectId, Kind, Vec<u8>)>) {
        for (id, kind, data) in objects {
            self.written.entry(id).or_insert((kind, data));
        }
    }

    /// Puts a pack with its index into the folder. Nothing is flushed: migrating does that. Until then its objects are
    /// read from memory, where they are unpacked already: a push is looked at several times.
    pub(crate) fn add_pack(
        &mut self,
        pack: &Indexed,
        objects: impl IntoIterator<Item = (ObjectId, Kind, Vec<u8>)>,
    ) -> Result<(), StoreError> {
        let folder = self.folder()?.dir.path().join("pack");
        let base = folder.join(format!("pack-{}", pack.id));
        for (extension, bytes) in [("pack", &pack.pack), ("idx", &pack.index)] {
            let path = base.with_extension(extension);
            let mut options = fs::OpenOptions::new();
            let options = options.write(true).create_new(true).mode(loose::MODE);
            let mut file = options.open(&path).doing("create", &path)?;
            file.write_all(bytes).doing("write", &path)?;
        }
        let objects = objects.into_iter().map(|(id, kind, data)| (id, (kind, data)));
        self.unpacked = Unpacked::new(objects);
        Ok(())
    }

    /// `git <name>` that reads and writes objects in the quarantine first.
    pub(crate) fn git(&mut self, settings: &[&str], name: &str) -> Result<Git, StoreError> {
        let git = Git::at(&self.git_dir, settings, name);
        Ok(git.quarantined(self.materialise()?))
    }

    /// Puts everything into the folder, for a program to see; where that is.
    pub(crate) fn materialise(&mut self) -> Result<&Path, StoreError> {
        self.backlog.show()?;
        let written = std::mem::take(&mut self.written);
        let folder = self.folder()?;
        folder.write(&written)?;
        Ok(folder.dir.path())
    }

    fn folder(&mut self) -> Result<&Folder, StoreError> {
        let folder = if let Some(folder) = self.folder.take() {
            folder
        } else {
            let pending = self.backlog.pending().clone();
            Folder::new(&self.git_dir.join("objects"), pending, self.kind)?
        };
        Ok(self.folder.insert(folder))
    }

    /// `git <name>` that reads what the quarantine holds and writes no object.
    pub(crate) fn reading_git(&mut self, name: &str) -> Result<Git, StoreError> {
        if self.folder.is_none() && self.written.is_empty() {
            self.backlog.show()?;
            return Ok(Git::at(&self.git_dir, &[], name));
        }
        self.git(&[], name)
    }

    /// Writes a blob: shorthand for [`Quarantine::write`].
    ///
    /// # Errors
    /// As [`Quarantine::write`].
    pub fn write_blob(&mut self, content: impl AsRef<BStr>) -> Result<Oid, StoreError> {
        self.write(Kind::Blob, content.as_ref())
    }
}

impl Folder {
    fn new(repository: &Path, pending: Pending, kind: gix_hash::Kind) -> Result<Self, StoreError> {
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(repository)
            .doing("create a quarantine in", repository)?;
        for name in ["pack", "info"] {
            let path = dir.path().join(name);
            fs::create_dir(&path).doing("create", &path)?;
        }
        let mut line = OsString::from(repository.as_os_str());
        line.push("\n");
        let alternates = dir.path().join("info/alternates");
        fs::write(&alternates, line.as_encoded_bytes()).doing("write", &alternates)?;
        let files = objects::open(dir.path(), kind)?;
        Ok(Self { dir, objects: Database { files, pending } })
    }

    /// Writes objects that were in memory, for a program to see.
    fn write(&self, written: &Storage) -> Result<(), StoreError> {
        let handle = self.objects.files.to_cache_arc();
        for (id, (kind, data)) in written.iter() {
            handle
                .write_buf_with_known_id(*kind, data, *id)
                .map_err(|error| StoreError::WriteObject(error.to_string()))?;
        }
        Ok(())
    }

    /// The object files with their names below `objects/`: loose ones, then packs, an index after all else of its pack.
    fn files(&self) -> Result<Vec<(PathBuf, PathBuf)>, StoreError> {
        let root = self.dir.path();
        let mut files = Vec::new();
        for folder in fs::read_dir(root).doing("list", root)? {
            let folder = folder.doing("list", root)?;
            let name = PathBuf::from(folder.file_name());
            if name == Path::new("info") || !folder.path().is_dir() {
                continue;
            }
            for file in fs::read_dir(folder.path()).doing("list", &folder.path())? {
                let file = file.doing("list", &folder.path())?;
                if !file.file_name().as_encoded_bytes().starts_with(b"tmp_") {
                    files.push((file.path(), name.join(file.file_name())));
                }
            }
        }
        let rank = |name: &Path| {
            let index = name.extension().is_some_and(|extension| extension == "idx");
            (name.starts_with("pack"), index)
        };
        files.sort_by(|(_, a), (_, b)| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
        Ok(files)
    }
}

/// Packs that a repack leaves alone, although no ref names what is in them yet: each has a `.keep` file beside it, as
/// git's own receive-pack does it. Dropping this takes the files away.
#[must_use = "once dropped, a repack may take the objects"]
pub(crate) struct Kept {
    files: Vec<PathBuf>,
}

/// What a `.keep` file of ours says; one that a crash left is known by it.
const KEEP: &str = "zit: refs that name these objects are being written\n";

impl Kept {
    pub(crate) fn nothing() -> Self {
        Self { files: Vec::new() }
    }

    pub(crate) fn keep(&mut self, file: PathBuf) -> Result<(), StoreError> {
        if keep(&file)? {
            self.files.push(file);
        }
        Ok(())
    }
}

/// Writes a `.keep` file, which has its text from the moment it is there: without it nobody would know whose it is, and
/// it would stay. Not when there is one: somebody keeps a pack of this very name for reasons of their own.
pub(crate) fn keep(file: &Path) -> Result<bool, StoreError> {
    let objects = file.ancestors().nth(2).unwrap_or(file);
    let mut text = tempfile::Builder::new()
        .prefix(PREFIX)
        .tempfile_in(objects)
        .doing("create a file in", objects)?;
    text.write_all(KEEP.as_bytes()).doing("write", text.path())?;
    match fs::hard_link(text.path(), file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).doing("create", file),
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        for file in &self.files {
            if let Err(error) = fsio::remove_file(file) {
                tracing::warn!(%error, "a pack stays kept until the repository is opened again");
            }
        }
    }
}

/// Moves an object file to its place below `objects`, whose folder is made if it is missing; the folders to flush.
///
/// git's garbage collection removes a folder that it has just emptied, also between making it here and moving into it.
fn move_into(
    from: &Path,
    to: &Path,
    objects: &Path,
    sharing: Sharing,
) -> Result<[PathBuf; 2], StoreError> {
    sharing.share(from);
    let folder = to.parent().unwrap_or(objects);
    for _ in 0..MOVE_ATTEMPTS {
        match fs::rename(from, to) {
            Err(error) if fsio::is_absent(&error) && from.exists() => {
                sharing.create_folders(folder).doing("create", folder)?;
            }
            moved => {
                moved.doing("rename", from)?;
                return Ok([folder.to_owned(), objects.to_owned()]);
            }
        }
    }
    fs::rename(from, to).doing("rename", from)?;
    Ok([folder.to_owned(), objects.to_owned()])
}
