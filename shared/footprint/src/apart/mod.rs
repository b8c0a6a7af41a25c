//! Whether two changes of one unit lie apart: each alters other parts of it, and neither uses what the other makes.
//!
//! Use: [`apart`] with three versions of a file and a unit that both sides write. A unit is taken apart into *pieces*
//! (`pieces`): statements, arms, members, elements. A piece has the tokens that are in no piece inside it, and is the same
//! only under the same pieces, so that whoever alters a condition alters everything below it.
//!
//! Never answers yes where it cannot tell: a file that does not parse, a unit that is new, too many pieces.
//!
//! Source: `spec/footprints.md`, "Parts of a unit".

mod pieces;

use std::{collections::HashSet, ops::Range};

use zit_model::resource::Part;

use self::pieces::{Piece, Pieces};
use crate::{
    Language,
    lang::{self, Among, Analysis},
};

/// How many pairs of pieces are compared to tell what a side altered. Source: ours; 2,000 altered pieces of 2,000.
const MAX_PAIRS: usize = 4_000_000;

/// How many pieces a side may alter. Source: ours; pieces are compared pair by pair.
const MAX_ALTERED: usize = 300;

/// The three versions of a file that two changes of one base make.
#[derive(Clone, Copy, Debug)]
pub struct Versions<'a> {
    /// What both sides started from.
    pub base: &'a str,
    /// One side's.
    pub mine: &'a str,
    /// The other side's.
    pub theirs: &'a str,
}

/// Whether what `mine` and `theirs` alter in the unit `part` of a file lies apart.
///
/// Symmetric: exchanging the sides answers the same.
///
/// # Source
/// `spec/footprints.md`, "Parts of a unit".
#[must_use]
pub fn apart(language: Language, part: &Part, versions: Versions<'_>) -> bool {
    let Analysis::Code(grammar) = lang::analysis(language) else { return false };
    let pieces = |source| Pieces::of(grammar, part, source);
    let three = (pieces(versions.base), pieces(versions.mine), pieces(versions.theirs));
    let (Some(base), Some(mine), Some(theirs)) = three else { return false };
    if mine.head != base.head || theirs.head != base.head {
        return false;
    }
    let (Some(mine), Some(theirs)) = (Side::of(&base, &mine), Side::of(&base, &theirs)) else {
        return false;
    };
    !mine.meets(&theirs) && mine.is_free_of(&theirs) && theirs.is_free_of(&mine)
}

/// What one side altered.
struct Side<'p, 's> {
    hunks: Vec<Hunk>,
    altered: Vec<Altered<'p, 's>>,
    /// Names that its version or the base binds.
    locals: HashSet<&'s str>,
}

/// A place where a side alters pieces of the base.
struct Hunk {
    old: Range<usize>,
    /// The piece of the base that it is in, if any.
    within: Option<usize>,
    /// Whether as many jumps leave from it as did.
    keeps_jumps: bool,
    /// Whether it only adds steps.
    adds_steps: bool,
}

/// A piece that a side adds or drops.
struct Altered<'p, 's> {
    piece: &'p Piece<'s>,
    is_new: bool,
    hunk: usize,
    /// Where the hunk stands in the base.
    at: Range<usize>,
    /// The pieces around it and itself, the outermost first: of the base which, if of the base.
    chain: Vec<(Option<usize>, &'p Piece<'s>)>,
    /// The names it reads and does not itself have from what its side alters.
    reads: HashSet<&'s str>,
    /// The names whose values it may change, and does not itself have so either.
    mutates: HashSet<&'s str>,
}

impl<'p, 's> Side<'p, 's> {
    fn of(base: &'p Pieces<'s>, new: &'p Pieces<'s>) -> Option<Self> {
        let ranges = differences(base, new)?;
        let n_altered: usize = ranges.iter().map(|(old, new)| old.len() + new.len()).sum();
        if n_altered > MAX_ALTERED {
            return None;
        }
        let kept = kept(&ranges, base.list.len());
        let locals = base.locals().chain(new.locals()).collect();
        let mut side = Self { hunks: Vec::new(), altered: Vec::new(), locals };
        for (old, new_range) in ranges {
            let first = side.altered.len();
            for index in old.clone() {
                let chain = base.chain(index, Some);
                side.add(chain, false, old.clone());
            }
            for index in new_range.clone() {
                let of_base = |at: usize| {
                    let near = kept.binary_search_by_key(&at, |(_, new)| *new).ok()?;
                    kept.get(near).map(|(old, _)| *old)
                };
                side.add(new.chain(index, of_base), true, old.clone());
            }
            let Some(top) = side.altered.get(first) else { continue };
            let within = top.within();
            let adds_steps = old.is_empty() && top.piece.among == Among::Steps;
            let jumps = |list: &[Piece<'_>], range: &Range<usize>| -> usize {
                list.get(range.clone()).into_iter().flatten().map(|piece| piece.jumps).sum()
            };
            let keeps_jumps = jumps(&base.list, &old) == jumps(&new.list, &new_range);
            side.hunks.push(Hunk { old, within, keeps_jumps, adds_steps });
        }
        side.hide_own();
        Some(side)
    }

