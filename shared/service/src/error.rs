//! What keeps a service from answering in its own words.

use std::io;

use zit_referee::RefereeError;
use zit_store::StoreError;
use zit_wire::receive::ReceiveError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The request stopped within. Carries whatever error the edge's reader gave.
    #[error("cannot read the request")]
    Read(#[source] io::Error),
    /// The request is no push, and its client reads no side-bands.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// A file of the repository cannot be read.
    #[error("cannot read a file of the repository")]
    File(#[source] io::Error),
    /// The referee does not do its part.
    #[error(transparent)]
    Referee(#[from] RefereeError),
    /// The store does not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
}
