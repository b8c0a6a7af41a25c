//! What can go wrong on our side. A refusal is no error: it is part of a verdict.

use std::io;
use std::sync::Arc;

use zit_store::{PackError, StoreError};

/// The referee could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum RefereeError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client's pack was not taken in.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// The repository's `reference-transaction` hook said no.
    #[error("ref updates aborted by hook")]
    Declined,
    /// Refs that only the referee writes were moved by others, again and again.
    #[error("refs below refs/zit/ are being written by another program")]
    Contended,
    /// Others landed or moved the mainline each time this push was about to be judged.
    #[error("current kept moving; push again")]
    Busy,
    /// The disk did not take what was decided; only looking again tells whether it has it.
    #[error("the disk did not take it; push again")]
    Unflushed(#[source] Arc<StoreError>),
    /// What the refs hold after a failure is not known yet.
    #[error("the repository is being looked at again after a failure; push again")]
    Suspect,
    /// The repository's actor has ended.
    #[error("the repository is closed")]
    Closed,
    /// No thread could be started for the actor.
    #[error("cannot start a thread for the repository")]
    Thread(#[source] io::Error),
}

impl RefereeError {
    /// What to do about it, where there is something to do that the error itself does not say.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Pack(error) => error.hint(),
            Self::Unflushed(error) => error.hint(),
            Self::Declined => {
                Some("the repository's reference-transaction hook refuses it; ask who keeps it")
            }
            Self::Contended => Some(
                "an administrator runs `zit-hook install` there, so that git leaves them alone",
            ),
            Self::Closed => Some("ask again: the next request opens it"),
            Self::Thread(_) => Some("raise the limit of processes, or ask for less at once"),
            // They say themselves that the push is to be repeated.
            Self::Busy | Self::Suspect => None,
        }
    }
}
