//! Every key of git's configuration that a server reads, and what becomes of it here: one table, from which
//! [`report`] names what is set in vain. docs/OPERATIONS.md holds the same table, and a test compares them.
//!
//! Adding a key is adding a row.
//!
//! Source: git-config(1) of git 2.47, and the calls of `git_config` in git's `upload-pack.c`, `receive-pack.c`,
//! `http-backend.c` and what they call.

use std::path::Path;

use bstr::{BStr, ByteSlice};

/// What becomes of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It holds here as it does behind git's own server.
    Honoured,
    /// It holds, with the difference that the row tells.
    Partly,
    /// The git program that does the work reads it.
    Git,
    /// Nothing that it could change happens here.
    Nothing,
    /// It is ignored, and git would not ignore it.
    Unsupported,
}

/// One key, or all keys of a section: `section.*`.
pub(crate) struct Row {
    key: &'static str,
    what: Use,
    note: &'static str,
}

const fn row(key: &'static str, what: Use, note: &'static str) -> Row {
    Row { key, what, note }
}

/// By section, in git's spelling. Of several rows that fit a key, the first counts.
pub(crate) const TABLE: &[Row] = &[
    row("include.path", Use::Honoured, ""),
    row("includeIf.*", Use::Honoured, "`gitdir`, `gitdir/i`, `onbranch`, `hasconfig`"),
    row("core.repositoryFormatVersion", Use::Honoured, "0 and 1; any other is not served"),
    row("extensions.objectFormat", Use::Honoured, "`sha1`, `sha256`"),
    row("extensions.refStorage", Use::Honoured, "`files`, or `reftable` with git 2.45 or later"),
    row("extensions.worktreeConfig", Use::Honoured, ""),
    row("extensions.partialClone", Use::Git, "a missing object is asked for by git alone"),
    row("extensions.preciousObjects", Use::Git, ""),
    row("extensions.noop", Use::Honoured, ""),
    row("extensions.noop-v1", Use::Honoured, ""),
    row("extensions.relativeWorktrees", Use::Honoured, ""),
    row("core.bare", Use::Honoured, ""),
    row("core.worktree", Use::Nothing, "work trees are not touched"),
    row("core.hooksPath", Use::Honoured, ""),
    row("core.logAllRefUpdates", Use::Honoured, ""),
    row("core.filesRefLockTimeout", Use::Partly, "at most ten seconds"),
    row("core.packedRefsTimeout", Use::Partly, "at most ten seconds"),
    row("core.sharedRepository", Use::Honoured, "what is below `zit/` stays the server's own"),
    row("core.alternateRefsCommand", Use::Honoured, ""),
    row("core.alternateRefsPrefixes", Use::Honoured, ""),
    row("core.fsync", Use::Nothing, "all that is acknowledged is flushed"),
    row("core.fsyncMethod", Use::Nothing, "the same"),
    row("core.fsyncObjectFiles", Use::Nothing, "the same"),
    row("core.compression", Use::Git, "small answers and loose objects have a level of their own"),
    row("core.looseCompression", Use::Git, "the same"),
    row("core.bigFileThreshold", Use::Git, "16 MiB for a large pack that comes in"),
    row("core.*", Use::Git, ""),
    row("transfer.hideRefs", Use::Honoured, ""),
    row("transfer.fsckObjects", Use::Partly, "checked unless it is false"),
    row("transfer.unpackLimit", Use::Partly, "16 unless set"),
    row("transfer.advertiseObjectInfo", Use::Honoured, ""),
    row("transfer.advertiseSID", Use::Honoured, "ids of both sides are in the server's log"),
    row("transfer.bundleURI", Use::Nothing, "of clients"),
    row("transfer.credentialsInUrl", Use::Nothing, "of clients"),
    row("receive.hideRefs", Use::Honoured, ""),
    row("receive.advertiseAtomic", Use::Honoured, ""),
    row("receive.advertisePushOptions", Use::Partly, "on unless it is false"),
    row("receive.autogc", Use::Honoured, ""),
    row("receive.certNonceSeed", Use::Honoured, ""),
    row("receive.certNonceSlop", Use::Honoured, ""),
    row("receive.denyCurrentBranch", Use::Partly, "`updateInstead` refuses"),
    row("receive.denyDeleteCurrent", Use::Honoured, ""),
    row("receive.denyDeletes", Use::Honoured, ""),
    row("receive.denyNonFastForwards", Use::Honoured, ""),
    row("receive.fsck.*", Use::Honoured, ""),
    row("receive.fsckObjects", Use::Partly, "checked unless it is false"),
    row("receive.keepAlive", Use::Honoured, ""),
    row("receive.maxInputSize", Use::Partly, "`--max-pack` holds beside it"),
    row(
        "receive.procReceiveRefs",
        Use::Partly,
        "`refs/for/<mainline>` and `refs/zit/` are never left to the hook",
    ),
    row("receive.shallowUpdate", Use::Honoured, ""),
    row("receive.unpackLimit", Use::Partly, "16 unless set"),
    row(
        "receive.updateServerInfo",
        Use::Honoured,
        "for other servers; here `info/refs` is made when asked for",
    ),
    row("uploadpack.hideRefs", Use::Honoured, ""),
    row("uploadpack.advertiseBundleURIs", Use::Honoured, ""),
    row("uploadpack.allowAnySHA1InWant", Use::Honoured, ""),
    row("uploadpack.allowFilter", Use::Honoured, ""),
    row("uploadpack.allowReachableSHA1InWant", Use::Honoured, ""),
    row("uploadpack.allowRefInWant", Use::Honoured, ""),
    row("uploadpack.allowSidebandAll", Use::Honoured, ""),
    row("uploadpack.allowTipSHA1InWant", Use::Honoured, ""),
    row(
        "uploadpack.blobPackfileUri",
        Use::Unsupported,
        "no parts of packs are left to other servers",
    ),
    row("uploadpack.keepAlive", Use::Git, ""),
    row("uploadpack.packObjectsHook", Use::Nothing, "git does not take it from a repository"),
    row("uploadpackfilter.*", Use::Git, ""),
    row("lsrefs.unborn", Use::Honoured, ""),
    row("gpg.*", Use::Honoured, "for push certificates"),
    row("http.uploadpack", Use::Honoured, ""),
    row("http.receivepack", Use::Honoured, ""),
    row("http.getanyfile", Use::Honoured, ""),
    row("http.uploadarchive", Use::Honoured, ""),
    row("uploadarchive.*", Use::Git, ""),
    row("bundle.*", Use::Honoured, "told to clients; nothing here makes bundles"),
    row("gc.auto", Use::Partly, "2,000 loose objects unless set; 0 turns it off"),
    row("gc.autoPackLimit", Use::Partly, "32 unless set"),
    row("maintenance.auto", Use::Honoured, ""),
    row("repack.useDeltaBaseOffset", Use::Honoured, ""),
    row("zit.mainline", Use::Honoured, "see \"The mainline\""),
    row("zit.answerCache", Use::Honoured, "see \"Kept answers\""),
    row("zit.hookTimeout", Use::Honoured, "see \"Limits\""),
];

