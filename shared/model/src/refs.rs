//! The refs that zit gives a meaning: built and read here and nowhere else.
//!
//! Source: `spec/refs.md`.

use bstr::{BString, ByteSlice};

use crate::{AgentId, ItemId, Oid, RefName};

/// The names below `refs/zit/` that a push may address, as listed in refusals.
pub const KNOWN: &[&str] = &[
    "refs/zit/claim/<resource>",
    "refs/zit/release/<resource>",
    "refs/zit/accept",
    "refs/zit/tell",
    "refs/zit/changes/<commit>",
    "refs/zit/claims/<key>",
    "refs/zit/wip/<agent>/<item>",
];

/// `refs/zit/current`: the state that changes land on.
#[must_use]
pub fn current() -> RefName {
    own("refs/zit/current".into())
}

/// `refs/zit/changes/<oid>`: one recorded change.
#[must_use]
pub fn change(commit: Oid) -> RefName {
    own(format!("refs/zit/changes/{commit}"))
}

/// `refs/zit/claims/<key>`: the claim on the resource with that key.
#[must_use]
pub fn claim(key: &str) -> RefName {
    own(format!("refs/zit/claims/{key}"))
}

/// `refs/zit/wip/<agent>/<item>`: a snapshot of unfinished work.
#[must_use]
pub fn wip(agent: &AgentId, item: &ItemId) -> RefName {
    own(format!("refs/zit/wip/{agent}/{item}"))
}

/// `refs/zit/agents/<agent>/state`: the agent, its intent and its items.
#[must_use]
pub fn agent_state(agent: &AgentId) -> RefName {
    own(format!("refs/zit/agents/{agent}/state"))
}

/// `refs/zit/footprints/<oid>`: the footprint of the open work whose head that commit is.
#[must_use]
pub fn footprint(head: Oid) -> RefName {
    own(format!("refs/zit/footprints/{head}"))
}

/// `refs/zit/dry-run`: what a dry run reports instead of a ref that moved.
#[must_use]
pub fn dry_run() -> RefName {
    own("refs/zit/dry-run".into())
}

/// `refs/heads/<branch>`.
///
/// # Errors
/// [`crate::refname::RefNameError`] when git would refuse the branch's name.
pub fn head(branch: &[u8]) -> Result<RefName, crate::refname::RefNameError> {
    RefName::new([b"refs/heads/", branch].concat())
}

fn own(name: String) -> RefName {
    RefName::new(name).expect("built from parts that are valid in refnames")
}

/// What a refname addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `refs/heads/<branch>`.
    Head,
    /// `refs/tags/…`.
    Tag,
    /// Anything else outside `refs/zit/` and `refs/for/`.
    Other,
    /// `refs/zit/current`.
    Current,
    /// `refs/zit/changes/<oid>`.
    Change(Oid),
    /// `refs/zit/claims/<key>`.
    Claim(String),
    /// `refs/zit/wip/<agent>/<item>`.
    Wip(AgentId, ItemId),
    /// `refs/zit/agents/<agent>/state`.
    AgentState(AgentId),
    /// `refs/zit/footprints/<oid>`.
    Footprint(Oid),
    /// A request: judged, carried out and answered, never stored.
    Request(Request),
    /// Below `refs/zit/`, but none of the above.
    Unknown,
}

/// A request ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `refs/zit/claim/<encoded resource>`.
    Claim(BString),
    /// `refs/zit/release/<encoded resource>`.
    Release(BString),
    /// `refs/zit/accept`.
    Accept,
    /// `refs/for/<branch>`: accept, if that branch is the mainline.
    For(BString),
    /// `refs/zit/tell`: moves nothing, carries push options.
    Tell,
}

/// Says what a refname addresses.
#[must_use]
pub fn address(name: &RefName) -> Address {
    if let Some(rest) = name.strip_prefix("refs/zit/") {
        return zit_address(rest).unwrap_or(Address::Unknown);
    }
    if name.is_zit() {
        return Address::Unknown;
    }
    if let Some(branch) = name.strip_prefix("refs/for/") {
        return Address::Request(Request::For(branch.into()));
    }
    if name.branch().is_some() {
        Address::Head
    } else if name.strip_prefix("refs/tags/").is_some() {
        Address::Tag
    } else {
        Address::Other
    }
}

