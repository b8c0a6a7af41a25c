//! Forms of one change: what a rebase or an amended commit keeps of a commit, and which work has landed in a later form.
//!
//! Use [`Forms::of`] for what has just landed, and [`Forms::end`] for each open item of the agent that landed it. A form
//! ends only work of the agent's own: what a commit says of itself proves nothing to anybody else.
//!
//! Source: `spec/accept.md`, "After a landing".

use std::collections::BTreeSet;

use bstr::ByteSlice;
use zit_footprint::Footprint;
use zit_model::{AgentId, Oid, trailers};
use zit_store::{Commit, Objects, StoreError};

/// The trailer that names a change, whatever becomes of its commits.
const CHANGE: &str = "Zit-Change";

/// Who lands something, and what it writes.
#[derive(Clone, Copy)]
pub(crate) struct Lander<'a> {
    /// Whose earlier work ends.
    pub(crate) agent: &'a AgentId,
    /// What the landing writes.
    pub(crate) footprint: &'a Footprint,
}

/// The forms of some commits.
#[derive(Default)]
pub(crate) struct Forms(BTreeSet<Form>);

/// What is the same in every form of one change. A commit may have one of each.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// The value of its `Zit-Change` trailer.
    Named(String),
    /// Its author, the author's time, and its subject.
    Written { name: Vec<u8>, email: Vec<u8>, time: u64, subject: Vec<u8> },
}

impl Forms {
    /// The forms of `commits`. A merge has none: it is made anew, not rebased.
    pub(crate) fn of(
        objects: &Objects,
        commits: impl IntoIterator<Item = Oid>,
    ) -> Result<Self, StoreError> {
        let mut forms = Self::default();
        for commit in commits {
            let commit = objects.commit(commit)?;
            if commit.parents.len() < 2 {
                forms.0.extend(of(&commit));
            }
        }
        Ok(forms)
    }

    /// Whether one of these, which `to` has, is a later form of work at `head`: each commit that `head` has and `to` lacks
    /// is another form of one that `to` has and `head` lacks. `to` is where current comes to stand; what it has beside
    /// these landed before.
    pub(crate) fn end(&self, objects: &Objects, head: Oid, to: Oid) -> Result<bool, StoreError> {
        let mut pending = Vec::new();
        for commit in objects.commits_between(Some(to), head)? {
            let commit = objects.commit(commit)?;
            if commit.parents.len() < 2 {
                pending.push(of(&commit));
            }
        }
        if !pending.iter().any(|forms| self.has(forms)) {
            return Ok(false);
        }
        let landed = Self::of(objects, objects.commits_between(Some(head), to)?)?;
        Ok(pending.iter().all(|forms| landed.has(forms)))
    }

    fn has(&self, forms: &[Form]) -> bool {
        forms.iter().any(|form| self.0.contains(form))
    }
}

fn of(commit: &Commit) -> Vec<Form> {
    let author = &commit.author;
    let subject = commit.message.lines().next().unwrap_or_default();
    let written = Form::Written {
        name: author.name.to_vec(),
        email: author.email.to_vec(),
        time: author.time.0,
        subject: subject.to_vec(),
    };
    let trailers = trailers::parse(&commit.message.to_str_lossy());
    let named = trailers::values(&trailers, CHANGE).last().map(|id| Form::Named(id.to_owned()));
    std::iter::once(written).chain(named).collect()
}
