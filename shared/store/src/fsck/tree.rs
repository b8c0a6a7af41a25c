//! Checks of a tree: names, modes, order.

use std::collections::HashSet;

use zit_model::Oid;

use super::names::{self, ATTRIBUTES, IGNORE, MAILMAP, MODULES};
use super::{Fsck, Id};

/// The longest name of an entry, in bytes. Source: git-fsck(1), `largePathname`.
const MAX_NAME: usize = 4096;

const REGULAR: u32 = 0o100_644;
const EXECUTABLE: u32 = 0o100_755;
const LINK: u32 = 0o120_000;
const FOLDER: u32 = 0o040_000;
const SUBMODULE: u32 = 0o160_000;
/// The bits of a mode that say what an entry is.
const TYPE: u32 = 0o170_000;

/// One entry as it is written.
#[derive(Clone, Copy)]
struct Entry<'a> {
    mode: u32,
    name: &'a [u8],
    id: &'a [u8],
    is_padded: bool,
}

/// What of a whole tree is told once, in this order.
const ONCE: [(Id, &str); 11] = [
    (Id::NullSha1, "contains entries pointing to null sha1"),
    (Id::FullPathname, "contains full pathnames"),
    (Id::EmptyName, "contains empty pathname"),
    (Id::HasDot, "contains '.'"),
    (Id::HasDotdot, "contains '..'"),
    (Id::HasDotgit, "contains '.git'"),
    (Id::ZeroPaddedFilemode, "contains zero-padded file modes"),
    (Id::BadFilemode, "contains bad file modes"),
    (Id::DuplicateEntries, "contains duplicate file entries"),
    (Id::TreeNotSorted, "not properly sorted"),
    (Id::LargePathname, "contains excessively large pathname"),
];

impl Fsck<'_> {
    pub(super) fn tree(&mut self, data: &[u8]) {
        let mut found = HashSet::new();
        let mut order = Order::default();
        let mut rest = data;
        while !rest.is_empty() {
            let Some((entry, behind)) = Entry::split(rest, self.hash) else {
                self.report(Id::BadTree, "cannot be parsed as a tree");
                break;
            };
            rest = behind;
            entry.look(&mut found);
            found.extend(order.step(entry));
            self.special(&entry);
        }
        for (id, text) in ONCE {
            if found.contains(&id) {
                self.report(id, text);
            }
        }
    }

    /// Notes files that git gives a meaning.
    fn special(&mut self, entry: &Entry<'_>) {
        let is_link = entry.mode & TYPE == LINK;
        let oid = gix_hash::ObjectId::try_from(entry.id).ok().and_then(Oid::from_gix);
        let behind = names::behind_backslashes(entry.name);
        let is_modules = names::is_special(entry.name, &MODULES)
            || behind.into_iter().any(|name| names::is_ntfs(name, &MODULES));
        if is_modules && is_link {
            self.report(Id::GitmodulesSymlink, ".gitmodules is a symbolic link");
        } else if is_modules {
            self.modules.extend(oid);
        }
        if names::is_special(entry.name, &ATTRIBUTES) {
            if is_link {
                self.report(Id::GitattributesSymlink, ".gitattributes is a symlink");
            } else {
                self.attributes.extend(oid);
            }
        }
        if is_link && names::is_special(entry.name, &IGNORE) {
            self.report(Id::GitignoreSymlink, ".gitignore is a symlink");
        }
        if is_link && names::is_special(entry.name, &MAILMAP) {
            self.report(Id::MailmapSymlink, ".mailmap is a symlink");
        }
    }
}

impl<'a> Entry<'a> {
    /// Reads `<octal mode> <name>\0<oid>`; `None` for what git does not take for an entry, and for a mode past 32 bits,
    /// of which git takes the last bits.
    fn split(data: &'a [u8], hash: gix_hash::Kind) -> Option<(Self, &'a [u8])> {
        let space = data.iter().position(|byte| *byte == b' ')?;
        let (digits, rest) = data.split_at_checked(space)?;
        let mut mode = 0_u32;
        for digit in digits {
            let value = u32::from(digit.checked_sub(b'0').filter(|value| *value < 8)?);
            mode = mode.checked_mul(8)?.checked_add(value)?;
        }
        let rest = rest.get(1..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (name, rest) = rest.split_at_checked(end)?;
        let (id, rest) = rest.get(1..)?.split_at_checked(hash.len_in_bytes())?;
        let is_whole = !digits.is_empty() && !name.is_empty();
        let is_padded = digits.first() == Some(&b'0');
        is_whole.then_some((Self { mode, name, id, is_padded }, rest))
    }

    fn look(&self, found: &mut HashSet<Id>) {
        let Self { mode, name, id, is_padded } = *self;
        let mut note = |id, is_so: bool| _ = is_so && found.insert(id);
        note(Id::NullSha1, id.iter().all(|byte| *byte == 0));
        note(Id::FullPathname, name.contains(&b'/'));
        note(Id::HasDot, name == b".");
        note(Id::HasDotdot, name == b"..");
        note(Id::HasDotgit, names::is_dot_git(name));
        note(Id::ZeroPaddedFilemode, is_padded);
        note(Id::BadFilemode, ![REGULAR, EXECUTABLE, LINK, FOLDER, SUBMODULE].contains(&mode));
        note(Id::LargePathname, name.len() > MAX_NAME);
    }

    fn is_folder(&self) -> bool {
        self.mode & TYPE == FOLDER
    }
}

/// The order of entries, in which a folder's name counts as if a slash were behind it.
#[derive(Default)]
struct Order<'a> {
    last: Option<Entry<'a>>,
    /// Files that a folder of the same name may come after, other names lying between.
    files: HashSet<&'a [u8]>,
}

impl<'a> Order<'a> {
    fn step(&mut self, entry: Entry<'a>) -> Option<Id> {
        let last = self.last.replace(entry)?;
        if last.name == entry.name {
            return Some(Id::DuplicateEntries);
        }
        let key =
            |entry: &Entry<'a>| entry.name.iter().copied().chain(entry.is_folder().then_some(b'/'));
        if !last.is_folder() && entry.name.starts_with(last.name) {
            self.files.insert(last.name);
        }
        if entry.is_folder() && self.files.contains(entry.name) {
            return Some(Id::DuplicateEntries);
        }
        key(&last).gt(key(&entry)).then_some(Id::TreeNotSorted)
    }
}
