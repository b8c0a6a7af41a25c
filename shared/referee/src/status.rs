//! The answer to `zit.status`: an agent's own items and claims, then everybody else's.

use serde_json::{Value, json};
use zit_model::envelope::{Envelope, Line};
use zit_model::{AgentId, quote};

use crate::actor::Status;
use crate::view::{Claim, OpenItem};
use crate::words;

/// Adds the state of things to an answer.
pub(crate) fn tell(status: &Status, envelope: &mut Envelope) {
    let now = status.now.monotonic;
    let mine = |agent: &AgentId| status.agent.as_ref() == Some(agent);
    let mut claims: Vec<&Claim> =
        status.view.claims.values().filter(|claim| claim.left(now).is_some()).collect();
    claims.sort_by_key(|claim| (!mine(&claim.record.agent), claim.record.resource.clone()));
    let mut items: Vec<&OpenItem> = status.view.items.values().collect();
    items.sort_by_key(|item| (!mine(&item.agent), item.name.clone()));
    // Nobody is "you" to others, whatever its id.
    let does = |agent: &AgentId, verb: &str| match (mine(agent), agent.as_str()) {
        (true, _) => format!("you {verb}"),
        (false, "you") => format!("agent you {verb}s"),
        (false, id) => format!("{id} {verb}s"),
    };
    let task = |intent: &Option<String>| match intent {
        Some(intent) => format!(" for {}", quote::quoted(intent)),
        None => String::new(),
    };
    for claim in &claims {
        let left = words::time(claim.left(now).unwrap_or_default());
        envelope.details.push(Line::new(format!(
            "{} {}{}, lease left {left} (epoch {})",
            does(&claim.record.agent, "hold"),
            claim.record.resource.shown(),
            task(&claim.record.intent),
            claim.record.epoch
        )));
    }
    for item in &items {
        let n = words::units(item.footprint.writes.len());
        envelope.details.push(Line::new(format!(
            "{} {n} on {}{}",
            does(&item.agent, "write"),
            item.name,
            task(&item.intent)
        )));
    }
    if claims.is_empty() && items.is_empty() {
        envelope.details.push(Line::new("no claims, no open work"));
    }
    envelope.data["status"] = data(status, &claims, &items);
}

/// The same for programs.
fn data(status: &Status, claims: &[&Claim], items: &[&OpenItem]) -> Value {
    let now = status.now.monotonic;
    json!({
        "agent": status.agent.as_ref().map(AgentId::as_str),
        "current": status.view.current.map(|oid| oid.to_string()),
        "claims": claims.iter().map(|claim| json!({
            "resource": claim.record.resource.to_string(), "agent": claim.record.agent.as_str(),
            "intent": claim.record.intent, "epoch": claim.record.epoch,
            "leftSeconds": claim.left(now).unwrap_or_default().as_secs(),
        })).collect::<Vec<_>>(),
        "items": items.iter().map(|item| json!({
            "agent": item.agent.as_str(), "item": item.item.as_str(), "intent": item.intent,
            "ref": item.name.to_string(), "head": item.head.to_string(),
        })).collect::<Vec<_>>(),
    })
}
