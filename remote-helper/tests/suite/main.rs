//! The helper and the verbs as people use them: stock git, with the programs of this crate on its `PATH`.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

mod transport;
mod verbs;

use std::path::Path;

use zit_tests::{Git, World, process};

/// The world's git, which finds `git-remote-zit` and `git-zit`.
fn git(world: &World) -> Git {
    let folder = Path::new(env!("CARGO_BIN_EXE_git-remote-zit")).parent().unwrap();
    let mut path = folder.as_os_str().to_owned();
    path.push(":");
    path.push(process::search_path());
    world.git().with_env("PATH", path.to_str().unwrap())
}
