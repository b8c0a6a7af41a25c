//! The addresses that the helper takes, and the `http` address behind each.
//!
//! ```text
//! typed                      given by git        becomes
//! zit::https://host/path     https://host/path   the same
//! zit::http://host/path      http://host/path    the same
//! zit://host/path            zit://host/path     https://host/path; http:// when the host is loopback
//! ```
//!
//! Git takes `zit::` off before it starts the helper, and hands `zit://…` over whole.
//!
//! Source: gitremote-helpers(7), "Invocation".

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use zit_model::quote;

/// Bytes that may stand in a host name or an IPv4 address.
const HOST: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/// Bytes that may stand in a user name and password, besides those of a host.
const USER: &[u8] = b"~!$&'()*+,;=:%";

/// Where a zit server answers, as git's HTTP transport takes it.
///
/// Invariant: `http://` or `https://`, then `[user@]host[:port]` of plain characters, then nothing or a path; every `%`
/// starts an escape; no blanks and no control characters. So git and this crate see the same host in it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    /// What follows the scheme, with `//`.
    rest: String,
}

/// Which of git's transports carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The name in addresses and in the name of git's transport, `git remote-<name>`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AddressError {
    /// Another scheme, or a path.
    #[error("cannot reach {0}: this kind of address is not supported")]
    Unsupported(String),
    /// A scheme that is known, before something that is no host and path.
    #[error("not an address: {0}")]
    Malformed(String),
}

impl AddressError {
    /// What to type instead.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unsupported(_) => {
                "use zit::https://<host>/<path>, zit::http://<host>/<path> or zit://<host>/<path> of a zit server"
            }
            Self::Malformed(_) => {
                "write <scheme>://[<user>@]<host>[:<port>]/<path>, and a blank or % in it as %20 or %25"
            }
        }
    }
}

impl Address {
    /// Reads the address that git hands to the helper.
    ///
    /// # Errors
    /// [`AddressError::Unsupported`] for addresses of other kinds, [`AddressError::Malformed`] for a broken one.
    pub fn parse(url: &str) -> Result<Self, AddressError> {
        let unsupported = || AddressError::Unsupported(quote::one_line(url));
        let malformed = || AddressError::Malformed(quote::one_line(url));
        let (scheme, rest) = url.split_once("://").ok_or_else(unsupported)?;
        if !matches!(scheme, "http" | "https" | "zit") {
            return Err(unsupported());
        }
        let authority = Authority::parse(rest).filter(|_| is_clean(rest)).ok_or_else(malformed)?;
        let in_the_clear = scheme == "http" || (scheme == "zit" && authority.is_loopback());
        let scheme = if in_the_clear { Scheme::Http } else { Scheme::Https };
        Ok(Self { scheme, rest: format!("//{rest}") })
    }

    /// Which transport carries it.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scheme.as_str(), self.rest)
    }
}

/// The password, if there is one, is not shown.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after_user = self.rest.split_once('@').map_or(self.rest.as_str(), |(_, host)| host);
        write!(f, "{}://{}", self.scheme.as_str(), after_user.trim_start_matches('/'))
    }
}

/// The part between `//` and the path.
struct Authority<'a> {
    /// Without brackets.
    host: &'a str,
}

impl<'a> Authority<'a> {
    /// Reads `[user[:password]@]host[:port]` from the start of `rest`; `None` when it is anything else.
    ///
    /// Strict on purpose: what could make two readers find different hosts is no authority.
    fn parse(rest: &'a str) -> Option<Self> {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if !path.is_empty() && !path.starts_with('/') {
            return None;
        }
        let (user, host_port) = authority.split_once('@').unwrap_or(("", authority));
        if !user.bytes().all(|b| HOST.contains(&b) || USER.contains(&b)) {
            return None;
        }
        let (host, port) = match host_port.strip_prefix('[') {
            Some(bracketed) => {
                let (host, port) = bracketed.split_once(']')?;
                host.parse::<Ipv6Addr>().ok()?;
                (host, port)
            }
            None => host_port.split_at(host_port.find(':').unwrap_or(host_port.len())),
        };
        let named = host_port.starts_with('[') || host.bytes().all(|b| HOST.contains(&b));
        let port_ok = port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| port.parse::<std::num::NonZeroU16>().is_ok());
        (named && port_ok && !host.is_empty()).then_some(Self { host })
    }

    /// Whether the host names this machine and nothing else.
    fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
            || self.host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
    }
}

