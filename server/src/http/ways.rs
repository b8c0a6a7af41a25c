//! The ways into a repository, and which of them its configuration leaves open.
//!
//! Source: `git-http-backend`, "Services". Who may write is the referee's business; here a way is open to all or none.

use zit_service::archive;
use zit_store::HttpConfig;
use zit_wire::service::Service;

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// A service of smart HTTP.
    Service(Service),
    /// Archives made by git.
    Archive,
    /// Refs and objects as files.
    Files,
}

/// Why a way is not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClosedError {
    /// The configuration closes it.
    #[error("service not enabled: '{0}'")]
    Disabled(&'static str),
    /// The configuration gives out no files; or the client knows no service.
    #[error("unsupported service: getanyfile")]
    Files,
    /// There is no such service.
    #[error("unsupported service: {0:?}")]
    Unknown(String),
}

impl ClosedError {
    /// What the client may do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::Disabled("upload-archive") => {
                "whoever runs the server can enable it with `git config http.uploadarchive true`"
            }
            Self::Disabled("upload-pack") => {
                "whoever runs the server can enable it with `git config http.uploadpack true`"
            }
            Self::Disabled(_) => {
                "whoever runs the server can enable it with `git config http.receivepack true`"
            }
            Self::Files => "git clone <url>, with git 1.6.6 or later",
            Self::Unknown(_) => "services are git-upload-pack and git-receive-pack",
        }
    }
}

impl Way {
    /// The content type of a request; `None` where nothing is posted.
    pub(crate) fn request_type(self) -> Option<&'static str> {
        match self {
            Self::Service(service) => Some(service.request_type()),
            Self::Archive => Some(archive::REQUEST_TYPE),
            Self::Files => None,
        }
    }

    /// What logs call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Service(service) => service.name(),
            Self::Archive => "git-upload-archive",
            Self::Files => "files",
        }
    }

    /// Checks that a repository's configuration leaves the way open.
    ///
    /// # Errors
    /// [`ClosedError`] when not.
    pub(crate) fn check(self, config: HttpConfig) -> Result<(), ClosedError> {
        let (open, closed) = match self {
            Self::Service(Service::UploadPack) => {
                (config.upload_pack, ClosedError::Disabled("upload-pack"))
            }
            Self::Service(Service::ReceivePack) => {
                (config.receive_pack.unwrap_or(true), ClosedError::Disabled("receive-pack"))
            }
            Self::Archive => (config.upload_archive, ClosedError::Disabled("upload-archive")),
            Self::Files => (config.get_any_file, ClosedError::Files),
        };
        if open { Ok(()) } else { Err(closed) }
    }
}
