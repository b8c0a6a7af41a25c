//! A batch of records as the bytes of one slot: header, records, and the hash that ends the chain so far. The layout is
//! in `spec/journal.md`, "Batch".
//!
//! A frame proves itself: [`verify`] needs no other frame. [`look`] tells what a crash in the middle of a write leaves
//! from what nothing but damage does.

use sha2::{Digest, Sha256};

use super::codec::{self, DecodeError};
use super::error::JournalError;
use super::record::{ChainHash, Draft, Record, Seq};

/// The records of one append, in bytes: 64 MiB and what frames them.
pub const MAX_BATCH: u64 = codec::MAX_RECORD + 4;

/// Who appended: random bytes of a writer's own, so that it knows its batch again after a lost answer.
pub type WriterId = [u8; 16];

pub(super) const HEADER: usize = 80;
pub(super) const MAGIC: &[u8; 4] = b"zitj";
const VERSION: u16 = 1;
const CHECKED: usize = 72;
const HASH: usize = 32;

/// The unit in which a disk loses what was not flushed, in bytes.
const SECTOR: u16 = 512;

/// Why bytes are not a frame.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum FrameError {
    #[error("the batch ends early")]
    Truncated,
    #[error("no batch starts here")]
    Magic,
    #[error("the header's check does not match")]
    Check,
    #[error("batch layout {0} is not known to this version of zit")]
    Version(u16),
    #[error("a batch of {0} bytes and {1} records cannot be")]
    Shape(u32, u32),
    #[error("the hash does not match")]
    Hash,
    #[error(transparent)]
    Record(#[from] DecodeError),
}

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) first: Seq,
    pub(super) count: u32,
    pub(super) prev: ChainHash,
    payload: u32,
}

impl Header {
    /// Reads the first [`HEADER`] bytes of a frame.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        let header: &[u8; HEADER] = bytes.first_chunk().ok_or(FrameError::Truncated)?;
        if !header.starts_with(MAGIC) {
            return Err(FrameError::Magic);
        }
        let (checked, check) = header.split_at(CHECKED);
        if Sha256::digest(checked)[..check.len()] != *check {
            return Err(FrameError::Check);
        }
        let version = u16::from_be_bytes(field(header, 4));
        if version != VERSION || field(header, 6) != [0, 0] {
            return Err(FrameError::Version(version));
        }
        let [payload, count] = [8, 12].map(|at| u32::from_be_bytes(field(header, at)));
        if u64::from(payload) > MAX_BATCH || count == 0 || u64::from(count) * 4 > u64::from(payload)
        {
            return Err(FrameError::Shape(payload, count));
        }
        let first = Seq(u64::from_be_bytes(field(header, 16)));
        Ok(Self { first, count, prev: ChainHash(field(header, 40)), payload })
    }

    /// The number after the last record's.
    pub(super) fn end(&self) -> Seq {
        self.first.plus(u64::from(self.count))
    }

    /// The length of the frame.
    pub(super) fn total(&self) -> usize {
        HEADER + usize::try_from(self.payload).unwrap_or(usize::MAX - HEADER - HASH) + HASH
    }
}

/// `N` bytes of a header; every caller's lie inside.
fn field<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&header[at..at + N]);
    field
}

/// The records of an append as bytes, not yet in the chain: this much is done before the tail is known.
pub(super) struct Payload {
    bytes: Vec<u8>,
    count: u32,
}

impl Payload {
    /// # Errors
    /// [`JournalError::TooLarge`] when a record or all of them together are.
    pub(super) fn encode(drafts: &[Draft]) -> Result<Self, JournalError> {
        let mut bytes = Vec::new();
        for draft in drafts {
            let record = codec::encode(draft)?;
            let len = u32::try_from(record.len()).expect("no record is larger than 64 MiB");
            bytes.extend_from_slice(&len.to_be_bytes());
            bytes.extend_from_slice(&record);
            let size = bytes.len() as u64;
            if size > MAX_BATCH {
                return Err(JournalError::TooLarge { what: "a batch", size, limit: MAX_BATCH });
            }
        }
        let count = u32::try_from(drafts.len()).expect("each takes bytes of a bounded payload");
        Ok(Self { bytes, count })
    }

    /// The frame that continues the chain, and the chain's new end.
    pub(super) fn frame(
        &self,
        first: Seq,
        prev: ChainHash,
        writer: WriterId,
    ) -> (Vec<u8>, ChainHash) {
        let mut frame = Vec::with_capacity(HEADER + self.bytes.len() + HASH);
        let payload = u32::try_from(self.bytes.len()).expect("at most MAX_BATCH");
        frame.extend_from_slice(MAGIC);
        frame.extend_from_slice(&VERSION.to_be_bytes());
        frame.extend_from_slice(&[0, 0]);
        frame.extend_from_slice(&payload.to_be_bytes());
        frame.extend_from_slice(&self.count.to_be_bytes());
        frame.extend_from_slice(&first.0.to_be_bytes());
        frame.extend_from_slice(&writer);
        frame.extend_from_slice(&prev.0);
        let check = Sha256::digest(&frame);
        frame.extend_from_slice(&check[..HEADER - CHECKED]);
        frame.extend_from_slice(&self.bytes);
        let mut hash = prev;
        for (i, record) in (0..).zip(Split(&self.bytes)) {
            hash = link(hash, first.plus(i), record.expect("written above"));
        }
        frame.extend_from_slice(&hash.0);
        (frame, hash)
    }
}

