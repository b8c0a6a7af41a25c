//! `core.sharedRepository`: who beside the owner may read and write the files that are made here.
//!
//! A file gets its mode before it gets its name, so that nobody finds it closed. What the git programs make, they open
//! themselves. Needs the files to be the server's own; where git only warns, this does too.
//!
//! Source: git-config(1), `core.sharedRepository`; git's `path.c`, `calc_shared_perm` and `adjust_shared_perm`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bstr::ByteSlice;

const GROUP: u32 = 0o660;
const EVERYBODY: u32 = 0o664;
const SET_GROUP_ID: u32 = 0o2000;

/// What becomes of the mode that the umask leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// It stays.
    #[default]
    Umask,
    /// These rights are added.
    Add(u32),
    /// These are the rights.
    Exactly(u32),
}

impl Sharing {
    /// A value that git would refuse counts as unset.
    pub(crate) fn read(file: &gix_config::File) -> Self {
        const KEY: &str = "core.sharedRepository";
        let Some(word) = file.string(KEY) else { return Self::Umask };
        match word.as_bytes() {
            b"umask" => return Self::Umask,
            b"group" => return Self::Add(GROUP),
            b"all" | b"world" | b"everybody" => return Self::Add(EVERYBODY),
            _ => {}
        }
        let mode = word.to_str().ok().and_then(|word| u32::from_str_radix(word, 8).ok());
        match mode {
            Some(0) => Self::Umask,
            Some(1) => Self::Add(GROUP),
            Some(2) => Self::Add(EVERYBODY),
            // The owner must be able to read and write.
            Some(mode) if mode & 0o600 == 0o600 => Self::Exactly(mode & 0o666),
            None if file.boolean(KEY).ok().flatten() == Some(true) => Self::Add(GROUP),
            Some(_) | None => Self::Umask,
        }
    }

    /// Gives a file or folder that was just made its rights.
    pub(crate) fn share(self, path: &Path) {
        if self == Self::Umask {
            return;
        }
        let shared = fs::symlink_metadata(path).and_then(|meta| {
            let old = meta.permissions().mode() & 0o7777;
            let new = self.mode(old, meta.is_dir());
            if old == new { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(new)) }
        });
        if let Err(error) = shared {
            tracing::warn!(path = %path.display(), %error, "core.sharedRepository is not applied");
        }
    }

    /// Makes the folders that are missing on the way to `path`, and opens each.
    pub(crate) fn create_folders(self, path: &Path) -> std::io::Result<()> {
        let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
        fs::create_dir_all(path)?;
        missing.iter().rev().for_each(|folder| self.share(folder));
        Ok(())
    }

    fn mode(self, old: u32, is_dir: bool) -> u32 {
        let (rights, keeps) = match self {
            Self::Umask => return old,
            Self::Add(rights) => (rights, old),
            Self::Exactly(rights) => (rights, old & !0o777),
        };
        let rights = if old & 0o200 == 0 { rights & !0o222 } else { rights };
        let rights = if old & 0o100 == 0 { rights } else { rights | (rights & 0o444) >> 2 };
        let mode = keeps | rights;
        if !is_dir {
            return mode;
        }
        let mode = mode | (mode & 0o444) >> 2;
        // What is made inside belongs to the same group.
        if mode & 0o060 == 0 { mode } else { mode | SET_GROUP_ID }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Sharing {
        let text = format!("[core]\nsharedRepository = {value}\n");
        Sharing::read(&gix_config::File::try_from(text.as_str()).unwrap())
    }

    #[test]
    fn the_words_are_gits() {
        for (value, expected) in [
            ("umask", Sharing::Umask),
            ("false", Sharing::Umask),
            ("0", Sharing::Umask),
            ("group", Sharing::Add(0o660)),
            ("true", Sharing::Add(0o660)),
            ("1", Sharing::Add(0o660)),
            ("everybody", Sharing::Add(0o664)),
            ("2", Sharing::Add(0o664)),
            ("0640", Sharing::Exactly(0o640)),
            ("0770", Sharing::Exactly(0o660)),
            ("0440", Sharing::Umask),
            ("frotz", Sharing::Umask),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
    }

    #[test]
    fn rights_are_added_or_set_and_follow_what_the_owner_may() {
        for (sharing, old, is_dir, expected) in [
            (Sharing::Umask, 0o600, false, 0o600),
            (Sharing::Add(0o660), 0o644, false, 0o664),
            (Sharing::Add(0o660), 0o444, false, 0o444),
            (Sharing::Add(0o660), 0o700, true, 0o2770),
            (Sharing::Add(0o664), 0o600, false, 0o664),
            (Sharing::Add(0o664), 0o700, true, 0o2775),
            (Sharing::Exactly(0o640), 0o644, false, 0o640),
            (Sharing::Exactly(0o640), 0o444, false, 0o440),
            (Sharing::Exactly(0o640), 0o755, true, 0o2750),
            (Sharing::Exactly(0o600), 0o755, true, 0o700),
        ] {
            assert_eq!(sharing.mode(old, is_dir), expected, "{sharing:?} {old:o}");
        }
    }
}
