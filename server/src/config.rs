//! [`Config`]: the options of `serve`, checked once, before anything runs.
//!
//! Never touches the network. The one thing it looks up is the root directory.

use std::net::SocketAddr;
use std::path::PathBuf;

use tracing_subscriber::EnvFilter;

use crate::cli::ServeArgs;
use crate::http::namespaces::Rule;

/// What the server is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Config {
    // Invariant: an absolute path without symbolic links, of a directory that existed.
    root: PathBuf,
    // Invariant: a loopback address.
    listen: SocketAddr,
    /// The largest pack of a push, in bytes.
    pub(crate) max_pack: u64,
    /// Whether only repositories marked for export are served.
    pub(crate) marked_only: bool,
    /// Which URLs are views of a namespace.
    pub(crate) namespaces: Vec<Rule>,
}

/// Why options do not make a configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Anybody who reaches an open server may push to it.
    #[error(
        "cannot listen on {0}: it can be reached from other machines, and nobody is asked for a credential"
    )]
    NotLoopback(SocketAddr),
    /// The root cannot be looked at.
    #[error("cannot serve {}", path.display())]
    Root {
        /// The root as given.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The root is something else.
    #[error("cannot serve {}: not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The log's filter does not parse.
    #[error("cannot read the log filter {filter:?}")]
    Log {
        /// The filter as given.
        filter: String,
        /// What the parser said.
        source: tracing_subscriber::filter::ParseError,
    },
}

impl ConfigError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NotLoopback(_) => {
                "listen on 127.0.0.1 or [::1], and let others in by a tunnel that asks who they are"
            }
            Self::Root { .. } | Self::NotADirectory(_) => {
                "give --root the directory that holds the repositories"
            }
            Self::Log { .. } => "try --log info, or --log warn,zit_server=debug",
        }
    }
}

impl Config {
    /// Checks the options.
    ///
    /// # Errors
    /// [`ConfigError`] when the address is not a loopback address or the root is not a directory.
    pub(crate) fn check(args: &ServeArgs) -> Result<Self, ConfigError> {
        // An IPv4 address may be written as an IPv6 one.
        if !args.listen.ip().to_canonical().is_loopback() {
            return Err(ConfigError::NotLoopback(args.listen));
        }
        let path = args.root.clone();
        let root = path.canonicalize().map_err(|source| ConfigError::Root { path, source })?;
        if !root.is_dir() {
            return Err(ConfigError::NotADirectory(root));
        }
        Ok(Self {
            root,
            listen: args.listen,
            max_pack: args.max_pack,
            marked_only: args.require_export_ok,
            namespaces: args.namespaces.clone(),
        })
    }

    /// The directory below which repositories are looked for: absolute, without symbolic links.
    pub(crate) fn root(&self) -> &std::path::Path {
        &self.root
    }

    /// Where to listen: a loopback address.
    pub(crate) fn listen(&self) -> SocketAddr {
        self.listen
    }
}

/// Sends what passes `filter` to standard error from now on.
///
/// # Errors
/// [`ConfigError::Log`] when the filter does not parse.
pub(crate) fn start_log(filter: &str) -> Result<(), ConfigError> {
    let parsed = EnvFilter::builder()
        .parse(filter)
        .map_err(|source| ConfigError::Log { filter: filter.to_owned(), source })?;
    tracing_subscriber::fmt().with_env_filter(parsed).with_writer(std::io::stderr).init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn args(root: &Path, listen: &str) -> ServeArgs {
        ServeArgs {
            root: root.to_owned(),
            listen: listen.parse().unwrap(),
            max_pack: 1,
            require_export_ok: false,
            namespaces: Vec::new(),
        }
    }

    #[test]
    fn only_a_loopback_address_is_listened_on() {
        let root = tempfile::tempdir().unwrap();
        for address in ["127.0.0.1:0", "127.9.9.9:80", "[::1]:8417", "[::ffff:127.0.0.1]:1"] {
            assert!(Config::check(&args(root.path(), address)).is_ok(), "{address}");
        }
        for address in ["0.0.0.0:80", "[::]:80", "192.168.0.1:80", "[::ffff:10.0.0.1]:80"] {
            let error = Config::check(&args(root.path(), address)).unwrap_err();
            assert!(matches!(error, ConfigError::NotLoopback(_)), "{address}: {error}");
            assert!(error.hint().contains("127.0.0.1"), "{address}");
        }
    }

    #[test]
    fn the_root_is_a_directory_that_exists() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let absent = Config::check(&args(&dir.path().join("absent"), "127.0.0.1:0"));
        assert!(matches!(absent, Err(ConfigError::Root { .. })), "{absent:?}");
        let file = Config::check(&args(&file, "127.0.0.1:0"));
        assert!(matches!(file, Err(ConfigError::NotADirectory(_))), "{file:?}");
    }

    #[test]
    fn a_log_filter_that_does_not_parse_is_an_error() {
        assert!(matches!(start_log("=="), Err(ConfigError::Log { .. })));
    }
}