/// The chain's hash with one more record.
fn link(prev: ChainHash, seq: Seq, record: &[u8]) -> ChainHash {
    let mut hash = Sha256::new();
    hash.update(prev.0);
    hash.update(seq.0.to_be_bytes());
    hash.update(record);
    ChainHash(hash.finalize().into())
}

/// The records of a payload, still as bytes.
struct Split<'a>(&'a [u8]);

impl<'a> Iterator for Split<'a> {
    type Item = Result<&'a [u8], FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let split = self.0.split_first_chunk().and_then(|(len, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_be_bytes(*len)).ok()?)
        });
        let Some((record, rest)) = split else {
            self.0 = &[];
            return Some(Err(FrameError::Truncated));
        };
        self.0 = rest;
        Some(Ok(record))
    }
}

/// A frame whose hash matches: its header, the hash after each record, and each record's bytes.
struct Verified<'a> {
    header: Header,
    records: Vec<(&'a [u8], ChainHash)>,
}

fn verified(frame: &[u8]) -> Result<Verified<'_>, FrameError> {
    let header = Header::parse(frame)?;
    if frame.len() != header.total() {
        return Err(FrameError::Truncated);
    }
    let payload = frame.get(HEADER..frame.len() - HASH).unwrap_or_default();
    let mut hash = header.prev;
    let mut records = Vec::new();
    for (i, record) in (0..).zip(Split(payload)) {
        let record = record?;
        hash = link(hash, header.first.plus(i), record);
        records.push((record, hash));
    }
    let whole = records.len() as u64 == u64::from(header.count) && frame.ends_with(&hash.0);
    if whole { Ok(Verified { header, records }) } else { Err(FrameError::Hash) }
}

/// Checks the frame's hash.
pub(super) fn verify(frame: &[u8]) -> Result<Header, FrameError> {
    verified(frame).map(|verified| verified.header)
}

/// The records of a frame, each with the chain's hash after it.
pub(super) fn decode(frame: &[u8]) -> Result<Vec<(Record, ChainHash)>, FrameError> {
    let Verified { header, records } = verified(frame)?;
    let mut prev = header.prev;
    let mut out = Vec::with_capacity(records.len());
    for (i, (bytes, hash)) in (0..).zip(records) {
        let seq = header.first.plus(i);
        out.push((Record { seq, prev, draft: codec::decode(bytes)? }, hash));
        prev = hash;
    }
    Ok(out)
}

/// What stands at the end of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// A whole frame, perhaps with more behind it.
    Whole(Header),
    /// What a write that was cut short can leave.
    Torn,
    /// What a write that was cut short cannot leave.
    Damaged(FrameError),
}

/// Looks at `rest`, all that a file holds from `offset` on.
///
/// A write that was not flushed leaves the file short, or sectors of zeroes, and it is the last: writing stops at the first
/// failure. So a frame with anything whole behind it, or complete and without a lost sector, was flushed once.
pub(super) fn look(rest: &[u8], offset: u64) -> Look {
    let header = match Header::parse(rest) {
        Ok(header) => header,
        Err(FrameError::Truncated) => return Look::Torn,
        Err(error @ (FrameError::Magic | FrameError::Check)) => {
            let header = &rest[..HEADER.min(rest.len())];
            let torn = lost_sector(header, offset) && !holds_a_frame(rest);
            return if torn { Look::Torn } else { Look::Damaged(error) };
        }
        Err(error) => return Look::Damaged(error),
    };
    let Some(frame) = rest.get(..header.total()) else { return Look::Torn };
    match verify(frame) {
        Ok(header) => Look::Whole(header),
        Err(_) if rest.len() == frame.len() && lost_sector(frame, offset) => Look::Torn,
        Err(error) => Look::Damaged(error),
    }
}

/// Whether what `bytes` have of some sector is all zero; `offset` is where they stand in the file.
fn lost_sector(bytes: &[u8], offset: u64) -> bool {
    let sector = u64::from(SECTOR);
    let to_border = usize::try_from(sector - offset % sector).unwrap_or(0).min(bytes.len());
    let (head, tail) = bytes.split_at(to_border);
    std::iter::once(head)
        .chain(tail.chunks(usize::from(SECTOR)))
        .any(|part| part.iter().all(|&byte| byte == 0))
}

fn holds_a_frame(bytes: &[u8]) -> bool {
    bstr::ByteSlice::find_iter(bytes, MAGIC).any(|at| {
        let rest = bytes.get(at..).unwrap_or_default();
        let frame = Header::parse(rest).ok().and_then(|header| rest.get(..header.total()));
        frame.is_some_and(|frame| verify(frame).is_ok())
    })
}
