//! The one packet with which a conversation on a socket begins: what HTTP says in its request line and headers.
//!
//! ```text
//! hello = "zit-pipe 1" SP service SP "version=" version [SP agent] [SP "item=" item] [SP "namespace=" namespace]
//!     [SP "nonce=" nonce] [SP "committer=" name " <" email ">"]
//! agent = ("agent=" / "only-agent=") id
//! ```
//!
//! A login that is set to an agent says `only-agent`: no other one may speak. A name and an address may have spaces, so
//! they are the rest of the packet.
//!
//! Nobody answers it: what follows is git's protocol, which has its own way of saying no.

use std::io::{Read, Write};

use bstr::ByteSlice;
use zit_model::{AgentId, ItemId, Namespace};
use zit_referee::Caller;
use zit_store::Account;
use zit_wire::pkt;
use zit_wire::service::{ProtocolVersion, Service};

use crate::pipe::{self, Task};
use crate::source::FetchSource;
use crate::view::View;

/// The words at the start, with the version of this packet.
const MAGIC: &str = "zit-pipe 1";

/// What goes before the name and the address.
const COMMITTER: &str = " committer=";

/// What a client wants, and who it says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// To fetch or to push.
    pub service: Service,
    /// How it would like to be answered.
    pub version: ProtocolVersion,
    /// Which agent speaks.
    pub agent: Option<AgentId>,
    /// Whether no other agent may.
    pub bound: bool,
    /// Which item it works on.
    pub item: Option<ItemId>,
    /// Which namespace of the repository is meant.
    pub namespace: Option<Namespace>,
    /// The user whose process the client is; only for a push.
    pub account: Option<Account>,
    /// The nonce that the client was given already, for a push certificate.
    pub nonce: Option<String>,
}

/// A packet that is no hello.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not the start of a conversation with this version of zit")]
pub struct BadHello;

impl Hello {
    /// Writes it as one packet.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let version = match self.version {
            ProtocolVersion::V0 => 0,
            ProtocolVersion::V1 => 1,
            ProtocolVersion::V2 => 2,
        };
        let mut line = format!("{MAGIC} {} version={version}", self.service);
        if let Some(agent) = &self.agent {
            let only = if self.bound { "only-" } else { "" };
            line.push_str(&format!(" {only}agent={agent}"));
        }
        if let Some(item) = &self.item {
            line.push_str(&format!(" item={item}"));
        }
        if let Some(namespace) = &self.namespace {
            line.push_str(&format!(" namespace={namespace}"));
        }
        if let Some(nonce) = &self.nonce {
            line.push_str(&format!(" nonce={nonce}"));
        }
        if let Some(Account { name, email }) = &self.account {
            line.push_str(&format!("{COMMITTER}{name} <{email}>"));
        }
        packet(&line)
    }

    /// Reads the line of a packet.
    ///
    /// # Errors
    /// [`BadHello`] for anything else.
    pub fn read(line: &[u8]) -> Result<Self, BadHello> {
        let line = line.to_str().map_err(|_| BadHello)?;
        let (line, committer) =
            line.split_once(COMMITTER).map_or((line, None), |(l, c)| (l, Some(c)));
        let mut words = line.strip_prefix(MAGIC).ok_or(BadHello)?.split(' ').skip(1);
        let service = words.next().and_then(Service::from_name).ok_or(BadHello)?;
        let version = ProtocolVersion::V0;
        let account = committer.and_then(|committer| Account::read(committer.as_bytes()));
        let (agent, item, namespace, nonce) = (None, None, None, None);
        let mut hello =
            Self { service, version, agent, bound: false, item, namespace, account, nonce };
        for word in words {
            match word.split_once('=').ok_or(BadHello)? {
                ("version", "0") => hello.version = ProtocolVersion::V0,
                ("version", "1") => hello.version = ProtocolVersion::V1,
                ("version", "2") => hello.version = ProtocolVersion::V2,
                ("agent", id) => hello.agent = Some(AgentId::new(id).map_err(|_| BadHello)?),
                ("only-agent", id) => {
                    hello.agent = Some(AgentId::new(id).map_err(|_| BadHello)?);
                    hello.bound = true;
                }
                ("nonce", nonce) => hello.nonce = Some(nonce.to_owned()),
                ("item", id) => hello.item = Some(ItemId::new(id).map_err(|_| BadHello)?),
                ("namespace", name) => {
                    hello.namespace = Some(Namespace::new(name).map_err(|_| BadHello)?);
                }
                _ => return Err(BadHello),
            }
        }
        Ok(hello)
    }

    /// Serves the fetch that this begins from `source`. Blocks until it is over.
    pub fn fetch(
        &self,
        source: &dyn FetchSource,
        input: Box<dyn Read + Send>,
        output: &mut dyn Write,
    ) {
        match &self.namespace {
            Some(namespace) => {
                let view = View::new(source, namespace);
                pipe::serve(Task::Fetch(&view), self.version, input, output);
            }
            None => pipe::serve(Task::Fetch(source), self.version, input, output),
        }
    }

    /// The caller as the referee sees it. Whoever may open the repository's files is asked for no credential.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let only = self.agent.clone().filter(|_| self.bound);
        let Self { agent: header, item, namespace, account, nonce, .. } = self.clone();
        Caller { header, only, item, namespace, account, nonce, ..Caller::anyone() }
    }
}

