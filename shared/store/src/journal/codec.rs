//! A draft as bytes and back: versioned, length-prefixed, one form for each draft. The layout is in `spec/journal.md`,
//! "Record".
//!
//! Decoding takes any bytes: it never panics and reserves no memory on a length's word. Whatever it takes encodes to
//! the same bytes again.

use bstr::{BString, ByteSlice};
use zit_model::refname::RefNameError;
use zit_model::{Oid, RefChange, RefName, RefUpdate};

use super::error::JournalError;
use super::record::{Draft, Fact, InlineObject, InlinePack, Origin};
use crate::Kind;

/// The largest record, in bytes: 64 MiB. A transaction with more brings its packs by name.
pub const MAX_RECORD: u64 = 64 << 20;

/// The version of the layout.
const VERSION: u8 = 1;

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum DecodeError {
    #[error("the record ends early")]
    Truncated,
    #[error("{0} bytes follow the record")]
    Trailing(usize),
    #[error("record layout {0} is not known to this version of zit")]
    Version(u8),
    #[error("{0} is no {1}")]
    Tag(u8, &'static str),
    #[error("an object id of {0} bytes, or of zeroes")]
    Oid(usize),
    #[error(transparent)]
    Name(#[from] RefNameError),
}

/// The draft's bytes.
///
/// # Errors
/// [`JournalError::TooLarge`] past [`MAX_RECORD`].
pub(super) fn encode(draft: &Draft) -> Result<Vec<u8>, JournalError> {
    let size = size(draft);
    if size > MAX_RECORD {
        return Err(JournalError::TooLarge { what: "a record", size, limit: MAX_RECORD });
    }
    let mut out = Out(Vec::new());
    out.byte(VERSION);
    out.0.extend_from_slice(&draft.time_ms.to_be_bytes());
    out.byte(origin_tag(draft.origin));
    out.bytes(&draft.principal);
    out.bytes(&draft.agent);
    out.list(&draft.changes, Out::change);
    out.list(&draft.objects, |out, object| {
        out.byte(kind_tag(object.kind));
        out.oid(object.oid);
        out.bytes(&object.bytes);
    });
    out.list(&draft.packs, |out, pack| {
        out.bytes(&pack.name);
        out.bytes(&pack.pack);
        out.bytes(&pack.idx);
    });
    out.list(&draft.named_packs, |out, name| out.bytes(name));
    out.list(&draft.facts, |out, fact| {
        out.bytes(&fact.kind);
        out.bytes(&fact.key);
        out.bytes(&fact.value);
    });
    Ok(out.0)
}

/// Reads a draft that [`encode`] wrote.
pub(super) fn decode(bytes: &[u8]) -> Result<Draft, DecodeError> {
    let mut input = In(bytes);
    let version = input.byte()?;
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    let draft = Draft {
        time_ms: u64::from_be_bytes(input.array()?),
        origin: origin(input.byte()?)?,
        principal: input.bstring()?,
        agent: input.bstring()?,
        changes: input.list(In::change)?,
        objects: input.list(|input| {
            let kind = kind(input.byte()?)?;
            Ok(InlineObject { kind, oid: input.oid()?, bytes: input.bytes()?.to_vec() })
        })?,
        packs: input.list(|input| {
            Ok(InlinePack {
                name: input.bstring()?,
                pack: input.bytes()?.to_vec(),
                idx: input.bytes()?.to_vec(),
            })
        })?,
        named_packs: input.list(In::bstring)?,
        facts: input.list(|input| {
            Ok(Fact { kind: input.bstring()?, key: input.bstring()?, value: input.bstring()? })
        })?,
    };
    if input.0.is_empty() { Ok(draft) } else { Err(DecodeError::Trailing(input.0.len())) }
}

impl Draft {
    /// How many bytes the draft takes in the journal. What is appended together is at most
    /// [`MAX_BATCH`](super::MAX_BATCH).
    #[must_use]
    pub fn size(&self) -> u64 {
        size(self)
    }
}

/// The length of what [`encode`] writes.
fn size(draft: &Draft) -> u64 {
    let text = |bytes: &[u8]| 4 + bytes.len() as u64;
    let oid = |oid: &Oid| 1 + oid.as_bytes().len() as u64;
    let value = |value: Option<Oid>| value.as_ref().map_or(0, oid);
    let change = |update: &RefUpdate| {
        let (old, new) = (update.change.old_value(), update.change.new_value());
        1 + value(old) + value(new) + text(update.name.as_bstr())
    };
    let fixed = 1 + 8 + 1 + 5 * 4;
    fixed
        + text(&draft.principal)
        + text(&draft.agent)
        + draft.changes.iter().map(change).sum::<u64>()
        + draft.objects.iter().map(|o| 1 + oid(&o.oid) + text(&o.bytes)).sum::<u64>()
        + draft.packs.iter().map(|p| text(&p.name) + text(&p.pack) + text(&p.idx)).sum::<u64>()
        + draft.named_packs.iter().map(|name| text(name)).sum::<u64>()
        + draft.facts.iter().map(|f| text(&f.kind) + text(&f.key) + text(&f.value)).sum::<u64>()
}

fn origin_tag(origin: Origin) -> u8 {
    match origin {
        Origin::Push => 1,
        Origin::Referee => 2,
        Origin::External => 3,
        Origin::Override => 4,
    }
}

fn origin(tag: u8) -> Result<Origin, DecodeError> {
    match tag {
        1 => Ok(Origin::Push),
        2 => Ok(Origin::Referee),
        3 => Ok(Origin::External),
        4 => Ok(Origin::Override),
        _ => Err(DecodeError::Tag(tag, "origin")),
    }
}

fn kind_tag(kind: Kind) -> u8 {
    match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    }
}

fn kind(tag: u8) -> Result<Kind, DecodeError> {
    match tag {
        1 => Ok(Kind::Commit),
        2 => Ok(Kind::Tree),
        3 => Ok(Kind::Blob),
        4 => Ok(Kind::Tag),
        _ => Err(DecodeError::Tag(tag, "kind of object")),
    }
}

/// What is being written. Everything in it is shorter than [`MAX_RECORD`].
struct Out(Vec<u8>);

impl Out {
    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn count(&mut self, count: usize) {
        let count = u32::try_from(count).expect("no record is larger than 64 MiB");
        self.0.extend_from_slice(&count.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn list<T>(&mut self, items: &[T], one: impl Fn(&mut Self, &T)) {
        self.count(items.len());
        for item in items {
            one(self, item);
        }
    }

    fn oid(&mut self, oid: Oid) {
        self.byte(u8::try_from(oid.as_bytes().len()).expect("20 or 32"));
        self.0.extend_from_slice(oid.as_bytes());
    }

    fn change(&mut self, update: &RefUpdate) {
        self.byte(match update.change {
            RefChange::Create { .. } => 1,
            RefChange::Move { .. } => 2,
            RefChange::Delete { .. } => 3,
        });
        let values = [update.change.old_value(), update.change.new_value()];
        values.into_iter().flatten().for_each(|oid| self.oid(oid));
        self.bytes(update.name.as_bstr());
    }
}

/// What is still to be read.
struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    fn count(&mut self) -> Result<usize, DecodeError> {
        let count = u32::from_be_bytes(self.array()?);
        usize::try_from(count).map_err(|_| DecodeError::Truncated)
    }

    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let count = self.count()?;
        self.take(count)
    }

    fn bstring(&mut self) -> Result<BString, DecodeError> {
        self.bytes().map(|bytes| bytes.as_bstr().to_owned())
    }

    /// Grows with what is really there: each item takes bytes.
    fn list<T>(
        &mut self,
        one: impl Fn(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        (0..self.count()?).map(|_| one(self)).collect()
    }

    fn oid(&mut self) -> Result<Oid, DecodeError> {
        let len = usize::from(self.byte()?);
        gix_hash::ObjectId::try_from(self.take(len)?)
            .ok()
            .and_then(Oid::from_gix)
            .ok_or(DecodeError::Oid(len))
    }

    fn change(&mut self) -> Result<RefUpdate, DecodeError> {
        let change = match self.byte()? {
            1 => RefChange::Create { new: self.oid()? },
            2 => RefChange::Move { old: self.oid()?, new: self.oid()? },
            3 => RefChange::Delete { old: self.oid()? },
            tag => return Err(DecodeError::Tag(tag, "ref change")),
        };
        Ok(RefUpdate { name: RefName::new(self.bytes()?)?, change })
    }
}
