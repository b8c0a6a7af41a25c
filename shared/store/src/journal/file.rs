//! [`FileSlots`]: the journal's batches in the files of a folder, one after another.
//!
//! - `<first record, 20 digits>.log`: a segment. A batch is one write and one flush at the end of the newest segment; past
//!   [`Segments::segment_bytes`] a new one begins.
//! - `<record, 20 digits>.ckpt`: a checkpoint, written beside as `.tmp`, flushed, renamed.
//!
//! # Opening
//!
//! The newest segment is scanned. What a crash cut short is cut off; anything else that does not verify is an error. Then
//! its last batch is written and flushed once more: after a failed flush it may look whole and yet be in memory only.
//! A reader does none of this and passes over a torn end.
//!
//! Whoever opens for writing holds the repository's lock. A failed write or flush is final for the value:
//! [`Journal`](super::Journal) appends no more, and only opening anew tells what is there. A full disk is the exception: what was
//! written of the batch is cut off at once.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::crash::{crash_point, fault};

use super::disk::{Disk, DiskFile, Open};
use super::error::{Doing, JournalError};
use super::frame::{self, HEADER, Header, Look};
use super::record::Seq;
use super::slots::{Created, Place, Slot, Slots, checkpoint_name};

/// How much is read at once, in bytes.
const WINDOW: usize = 64 << 10;

/// What the files are opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Mends the end and appends; a new segment begins past `segment_bytes`.
    Write {
        /// In bytes.
        segment_bytes: u64,
    },
    /// Never writes; sees what was there when it was opened.
    Read,
}

/// The files of one journal.
pub(super) struct FileSlots {
    disk: Box<dyn Disk>,
    mode: Mode,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Ascending; the last one's length is where the next batch goes.
    segments: Vec<Segment>,
    /// The number after the last record; `None` while there is no segment.
    next: Option<Seq>,
    /// The newest segment, once it was written to.
    file: Option<Box<dyn DiskFile>>,
    /// Lengths in bytes.
    checkpoints: BTreeMap<Seq, u64>,
    cursor: Cursor,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    first: Seq,
    len: u64,
}

/// Where the last search ended, which is where the next one usually starts.
#[derive(Default)]
struct Cursor {
    segment: Seq,
    offset: u64,
    /// The first record of the frame at `offset`.
    next: Seq,
    /// What was read of the segment, from `window_at` on.
    window: Vec<u8>,
    window_at: u64,
}

impl FileSlots {
    /// Opens what is in the folder.
    pub(super) fn open(disk: Box<dyn Disk>, mode: Mode) -> Result<Self, JournalError> {
        let slots = Self { disk, mode, state: Mutex::default() };
        let mut state = slots.list()?;
        slots.secure_end(&mut state)?;
        if mode != Mode::Read {
            slots.disk.sync_folder().doing("flush", slots.disk.folder())?;
        }
        *slots.state() = state;
        Ok(slots)
    }

    fn list(&self) -> Result<State, JournalError> {
        let mut state = State::default();
        for (name, len) in self.disk.list().doing("list", self.disk.folder())? {
            let numbered = |ending| name.strip_suffix(ending).and_then(numbered);
            if let Some(first) = numbered(".log") {
                state.segments.push(Segment { first, len });
            } else if let Some(seq) = numbered(".ckpt") {
                state.checkpoints.insert(seq, len);
            } else if numbered(".ckpt.tmp").is_some() && self.mode != Mode::Read {
                self.disk.remove(&name).doing("remove", &self.path(&name))?;
            }
        }
        state.segments.sort_unstable_by_key(|segment| segment.first);
        Ok(state)
    }

