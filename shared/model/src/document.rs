//! The JSON documents that refs carry, as they stand on the wire. Domain types do not serialise; these convert.
//!
//! Everything read here was written by somebody else: each field is checked on its way into a domain type.
//!
//! Source: `spec/claims.md`, `spec/refs.md`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::options::MAX_INTENT;
use crate::{AgentId, ItemId, Oid, RefName, Resource, UnixSeconds, quote};

/// The highest `format` understood.
pub const FORMAT: u32 = 1;

/// The largest document read, in bytes. Source: `spec/refs.md`, "Documents".
pub const MAX_DOCUMENT: u64 = 2 << 20;

/// How many items one agent may have open. With names and intents of full length, and every byte of them escaped, they
/// fit [`MAX_DOCUMENT`].
pub const MAX_ITEMS: usize = 400;

/// Why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, or not of the document's shape.
    #[error("{file}: {why}")]
    Json {
        /// Which document.
        file: &'static str,
        /// What the parser said.
        why: String,
    },
    /// Written by a newer zit.
    #[error("{file}: format {format} is newer than {FORMAT}, the highest known here")]
    Format {
        /// Which document.
        file: &'static str,
        /// What it says.
        format: u32,
    },
    /// A field is not what it must be.
    #[error("{file}: {field}: {why}")]
    Field {
        /// Which document.
        file: &'static str,
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

/// The highest epoch a claim can carry; a referee that gave out a million a second would take centuries.
const MAX_EPOCH: u64 = 1 << 53;

/// What a claim says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRecord {
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
}

/// What a pushed `claim.json` asks for. All but the resource may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimRequest {
    /// What is claimed.
    pub resource: Resource,
    /// Who says to claim it.
    pub agent: Option<AgentId>,
    /// For which task.
    pub item: Option<ItemId>,
    /// What the task is for.
    pub intent: Option<String>,
}

/// The name of the file in a claim's tree.
pub const CLAIM_FILE: &str = "claim.json";

#[derive(Serialize, Deserialize)]
struct ClaimWire {
    format: u32,
    resource: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    item: Option<String>,
    #[serde(default)]
    intent: Option<String>,
    #[serde(default)]
    lease_seconds: Option<u64>,
    #[serde(default)]
    epoch: Option<u64>,
    #[serde(default)]
    granted_at: Option<String>,
    #[serde(default)]
    contract: Option<serde_json::Value>,
    #[serde(default)]
    requirements: Vec<serde_json::Value>,
}

impl ClaimRecord {
    /// The document as the referee stores it.
    #[must_use]
    pub fn to_json(&self, granted_at: UnixSeconds) -> Vec<u8> {
        pretty(&ClaimWire {
            format: FORMAT,
            resource: self.resource.to_string(),
            agent: Some(self.agent.to_string()),
            item: Some(self.item.to_string()),
            intent: self.intent.clone(),
            lease_seconds: Some(self.lease.as_secs()),
            epoch: Some(self.epoch),
            granted_at: Some(granted_at.to_rfc3339()),
            contract: None,
            requirements: Vec::new(),
        })
    }

    /// Reads a stored claim back.
    ///
    /// # Errors
    /// [`DocumentError`] naming the field.
    pub fn from_json(json: &[u8]) -> Result<Self, DocumentError> {
        let wire: ClaimWire = read(CLAIM_FILE, json)?;
        let missing = |name| field(CLAIM_FILE, name, "it is missing");
        Ok(Self {
            resource: resource(&wire.resource)?,
            agent: agent(CLAIM_FILE, wire.agent.as_deref())?.ok_or_else(|| missing("agent"))?,
            item: item(CLAIM_FILE, wire.item.as_deref())?.ok_or_else(|| missing("item"))?,
            intent: wire.intent.map(|text| quote::one_line(&text)),
            lease: Duration::from_secs(wire.lease_seconds.ok_or_else(|| missing("lease_seconds"))?),
            epoch: wire
                .epoch
                .filter(|epoch| *epoch <= MAX_EPOCH)
                .ok_or_else(|| field(CLAIM_FILE, "epoch", "it is missing or too large"))?,
        })
    }
}

impl ClaimRequest {
    /// Reads a pushed claim.
    ///
    /// # Errors
    /// [`DocumentError`] naming the field.
    pub fn from_json(json: &[u8]) -> Result<Self, DocumentError> {
        let wire: ClaimWire = read(CLAIM_FILE, json)?;
        Ok(Self {
            resource: resource(&wire.resource)?,
            agent: agent(CLAIM_FILE, wire.agent.as_deref())?,
            item: item(CLAIM_FILE, wire.item.as_deref())?,
            intent: wire.intent.as_deref().map(sentence).filter(|text| !text.is_empty()),
        })
    }
}

