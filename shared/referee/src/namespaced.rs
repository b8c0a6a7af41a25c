//! Pushes to a namespace: names on their way in and out.
//!
//! [`Placed`] is the push as the repository has it, with every name that is one below the namespace's prefix; [`tell`]
//! turns the answer's names back into the client's. In between, the refs of a namespace are refs like any other outside
//! `refs/zit/`: moved by compare-and-swap, journaled, and nobody's open work.
//!
//! Nothing in a namespace is refereed. Claims, landing and the mainline are the repository's own, and are refused here:
//! a client that sees a part must not move what it does not see.
//!
//! Invariant: no name that is valid leaves [`Placed`] without the prefix.
//!
//! Source: gitnamespaces(7); git's `builtin/receive-pack.c`, `update`; `spec/refs.md`, "Namespaces".

use std::borrow::Cow;
use std::collections::BTreeMap;

use bstr::BString;
use zit_model::options::Options;
use zit_model::refs;
use zit_model::{Namespace, RefName};
use zit_wire::receive::PushRequest;

use crate::answer::PushAnswer;
use crate::push::{Ask, Push};
use crate::verdict::Refusal;

/// Why a push as a whole is not for a namespace.
pub(crate) const NO_REFEREE: &str = "claims and status are not offered in a namespace";

/// A push, its names as the repository has them.
pub(crate) struct Placed<'r> {
    /// What is judged.
    pub(crate) request: Cow<'r, PushRequest>,
    /// Commands that ask for what a namespace has not, by their place.
    refused: BTreeMap<usize, Refusal>,
}

impl<'r> Placed<'r> {
    /// Places a push in `namespace`; outside of any it stays as it is.
    pub(crate) fn new(request: &'r PushRequest, namespace: Option<&Namespace>) -> Self {
        let Some(namespace) = namespace else {
            return Self { request: Cow::Borrowed(request), refused: BTreeMap::new() };
        };
        let (mut placed, mut refused) = (request.clone(), BTreeMap::new());
        for (n, command) in placed.commands.iter_mut().enumerate() {
            // What is no name stays none, and is refused for that.
            let Ok(name) = RefName::new(&command.name) else { continue };
            refused.extend(fault(&name).map(|refusal| (n, refusal)));
            command.name = BString::from(namespace.prefix());
            command.name.extend_from_slice(name.as_bstr());
        }
        Self { request: Cow::Owned(placed), refused }
    }

    /// Whether the command asks for what a namespace has not.
    pub(crate) fn refuses(&self, n: usize) -> bool {
        self.refused.contains_key(&n)
    }

    /// Puts the refusals in place of what the commands ask for.
    pub(crate) fn refuse(&self, push: &mut Push) {
        for (n, refusal) in &self.refused {
            if let Some(command) = push.commands.get_mut(*n) {
                command.ask = Ask::Broken(refusal.clone());
            }
        }
    }
}

fn fault(name: &RefName) -> Option<Refusal> {
    if !refs::address(name).is_gits() {
        return Some(Refusal::NotInNamespace);
    }
    let why = || "it has one component below refs/, as in refs/x".to_owned();
    name.is_one_level().then(|| Refusal::BadName { why: why() })
}

/// Whether options ask for the referee.
pub(crate) fn asks_for_referee(options: &Options) -> bool {
    let Options { claims, required_claims, releases, status, .. } = options;
    *status || [claims, required_claims, releases].iter().any(|asked| !asked.is_empty())
}

/// The answer to `request` in the client's names.
pub(crate) fn tell(
    mut answer: PushAnswer,
    request: &PushRequest,
    namespace: &Namespace,
) -> PushAnswer {
    for (report, command) in answer.reports.iter_mut().zip(&request.commands) {
        report.name.clone_from(&command.name);
        if let Err(reason) = &mut report.result {
            *reason = reason.replace(namespace.prefix(), "");
        }
    }
    answer.text = answer.text.replace(namespace.prefix(), "");
    answer
}
