//! A fetch that is answered here: a plain one of protocol v2 whose objects are few.
//!
//! Coordinating agents poll, and fetch a commit or two when there is one. Such an answer is ready before a program
//! would have been started. Whatever else is asked for is left to [`crate::upload_pack`], which hands it on whole.

use zit_store::{FetchError, FetchLimits, FetchQuery, Fetched, Reading};
use zit_wire::fetch::{self, Answer, FetchRequest};
use zit_wire::pkt;

/// The body of an answer; `None` when the request has to be handed on.
pub(crate) fn answer(store: Reading<'_>, request: FetchRequest) -> Option<Vec<u8>> {
    if !request.is_plain() {
        return None;
    }
    let FetchRequest { wants, haves, done, include_tag, wait_for_done, thin_pack, .. } = request;
    let query = FetchQuery { wants, haves, done, wait_for_done, include_tag, thin_pack };
    match store.fetch(&query, &FetchLimits::default()) {
        Ok(fetched) => Some(write(&fetched)),
        Err(error @ FetchError::NotOurRef(_)) => {
            tracing::info!(%error, "fetch refused");
            let mut packet = Vec::new();
            pkt::err(&mut packet, &error.to_string());
            Some(packet)
        }
        Err(FetchError::TooBig(what)) => {
            tracing::debug!(what, "fetch is not small");
            None
        }
        // git has its own way of telling the client, and may know more than we do.
        Err(FetchError::Store(error)) => {
            tracing::warn!(%error, "small fetch failed");
            None
        }
    }
}

fn write(fetched: &Fetched) -> Vec<u8> {
    match fetched {
        Fetched::Acknowledged(common) => {
            tracing::debug!(n_common = common.len(), "fetch goes on");
            fetch::respond(Answer::Acknowledged(common))
        }
        Fetched::Pack { acknowledged, pack } => {
            tracing::debug!(n_bytes = pack.len(), "fetch answered in process");
            fetch::respond(Answer::Pack { acknowledged: acknowledged.as_deref(), pack })
        }
    }
}
