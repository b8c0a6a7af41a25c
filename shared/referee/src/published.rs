//! Published footprints: for the head of each open item one ref, `refs/zit/footprints/<oid>`, so that clients without a
//! parser can read what it touches.
//!
//! [`json`] makes the document beside the actor. [`Published`] is what the view knows of the refs; a plan asks
//! [`Published::changes`] what its transaction has to add and remove. Never read back to judge anything.
//!
//! Source: `spec/refs.md`, "Published footprints".

use std::collections::{BTreeMap, BTreeSet};

use zit_footprint::{Footprint, document};
use zit_model::Oid;

use crate::view::OpenItem;

/// The longest published document, in bytes. Source: ours; it is made and stored with the push that opens the item.
pub(crate) const MAX_JSON: usize = 256 << 10;

/// How many footprints are published. Source: ours; the work that was pushed longest ago goes without first.
pub(crate) const MAX_PUBLISHED: usize = 4096;

/// The document that is published of a footprint.
pub(crate) fn json(footprint: &Footprint) -> String {
    document::to_json_within(footprint, MAX_JSON)
}

/// The footprints that refs publish.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// What each ref holds, by the head that names it.
    blobs: BTreeMap<Oid, Oid>,
    /// Heads among them that no open item has, by what stock git did: the next transaction removes their refs.
    pub(crate) adrift: BTreeSet<Oid>,
}

/// What a transaction does to published footprints.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Heads whose footprint is to be published.
    pub(crate) publish: BTreeSet<Oid>,
    /// Heads whose refs go, with what they hold.
    pub(crate) remove: BTreeMap<Oid, Oid>,
}

impl Published {
    /// What the ref of a head holds, as far as is known.
    pub(crate) fn blob(&self, head: Oid) -> Option<Oid> {
        self.blobs.get(&head).copied()
    }

    /// Remembers what the ref of a head holds; `None` when there is none.
    pub(crate) fn set(&mut self, head: Oid, blob: Option<Oid>) {
        if let Some(blob) = blob {
            self.blobs.insert(head, blob);
        } else {
            self.blobs.remove(&head);
            self.adrift.remove(&head);
        }
    }

    /// Looks for refs that no open item stands behind.
    pub(crate) fn find_adrift<'a>(&mut self, items: impl Iterator<Item = &'a OpenItem>) {
        let heads: BTreeSet<Oid> = items.map(|item| item.head).collect();
        self.adrift = self.blobs.keys().filter(|head| !heads.contains(head)).copied().collect();
    }

    /// What is to be done so that every item of `after` whose head is among `touched` is published, and none that is
    /// gone: `touched` are the heads that the transaction opens, moves away from, or closes.
    pub(crate) fn changes<'a>(
        &self,
        touched: &BTreeSet<Oid>,
        after: impl Iterator<Item = &'a OpenItem> + Clone,
    ) -> Changes {
        let standing: BTreeSet<Oid> =
            after.clone().map(|item| item.head).filter(|h| touched.contains(h)).collect();
        let mut changes = Changes::default();
        for head in touched {
            match (standing.contains(head), self.blob(*head)) {
                (true, None) => drop(changes.publish.insert(*head)),
                (false, Some(blob)) => drop(changes.remove.insert(*head, blob)),
                (true, Some(_)) | (false, None) => {}
            }
        }
        for head in &self.adrift {
            // Work may have been opened again where it was.
            let is_open = after.clone().any(|item| item.head == *head);
            let blob = self.blob(*head).filter(|_| !is_open);
            changes.remove.extend(blob.map(|blob| (*head, blob)));
        }
        self.bound(&mut changes, after);
        changes
    }

    /// Removes those pushed longest ago, where there would be too many.
    fn bound<'a>(&self, changes: &mut Changes, after: impl Iterator<Item = &'a OpenItem>) {
        let n = self.blobs.len() + changes.publish.len() - changes.remove.len();
        let Some(excess) = n.checked_sub(MAX_PUBLISHED).filter(|excess| *excess > 0) else {
            return;
        };
        let mut oldest: Vec<_> = after.map(|item| (item.pushed, item.head)).collect();
        oldest.sort_unstable();
        let mut dropped = BTreeSet::new();
        for (_, head) in oldest {
            let removable = self.blob(head).filter(|_| !changes.publish.contains(&head));
            if let Some(blob) = removable.filter(|_| dropped.len() < excess && dropped.insert(head))
            {
                changes.remove.insert(head, blob);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use zit_model::{AgentId, Instant, ItemId, RefName};

    use super::*;

    fn oid(n: usize) -> Oid {
        Oid::from_hex(format!("{n:040x}").as_bytes()).unwrap()
    }

    fn item(n: usize, pushed: u64) -> OpenItem {
        OpenItem {
            agent: AgentId::new("ada").unwrap(),
            item: ItemId::new("aaaaaaaaaaaa").unwrap(),
            intent: None,
            name: RefName::new(format!("refs/heads/{n}")).unwrap(),
            head: oid(n),
            footprint: Arc::default(),
            pushed: Instant::at(Duration::from_secs(pushed)),
        }
    }

    fn published(heads: impl IntoIterator<Item = usize>) -> Published {
        let mut published = Published::default();
        for head in heads {
            published.set(oid(head), Some(oid(1_000_000 + head)));
        }
        published
    }

    fn heads(of: &[usize]) -> BTreeSet<Oid> {
        of.iter().copied().map(oid).collect()
    }

    #[test]
    fn a_head_is_published_once_and_until_its_last_item_ends() {
        let (known, items) = (published([1, 2]), [item(1, 0), item(3, 0), item(3, 0)]);
        let changes = known.changes(&heads(&[1, 2, 3, 4]), items.iter());
        assert_eq!(changes.publish, heads(&[3]));
        assert_eq!(changes.remove.keys().copied().collect::<BTreeSet<_>>(), heads(&[2]));
    }

    #[test]
    fn what_no_item_stands_behind_goes_with_the_next_transaction() {
        let mut known = published([1, 2, 3]);
        known.find_adrift([item(1, 0)].iter());
        let changes = known.changes(&heads(&[3]), [item(1, 0), item(3, 0)].iter());
        assert_eq!(changes.remove.keys().copied().collect::<BTreeSet<_>>(), heads(&[2]));
        assert!(changes.publish.is_empty());
        let reopened = known.changes(&heads(&[3]), [item(1, 0), item(2, 0), item(3, 0)].iter());
        assert_eq!(reopened, Changes::default());
    }

    #[test]
    fn of_too_many_those_pushed_longest_ago_go() {
        let known = published(1..=MAX_PUBLISHED);
        let items: Vec<_> = (1..=MAX_PUBLISHED + 1).map(|n| item(n, 10_000 - n as u64)).collect();
        let changes = known.changes(&heads(&[MAX_PUBLISHED + 1]), items.iter());
        assert_eq!(changes.publish, heads(&[MAX_PUBLISHED + 1]));
        let oldest = heads(&[MAX_PUBLISHED]);
        assert_eq!(changes.remove.keys().copied().collect::<BTreeSet<_>>(), oldest);
    }
}
