//! The dumb protocol: refs and objects as files, for clients that know no service.
//!
//! [`StoredFile::split`] tells which file a URL's path means, and [`open`] gives its content. Text is made anew at each
//! request, never read from what `git update-server-info` left.
//!
//! Nothing but what [`StoredFile`] names can be had: no configuration, no hook, no object of a push under way.
//!
//! Source: git's `gitprotocol-http`, "Dumb Clients", and `git-http-backend`.

use std::fs::{self, File};
use std::io;
use std::time::SystemTime;

use bstr::ByteSlice;
use zit_model::Namespace;
use zit_referee::Repository;
use zit_store::{Head, Reading, ResolvedHead};

use crate::{ServiceError, view};

/// A file that may be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredFile {
    /// `HEAD`.
    Head,
    /// `info/refs` without a service.
    InfoRefs,
    /// `objects/info/packs`.
    InfoPacks,
    /// `objects/info/alternates` or `objects/info/http-alternates`, by its path below `objects`.
    Alternates(&'static str),
    /// A loose object, by its path below `objects`.
    Loose(String),
    /// A pack, by its path below `objects`.
    Pack(String),
    /// The index of a pack, by its path below `objects`.
    Index(String),
}

/// What is in it.
#[derive(Debug)]
pub enum Content {
    /// Text, whole.
    Text(Vec<u8>),
    /// A file of the repository.
    File {
        /// The file, at its start.
        file: File,
        /// How long it was when it was opened, in bytes.
        n_bytes: u64,
        /// When it was last written, if the system knows.
        modified: Option<SystemTime>,
    },
}

/// How long a file may be kept by those who fetched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Its content never changes: its name is a hash of it.
    ForEver,
    /// It is out of date at once.
    None,
    /// git says nothing.
    Unsaid,
}

impl StoredFile {
    /// Splits a path into the repository's, without its last slash, and the file's. `info/refs`, which may be asked for
    /// with a service, is left to the caller.
    #[must_use]
    pub fn split(path: &[u8]) -> Option<(&[u8], Self)> {
        for (name, file) in [
            ("/HEAD", Self::Head),
            ("/objects/info/packs", Self::InfoPacks),
            ("/objects/info/alternates", Self::Alternates("info/alternates")),
            ("/objects/info/http-alternates", Self::Alternates("info/http-alternates")),
        ] {
            if let Some(repository) = path.strip_suffix(name.as_bytes()) {
                return Some((repository, file));
            }
        }
        // None of the names that follow has another `/objects/` in it.
        let at = path.rfind(b"/objects/")?;
        let (repository, name) = (path.get(..at)?, path.get(at + b"/objects/".len()..)?);
        Some((repository, Self::object(name.to_str().ok()?)?))
    }

    /// A loose object, pack or index by its path below `objects`.
    fn object(name: &str) -> Option<Self> {
        if let Some(pack) = name.strip_prefix("pack/pack-") {
            let (hash, extension) = pack.split_once('.')?;
            return match extension {
                _ if !is_hash(hash, 0) => None,
                "pack" => Some(Self::Pack(name.to_owned())),
                "idx" => Some(Self::Index(name.to_owned())),
                _ => None,
            };
        }
        let (fan, rest) = name.split_once('/')?;
        let is_loose = fan.len() == 2 && is_hash(rest, 2) && is_hex(fan);
        is_loose.then(|| Self::Loose(name.to_owned()))
    }

    /// The content type of an answer.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::InfoPacks => "text/plain; charset=utf-8",
            Self::Head | Self::InfoRefs | Self::Alternates(_) => "text/plain",
            Self::Loose(_) => "application/x-git-loose-object",
            Self::Pack(_) => "application/x-git-packed-objects",
            Self::Index(_) => "application/x-git-packed-objects-toc",
        }
    }

    /// How long it may be kept.
    #[must_use]
    pub fn lifetime(&self) -> Lifetime {
        match self {
            Self::Loose(_) | Self::Pack(_) | Self::Index(_) => Lifetime::ForEver,
            Self::InfoRefs | Self::InfoPacks | Self::Alternates(_) => Lifetime::None,
            Self::Head => Lifetime::Unsaid,
        }
    }
}

/// Opens a file; `None` when the repository, or one namespace of it, has none of that name.
///
/// # Errors
/// [`ServiceError`] when the repository cannot be read.
pub fn open(
    repository: &Repository,
    namespace: Option<&Namespace>,
    file: &StoredFile,
) -> Result<Option<Content>, ServiceError> {
    let store = repository.reading();
    Ok(match file {
        StoredFile::Head => Some(Content::Text(match namespace {
            Some(namespace) => head_of(store, namespace)?,
            None => head(store)?,
        })),
        StoredFile::InfoRefs => Some(Content::Text(info_refs(store, namespace)?)),
        StoredFile::InfoPacks => {
            Some(Content::Text(info_packs(store).map_err(ServiceError::File)?))
        }
        StoredFile::Alternates(name) => opened(store, name)?,
        StoredFile::Loose(name) | StoredFile::Pack(name) | StoredFile::Index(name) => {
            opened(store, name)?
        }
    })
}

