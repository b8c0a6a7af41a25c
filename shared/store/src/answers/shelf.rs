//! [`Shelf`]: the answers there are, and the room that they take.
//!
//! What is read at the moment is never taken away; of the rest, what was asked for longest ago goes first.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Answer, Key, Reader};

/// How many answers are kept. Each is an open file, and so is each client of one.
const MAX_ANSWERS: usize = 64;

/// How many bytes answers leave free on a large disk. A push needs the space more.
const FREE_BYTES: u64 = 4 << 30;

/// Of a smaller disk, as a divisor: the part of it that they leave free.
const FREE_PART: u64 = 20;

/// The answers of one repository.
pub(crate) struct Shelf {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    answers: HashMap<Key, Place>,
    n_asked: u64,
    n_bytes: u64,
}

struct Place {
    answer: Arc<Answer>,
    last_asked: u64,
}

/// Room on a shelf; dropping it gives the room back.
pub(super) struct Room {
    shelf: Arc<Shelf>,
    n_bytes: u64,
}

impl Shelf {
    /// No answers yet; files are made in `folder`, without names.
    pub(crate) fn new(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self { folder, state: Mutex::default() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The answer for a key and a reader of it; whether it is new, and so to be made by the caller.
    pub(super) fn answer(
        self: &Arc<Self>,
        key: &Key,
        max_bytes: u64,
    ) -> (Arc<Answer>, Reader, bool) {
        let mut state = self.state();
        state.n_asked += 1;
        let last_asked = state.n_asked;
        if let Some(place) = state.answers.get_mut(key) {
            place.last_asked = last_asked;
            let answer = Arc::clone(&place.answer);
            let reader = Answer::read(&answer);
            return (answer, reader, false);
        }
        let room = Room { shelf: Arc::clone(self), n_bytes: 0 };
        let answer = Arc::new(Answer::new(self.folder(), room, max_bytes));
        let reader = Answer::read(&answer);
        let mut gone = Vec::new();
        if state.answers.len() < MAX_ANSWERS || state.take_oldest(&mut gone) {
            let place = Place { answer: Arc::clone(&answer), last_asked };
            state.answers.insert(key.clone(), place);
        }
        drop(state);
        (answer, reader, true)
    }

    /// No further client gets this answer.
    pub(super) fn forget(&self, key: &Key, answer: &Arc<Answer>) {
        // An answer gives its room back when it is dropped, and needs the lock for that.
        let place = self.state().take(key, answer);
        drop(place);
    }

    /// Forgets an answer that nobody reads; whether nobody did.
    pub(super) fn forget_unread(&self, key: &Key, answer: &Arc<Answer>) -> bool {
        let mut state = self.state();
        if answer.is_read() {
            return false;
        }
        let place = state.take(key, answer);
        drop(state);
        drop(place);
        true
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The place of this very answer.
    fn take(&mut self, key: &Key, answer: &Arc<Answer>) -> Option<Place> {
        let place = self.answers.get(key)?;
        if Arc::ptr_eq(&place.answer, answer) { self.answers.remove(key) } else { None }
    }

    /// Takes the answer away that was asked for longest ago, of those that nobody has in hand. It is dropped by the
    /// caller, without the lock.
    fn take_oldest(&mut self, gone: &mut Vec<Place>) -> bool {
        let idle = self.answers.iter().filter(|(_, place)| Arc::strong_count(&place.answer) == 1);
        let oldest = idle.min_by_key(|(_, place)| place.last_asked).map(|(key, _)| key.clone());
        let place = oldest.and_then(|key| self.answers.remove(&key));
        let found = place.is_some();
        gone.extend(place);
        found
    }
}

impl Room {
    /// Takes more room, if need be from answers that nobody reads; whether there is.
    pub(super) fn grow(&mut self, n_bytes: u64, max_bytes: u64) -> bool {
        if !has_free_space(self.shelf.folder()) {
            return false;
        }
        let mut gone = Vec::new();
        loop {
            let mut state = self.shelf.state();
            if state.n_bytes.saturating_add(n_bytes) <= max_bytes {
                state.n_bytes += n_bytes;
                self.n_bytes += n_bytes;
                break true;
            }
            let freed = state.take_oldest(&mut gone);
            drop(state);
            gone.clear();
            if !freed {
                break false;
            }
        }
    }

    /// Gives back all but `n_bytes`.
    pub(super) fn shrink(&mut self, n_bytes: u64) {
        let mut state = self.shelf.state();
        let surplus = self.n_bytes.saturating_sub(n_bytes);
        state.n_bytes = state.n_bytes.saturating_sub(surplus);
        self.n_bytes -= surplus;
    }

    /// How many bytes there is room for.
    pub(super) fn n_bytes(&self) -> u64 {
        self.n_bytes
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut state = self.shelf.state();
        state.n_bytes = state.n_bytes.saturating_sub(self.n_bytes);
    }
}

fn has_free_space(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|fs| {
        let blocks = FREE_BYTES / fs.f_frsize.max(1);
        fs.f_bavail > blocks.min(fs.f_blocks / FREE_PART)
    })
}