/// Sections of which every key is in the table, so that one which is not is unknown.
const WHOLE: [&str; 6] = ["transfer", "receive", "uploadpack", "lsrefs", "zit", "extensions"];

/// Names in the log what is set and not supported, with its file and line.
pub(crate) fn report(file: &gix_config::File, git_dir: &Path) {
    for Vain { key, note, path, line } in in_vain(file) {
        let path = path.strip_prefix(git_dir).unwrap_or(path);
        let (path, line) = (path.display(), line.unwrap_or_default());
        tracing::warn!(key, note, file = %path, line, "a setting of git's is ignored");
    }
}

/// A setting that is ignored.
#[derive(Debug, PartialEq, Eq)]
struct Vain<'a> {
    key: String,
    note: &'static str,
    path: &'a Path,
    line: Option<usize>,
}

fn in_vain(file: &gix_config::File) -> Vec<Vain<'_>> {
    let mut found = Vec::new();
    for section in file.sections() {
        let (header, meta) = (section.header(), section.meta());
        let (name, sub) = (header.name(), header.subsection_name());
        for value in section.value_names() {
            let key = [Some(name), sub, Some(value.as_str().into())];
            let key = bstr::join(".", key.into_iter().flatten()).to_str_lossy().into_owned();
            let note = match look_up(&key) {
                Some(row) if row.what == Use::Unsupported => row.note,
                None if WHOLE.iter().any(|whole| name.eq_ignore_ascii_case(whole.as_bytes())) => {
                    "unknown"
                }
                Some(_) | None => continue,
            };
            let path = meta.path.as_deref().unwrap_or(Path::new(""));
            let line = std::fs::read(path).ok().and_then(|text| line_of(&text, name, sub, &value));
            found.push(Vain { key, note, path, line });
        }
    }
    found
}

