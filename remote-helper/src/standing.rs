//! `git zit status`, `claims` and `items`: what stands in a remote repository, for people and programs.
//!
//! ```text
//! --json: {"format": 1, "remote": name, "current": oid | null, "claims": [claim], "items": [item], "unreadable": [ref]}
//!
//! claim: {"resource", "agent", "item", "intent": text | null, "leaseSeconds", "epoch"}
//! item:  {"agent", "item", "ref", "head", "intent": text | null}
//! ```
//!
//! `claims` leaves out the items and `items` the claims. How much of a lease is left is known to the referee alone
//! (`git push -o zit.status`), so its length is shown.
//!
//! Intents and names come from other agents: each is folded onto one line, and an intent is quoted.

use serde::Serialize;
use zit_model::quote;

use crate::read::Standing;

/// The version of the JSON.
const FORMAT: u32 = 1;

/// Which part is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Status,
    /// Who holds what.
    Claims,
    /// Who works on what.
    Items,
}

impl Part {
    fn has_claims(self) -> bool {
        self != Self::Items
    }

    fn has_items(self) -> bool {
        self != Self::Claims
    }
}

/// As lines for people.
#[must_use]
pub fn text(standing: &Standing, part: Part) -> String {
    let mut text = String::new();
    if part == Part::Status {
        let current =
            standing.current.map_or("nothing has landed".to_owned(), |oid| oid.to_string());
        text.push_str(&format!("current: {current}\n"));
    }
    if part.has_claims() {
        text.push_str(if standing.claims.is_empty() { "no claims\n" } else { "claims:\n" });
        for claim in standing.claims.values() {
            let (resource, lease) = (one_line(&claim.resource.to_string()), claim.lease.as_secs());
            let (agent, item, epoch) = (&claim.agent, &claim.item, claim.epoch);
            let intent = quoted(claim.intent.as_ref());
            text.push_str(&format!(
                "  {resource}  {agent}  item {item}  lease {lease} s  epoch {epoch}{intent}\n"
            ));
        }
    }
    if part.has_items() {
        let items = || {
            standing.agents.values().flat_map(|state| state.items.iter().map(move |i| (state, i)))
        };
        text.push_str(if items().next().is_none() { "no open items\n" } else { "items:\n" });
        for (state, item) in items() {
            let (agent, id, head) = (&state.agent, &item.id, item.head);
            let (name, intent) = (one_line(&item.name.to_string()), quoted(item.intent.as_ref()));
            text.push_str(&format!("  {agent}  item {id}  {name}  {head}{intent}\n"));
        }
    }
    for name in &standing.unreadable {
        text.push_str(&format!("unreadable: {}\n", one_line(&name.to_string())));
    }
    text
}

/// As one line of JSON.
#[must_use]
pub fn json(standing: &Standing, part: Part, remote: &str) -> String {
    let claims = standing.claims.values().map(|claim| ClaimDocument {
        resource: claim.resource.to_string(),
        agent: claim.agent.to_string(),
        item: claim.item.to_string(),
        intent: claim.intent.as_deref(),
        lease_seconds: claim.lease.as_secs(),
        epoch: claim.epoch,
    });
    let items = standing.agents.values().flat_map(|state| {
        state.items.iter().map(|item| ItemDocument {
            agent: state.agent.to_string(),
            item: item.id.to_string(),
            name: item.name.to_string(),
            head: item.head.to_string(),
            intent: item.intent.as_deref(),
        })
    });
    let document = StandingDocument {
        format: FORMAT,
        remote,
        current: standing.current.map(|oid| oid.to_string()),
        claims: part.has_claims().then(|| claims.collect()),
        items: part.has_items().then(|| items.collect()),
        unreadable: standing.unreadable.iter().map(ToString::to_string).collect(),
    };
    line(&document)
}

fn line(document: &StandingDocument<'_>) -> String {
    let mut line = serde_json::to_string(document).expect("strings, numbers and lists are JSON");
    line.push('\n');
    line
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StandingDocument<'a> {
    format: u32,
    remote: &'a str,
    current: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<Vec<ClaimDocument<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<ItemDocument<'a>>>,
    unreadable: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClaimDocument<'a> {
    resource: String,
    agent: String,
    item: String,
    intent: Option<&'a str>,
    lease_seconds: u64,
    epoch: u64,
}

#[derive(Serialize)]
struct ItemDocument<'a> {
    agent: String,
    item: String,
    #[serde(rename = "ref")]
    name: String,
    head: String,
    intent: Option<&'a str>,
}

fn one_line(text: &str) -> String {
    quote::one_line(text)
}

fn quoted(intent: Option<&String>) -> String {
    intent.map_or(String::new(), |intent| format!("  {:?}", one_line(intent)))
}
