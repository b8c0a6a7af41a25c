//! [`Answer`]: bytes that one thread writes and any number read meanwhile, from the first on; [`Reader`] is one of them.
//!
//! As long as there is room the bytes are in a file, and no reader waits for another. After that they are in a window
//! in memory that moves on when all readers have passed it; nobody may begin to read then, so that the first part is
//! let go with the last of its readers.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::AnswerError;
use super::shelf::Room;

/// How much is read at once, in bytes. Each client has a few pieces of this size in memory; larger ones are fresh pages
/// from the system each time, which costs more than the calls that they save.
pub(super) const PIECE: usize = 64 * 1024;

/// How much of what is in memory only may wait for the slowest reader, in bytes.
const MAX_WINDOW: usize = 4 * 1024 * 1024;

/// How much room is asked for at once, in bytes.
const ROOM_STEP: u64 = 4 * 1024 * 1024;

/// One answer.
pub(super) struct Answer {
    /// `None` when no file could be made.
    file: Option<File>,
    max_bytes: u64,
    /// Only the writer takes room. Its lock is never taken within that of `growth`: the shelf's lies between the two.
    room: Mutex<Room>,
    growth: Mutex<Growth>,
    changed: Condvar,
}

struct Growth {
    /// How many bytes are in the file, from the first.
    n_filed: u64,
    /// What is in memory after that, each piece with its place in the answer.
    window: VecDeque<(u64, Arc<[u8]>)>,
    /// How many bytes there are in all.
    n_bytes: u64,
    spilled: bool,
    end: Option<Result<(), AnswerError>>,
    readers: BTreeMap<u64, u64>,
    n_readers: u64,
}

/// Where bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Went {
    /// Into the file.
    Filed,
    /// Past it, now or before: nobody may begin to read.
    Past,
}

/// One reader of an answer.
pub(super) struct Reader {
    answer: Arc<Answer>,
    id: u64,
    at: u64,
}

impl Answer {
    /// Nothing yet. The file is made in `folder` and may take `max_bytes` together with those of other answers.
    pub(super) fn new(folder: &Path, room: Room, max_bytes: u64) -> Self {
        let file = tempfile::tempfile_in(folder);
        if let Err(error) = &file {
            tracing::warn!(%error, "an answer cannot be kept");
        }
        let growth = Growth {
            n_filed: 0,
            window: VecDeque::new(),
            n_bytes: 0,
            spilled: false,
            end: None,
            readers: BTreeMap::new(),
            n_readers: 0,
        };
        Self {
            file: file.ok(),
            max_bytes,
            room: Mutex::new(room),
            growth: Mutex::new(growth),
            changed: Condvar::new(),
        }
    }

    /// Begins to read; to be called before anything is past the file.
    pub(super) fn read(answer: &Arc<Self>) -> Reader {
        let mut growth = answer.growth();
        growth.n_readers += 1;
        let id = growth.n_readers;
        growth.readers.insert(id, 0);
        Reader { answer: Arc::clone(answer), id, at: 0 }
    }

    /// Whether anybody reads it.
    pub(super) fn is_read(&self) -> bool {
        !self.growth().readers.is_empty()
    }

    /// How many bytes there are so far.
    pub(super) fn len(&self) -> u64 {
        self.growth().n_bytes
    }

    /// Whether the next bytes can go into the file.
    pub(super) fn fits(&self, n_bytes: usize) -> bool {
        let n_needed = self.len() + as_u64(n_bytes);
        let mut room = self.room();
        let n_more = n_needed.saturating_sub(room.n_bytes());
        // A long step may be too long where the bytes themselves are not.
        self.file.is_some()
            && (n_more == 0
                || room.grow(n_more.max(ROOM_STEP), self.max_bytes)
                || room.grow(n_more, self.max_bytes))
    }

    /// Writes into the file; past it when the file system refuses.
    pub(super) fn file(&self, bytes: &[u8]) -> Went {
        let at = self.growth().n_filed;
        let written = match &self.file {
            Some(file) => file.write_all_at(bytes, at),
            None => return Went::Past,
        };
        if let Err(error) = written {
            tracing::warn!(%error, "an answer is not kept");
            return Went::Past;
        }
        let mut growth = self.growth();
        growth.n_filed += as_u64(bytes.len());
        growth.n_bytes = growth.n_filed;
        self.changed.notify_all();
        Went::Filed
    }

