//! Many pushes that move one branch from one value: all but one lose. Here is what spares the losers' work.
//!
//! [`branch_move`] says of which commands that can be known before their objects are looked at, [`Turnstile`] lets one
//! push at a time be looked into for each branch, and [`skip`] reads over a pack that nobody needs.
//!
//! Never decides: what a branch holds is compared by the caller, and again by the store when the branch moves.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use zit_model::refs::{self, Address};
use zit_model::{Oid, RefName};
use zit_store::PackLimits;
use zit_wire::receive::{Command, PushRequest};

/// How long a push waits for its turn. One that is looked into takes milliseconds; where one takes longer, the others
/// go on beside it.
const PATIENCE: Duration = Duration::from_millis(500);

/// The branch that a command moves, from what to what. The mainline has words of its own for a race that was lost.
pub(crate) fn branch_move(
    command: &Command,
    mainline: Option<&RefName>,
) -> Option<(RefName, Oid, Oid)> {
    let (expected, new) = (command.old?, command.new?);
    let name = RefName::new(&command.name).ok()?;
    let is_branch = refs::address(&name) == Address::Head && mainline != Some(&name);
    is_branch.then_some((name, expected, new))
}

/// Reads a pack to its end, as far as it could have been taken, and throws it away.
pub(crate) fn skip(request: &PushRequest, pack: &mut dyn Read, limits: &PackLimits) {
    if request.expects_pack() {
        // The push is refused however its pack ends.
        let _ = io::copy(&mut pack.take(limits.max_bytes), &mut io::sink());
    }
}

/// Lets one push at a time through for each branch.
pub(crate) struct Turnstile {
    inside: Mutex<BTreeSet<RefName>>,
    left: Condvar,
    patience: Duration,
}

/// A push's turn, until dropped.
#[must_use = "the next one is let through when this is dropped"]
pub(crate) struct Turn<'a> {
    turnstile: &'a Turnstile,
    name: RefName,
}

impl Default for Turnstile {
    fn default() -> Self {
        Self::with(PATIENCE)
    }
}

impl Turnstile {
    fn with(patience: Duration) -> Self {
        Self { inside: Mutex::default(), left: Condvar::new(), patience }
    }

    /// Waits until no other push of the branch is inside; `None` when that takes too long.
    pub(crate) fn enter(&self, name: RefName) -> Option<Turn<'_>> {
        let inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let is_taken = |inside: &mut BTreeSet<RefName>| inside.contains(&name);
        let (mut inside, waited) = self
            .left
            .wait_timeout_while(inside, self.patience, is_taken)
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        inside.insert(name.clone());
        Some(Turn { turnstile: self, name })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let turnstile = self.turnstile;
        turnstile.inside.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
        turnstile.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    fn name(branch: &str) -> RefName {
        refs::head(branch.as_bytes()).unwrap()
    }

    #[test]
    fn the_next_push_of_a_branch_comes_in_when_the_one_inside_leaves() {
        // Longer than any test runs, so that nobody is let in but by the one who leaves.
        let turnstile = Turnstile::with(Duration::from_hours(1));
        let first = turnstile.enter(name("a"));
        assert!(first.is_some());
        assert!(turnstile.enter(name("b")).is_some(), "another branch waits for nobody");
        let has_left = AtomicBool::new(false);
        thread::scope(|scope| {
            let next = scope.spawn(|| {
                let turn = turnstile.enter(name("a"));
                assert!(has_left.load(Ordering::SeqCst), "two are inside");
                turn.is_some()
            });
            has_left.store(true, Ordering::SeqCst);
            drop(first);
            assert!(next.join().unwrap());
        });
        assert!(turnstile.inside.lock().unwrap().is_empty());
    }

    #[test]
    fn whoever_has_waited_long_enough_for_a_turn_gets_none() {
        let turnstile = Turnstile::with(Duration::ZERO);
        let first = turnstile.enter(name("a"));
        assert!(turnstile.enter(name("a")).is_none());
        drop(first);
        assert!(turnstile.enter(name("a")).is_some());
    }
}
