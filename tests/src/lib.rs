//! Support for the black-box suites: real servers, stock git, and a peer to compare with.
//!
//! A suite makes a [`World`], starts a [`Server`] (and sometimes a [`Peer`]) on folders in it, and
//! drives them with [`Git`]. Everything started here ends with the value that stands for it.
//!
//! Product code never depends on this crate, and this crate never calls into product code: what it
//! knows of the server is what a client sees. It panics instead of returning errors, because every
//! failure here is the failure of a test.
#![allow(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "most functions here are called for what they assert"
)]
#![allow(clippy::missing_panics_doc, reason = "a helper of tests panics whenever it fails")]

pub mod barrier;
pub mod curl;
pub mod files;
pub mod git;
pub mod history;
pub mod http;
pub mod peer;
pub mod process;
pub mod server;
pub mod sshd;
pub mod transcript;
pub mod twins;
pub mod wire;
pub mod world;

pub use barrier::Barrier;
pub use git::{Git, Run};
pub use peer::Peer;
pub use server::Server;
pub use sshd::Sshd;
pub use twins::Twins;
pub use world::World;
