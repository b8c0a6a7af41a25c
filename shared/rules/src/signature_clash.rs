//! Both change the interface of one unit, or one changes what the other removes, or both add it differently.

use zit_footprint::ConflictKind;
use zit_model::envelope::Severity;

use crate::Rule;

pub(crate) const RULE: Rule = Rule {
    kind: "signature_clash",
    find: |pair| {
        let (mine, theirs) = (pair.my_write()?, pair.their_write()?);
        (pair.conflict.kind == ConflictKind::WriteWrite
            && pair.conflict.mine == pair.conflict.theirs
            && pair.conflict.mine.unit().is_some()
            && mine.is_noticed()
            && theirs.is_noticed())
        .then_some(Severity::Act)
    },
    says: |pair| {
        format!("is changing the signature of {}, and so are you", pair.conflict.theirs.shown())
    },
    subject: |pair| pair.conflict.theirs.clone(),
};