/// No blanks, no control characters, and every `%` followed by two hexadecimal digits: what git's matching of
/// `http.<url>.*` needs to recognise the address.
fn is_clean(text: &str) -> bool {
    let escaped = |after: &str| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit) && digits != b"00")
    };
    !text.contains(|c: char| c.is_control() || c.is_whitespace())
        && text.split('%').skip(1).all(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_server_is_handed_on_as_http() {
        for (url, http) in [
            ("https://h/r.git", "https://h/r.git"),
            ("http://h:8080/@ada/r.git", "http://h:8080/@ada/r.git"),
            ("http://ada:pw@h/r", "http://ada:pw@h/r"),
            ("https://h", "https://h"),
            ("https://h/a%20b?x=1", "https://h/a%20b?x=1"),
            ("zit://example.org/r.git", "https://example.org/r.git"),
            ("zit://ada@example.org:4443/r", "https://ada@example.org:4443/r"),
            ("zit://10.0.0.1/r", "https://10.0.0.1/r"),
            ("zit://localhost.example.org/r", "https://localhost.example.org/r"),
            ("zit://localhost@example.org/r", "https://localhost@example.org/r"),
            ("zit://[fe80::1]/r", "https://[fe80::1]/r"),
        ] {
            assert_eq!(Address::parse(url).unwrap().to_string(), http, "{url}");
        }
    }

    #[test]
    fn the_short_form_of_a_loopback_host_is_not_encrypted() {
        for host in
            ["localhost", "LOCALHOST:80", "127.0.0.1", "127.8.9.1:8080", "[::1]", "ada@[::1]:80"]
        {
            let address = Address::parse(&format!("zit://{host}/r")).unwrap();
            assert_eq!(address.to_string(), format!("http://{host}/r"));
        }
    }

    #[test]
    fn an_address_of_another_kind_is_unsupported() {
        for url in [
            "/srv/r.git",
            "r.git",
            "",
            "file:///srv/r",
            "ssh://h/r",
            "git@h:r",
            "HTTP://h/r",
            "://h",
        ] {
            assert!(matches!(Address::parse(url), Err(AddressError::Unsupported(_))), "{url:?}");
        }
    }

    #[test]
    fn an_address_in_which_two_readers_could_find_two_hosts_is_malformed() {
        for url in [
            "zit:///r",
            "http://",
            "https://a b/r",
            "https://h/a b",
            "https://h/a\nb",
            "https://h/%zz",
            "https://h/%2",
            "https://h/%00",
            "zit://localhost\\@example.org/r",
            "zit://a@b@localhost/r",
            "zit://localhost?@example.org/r",
            "zit://localhost#@example.org/r",
            "zit://localhost:80@/r",
            "zit://localhost:99999/r",
            "zit://localhost:0/r",
            "zit://localhost:/r",
            "zit://[::1/r",
            "zit://[::1]x/r",
            "zit://[localhost]/r",
            "zit://*/r",
            "zit://é/r",
        ] {
            assert!(matches!(Address::parse(url), Err(AddressError::Malformed(_))), "{url:?}");
        }
    }

    #[test]
    fn an_error_keeps_to_one_line() {
        let error = Address::parse("ssh://h/r\nfatal: forged").unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn a_password_is_not_shown_when_debugging() {
        let address = Address::parse("https://ada:secret@h/r").unwrap();
        assert_eq!(format!("{address:?}"), "https://h/r");
    }
}
