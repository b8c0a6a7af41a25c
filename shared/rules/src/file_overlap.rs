//! Both change one file, and at least one of them as a whole: no grammar reads it, or it does not parse.

use zit_footprint::ConflictKind;
use zit_model::envelope::Severity;
use zit_model::resource::Part;

use crate::Rule;

pub(crate) const RULE: Rule = Rule {
    kind: "file_overlap",
    find: |pair| {
        let whole = [&pair.conflict.mine, &pair.conflict.theirs]
            .into_iter()
            .any(|resource| *resource.part() == Part::File);
        (pair.conflict.kind == ConflictKind::WriteWrite && whole).then_some(Severity::Warn)
    },
    says: |pair| {
        format!("is changing {}, and so are you", pair.conflict.theirs.with(Part::File).shown())
    },
    subject: |pair| pair.conflict.theirs.clone(),
};
