//! Phrases for facts that several refusals share: who holds what, what landed before, files, counts and times.

use std::time::Duration;

use zit_model::envelope::Line;
use zit_model::{Resource, quote};

use crate::verdict::{Hold, Holder, Staleness};

/// The first holder in one line, with the way out.
pub(super) fn held_by(holder: &Holder, resource: &Resource) -> String {
    let resource = resource.shown();
    match &holder.hold {
        Hold::Claim { left } => {
            let left = time(*left);
            format!(
                "held by {}, lease left {left}; push the claim again then: {resource}",
                holder.agent
            )
        }
        Hold::InFlight { name, .. } => {
            format!("being written by {}, not landed yet; see {name}: {resource}", holder.agent)
        }
    }
}

/// Whose claim a landing would write over, in one line, with the way out.
pub(super) fn fence(holder: &Holder) -> String {
    let (agent, resource) = (&holder.agent, holder.resource.shown());
    match &holder.hold {
        Hold::Claim { left } => {
            let left = time(*left);
            format!("claimed by {agent}, lease left {left}; land again then: it writes {resource}")
        }
        Hold::InFlight { .. } => format!("{agent} is writing {resource}, which it writes too"),
    }
}

/// One holder as a fact.
pub(crate) fn holder_line(holder: &Holder) -> Line {
    let doing = match &holder.intent {
        Some(intent) => format!(" is doing {} and", quote::quoted(intent)),
        None => String::new(),
    };
    Line::new(match &holder.hold {
        Hold::Claim { left } => {
            format!(
                "{}{doing} holds {}, lease left {}",
                holder.agent,
                holder.resource.shown(),
                time(*left)
            )
        }
        Hold::InFlight { name, since } => format!(
            "{}{doing} is writing {} on {name}, pushed {} ago",
            holder.agent,
            holder.resource.shown(),
            time(*since)
        ),
    })
}

pub(super) fn stale_reason(reasons: &[Staleness]) -> String {
    let Some(first) = reasons.first() else { return "stale".into() };
    let who = first.landed.as_ref().map_or_else(
        || "what landed".to_owned(),
        |(commit, author)| format!("{} ({})", quote::quoted(author), commit.short()),
    );
    format!("stale: {} was written by {who}; rebase and land again", first.conflict.theirs.shown())
}

pub(super) fn staleness_line(reason: &Staleness) -> Line {
    let who = reason.landed.as_ref().map_or_else(String::new, |(commit, author)| {
        format!(", landed by {} in {}", quote::quoted(author), commit.short())
    });
    let conflict = &reason.conflict;
    let what = match conflict.kind {
        zit_footprint::ConflictKind::WriteWrite => {
            format!("both write {}", conflict.theirs.shown())
        }
        zit_footprint::ConflictKind::ReadWrite => {
            format!(
                "your {} relies on {}, which changed",
                conflict.mine.shown(),
                conflict.theirs.shown()
            )
        }
        zit_footprint::ConflictKind::WriteRead => {
            format!(
                "{} relies on {}, which you change",
                conflict.theirs.shown(),
                conflict.mine.shown()
            )
        }
    };
    Line::new(format!("{what}{who}"))
}

/// A path of the repository, which any bytes may make up.
pub(super) fn path(path: &str) -> String {
    Resource::file(path).map_or_else(|| quote::quoted(path), |file| file.shown())
}

pub(super) fn list(paths: &[String]) -> String {
    match paths {
        [] => "the same lines".into(),
        [one] => path(one),
        [one, more @ ..] => format!("{} and {} more", path(one), more.len()),
    }
}

/// `1 unit`, `2 units`.
pub(crate) fn units(n: usize) -> String {
    if n == 1 { "1 unit".into() } else { format!("{n} units") }
}

/// `9m58s`, `2h03m`, `3d04h`; whole seconds, rounded up, so that waiting that long is enough.
pub(crate) fn time(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_rounded_up() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1s"),
            (59_000, "59s"),
            (598_000, "9m58s"),
            (3_600_000, "1h00m"),
            (90_000_000, "1d01h"),
        ] {
            assert_eq!(time(Duration::from_millis(millis)), text);
        }
    }
}
