//! What the repository's configuration refuses in a push, before the referee judges it: hidden refs, `receive.deny*` and
//! branches that work trees have checked out. The words of the refusals are git's.
//!
//! Only the commands, objects and configuration are looked at: what the refs hold is compared when they move.
//!
//! Source: git's `builtin/receive-pack.c`, `reject_updates_to_hidden` and `update`.

use std::collections::{BTreeMap, BTreeSet};

use bstr::ByteSlice;
use zit_model::refs::{self, Address, Request};
use zit_model::{Namespace, Oid, RefName, quote};
use zit_store::{Audience, Deny, DenyConfig, LeftToHook, Objects, Quarantine, Store, StoreError};
use zit_wire::receive::{Command, PushRequest};

use crate::open;
use crate::push::{Ask, Push};
use crate::verdict::Refusal;

/// Refusals by the place of their command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Denied {
    /// Commands that no hook is shown.
    pub(crate) hidden: BTreeMap<usize, Refusal>,
    /// Commands that `pre-receive` is shown and `update` is not.
    pub(crate) refused: BTreeMap<usize, Refusal>,
    /// Commands that are left to the hook `proc-receive`, with what refuses them should it hand them back.
    left: BTreeMap<usize, Option<Refusal>>,
    /// Branches that are not moved because work trees have them checked out.
    guarded: BTreeSet<RefName>,
    /// What the pusher is warned of.
    warnings: Vec<String>,
}

/// Looks at each command of a push, whose names are those of `namespace`, if it is to one.
///
/// # Errors
/// [`StoreError`] when the configuration or HEAD cannot be read.
pub(crate) fn denied(
    store: &Store,
    request: &PushRequest,
    namespace: Option<&Namespace>,
    mainline: Option<&RefName>,
    incoming: Option<&Quarantine>,
) -> Result<Denied, StoreError> {
    let config = store.config()?;
    // A handle on what came in is not cheap, and few repositories ask for it.
    let objects = match (config.deny.non_fast_forwards, incoming) {
        (false, _) => None,
        (true, Some(incoming)) => Some(incoming.objects()),
        (true, None) => Some(store.objects()?),
    };
    let head = open::head_target(store)?;
    let checked_out = match config.deny.current_branch {
        Deny::Ignore => BTreeSet::new(),
        Deny::Warn | Deny::Refuse => store.checked_out()?,
    };
    let mut denied = Denied::default();
    for (n, command) in request.commands.iter().enumerate() {
        let Ok(name) = RefName::new(&command.name) else { continue };
        // What the repository calls it; one that is too long for that is refused later.
        let full = namespace.map_or_else(|| Ok(name.clone()), |namespace| namespace.full(&name));
        let Ok(full) = full else { continue };
        if config.hidden_from_push.hides_in(Some(name.as_bstr()), full.as_bstr()) {
            let is_deletion = command.new.is_none();
            denied.hidden.insert(n, Refusal::Hidden { is_deletion });
            continue;
        }
        let (has_old, has_new) = (command.old.is_some(), command.new.is_some());
        let takes = |l: &LeftToHook| l.takes(name.as_bstr(), has_old, has_new);
        let is_left = config.deny.left_to_hook.iter().any(takes) && !is_ours(&name, mainline);
        let n_warnings = denied.warnings.len();
        let is_checked_out = checked_out.contains(&full);
        let is_current = is_checked_out || head.as_ref() == Some(&full);
        let faults = [
            denied.checked_out(&name, is_checked_out.then_some(config.deny.current_branch)),
            deleted(&config.deny, command, &name),
            denied.current_deleted(&config.deny, command, &name, is_current),
            objects.as_ref().and_then(|objects| rewound(command, &name, objects)),
        ];
        let refusal = faults.into_iter().flatten().next();
        if is_left {
            denied.warnings.truncate(n_warnings);
            denied.left.insert(n, refusal);
        } else if let Some(refusal) = refusal {
            denied.refused.insert(n, refusal);
        }
    }
    if config.deny.current_branch == Deny::Refuse {
        denied.guarded = checked_out;
    }
    Ok(denied)
}

