//! The answer to `zit.status`: an agent's own items and claims, then everybody else's.

use serde_json::json;
use zit_model::envelope::{Envelope, Line};
use zit_model::{AgentId, quote};

use crate::actor::Status;
use crate::view::{Claim, OpenItem};
use crate::words;

/// Adds the state of things to an answer.
pub(crate) fn tell(status: &Status, envelope: &mut Envelope) {
    let now = status.now.monotonic;
    let mine = |agent| status.agent.as_ref() == Some(agent);
    let mut claims: Vec<&Claim> =
        status.view.claims.values().filter(|claim| claim.left(now).is_some()).collect();
    claims.sort_by_key(|claim| (!mine(&claim.record.agent), claim.record.resource.clone()));
    let mut items: Vec<&OpenItem> = status.view.items.values().collect();
    items.sort_by_key(|item| (!mine(&item.agent), item.name.clone()));
    let who = |agent| if mine(agent) { "you".to_owned() } else { format!("{agent}") };
    let task = |intent: &Option<String>| match intent {
        Some(intent) => format!(" for {}", quote::quoted(intent)),
        None => String::new(),
    };
    for claim in &claims {
        let left = words::time(claim.left(now).unwrap_or_default());
        let who = who(&claim.record.agent);
        let hold = if who == "you" { "hold" } else { "holds" };
        envelope.details.push(Line::new(format!(
            "{who} {hold} {}{}, lease left {left} (epoch {})",
            claim.record.resource.shown(),
            task(&claim.record.intent),
            claim.record.epoch
        )));
    }
    for item in &items {
        let n = words::units(item.footprint.writes.len());
        let who = who(&item.agent);
        let write = if who == "you" { "write" } else { "writes" };
        envelope.details.push(Line::new(format!(
            "{who} {write} {n} on {}{}",
            item.name,
            task(&item.intent)
        )));
    }
    if claims.is_empty() && items.is_empty() {
        envelope.details.push(Line::new("no claims, no open work"));
    }
    envelope.data["status"] = json!({
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
    });
}
