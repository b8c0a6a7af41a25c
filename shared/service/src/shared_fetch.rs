//! A fetch whose answer many may want: made once, kept for a while, and read by each client at its own pace.
//!
//! A hundred agents that clone the same tip cost one. What cannot be answered so is left to [`super::upload_pack`].

use std::io::Write;

use zit_store::{AnswerQuery, Reading, SharedAnswer};
use zit_wire::fetch;

use crate::relay::{self, Sent};

/// An answer that others may be reading too. Dropping it leaves it to them.
#[must_use = "nobody is answered until it has been sent"]
pub struct SharedFetch(SharedAnswer);

/// The answer to a whole request; `None` when it has to be handed on.
pub(crate) fn answer(store: Reading<'_>, request: &[u8]) -> Option<SharedFetch> {
    let repeatable = fetch::repeatable(request, store.hash_kind()).ok().flatten()?;
    let query = AnswerQuery {
        request: request.to_vec(),
        key: repeatable.key,
        wants: repeatable.wants,
        include_tag: repeatable.include_tag,
    };
    match store.answer(query) {
        Ok(answer) => answer.map(SharedFetch),
        Err(error) => {
            tracing::warn!(%error, "shared fetch failed");
            None
        }
    }
}

impl SharedFetch {
    /// Writes the answer to `client`, also while it is being made.
    pub fn send(mut self, client: &mut dyn Write) -> Sent {
        let mut n_bytes = 0;
        loop {
            match self.0.next_piece() {
                Ok(Some(piece)) => {
                    if let Err(error) = client.write_all(&piece) {
                        tracing::info!(%error, n_bytes, "fetch given up");
                        return Sent::Cut;
                    }
                    n_bytes += piece.len();
                }
                Ok(None) => {
                    tracing::debug!(n_bytes, "fetch answered");
                    return Sent::Whole;
                }
                Err(error) => {
                    relay::report_failure(&error, n_bytes, client);
                    return Sent::Cut;
                }
            }
        }
    }
}
