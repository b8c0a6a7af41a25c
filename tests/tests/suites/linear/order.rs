//! A search for one order of calls that explains every answer: Wing and Gong's, with Lowe's memory of
//! what has been tried.
//!
//! The next call of an order is one that was sent before any call still missing was answered. What has
//! been reached by one way (these calls done, this state) need not be tried by another. A call whose
//! answer was lost is taken only where it changes something, and may be left out.

use std::collections::HashSet;

use super::model::{Entry, State};

/// How many steps the search may take; some hundred times what lawful histories need.
const MAX_STEPS: usize = 3_000_000;

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is such an order.
    Lawful,
    /// There is none.
    Unlawful,
    /// It was not found in the steps allowed.
    Undecided,
}

/// The calls that are done, one bit each.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Done(Vec<u64>);

/// A place in an order under construction.
struct Place {
    /// The call that led here; none at the beginning.
    call: Option<usize>,
    state: State,
    /// What may come next and has not been tried, the most promising last.
    untried: Vec<usize>,
}

/// Looks for an order of `history`, which is about one group and sorted by when calls were sent.
pub(super) fn explain(history: &[Entry]) -> Verdict {
    let mut done = Done(vec![0; history.len().div_ceil(64)]);
    let mut missing = history.iter().filter(|entry| !entry.call.is_lost()).count();
    let mut tried = HashSet::new();
    let mut order = vec![Place::new(None, State::default(), history, &done)];
    for _ in 0..MAX_STEPS {
        if missing == 0 {
            return Verdict::Lawful;
        }
        let Some(place) = order.last_mut() else { return Verdict::Unlawful };
        if let Some(call) = place.untried.pop() {
            let Some(state) = place.state.after(&history[call].call) else { continue };
            done.flip(call);
            if tried.insert((done.clone(), state.clone())) {
                missing -= usize::from(!history[call].call.is_lost());
                order.push(Place::new(Some(call), state, history, &done));
            } else {
                done.flip(call);
            }
        } else if let Some(call) = order.pop().and_then(|place| place.call) {
            done.flip(call);
            missing += usize::from(!history[call].call.is_lost());
        }
    }
    Verdict::Undecided
}

impl Place {
    fn new(call: Option<usize>, state: State, history: &[Entry], done: &Done) -> Self {
        let mut first_answer = i64::MAX;
        let mut untried = Vec::new();
        for (index, entry) in history.iter().enumerate().filter(|(index, _)| !done.has(*index)) {
            if entry.sent > first_answer {
                break;
            }
            first_answer = first_answer.min(entry.returned());
            untried.push(index);
        }
        // Calls answered early happened early as a rule; lost ones are the last resort.
        untried.sort_by_key(|&index| std::cmp::Reverse(history[index].returned()));
        Self { call, state, untried }
    }
}

impl Done {
    fn has(&self, call: usize) -> bool {
        self.0[call / 64] >> (call % 64) & 1 == 1
    }

    fn flip(&mut self, call: usize) {
        self.0[call / 64] ^= 1 << (call % 64);
    }
}
