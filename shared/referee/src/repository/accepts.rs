//! Landing what a push asks for once it is recorded, or saying what would become of it.
//!
//! Changes are composed beside the actor, one at a time, and land on it if current has not moved meanwhile.

use std::sync::PoisonError;

use zit_model::settings::Policy;
use zit_model::{AgentId, Oid};
use zit_store::Quarantine;

use super::{MAX_ROUNDS, Repository};
use crate::actor::{Event, Outcome};
use crate::answer::{self, Accepted};
use crate::error::RefereeError;
use crate::landing::{Composed, Landed, Landing, compose};
use crate::speaker::Committer;
use crate::verdict::{Decision, Refusal, Step};

impl Repository {
    /// Lands what the verdict says is to land. A dry run composes among its own objects, which go with it.
    pub(super) fn land_all(&self, outcome: &mut Outcome) -> Vec<(usize, Accepted)> {
        let commits: Vec<(usize, Oid)> = outcome
            .verdict
            .commands
            .iter()
            .enumerate()
            .filter_map(|(n, decision)| match decision {
                Decision::Do(Step::Land { commit, .. }) => Some((n, *commit)),
                Decision::Do(_) | Decision::Nothing(_) | Decision::Refuse(_) => None,
            })
            .collect();
        let agent = outcome.push.speaker.agent.as_ref();
        let committer = &outcome.push.committer;
        let mut accepted = Vec::new();
        for (n, commit) in commits {
            let landed = match (outcome.push.options.dry_run, &mut outcome.scratch) {
                (false, _) => self.land(commit, agent, committer, outcome.push.principal()),
                (true, Some(scratch)) => self.would_land(commit, agent, scratch),
                (true, None) => continue,
            };
            let landed = landed.unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "landing failed");
                Accepted::Failed(answer::chain(&error))
            });
            accepted.push((n, landed));
        }
        accepted
    }

    fn land(
        &self,
        commit: Oid,
        agent: Option<&AgentId>,
        committer: &Committer,
        principal: &str,
    ) -> Result<Accepted, RefereeError> {
        let _turn = self.landing.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..MAX_ROUNDS {
            let from = match self.landing_ground()? {
                Ok(from) => from,
                Err(refusal) => return Ok(Accepted::Refused(refusal)),
            };
            let mut composed = self.store.quarantine()?;
            let now = self.clock.now();
            let (to, footprint) =
                match compose(&mut composed, &self.footprinter, commit, from, now)? {
                    Composed::Already => return Ok(Accepted::Already),
                    Composed::Refused(refusal) => return Ok(Accepted::Refused(refusal)),
                    Composed::Ready { to, footprint } => (to, footprint),
                };
            let (agent, committer) = (agent.cloned(), committer.clone());
            let principal = principal.to_owned();
            let landing = Landing { commit, agent, committer, principal, from, to, footprint };
            let landing = Box::new(landing);
            match self.ask(|back| Event::Land(landing, composed, back))?? {
                Landed::Done { released } => {
                    return Ok(Accepted::Landed { from, to, released });
                }
                Landed::Refused(refusal) => return Ok(Accepted::Refused(refusal)),
                // Somebody else landed first: judge again on what is there now.
                Landed::Moved => {}
            }
        }
        Err(RefereeError::Busy)
    }

    /// What [`Repository::land`] would say, moving nothing.
    fn would_land(
        &self,
        commit: Oid,
        agent: Option<&AgentId>,
        scratch: &mut Quarantine,
    ) -> Result<Accepted, RefereeError> {
        let from = match self.landing_ground()? {
            Ok(from) => from,
            Err(refusal) => return Ok(Accepted::Refused(refusal)),
        };
        let now = self.clock.now();
        Ok(match compose(scratch, &self.footprinter, commit, from, now)? {
            Composed::Already => Accepted::Already,
            Composed::Refused(refusal) => Accepted::Refused(refusal),
            Composed::Ready { footprint, .. } => {
                let view = self.status(None)?.view;
                let holders = view.fences_against(agent, &footprint, now.monotonic);
                if holders.is_empty() || view.settings.bind == Policy::Advise {
                    Accepted::WouldLand
                } else {
                    Accepted::Refused(Refusal::Fenced { holders })
                }
            }
        })
    }

    /// Where current stands, if anything can land on it.
    fn landing_ground(&self) -> Result<Result<Oid, Refusal>, RefereeError> {
        let brief = self.ask(Event::Brief)?;
        Ok(match (brief.diverged, brief.current) {
            (Some(refusal), _) => Err(refusal),
            (None, Some(current)) => Ok(current),
            (None, None) => Err(Refusal::NotMainline { mainline: brief.mainline }),
        })
    }
}
