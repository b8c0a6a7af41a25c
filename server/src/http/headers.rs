//! What the headers of a request say: which server is meant, who is speaking, which protocol, and how the body is written.
//!
//! Pure. Which agent a header may name is the referee's business.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::http::uri::{Authority, Uri};
use zit_model::agent::{AgentIdError, ItemIdError};
use zit_model::{AgentId, ItemId};
use zit_referee::Caller;
use zit_wire::service::ProtocolVersion;

/// The header in which a client says which agent it is.
const AGENT: HeaderName = HeaderName::from_static("zit-agent");
/// The header in which a client says which item it works on.
const ITEM: HeaderName = HeaderName::from_static("zit-item");
/// The header in which git says which protocol it would like.
const GIT_PROTOCOL: HeaderName = HeaderName::from_static("git-protocol");

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As it is.
    Identity,
    /// Compressed by gzip, as git does with requests that are worth it.
    Gzip,
}

/// Why headers cannot be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum HeaderError {
    /// `Zit-Agent` without an agent.
    #[error("bad Zit-Agent header")]
    Agent(#[from] AgentIdError),
    /// `Zit-Item` without an item.
    #[error("bad Zit-Item header")]
    Item(#[from] ItemIdError),
    /// `Host` names something else than a loopback address.
    #[error("this server does not serve {0}")]
    ForeignHost(String),
    /// The body is something else than the service's request. In git's words, the only ones that it answers itself.
    #[error("Expected POST with Content-Type '{expected}', but received '{found}' instead.")]
    ContentType {
        /// What the service takes.
        expected: &'static str,
        /// What was sent, on one line; empty for nothing.
        found: String,
    },
    /// The body is written in a way that is not understood here.
    #[error("cannot read a body with content encoding {0}")]
    ContentEncoding(String),
}

impl HeaderError {
    /// What the client may do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::ContentEncoding(_) => Some("send it as it is, or with gzip"),
            Self::ForeignHost(_) => Some("use the address that the server printed when it started"),
            Self::Agent(_) => {
                Some("git config http.extraHeader 'Zit-Agent: <agent>', or leave the header away")
            }
            Self::Item(_) => {
                Some("git config http.extraHeader 'Zit-Item: <item>', or leave the header away")
            }
            Self::ContentType { .. } => None,
        }
    }
}

/// Checks that the client meant this server by its address, not by a name.
///
/// Whoever controls a name can point it here, and a page loaded under that name then speaks to an open server as the
/// user of the browser. A name such as `localhost` is nobody's to point elsewhere.
///
/// # Errors
/// [`HeaderError::ForeignHost`] for any other name.
pub(crate) fn check_host(uri: &Uri, headers: &HeaderMap) -> Result<(), HeaderError> {
    // HTTP/2 says it in the request line; whoever says it twice has to mean it twice.
    let line = uri.authority().map(|authority| authority.as_str().to_owned());
    for host in line.into_iter().chain(headers.get(HOST).map(text)) {
        if !host.parse().is_ok_and(|authority| is_ours(&authority)) {
            return Err(HeaderError::ForeignHost(format!("{host:?}")));
        }
    }
    Ok(())
}

fn is_ours(authority: &Authority) -> bool {
    let name = authority.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let name = address.unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

/// Who is speaking, by headers and seat. An open server asks for no credential.
///
/// # Errors
/// [`HeaderError`] when a header names no agent or item.
pub(crate) fn caller(headers: &HeaderMap, seat: Option<AgentId>) -> Result<Caller, HeaderError> {
    let header = headers.get(AGENT).map(|value| AgentId::new(&text(value))).transpose()?;
    let item = headers.get(ITEM).map(|value| ItemId::new(&text(value))).transpose()?;
    Ok(Caller { header, seat, item, ..Caller::anyone() })
}

/// The protocol version that the client asks for.
pub(crate) fn protocol(headers: &HeaderMap) -> ProtocolVersion {
    let value = headers.get(GIT_PROTOCOL).map(HeaderValue::as_bytes);
    ProtocolVersion::from_header(value.unwrap_or_default())
}

/// How the body of a request of type `expected` is written.
///
/// # Errors
/// [`HeaderError`] when it is of another type, or in no encoding that is understood here.
pub(crate) fn encoding(
    headers: &HeaderMap,
    expected: &'static str,
) -> Result<Encoding, HeaderError> {
    let found = headers.get(CONTENT_TYPE);
    if found.is_none_or(|found| found.as_bytes() != expected.as_bytes()) {
        let found = found.map(text).unwrap_or_default().replace(char::is_control, " ");
        return Err(HeaderError::ContentType { expected, found });
    }
    match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(Encoding::Identity),
        Some(b"gzip" | b"x-gzip") => Ok(Encoding::Gzip),
        Some(other) => {
            Err(HeaderError::ContentEncoding(format!("{:?}", String::from_utf8_lossy(other))))
        }
    }
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).chars().take(MAX_SHOWN).collect()
}

