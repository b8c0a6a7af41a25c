//! Commits as a fetch sees them: which of them the client lacks, and whether enough is known to say so.
//!
//! Commits are read once and kept, up to a number. The walks go from young to old by the committers' dates, as git's
//! do; where clocks were wrong, a few commits more are looked at, and what is missed is sent although it is known.

use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;

use zit_model::{Oid, UnixSeconds};

use super::{FetchError, FetchLimits};
use crate::error::StoreError;
use crate::objects::{Kind, Objects, Signature, broken};

/// How many commits that the client has are looked at past the last that it lacks. Source: git's `revision.c`.
const SLOP: u32 = 5;

/// What a walk needs to know of a commit.
pub(super) struct Node {
    pub(super) tree: Oid,
    pub(super) parents: Vec<Oid>,
    date: UnixSeconds,
}

/// The commits looked at so far.
pub(super) struct History<'a> {
    pub(super) objects: &'a Objects,
    nodes: HashMap<Oid, Rc<Node>>,
    max_walked: usize,
    max_commits: usize,
}

/// What is known of a commit within a walk.
struct Mark {
    /// The client has it.
    held: bool,
    /// It waits to be looked at.
    queued: bool,
}

/// A walk under way.
#[derive(Default)]
struct Walk {
    marks: HashMap<Oid, Mark>,
    queue: BinaryHeap<(UnixSeconds, Oid)>,
    // Invariant: the number of marks that are queued and not held.
    n_open: usize,
}

impl<'a> History<'a> {
    pub(super) fn new(objects: &'a Objects, limits: &FetchLimits) -> Self {
        let FetchLimits { max_walked, max_commits, .. } = *limits;
        Self { objects, nodes: HashMap::new(), max_walked, max_commits }
    }

    /// The commits in the history of `wants` that are not in that of `held`, parents before their children.
    pub(super) fn missing(&mut self, wants: &[Oid], held: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        let mut walk = Walk::default();
        for &oid in held {
            walk.hold(oid, self)?;
        }
        for &oid in wants {
            walk.meet(oid, self)?;
        }
        let found = self.walk(&mut walk)?;
        let missing = found.into_iter().filter(|oid| !walk.is_held(*oid)).collect::<Vec<_>>();
        self.parents_first(&missing)
    }

    /// Whether a path leads from each of `wants` to one of `held` or a parent of one.
    pub(super) fn all_lead_to(&mut self, wants: &[Oid], held: &[Oid]) -> Result<bool, FetchError> {
        let mut ends = HashSet::new();
        let mut oldest = UnixSeconds(u64::MAX);
        for &oid in held {
            let node = self.node(oid)?;
            oldest = oldest.min(node.date);
            ends.insert(oid);
            ends.extend(&node.parents);
        }
        let mut children = HashMap::<Oid, Vec<Oid>>::new();
        let mut reached = Vec::new();
        let mut seen = wants.iter().copied().collect::<HashSet<_>>();
        let mut stack = wants.to_vec();
        while let Some(oid) = stack.pop() {
            if ends.contains(&oid) {
                reached.push(oid);
                continue;
            }
            for &parent in &self.node(oid)?.parents {
                children.entry(parent).or_default().push(oid);
                let leads_on = ends.contains(&parent) || self.node(parent)?.date >= oldest;
                if leads_on && seen.insert(parent) {
                    stack.push(parent);
                }
            }
        }
        let mut leading = HashSet::new();
        while let Some(oid) = reached.pop() {
            if leading.insert(oid) {
                reached.extend(children.get(&oid).into_iter().flatten());
            }
        }
        Ok(wants.iter().all(|want| leading.contains(want)))
    }

    /// A commit.
    pub(super) fn node(&mut self, oid: Oid) -> Result<Rc<Node>, FetchError> {
        if let Some(node) = self.nodes.get(&oid) {
            return Ok(Rc::clone(node));
        }
        if self.nodes.len() >= self.max_walked {
            return Err(FetchError::TooBig("too many commits to look at"));
        }
        let node = Rc::new(Node::read(self.objects, oid)?);
        self.nodes.insert(oid, Rc::clone(&node));
        Ok(node)
    }