/// An agent, its stated intent and its open items, as the referee keeps them across restarts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentState {
    /// Whose state it is.
    pub agent: AgentId,
    /// The principal that owns the agent.
    pub principal: String,
    /// The intent stated last.
    pub intent: Option<String>,
    /// Open work.
    pub items: Vec<ItemState>,
}

/// One open item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemState {
    /// Its id.
    pub id: ItemId,
    /// What it is for.
    pub intent: Option<String>,
    /// The ref that carries it.
    pub name: RefName,
    /// That ref's value.
    pub head: Oid,
}

/// The name of the file in a state's tree.
pub const STATE_FILE: &str = "state.json";

#[derive(Serialize, Deserialize)]
struct StateWire {
    format: u32,
    agent: AgentWire,
    heartbeat: String,
    #[serde(default)]
    items: Vec<ItemWire>,
}

#[derive(Serialize, Deserialize)]
struct AgentWire {
    id: String,
    #[serde(default)]
    user: String,
    #[serde(default)]
    intent: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct ItemWire {
    id: String,
    #[serde(default)]
    intent: Option<String>,
    #[serde(rename = "ref")]
    name: String,
    head: String,
    status: String,
}

impl AgentState {
    /// The document as the referee stores it.
    #[must_use]
    pub fn to_json(&self, heartbeat: UnixSeconds) -> Vec<u8> {
        pretty(&StateWire {
            format: FORMAT,
            agent: AgentWire {
                id: self.agent.to_string(),
                user: self.principal.clone(),
                intent: self.intent.clone(),
            },
            heartbeat: heartbeat.to_rfc3339(),
            items: self
                .items
                .iter()
                .map(|item| ItemWire {
                    id: item.id.to_string(),
                    intent: item.intent.clone(),
                    name: item.name.to_string(),
                    head: item.head.to_string(),
                    status: "active".into(),
                })
                .collect(),
        })
    }

    /// Reads a stored state back. An item whose ref or id cannot be read costs that item only.
    ///
    /// # Errors
    /// [`DocumentError`] naming the field.
    pub fn from_json(json: &[u8]) -> Result<Self, DocumentError> {
        let wire: StateWire = read(STATE_FILE, json)?;
        Ok(Self {
            agent: AgentId::new(&wire.agent.id).map_err(|e| field(STATE_FILE, "agent.id", e))?,
            principal: quote::one_line(&wire.agent.user),
            intent: wire.agent.intent.map(|text| quote::one_line(&text)),
            items: wire.items.iter().filter_map(ItemWire::to_state).collect(),
        })
    }
}

impl ItemWire {
    fn to_state(&self) -> Option<ItemState> {
        Some(ItemState {
            id: ItemId::new(&self.id).ok()?,
            intent: self.intent.as_deref().map(quote::one_line),
            name: RefName::new(&self.name).ok()?,
            head: self.head.parse().ok()?,
        })
    }
}

fn read<'a, T: Deserialize<'a>>(file: &'static str, json: &'a [u8]) -> Result<T, DocumentError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let refuse =
        |e: serde_json::Error| DocumentError::Json { file, why: quote::one_line(&e.to_string()) };
    let Format { format } = serde_json::from_slice(json).map_err(refuse)?;
    if format > FORMAT {
        return Err(DocumentError::Format { file, format });
    }
    serde_json::from_slice(json).map_err(refuse)
}

fn pretty(document: &impl Serialize) -> Vec<u8> {
    let mut json =
        serde_json::to_vec_pretty(document).expect("strings, numbers and lists always serialise");
    json.push(b'\n');
    json
}

fn field(file: &'static str, field: &'static str, why: impl std::fmt::Display) -> DocumentError {
    DocumentError::Field { file, field, why: quote::one_line(&why.to_string()) }
}

/// A peer's intent, as short as one that an option states.
fn sentence(text: &str) -> String {
    quote::cut(&quote::one_line(text), MAX_INTENT)
}

fn resource(text: &str) -> Result<Resource, DocumentError> {
    text.parse().map_err(|e| field(CLAIM_FILE, "resource", e))
}

