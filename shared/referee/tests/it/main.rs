//! The referee's suites: pushes against a real repository, on a clock that moves only when told.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod accept;
mod accept_refused;
mod claims;
mod documents;
mod forms;
mod inflight;
mod intruders;
mod items;
mod mainline;
mod moves;
mod options;
mod property;
mod race;
mod speakers;
mod stored;
mod world;