    /// Finds the last whole batch, cuts off what a crash left behind it, and makes sure that it is on disk.
    fn secure_end(&self, state: &mut State) -> Result<(), JournalError> {
        let mut empty = Vec::new();
        while let Some(segment) = state.segments.pop() {
            let End { len, last } = self.scan(segment)?;
            let torn = len < segment.len;
            let Some((offset, header)) = last else {
                empty.push(segment);
                continue;
            };
            if torn && !empty.is_empty() {
                // A segment begins only once the one before is flushed.
                let path = self.path(&segment_name(segment.first));
                let why = "the batch is cut short, and a later file follows".to_owned();
                return Err(JournalError::Damaged { path, offset: len, why });
            }
            if self.mode != Mode::Read {
                if torn {
                    self.cut(segment, len)?;
                }
                self.write_again(segment, offset, len)?;
            }
            state.next = Some(header.end());
            state.segments.push(Segment { len, ..segment });
            break;
        }
        if self.mode != Mode::Read {
            for segment in empty {
                let name = segment_name(segment.first);
                self.disk.remove(&name).doing("remove", &self.path(&name))?;
            }
        }
        Ok(())
    }

    /// Looks at every frame of a segment.
    fn scan(&self, segment: Segment) -> Result<End, JournalError> {
        let name = segment_name(segment.first);
        let path = self.path(&name);
        let damaged = |offset, why| JournalError::Damaged { path: path.clone(), offset, why };
        let mut end = End { len: 0, last: None };
        let mut expected = segment.first;
        let mut cursor = Cursor { segment: segment.first, ..Cursor::default() };
        while end.len < segment.len {
            let mut frame = self.frame(&mut cursor, segment, end.len)?;
            let mut look = frame::look(frame, end.len);
            if !matches!(look, Look::Whole(_)) {
                frame = self.window(&mut cursor, segment, end.len, usize::MAX)?;
                look = frame::look(frame, end.len);
            }
            match look {
                Look::Whole(header) if header.first == expected => {
                    end.last = Some((end.len, header));
                    end.len += header.total() as u64;
                    expected = header.end();
                }
                Look::Whole(header) => {
                    let why = format!("record {} stands where {expected} belongs", header.first);
                    return Err(damaged(end.len, why));
                }
                Look::Torn => {
                    let lost = segment.len - end.len;
                    tracing::info!(path = %path.display(), offset = end.len, lost, "passing over a torn end");
                    break;
                }
                Look::Damaged(error) => return Err(damaged(end.len, error.to_string())),
            }
        }
        Ok(end)
    }

    fn cut(&self, segment: Segment, len: u64) -> Result<(), JournalError> {
        let name = segment_name(segment.first);
        let file = self.disk.open(&name, Open::Existing).doing("open", &self.path(&name))?;
        file.truncate(len).and_then(|()| file.sync()).doing("cut", &self.path(&name))
    }

    /// Writes the last batch in place once more and flushes it. The bytes are the same, so a crash meanwhile harms
    /// nothing.
    fn write_again(&self, segment: Segment, offset: u64, end: u64) -> Result<(), JournalError> {
        let name = segment_name(segment.first);
        let path = self.path(&name);
        let len = usize::try_from(end - offset).unwrap_or(usize::MAX);
        let bytes = self.disk.read(&name, offset, len).doing("read", &path)?;
        let file = self.disk.open(&name, Open::Existing).doing("open", &path)?;
        file.write(offset, &bytes).doing("write", &path)?;
        file.sync().doing("flush", &path)
    }