    fn add(&mut self, chain: Vec<(Option<usize>, &'p Piece<'s>)>, is_new: bool, at: Range<usize>) {
        let Some((_, piece)) = chain.last().copied().filter(|(_, piece)| !piece.is_place) else {
            return;
        };
        let reads = if is_new { piece.reads.iter().copied().collect() } else { HashSet::new() };
        let (hunk, mutates) = (self.hunks.len(), piece.mutates.iter().copied().collect());
        self.altered.push(Altered { piece, is_new, hunk, at, chain, reads, mutates });
    }

    /// Takes from what each piece reads or changes the names that it, what it is in, or what stands before it binds anew.
    fn hide_own(&mut self) {
        let mut own: Vec<(usize, Vec<&'s str>)> = Vec::new();
        for (index, altered) in self.altered.iter().enumerate() {
            let mut hidden: Vec<&str> = altered.piece.binds_inside.clone();
            for earlier in self.altered.iter().take(index).filter(|e| e.is_new == altered.is_new) {
                if earlier.is_around(altered) {
                    hidden.extend(&earlier.piece.binds_inside);
                } else if earlier.is_scope_of(altered) {
                    hidden.extend(&earlier.piece.binds);
                }
            }
            own.push((index, hidden));
        }
        for (index, hidden) in own {
            if let Some(altered) = self.altered.get_mut(index) {
                altered.reads.retain(|name| !hidden.contains(name));
                altered.mutates.retain(|name| !hidden.contains(name));
            }
        }
    }

    /// Whether both alter one piece, put something into one place, or put something of one name into one list.
    fn meets(&self, other: &Self) -> bool {
        let hunks = |a: &Hunk| other.hunks.iter().any(|b| a.meets(b));
        if self.hunks.iter().any(hunks) || self.is_inside(other) || other.is_inside(self) {
            return true;
        }
        let parameters = |side: &Self| {
            side.altered.iter().any(|altered| altered.piece.among == Among::Parameters)
        };
        if parameters(self) && parameters(other) {
            return true;
        }
        let keys = |side: &Self| -> HashSet<(Option<usize>, &'s str)> {
            let added = side.altered.iter().filter(|altered| altered.is_new);
            let listed = added.filter(|altered| altered.piece.among != Among::Steps);
            listed.map(|altered| (altered.within(), altered.piece.key)).collect()
        };
        !keys(self).is_disjoint(&keys(other))
    }

    /// Whether it alters something in a piece that the other alters.
    fn is_inside(&self, other: &Self) -> bool {
        let gone = other.altered.iter().filter(|altered| !altered.is_new);
        let gone: HashSet<usize> = gone.filter_map(|altered| altered.chain.last()?.0).collect();
        let around = self.altered.iter().flat_map(|altered| &altered.chain);
        around.filter_map(|(of_base, _)| *of_base).any(|index| gone.contains(&index))
    }

    /// Whether nothing that the other side altered uses what this one makes, or runs only if this one lets it.
    fn is_free_of(&self, other: &Self) -> bool {
        self.altered.iter().all(|own| {
            let keeps_jumps = self.hunks.get(own.hunk).is_none_or(|hunk| hunk.keeps_jumps);
            let leaves = own.piece.jumps > 0 && !keeps_jumps;
            other.altered.iter().all(|its| {
                let is_step = other.hunks.get(its.hunk).is_some_and(|hunk| hunk.adds_steps);
                let is_left_out = leaves && is_step && its.at.start >= own.at.end;
                own.excludes(its) || !(own.makes_for(its, &self.locals) || is_left_out)
            })
        })
    }
}

impl Hunk {
    fn meets(&self, other: &Self) -> bool {
        let (own, its) = (&self.old, &other.old);
        match (own.is_empty(), its.is_empty()) {
            (false, false) => own.start < its.end && its.start < own.end,
            (true, false) => its.start < own.start && own.start < its.end,
            (false, true) => own.start < its.start && its.start < own.end,
            (true, true) => own.start == its.start && self.within == other.within,
        }
    }
}

impl Altered<'_, '_> {
    /// The piece of the base that it is in, if it is in one.
    fn within(&self) -> Option<usize> {
        self.chain.iter().rev().skip(1).find_map(|(of_base, _)| *of_base)
    }

