//! A push request as values: what [`super::Receive`] ends in.

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};
use zit_model::Oid;

use super::PushCert;

/// What a client wants of one push.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushRequest {
    /// Commits whose parents the client lacks.
    pub shallow: Vec<Oid>,
    /// The refs to move, in the client's order; names may repeat.
    pub commands: Vec<Command>,
    /// The certificate that the commands are from.
    pub cert: Option<PushCert>,
    /// How the client wants to be answered.
    pub capabilities: ClientCapabilities,
    /// Push options, in the client's order.
    pub options: Vec<BString>,
}

impl PushRequest {
    /// Whether the client asks for nothing: git sends a lone flush to learn whether it may push, before a large body.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.commands.is_empty()
    }

    /// Whether a pack follows the request. A push that only deletes sends none.
    #[must_use]
    pub fn expects_pack(&self) -> bool {
        self.commands.iter().any(|command| command.new.is_some())
    }

    /// Whether the certificate, if there is one, signs the push options that came with the push, and no others.
    #[must_use]
    pub fn signs_its_options(&self) -> bool {
        self.cert
            .as_ref()
            .is_none_or(|cert| cert.options().eq(self.options.iter().map(|o| o.as_bstr())))
    }

    /// The names that more than one command has, in bytewise order.
    #[must_use]
    pub fn duplicates(&self) -> BTreeSet<&BStr> {
        let mut seen = BTreeSet::new();
        let names = self.commands.iter().map(|command| command.name.as_bstr());
        names.filter(|&name| !seen.insert(name)).collect()
    }
}

/// One ref to move.
///
/// Both oids may be `None`: stock git deletes a ref that was not advertised to it in this way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The bytes sent as the refname, not validated; never with a NUL.
    pub name: BString,
    /// The value the client believes the ref has; `None` for none.
    pub old: Option<Oid>,
    /// The value it shall have; `None` to delete it.
    pub new: Option<Oid>,
}

/// How a client wants to be answered. Capabilities that change nothing here are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is one word of the wire, on its own")]
pub struct ClientCapabilities {
    /// The form of the report.
    pub report: Report,
    /// Report and progress travel in bands.
    pub side_band_64k: bool,
    /// All commands or none.
    pub atomic: bool,
    /// No progress.
    pub quiet: bool,
    /// Push options follow the commands.
    pub push_options: bool,
    /// The client's software.
    pub agent: Option<BString>,
    /// A name for this run of the client, for logs.
    pub session_id: Option<BString>,
}

/// The form of report a client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Report {
    /// It wants none.
    #[default]
    None,
    /// `report-status`.
    V1,
    /// `report-status-v2`, which can say what moved in place of what was asked for.
    V2,
}
