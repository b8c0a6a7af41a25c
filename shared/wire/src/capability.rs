//! The capabilities of each service: one table a service, one row a capability.
//!
//! A row names a capability and says when it is offered and with what value. Adding one is adding a row. The order is
//! git's own, and ours come last; clients do not depend on it, but people compare the two.
//!
//! Source: git's `gitprotocol-capabilities` and `gitprotocol-v2`, "Capabilities".

use std::fmt;

use gix_hash::Kind;
use zit_model::RefName;

/// Software's name for itself on the wire: printable, without spaces, at most [`MAX_AGENT`] bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent(String);

/// The longest agent, in bytes. It is repeated in every advertisement and every log line.
pub const MAX_AGENT: usize = 256;

impl Agent {
    /// Makes an agent of any text: what may not be sent becomes a dot, as git itself does it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let printable = |c: char| if c.is_ascii_graphic() { c } else { '.' };
        Self(text.chars().take(MAX_AGENT).map(printable).collect())
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a repository's configuration adds to an advertisement, or takes from it.
///
/// It must agree with the configuration of whoever answers the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one setting of git's")]
pub struct Extras {
    /// `uploadpack.allowFilter`: partial clones.
    pub filter: bool,
    /// `uploadpack.allowTipSHA1InWant`, or `allowAnySHA1InWant`: a want may be the tip of a hidden ref.
    pub tip_wants: bool,
    /// `uploadpack.allowReachableSHA1InWant`, or `allowAnySHA1InWant`: a want may be any reachable oid.
    pub reachable_wants: bool,
    /// `uploadpack.allowRefInWant`: a want may name a ref.
    pub ref_in_want: bool,
    /// `uploadpack.allowSidebandAll`: a whole answer of `fetch` may be in bands.
    pub sideband_all: bool,
    /// `transfer.advertiseObjectInfo`: the command `object-info`.
    pub object_info: bool,
    /// `uploadpack.advertiseBundleURIs`: the command `bundle-uri`.
    pub bundle_uri: bool,
    /// `lsrefs.unborn` is `allow` or `ignore`: an unborn HEAD is listed without being offered, or not at all.
    pub hide_unborn: bool,
    /// `receive.advertiseAtomic` is off.
    pub hide_atomic: bool,
    /// `receive.advertisePushOptions` is off.
    pub hide_push_options: bool,
    /// `repack.useDeltaBaseOffset` is off.
    pub hide_ofs_delta: bool,
}

/// What the rows look at.
pub(crate) struct Offer<'a> {
    pub(crate) object_format: Kind,
    pub(crate) agent: &'a Agent,
    pub(crate) head: Option<&'a RefName>,
    pub(crate) extras: Extras,
    pub(crate) nonce: Option<&'a str>,
    pub(crate) session_id: Option<&'a str>,
}

