//! The documents that the referee writes: claims and agents' states, each a commit with one file.

use zit_model::document::{AgentState, CLAIM_FILE, ItemState, STATE_FILE};
use zit_model::{AgentId, Now, Oid};
use zit_store::{Quarantine, Signature, StoreError};

use crate::verdict::Grant;
use crate::view::{AgentRecord, Claim, OpenItem};

/// Writes a granted claim.
pub(crate) fn claim_document(
    grant: &Grant,
    made: &mut Quarantine,
    now: Now,
) -> Result<Oid, StoreError> {
    let json = grant.record.to_json(now.wall);
    made.write_document_commit(CLAIM_FILE, &json, &[], "zit: claim\n", &signature(now))
}

/// The claim as the view keeps it, once it is written.
pub(crate) fn standing(grant: &Grant, oid: Oid, now: Now) -> Claim {
    Claim { record: grant.record.clone(), oid, renewed: now.monotonic }
}

/// Writes an agent's state with those of `items` that are its own.
pub(crate) fn state_document<'a>(
    agent: &AgentId,
    record: &AgentRecord,
    items: impl Iterator<Item = &'a OpenItem>,
    made: &mut Quarantine,
    now: Now,
) -> Result<Oid, StoreError> {
    let state = AgentState {
        agent: agent.clone(),
        principal: record.principal.clone(),
        intent: record.intent.clone(),
        items: items
            .filter(|item| item.agent == *agent)
            .map(|item| ItemState {
                id: item.item.clone(),
                intent: item.intent.clone(),
                name: item.name.clone(),
                head: item.head,
            })
            .collect(),
    };
    let json = state.to_json(now.wall);
    made.write_document_commit(STATE_FILE, &json, &[], "zit: state\n", &signature(now))
}

/// The referee as author and committer.
pub(crate) fn signature(now: Now) -> Signature {
    let (name, email) = ("zit".into(), "zit@localhost".into());
    Signature { name, email, time: now.wall, offset_minutes: 0 }
}
