//! `bundle.*`: what clients are told of bundles to begin with, where `uploadpack.advertiseBundleURIs` says that they are.
//!
//! Keys are passed on, not understood: what a list of bundles means is for the client.
//!
//! Source: git's `bundle-uri.c`, `config_to_packet_line`; git-config(1), "Syntax", for how keys are written.

use bstr::{BString, ByteSlice};

/// Every key below `bundle.` and its value, in the order of the files; `None` unless it is to be told.
///
/// A key without a value is left out: it says nothing that a client could read.
pub(crate) fn read(file: &gix_config::File) -> Option<Vec<(BString, BString)>> {
    if file.boolean("uploadpack.advertiseBundleURIs").ok().flatten() != Some(true) {
        return None;
    }
    let mut found = Vec::new();
    for section in file.sections() {
        let header = section.header();
        if !header.name().eq_ignore_ascii_case(b"bundle") {
            continue;
        }
        let names: Vec<String> =
            section.value_names().map(|name| name.to_ascii_lowercase()).collect();
        for (at, name) in names.iter().enumerate() {
            if section.value_implicit(name) == Some(None) {
                continue;
            }
            let n_before = names.iter().take(at).filter(|before| *before == name).count();
            let Some(value) = section.values(name).into_iter().nth(n_before) else { continue };
            let mut key = BString::from("bundle.");
            if let Some(sub) = header.subsection_name() {
                key.extend_from_slice(sub.as_bytes());
                key.push(b'.');
            }
            key.extend_from_slice(name.as_bytes());
            found.push((key, value));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Option<Vec<String>> {
        let read = read(&gix_config::File::try_from(text).unwrap())?;
        Some(read.into_iter().map(|(key, value)| format!("{key}={value}")).collect())
    }

    #[test]
    fn keys_are_written_as_git_writes_them_in_the_order_of_the_file() {
        let text = "[uploadpack]\nadvertiseBundleURIs\n[Bundle]\nVersion = 1\n\
            [bundle \"A b\"]\nuri = \"http://x y\"\ncreationToken = 2\nuri = z\n[bundle]\nmode = all\nnothing\n";
        let expected = [
            "bundle.version=1",
            "bundle.A b.uri=http://x y",
            "bundle.A b.creationtoken=2",
            "bundle.A b.uri=z",
            "bundle.mode=all",
        ];
        assert_eq!(keys(text).unwrap(), expected);
    }

    #[test]
    fn nothing_is_told_unless_the_repository_says_so() {
        for text in ["", "[uploadpack]\nadvertiseBundleURIs = no\n"] {
            assert_eq!(keys(&format!("{text}[bundle]\nversion = 1\n")), None, "{text:?}");
        }
        assert_eq!(keys("[uploadpack]\nadvertiseBundleURIs = 1\n"), Some(vec![]));
    }
}