    /// A frame's bytes, or fewer than its header where the segment ends; checks nothing else.
    fn frame<'c>(
        &self,
        cursor: &'c mut Cursor,
        segment: Segment,
        offset: u64,
    ) -> Result<&'c [u8], JournalError> {
        let header = self.window(cursor, segment, offset, HEADER)?;
        let total = Header::parse(header).map_or(HEADER, |header| header.total());
        self.window(cursor, segment, offset, total)
    }

    /// At most `len` bytes of a segment; fewer where it ends.
    fn window<'c>(
        &self,
        cursor: &'c mut Cursor,
        segment: Segment,
        offset: u64,
        len: usize,
    ) -> Result<&'c [u8], JournalError> {
        let there = usize::try_from(segment.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = len.min(there);
        let at = |cursor: &Cursor| {
            usize::try_from(offset.checked_sub(cursor.window_at)?)
                .ok()
                .filter(|at| at.checked_add(len).is_some_and(|end| end <= cursor.window.len()))
        };
        if cursor.segment != segment.first || at(cursor).is_none() {
            let name = segment_name(segment.first);
            let want = len.max(WINDOW.min(there));
            cursor.window = self.disk.read(&name, offset, want).doing("read", &self.path(&name))?;
            cursor.window_at = offset;
        }
        let at = at(cursor).unwrap_or(0);
        // The file is shorter than it was when somebody else cut or removed it under a reader.
        Ok(cursor.window.get(at..).map_or(&[], |rest| rest.get(..len).unwrap_or(rest)))
    }

    /// Begins a segment; its name is flushed with its first batch.
    fn begin(&self, state: &mut State, first: Seq) -> Result<(), JournalError> {
        let name = segment_name(first);
        let file = self.disk.open(&name, Open::New).doing("create", &self.path(&name))?;
        state.file = Some(file);
        state.segments.push(Segment { first, len: 0 });
        Ok(())
    }

    /// Undoes a write for which there was no room.
    fn take_back(&self, state: &mut State, segment: Segment) -> io::Result<()> {
        if segment.len == 0 {
            state.file = None;
            state.segments.pop();
            self.disk.remove(&segment_name(segment.first))?;
            return self.disk.sync_folder();
        }
        let file = state.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        file.truncate(segment.len)?;
        file.sync()
    }

    fn append(&self, state: &mut State, first: Seq, frame: &[u8]) -> Result<(), JournalError> {
        let Mode::Write { segment_bytes } = self.mode else {
            return Err(JournalError::ReadOnly(self.name().to_owned()));
        };
        let begins = state.segments.last().is_none_or(|segment| segment.len >= segment_bytes);
        if begins {
            self.begin(state, first)?;
        }
        let segment = *state
            .segments
            .last()
            .ok_or(JournalError::Unknown { path: self.name().to_owned(), seq: first })?;
        let name = segment_name(segment.first);
        let path = self.path(&name);
        if state.file.is_none() {
            state.file = Some(self.disk.open(&name, Open::Existing).doing("open", &path)?);
        }
        let file = state.file.as_ref().expect("opened above");
        match file.write(segment.len, frame).doing("write", &path) {
            Err(full @ JournalError::Full { .. }) => {
                let undone = self.take_back(state, segment);
                undone.map_err(|source| failed("cut", &path, source))?;
                return Err(full);
            }
            written => written?,
        }
        crash_point("journal.written");
        // No room is no excuse here: which bytes are on disk is unknown.
        let flushed = fault("journal.flush").and_then(|()| file.sync());
        flushed.map_err(|source| failed("flush", &path, source))?;
        if begins {
            let flushed = self.disk.sync_folder();
            flushed.map_err(|source| failed("flush", self.disk.folder(), source))?;
        }
        if let Some(segment) = state.segments.last_mut() {
            segment.len += frame.len() as u64;
        }
        Ok(())
    }

    fn find_in(&self, state: &mut State, seq: Seq) -> Result<Option<Slot>, JournalError> {
        let State { segments, cursor, .. } = state;
        let after = segments.partition_point(|segment| segment.first <= seq);
        let Some(&segment) = after.checked_sub(1).and_then(|at| segments.get(at)) else {
            return Ok(None);
        };
        let limit = segments.get(after).map(|next| next.first);
        let path = self.path(&segment_name(segment.first));
        let damaged = |offset, why| JournalError::Damaged { path: path.clone(), offset, why };
        if cursor.segment != segment.first || cursor.next > seq {
            *cursor = Cursor { segment: segment.first, next: segment.first, ..Cursor::default() };
        }
        while cursor.offset < segment.len {
            let offset = cursor.offset;
            let expected = cursor.next;
            let frame = self.frame(cursor, segment, offset)?;
            let header = Header::parse(frame).map_err(|why| damaged(offset, why.to_string()))?;
            if frame.len() < header.total() {
                return Err(damaged(offset, "the batch ends early".to_owned()));
            }
            if header.first != expected || limit.is_some_and(|limit| header.end() > limit) {
                let why = format!("record {} stands where {expected} belongs", header.first);
                return Err(damaged(offset, why));
            }
            let found = (seq < header.end()).then(|| Slot {
                frame: frame.to_vec(),
                place: Place { path: path.clone(), offset },
            });
            cursor.offset += header.total() as u64;
            cursor.next = header.end();
            if found.is_some() {
                return Ok(found);
            }
        }
        match limit {
            None => Ok(None),
            Some(_) => Err(damaged(segment.len, format!("the file ends before record {seq}"))),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.disk.folder().join(name)
    }

    /// Writes a checkpoint under a name that nobody reads, and flushes it.
    fn write_aside(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let path = self.path(name);
        let file = self.disk.open(name, Open::Emptied).doing("create", &path)?;
        file.write(0, bytes).doing("write", &path)?;
        file.sync().doing("flush", &path)
    }
}

