//! A footprint as the JSON shapes that people and other tools read. The only place that knows them.
//!
//! ```text
//! {"format": 1, "version": 1,
//!  "writes": [{"resource", "change", "interface", "old"?, "new"?, "oldSignature"?, "newSignature"?, "lines"?}],
//!  "signatures": [resource], "refs": [name], "reads": [resource],
//!  "files": [{"path", "fallback"?}]}
//! ```
//!
//! Every list is sorted, so the same footprint is the same text. Never read back to judge anything.
//!
//! Source: `spec/footprints.md`, "Document".

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{Footprint, VERSION};

/// The version of the shapes.
pub const FORMAT: u32 = 1;

/// A footprint for a wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FootprintDocument {
    /// [`FORMAT`].
    pub format: u32,
    /// [`VERSION`] of the algorithm.
    pub version: u32,
    /// What is written, by resource.
    pub writes: Vec<WriteDocument>,
    /// The resources among them that code elsewhere may notice.
    pub signatures: Vec<String>,
    /// Every identifier mentioned by what is written.
    pub refs: BTreeSet<String>,
    /// What the author declares to have read.
    pub reads: Vec<String>,
    /// Every file written, and why it stayed at file level if it did.
    pub files: Vec<FileDocument>,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteDocument {
    /// The resource, canonical.
    pub resource: String,
    /// `added`, `removed`, `interface`, `body`, `docs` or `file`.
    pub change: &'static str,
    /// Whether code elsewhere may notice.
    pub interface: bool,
    /// The unit's hash before, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The unit's hash after, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The declaration before, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old_signature: Option<String>,
    /// The declaration after, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_signature: Option<String>,
    /// First and last line, from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
}

/// One file that has writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileDocument {
    /// The path, without escapes.
    pub path: String,
    /// Why the whole file is written, in kebab case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<&'static str>,
}

impl From<&Footprint> for FootprintDocument {
    fn from(footprint: &Footprint) -> Self {
        let mut files: BTreeMap<&str, Option<&'static str>> = BTreeMap::new();
        for resource in footprint.writes.keys() {
            files.entry(resource.path()).or_default();
        }
        for (resource, fallback) in &footprint.fallbacks {
            files.insert(resource.path(), Some(fallback.as_str()));
        }
        Self {
            format: FORMAT,
            version: VERSION,
            writes: footprint
                .writes
                .iter()
                .map(|(resource, write)| WriteDocument {
                    resource: resource.to_string(),
                    change: write.change.as_str(),
                    interface: write.is_noticed(),
                    old: write.old.map(|hash| hash.to_string()),
                    new: write.new.map(|hash| hash.to_string()),
                    old_signature: write.old_signature.clone(),
                    new_signature: write.new_signature.clone(),
                    lines: write.new_lines.or(write.old_lines),
                })
                .collect(),
            signatures: footprint.signatures().map(|(resource, _)| resource.to_string()).collect(),
            refs: footprint
                .writes
                .values()
                .flat_map(|write| &write.names)
                .map(ToString::to_string)
                .collect(),
            reads: footprint.reads.iter().map(ToString::to_string).collect(),
            files: files
                .into_iter()
                .map(|(path, fallback)| FileDocument { path: path.to_owned(), fallback })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileKind, Side, compare};
    use zit_model::Resource;

    #[test]
    fn a_footprint_is_one_json_document() {
        let side = |text| Some(Side { kind: FileKind::Regular, bytes: str::as_bytes(text) });
        let files = [("x.rs", "fn a() {}", "fn a(x: T) {}"), ("b.bin", "1", "2")];
        let mut footprint =
            Footprint::from_files(files.map(|(path, old, new)| {
                compare(&Resource::file(path).unwrap(), side(old), side(new))
            }));
        footprint.reads.insert("y.rs#T::m".parse().unwrap());
        let json = serde_json::to_value(FootprintDocument::from(&footprint)).unwrap();
        let write = &json["writes"][1];
        assert_eq!(write["resource"], "x.rs#a");
        assert_eq!(write["change"], "signature");
        assert_eq!(write["oldSignature"], "fn a()");
        assert_eq!(write["newSignature"], "fn a(x: T)");
        assert_eq!(write["lines"], serde_json::json!([1, 1]));
        assert_eq!(json["signatures"], serde_json::json!(["x.rs#a"]));
        assert_eq!(json["refs"], serde_json::json!(["T"]));
        assert_eq!(json["reads"], serde_json::json!(["y.rs#T::m"]));
        let files =
            serde_json::json!([{"path": "b.bin", "fallback": "no-grammar"}, {"path": "x.rs"}]);
        assert_eq!(json["files"], files);
        assert_eq!((&json["format"], &json["version"]), (&1.into(), &VERSION.into()));
    }
}
