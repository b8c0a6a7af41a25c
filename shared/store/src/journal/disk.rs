//! The few operations on files that the journal needs, as a trait, so that a test can let each of them fail.
//!
//! Names are those of files in one folder. Nothing is durable before its flush: a file's bytes by
//! [`DiskFile::sync`], its name by [`Disk::sync_folder`].

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// One folder of files.
pub(super) trait Disk: Send + Sync {
    /// Every file's name and length in bytes.
    fn list(&self) -> io::Result<Vec<(String, u64)>>;
    /// Opens a file for writing.
    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn DiskFile>>;
    /// At most `len` bytes from `offset` on; fewer only at the end of the file.
    fn read(&self, name: &str, offset: u64, len: usize) -> io::Result<Vec<u8>>;
    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Flushes which names there are.
    fn sync_folder(&self) -> io::Result<()>;
    /// The folder.
    fn folder(&self) -> &Path;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    /// It must not exist.
    New,
    /// It must exist.
    Existing,
    /// An old one is emptied.
    Emptied,
}

/// A file open for writing.
pub(super) trait DiskFile: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts the file to `len` bytes.
    fn truncate(&self, len: u64) -> io::Result<()>;
    /// Flushes the content and the length.
    fn sync(&self) -> io::Result<()>;
}

/// A folder of the file system.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder and what leads to it, flushed.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        if !path.is_dir() {
            fs::create_dir_all(path)?;
            path.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?;
        }
        Ok(Self(path.to_owned()))
    }

    /// The folder as it is.
    pub(super) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Disk for Folder {
    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            // A file may be gone by now, under a reader; a name that is no text is none of ours.
            if let (Ok(meta), Ok(name)) = (entry.metadata(), entry.file_name().into_string())
                && meta.is_file()
            {
                files.push((name, meta.len()));
            }
        }
        Ok(files)
    }

    fn open(&self, name: &str, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.write(true);
        match how {
            Open::New => options.create_new(true),
            Open::Existing => &mut options,
            Open::Emptied => options.create(true).truncate(true),
        };
        Ok(Box::new(options.open(self.0.join(name))?))
    }

    fn read(&self, name: &str, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let file = File::open(self.0.join(name))?;
        let there = file.metadata()?.len().saturating_sub(offset);
        let len = len.min(usize::try_from(there).unwrap_or(usize::MAX));
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.0.join(from), self.0.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }

    fn folder(&self) -> &Path {
        &self.0
    }
}

impl DiskFile for File {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
