//! The worker that folds what pushes leave: one thread, one repository at a time, whatever their number.
//!
//! A [`Maintainer`] owns the thread and ends it, with the programs that it runs; [`Nudges`] tell it of pushes, and never
//! wait. What is due, and how it is done, is the store's.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};

use zit_model::failure;
use zit_referee::Repository;
use zit_store::{Maintained, Stop};

/// How many pushes wait to be looked at. Of those that find no place, a later one does.
const MAX_WAITING: usize = 64;

/// The worker. Dropping it stops what it does and waits for that.
pub(crate) struct Maintainer {
    nudges: Nudges,
    stop: Stop,
    /// Held by the worker while it works.
    busy: Arc<Mutex<()>>,
}

/// Where pushes are told of.
#[derive(Clone)]
pub(crate) struct Nudges(SyncSender<Arc<Repository>>);

impl Maintainer {
    /// Starts the worker.
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, pushed) = mpsc::sync_channel(MAX_WAITING);
        let maintainer =
            Self { nudges: Nudges(sender), stop: Stop::default(), busy: Arc::default() };
        let (stop, busy) = (maintainer.stop.clone(), Arc::clone(&maintainer.busy));
        std::thread::Builder::new()
            .name("maintenance".into())
            .spawn(move || work(&pushed, &stop, &busy))?;
        Ok(maintainer)
    }

    /// A way to tell it of pushes.
    pub(crate) fn nudges(&self) -> Nudges {
        self.nudges.clone()
    }

    /// Stops what it does, and begins nothing more.
    pub(crate) fn stop(&self) {
        self.stop.stop();
    }
}

impl Nudges {
    /// Says that a repository was pushed to.
    pub(crate) fn pushed(&self, repository: &Arc<Repository>) {
        // Whoever finds no place, or no worker any more, has nothing to wait for.
        let _ = self.0.try_send(Arc::clone(repository));
    }
}

impl Drop for Maintainer {
    fn drop(&mut self) {
        self.stop();
        drop(self.busy.lock());
    }
}

fn work(pushed: &Receiver<Arc<Repository>>, stop: &Stop, busy: &Mutex<()>) {
    while let Ok(repository) = pushed.recv() {
        let _busy = busy.lock();
        if stop.is_asked() {
            return;
        }
        match repository.maintain_if_due(stop) {
            Ok(None) => {}
            Ok(Some(Maintained::Done)) => tracing::info!("packs and refs folded"),
            Ok(Some(maintained)) => tracing::info!(?maintained, "packs and refs not folded"),
            Err(error) => tracing::warn!(error = %failure::chain(&error), "cannot fold packs"),
        }
    }
}
