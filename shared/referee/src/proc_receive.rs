//! Commands that the configuration leaves to the hook `proc-receive` (`receive.procReceiveRefs`), and what it makes of them.
//!
//! [`Errand::proc_receive`] runs the hook, once for a push, and [`Handled::tell`] puts its answers in place of what the
//! commands ask for. No ref moves here for a command that the hook answers: it moves what it likes itself. One that it
//! hands back goes on as if there were no hook.
//!
//! Source: `spec/hooks.md`, "proc-receive"; git's `builtin/receive-pack.c`, `execute_commands`.

use std::collections::{BTreeMap, BTreeSet};

use zit_store::{Audience, ProgramEnd, Talk};
use zit_wire::proc_receive::{Answer, Conversation, Fate, Turn};
use zit_wire::receive::PushRequest;
use zit_wire::report::Rewritten;

use crate::hooks::{Errand, complain};
use crate::push::{Ask, Push};
use crate::verdict::Refusal;

/// What a hook says where it says nothing of a command. Source: git's `read_proc_receive_report`.
const UNREPORTED: &str = "proc-receive failed to report status";

/// What became of the commands that are left to the hook, by their place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handled {
    done: BTreeMap<usize, Vec<Rewritten>>,
    refused: BTreeMap<usize, Refusal>,
    /// Commands of an atomic push that the hook has nothing more to say of, and that its failure refuses.
    dragged: BTreeSet<usize>,
    /// Those that the hook hands back.
    pub(crate) handed_back: BTreeSet<usize>,
}

impl Handled {
    /// What a dry run says: nobody is asked.
    pub(crate) fn unasked(left: impl IntoIterator<Item = usize>) -> Self {
        let done = left.into_iter().map(|n| (n, Vec::new())).collect();
        Self { done, ..Self::default() }
    }

    fn new(fates: Vec<Fate>, failed: bool, is_atomic: bool) -> Self {
        let mut handled = Self::default();
        for (n, fate) in fates.into_iter().enumerate() {
            match fate {
                Fate::Done(updates) => drop(handled.done.insert(n, updates)),
                Fate::Refused(why) => drop(handled.refused.insert(n, Refusal::ByHook { why })),
                Fate::Unreported => {
                    let why = UNREPORTED.to_owned();
                    handled.refused.insert(n, Refusal::ByHook { why });
                }
                Fate::NotAsked | Fate::FallThrough if failed && is_atomic => {
                    handled.dragged.insert(n);
                }
                Fate::Unanswered => drop(handled.refused.insert(n, Refusal::LeftToHook)),
                Fate::FallThrough => drop(handled.handed_back.insert(n)),
                Fate::NotAsked => {}
            }
        }
        handled
    }

    /// Whether nothing else is to be done for the command.
    pub(crate) fn settles(&self, n: usize) -> bool {
        self.done.contains_key(&n) || self.refused.contains_key(&n) || self.dragged.contains(&n)
    }

    /// Puts the answers in place of what the commands ask for; those that only an atomic push drags along stay
    /// as they are if they are refused anyway.
    pub(crate) fn tell(&self, push: &mut Push) {
        for (n, updates) in &self.done {
            if let Some(command) = push.commands.get_mut(*n) {
                command.ask = Ask::Handled(updates.clone());
            }
        }
        for (n, refusal) in &self.refused {
            if let Some(command) = push.commands.get_mut(*n) {
                command.ask = Ask::Broken(refusal.clone());
            }
        }
        for n in &self.dragged {
            let command = push.commands.get_mut(*n);
            if let Some(command) = command.filter(|c| !matches!(c.ask, Ask::Broken(_))) {
                command.ask = Ask::Broken(Refusal::LeftToHook);
            }
        }
    }
}

impl Errand {
    /// Asks the hook about the commands in `left`, whose objects are in the repository.
    pub(crate) fn proc_receive(
        &self,
        request: &PushRequest,
        left: &BTreeSet<usize>,
        audience: &mut dyn Audience,
    ) -> Handled {
        let is_atomic = request.capabilities.atomic;
        let mut talking = Talking(Conversation::new(request, left, self.kind()));
        let Some(ended) = self.converse(&mut talking, audience) else {
            complain(b"cannot find hook 'proc-receive'", audience);
            return Handled::new(unanswered(request, left), true, is_atomic);
        };
        let Answer { fates, failed, complaint } = talking.0.close();
        if let Some(complaint) = complaint.filter(|_| !matches!(ended, ProgramEnd::Failed(_))) {
            complain(&complaint, audience);
        }
        Handled::new(fates, failed || !matches!(ended, ProgramEnd::Passed), is_atomic)
    }
}

fn unanswered(request: &PushRequest, left: &BTreeSet<usize>) -> Vec<Fate> {
    let fate = |n| if left.contains(&n) { Fate::Unanswered } else { Fate::NotAsked };
    (0..request.commands.len()).map(fate).collect()
}

struct Talking<'a>(Conversation<'a>);

impl Talk for Talking<'_> {
    fn begin(&mut self) -> Vec<u8> {
        self.0.begin()
    }

    fn hear(&mut self, piece: &[u8]) -> Option<Vec<u8>> {
        match self.0.hear(piece) {
            Turn::Say(said) => Some(said),
            Turn::End => None,
        }
    }
}