/// The branch that HEAD names, or the commit; nothing for a branch that is yet to come.
fn head(store: Reading<'_>) -> Result<Vec<u8>, ServiceError> {
    let text = match store.head()? {
        Head::Detached(oid) => format!("{oid}\n").into_bytes(),
        Head::Symbolic(target) => match store.find_ref(&target)? {
            Some(_) => [b"ref: ".as_slice(), target.as_bstr(), b"\n"].concat(),
            None => Vec::new(),
        },
    };
    Ok(text)
}

/// The same of a namespace.
fn head_of(store: Reading<'_>, namespace: &Namespace) -> Result<Vec<u8>, ServiceError> {
    let Some(ResolvedHead { target, oid: Some(oid), .. }) = store.resolved_head_of(namespace)?
    else {
        return Ok(Vec::new());
    };
    let target = target.and_then(|target| namespace.strip_ref(&target));
    Ok(target.map_or_else(|| format!("{oid}\n"), |target| format!("ref: {target}\n")).into_bytes())
}

fn info_refs(store: Reading<'_>, namespace: Option<&Namespace>) -> Result<Vec<u8>, ServiceError> {
    let refs = match namespace {
        Some(namespace) => store
            .refs_below(namespace.prefix())?
            .into_iter()
            .filter_map(|stored| view::stripped(stored, namespace))
            .collect(),
        None => store.refs()?,
    };
    let mut text = Vec::new();
    for stored in refs {
        let mut line = |oid, end: &[u8]| {
            text.extend_from_slice(format!("{oid}\t").as_bytes());
            text.extend_from_slice(stored.name.as_bstr());
            text.extend_from_slice(end);
        };
        line(stored.oid, b"\n");
        if let Some(peeled) = stored.peeled {
            line(peeled, b"^{}\n");
        }
    }
    Ok(text)
}

/// The packs of the repository itself, the youngest first, and an empty line.
fn info_packs(store: Reading<'_>) -> io::Result<Vec<u8>> {
    let mut packs = Vec::new();
    for entry in fs::read_dir(store.objects_dir().join("pack"))? {
        let entry = entry?;
        let name = entry.file_name().into_string().unwrap_or_default();
        // A pack without its index is not there yet.
        let index = name
            .strip_suffix(".pack")
            .map(|stem| entry.path().with_file_name(format!("{stem}.idx")));
        if index.is_some_and(|index| index.is_file()) {
            packs.push((entry.metadata()?.modified().ok(), name));
        }
    }
    packs.sort_by(|a, b| b.cmp(a));
    let mut text = packs.iter().map(|(_, name)| format!("P {name}\n")).collect::<String>();
    text.push('\n');
    Ok(text.into_bytes())
}

fn opened(store: Reading<'_>, name: &str) -> Result<Option<Content>, ServiceError> {
    let file = match File::open(store.objects_dir().join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ServiceError::File(error)),
    };
    let metadata = file.metadata().map_err(ServiceError::File)?;
    if !metadata.is_file() {
        return Ok(None);
    }
    Ok(Some(Content::File { file, n_bytes: metadata.len(), modified: metadata.modified().ok() }))
}

/// Whether `text` is an oid in hexadecimal digits less its first `n_before`.
fn is_hash(text: &str, n_before: usize) -> bool {
    [40, 64].contains(&(text.len() + n_before)) && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_dumb_protocol_are_known_and_no_others() {
        let (sha1, sha256) = ("1".repeat(40), "a".repeat(64));
        for (path, file) in [
            ("/a/HEAD".to_owned(), Some(StoredFile::Head)),
            ("/a/objects/info/packs".to_owned(), Some(StoredFile::InfoPacks)),
            (
                "/a/objects/info/alternates".to_owned(),
                Some(StoredFile::Alternates("info/alternates")),
            ),
            (
                format!("/a/objects/11/{}", &sha1[2..]),
                Some(StoredFile::Loose(format!("11/{}", &sha1[2..]))),
            ),
            (
                format!("/a/objects/pack/pack-{sha256}.idx"),
                Some(StoredFile::Index(format!("pack/pack-{sha256}.idx"))),
            ),
            (
                format!("/a/objects/pack/pack-{sha1}.pack"),
                Some(StoredFile::Pack(format!("pack/pack-{sha1}.pack"))),
            ),
            (format!("/a/objects/pack/pack-{sha1}.keep"), None),
            (format!("/a/objects/pack/pack-{}.pack", &sha1[1..]), None),
            (format!("/a/objects/pack/pack-{sha1}.pack.idx"), None),
            (format!("/a/objects/pack/../pack/pack-{sha1}.pack"), None),
            (format!("/a/objects/11/{}", &sha1[1..]), None),
            (format!("/a/objects/1A/{}", &sha1[2..]), None),
            (format!("/a/objects/incoming-zit-1/11/{}", &sha1[2..]), None),
            ("/a/config".to_owned(), None),
            ("/a/objects/info/commit-graph".to_owned(), None),
            ("/a/objects/".to_owned(), None),
        ] {
            let expected = file.map(|file| (b"/a".as_slice(), file));
            assert_eq!(StoredFile::split(path.as_bytes()), expected, "{path}");
        }
        let odd = format!("/\u{fffd}\n/objects/x/objects/11/{}", &sha1[2..]);
        let (repository, _) = StoredFile::split(odd.as_bytes()).unwrap();
        assert_eq!(repository, "/\u{fffd}\n/objects/x".as_bytes());
    }
}