/// The row that a key falls under.
fn look_up(key: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| match row.key.strip_suffix('*') {
        Some(section) => key.get(..section.len()).is_some_and(|k| k.eq_ignore_ascii_case(section)),
        None => key.eq_ignore_ascii_case(row.key),
    })
}

/// The first line, from 1, on which a key is set, as far as the text is laid out as git writes it.
fn line_of(text: &[u8], section: &BStr, sub: Option<&BStr>, key: &str) -> Option<usize> {
    let mut inside = false;
    for (n, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(header) = line.strip_prefix(b"[") {
            let header = header.split(|byte| *byte == b']').next().unwrap_or_default();
            let (name, rest) = header.split_once_str(" ").unwrap_or((header, b""));
            inside = name.eq_ignore_ascii_case(section)
                && rest.trim_with(|c| c == '"')
                    == sub.map(|sub| sub.as_bytes()).unwrap_or_default();
            continue;
        }
        let is_key = line.get(..key.len()).is_some_and(|k| k.eq_ignore_ascii_case(key.as_bytes()))
            && line.get(key.len()).is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'='));
        if inside && is_key {
            return Some(n + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Use {
        const fn word(self) -> &'static str {
            match self {
                Self::Honoured => "honoured",
                Self::Partly => "partly",
                Self::Git => "by git",
                Self::Nothing => "nothing to do",
                Self::Unsupported => "not supported",
            }
        }
    }

    #[test]
    fn the_table_of_the_manual_is_this_table() {
        let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/OPERATIONS.md");
        let manual = std::fs::read_to_string(manual).unwrap();
        let expected: Vec<String> = TABLE
            .iter()
            .map(|Row { key, what, note }| {
                format!("| `{key}` | {} | {note} |", what.word()).replace("|  |", "| |")
            })
            .collect();
        let start = manual.find("## git's configuration").expect("the manual has the section");
        let found: Vec<&str> = manual[start..]
            .lines()
            .skip_while(|l| !l.starts_with("| `"))
            .take_while(|l| !l.is_empty())
            .collect();
        assert_eq!(found, expected, "copy the right side:\n{}", expected.join("\n"));
    }

    #[test]
    fn what_is_set_in_vain_is_named_with_its_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let text = "[core]\n\tbare = true\n[uploadpack]\n\tallowFilter = true\n\tblobpackfileuri = x\n[bundle \"a\"]\n\turi = y\n\
            [receive]\n\tfrotz = 1\n[user]\n\tname = z\n";
        std::fs::write(&path, text).unwrap();
        let meta = gix_config::file::Metadata {
            path: Some(path.clone()),
            ..gix_config::Source::Local.into()
        };
        let file = gix_config::File::from_bytes_no_includes(
            text.as_bytes(),
            meta,
            gix_config::file::init::Options::default(),
        )
        .unwrap();
        let found = in_vain(&file);
        let found: Vec<_> = found.iter().map(|v| (v.key.as_str(), v.line)).collect();
        let expected = [("uploadpack.blobpackfileuri", Some(5)), ("receive.frotz", Some(9))];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_key_is_looked_up_whatever_its_case() {
        assert_eq!(look_up("RECEIVE.DENYDELETES").unwrap().what, Use::Honoured);
        assert_eq!(look_up("receive.fsck.missingEmail").unwrap().what, Use::Honoured);
        assert_eq!(look_up("core.pager").unwrap().what, Use::Git);
        assert!(look_up("user.name").is_none());
    }
}
