//! What the referee knows of its repository between two pushes: claims, agents and open items.
//!
//! Only the actor changes a [`View`]; judging reads it. Everything in it can be rebuilt from refs, except when each
//! claim was last renewed: a restart counts as a fresh observation.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use zit_footprint::Footprint;
use zit_model::settings::{Policy, Settings};
use zit_model::{AgentId, Instant, ItemId, Oid, Principal, RefName, Resource};

use crate::verdict::{Hold, Holder};

/// Everything that judging looks at.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The branch that changes land on; `None` until the first branch is pushed.
    pub mainline: Option<RefName>,
    /// Where `refs/zit/current` stands.
    pub current: Option<Oid>,
    /// Where the mainline branch stands, when stock git moved it away from current.
    pub diverged: Option<Option<Oid>>,
    /// What `zit.toml` of current settles.
    pub settings: Settings,
    /// Claims by key.
    pub claims: BTreeMap<String, Claim>,
    /// Agents that have spoken.
    pub agents: BTreeMap<AgentId, AgentRecord>,
    /// Work that has not landed, by the ref that carries it.
    pub items: BTreeMap<RefName, OpenItem>,
    /// The epoch of the next claim.
    pub next_epoch: u64,
}

/// A claim that stands.
#[derive(Clone, Debug)]
pub struct Claim {
    /// What is claimed.
    pub resource: Resource,
    /// Who holds it.
    pub agent: AgentId,
    /// For which task.
    pub item: ItemId,
    /// What the task is for.
    pub intent: Option<String>,
    /// How long it lives without renewal.
    pub lease: Duration,
    /// The fencing number.
    pub epoch: u64,
    /// The value of its ref.
    pub oid: Oid,
    /// When its lease last started.
    pub renewed: Instant,
}

/// What is remembered of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRecord {
    /// The principal that owns it: the first that wrote it.
    pub principal: String,
    /// The intent it stated last.
    pub intent: Option<String>,
    /// The value of its state ref.
    pub state: Option<Oid>,
}

/// One agent's branch, wip head or change that has not landed.
#[derive(Clone, Debug)]
pub struct OpenItem {
    /// Whose it is.
    pub agent: AgentId,
    /// Which task.
    pub item: ItemId,
    /// What the task is for.
    pub intent: Option<String>,
    /// The ref that carries it.
    pub name: RefName,
    /// The value of that ref.
    pub head: Oid,
    /// What it touches.
    pub footprint: Arc<Footprint>,
    /// When it was pushed last.
    pub pushed: Instant,
}

impl Claim {
    /// What is left of the lease; `None` once it has lapsed.
    #[must_use]
    pub fn left(&self, now: Instant) -> Option<Duration> {
        self.lease.checked_sub(now.since(self.renewed)).filter(|left| !left.is_zero())
    }

    /// The claim as something that stands in the way.
    #[must_use]
    pub fn holder(&self, now: Instant) -> Holder {
        Holder {
            agent: self.agent.clone(),
            intent: self.intent.clone(),
            resource: self.resource.clone(),
            hold: Hold::Claim { left: self.left(now).unwrap_or_default() },
        }
    }
}

impl View {
    /// Other agents' live claims that overlap `resource`.
    #[must_use]
    pub fn claims_against(
        &self,
        agent: &AgentId,
        resource: &Resource,
        now: Instant,
    ) -> Vec<Holder> {
        self.claims
            .values()
            .filter(|claim| claim.agent != *agent && claim.left(now).is_some())
            .filter(|claim| claim.resource.claim_overlaps(resource))
            .map(|claim| claim.holder(now))
            .collect()
    }

    /// Other agents' lapsed claims that overlap `resource` at another key. A claim that is granted over them ends them:
    /// left standing, a restart, which observes every claim afresh, would make both live.
    #[must_use]
    pub fn lapsed_against(
        &self,
        agent: &AgentId,
        resource: &Resource,
        now: Instant,
    ) -> BTreeMap<String, Oid> {
        self.claims
            .iter()
            .filter(|(_, claim)| claim.agent != *agent && claim.left(now).is_none())
            .filter(|(_, claim)| claim.resource != *resource)
            .filter(|(_, claim)| claim.resource.claim_overlaps(resource))
            .map(|(key, claim)| (key.clone(), claim.oid))
            .collect()
    }

    /// Other agents' in-flight writes that overlap `resource`, pushed within the time that `zit.toml` gives them.
    #[must_use]
    pub fn inflight_against(
        &self,
        agent: &AgentId,
        resource: &Resource,
        now: Instant,
    ) -> Vec<Holder> {
        self.items
            .values()
            .filter(|item| item.agent != *agent)
            .filter(|item| now.since(item.pushed) <= self.settings.inflight_ttl)
            .filter_map(|item| {
                let written =
                    item.footprint.writes.keys().find(|write| write.claim_overlaps(resource))?;
                Some(Holder {
                    agent: item.agent.clone(),
                    intent: item.intent.clone(),
                    resource: written.clone(),
                    hold: Hold::InFlight { name: item.name.clone(), since: now.since(item.pushed) },
                })
            })
            .collect()
    }

    /// Everything that keeps `agent` from claiming `resource`.
    ///
    /// # Source
    /// `spec/claims.md`, "Held".
    #[must_use]
    pub fn held_against(&self, agent: &AgentId, resource: &Resource, now: Instant) -> Vec<Holder> {
        let mut holders = self.claims_against(agent, resource, now);
        if self.settings.inflight == Policy::Refuse {
            holders.extend(self.inflight_against(agent, resource, now));
        }
        holders
    }

    /// Other agents' live claims on anything that `footprint` writes.
    #[must_use]
    pub fn fences_against(
        &self,
        agent: Option<&AgentId>,
        footprint: &Footprint,
        now: Instant,
    ) -> Vec<Holder> {
        self.claims
            .values()
            .filter(|claim| Some(&claim.agent) != agent && claim.left(now).is_some())
            .filter(|claim| footprint.writes.keys().any(|w| w.claim_overlaps(&claim.resource)))
            .map(|claim| claim.holder(now))
            .collect()
    }

    /// The open items of one agent.
    pub fn items_of<'a>(&'a self, agent: &'a AgentId) -> impl Iterator<Item = &'a OpenItem> {
        self.items.values().filter(move |item| item.agent == *agent)
    }

    /// The principal that owns `agent`, unless it is `principal` or nobody yet.
    #[must_use]
    pub fn foreign_owner(&self, agent: &AgentId, principal: &Principal) -> Option<&str> {
        self.agents
            .get(agent)
            .map(|r| r.principal.as_str())
            .filter(|owner| *owner != principal.name)
    }
}
