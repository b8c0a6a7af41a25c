//! What a request line asks for: a pure function from method, path and query to a [`Route`].
//!
//! ```text
//! GET  /livez  /readyz
//! GET  /[@<agent>/]<repository>/info/refs[?service=<service>]
//! GET  /[@<agent>/]<repository>/<file>
//! POST /[@<agent>/]<repository>/<service>
//! ```
//!
//! The path is percent-decoded once, whole, and judged after that. Nothing here looks at a file.
//!
//! Source: git's `gitprotocol-http`, "URL Format"; for the seat, `spec/identity.md`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hyper::Method;
use zit_model::AgentId;
use zit_model::agent::AgentIdError;
use zit_service::files::StoredFile;
use zit_wire::service::Service;

use super::ways::Way;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Whether the process lives.
    Live,
    /// Whether it takes requests.
    Ready,
    /// The refs and capabilities that come before a request.
    InfoRefs(Target, Service),
    /// The same of a service that is not known. Whether there is such a repository matters more.
    Unknown(Target, String),
    /// A request by POST.
    Request(Target, Way),
    /// A file, `info/refs` without a service among them.
    File(Target, StoredFile),
}

/// A repository, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The agent whose seat the URL names.
    pub(crate) seat: Option<AgentId>,
    /// The repository's path below the root.
    pub(crate) repository: RepositoryPath,
}

/// A relative path of plain names: it cannot lead upward, and joined to a directory it stays below that.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RepositoryPath(PathBuf);

/// Why a request line asks for nothing that is here.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum RouteError {
    /// No request of git's has this form; a browser's has.
    #[error("nothing is served at {0:?}: this server speaks git and has no pages")]
    UnknownPath(String),
    /// A `%` without two hexadecimal digits.
    #[error("bad percent-encoding in {0:?}")]
    BadEscape(String),
    /// `/@…/` without an agent.
    #[error("bad seat in the url")]
    BadSeat(#[from] AgentIdError),
    /// A repository's path with `..`, an empty component or a NUL.
    #[error("no git repository at {0:?}: its path has an empty component, '.', '..' or a NUL")]
    BadRepository(String),
    /// A method that the path does not take.
    #[error("method {method} is not allowed here")]
    Method {
        /// The method sent.
        method: Method,
        /// The methods that would do, as an `Allow` header lists them.
        allow: &'static str,
    },
}

/// Reads a request line. `path` and `query` are as sent.
///
/// # Errors
/// [`RouteError`] when no URL of this server has that form.
pub(crate) fn route(method: &Method, path: &str, query: Option<&str>) -> Result<Route, RouteError> {
    let probe = match path {
        "/livez" => Some(Route::Live),
        "/readyz" => Some(Route::Ready),
        _ => None,
    };
    if let Some(route) = probe {
        return reading(method).map(|()| route);
    }
    let decoded = percent_decode(path)?;
    if let Some(rest) = decoded.strip_suffix(b"/info/refs") {
        reading(method)?;
        let target = target(rest)?;
        return Ok(match service(query) {
            None => Route::File(target, StoredFile::InfoRefs),
            Some(name) => match std::str::from_utf8(&name).ok().and_then(Service::from_name) {
                Some(service) => Route::InfoRefs(target, service),
                None => Route::Unknown(target, shown(&name)),
            },
        });
    }
    if let Some((rest, file)) = StoredFile::split(&decoded) {
        reading(method)?;
        return Ok(Route::File(target(rest)?, file));
    }
    let ways =
        [Way::Service(Service::UploadPack), Way::Service(Service::ReceivePack), Way::Archive];
    for way in ways {
        let rest = decoded.strip_suffix(way.name().as_bytes());
        if let Some(rest) = rest.and_then(|rest| rest.strip_suffix(b"/")) {
            writing(method)?;
            return Ok(Route::Request(target(rest)?, way));
        }
    }
    Err(RouteError::UnknownPath(shown(&decoded)))
}

