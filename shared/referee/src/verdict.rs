//! Verdicts: what the referee decided, as facts. Sentences are made in [`crate::words`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use zit_footprint::Conflict;
use zit_model::document::ClaimRecord;
use zit_model::resource::ResourceError;
use zit_model::{AgentId, ItemId, Oid, RefName, RefUpdate, Resource};
use zit_store::RefusedUpdate;
use zit_wire::report::Rewritten;

/// Who stands in the way of a claim or a landing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Whose claim or work it is.
    pub agent: AgentId,
    /// What it is for, in that agent's words.
    pub intent: Option<String>,
    /// What is held.
    pub resource: Resource,
    /// How it is held.
    pub hold: Hold,
}

/// How something is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// By a live claim.
    Claim {
        /// What is left of its lease.
        left: Duration,
    },
    /// By work that has not landed.
    InFlight {
        /// The ref that carries the work.
        name: RefName,
        /// How long ago it was pushed.
        since: Duration,
    },
}

/// One reason why a landing would not hold on what landed before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Staleness {
    /// The two units that meet.
    pub conflict: Conflict,
    /// The commit on current that wrote theirs, and its author.
    pub landed: Option<(Oid, String)>,
}

/// Why something asked for is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The refname is none.
    BadName {
        /// Which rule it breaks.
        why: String,
    },
    /// Below `refs/zit/`, and not a name a push may address.
    UnknownRef,
    /// Claims, landing and the rest of `refs/zit/` and `refs/for/`, in a namespace.
    NotInNamespace,
    /// Only the referee writes the ref.
    RefereeOnly,
    /// The ref belongs to another agent.
    OthersRef {
        /// Whose it is.
        owner: AgentId,
    },
    /// The request needs an agent and the push names none.
    NoAgent,
    /// The agent belongs to another principal.
    ForeignAgent {
        /// The agent that was named.
        agent: AgentId,
        /// The principal that owns it.
        owner: String,
    },
    /// The text is not a resource.
    BadResource(ResourceError),
    /// Two resources share one claim ref.
    KeyCollision {
        /// The resource that has the ref.
        found: Resource,
    },
    /// A document that was pushed cannot be read.
    BadDocument {
        /// What is wrong with it.
        why: String,
    },
    /// Others hold what is claimed.
    Held {
        /// What was claimed.
        resource: Resource,
        /// Everybody who holds some of it.
        holders: Vec<Holder>,
    },
    /// The claim to be released is somebody else's.
    NotYours {
        /// Whose it is.
        holder: Box<Holder>,
    },
    /// The claim moved since the pusher saw it.
    ClaimMoved {
        /// What its ref holds now.
        found: Option<Oid>,
    },
    /// The mainline would lose commits.
    NotForward {
        /// Where mainline and current stand.
        current: Oid,
    },
    /// The mainline is never deleted.
    MainlineDelete,
    /// Mainline was moved away from current by other means.
    Diverged {
        /// Where mainline stands; `None` when it is gone.
        mainline: Option<Oid>,
        /// Where current stands.
        current: Oid,
    },
    /// `refs/for/<branch>` of a branch that is not the mainline.
    NotMainline {
        /// The mainline, where there is one.
        mainline: Option<RefName>,
    },
    /// An accept without a commit.
    NothingToLand,
    /// The pushed object is not a commit.
    NotACommit {
        /// The object.
        oid: Oid,
    },
    /// An accept inside an atomic push of several refs.
    AtomicAccept,
    /// The ref must name its own value.
    NameIsNotValue {
        /// The value pushed.
        value: Oid,
    },
    /// The ref can be created and deleted, not moved.
    CreateOnly,
    /// The configuration hides the ref from pushers.
    Hidden {
        /// Whether it was to be deleted.
        is_deletion: bool,
    },
    /// The configuration leaves the ref to the hook `proc-receive`, which is not there or did not answer.
    LeftToHook,
    /// That hook said no, or nothing.
    ByHook {
        /// Its reason.
        why: String,
    },
    /// The configuration keeps branches from being deleted.
    DeleteDenied {
        /// The branch.
        name: RefName,
    },
    /// The configuration keeps the branch that HEAD names from being deleted.
    CurrentDelete {
        /// The branch.
        name: RefName,
    },
    /// The configuration keeps branches from losing commits.
    NonFastForward {
        /// The branch.
        name: RefName,
    },
    /// A work tree on the server has the branch checked out, and would be left behind.
    CheckedOut {
        /// The branch.
        name: RefName,
    },
    /// The tag exists, and tags do not move here.
    TagExists {
        /// Its value.
        found: Option<Oid>,
    },
    /// The change would not hold on what landed before it.
    Stale {
        /// Every pair that meets.
        reasons: Vec<Staleness>,
    },
    /// The change and current share no commit.
    Unrelated,
    /// The change and current do not merge as text, or what they merge to does not parse.
    Conflict {
        /// The files.
        paths: Vec<String>,
    },
    /// The landing writes what other agents claim.
    Fenced {
        /// The claims.
        holders: Vec<Holder>,
    },
    /// The ref itself refused.
    Ref(RefusedUpdate),
    /// Objects below the pushed one are missing.
    Incomplete {
        /// What git said.
        why: String,
    },
    /// The repository would become shallow, or more so, and its configuration does not allow that.
    ShallowUpdate,
    /// The repository's `update` hook said no.
    Hook,
    /// The push names the ref more than once.
    Duplicate,
    /// The push names the ref both itself and by a symbolic ref, and asks for different things.
    Aliased,
    /// The push both claims and releases it.
    Contradiction {
        /// The resource.
        resource: Resource,
    },
    /// More than is taken of something.
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much is taken.
        max: usize,
    },
    /// An atomic push, and another of its refs was refused.
    Atomic {
        /// That ref.
        culprit: String,
    },
    /// A claim that the push requires was not granted.
    ClaimRequired {
        /// The claim.
        resource: String,
    },
}

