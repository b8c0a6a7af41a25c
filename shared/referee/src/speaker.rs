//! Who speaks in a push: the principal of the credential, and the agent it says it is.
//!
//! Identity comes from the credential alone. What a client says of itself only chooses among the agents that its
//! principal owns.
//!
//! Source: `spec/identity.md`.

use std::net::IpAddr;

use zit_model::options::Options;
use zit_model::{AgentId, Principal, quote};
use zit_store::Account;

/// What the edge learned of a caller before reading its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who the credential says is speaking.
    pub principal: Principal,
    /// Whether a credential was asked for at all.
    pub door: Door,
    /// The agent of the `Zit-Agent` header.
    pub header: Option<AgentId>,
    /// The agent of the URL's seat, `/@<agent>/`.
    pub seat: Option<AgentId>,
    /// The one agent that the caller's login may speak for.
    pub only: Option<AgentId>,
    /// The item of the `Zit-Item` header.
    pub item: Option<zit_model::ItemId>,
    /// The nonce for a push certificate that was given on this very connection; over HTTP, each request is one.
    pub nonce: Option<String>,
    /// The address that the caller comes from, where it comes over a network.
    pub address: Option<IpAddr>,
    /// The namespace that is spoken of; `None` for the repository itself.
    pub namespace: Option<zit_model::Namespace>,
    /// The user whose process the caller is, where no server stands between it and the repository's files.
    pub account: Option<Account>,
}

/// Who moved refs, as reflogs and hooks name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committer {
    /// The user.
    pub(crate) user: String,
    /// The user's mail address.
    pub(crate) email: String,
    /// Whether a credential said so.
    pub(crate) proven: bool,
    /// Where it comes from.
    pub(crate) address: Option<IpAddr>,
}

impl Committer {
    /// With the address that git's server makes of a user. Source: git's `http-backend.c`, `run_service`.
    fn over_http(user: String, proven: bool, address: Option<IpAddr>) -> Self {
        let host = address.map_or_else(|| "(none)".to_owned(), |address| address.to_string());
        let email = format!("{user}@http.{host}");
        Self { user, email, proven, address }
    }
}

/// How the caller came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// An open loopback server asks nobody for a name.
    Open,
    /// A credential was shown and checked.
    Credential,
}

/// A login that is set to one agent is used to speak as another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this login speaks as {may}, not as {asked}")]
pub struct OtherAgent {
    /// What the login is set to.
    pub may: AgentId,
    /// What the push asks for.
    pub asked: AgentId,
}

/// The caller of one push, its options read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speaker {
    /// Who the credential says is speaking.
    pub principal: Principal,
    /// The seat that is spoken for; `None` on an open server when the push names none.
    pub agent: Option<AgentId>,
    /// Whether `-o zit.agent` named the agent, so that printed commands must do so too.
    pub named_by_option: bool,
}

impl Caller {
    /// A caller of an open server that says nothing of itself.
    #[must_use]
    pub fn anyone() -> Self {
        Self {
            principal: Principal { name: "anyone".into(), kind: zit_model::PrincipalKind::Human },
            door: Door::Open,
            header: None,
            seat: None,
            only: None,
            item: None,
            nonce: None,
            address: None,
            namespace: None,
            account: None,
        }
    }

    /// The agent known before the options are read: the login's, then header, then seat, then principal.
    #[must_use]
    pub fn agent(&self) -> Option<AgentId> {
        let own = || match self.door {
            Door::Open => None,
            Door::Credential => AgentId::slug(&self.principal.name),
        };
        let said = || self.header.clone().or_else(|| self.seat.clone()).or_else(own);
        self.only.clone().or_else(said)
    }

    /// Who is named as the one that moved refs.
    #[must_use]
    pub(crate) fn committer(&self) -> Committer {
        if let Some(Account { name, email }) = self.account.clone() {
            return Committer { user: name, email, proven: false, address: None };
        }
        match self.door {
            Door::Open => Committer::over_http("anonymous".to_owned(), false, self.address),
            Door::Credential => {
                // What would end a name or an address has no place in one.
                let user = quote::one_line(&self.principal.name).replace(['<', '>'], "");
                Committer::over_http(user, true, self.address)
            }
        }
    }

    /// Whether the caller may speak for the agent that the options name.
    ///
    /// # Errors
    /// [`OtherAgent`] when its login is set to another one.
    pub fn may_speak(&self, options: &Options) -> Result<(), OtherAgent> {
        match (&self.only, &options.agent) {
            (Some(may), Some(asked)) if may != asked => {
                Err(OtherAgent { may: may.clone(), asked: asked.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Who speaks, now that the options are known. A login that is set to an agent speaks as that one.
    #[must_use]
    pub fn speaker(&self, options: &Options) -> Speaker {
        let named = || options.agent.clone().or_else(|| self.agent());
        Speaker {
            principal: self.principal.clone(),
            agent: self.only.clone().or_else(named),
            named_by_option: options.agent.is_some(),
        }
    }
}