impl RouteError {
    /// What the client may do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UnknownPath(_) => Some(
                "a repository's url is for git clone: http://<host>/<path> or http://<host>/@<agent>/<path>",
            ),
            Self::BadRepository(_) => Some(
                "the url of a repository is http://<host>/<path> or http://<host>/@<agent>/<path>",
            ),
            Self::BadEscape(_) => Some("write a percent sign itself as %25"),
            Self::BadSeat(_) => Some("the url of an agent's seat is http://<host>/@<agent>/<path>"),
            Self::Method { .. } => None,
        }
    }
}

impl RepositoryPath {
    /// Reads a path of components separated by `/`; `None` unless each is a plain name.
    pub(crate) fn new(path: &[u8]) -> Option<Self> {
        let plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
        let all_plain = path.split(|&byte| byte == b'/').all(plain);
        all_plain.then(|| Self(PathBuf::from(OsStr::from_bytes(path))))
    }

    /// The path, relative.
    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for RepositoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Quoted and escaped: the peer chose it, and it goes into logs and answers.
        write!(f, "{:?}", shown(self.0.as_os_str().as_bytes()))
    }
}

impl fmt::Debug for RepositoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Splits `/[@<agent>/]<repository>`.
fn target(path: &[u8]) -> Result<Target, RouteError> {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let (seat, repository) = match path.strip_prefix(b"@") {
        Some(rest) => {
            let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
            let (agent, rest) = rest.split_at(end);
            let agent = AgentId::new(&String::from_utf8_lossy(agent))?;
            (Some(agent), rest.strip_prefix(b"/").unwrap_or(rest))
        }
        None => (None, path),
    };
    let repository = RepositoryPath::new(repository)
        .ok_or_else(|| RouteError::BadRepository(shown(repository)))?;
    Ok(Target { seat, repository })
}

/// The value of `service`, decoded; the last one counts, as for git.
fn service(query: Option<&str>) -> Option<Vec<u8>> {
    let mut pairs = query?.rsplit('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find_map(|(name, value)| {
        let decoded = |text: &str| percent_decode(&text.replace('+', " ")).unwrap_or_default();
        (decoded(name) == b"service").then(|| decoded(value))
    })
}

fn reading(method: &Method) -> Result<(), RouteError> {
    let allowed = *method == Method::GET || *method == Method::HEAD;
    allowed
        .then_some(())
        .ok_or_else(|| RouteError::Method { method: method.clone(), allow: "GET, HEAD" })
}

fn writing(method: &Method) -> Result<(), RouteError> {
    let allowed = *method == Method::POST;
    allowed
        .then_some(())
        .ok_or_else(|| RouteError::Method { method: method.clone(), allow: "POST" })
}

/// Decodes each `%XX`, once.
fn percent_decode(path: &str) -> Result<Vec<u8>, RouteError> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
            let value =
                digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
            decoded.push(value.ok_or_else(|| RouteError::BadEscape(shown(path.as_bytes())))?);
        } else {
            decoded.push(byte);
        }
    }
    Ok(decoded)
}