/// How much of a header is read or repeated, in characters: more than any agent or content type has.
const MAX_SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair =
            |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_caller_is_what_header_and_seat_say() {
        let ada = AgentId::new("ada").unwrap();
        let headers = headers(&[("zit-agent", "ben"), ("zit-item", "8c1f0e2a9b3d")]);
        let caller = caller(&headers, Some(ada.clone())).unwrap();
        assert_eq!(caller.header, Some(AgentId::new("ben").unwrap()));
        assert_eq!(caller.seat, Some(ada));
        assert_eq!(caller.item, Some(ItemId::new("8c1f0e2a9b3d").unwrap()));
    }

    #[test]
    fn a_header_that_names_no_agent_or_item_is_refused() {
        for (name, value, expected) in [
            ("zit-agent", "Ada L", HeaderError::Agent(AgentIdError("Ada L".to_owned()))),
            ("zit-agent", "", HeaderError::Agent(AgentIdError(String::new()))),
            ("zit-item", "12", HeaderError::Item(ItemIdError("12".to_owned()))),
        ] {
            assert_eq!(caller(&headers(&[(name, value)]), None), Err(expected), "{name}: {value}");
        }
    }

    #[test]
    fn a_host_is_an_address_or_localhost() {
        let origin = Uri::from_static("/");
        let check = |host: &'static str| check_host(&origin, &headers(&[("host", host)]));
        for host in ["127.0.0.1", "127.0.0.1:8417", "[::1]:8417", "localhost:1", "a.localhost"] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        assert_eq!(
            check_host(&origin, &HeaderMap::new()),
            Ok(()),
            "a client of HTTP/1.0 sends none"
        );
        for host in ["example.com", "example.com:8417", "localhost.example.com", "xlocalhost", ""] {
            assert_eq!(check(host), Err(HeaderError::ForeignHost(format!("{host:?}"))), "{host}");
        }
        let line = Uri::from_static("http://example.com/");
        assert!(check_host(&line, &HeaderMap::new()).is_err(), "HTTP/2 has no Host");
        assert!(check_host(&line, &headers(&[("host", "127.0.0.1")])).is_err());
    }

    #[test]
    fn a_body_has_the_type_of_its_service_and_a_known_encoding() {
        let push = "application/x-git-receive-pack-request";
        let check = |pairs: &[(&'static str, &'static str)]| {
            encoding(&headers(pairs), push).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[("content-type", push)]), Ok(Encoding::Identity));
        for gzip in ["gzip", "x-gzip"] {
            let found = check(&[("content-type", push), ("content-encoding", gzip)]);
            assert_eq!(found, Ok(Encoding::Gzip), "{gzip}");
        }
        for (pairs, found) in [
            (&[][..], ""),
            (&[("content-type", "text/plain")], "text/plain"),
            (
                &[("content-type", "application/x-git-upload-pack-request")],
                "application/x-git-upload-pack-request",
            ),
        ] {
            let said = format!(
                "Expected POST with Content-Type '{push}', but received '{found}' instead."
            );
            assert_eq!(check(pairs), Err(said), "{pairs:?}");
        }
        let brotli = check(&[("content-type", push), ("content-encoding", "br")]);
        assert_eq!(brotli, Err("cannot read a body with content encoding \"br\"".to_owned()));
    }
}
