//! The two services of a git server, their http names, and the protocol version a client asks for.
//!
//! Source: git's `gitprotocol-http`, "Smart Clients", and `gitprotocol-v2`, "Initial Client Request".

use std::fmt;

/// What a client wants of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// To fetch: `git-upload-pack`.
    UploadPack,
    /// To push: `git-receive-pack`.
    ReceivePack,
}

impl Service {
    /// Reads git's name of a service, as in `?service=git-upload-pack`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::UploadPack, Self::ReceivePack].into_iter().find(|service| service.name() == name)
    }

    /// git's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }

    /// The content type of the answer to `GET info/refs`.
    #[must_use]
    pub fn advertisement_type(self) -> &'static str {
        match self {
            Self::UploadPack => "application/x-git-upload-pack-advertisement",
            Self::ReceivePack => "application/x-git-receive-pack-advertisement",
        }
    }

    /// The content type that a POST must have.
    #[must_use]
    pub fn request_type(self) -> &'static str {
        match self {
            Self::UploadPack => "application/x-git-upload-pack-request",
            Self::ReceivePack => "application/x-git-receive-pack-request",
        }
    }

    /// The content type of the answer to a POST.
    #[must_use]
    pub fn result_type(self) -> &'static str {
        match self {
            Self::UploadPack => "application/x-git-upload-pack-result",
            Self::ReceivePack => "application/x-git-receive-pack-result",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The protocol version in which a client asks to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum ProtocolVersion {
    /// The original protocol, spoken to whoever asks for nothing.
    #[default]
    V0,
    /// Version 0 behind a `version 1` line.
    V1,
    /// Commands and sections. Only `git-upload-pack` has it.
    V2,
}

impl ProtocolVersion {
    /// Reads a `Git-Protocol` header: keys separated by `:`, of which the highest known `version=` counts.
    #[must_use]
    pub fn from_header(header: &[u8]) -> Self {
        header
            .split(|&byte| byte == b':')
            .filter_map(|key| match key {
                b"version=1" => Some(Self::V1),
                b"version=2" => Some(Self::V2),
                _ => None,
            })
            .max()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_known_version_of_the_header_counts() {
        for (header, expected) in [
            ("", ProtocolVersion::V0),
            ("version=0", ProtocolVersion::V0),
            ("version=1", ProtocolVersion::V1),
            ("version=2", ProtocolVersion::V2),
            ("version=2:version=1", ProtocolVersion::V2),
            ("key:other=value:version=1", ProtocolVersion::V1),
            ("version=3", ProtocolVersion::V0),
            ("version=3:version=2", ProtocolVersion::V2),
            ("version=20", ProtocolVersion::V0),
            ("version=2 ", ProtocolVersion::V0),
        ] {
            assert_eq!(ProtocolVersion::from_header(header.as_bytes()), expected, "{header:?}");
        }
    }

    #[test]
    fn a_service_is_known_by_its_full_name_only() {
        assert_eq!(Service::from_name("git-upload-pack"), Some(Service::UploadPack));
        assert_eq!(Service::from_name("git-receive-pack"), Some(Service::ReceivePack));
        for name in ["", "upload-pack", "git-upload-archive", "git-upload-pack "] {
            assert_eq!(Service::from_name(name), None, "{name:?}");
        }
    }
}