    fn is_around(&self, other: &Self) -> bool {
        let inner = other.chain.iter().map(|(_, piece)| *piece);
        inner.rev().skip(1).any(|piece| std::ptr::eq(piece, self.piece))
    }

    /// Whether names that it binds hold where the other stands, on the same side.
    fn is_scope_of(&self, other: &Self) -> bool {
        let outer = self.chain.iter().rev().nth(1).map(|(_, piece)| *piece);
        outer.is_none_or(|outer| other.chain.iter().any(|(_, piece)| std::ptr::eq(*piece, outer)))
    }

    /// Whether at most one of the two ever runs: they are in different alternatives of one choice.
    fn excludes(&self, other: &Self) -> bool {
        let mut both = self.chain.iter().zip(&other.chain);
        let fork = both.find(|((a, _), (b, _))| a.is_none() || a != b);
        fork.is_some_and(|((_, a), (_, b))| a.among == Among::Choices && b.among == Among::Choices)
    }

    /// Whether the other uses, or makes as well, what this one makes or changes.
    fn makes_for(&self, other: &Self, locals: &HashSet<&str>) -> bool {
        // What is inside the value of a name is part of what the name is.
        let depth = self.chain.len() - 1;
        self.chain.iter().enumerate().any(|(at, (_, piece))| {
            let reads = |name: &&str| other.reads.contains(name);
            let is_seen = self.chain.iter().take(at).zip(&other.chain).count() == at
                && self
                    .chain
                    .iter()
                    .take(at)
                    .zip(&other.chain)
                    .all(|((a, _), (b, _))| a.is_some() && a == b);
            let binds = is_seen && piece.binds.iter().any(reads);
            if binds || piece.assigns.iter().any(reads) {
                return true;
            }
            if at < depth {
                return false;
            }
            let is_known = |name: &&&str| name.starts_with('.') || locals.contains(**name);
            let again = |name: &&str| {
                other.piece.assigns.contains(name) || is_seen && other.piece.binds.contains(name)
            };
            self.mutates.iter().filter(is_known).any(reads)
                || piece.assigns.iter().any(again)
                || is_seen && other.is_new && self.is_new && piece.binds.iter().any(again)
        })
    }
}

/// The ranges in which two versions differ.
fn differences(old: &Pieces<'_>, new: &Pieces<'_>) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    let (old, new) = (&old.list, &new.list);
    let start = old.iter().zip(new).take_while(|(a, b)| a.same == b.same).count();
    let left = old.len().min(new.len()) - start;
    let back = old.iter().rev().zip(new.iter().rev());
    let end = back.take(left).take_while(|(a, b)| a.same == b.same).count();
    let (old_rest, new_rest) = (old.get(start..old.len() - end)?, new.get(start..new.len() - end)?);
    let width = new_rest.len() + 1;
    if (old_rest.len() + 1).checked_mul(width)? > MAX_PAIRS {
        return None;
    }
    // The longest common subsequence of each pair of tails.
    let mut longest = vec![0_u32; (old_rest.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    for (i, a) in old_rest.iter().enumerate().rev() {
        for (j, b) in new_rest.iter().enumerate().rev() {
            longest[at(i, j)] = if a.same == b.same {
                longest[at(i + 1, j + 1)] + 1
            } else {
                longest[at(i + 1, j)].max(longest[at(i, j + 1)])
            };
        }
    }
    let (mut i, mut j, mut ranges) = (0, 0, Vec::new());
    while i < old_rest.len() || j < new_rest.len() {
        let (from_i, from_j) = (i, j);
        while i < old_rest.len() || j < new_rest.len() {
            if i < old_rest.len() && j < new_rest.len() && old_rest[i].same == new_rest[j].same {
                break;
            }
            let drops = j == new_rest.len()
                || i < old_rest.len() && longest[at(i + 1, j)] >= longest[at(i, j + 1)];
            if drops { i += 1 } else { j += 1 }
        }
        if (from_i, from_j) != (i, j) {
            ranges.push((start + from_i..start + i, start + from_j..start + j));
        }
        if i < old_rest.len() && j < new_rest.len() {
            (i, j) = (i + 1, j + 1);
        }
    }
    Some(ranges)
}

/// The pieces of the base that a side kept, with where they are in its version.
fn kept(ranges: &[(Range<usize>, Range<usize>)], n_old: usize) -> Vec<(usize, usize)> {
    let (mut kept, mut i, mut j) = (Vec::new(), 0, 0);
    for (old, new) in ranges {
        kept.extend((i..old.start).zip(j..new.start));
        (i, j) = (old.end, new.end);
    }
    kept.extend((i..n_old).zip(j..));
    kept
}