fn packet(line: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    pkt::text(&mut packet, line.as_bytes())
        .expect("two ids, a namespace, a nonce and two bounded names are shorter than a packet");
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let hello = Hello {
            service: Service::ReceivePack,
            version: ProtocolVersion::V1,
            agent: Some(AgentId::new("ada").unwrap()),
            bound: false,
            item: Some(ItemId::new("0123456789ab").unwrap()),
            namespace: Some(Namespace::new("a/b").unwrap()),
            account: Account::read(b"Ada Lovelace <ada@example.com>"),
            nonce: None,
        };
        let line =
            b"zit-pipe 1 git-receive-pack version=1 agent=ada item=0123456789ab namespace=a/b \
            committer=Ada Lovelace <ada@example.com>\n";
        assert_eq!(&hello.encode()[4..], line);
        assert_eq!(Hello::read(line.trim_end()), Ok(hello.clone()));
        let bound = Hello { bound: true, nonce: Some("1-ab".into()), ..hello };
        let line = b"zit-pipe 1 git-receive-pack version=1 only-agent=ada item=0123456789ab \
            namespace=a/b nonce=1-ab committer=Ada Lovelace <ada@example.com>\n";
        assert_eq!(&bound.encode()[4..], line);
        assert_eq!(bound.caller().only, bound.agent);
        assert_eq!(Hello::read(line.trim_end()), Ok(bound));
        let least = Hello {
            service: Service::UploadPack,
            version: ProtocolVersion::V2,
            agent: None,
            bound: false,
            item: None,
            namespace: None,
            account: None,
            nonce: None,
        };
        assert_eq!(Hello::read(least.encode()[4..].trim_end()), Ok(least));
    }

    #[test]
    fn anything_else_is_no_hello() {
        for line in [
            "",
            "zit-pipe 1",
            "zit-pipe 2 git-upload-pack",
            "zit-pipe 1 upload-pack",
            "zit-pipe 1 git-upload-pack version=3",
            "zit-pipe 1 git-upload-pack agent=Ada",
            "zit-pipe 1 git-upload-pack item=1",
            "zit-pipe 1 git-upload-pack namespace=..",
            "zit-pipe 1 git-upload-pack x",
            "0032want 1111111111111111111111111111111111111111",
        ] {
            assert_eq!(Hello::read(line.as_bytes()), Err(BadHello), "{line:?}");
        }
    }
}
