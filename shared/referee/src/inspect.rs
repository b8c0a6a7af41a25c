//! Looking a repository over: what its refs mean, on top of [`Store::inspect`].
//!
//! Use [`inspect`] on a store that is opened for reading, also beside a running server. Whether a lease has lapsed is
//! known to a running referee only, and so is not told here.
//!
//! Never writes.

use std::collections::BTreeMap;

use zit_model::document::{AgentState, CLAIM_FILE, ClaimRecord, STATE_FILE};
use zit_model::refs::{self, Address};
use zit_model::{AgentId, Oid, RefName};
use zit_store::{Finding, Inspected, Objects, Store, StoreError, StoredRef};

use crate::open::{document, mainline};

/// How often current and the mainline are read again while a server may be moving them.
const ATTEMPTS: usize = 5;

/// Looks the repository over.
///
/// # Errors
/// As [`Store::inspect`].
pub fn inspect(store: &Store) -> Result<Inspected, StoreError> {
    let objects = store.objects()?;
    let mut findings = Vec::new();
    let mut claims = Vec::new();
    for stored in store.refs_below("refs/zit/")? {
        match read(&objects, &stored) {
            Ok(Some(claim)) => claims.push(claim),
            Ok(None) => {}
            Err((about, why)) => {
                let what = format!("{}: {why}", stored.name);
                findings.push(Finding::problem(about, &what, &remove(&stored.name)));
            }
        }
    }
    findings.extend(overlaps(&claims));
    let inspected = store.inspect()?;
    if let Some(highest) = inspected.highest {
        findings.extend(claims.iter().filter_map(|claim| too_high(claim, highest)));
    }
    findings.extend(apart(store, &objects, inspected.in_use)?);
    findings.extend(inspected.findings);
    Ok(Inspected { findings, ..inspected })
}

/// A claim and the ref that holds it.
type Claim = (RefName, ClaimRecord);

/// The claim that a ref holds, if it is one; an error when it is not what its name says.
fn read(objects: &Objects, stored: &StoredRef) -> Result<Option<Claim>, (&'static str, String)> {
    match refs::address(&stored.name) {
        Address::Claim(key) => {
            let record = claim(objects, &key, stored.oid).map_err(|why| ("claim", why))?;
            Ok(Some((stored.name.clone(), record)))
        }
        Address::AgentState(agent) => {
            state(objects, &agent, stored.oid).map_err(|why| ("agent", why))?;
            Ok(None)
        }
        Address::Change(oid) if oid != stored.oid => {
            Err(("change", format!("it holds {}, not what it is named by", stored.oid)))
        }
        Address::Request(_) | Address::Unknown => {
            Err(("ref", "the name means nothing below refs/zit/".to_owned()))
        }
        Address::Head
        | Address::Tag
        | Address::Other
        | Address::Current
        | Address::Change(_)
        | Address::Wip(..)
        | Address::Footprint(_) => Ok(None),
    }
}

fn claim(objects: &Objects, key: &str, oid: Oid) -> Result<ClaimRecord, String> {
    let json = document(objects, oid, CLAIM_FILE)?;
    let record = ClaimRecord::from_json(&json).map_err(|error| error.to_string())?;
    if record.resource.key() == key {
        Ok(record)
    } else {
        Err(format!("it claims {}, whose key is {}", record.resource, record.resource.key()))
    }
}

fn state(objects: &Objects, agent: &AgentId, oid: Oid) -> Result<(), String> {
    let json = document(objects, oid, STATE_FILE)?;
    let state = AgentState::from_json(&json).map_err(|error| error.to_string())?;
    if state.agent == *agent { Ok(()) } else { Err(format!("it is the state of {}", state.agent)) }
}

/// Claims of two agents on one thing. Taking over a lapsed claim ends it, so that never two of them stand.
fn overlaps(claims: &[Claim]) -> Vec<Finding> {
    let mut by_path: BTreeMap<&str, Vec<&Claim>> = BTreeMap::new();
    for claim in claims {
        by_path.entry(claim.1.resource.path()).or_default().push(claim);
    }
    let mut findings = Vec::new();
    for claims in by_path.values() {
        for (i, (name, a)) in claims.iter().enumerate() {
            for (other, b) in claims.iter().skip(i + 1) {
                if a.agent == b.agent || !a.resource.claim_overlaps(&b.resource) {
                    continue;
                }
                let what = format!(
                    "{name} ({} on {}) and {other} ({} on {}) overlap; whether one has lapsed is not recorded",
                    a.agent, a.resource, b.agent, b.resource
                );
                let older = if a.epoch <= b.epoch { name } else { other };
                findings.push(Finding::problem("claim", &what, &remove(older)));
            }
        }
    }
    findings
}

fn too_high((name, record): &Claim, highest: u64) -> Option<Finding> {
    (record.epoch > highest).then(|| {
        let epoch = record.epoch;
        let what = format!("{name} has epoch {epoch}; the journal gave out {highest} at most");
        let next = "restore zit/journal from the same backup; else the next start goes on above it";
        Finding::problem("claim", &what, next)
    })
}

/// Current and the mainline, where they are not at one commit.
fn apart(store: &Store, objects: &Objects, in_use: bool) -> Result<Option<Finding>, StoreError> {
    let mut attempts = if in_use { ATTEMPTS } else { 1 };
    let Some(name) = mainline(store)? else { return Ok(None) };
    let (current, found) = loop {
        let current = store.find_ref(&refs::current())?;
        let found = store.find_ref(&name)?;
        attempts -= 1;
        if current == found {
            return Ok(None);
        }
        if attempts == 0 {
            break (current, found);
        }
    };
    let Some(current) = current else {
        let what = format!("{} is missing, and {name} is there", refs::current());
        return Ok(Some(Finding::note("mainline", &what, "nothing: the next opening makes it")));
    };
    let Some(found) = found else {
        let what = format!("{name} is missing, and {} is at {current}", refs::current());
        let next = format!("git update-ref {name} {current}");
        return Ok(Some(Finding::problem("mainline", &what, &next)));
    };
    let what = format!("{name} is at {found}, {} at {current}", refs::current());
    if objects.is_ancestor(current, found).unwrap_or(false) {
        let what = format!("{what}, which is behind");
        return Ok(Some(Finding::note("mainline", &what, "nothing: the next push follows it")));
    }
    Ok(Some(Finding::problem("mainline", &what, &format!("git update-ref {name} {current}"))))
}

fn remove(name: &RefName) -> String {
    format!("stop the server, then: git update-ref -d {name}")
}
