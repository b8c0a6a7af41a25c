//! What a group of refs or a claim may do, as a state machine.
//!
//! Refs are named by slots and objects by small numbers, 0 being "no object" (for the mainline, the
//! commit that it began with).

use std::collections::BTreeMap;

use super::order::{self, Verdict};

/// How many refs a group has.
pub(super) const N_SLOTS: usize = 3;

/// One command of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Command {
    pub(super) slot: usize,
    /// What the slot must hold; `None` if whatever it holds will do.
    pub(super) old: Option<u16>,
    pub(super) new: u16,
    /// Whether it counts as done if the slot holds the new value already.
    pub(super) repeatable: bool,
}

/// What a client asked for, and what it was told; an answer of `None` was lost.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// For each command, whether it was done.
    Push { commands: Vec<Command>, atomic: bool, answer: Option<Vec<bool>> },
    /// What one slot holds.
    Read { slot: usize, found: u16 },
    /// What a claim came to.
    Claim { agent: usize, answer: Option<Grant> },
    /// Whether it was refused because another agent holds the claim.
    Release { agent: usize, answer: Option<bool> },
}

/// What is told to an agent that claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// It is the new owner, with this epoch.
    New(u64),
    /// It was the owner already.
    Renewed,
    /// Another agent is.
    Refused,
}

/// One call of the history, with the group that it is about.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) group: usize,
    /// Nanoseconds since the beginning of the test.
    pub(super) sent: i64,
    pub(super) answered: i64,
    pub(super) call: Call,
}

/// One group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    slots: [u16; N_SLOTS],
    owner: Option<usize>,
    /// The last epoch that anybody was told.
    epoch: u64,
}

impl State {
    /// The state after `call`, or `None` if the call cannot have been answered so. A call whose answer was
    /// lost must change something.
    pub(super) fn after(&self, call: &Call) -> Option<Self> {
        let mut next = self.clone();
        let fits = match call {
            Call::Push { commands, atomic, answer } => {
                let done = next.push(commands, *atomic);
                answer.as_ref().is_none_or(|answer| *answer == done)
            }
            Call::Read { slot, found } => self.slots[*slot] == *found,
            Call::Claim { agent, answer } => next.claim(*agent, *answer),
            Call::Release { agent, answer } => next.release(*agent, *answer),
        };
        (fits && !(call.is_lost() && next == *self)).then_some(next)
    }

    fn push(&mut self, commands: &[Command], atomic: bool) -> Vec<bool> {
        let fits = |command: &Command| {
            let held = self.slots[command.slot];
            command.old.is_none_or(|old| old == held) || (command.repeatable && command.new == held)
        };
        let mut done = commands.iter().map(fits).collect::<Vec<_>>();
        if atomic && done.contains(&false) {
            done.fill(false);
        }
        for (command, _) in commands.iter().zip(&done).filter(|(_, done)| **done) {
            self.slots[command.slot] = command.new;
        }
        done
    }

    fn claim(&mut self, agent: usize, answer: Option<Grant>) -> bool {
        let (before, epoch) = (self.owner, self.epoch);
        self.owner = self.owner.or(Some(agent));
        match answer {
            Some(Grant::New(new)) => {
                self.epoch = new;
                before.is_none() && new > epoch
            }
            Some(Grant::Renewed) => before == Some(agent),
            Some(Grant::Refused) => self.owner != Some(agent),
            None => true,
        }
    }

    fn release(&mut self, agent: usize, answer: Option<bool>) -> bool {
        let refused = self.owner.is_some_and(|owner| owner != agent);
        if !refused {
            self.owner = None;
        }
        answer.is_none_or(|answer| answer == refused)
    }
}

