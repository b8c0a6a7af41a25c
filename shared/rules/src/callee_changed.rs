//! They change or remove the interface of a unit that my changed code refers to.

use zit_footprint::ConflictKind;
use zit_model::envelope::Severity;

use crate::Rule;

pub(crate) const RULE: Rule = Rule {
    kind: "callee_changed",
    find: |pair| (pair.conflict.kind == ConflictKind::ReadWrite).then_some(Severity::Act),
    says: |pair| {
        format!(
            "is changing {}, which your {} refers to",
            pair.conflict.theirs.shown(),
            pair.conflict.mine
        )
    },
    subject: |pair| pair.conflict.theirs.clone(),
};
