//! Whether the files of refs follow the journal.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use zit_model::Oid;

use super::Finding;
use crate::journal::{Record, Seq};
use crate::refs::is_deferred;

/// What a finding is about that needs nothing but time, or a start.
pub(super) const PENDING: &str = "pending";

/// What to do where a crash left something to do.
pub(super) const START: &str = "start the server, which finishes what a crash left when it opens the repository; then check again";

/// Compares files, read before the journal was, with the records. Up to `settled` all is in the files.
pub(super) fn compare(
    records: &[Record],
    settled: Seq,
    files: &BTreeMap<BString, Oid>,
    in_use: bool,
) -> Vec<Finding> {
    // What each file must hold at least, and what the ref took since.
    let mut courses: BTreeMap<BString, Vec<Option<Oid>>> = BTreeMap::new();
    for record in records {
        for update in &record.changes {
            let values = courses.entry(update.name.as_bstr().to_owned()).or_default();
            if record.seq <= settled {
                values.clear();
            } else if values.is_empty() {
                values.push(update.change.old_value());
            }
            values.push(update.change.new_value());
        }
    }
    let mut findings = Vec::new();
    let mut n_pending = 0;
    for (name, values) in &courses {
        let found = files.get(name).copied();
        let Some(last) = values.last().copied().filter(|last| *last != found) else { continue };
        if values.contains(&found) {
            n_pending += 1;
        } else if is_deferred(name) {
            // Any other ref may be moved by other programs.
            findings.push(astray(name, found, last));
        }
    }
    if n_pending > 0 {
        let what = format!("{n_pending} refs are journaled and not yet in their files");
        let next = if in_use { "nothing: the server writes them within a moment" } else { START };
        findings.push(Finding::note(PENDING, &what, next));
    }
    findings
}

fn astray(name: &BString, found: Option<Oid>, last: Option<Oid>) -> Finding {
    let shown = |oid: Option<Oid>| oid.map_or_else(|| "absent".to_owned(), |oid| oid.to_string());
    let name = name.to_str_lossy();
    let what = format!(
        "{name} is {}; the journal says {}: something else wrote it",
        shown(found),
        shown(last)
    );
    let put_back = match last {
        Some(oid) => format!("git update-ref {name} {oid}"),
        None => format!("git update-ref -d {name}"),
    };
    let next = format!("stop the server, and if this was not meant: {put_back}");
    Finding::problem("ref", &what, &next)
}
