//! What the repository's configuration asks of a pack that comes in.

use std::path::Path;

use bstr::BString;

use crate::fsck::FsckRules;

/// Fewer than in git: a single object costs a file, and a pack costs two.
const UNPACK_LIMIT: u32 = 16;

/// What is asked of a pack that comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveConfig {
    /// The rules that every object is checked by; `None` when `receive.fsckObjects`, or `transfer.fsckObjects` where
    /// that is unset, says that none is. Unset, unlike in git, all are.
    pub fsck: Option<FsckRules>,
    /// `receive.maxInputSize`: the size in bytes that a pack may have.
    pub max_input_size: Option<u64>,
    /// `receive.unpackLimit` or `transfer.unpackLimit`: a pack of fewer objects is kept as single objects.
    pub unpack_limit: u32,
    /// `receive.shallowUpdate`: whether a push may make the repository shallow.
    pub shallow_update: bool,
    /// `receive.certNonceSeed`: from what nonces for push certificates are made; none are asked for without it.
    pub nonce_seed: Option<BString>,
    /// `receive.certNonceSlop`: how many seconds a nonce may be off.
    pub nonce_slop: u64,
}

impl Default for ReceiveConfig {
    fn default() -> Self {
        Self {
            fsck: Some(FsckRules::default()),
            max_input_size: None,
            unpack_limit: UNPACK_LIMIT,
            shallow_update: false,
            nonce_seed: None,
            nonce_slop: 0,
        }
    }
}

impl ReceiveConfig {
    pub(crate) fn read(file: &gix_config::File, git_dir: &Path) -> Self {
        let either = |key: &str| {
            let of = |section: &str| file.string(format!("{section}.{key}").as_str());
            of("receive").is_some().then_some("receive").or(of("transfer").map(|_| "transfer"))
        };
        let number = |section: Option<&str>, key: &str| {
            file.integer(format!("{}.{key}", section?).as_str()).ok().flatten()
        };
        let is_checked = either("fsckObjects").and_then(|section| {
            file.boolean(format!("{section}.fsckObjects").as_str()).ok().flatten()
        });
        let unpack_limit = number(either("unpackLimit"), "unpackLimit");
        Self {
            fsck: (is_checked != Some(false)).then(|| FsckRules::from_config(file, git_dir)),
            max_input_size: number(Some("receive"), "maxInputSize")
                .and_then(|max| u64::try_from(max).ok())
                .filter(|max| *max > 0),
            unpack_limit: unpack_limit.and_then(|n| u32::try_from(n).ok()).unwrap_or(UNPACK_LIMIT),
            nonce_seed: file.string("receive.certNonceSeed"),
            nonce_slop: number(Some("receive"), "certNonceSlop")
                .and_then(|slop| u64::try_from(slop).ok())
                .unwrap_or(0),
            shallow_update: file.boolean("receive.shallowUpdate").ok().flatten().unwrap_or(false),
        }
    }
}