/// What one command or option comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is done.
    Do(Step),
    /// It was so already.
    Nothing(Already),
    /// It is refused.
    Refuse(Refusal),
}

/// What was so already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Already {
    /// There is no such claim to release.
    NoClaim(Resource),
    /// The change has landed before.
    Accepted(Oid),
    /// The ref holds that value.
    Same,
}

/// One thing to do. Each carries all that its execution needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Move a ref; an item may open, move or close with it.
    Update {
        /// The ref.
        update: RefUpdate,
        /// What becomes of the item that the ref carries.
        item: ItemStep,
    },
    /// Move the mainline forward, and current with it.
    Forward {
        /// The mainline's update.
        mainline: RefUpdate,
        /// Current's update.
        current: RefUpdate,
    },
    /// Write a claim.
    Grant(Grant),
    /// Start a live claim's lease anew. No ref moves.
    Renew {
        /// The claim's resource.
        resource: Resource,
        /// Its ref's value.
        oid: Oid,
    },
    /// Delete a claim.
    Release {
        /// The claim's resource.
        resource: Resource,
        /// Its ref's value.
        oid: Oid,
    },
    /// Nothing but what the options say.
    Tell,
    /// Nothing any more: a hook did it.
    Handled(Vec<Rewritten>),
    /// Land a recorded change, after this transaction.
    Land {
        /// The change.
        commit: Oid,
        /// Its ref, where it is not recorded yet, and the item that it carries.
        record: Option<(RefUpdate, ItemStep)>,
    },
}

/// What becomes of the item that a ref carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemStep {
    /// The ref carries no item.
    None,
    /// It carries this one now.
    Open {
        /// Whose it is.
        agent: AgentId,
        /// Which.
        item: ItemId,
        /// What it is for.
        intent: Option<String>,
    },
    /// It carries none any more.
    Close,
}

/// A claim to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    /// What its document will say.
    pub record: ClaimRecord,
    /// What the claim's ref holds now.
    pub expected: Option<Oid>,
    /// Whose lapsed claim this takes over.
    pub taken_from: Option<AgentId>,
    /// Lapsed claims of others on overlapping resources, which end with this one: the value of each ref by its key.
    pub supersedes: BTreeMap<String, Oid>,
}

/// What the referee decided about a push.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a verdict that is not carried out leaves the push unanswered"]
pub(crate) struct Verdict {
    /// One for each command, in the order sent.
    pub commands: Vec<Decision>,
    /// One for each claim and release given as an option, with the text as given.
    pub options: Vec<(String, Decision)>,
}

impl Verdict {
    /// The refs of others' work in flight that refusals name.
    pub(crate) fn in_flight(&self) -> BTreeSet<RefName> {
        let decisions = self.commands.iter().chain(self.options.iter().map(|(_, d)| d));
        decisions
            .filter_map(|decision| match decision {
                Decision::Refuse(Refusal::Held { holders, .. }) => Some(holders),
                Decision::Refuse(_) | Decision::Do(_) | Decision::Nothing(_) => None,
            })
            .flatten()
            .filter_map(|holder| match &holder.hold {
                Hold::InFlight { name, .. } => Some(name.clone()),
                Hold::Claim { .. } => None,
            })
            .collect()
    }

    /// Everything that is to be done, commands first.
    pub(crate) fn steps(&self) -> impl Iterator<Item = &Step> {
        self.commands.iter().chain(self.options.iter().map(|(_, d)| d)).filter_map(|d| match d {
            Decision::Do(step) => Some(step),
            Decision::Nothing(_) | Decision::Refuse(_) => None,
        })
    }
}
