//! Checks of blobs that trees name `.gitmodules` or `.gitattributes`.

use bstr::{BStr, ByteSlice as _};

use super::{Fsck, Id};
use crate::objects::Kind;

/// The largest `.gitattributes`, in bytes. Source: gitattributes(5), "NOTES".
const MAX_ATTRIBUTES: usize = 100 << 20;

/// The longest line of one, in bytes. Source: as above.
const MAX_ATTRIBUTES_LINE: usize = 2048;

impl Fsck<'_> {
    /// Whether it is certain that git finds nothing that is not told here.
    pub(super) fn modules(&mut self, blob: Option<(Kind, Vec<u8>)>) -> bool {
        match blob {
            None => {
                self.report(Id::GitmodulesMissing, "unable to read .gitmodules blob");
                true
            }
            Some((Kind::Blob, data)) => is_harmless(&data),
            Some((Kind::Tree | Kind::Commit | Kind::Tag, _)) => {
                self.report(Id::GitmodulesBlob, "non-blob found at .gitmodules");
                true
            }
        }
    }

    pub(super) fn attributes(&mut self, blob: Option<(Kind, Vec<u8>)>) {
        match blob {
            None => _ = self.report(Id::GitattributesMissing, "unable to read .gitattributes blob"),
            Some((Kind::Blob, data)) if data.len() > MAX_ATTRIBUTES => {
                self.report(Id::GitattributesLarge, ".gitattributes too large to parse");
            }
            Some((Kind::Blob, data)) => {
                // As far as C reads a text.
                let text = data.split(|byte| *byte == 0).next().unwrap_or_default();
                let is_long = |line: &[u8]| line.len() >= MAX_ATTRIBUTES_LINE;
                if text.split(|byte| *byte == b'\n').any(is_long) {
                    let what = ".gitattributes has too long lines to parse";
                    self.report(Id::GitattributesLineLength, what);
                }
            }
            Some((Kind::Tree | Kind::Commit | Kind::Tag, _)) => {
                self.report(Id::GitattributesBlob, "non-blob found at .gitattributes");
            }
        }
    }
}

/// Whether a `.gitmodules` says nothing but what no version of git objects to.
fn is_harmless(data: &[u8]) -> bool {
    let meta = gix_config::file::Metadata::default();
    let Ok(file) = gix_config::File::from_bytes_no_includes(
        data,
        meta,
        gix_config::file::init::Options::default(),
    ) else {
        return false;
    };
    let sections = file.sections().filter(|s| s.header().name().eq_ignore_ascii_case(b"submodule"));
    sections.into_iter().all(|section| {
        let name = section.header().subsection_name();
        let is_named = name.is_none_or(|name| is_plain(name) && !name.contains_str(".."));
        is_named
            && section
                .value_names()
                .all(|key| section.values(&key).iter().all(|value| is_plain(value.as_ref())))
    })
}

/// Letters, digits and a little more, no option and no way up. Far less than what git takes.
fn is_plain(value: &BStr) -> bool {
    let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || b"@:/._~+- ".contains(byte);
    let words = value.strip_prefix(b"../").unwrap_or(value);
    !value.is_empty()
        && value.iter().all(is_known)
        && !value.starts_with(b"-")
        && !words.starts_with(b"/")
        && !words.starts_with(b":")
        && !words.contains_str("..")
        && !words.contains_str("::")
        && !words.contains_str(":///")
}
