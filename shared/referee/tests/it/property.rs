//! Claims against a small model: random claims, releases, times and restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use zit_model::Resource;

use crate::world::{LEASE, World, claim, claim_ref, release, resource};

const AGENTS: [&str; 3] = ["ada", "bob", "eve"];
const RESOURCES: [&str; 6] =
    ["src/a.rs", "src/a.rs#one", "src/a.rs#T", "src/a.rs#T::m", "src/a.rs#T::n", "src/b.rs#one"];

#[derive(Clone, Debug)]
enum Move {
    Claim(usize, usize),
    Release(usize, usize),
    Advance(u64),
    Reopen,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let (agent, thing) = (0..AGENTS.len(), 0..RESOURCES.len());
    let one = prop_oneof![
        6 => (agent.clone(), thing.clone()).prop_map(|(a, r)| Move::Claim(a, r)),
        2 => (agent, thing).prop_map(|(a, r)| Move::Release(a, r)),
        3 => (1_u64..11).prop_map(Move::Advance),
        1 => Just(Move::Reopen),
    ];
    proptest::collection::vec(one, 1..30)
}

/// What a referee must know of a claim: whose it is, and when its lease began, in minutes.
#[derive(Default)]
struct Model {
    now: u64,
    claims: BTreeMap<&'static str, (&'static str, u64)>,
    /// The owner and the epoch seen last on each resource.
    epochs: BTreeMap<&'static str, (&'static str, u64)>,
}

impl Model {
    fn live(&self, since: u64) -> bool {
        Duration::from_mins(self.now - since) < LEASE
    }

    fn overlapping(&self, thing: &str, agent: &str) -> Vec<&'static str> {
        let wanted: Resource = resource(thing);
        let others = self.claims.iter().filter(|(_, (owner, _))| *owner != agent);
        others.map(|(r, _)| *r).filter(|r| resource(r).claim_overlaps(&wanted)).collect()
    }

    /// Whether the claim is granted; if so, it stands afterwards, and lapsed ones in its way do not.
    fn claim(&mut self, agent: &'static str, thing: &'static str) -> bool {
        let in_the_way = self.overlapping(thing, agent);
        if in_the_way.iter().any(|r| self.live(self.claims[r].1)) {
            return false;
        }
        for lapsed in in_the_way {
            self.claims.remove(lapsed);
        }
        self.claims.insert(thing, (agent, self.now));
        true
    }

    fn release(&mut self, agent: &str, thing: &str) -> bool {
        match self.claims.get(thing) {
            Some((owner, _)) if *owner != agent => false,
            Some(_) => self.claims.remove(thing).is_some(),
            None => true,
        }
    }

    fn standing(&self) -> BTreeSet<String> {
        let live = self.claims.iter().filter(|(_, (_, since))| self.live(*since));
        live.map(|(thing, (agent, _))| format!("{agent} {thing}")).collect()
    }
}

fn check(world: &World, model: &mut Model) {
    assert_eq!(world.claims().into_iter().collect::<BTreeSet<_>>(), model.standing());
    let live: Vec<(&str, &str)> = model
        .claims
        .iter()
        .filter(|(_, (_, since))| model.live(*since))
        .map(|(thing, (agent, _))| (*thing, *agent))
        .collect();
    for (thing, agent) in &live {
        for (other, owner) in &live {
            let meet = resource(thing).claim_overlaps(&resource(other));
            assert!(agent == owner || !meet, "{agent} has {thing} and {owner} has {other}");
        }
    }
    let refs = world.refs();
    for thing in RESOURCES {
        assert_eq!(
            refs.contains_key(&claim_ref(thing)),
            model.claims.contains_key(thing),
            "{thing}"
        );
    }
    for (thing, owner) in live {
        let epoch = world.claim_document(thing)["epoch"].as_u64().unwrap();
        let Some((before, last)) = model.epochs.insert(thing, (owner, epoch)) else { continue };
        let forward = if before == owner { epoch >= last } else { epoch > last };
        assert!(forward, "{thing} of {owner} went from epoch {last} of {before} to {epoch}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_agents_hold_what_overlaps_and_no_epoch_goes_back(moves in moves()) {
        let (mut world, _) = World::new();
        let mut model = Model::default();
        for step in moves {
            match step {
                Move::Claim(agent, thing) => {
                    let (agent, thing) = (AGENTS[agent], RESOURCES[thing]);
                    let granted = world.push(agent, &[claim(thing)], &[]).reports[0].result.is_ok();
                    prop_assert_eq!(granted, model.claim(agent, thing), "{} claims {}", agent, thing);
                }
                Move::Release(agent, thing) => {
                    let (agent, thing) = (AGENTS[agent], RESOURCES[thing]);
                    let done = world.push(agent, &[release(thing)], &[]).reports[0].result.is_ok();
                    prop_assert_eq!(done, model.release(agent, thing), "{} releases {}", agent, thing);
                }
                Move::Advance(minutes) => {
                    world.advance(Duration::from_mins(minutes));
                    model.now += minutes;
                }
                Move::Reopen => {
                    world.reopen();
                    let now = model.now;
                    model.claims.values_mut().for_each(|(_, since)| *since = now);
                }
            }
            check(&world, &mut model);
        }
    }
}