/// Whether the referee keeps the ref for itself whatever the configuration says.
///
/// # Source
/// `spec/hooks.md`, "proc-receive".
fn is_ours(name: &RefName, mainline: Option<&RefName>) -> bool {
    let address = refs::address(name);
    if let Address::Request(Request::For(branch)) = &address {
        return mainline.is_some_and(|mainline| mainline.branch() == Some(branch.as_bstr()));
    }
    !address.is_gits()
}

impl Denied {
    /// The commands that are left to the hook. Those that `others` refuse are not, and those that are `unfit` for it are
    /// refused.
    pub(crate) fn left(
        &mut self,
        others: impl Fn(usize) -> bool,
        unfit: impl Fn(usize) -> bool,
    ) -> BTreeSet<usize> {
        self.left.retain(|n, _| !others(*n));
        for (n, _) in self.left.extract_if(.., |n, _| unfit(*n)) {
            self.refused.insert(n, Refusal::LeftToHook);
        }
        self.left.keys().copied().collect()
    }

    /// Takes back what the hook hands back.
    pub(crate) fn take_back(&mut self, handed_back: &BTreeSet<usize>) {
        for n in handed_back {
            if let Some(Some(refusal)) = self.left.remove(n) {
                self.refused.insert(*n, refusal);
            }
        }
    }

    fn checked_out(&mut self, name: &RefName, deny: Option<Deny>) -> Option<Refusal> {
        match deny? {
            Deny::Refuse => Some(Refusal::CheckedOut { name: name.clone() }),
            Deny::Warn => {
                self.warnings.push("updating the current branch".to_owned());
                None
            }
            Deny::Ignore => None,
        }
    }

    fn current_deleted(
        &mut self,
        deny: &DenyConfig,
        command: &Command,
        name: &RefName,
        is_current: bool,
    ) -> Option<Refusal> {
        if !is_current || command.old.is_none() || command.new.is_some() {
            return None;
        }
        match deny.delete_current {
            Deny::Refuse => Some(Refusal::CurrentDelete { name: name.clone() }),
            Deny::Warn => {
                self.warnings.push("deleting the current branch".to_owned());
                None
            }
            Deny::Ignore => None,
        }
    }

    /// Tells what the pusher is warned of.
    pub(crate) fn warn(&self, audience: &mut dyn Audience) {
        for warning in &self.warnings {
            // Whoever has gone is noticed later.
            let _ = audience.hear(format!("warning: {}\n", quote::one_line(warning)).as_bytes());
        }
    }

    /// Puts the refusals in place of what the commands ask for. The mainline has rules of its own, which are stricter.
    pub(crate) fn refuse(&self, push: &mut Push) {
        push.guards_mainline =
            push.mainline.as_ref().is_some_and(|name| self.guarded.contains(name));
        for (n, refusal) in self.hidden.iter().chain(&self.refused) {
            let Some(command) = push.commands.get_mut(*n) else { continue };
            let has_own_rule = command.ask == Ask::Mainline
                && !matches!(
                    refusal,
                    Refusal::Hidden { .. } | Refusal::LeftToHook | Refusal::CheckedOut { .. }
                );
            if !has_own_rule {
                command.ask = Ask::Broken(refusal.clone());
            }
        }
    }
}

fn deleted(deny: &DenyConfig, command: &Command, name: &RefName) -> Option<Refusal> {
    let is_denied = deny.deletes && name.branch().is_some();
    (is_denied && command.old.is_some() && command.new.is_none())
        .then(|| Refusal::DeleteDenied { name: name.clone() })
}

/// Where branches must not lose commits.
fn rewound(command: &Command, name: &RefName, objects: &Objects) -> Option<Refusal> {
    let (Some(old), Some(new)) = (command.old, command.new) else { return None };
    (name.branch().is_some() && !contains(objects, old, new))
        .then(|| Refusal::NonFastForward { name: name.clone() })
}

/// Whether `new` contains `old`, as far as both can be read.
fn contains(objects: &Objects, old: Oid, new: Oid) -> bool {
    objects.is_ancestor(old, new).unwrap_or_else(|error| {
        tracing::debug!(%old, %new, %error, "counts as no fast-forward");
        false
    })
}