/// One capability: its name, and how it is offered.
pub(crate) struct Row {
    name: &'static str,
    value: fn(&Offer<'_>) -> Value,
}

enum Value {
    Absent,
    Bare,
    Is(Vec<u8>),
}

/// `git-receive-pack`.
pub(crate) const RECEIVE_PACK: &[Row] = &[
    row("report-status", bare),
    row("report-status-v2", bare),
    row("delete-refs", bare),
    row("side-band-64k", bare),
    row("quiet", bare),
    row("atomic", |offer| bare_if(!offer.extras.hide_atomic)),
    row("ofs-delta", |offer| bare_if(!offer.extras.hide_ofs_delta)),
    row("push-cert", push_cert),
    row("push-options", |offer| bare_if(!offer.extras.hide_push_options)),
    row("session-id", session_id),
    row("object-format", object_format),
    row("agent", agent),
    row("zit", zit),
];

/// `git-upload-pack`, versions 0 and 1.
pub(crate) const UPLOAD_PACK: &[Row] = &[
    row("multi_ack", bare),
    row("thin-pack", bare),
    row("side-band", bare),
    row("side-band-64k", bare),
    row("ofs-delta", bare),
    row("shallow", bare),
    row("deepen-since", bare),
    row("deepen-not", bare),
    row("deepen-relative", bare),
    row("no-progress", bare),
    row("include-tag", bare),
    row("multi_ack_detailed", bare),
    row("allow-tip-sha1-in-want", |offer| bare_if(offer.extras.tip_wants)),
    row("allow-reachable-sha1-in-want", |offer| bare_if(offer.extras.reachable_wants)),
    row("no-done", bare),
    row("symref", symref),
    row("filter", |offer| bare_if(offer.extras.filter)),
    row("session-id", session_id),
    row("object-format", object_format),
    row("agent", agent),
    row("zit", zit),
];

/// `git-upload-pack`, version 2. `ls-refs`, `fetch`, `object-info` and `bundle-uri` are commands: see [`crate::command`].
pub(crate) const UPLOAD_PACK_V2: &[Row] = &[
    row("agent", agent),
    row("ls-refs", ls_refs),
    row("fetch", fetch),
    row("server-option", bare),
    row("object-format", object_format),
    row("session-id", session_id),
    row("object-info", |offer| bare_if(offer.extras.object_info)),
    row("bundle-uri", |offer| bare_if(offer.extras.bundle_uri)),
    row("zit", zit),
];

impl Row {
    /// Appends the capability as it is offered; false when it is not.
    pub(crate) fn write(&self, offer: &Offer<'_>, out: &mut Vec<u8>) -> bool {
        let value = match (self.value)(offer) {
            Value::Absent => return false,
            Value::Bare => None,
            Value::Is(value) => Some(value),
        };
        out.extend_from_slice(self.name.as_bytes());
        if let Some(value) = value {
            out.push(b'=');
            out.extend_from_slice(&value);
        }
        true
    }
}

/// Appends all capabilities of a table that are offered, separated by spaces.
pub(crate) fn write_list(table: &[Row], offer: &Offer<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    for row in table {
        let before = out.len();
        if before > start {
            out.push(b' ');
        }
        if !row.write(offer, out) {
            out.truncate(before);
        }
    }
}

const fn row(name: &'static str, value: fn(&Offer<'_>) -> Value) -> Row {
    Row { name, value }
}

fn bare(_: &Offer<'_>) -> Value {
    Value::Bare
}

fn bare_if(offered: bool) -> Value {
    if offered { Value::Bare } else { Value::Absent }
}

fn object_format(offer: &Offer<'_>) -> Value {
    Value::Is(offer.object_format.to_string().into_bytes())
}

fn push_cert(offer: &Offer<'_>) -> Value {
    offer.nonce.map_or(Value::Absent, |nonce| Value::Is(nonce.as_bytes().to_vec()))
}

fn session_id(offer: &Offer<'_>) -> Value {
    offer.session_id.map_or(Value::Absent, |id| Value::Is(id.as_bytes().to_vec()))
}

fn agent(offer: &Offer<'_>) -> Value {
    Value::Is(offer.agent.to_string().into_bytes())
}

/// `zit=1`, which git passes over and our own clients look for.
fn zit(_: &Offer<'_>) -> Value {
    Value::Is(b"1".to_vec())
}

fn symref(offer: &Offer<'_>) -> Value {
    offer.head.map_or(Value::Absent, |target| {
        let mut value = b"HEAD:".to_vec();
        value.extend_from_slice(target.as_bstr());
        Value::Is(value)
    })
}

fn ls_refs(offer: &Offer<'_>) -> Value {
    if offer.extras.hide_unborn { Value::Bare } else { Value::Is(b"unborn".to_vec()) }
}

fn fetch(offer: &Offer<'_>) -> Value {
    let Extras { filter, ref_in_want, sideband_all, .. } = offer.extras;
    let mut value = b"shallow wait-for-done".to_vec();
    let features: [(bool, &[u8]); 3] =
        [(filter, b" filter"), (ref_in_want, b" ref-in-want"), (sideband_all, b" sideband-all")];
    for (_, feature) in features.into_iter().filter(|(offered, _)| *offered) {
        value.extend_from_slice(feature);
    }
    Value::Is(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_can_neither_end_its_capability_nor_start_another() {
        assert_eq!(Agent::new("zit/1 atomic\nx\0é").to_string(), "zit/1.atomic.x..");
        assert_eq!(Agent::new(&"é".repeat(300)).to_string().len(), MAX_AGENT);
    }
}