impl Address {
    /// Whether git has such refs, too: what is below neither `refs/zit/` nor `refs/for/`.
    #[must_use]
    pub fn is_gits(&self) -> bool {
        match self {
            Self::Head | Self::Tag | Self::Other => true,
            Self::Current
            | Self::Change(_)
            | Self::Claim(_)
            | Self::Wip(..)
            | Self::AgentState(_)
            | Self::Footprint(_)
            | Self::Request(_)
            | Self::Unknown => false,
        }
    }
}

fn zit_address(rest: &[u8]) -> Option<Address> {
    let (kind, value) = rest.split_once_str("/").unwrap_or((rest, b""));
    Some(match (kind, value) {
        (b"current", b"") => Address::Current,
        (b"accept", b"") => Address::Request(Request::Accept),
        (b"tell", b"") => Address::Request(Request::Tell),
        (b"claim", resource) if !resource.is_empty() => {
            Address::Request(Request::Claim(resource.into()))
        }
        (b"release", resource) if !resource.is_empty() => {
            Address::Request(Request::Release(resource.into()))
        }
        (b"changes", hex) => Address::Change(Oid::from_hex(hex).ok()?),
        (b"footprints", hex) => Address::Footprint(Oid::from_hex(hex).ok()?),
        (b"claims", key) => {
            let ok = key.len() == 16 && key.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
            ok.then(|| Address::Claim(key.to_str_lossy().into_owned()))?
        }
        (b"wip", seat) => {
            let (agent, item) = seat.to_str().ok()?.split_once('/')?;
            Address::Wip(AgentId::new(agent).ok()?, ItemId::new(item).ok()?)
        }
        (b"agents", seat) => {
            let agent = seat.to_str().ok()?.strip_suffix("/state")?;
            Address::AgentState(AgentId::new(agent).ok()?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> Address {
        address(&RefName::new(name).unwrap())
    }

    #[test]
    fn every_name_that_is_built_is_read_back() {
        let agent = AgentId::new("a-1").unwrap();
        let item = ItemId::new("0123456789ab").unwrap();
        let oid = Oid::from_hex(&[b'1'; 40]).unwrap();
        assert_eq!(address(&current()), Address::Current);
        assert_eq!(address(&change(oid)), Address::Change(oid));
        assert_eq!(address(&claim("00112233445566ff")), Address::Claim("00112233445566ff".into()));
        assert_eq!(address(&wip(&agent, &item)), Address::Wip(agent.clone(), item));
        assert_eq!(address(&agent_state(&agent)), Address::AgentState(agent));
        assert_eq!(address(&footprint(oid)), Address::Footprint(oid));
    }

    #[test]
    fn names_that_mean_nothing_to_zit_are_unknown() {
        for name in [
            "refs/zit",
            "refs/zit/x",
            "refs/zit/currents",
            "refs/zit/current/x",
            "refs/zit/changes/12",
            "refs/zit/footprints/12",
            "refs/zit/claims/xyz",
            "refs/zit/claims/00112233445566FF",
            "refs/zit/wip/a",
            "refs/zit/wip/a/b",
            "refs/zit/wip/A/0123456789ab",
            "refs/zit/agents/a",
            "refs/zit/claim",
        ] {
            assert_eq!(at(name), Address::Unknown, "{name}");
        }
    }

    #[test]
    fn requests_are_recognised_and_keep_their_encoding() {
        assert_eq!(
            at("refs/zit/claim/a%23b#x"),
            Address::Request(Request::Claim("a%23b#x".into()))
        );
        assert_eq!(at("refs/for/main"), Address::Request(Request::For("main".into())));
        assert_eq!(at("refs/zit/accept"), Address::Request(Request::Accept));
        assert_eq!(at("refs/heads/x"), Address::Head);
        assert_eq!(at("refs/tags/v1"), Address::Tag);
        assert_eq!(at("refs/notes/commits"), Address::Other);
    }
}
