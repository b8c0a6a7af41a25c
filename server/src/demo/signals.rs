//! What a person presses to stop the demo, so that it can tidy up first.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// SIGINT (Ctrl-C) and SIGTERM, caught from the moment this exists until the process ends.
pub(crate) struct Signals {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to catch the signals.
    ///
    /// # Errors
    /// The system's, when it does not allow it.
    pub(crate) fn catch() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(entered);
        Ok(Self { runtime, interrupt, terminate })
    }

    /// Waits for a signal.
    pub(crate) fn wait(&mut self) {
        self.runtime.block_on(either(&mut self.interrupt, &mut self.terminate));
    }

    /// Waits for an answer; `None` when a signal comes first, or whoever should answer is gone.
    pub(crate) fn wait_or<T>(&mut self, answer: oneshot::Receiver<T>) -> Option<T> {
        self.runtime.block_on(async {
            tokio::select! {
                answer = answer => answer.ok(),
                () = either(&mut self.interrupt, &mut self.terminate) => None,
            }
        })
    }
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
