//! Whether commits are in the history of values that refs have, with a memory of what was met there before.
//!
//! What a commit reaches, it reaches for ever. So a commit that was met in the history of a value is in it as often as
//! somebody asks; that a ref has the value at the moment, whoever asks has looked.

use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use zit_model::Oid;

use crate::Store;
use crate::connected::Links;
use crate::error::StoreError;
use crate::objects::Objects;
use crate::shallow;

/// Of how many values the history is remembered.
const MAX_VALUES: usize = 16;

/// How many commits of one history are walked, and so remembered; about a millisecond for a hundred of them.
const MAX_WALKED: usize = 2048;

/// How many commits older than the one that is looked for a walk goes on past: clocks are wrong at times.
const SLOP: usize = 16;

/// What was met in the histories of some values, the latest last.
#[derive(Default)]
pub(crate) struct Reach(Mutex<VecDeque<(Oid, HashSet<Oid>)>>);

impl Store {
    /// Whether `commit` is one of `values`, which refs have at the moment, or near enough in the history of one. `false`
    /// means that it was not found, no more.
    ///
    /// # Errors
    /// [`StoreError`] when objects cannot be opened.
    pub fn is_in_history(&self, commit: Oid, values: &[Oid]) -> Result<bool, StoreError> {
        if values.contains(&commit) {
            return Ok(true);
        }
        if self.reach().knows(commit, values) {
            return Ok(true);
        }
        let objects = self.objects()?;
        // Where histories are cut off, what lies behind is not there because a ref names what is before it.
        if !objects.has_at_once(commit) || !shallow::shallow(self.common_dir()).is_empty() {
            return Ok(false);
        }
        let Ok(sought) = Links::read(&objects, commit) else { return Ok(false) };
        for &value in values {
            let met = walk(&objects, value, (commit, sought.date));
            let found = met.contains(&commit);
            self.reach().remember(value, met);
            if found {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The commits met from `value` down to `sought`, or to where it cannot be any more.
fn walk(objects: &Objects, value: Oid, (sought, date): (Oid, i64)) -> HashSet<Oid> {
    let (mut met, mut queue, mut slop) = (HashSet::new(), BinaryHeap::new(), SLOP);
    let mut next = vec![value];
    while met.len() < MAX_WALKED {
        for oid in next.drain(..) {
            // What cannot be read, as a tag or a missing parent, ends the walk there.
            if !met.contains(&oid)
                && let Ok(links) = Links::read(objects, oid)
            {
                met.insert(oid);
                queue.push((links.date, oid, links.parents));
            }
        }
        let Some((at, oid, parents)) = queue.pop() else { break };
        slop = if at < date { slop - 1 } else { SLOP };
        if oid == sought || slop == 0 {
            break;
        }
        next = parents;
    }
    met
}

impl Reach {
    fn knows(&self, commit: Oid, values: &[Oid]) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|(value, met)| values.contains(value) && met.contains(&commit))
    }

    fn remember(&self, value: Oid, met: HashSet<Oid>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.iter().position(|(known, _)| *known == value);
        let before = before.and_then(|at| known.remove(at)).map(|(_, met)| met);
        let mut all = before.filter(|before| before.len() < MAX_WALKED).unwrap_or_default();
        all.extend(met);
        known.push_back((value, all));
        while known.len() > MAX_VALUES {
            known.pop_front();
        }
    }
}