fn agent(file: &'static str, id: Option<&str>) -> Result<Option<AgentId>, DocumentError> {
    id.map(AgentId::new).transpose().map_err(|e| field(file, "agent", e))
}

fn item(file: &'static str, id: Option<&str>) -> Result<Option<ItemId>, DocumentError> {
    id.map(ItemId::new).transpose().map_err(|e| field(file, "item", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> ClaimRecord {
        ClaimRecord {
            resource: "src/config.ts#parseConfig".parse().unwrap(),
            agent: AgentId::new("claude-laptop-3fa9c1").unwrap(),
            item: ItemId::new("8c1f0e2a9b3d").unwrap(),
            intent: Some("Add strict mode".into()),
            lease: Duration::from_mins(10),
            epoch: 4711,
        }
    }

    #[test]
    fn a_claim_reads_back_as_it_was_written() {
        assert_eq!(ClaimRecord::from_json(&claim().to_json(UnixSeconds(0))).unwrap(), claim());
    }

    #[test]
    fn a_pushed_claim_needs_only_format_and_resource() {
        let request = ClaimRequest::from_json(br#"{"format":1,"resource":"src/a.rs#x"}"#).unwrap();
        assert_eq!(request.resource.to_string(), "src/a.rs#x");
        assert_eq!((request.agent, request.item, request.intent), (None, None, None));
    }

    #[test]
    fn a_bad_document_names_the_field() {
        for (json, error) in [
            ("{", "claim.json: EOF"),
            ("[]", "claim.json: invalid"),
            (r#"{"format":2,"resource":"a"}"#, "claim.json: format 2 is newer"),
            (r#"{"format":1}"#, "claim.json: missing field `resource`"),
            (r#"{"format":1,"resource":"/a"}"#, "claim.json: resource: not a resource"),
            (r#"{"format":1,"resource":"a","agent":"X"}"#, "claim.json: agent: not an agent id"),
            (r#"{"format":1,"resource":"a","item":"1"}"#, "claim.json: item: not an item id"),
        ] {
            let found = ClaimRequest::from_json(json.as_bytes()).unwrap_err().to_string();
            assert!(found.starts_with(error), "{json} gave {found}");
        }
    }

    #[test]
    fn a_full_state_of_the_longest_names_and_intents_can_be_read_back() {
        let component = [0xff; 250].as_slice();
        let name = [b"refs/heads".as_slice(), component, component, component, component];
        let item = ItemState {
            id: ItemId::new("8c1f0e2a9b3d").unwrap(),
            intent: Some("\\".repeat(MAX_INTENT)),
            name: RefName::new(name.join(&b'/')).unwrap(),
            head: Oid::from_hex(&[b'1'; 64]).unwrap(),
        };
        let state = AgentState {
            agent: AgentId::new("a").unwrap(),
            principal: "anyone".into(),
            intent: item.intent.clone(),
            items: vec![item; MAX_ITEMS],
        };
        let n_bytes = u64::try_from(state.to_json(UnixSeconds(0)).len()).unwrap();
        assert!(n_bytes <= MAX_DOCUMENT, "{n_bytes} bytes");
    }

    #[test]
    fn a_pushed_intent_is_as_short_as_one_that_an_option_states() {
        let json = format!(r#"{{"format":1,"resource":"a","intent":"{}"}}"#, "x".repeat(900));
        let intent = ClaimRequest::from_json(json.as_bytes()).unwrap().intent.unwrap();
        assert_eq!(intent.len(), MAX_INTENT);
        let json = r#"{"format":1,"resource":"a","intent":" "}"#;
        assert_eq!(ClaimRequest::from_json(json.as_bytes()).unwrap().intent, None);
    }

    #[test]
    fn a_state_reads_back_and_a_broken_item_costs_only_itself() {
        let state = AgentState {
            agent: AgentId::new("a").unwrap(),
            principal: "anyone".into(),
            intent: None,
            items: vec![ItemState {
                id: ItemId::new("8c1f0e2a9b3d").unwrap(),
                intent: Some("x".into()),
                name: RefName::new("refs/heads/x").unwrap(),
                head: Oid::from_hex(&[b'1'; 40]).unwrap(),
            }],
        };
        let json = String::from_utf8(state.to_json(UnixSeconds(0))).unwrap();
        assert_eq!(AgentState::from_json(json.as_bytes()).unwrap(), state);
        let broken = json.replace("refs/heads/x", "refs/heads/..");
        assert!(AgentState::from_json(broken.as_bytes()).unwrap().items.is_empty());
    }
}
