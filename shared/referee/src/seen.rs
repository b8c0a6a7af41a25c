//! Since when claims and items stand, kept from one process to the next: the file `zit/seen` in the git directory.
//!
//! An embedded referee starts with each command, and no lease would ever run out if each start were a fresh observation.
//! Moments are kept as the machine's boot and its clock since then: within one boot they go on, in another they mean
//! nothing and everything is observed afresh. So the file needs no flush: what power loss takes, it also outdates.
//!
//! ```text
//! zit-seen 1 <boot id>
//! claim <key> <oid> <milliseconds since boot>
//! item <refname> <oid> <milliseconds since boot>
//! ```
//!
//! A referee that does not count on removes the file: what happens while it runs is not in it.
//!
//! Source: `spec/claims.md`, "Lapse".

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zit_model::Instant;

use crate::view::View;

/// The words at the start of the file, with its version.
const MAGIC: &str = "zit-seen 1 ";

/// What is remembered of moments.
#[derive(Debug)]
pub(crate) struct Seen(Option<Kept>);

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    boot: String,
    /// What the file holds.
    text: String,
}

impl Seen {
    /// Remembers nothing, and makes sure that nobody later does.
    pub(crate) fn nothing(git_dir: &Path) -> Self {
        match fs::remove_file(path(git_dir)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "zit/seen cannot be removed");
            }
            Ok(()) | Err(_) => {}
        }
        Self(None)
    }

    /// Goes on from what was seen in the same boot.
    pub(crate) fn since(git_dir: &Path, boot: String) -> Self {
        let path = path(git_dir);
        // What cannot be read is observed afresh.
        let text = fs::read_to_string(&path).unwrap_or_default();
        Self(Some(Kept { path, boot, text }))
    }

    /// Gives claims and items that did not change the moments that they had.
    pub(crate) fn restore(&self, view: &mut View, now: Instant) {
        let Some(kept) = &self.0 else { return };
        let moments = kept.moments();
        let find = |kind, name: String, oid: zit_model::Oid| {
            // A moment that lies ahead is of another clock.
            moments.get(&(kind, name, oid.to_string())).filter(|at| **at <= now).copied()
        };
        for (key, claim) in view.claims.iter_mut() {
            if let Some(at) = find("claim", key.clone(), claim.oid) {
                claim.renewed = at;
            }
        }
        for (name, item) in &mut view.items {
            if let Some(at) = find("item", name.to_string(), item.head) {
                item.pushed = at;
            }
        }
    }

    /// Writes the moments of `view`, if they are others than before.
    pub(crate) fn save(&mut self, view: &View) {
        let Some(kept) = &mut self.0 else { return };
        let text = kept.text_of(view);
        if text == kept.text {
            return;
        }
        let temporary = kept.path.with_extension("new");
        let written =
            fs::write(&temporary, &text).and_then(|()| fs::rename(&temporary, &kept.path));
        match written {
            Ok(()) => kept.text = text,
            // An old moment would end a lease early; without a file, leases only start anew.
            Err(error) => {
                tracing::warn!(%error, "zit/seen cannot be written");
                let _ = fs::remove_file(&kept.path);
            }
        }
    }
}

impl Kept {
    fn moments(&self) -> HashMap<(&str, String, String), Instant> {
        let mut lines = self.text.lines();
        let boot = lines.next().and_then(|line| line.strip_prefix(MAGIC));
        if boot != Some(self.boot.as_str()) {
            return HashMap::new();
        }
        let moment = |line| {
            let mut words = str::split(line, ' ');
            let (kind, name) = (words.next()?, words.next()?.to_owned());
            let oid = words.next()?.to_owned();
            let millis = words.next()?.parse().ok()?;
            Some(((kind, name, oid), Instant::at(Duration::from_millis(millis))))
        };
        lines.filter_map(moment).collect()
    }

    fn text_of(&self, view: &View) -> String {
        let start = Instant::at(Duration::ZERO);
        let mut text = format!("{MAGIC}{}\n", self.boot);
        for (key, claim) in view.claims.iter() {
            let millis = claim.renewed.since(start).as_millis();
            text.push_str(&format!("claim {key} {} {millis}\n", claim.oid));
        }
        for (name, item) in &view.items {
            let millis = item.pushed.since(start).as_millis();
            text.push_str(&format!("item {name} {} {millis}\n", item.head));
        }
        text
    }
}

fn path(git_dir: &Path) -> PathBuf {
    git_dir.join("zit").join("seen")
}
