//! Units that an earlier version has as well: taken from its records instead of being walked.
//!
//! A unit without units inside is recorded when it is left, and taken from the records when the same node is met again with
//! the same things around it. Whatever would make the two differ keeps it from being recorded.

use std::sync::Arc;

use super::{Frame, Keep, Names, Walk};
use crate::{
    mention::Mentions,
    parsed::{Around, Record, Records},
    plan::LICENCE_ROWS,
    shape::Uses,
};

/// What is known of units, and what becomes known.
pub(super) struct Recorder<'s> {
    pub(super) known: Option<&'s Records>,
    pub(super) keep: Keep,
    /// The unit that is being walked.
    pub(super) open: Option<Open>,
    pub(super) records: Records,
}

/// A unit that is being walked and may be recorded.
pub(super) struct Open {
    node: usize,
    fragment: usize,
    around: Around,
    /// How much its fragment had before, of body, documentation and mentions.
    before: [usize; 3],
    /// How many names were bound, and waited to be.
    n_bound: usize,
    n_waiting: usize,
    /// How often imports were added to.
    n_noted: usize,
    /// Whether anything inside belongs to another fragment.
    is_mixed: bool,
}

impl Recorder<'_> {
    /// A token was given to a fragment.
    pub(super) fn sees(&mut self, fragment: usize) {
        if let Some(open) = &mut self.open {
            open.is_mixed |= open.fragment != fragment;
        }
    }
}

impl<'s, 't> Walk<'_, 's, 't> {
    /// Takes a unit that starts from the records, if it is there; else it may be recorded.
    pub(super) fn starts_known(&mut self, frame: &Frame<'t>) -> bool {
        // A unit with units inside is not recorded.
        self.recorder.open = None;
        let keeps = self.recorder.keep == Keep::Records;
        if self.recorder.known.is_none() && !keeps {
            return false;
        }
        let Some(around) = self.around(frame) else { return false };
        let node = frame.node.id();
        if let Some(known) = self.recorder.known
            && let Some(record) = known.get(&node).filter(|record| record.around == around)
        {
            if keeps {
                self.recorder.records.insert(node, Arc::clone(record));
            }
            self.take(frame, record);
            return true;
        }
        if keeps {
            self.open(frame, around);
        }
        false
    }

    /// What the unit that starts depends on beside its node; `None` where that is more than usual.
    fn around(&self, frame: &Frame<'t>) -> Option<Around> {
        let is_plain =
            frame.names == Names::Mention && frame.uses == Uses::NONE && !frame.exhaustive;
        if !is_plain || self.gap(frame.node.start_byte()).is_some() {
            return None;
        }
        let fragment = self.plan.fragments.get(frame.fragment)?;
        Some(Around {
            place: (frame.node.kind_id(), frame.field),
            row: frame.node.start_position().row.min(LICENCE_ROWS),
            scopes: self.scopes.said()?,
            prefix: (fragment.interface.len(), fragment.signature.len()),
        })
    }

    fn take(&mut self, frame: &Frame<'t>, record: &'s Record) {
        if let Some((fragment, list)) = self.comma.take() {
            self.push(fragment, list, ",");
        }
        let Some(fragment) = self.plan.fragments.get_mut(frame.fragment) else { return };
        fragment.interface.extend_from_slice(&record.interface);
        fragment.body.extend_from_slice(&record.body);
        fragment.docs.extend_from_slice(&record.docs);
        fragment.signature.push_str(&record.signature);
        fragment.known = Some(&record.mentions);
        (self.after_item, self.after_dot) = (record.after_item, record.after_dot);
        self.last_end = self.last_end.max(frame.node.end_byte());
    }

    fn open(&mut self, frame: &Frame<'t>, around: Around) {
        let Some(fragment) = self.plan.fragments.get(frame.fragment) else { return };
        self.recorder.open = Some(Open {
            node: frame.node.id(),
            fragment: frame.fragment,
            around,
            before: [fragment.body.len(), fragment.docs.len(), fragment.mentions.len()],
            n_bound: self.scopes.len(),
            n_waiting: self.scopes.n_waiting(),
            n_noted: self.plan.n_noted,
            is_mixed: false,
        });
    }

    /// Records the unit that was left, if it is the one that is open and has nothing to do with what is around it.
    pub(super) fn record(&mut self, frame: &Frame<'t>) {
        let Some(open) = self.recorder.open.take_if(|open| open.node == frame.node.id()) else {
            return;
        };
        let is_closed = self.comma.is_none()
            && self.scopes.len() == open.n_bound
            && self.scopes.n_waiting() == open.n_waiting
            && self.plan.n_noted == open.n_noted
            && self.gap(frame.node.end_byte()).is_none();
        if open.is_mixed || !is_closed {
            return;
        }
        if let Some(record) = self.recorded(&open) {
            self.recorder.records.insert(open.node, Arc::new(record));
        }
    }

    fn recorded(&self, open: &Open) -> Option<Record> {
        let fragment = self.plan.fragments.get(open.fragment)?;
        let [body, docs, mentions] = open.before;
        Some(Record {
            around: open.around.clone(),
            interface: fragment.interface.get(open.around.prefix.0..)?.into(),
            body: fragment.body.get(body..)?.into(),
            docs: fragment.docs.get(docs..)?.into(),
            signature: fragment.signature.get(open.around.prefix.1..)?.into(),
            mentions: Mentions::of(fragment.mentions.get(mentions..)?.to_vec()),
            after_item: self.after_item,
            after_dot: self.after_dot,
        })
    }
}
