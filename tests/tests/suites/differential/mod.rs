//! Equal requests have equal answers, here and at `git http-backend`.
//!
//! Random histories grow in pairs: one repository is served by us, its twin by the peer. Random requests go to both,
//! and what a client learns from the answers must be equal.
//!
//! ```text
//! grow     histories, from a seed            twins     the pairs and their servers
//! fetch    requests of upload-pack           answer    what a client learns from the answer
//! objects  graphs and packs, in memory       cases     how many, which, and how a failure is told
//! push     requests of receive-pack          forge     new objects and packs for them
//! fetching, listing, pushing, stock          the tests
//! ```
//!
//! `ZIT_CASES=20000` runs about so many cases, `ZIT_SEED=7` others than usual, and `ZIT_CASE=12` with the seed that a
//! failure names that one case alone. A push builds on those before it in its group, which are sent again with it.
//!
//! # Where the answers may differ
//!
//! Every rule is of what our server does on purpose; nothing else is let pass.
//!
//! 1. Refs below `refs/zit/` are left out: they are what our server adds (`spec/refs.md`).
//! 2. Where git ends without a word (an empty answer, or one cut off), ours tells the client why in an `ERR` packet.
//! 3. A fetch that our server answers by itself may send again some of what the client has, such as a file that moved.
//!    All that git sends is among it.
//! 4. The reason behind an `ng` or a failed `unpack` is told in our words.
//! 5. Pushed objects are always checked, as git does with `receive.fsckObjects`, which the twins have set.
//! 6. `receive.denyDeleteCurrent` is not looked at: what is never deleted is the mainline. The twins have it off.
//! 7. No case pushes to a symbolic ref, which the suite `receiving` tries, nor to the mainline, `refs/heads/trunk`.
//! 8. Of an atomic push in which one ref lacks objects, git carries the others out; ours carries out none. No case
//!    asks for that.
//! 9. Of a push that is refused in part, git keeps all objects, ours those that refs need. No case relies on others.
//! 10. Commands of one push that name a ref twice are refused by ours, while git carries out the first that it can; a ref
//!     and one below it are tried by the suite `receiving`. No push has such a pair.
//! 11. No shallow client of ours has history that the repository lacks; the suite `receiving` tries that.

mod answer;
mod cases;
mod fetch;
mod fetching;
mod forge;
mod grow;
mod listing;
mod objects;
mod push;
mod pushing;
mod stock;
mod twins;
