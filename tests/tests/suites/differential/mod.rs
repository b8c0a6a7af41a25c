//! Equal requests have equal answers, here and at `git http-backend`.
//!
//! Random histories grow in pairs: one repository is served by us, its twin by the peer. Random requests go to both,
//! and what a client learns from the answers must be equal.
//!
//! ```text
//! grow     histories, from a seed            twins     the pairs and their servers
//! fetch    requests of upload-pack           answer    what a client learns from the answer
//! objects  graphs and packs, in memory       cases     how many, which, and how a failure is told
//! fetching, listing                          the tests
//! ```
//!
//! `ZIT_CASES=20000` runs about so many cases, `ZIT_SEED=7` others than usual, and `ZIT_CASE=12` with the seed that a
//! failure names that one case alone.
//!
//! # Where the answers may differ
//!
//! Every rule is of what our server does on purpose; nothing else is let pass.
//!
//! 1. Refs below `refs/zit/` are left out: they are what our server adds (`spec/refs.md`).
//! 2. Where git ends without a word (an empty answer, or one cut off), ours tells the client why in an `ERR` packet.
//! 3. A fetch that our server answers by itself may send again some of what the client has, such as a file that moved.
//!    All that git sends is among it.

mod answer;
mod cases;
mod fetch;
mod fetching;
mod grow;
mod listing;
mod objects;
mod twins;
