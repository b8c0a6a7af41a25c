//! Both change one unit, at least one of them only inside.

use zit_footprint::{ConflictKind, Write};
use zit_model::envelope::Severity;

use crate::Rule;

pub(crate) const RULE: Rule =
    Rule {
        kind: "body_overlap",
        find: |pair| {
            let theirs_moves_the_signature = pair.their_write().is_some_and(Write::is_noticed);
            (pair.conflict.kind == ConflictKind::WriteWrite)
                .then_some(if theirs_moves_the_signature { Severity::Act } else { Severity::Warn })
        },
        says: |pair| {
            let what = match pair.their_write() {
                Some(write) if write.is_noticed() => "is changing the signature of",
                _ => "is changing",
            };
            format!("{what} {}, and so are you", pair.conflict.theirs.shown())
        },
        subject: |pair| pair.conflict.theirs.clone(),
    };
