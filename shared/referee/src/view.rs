//! What the referee knows of its repository between two pushes: claims, agents and open items.
//!
//! Only the actor changes a [`View`]; judging reads it. Everything in it can be rebuilt from refs, except when each
//! claim was last renewed: a restart counts as a fresh observation, unless `seen` knows better.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use zit_footprint::Footprint;
use zit_model::document::ClaimRecord;
use zit_model::settings::{Policy, Settings};
use zit_model::{AgentId, Instant, ItemId, Oid, Principal, RefName, Resource};

use crate::claims::Claims;
use crate::published::Published;
use crate::verdict::{Hold, Holder};

/// Everything that judging looks at.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// The branch that changes land on; `None` until the first branch is pushed.
    pub mainline: Option<RefName>,
    /// Where `refs/zit/current` stands.
    pub current: Option<Oid>,
    /// Where the mainline branch stands, when stock git moved it away from current.
    pub diverged: Option<Strayed>,
    /// What `zit.toml` of current settles.
    pub settings: Settings,
    /// Claims by key.
    pub claims: Claims,
    /// Agents that have spoken.
    pub agents: BTreeMap<AgentId, AgentRecord>,
    /// Work that has not landed, by the ref that carries it.
    pub items: BTreeMap<RefName, OpenItem>,
    /// The footprints that refs publish, by the head that each is of.
    pub footprints: Published,
    /// The epoch of the next claim.
    pub next_epoch: u64,
}

/// Where the mainline branch stands after stock git moved it away from current; `None` when it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strayed(pub(crate) Option<Oid>);

/// A claim that stands.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// What its document says.
    pub record: ClaimRecord,
    /// The value of its ref.
    pub oid: Oid,
    /// When its lease last started.
    pub renewed: Instant,
}

/// What is remembered of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentRecord {
    /// The principal that owns it: the first that wrote it.
    pub principal: String,
    /// The intent it stated last.
    pub intent: Option<String>,
    /// The value of its state ref.
    pub state: Option<Oid>,
}

/// One agent's branch, wip head or change that has not landed.
#[derive(Clone, Debug)]
pub(crate) struct OpenItem {
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
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        self.record.lease.checked_sub(now.since(self.renewed)).filter(|left| !left.is_zero())
    }

    /// The claim as something that stands in the way.
    #[must_use]
    pub(crate) fn holder(&self, now: Instant) -> Holder {
        Holder {
            agent: self.record.agent.clone(),
            intent: self.record.intent.clone(),
            resource: self.record.resource.clone(),
            hold: Hold::Claim { left: self.left(now).unwrap_or_default() },
        }
    }
}

impl View {
    /// Other agents' live claims that overlap `resource`.
    #[must_use]
    pub(crate) fn claims_against(
        &self,
        agent: &AgentId,
        resource: &Resource,
        now: Instant,
    ) -> Vec<Holder> {
        self.claims
            .on(resource.path())
            .filter(|(_, claim)| claim.record.agent != *agent && claim.left(now).is_some())
            .filter(|(_, claim)| claim.record.resource.claim_overlaps(resource))
            .map(|(_, claim)| claim.holder(now))
            .collect()
    }

    /// Other agents' lapsed claims that overlap `resource` at another key. A claim that is granted over them ends them:
    /// left standing, a restart, which observes every claim afresh, would make both live.
    #[must_use]
    pub(crate) fn lapsed_against(
        &self,
        agent: &AgentId,
        resource: &Resource,
        now: Instant,
    ) -> BTreeMap<String, Oid> {
        self.claims
            .on(resource.path())
            .filter(|(_, claim)| claim.record.agent != *agent && claim.left(now).is_none())
            .filter(|(_, claim)| claim.record.resource != *resource)
            .filter(|(_, claim)| claim.record.resource.claim_overlaps(resource))
            .map(|(key, claim)| (key.clone(), claim.oid))
            .collect()
    }

