//! The store's suites, each against real repositories with stock git beside it.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod answers;
mod campaign;
mod connected;
mod crash;
mod fetch;
mod fsck;
mod hostile;
mod journal;
mod listing;
mod maintain;
mod model;
mod objects;
mod opening;
mod quarantine;
mod reach;
mod refs;
mod reftable;
mod small_fetch;
mod small_packs;
mod support;
mod thin_fetch;
mod troubles;
