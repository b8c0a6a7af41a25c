//! Where two texts differ, by lines: what a parser must be told to read only that again.
//!
//! Use [`edits`]. Any answer that it gives describes the difference truly; a good one is short. Never looks at what the lines
//! say.

use std::collections::HashMap;

use tree_sitter::{InputEdit, Point};

/// The most edits worth telling.
const MAX_EDITS: usize = 256;

/// What to do to `old` to get `new`, the last edit first, so that each is in the places of `old`; `None` when there are so
/// many that it is better to read everything.
pub(crate) fn edits(old: &str, new: &str) -> Option<Vec<InputEdit>> {
    let (old, new) = (Lines::of(old), Lines::of(new));
    let mut found = Vec::new();
    let mut from = (0, 0);
    let ends = (old.len(), new.len());
    for (a, b) in anchors(&old, &new).into_iter().chain([ends]) {
        found.extend(edit(&old, &new, from, (a, b)));
        from = (a, b);
    }
    found.reverse();
    (found.len() <= MAX_EDITS).then_some(found)
}

/// A text and where its lines start, and where it ends.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self { text, starts }
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where a line starts; the text's end for the one after the last.
    fn start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    fn line(&self, line: usize) -> &'a str {
        self.text.get(self.start(line)..self.start(line + 1)).unwrap_or_default()
    }

    /// The place where a line starts.
    fn point(&self, line: usize) -> Point {
        if line == self.len() && !self.text.ends_with('\n') && line > 0 {
            return Point::new(line - 1, self.start(line) - self.start(line - 1));
        }
        Point::new(line, 0)
    }
}

/// Lines that both texts have once each, in an order that both have.
fn anchors(old: &Lines<'_>, new: &Lines<'_>) -> Vec<(usize, usize)> {
    /// Where a line is in each text, if it is there once.
    #[derive(Clone, Copy, Default)]
    struct Seen {
        n: [u32; 2],
        at: [usize; 2],
    }
    // Most of both is the same at both ends, where no anchors are needed.
    let shorter = old.len().min(new.len());
    let head = (0..shorter).take_while(|n| old.line(*n) == new.line(*n)).count();
    let same = |n: &usize| old.line(old.len() - 1 - n) == new.line(new.len() - 1 - n);
    let tail = (0..shorter - head).take_while(same).count();
    let mut seen: HashMap<&str, Seen, foldhash::fast::FixedState> = HashMap::default();
    for (side, lines) in [old, new].into_iter().enumerate() {
        for at in head..lines.len() - tail {
            let seen = seen.entry(lines.line(at)).or_default();
            if let (Some(n), Some(place)) = (seen.n.get_mut(side), seen.at.get_mut(side)) {
                (*n, *place) = (*n + 1, at);
            }
        }
    }
    let lines = head..new.len() - tail;
    let once = lines.filter_map(|at| seen.get(new.line(at))).filter(|seen| seen.n == [1, 1]);
    let mut anchors = vec![(head, head)];
    anchors.extend(rising(once.map(|seen| (seen.at[0], seen.at[1]))));
    anchors.push((old.len() - tail, new.len() - tail));
    anchors
}

/// A longest part of the pairs in which the first places rise as the second ones do.
fn rising(pairs: impl Iterator<Item = (usize, usize)>) -> Vec<(usize, usize)> {
    let pairs: Vec<_> = pairs.collect();
    // The pair that ends the best part of each length, and the pair before each.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (n, pair) in pairs.iter().enumerate() {
        let len = ends.partition_point(|end| pairs.get(*end).is_some_and(|end| end.0 < pair.0));
        before.push(len.checked_sub(1).and_then(|shorter| ends.get(shorter).copied()));
        match ends.get_mut(len) {
            Some(end) => *end = n,
            None => ends.push(n),
        }
    }
    let last = ends.last().copied();
    let chain = std::iter::successors(last, |n| before.get(*n).copied().flatten());
    let mut rising: Vec<_> = chain.filter_map(|n| pairs.get(n).copied()).collect();
    rising.reverse();
    rising
}

/// What differs between two places of both texts, without the lines that are the same at both ends.
fn edit(
    old: &Lines<'_>,
    new: &Lines<'_>,
    from: (usize, usize),
    to: (usize, usize),
) -> Option<InputEdit> {
    let ((mut a, mut b), (mut old_end, mut new_end)) = (from, to);
    while a < old_end && b < new_end && old.line(a) == new.line(b) {
        (a, b) = (a + 1, b + 1);
    }
    while a < old_end && b < new_end && old.line(old_end - 1) == new.line(new_end - 1) {
        (old_end, new_end) = (old_end - 1, new_end - 1);
    }
    if a == old_end && b == new_end {
        return None;
    }
    let start = old.start(a);
    let n_new = new.start(new_end) - new.start(b);
    let from = old.point(a);
    // Later edits are done first, so that before this one everything is where it is in `old`.
    let (first, last) = (new.point(b), new.point(new_end));
    let row = from.row + (last.row - first.row);
    let column = if last.row == first.row {
        from.column + (last.column - first.column)
    } else {
        last.column
    };
    Some(InputEdit {
        start_byte: start,
        old_end_byte: old.start(old_end),
        new_end_byte: start + n_new,
        start_position: from,
        old_end_position: old.point(old_end),
        new_end_position: Point::new(row, column),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Does the edits to the bytes.
    fn edited(old: &str, new: &str, edits: &[InputEdit]) -> String {
        let (mut text, mut end) = (old.to_owned(), old.len());
        let mut new_end = new.len();
        for edit in edits {
            assert!(edit.old_end_byte <= end, "{edits:?}");
            let tail = end - edit.old_end_byte;
            let to = new_end - tail;
            let from = to - (edit.new_end_byte - edit.start_byte);
            text.replace_range(edit.start_byte..edit.old_end_byte, &new[from..to]);
            (end, new_end) = (edit.start_byte, from);
        }
        text
    }

    fn text() -> impl Strategy<Value = String> {
        prop::collection::vec(
            prop::sample::select(vec!["a\n", "b\n", "cé\n", "d\r\n", "e\n", "f"]),
            0..12,
        )
        .prop_map(|lines| lines.concat())
    }

    proptest! {
        #[test]
        fn edits_make_the_one_text_of_the_other((old, new) in (text(), text())) {
            let edits = edits(&old, &new).unwrap();
            prop_assert_eq!(edited(&old, &new, &edits), new.clone());
            prop_assert_eq!(edits.is_empty(), old == new);
        }
    }

    #[test]
    fn what_lies_between_two_changes_is_told_to_be_the_same() {
        let edits = edits("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nE\nF\n").unwrap();
        let places: Vec<_> = edits.iter().map(|e| (e.start_byte, e.old_end_byte)).collect();
        assert_eq!(places, [(8, 10), (2, 4)]);
    }
}
