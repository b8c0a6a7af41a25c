//! The black-box suites: stock git, real servers, and what comes of using them together.
//!
//! One binary, one module for each promise. Every test makes its own world, so they may run in any
//! order and side by side; `.config/nextest.toml` keeps the heavy ones apart.

mod accepts;
mod backend;
mod beside;
mod check;
mod claims;
mod clients;
mod crash;
mod differential;
mod disk;
mod embedded;
mod heavy;
mod helper;
mod hooks;
mod hostile;
mod http2;
mod injection;
mod inquiries;
mod interop;
mod linear;
mod live;
mod maintenance;
mod namespaces;
mod open_ends;
mod proc_receive;
mod published;
mod reads;
mod receiving;
mod refs;
mod reftable;
mod seats;
mod settings;
mod shared_fetch;
mod small_fetch;
mod spec;
mod ssh;
mod storm;
mod transcripts;
