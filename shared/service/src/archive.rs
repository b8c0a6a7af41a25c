//! `git-upload-archive`: one request for an archive, made by git's own program.

use std::io::Read;

use zit_referee::Repository;

use crate::ServiceError;
use crate::relay::Relay;

/// The content type that a request must have.
pub const REQUEST_TYPE: &str = "application/x-git-upload-archive-request";

/// The content type of an answer.
pub const RESULT_TYPE: &str = "application/x-git-upload-archive-result";

/// Begins to answer one request. What git refuses is told to the client in the answer.
///
/// # Errors
/// [`ServiceError`] when the program cannot be started.
pub fn answer(repository: &Repository, body: Box<dyn Read + Send>) -> Result<Relay, ServiceError> {
    Ok(Relay::new(Vec::new(), body, repository.reading().archive()?))
}
