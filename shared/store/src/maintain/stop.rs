//! [`Stop`]: the end of background work, asked for from another thread.

use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// Shared by whoever works and whoever may ask for the end. Once asked, for ever.
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    asked: bool,
    group: Option<Pid>,
}

/// A program under way; dropping this says that it has ended.
pub(crate) struct Running<'a>(&'a Stop);

impl Stop {
    /// Asks for the end: the program under way, and all that it started, are told to end, and no other is started.
    pub fn stop(&self) {
        let mut state = self.state();
        state.asked = true;
        state.end_group();
    }

    /// Whether the end was asked for.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.state().asked
    }

    /// A program that leads a process group of its own is under way.
    pub(crate) fn running(&self, child: &Child) -> Running<'_> {
        let mut state = self.state();
        state.group = Some(Pid::from_child(child));
        if state.asked {
            state.end_group();
        }
        Running(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_group(&self) {
        if let Some(group) = self.group {
            // Already gone is as good as ended.
            let _ = kill_process_group(group, Signal::TERM);
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.state().group = None;
    }
}
