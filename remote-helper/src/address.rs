//! The addresses that the helper takes, and what is behind each.
//!
//! ```text
//! typed                      given by git        becomes
//! zit::https://host/path     https://host/path   the same
//! zit::http://host/path      http://host/path    the same
//! zit://host/path            zit://host/path     https://host/path; http:// when the host is loopback
//! zit::/path                 /path              a repository on this machine
//! zit::file:///path          file:///path       the same, %XX decoded
//! zit::ssh://host/path       ssh://host/path    a repository there, through ssh
//! ```
//!
//! Git takes `zit::` off before it starts the helper, and hands `zit://…` over whole.
//!
//! Source: gitremote-helpers(7), "Invocation".

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use zit_model::quote;

/// Bytes that may stand in a host name or an IPv4 address.
const HOST: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/// Bytes that may stand in a user name and password, besides those of a host.
const USER: &[u8] = b"~!$&'()*+,;=:%";

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// Behind a zit server.
    Server(Address),
    /// On this machine, at an absolute path.
    Path(PathBuf),
    /// On another machine.
    Ssh(SshAddress),
}

/// A repository on a machine that is reached by ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshAddress {
    /// `[user@]host`, as ssh takes it. Invariant: does not begin with `-`.
    destination: String,
    /// Another port than ssh's own.
    port: Option<String>,
    /// The path there: absolute, or from a home folder as in `~/path`.
    path: OsString,
}

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
    /// Another scheme.
    #[error("cannot reach {0}: this kind of address is not supported")]
    Unsupported(String),
    /// A path from somewhere: git runs this program in another folder than its user typed in.
    #[error("not an absolute path: {0}")]
    Relative(String),
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
                "use zit::https://<host>/<path> or zit://<host>/<path> of a zit server, zit::/<path> or zit::ssh://<host>/<path>"
            }
            Self::Relative(_) => "write the whole path, as in: zit::$PWD/<path>",
            Self::Malformed(_) => {
                "write <scheme>://[<user>@]<host>[:<port>]/<path>, and a blank or % in it as %20 or %25"
            }
        }
    }
}

impl Remote {
    /// Reads the address that git hands to the helper.
    ///
    /// # Errors
    /// [`AddressError`] when it is none of those above.
    pub fn parse(url: &OsStr) -> Result<Self, AddressError> {
        let bytes = url.as_bytes();
        let shown = || quote::one_line(&url.to_string_lossy());
        if bytes.starts_with(b"/") {
            return Ok(Self::Path(PathBuf::from(url)));
        }
        if let Some(rest) = bytes.strip_prefix(b"file://") {
            let path = rest.strip_prefix(b"localhost").unwrap_or(rest);
            let path = decode(path).filter(|path| path.starts_with(b"/"));
            let path = path.ok_or_else(|| AddressError::Malformed(shown()))?;
            return Ok(Self::Path(PathBuf::from(OsString::from_vec(path))));
        }
        if let Some(rest) = bytes.strip_prefix(b"ssh://") {
            let address = SshAddress::parse(rest);
            return address.map(Self::Ssh).ok_or_else(|| AddressError::Malformed(shown()));
        }
        let is_relative = !bytes.contains(&b':') || bytes.starts_with(b".");
        if is_relative && !bytes.is_empty() {
            return Err(AddressError::Relative(shown()));
        }
        let text = url.to_str().ok_or_else(|| AddressError::Malformed(shown()))?;
        Address::parse(text).map(Self::Server)
    }

    /// The address as it is shown to people, without a password.
    #[must_use]
    pub fn shown(&self) -> String {
        quote::one_line(&match self {
            Self::Server(address) => format!("{address:?}"),
            Self::Path(path) => path.display().to_string(),
            Self::Ssh(SshAddress { destination, path, .. }) => {
                let slash = if path.as_bytes().starts_with(b"/") { "" } else { "/" };
                format!("ssh://{destination}{slash}{}", path.to_string_lossy())
            }
        })
    }
}

impl SshAddress {
    /// `[user@]host`, as ssh takes it; never an option.
    #[must_use]
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Another port than ssh's own.
    #[must_use]
    pub fn port(&self) -> Option<&str> {
        self.port.as_deref()
    }

    /// The path there.
    #[must_use]
    pub fn path(&self) -> &OsStr {
        &self.path
    }