impl Slots for FileSlots {
    fn create(&self, first: Seq, frame: &[u8]) -> Result<Created, JournalError> {
        let mut state = self.state();
        if state.next.is_some_and(|next| first < next) {
            return Ok(Created::Taken);
        }
        self.append(&mut state, first, frame)?;
        state.next = Some(Header::parse(frame).map_or(first.next(), |header| header.end()));
        Ok(Created::Created)
    }

    fn find(&self, seq: Seq) -> Result<Option<Slot>, JournalError> {
        self.find_in(&mut self.state(), seq)
    }

    fn oldest(&self) -> Result<Option<Seq>, JournalError> {
        Ok(self.state().segments.first().map(|segment| segment.first))
    }

    fn drop_before(&self, before: Seq) -> Result<(), JournalError> {
        loop {
            let mut state = self.state();
            let [oldest, next, ..] = state.segments[..] else { return Ok(()) };
            if next.first > before {
                return Ok(());
            }
            let name = segment_name(oldest.first);
            self.disk.remove(&name).doing("remove", &self.path(&name))?;
            state.segments.remove(0);
            drop(state);
            // One at a time, so that a crash never leaves a gap.
            self.disk.sync_folder().doing("flush", self.disk.folder())?;
        }
    }

    fn checkpoints(&self) -> Result<Vec<Seq>, JournalError> {
        Ok(self.state().checkpoints.keys().copied().collect())
    }

    fn read_checkpoint(&self, seq: Seq) -> Result<Option<Vec<u8>>, JournalError> {
        let Some(len) = self.state().checkpoints.get(&seq).copied() else { return Ok(None) };
        let name = checkpoint_name(seq);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.disk.read(&name, 0, len).doing("read", &self.path(&name)).map(Some)
    }

    fn put_checkpoint(&self, seq: Seq, bytes: &[u8]) -> Result<(), JournalError> {
        if self.mode == Mode::Read {
            return Err(JournalError::ReadOnly(self.name().to_owned()));
        }
        let name = checkpoint_name(seq);
        let aside = format!("{name}.tmp");
        if let Err(error) = self.write_aside(&aside, bytes) {
            // Opening removes what cannot be removed now.
            let _ = self.disk.remove(&aside);
            return Err(error);
        }
        self.disk.rename(&aside, &name).doing("rename", &self.path(&aside))?;
        self.disk.sync_folder().doing("flush", self.disk.folder())?;
        self.state().checkpoints.insert(seq, bytes.len() as u64);
        Ok(())
    }

    fn drop_checkpoint(&self, seq: Seq) -> Result<(), JournalError> {
        let name = checkpoint_name(seq);
        self.disk.remove(&name).doing("remove", &self.path(&name))?;
        self.state().checkpoints.remove(&seq);
        Ok(())
    }

    fn size(&self) -> u64 {
        let state = self.state();
        let segments = state.segments.iter().map(|segment| segment.len);
        segments.chain(state.checkpoints.values().copied()).sum()
    }

    fn name(&self) -> &Path {
        self.disk.folder()
    }
}

/// Where a segment's whole batches end, and the last of them.
struct End {
    len: u64,
    last: Option<(u64, Header)>,
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { doing, path: path.to_owned(), source }
}

fn segment_name(first: Seq) -> String {
    format!("{:020}.log", first.0)
}

/// The number that a file is named by: exactly twenty digits.
fn numbered(digits: &str) -> Option<Seq> {
    let all = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().ok().map(Seq)).flatten()
}