/// Checks that one order of the calls of each group explains all answers.
///
/// # Errors
/// The first group for which no order was found, with the verdict.
pub(super) fn check(history: &[Entry]) -> Result<(), (usize, Verdict)> {
    let mut groups = BTreeMap::<usize, Vec<Entry>>::new();
    for entry in history {
        groups.entry(entry.group).or_default().push(entry.clone());
    }
    for (group, mut entries) in groups {
        entries.sort_by_key(|entry| entry.sent);
        let verdict = order::explain(&entries);
        if verdict != Verdict::Lawful {
            return Err((group, verdict));
        }
    }
    Ok(())
}

impl Entry {
    /// When the call returned at the latest.
    pub(super) fn returned(&self) -> i64 {
        if self.call.is_lost() { i64::MAX } else { self.answered }
    }
}

impl Call {
    /// Whether the client was never told what came of it.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Push { answer, .. } => answer.is_none(),
            Self::Claim { answer, .. } => answer.is_none(),
            Self::Release { answer, .. } => answer.is_none(),
            Self::Read { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(slot: usize, old: u16, new: u16) -> Command {
        Command { slot, old: Some(old), new, repeatable: false }
    }

    fn push(commands: &[Command], answer: Option<&[bool]>) -> Call {
        let answer = answer.map(<[bool]>::to_vec);
        Call::Push { commands: commands.to_vec(), atomic: true, answer }
    }

    /// A history of calls (sent, answered, call) of one group.
    #[track_caller]
    fn expect(lawful: bool, case: &str, calls: &[(i64, i64, Call)]) {
        let entry = |(sent, answered, call): &(i64, i64, Call)| Entry {
            group: 0,
            sent: *sent,
            answered: *answered,
            call: call.clone(),
        };
        let history = calls.iter().map(entry).collect::<Vec<_>>();
        assert_eq!(check(&history).is_ok(), lawful, "{case}");
    }

    #[test]
    fn histories_that_no_order_explains_are_found() {
        let create = |new| push(&[set(0, 0, new)], Some(&[true]));
        let read = |slot, found| Call::Read { slot, found };
        expect(false, "two winners", &[(0, 9, create(1)), (1, 8, create(2))]);
        expect(false, "a lost write", &[(0, 1, create(1)), (2, 3, read(0, 0))]);
        expect(true, "a read beside a write", &[(0, 5, create(1)), (2, 3, read(0, 0))]);
        let both = push(&[set(0, 0, 1), set(1, 0, 1)], Some(&[true, true]));
        expect(false, "half a push", &[(0, 1, both), (2, 3, read(0, 1)), (4, 5, read(1, 0))]);
        let refused = push(&[set(0, 0, 1)], Some(&[false]));
        expect(false, "a refusal without a reason", &[(0, 1, refused)]);
        let lost = push(&[set(0, 0, 1)], None);
        expect(true, "a lost push done", &[(0, 1, lost.clone()), (2, 3, read(0, 1))]);
        expect(true, "a lost push not done", &[(0, 1, lost.clone()), (2, 3, read(0, 0))]);
        let undone = [(0, 1, lost), (2, 3, read(0, 1)), (4, 5, read(0, 0))];
        expect(false, "a lost push done and undone", &undone);
    }

    #[test]
    fn claims_that_no_order_explains_are_found() {
        let claim = |agent, answer| Call::Claim { agent, answer: Some(answer) };
        let release = |agent| Call::Release { agent, answer: Some(false) };
        let (mine, yours) = ((0, 1, claim(0, Grant::New(4))), (2, 3, claim(1, Grant::New(5))));
        expect(false, "two owners", &[mine.clone(), yours.clone()]);
        expect(false, "an owner refused", &[mine.clone(), (2, 3, claim(0, Grant::Refused))]);
        expect(
            false,
            "a renewal that is a grant",
            &[mine.clone(), (2, 3, claim(0, Grant::New(5)))],
        );
        let again = (4, 5, claim(1, Grant::New(4)));
        expect(false, "an epoch twice", &[mine.clone(), (2, 3, release(0)), again]);
        let after = (4, 5, claim(1, Grant::New(5)));
        expect(true, "one after the other", &[mine, (2, 3, release(0)), after]);
    }
}