    /// Other agents' in-flight writes that overlap `resource`, pushed within the time that `zit.toml` gives them.
    #[must_use]
    pub(crate) fn inflight_against(
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
    pub(crate) fn held_against(
        &self,
        agent: &AgentId,
        resource: &Resource,
        now: Instant,
    ) -> Vec<Holder> {
        let mut holders = self.claims_against(agent, resource, now);
        if self.settings.inflight == Policy::Refuse {
            holders.extend(self.inflight_against(agent, resource, now));
        }
        holders
    }

    /// Other agents' live claims on anything that `footprint` writes.
    #[must_use]
    pub(crate) fn fences_against(
        &self,
        agent: Option<&AgentId>,
        footprint: &Footprint,
        now: Instant,
    ) -> Vec<Holder> {
        let paths: BTreeSet<&str> = footprint.writes.keys().map(Resource::path).collect();
        let claims: BTreeMap<&String, &Claim> =
            paths.into_iter().flat_map(|path| self.claims.on(path)).collect();
        claims
            .into_values()
            .filter(|claim| Some(&claim.record.agent) != agent && claim.left(now).is_some())
            .filter(|claim| {
                footprint.writes.keys().any(|w| w.claim_overlaps(&claim.record.resource))
            })
            .map(|claim| claim.holder(now))
            .collect()
    }

    /// Goes on from `before` with what refs do not say: since when a claim or an item that did not change stands. Looking
    /// at the refs again is no observation of their owners.
    pub(crate) fn keep_times(&mut self, before: &Self) {
        for (key, claim) in self.claims.iter_mut() {
            if let Some(known) = before.claims.get(key).filter(|known| known.oid == claim.oid) {
                claim.renewed = known.renewed;
            }
        }
        for (name, item) in &mut self.items {
            if let Some(known) = before.items.get(name).filter(|known| known.head == item.head) {
                item.pushed = known.pushed;
            }
        }
    }

    /// The open items of one agent.
    pub(crate) fn items_of<'a>(&'a self, agent: &'a AgentId) -> impl Iterator<Item = &'a OpenItem> {
        self.items.values().filter(move |item| item.agent == *agent)
    }

    /// The principal that owns `agent`, unless it is `principal` or nobody yet.
    #[must_use]
    pub(crate) fn foreign_owner(&self, agent: &AgentId, principal: &Principal) -> Option<&str> {
        self.agents
            .get(agent)
            .map(|r| r.principal.as_str())
            .filter(|owner| *owner != principal.name)
    }
}

#[cfg(test)]
mod tests {
    use zit_footprint::{FileKind, Side, compare};

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    fn agent(id: &str) -> AgentId {
        AgentId::new(id).unwrap()
    }

    fn resource(text: &str) -> Resource {
        text.parse().unwrap()
    }

    fn at(minutes: u32) -> Instant {
        Instant::at(MINUTE * minutes)
    }

    fn footprint(path: &str) -> Arc<Footprint> {
        let new = Some(Side { kind: FileKind::Regular, bytes: b"fn one() {}\n" });
        Arc::new(Footprint::from_files([compare(&resource(path), None, new)]))
    }

    /// Claims of ten minutes, each of an agent on a resource since a minute.
    fn view(claims: &[(&str, &str, u32)]) -> View {
        let claims = claims.iter().enumerate().map(|(n, (owner, text, since))| {
            let record = ClaimRecord {
                resource: resource(text),
                agent: agent(owner),
                item: ItemId::new("aaaaaaaaaaaa").unwrap(),
                intent: None,
                lease: MINUTE * 10,
                epoch: n as u64,
            };
            let oid = Oid::from_hex(&[b'1'; 40]).unwrap();
            let claim = Claim { record, oid, renewed: at(*since) };
            (claim.record.resource.key(), claim)
        });
        View { claims: claims.collect(), ..View::default() }
    }

    fn named(holders: &[Holder]) -> Vec<String> {
        holders.iter().map(|holder| format!("{} {}", holder.agent, holder.resource)).collect()
    }

