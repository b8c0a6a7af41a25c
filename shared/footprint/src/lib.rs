//! What a change touches: the bytes of two versions of a file become units, hashes and references.
//!
//! Use: [`compare`] each changed path, gather the answers with [`Footprint::from_files`], and ask
//! [`conflicts`] whether two footprints meet. [`document`] turns a footprint into JSON's shapes.
//!
//! [`Carved`] is one version taken apart, for those who meet it again; [`compare_carved`] compares two. [`Parsed`] makes it
//! cheap to take the next version of the file apart.
//!
//! The stages of [`compare`], in order:
//!
//! 1. `compare` decides whether both versions can be taken apart at all; otherwise the whole file is written,
//!    and the answer says why ([`Fallback`]);
//! 2. `parse` builds a syntax tree within a budget;
//! 3. `lang::<x>` carves it: which nodes are units, how they are called, what is documentation (`plan`);
//! 4. `walk` visits every token once and gives it to the unit that owns it;
//! 5. `unit` merges fragments of one name and hashes them; the two versions are then compared by name.
//!
//! Invariant: no clock, file, environment or network. The same bytes give the same footprint on every machine.
//! Invariant: nothing here recurses over a tree, so no input can exhaust the stack.
//!
//! Source: `spec/footprints.md`.

mod apart;
mod compare;
mod conflict;
pub mod document;
mod edit;
mod footprint;
mod hash;
mod lang;
mod mention;
mod module;
mod parse;
mod parsed;
mod plan;
mod reference;
mod shape;
mod unit;
mod walk;

pub use apart::{Versions, apart};
pub use compare::{
    Alike, Carved, Declaration, FileKind, MAX_FILE, Side, compare, compare_carved, compare_moved,
    compare_moved_carved,
};
pub use conflict::{
    Because, Conflict, ConflictKind, Prose, Surroundings, Unknown, Weight, conflicts,
    conflicts_by_name,
};
pub use footprint::{Fallback, FileFootprint, Footprint, Write, WriteKind};
pub use hash::UnitHash;
pub use lang::Language;
pub use module::{Layout, Module};
pub use parsed::Parsed;
pub use reference::{Place, Reach, Reference, Symbol};
pub use shape::{Break, Effect, Form, Subject, Uses, Why};

/// The version of the algorithm; goes up whenever the same bytes could give another footprint.
pub const VERSION: u32 = 4;
