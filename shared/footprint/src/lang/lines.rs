//! What languages of lines have in common: each line belongs to the unit of the key above it.

use std::collections::BTreeMap;

use zit_model::resource::Part;

use crate::unit::{Fragment, Order, Repeat, Units, assemble};

/// Gathers lines by unit.
#[derive(Default)]
pub(super) struct Lines {
    /// By name; the empty one is the code outside symbols.
    units: BTreeMap<String, Gathered>,
}

#[derive(Default)]
struct Gathered {
    tokens: Vec<u8>,
    first: u32,
    last: u32,
}

impl Lines {
    /// Adds a line, counted from zero, to the unit of a name.
    pub(super) fn add(&mut self, name: &str, number: usize, line: &str) {
        let number = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let name: String = name.chars().take(200).collect();
        let unit = self.units.entry(name).or_default();
        if unit.tokens.is_empty() {
            unit.first = number;
        }
        unit.last = number;
        unit.tokens.extend(line.trim_end().bytes().chain([0]));
    }

    /// The units.
    pub(super) fn into_units(self) -> Units {
        let fragments = self.units.into_iter().map(|(name, unit)| {
            let part = if name.is_empty() { Part::Module } else { Part::Unit(name) };
            let mut fragment = Fragment::new(part, None, Repeat::Merge);
            fragment.lines = Some((unit.first, unit.last));
            fragment.body = unit.tokens;
            fragment
        });
        assemble(fragments.collect(), Order::Counts)
    }
}