    /// Gives bytes to the readers there are, and waits until the window has room. Whether anybody reads on.
    pub(super) fn pass_on(&self, bytes: &[u8]) -> bool {
        let mut growth = self.growth();
        growth.spilled = true;
        let at = growth.n_bytes;
        growth.window.push_back((at, Arc::from(bytes)));
        growth.n_bytes += as_u64(bytes.len());
        self.changed.notify_all();
        while !growth.move_window() {
            growth = self.changed.wait(growth).unwrap_or_else(PoisonError::into_inner);
        }
        !growth.readers.is_empty()
    }

    /// Whether it is known that there will be no more bytes.
    pub(super) fn has_ended(&self) -> bool {
        self.growth().end.is_some()
    }

    /// There will be no more bytes.
    pub(super) fn end(&self, end: Result<(), AnswerError>) {
        let n_filed = self.growth().n_filed;
        self.room().shrink(n_filed);
        self.growth().end = Some(end);
        self.changed.notify_all();
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn growth(&self) -> MutexGuard<'_, Growth> {
        self.growth.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Growth {
    /// Lets go of what all readers have passed; whether what is left is little enough.
    fn move_window(&mut self) -> bool {
        let slowest = self.readers.values().min().copied().unwrap_or(u64::MAX);
        let passed = |(at, piece): &(u64, Arc<[u8]>)| at + as_u64(piece.len()) <= slowest;
        while self.window.front().is_some_and(passed) {
            self.window.pop_front();
        }
        self.window.iter().map(|(_, piece)| piece.len()).sum::<usize>() <= MAX_WINDOW
    }

    /// The rest of the piece in memory that holds the byte at `at`.
    fn piece(&self, at: u64) -> Option<Vec<u8>> {
        let index = self.window.partition_point(|(start, piece)| start + as_u64(piece.len()) <= at);
        let (start, piece) = self.window.get(index)?;
        let skip = usize::try_from(at.checked_sub(*start)?).ok()?;
        piece.get(skip..).map(<[u8]>::to_vec)
    }
}

impl Reader {
    /// Waits for the next bytes; `None` at the end.
    pub(super) fn next_piece(&mut self) -> Result<Option<Vec<u8>>, AnswerError> {
        let piece = match self.wait()? {
            Next::Filed(n) => self.read_file(n)?,
            Next::Piece(piece) => piece,
            Next::End => return Ok(None),
        };
        self.at += as_u64(piece.len());
        Ok(Some(piece))
    }

    fn wait(&self) -> Result<Next, AnswerError> {
        let mut growth = self.answer.growth();
        growth.readers.insert(self.id, self.at);
        if growth.spilled {
            self.answer.changed.notify_all();
        }
        loop {
            if self.at < growth.n_filed {
                let n = usize::try_from(growth.n_filed - self.at).unwrap_or(usize::MAX);
                return Ok(Next::Filed(n.min(PIECE)));
            }
            if let Some(piece) = growth.piece(self.at) {
                return Ok(Next::Piece(piece));
            }
            match &growth.end {
                Some(Ok(())) => return Ok(Next::End),
                Some(Err(error)) => return Err(error.clone()),
                None => {}
            }
            growth = self.answer.changed.wait(growth).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn read_file(&self, n: usize) -> Result<Vec<u8>, AnswerError> {
        let mut piece = vec![0; n];
        let file = self.answer.file.as_ref();
        file.ok_or_else(|| AnswerError::Kept("no file".to_owned()))?
            .read_exact_at(&mut piece, self.at)
            .map_err(|error| AnswerError::Kept(error.to_string()))?;
        Ok(piece)
    }
}

/// What a reader finds.
enum Next {
    Filed(usize),
    Piece(Vec<u8>),
    End,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.answer.growth().readers.remove(&self.id);
        self.answer.changed.notify_all();
    }
}

fn as_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
