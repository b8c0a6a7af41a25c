//! Large answers to fetches, each made once: [`Reading::answer`] gives a client one that is kept, is being made for
//! another, or is begun for it.
//!
//! ```text
//! shelf    which answers there are, by all that shapes them; how much room they take
//! growing  one answer: written by one thread, read by any number, each at its own pace
//! make     the writing thread: git upload-pack on one side, the answer on the other
//! ```
//!
//! Answers are kept as the bytes that the client gets, in files without a name below `zit/`: the space is free again
//! when the repository is closed, however it is closed, and no file of an earlier time is ever served. What does not
//! fit is not kept: its readers then share the last part of it in memory, and all go as fast as the slowest.
//!
//! An answer that nobody reads any more, and that is not whole, ends with the program that makes it.
//!
//! Invariant: a client only gets an answer whose wants it may have at that moment, as `git upload-pack` judges it.

mod growing;
mod make;
mod shelf;

use std::sync::Arc;

use sha2::{Digest, Sha256};
use zit_model::Oid;

use self::growing::{Answer, Reader};
use self::make::Making;
pub(crate) use self::shelf::Shelf;
use crate::error::StoreError;
use crate::fsio::Stamp;
use crate::store::Store;

/// A fetch of protocol v2 whose answer follows from the request, objects, tags, configuration and the shallow file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerQuery {
    /// The request, as git is to read it.
    pub request: Vec<u8>,
    /// The same for two requests exactly if the same answer will do.
    pub key: Vec<u8>,
    /// The objects wanted.
    pub wants: Vec<Oid>,
    /// Whether tags are sent along.
    pub include_tag: bool,
}

/// One client's reading of an answer. Dropping it before the end gives the answer up.
pub struct SharedAnswer(Reader);

/// Why an answer ended before its end.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AnswerError {
    /// Making it failed. What git said is kept as text: many may read it.
    #[error("{0}")]
    Making(String),
    /// What was kept of it cannot be read.
    #[error("a kept answer cannot be read: {0}")]
    Kept(String),
}

/// All that shapes an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    request: Vec<u8>,
    tags: Option<[u8; 32]>,
    config: u64,
    files: [Option<Stamp>; 2],
}

impl SharedAnswer {
    /// Waits for the next bytes; `None` at the end.
    ///
    /// # Errors
    /// [`AnswerError`] when there will be no more although the answer is not whole.
    pub fn next_piece(&mut self) -> Result<Option<Vec<u8>>, AnswerError> {
        self.0.next_piece()
    }
}

impl Store {
    /// The answer to a request; `None` when answers are not kept in this repository, or when git has to refuse it.
    ///
    /// # Errors
    /// [`StoreError`] when objects, refs or the configuration cannot be read, or no thread can be started.
    pub fn answer(&self, query: AnswerQuery) -> Result<Option<SharedAnswer>, StoreError> {
        let max_bytes = self.config()?.answer_cache;
        if max_bytes == 0 || !self.may_have(&query.wants)? {
            return Ok(None);
        }
        let key = self.answer_key(query.key, query.include_tag)?;
        let (answer, reader, is_new) = self.answers().answer(&key, max_bytes);
        if is_new {
            tracing::debug!(n_wants = query.wants.len(), "fetch begins an answer");
            let source = self.pack_source();
            let making = Making { shelf: Arc::clone(self.answers()), key, answer };
            make::start(making, source, query.request)?;
        } else {
            tracing::debug!(n_bytes = answer.len(), "fetch joins an answer");
        }
        Ok(Some(SharedAnswer(reader)))
    }

    /// # Source
    /// git's `upload-pack.c`, `parse_want`: protocol v2 serves any object that is here.
    fn may_have(&self, wants: &[Oid]) -> Result<bool, StoreError> {
        let objects = self.objects()?;
        for want in wants {
            if objects.kind(*want)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn answer_key(&self, request: Vec<u8>, include_tag: bool) -> Result<Key, StoreError> {
        let stamp = |name: &str| Stamp::of(&self.common_dir().join(name));
        let files = [stamp("shallow")?, stamp("info/grafts")?];
        let tags = include_tag.then(|| self.tags_digest()).transpose()?;
        Ok(Key { request, tags, config: self.config_generation()?, files })
    }

    fn tags_digest(&self) -> Result<[u8; 32], StoreError> {
        let mut digest = Sha256::new();
        for tag in self.refs_below("refs/tags/")? {
            digest.update(tag.name.as_bstr());
            digest.update(b"\0");
            digest.update(tag.oid.as_bytes());
        }
        Ok(digest.finalize().into())
    }
}
