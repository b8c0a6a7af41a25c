//! I change or remove the interface of a unit that their changed code refers to.

use zit_footprint::ConflictKind;
use zit_model::envelope::Severity;

use crate::Rule;

pub(crate) const RULE: Rule = Rule {
    kind: "callers_affected",
    find: |pair| (pair.conflict.kind == ConflictKind::WriteRead).then_some(Severity::Act),
    says: |pair| {
        format!(
            "refers to {} in {}, which you are changing",
            pair.conflict.mine.shown(),
            pair.conflict.theirs.shown()
        )
    },
    subject: |pair| pair.conflict.mine.clone(),
};
