//! `http.*`: what a repository says to those who come by HTTP.

/// Which ways in are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// `http.uploadpack`: whether anybody may fetch. On unless set.
    pub upload_pack: bool,
    /// `http.receivepack`: whether anybody may push; `None`, when unset: whoever may write.
    pub receive_pack: Option<bool>,
    /// `http.uploadarchive`: whether anybody may have archives made. Off unless set.
    pub upload_archive: bool,
    /// `http.getanyfile`: whether objects and refs are given out as files. On unless set.
    pub get_any_file: bool,
}

impl HttpConfig {
    /// Reads the keys. A value that is no boolean closes the way: git would answer nothing at all.
    pub(crate) fn of(file: &gix_config::File) -> Self {
        let flag = |key: &str| match file.boolean(key) {
            Ok(value) => value,
            Err(error) => {
                tracing::warn!(key, %error, "not a boolean; counts as false");
                Some(false)
            }
        };
        Self {
            upload_pack: flag("http.uploadpack").unwrap_or(true),
            receive_pack: flag("http.receivepack"),
            upload_archive: flag("http.uploadarchive").unwrap_or(false),
            get_any_file: flag("http.getanyfile").unwrap_or(true),
        }
    }
}