/// As much of a peer's bytes as an answer repeats.
fn shown(bytes: &[u8]) -> String {
    const MAX_SHOWN: usize = 200;
    String::from_utf8_lossy(bytes).chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Result<Route, String> {
        let (path, query) = path.split_once('?').map_or((path, None), |(p, q)| (p, Some(q)));
        route(&Method::GET, path, query).map_err(|error| error.to_string())
    }

    fn post(path: &str) -> Result<Route, String> {
        route(&Method::POST, path, None).map_err(|error| error.to_string())
    }

    fn target(seat: Option<&str>, repository: &str) -> Target {
        Target {
            seat: seat.map(|agent| AgentId::new(agent).unwrap()),
            repository: RepositoryPath::new(repository.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn the_urls_of_smart_http_are_known() {
        let (upload, receive) = (Service::UploadPack, Service::ReceivePack);
        for (path, expected) in [
            (
                "/a.git/info/refs?service=git-upload-pack",
                Route::InfoRefs(target(None, "a.git"), upload),
            ),
            (
                "/@ada/t/a/info/refs?x=1&service=git-receive-pack",
                Route::InfoRefs(target(Some("ada"), "t/a"), receive),
            ),
            (
                "/%40ada/a%20b%2fc/info/refs?service=git-upload-pack",
                Route::InfoRefs(target(Some("ada"), "a b/c"), upload),
            ),
            (
                "/a/info/refs?service=x&service=git%2Dupload-pack&",
                Route::InfoRefs(target(None, "a"), upload),
            ),
            (
                "/a/info/refs?service=git-upload-pack&service",
                Route::Unknown(target(None, "a"), String::new()),
            ),
            (
                "/a/info/refs?service=git+upload-pack",
                Route::Unknown(target(None, "a"), "git upload-pack".to_owned()),
            ),
            ("/a/info/refs?x", Route::File(target(None, "a"), StoredFile::InfoRefs)),
            ("/@ada/a/HEAD", Route::File(target(Some("ada"), "a"), StoredFile::Head)),
            ("/livez", Route::Live),
            ("/readyz", Route::Ready),
        ] {
            assert_eq!(get(path), Ok(expected), "{path}");
        }
        for (path, expected) in [
            ("/a/git-upload-pack", Route::Request(target(None, "a"), Way::Service(upload))),
            (
                "/@ada/a/git-receive-pack",
                Route::Request(target(Some("ada"), "a"), Way::Service(receive)),
            ),
            (
                "/t/@ada/git-receive-pack",
                Route::Request(target(None, "t/@ada"), Way::Service(receive)),
            ),
        ] {
            assert_eq!(post(path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn no_path_leads_upward() {
        for name in [
            "..", "%2e%2e", "a/..", "a/../b", "..%2fa", "a/%2E./b", ".", "a/./b", "", "/", "/a",
            "a/", "a//b", "a%00", "@ada/..", "@ada", "@ada/",
        ] {
            let found = post(&format!("/{name}/git-upload-pack"));
            assert!(found.is_err_and(|e| e.starts_with("no git repository at ")), "{name:?}");
        }
        // Decoded once: what comes out is a name like any other.
        let odd = Route::Request(target(None, "%2e%2e"), Way::Service(Service::UploadPack));
        assert_eq!(post("/%252e%252e/git-upload-pack"), Ok(odd));
    }

    #[test]
    fn each_request_that_asks_for_nothing_here_says_why() {
        let unknown = "nothing is served at";
        for (found, expected) in [
            (get("/"), unknown),
            (get("/a.git"), unknown),
            (get("/a.git/config"), unknown),
            (get("/a.git/objects/info/config"), unknown),
            (post("/git-upload-pack-x"), unknown),
            (post("/xgit-upload-pack"), unknown),
            (post("/a/HEAD"), "method POST is not allowed here"),
            (get("/a/git-upload-archive"), "method GET is not allowed here"),
            (post("/a/info/refs"), "method POST is not allowed here"),
            (get("/a/git-upload-pack"), "method GET is not allowed here"),
            (post("/livez"), "method POST is not allowed here"),
            (get("/%zz"), "bad percent-encoding in \"/%zz\""),
            (get("/%"), "bad percent-encoding in \"/%\""),
            (get("/%+1"), "bad percent-encoding in \"/%+1\""),
            (post("/@Ada/a/git-upload-pack"), "bad seat in the url"),
            (post("/@/a/git-upload-pack"), "bad seat in the url"),
        ] {
            assert!(
                found.as_ref().is_err_and(|e| e.starts_with(expected)),
                "{found:?}, {expected}"
            );
        }
    }

    #[test]
    fn a_browser_is_told_what_the_url_is_for() {
        for path in ["/", "/a.git", "/@ada/a.git"] {
            let error = route(&Method::GET, path, None).unwrap_err();
            assert!(
                error.to_string().ends_with("this server speaks git and has no pages"),
                "{path}"
            );
            assert!(error.hint().is_some_and(|hint| hint.contains("for git clone")), "{path}");
        }
    }

    #[test]
    fn what_is_repeated_of_a_path_can_neither_end_its_line_nor_steer_a_terminal() {
        let name = RepositoryPath::new(b"a\n\x1b[31m\xff").unwrap();
        assert_eq!(name.to_string(), r#""a\n\u{1b}[31m\u{fffd}""#.replace("\\u{fffd}", "\u{fffd}"));
    }
}