    /// Reads what follows `ssh://`; `None` when it is no host and path. Source: git's `connect.c`, `parse_connect_url`.
    fn parse(rest: &[u8]) -> Option<Self> {
        let slash = rest.iter().position(|&byte| byte == b'/')?;
        let (authority, path) = rest.split_at(slash);
        let authority = str::from_utf8(authority).ok()?;
        Authority::parse(authority)?;
        let (user, host_port) = match authority.rsplit_once('@') {
            Some((user, host_port)) => (Some(user), host_port),
            None => (None, authority),
        };
        let (host, port) = match host_port.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once(']')?,
            None => host_port.split_at(host_port.find(':').unwrap_or(host_port.len())),
        };
        let user = user.map_or(Some(Vec::new()), |user| decode(user.as_bytes()))?;
        let user = String::from_utf8(user).ok().filter(|user| !user.contains(char::is_control))?;
        let destination = if user.is_empty() { host.to_owned() } else { format!("{user}@{host}") };
        // A host that ssh would take for an option runs programs.
        if destination.starts_with('-') || host.starts_with('-') {
            return None;
        }
        let path = decode(path)?;
        let path = if path.starts_with(b"/~") { path.get(1..)?.to_vec() } else { path };
        let port = port.strip_prefix(':').map(str::to_owned);
        Some(Self { destination, port, path: OsString::from_vec(path) })
    }
}

/// Decodes each `%XX`, once; `None` when one is broken or a NUL.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|&byte| char::from(byte).to_digit(16));
        decoded.push(digit().zip(digit()).and_then(|(a, b)| u8::try_from(a * 16 + b).ok())?);
    }
    (!decoded.contains(&0)).then_some(decoded)
}

impl Address {
    /// Reads the address of a server that git hands to the helper.
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
        for url in ["", "ftp://h/r", "git@h:r", "HTTP://h/r", "FILE:///r", "://h"] {
            let found = Remote::parse(OsStr::new(url));
            assert!(matches!(found, Err(AddressError::Unsupported(_))), "{url:?}");
        }
    }

    #[test]
    fn a_path_is_absolute_and_its_url_form_is_decoded() {
        for (url, path) in [
            ("/srv/r.git", "/srv/r.git"),
            ("/srv/a%20b:c", "/srv/a%20b:c"),
            ("file:///srv/a%20b", "/srv/a b"),
            ("file://localhost/srv/r", "/srv/r"),
        ] {
            let found = Remote::parse(OsStr::new(url));
            assert_eq!(found, Ok(Remote::Path(PathBuf::from(path))), "{url}");
        }
        for url in ["r.git", "./r.git", "../a:b", "~/r"] {
            let found = Remote::parse(OsStr::new(url));
            assert!(matches!(found, Err(AddressError::Relative(_))), "{url}: {found:?}");
        }
        for url in ["file://host/r", "file://", "file:///%zz", "file:///a%00"] {
            let found = Remote::parse(OsStr::new(url));
            assert!(matches!(found, Err(AddressError::Malformed(_))), "{url}: {found:?}");
        }
    }

    #[test]
    fn an_ssh_address_names_a_destination_a_port_and_a_path() {
        for (url, destination, port, path) in [
            ("ssh://h/srv/r.git", "h", None, "/srv/r.git"),
            ("ssh://ada@h:2222/r", "ada@h", Some("2222"), "/r"),
            ("ssh://[::1]:22/r", "::1", Some("22"), "/r"),
            ("ssh://h/~/r", "h", None, "~/r"),
            ("ssh://h/~ada/a%20b", "h", None, "~ada/a b"),
        ] {
            let Ok(Remote::Ssh(found)) = Remote::parse(OsStr::new(url)) else { panic!("{url}") };
            assert_eq!(found.destination(), destination, "{url}");
            assert_eq!((found.port(), found.path()), (port, OsStr::new(path)), "{url}");
        }
    }

    #[test]
    fn an_ssh_address_that_ssh_would_take_for_an_option_is_malformed() {
        for url in [
            "ssh://-oProxyCommand=x/r",
            "ssh://-h/r",
            "ssh://-u@h/r",
            "ssh://a@-h/r",
            "ssh://%2du@h/r",
            "ssh://h",
            "ssh:///r",
            "ssh://h:x/r",
            "ssh://a b/r",
        ] {
            let found = Remote::parse(OsStr::new(url));
            assert!(matches!(found, Err(AddressError::Malformed(_))), "{url}: {found:?}");
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
        let error = Address::parse("ftp://h/r\nfatal: forged").unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
    }

    #[test]
    fn a_password_is_not_shown_when_debugging() {
        let address = Address::parse("https://ada:secret@h/r").unwrap();
        assert_eq!(format!("{address:?}"), "https://h/r");
    }
}