    #[test]
    fn a_lease_is_over_at_its_very_end() {
        let view = view(&[("ada", "a", 5)]);
        let claim = &view.claims[&resource("a").key()];
        for (now, left) in [(0, Some(10)), (5, Some(10)), (14, Some(1)), (15, None), (99, None)] {
            assert_eq!(claim.left(at(now)), left.map(|left| MINUTE * left), "at {now}");
        }
    }

    #[test]
    fn only_live_claims_of_others_that_overlap_hold() {
        let view = view(&[("ada", "a#x", 0), ("bob", "a#y", 8), ("eve", "b", 8)]);
        let held = |who: &str, text: &str, now| {
            named(&view.held_against(&agent(who), &resource(text), at(now)))
        };
        assert_eq!(held("bob", "a", 9), ["ada a#x"]);
        assert_eq!(held("eve", "a", 9).len(), 2);
        assert_eq!(held("eve", "a", 10), ["bob a#y"]);
        assert_eq!(held("ada", "a#x", 9), [""; 0]);
        assert_eq!(held("ada", "c", 9), [""; 0]);
    }

    #[test]
    fn lapsed_claims_of_others_end_with_a_claim_that_overlaps_them_elsewhere() {
        let view = view(&[("ada", "a#x", 0), ("bob", "a#y", 8), ("eve", "a#z", 0)]);
        let ends =
            |who: &str, text: &str| view.lapsed_against(&agent(who), &resource(text), at(10));
        assert_eq!(ends("eve", "a").into_keys().collect::<Vec<_>>(), [resource("a#x").key()]);
        assert!(ends("bob", "a#x").is_empty(), "its own ref is taken over, not deleted");
        assert!(ends("bob", "b").is_empty());
    }

    #[test]
    fn work_holds_for_its_time_and_to_the_end_of_it() {
        let item = OpenItem {
            agent: agent("ada"),
            item: ItemId::new("aaaaaaaaaaaa").unwrap(),
            intent: None,
            name: RefName::new("refs/heads/t").unwrap(),
            head: Oid::from_hex(&[b'1'; 40]).unwrap(),
            footprint: footprint("src/a.rs"),
            pushed: at(0),
        };
        let mut view = View::default();
        view.settings.inflight_ttl = MINUTE * 10;
        view.items.insert(item.name.clone(), item);
        let held = |who: &str, text: &str, now| {
            named(&view.inflight_against(&agent(who), &resource(text), at(now))).len()
        };
        assert_eq!(held("bob", "src/a.rs#one", 10), 1);
        assert_eq!(held("bob", "src/a.rs#one", 11), 0);
        assert_eq!(held("ada", "src/a.rs#one", 0), 0);
        assert_eq!(held("bob", "src/b.rs", 0), 0);
    }

    #[test]
    fn a_landing_is_fenced_by_live_claims_of_others_on_what_it_writes() {
        let view = view(&[("ada", "src/a.rs#one", 0), ("bob", "src/b.rs", 0)]);
        let fenced = |who: Option<&str>, now| {
            let who = who.map(agent);
            named(&view.fences_against(who.as_ref(), &footprint("src/a.rs"), at(now)))
        };
        assert_eq!(fenced(Some("bob"), 9), ["ada src/a.rs#one"]);
        assert_eq!(fenced(None, 9), ["ada src/a.rs#one"]);
        assert!(fenced(Some("ada"), 9).is_empty());
        assert!(fenced(Some("bob"), 10).is_empty());
    }

    #[test]
    fn an_agent_belongs_to_the_principal_that_is_written_down() {
        let mut view = View::default();
        let record = AgentRecord { principal: "ada".into(), intent: None, state: None };
        view.agents.insert(agent("a"), record);
        let owner = |principal: &str, id: &str| {
            let kind = zit_model::PrincipalKind::Human;
            let principal = Principal { name: principal.into(), kind };
            view.foreign_owner(&agent(id), &principal).map(str::to_owned)
        };
        assert_eq!(owner("ada", "a"), None);
        assert_eq!(owner("bob", "a"), Some("ada".into()));
        assert_eq!(owner("bob", "nobody"), None);
    }
}