    /// The commits met that were not held when they were.
    fn walk(&mut self, walk: &mut Walk) -> Result<Vec<Oid>, FetchError> {
        let mut found = Vec::new();
        let mut oldest = UnixSeconds(u64::MAX);
        let mut slop = SLOP;
        while let Some((date, oid)) = walk.queue.pop() {
            let held = walk.leave_queue(oid);
            for &parent in &self.node(oid)?.parents {
                if held {
                    walk.hold(parent, self)?;
                } else {
                    walk.meet(parent, self)?;
                }
            }
            if !held {
                oldest = oldest.min(date);
                found.push(oid);
                if found.len() > self.max_commits {
                    return Err(FetchError::TooBig("too many commits to send"));
                }
            } else if walk.n_open > 0 || walk.queue.peek().is_some_and(|next| next.0 >= oldest) {
                slop = SLOP;
            } else {
                slop = slop.saturating_sub(1);
                if slop == 0 {
                    break;
                }
            }
        }
        Ok(found)
    }

    fn parents_first(&mut self, commits: &[Oid]) -> Result<Vec<Oid>, FetchError> {
        let all = commits.iter().copied().collect::<HashSet<_>>();
        let mut entered = HashSet::new();
        let mut left = HashSet::new();
        let mut ordered = Vec::with_capacity(commits.len());
        let mut stack = commits.to_vec();
        while let Some(&oid) = stack.last() {
            if entered.insert(oid) {
                let parents = &self.node(oid)?.parents;
                stack.extend(parents.iter().filter(|p| all.contains(p) && !entered.contains(p)));
            } else {
                stack.pop();
                if left.insert(oid) {
                    ordered.push(oid);
                }
            }
        }
        Ok(ordered)
    }
}

impl Walk {
    fn is_held(&self, oid: Oid) -> bool {
        self.marks.get(&oid).is_some_and(|mark| mark.held)
    }

    /// Notes a commit that is in the history of a wanted one.
    fn meet(&mut self, oid: Oid, history: &mut History<'_>) -> Result<(), FetchError> {
        if !self.marks.contains_key(&oid) {
            self.enter_queue(oid, false, history)?;
        }
        Ok(())
    }

    /// Notes that the client has a commit, and so all that was met of its history.
    fn hold(&mut self, oid: Oid, history: &mut History<'_>) -> Result<(), FetchError> {
        let mut stack = vec![oid];
        while let Some(oid) = stack.pop() {
            match self.marks.get_mut(&oid) {
                None => self.enter_queue(oid, true, history)?,
                Some(mark) if mark.held => {}
                Some(mark) => {
                    mark.held = true;
                    if mark.queued {
                        self.n_open -= 1;
                    } else {
                        stack.extend(&history.node(oid)?.parents);
                    }
                }
            }
        }
        Ok(())
    }

    fn enter_queue(
        &mut self,
        oid: Oid,
        held: bool,
        history: &mut History<'_>,
    ) -> Result<(), FetchError> {
        self.queue.push((history.node(oid)?.date, oid));
        self.marks.insert(oid, Mark { held, queued: true });
        self.n_open += usize::from(!held);
        Ok(())
    }

    /// Whether the commit that left the queue is held.
    fn leave_queue(&mut self, oid: Oid) -> bool {
        let Some(mark) = self.marks.get_mut(&oid) else { return false };
        mark.queued = false;
        self.n_open -= usize::from(!mark.held);
        mark.held
    }
}

impl Node {
    fn read(objects: &Objects, oid: Oid) -> Result<Self, StoreError> {
        let bytes = objects.structure(oid, Kind::Commit)?;
        let commit = gix_object::CommitRef::from_bytes(&bytes, objects.kind)
            .map_err(|error| broken(oid, &error))?;
        let id = |hex: &[u8]| Oid::from_hex(hex).map_err(|error| broken(oid, &error));
        Ok(Self {
            tree: id(commit.tree)?,
            parents: commit.parents.iter().map(|hex| id(hex)).collect::<Result<_, _>>()?,
            date: Signature::parse(commit.committer).time,
        })
    }
}
