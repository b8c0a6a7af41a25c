//! Lets many stock clients push in the same instant.
//!
//! git runs its pre-push hook after it has read the server's advertisement and before it sends
//! anything. The hook used here says that it is there and then waits for a lock; when every client
//! is there the lock is dropped, and all of them send what they decided from the same advertisement.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use crate::world::text;
use crate::{Git, Run};

/// How long the clients may take to read their advertisements.
const PATIENCE: Duration = Duration::from_mins(2);

/// One client of a race: a git, and the arguments of its `push`.
pub type Racer = (Git, Vec<String>);

/// A starting line; it may be used for many races, one after another.
#[derive(Debug)]
pub struct Barrier {
    folder: TempDir,
}

/// What happens before the start.
enum Event {
    /// One more client waits in its hook.
    Ready,
    /// A client ended; before the start this means that it never reached its hook.
    Ended,
}

impl Barrier {
    /// Prepares the hook.
    #[allow(clippy::new_without_default, reason = "making a folder on disk is not a default value")]
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("the temporary folder is writable");
        let barrier = Self { folder };
        fs::create_dir(barrier.path("hooks")).expect("a new folder is empty");
        fs::write(barrier.path("lock"), "").expect("the folder is writable");
        let hook = barrier.path("hooks").join("pre-push");
        let (ready, lock) = (barrier.path("ready"), barrier.path("lock"));
        mknodat(CWD, &ready, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a new fifo");
        let (ready, lock) = (text(&ready), text(&lock));
        let script =
            format!("#!/bin/sh\necho ready >'{ready}'\nexec flock --shared '{lock}' true\n");
        fs::write(&hook, script).expect("the folder is writable");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("the hook is ours");
        barrier
    }

    /// Runs `git push <args>` of every racer at once; the runs, in the racers' order.
    pub fn race(&self, racers: &[Racer]) -> Vec<Run> {
        let hooks = format!("core.hooksPath={}", text(&self.path("hooks")));
        let gate = File::options().write(true).open(self.path("lock")).expect("the lock exists");
        gate.lock().expect("nobody else holds the lock");
        let mut ready = open_fifo(&self.path("ready"));
        let (sender, events) = mpsc::channel();
        std::thread::scope(|scope| {
            let counter = sender.clone();
            let lines = BufReader::new(ready.try_clone().expect("a file can be duplicated"));
            scope.spawn(move || count_ready(lines, racers.len(), &counter));
            let start = |(git, args): &Racer| {
                let (git, args, sender) = (git.with_config(&hooks), args.clone(), sender.clone());
                scope.spawn(move || {
                    let run = git.run(["push".to_owned()].into_iter().chain(args));
                    // The race may have been called off, with nobody left to tell.
                    let _ = sender.send(Event::Ended);
                    run
                })
            };
            let clients = racers.iter().map(start).collect::<Vec<_>>();
            let missing = wait_for_all(&events, racers.len());
            gate.unlock().expect("this process holds the lock");
            // Lets the counting thread end also when a client never came.
            ready.write_all("ready\n".repeat(missing).as_bytes()).expect("a fifo is writable");
            let runs = clients.into_iter().map(|client| client.join().expect("no panic inside"));
            let runs = runs.collect::<Vec<_>>();
            assert!(missing == 0, "{missing} clients never reached the start: {}", describe(&runs));
            runs
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Opens for reading and writing, so that neither opening nor a moment without writers ends it.
fn open_fifo(path: &Path) -> File {
    File::options().read(true).write(true).open(path).expect("the fifo exists")
}

fn count_ready(lines: BufReader<File>, n_clients: usize, events: &Sender<Event>) {
    for line in lines.lines().take(n_clients) {
        if line.is_err() || events.send(Event::Ready).is_err() {
            return;
        }
    }
}

/// How many clients are missing when all others wait, or when nothing happens any more.
fn wait_for_all(events: &Receiver<Event>, n_clients: usize) -> usize {
    let (mut n_ready, mut n_ended) = (0, 0);
    while n_ready + n_ended < n_clients {
        match events.recv_timeout(PATIENCE) {
            Ok(Event::Ready) => n_ready += 1,
            Ok(Event::Ended) => n_ended += 1,
            Err(_) => break,
        }
    }
    n_clients - n_ready
}

fn describe(runs: &[Run]) -> String {
    runs.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n---\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Peer, World};

    #[test]
    fn racers_that_create_one_ref_at_the_peer_have_one_winner() {
        let world = World::new();
        let bare = world.bare("app.git");
        let peer = Peer::start(&world);
        let join = |n: u32| {
            let clone = world.git().clone_of(&peer.url("app.git"), &format!("clone-{n}"));
            clone.commit(&format!("Commit {n}"), &[("n", &n.to_string())]);
            let args = ["origin", "HEAD:refs/heads/prize"].map(str::to_owned).to_vec();
            (clone, args)
        };
        let racers = (0..6).map(join).collect::<Vec<_>>();
        let runs = Barrier::new().race(&racers);
        assert_eq!(runs.iter().filter(|run| run.is_ok()).count(), 1, "{}", describe(&runs));
        assert!(bare.resolve("refs/heads/prize").is_some());
    }

    #[test]
    fn a_client_that_never_reaches_the_start_is_reported_and_not_waited_for() {
        let world = World::new();
        let git = world.bare("app.git");
        let racers = vec![(git, vec!["no-such-remote".to_owned(), "main".to_owned()])];
        let raced = std::panic::catch_unwind(|| Barrier::new().race(&racers));
        assert!(raced.is_err());
    }
}
