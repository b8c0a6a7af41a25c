//! `POST git-receive-pack` between the reactor and [`zit_service::receive_pack`].
//!
//! An answer is sent when it is whole, unless its making takes long: a client that reads bands is then told every
//! `receive.keepAlive` seconds that work goes on, by an empty packet, as soon as all of its pack has come. Whatever
//! stands between it and the server would otherwise take the connection for dead.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Response;
use hyper::body::Bytes;
use tracing::Instrument;
use zit_model::failure;
use zit_referee::{Caller, Repository};
use zit_service::receive_pack::{self, Begun};
use zit_store::PackLimits;
use zit_wire::service::Service;
use zit_wire::side_band;

use super::blocking;
use super::body::{Growing, Outlet, Received, RequestBody, ResponseBody};
use super::respond::{self, EdgeError};

/// An empty packet of band 1. Source: git's `receive-pack.c`.
const KEEP_ALIVE: &[u8] = b"0005\x01";

/// What became of a push.
enum Done {
    /// This is the answer.
    Whole(Vec<u8>),
    /// The answer grows while hooks speak.
    Growing(ResponseBody),
}

/// What a push under way tells of itself.
#[derive(Clone)]
struct Signs {
    /// Whether all of the request has come.
    received: Received,
    /// Whether the client is known to read bands.
    bands: Arc<AtomicBool>,
}

impl Signs {
    fn may_be_kept_alive(&self) -> bool {
        self.received.is_whole() && self.bands.load(Ordering::Acquire)
    }
}

/// Answers one push, with a sign of life `every` so often while it takes long.
///
/// # Errors
/// [`EdgeError`] when the body stops before its pack, or is no push and the client reads no bands.
pub(crate) async fn answer(
    repository: Arc<Repository>,
    caller: Caller,
    limits: PackLimits,
    every: Option<Duration>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, EdgeError> {
    let signs = Signs { received: body.received(), bands: Arc::default() };
    let bands = Arc::clone(&signs.bands);
    let work = blocking(move || carry_out(repository, caller, limits, body, &bands));
    let done = match every {
        Some(every) => kept_alive(work, signs, every).await?,
        None => work.await?,
    };
    let content_type = Service::ReceivePack.result_type();
    Ok(match done {
        Done::Whole(answer) => respond::whole(content_type, answer),
        Done::Growing(body) => respond::with_body(content_type, body),
    })
}

/// Carries one push out. Blocks; on the reactor's blocking threads only.
fn carry_out(
    repository: Arc<Repository>,
    caller: Caller,
    limits: PackLimits,
    body: RequestBody,
    bands: &AtomicBool,
) -> Result<Done, EdgeError> {
    let incoming = match receive_pack::begin(&repository, body.into_read())? {
        Begun::Answered(answer) => return Ok(Done::Whole(answer)),
        Begun::Push(incoming) => incoming,
    };
    if !incoming.speaks(&repository) {
        bands.store(incoming.reads_bands(), Ordering::Release);
        return Ok(Done::Whole(incoming.answer(&repository, &caller, &limits)));
    }
    let (mut outlet, body) = Outlet::open();
    let span = tracing::Span::current();
    let work = move || incoming.carry_out(&repository, &caller, &limits, &mut outlet);
    tokio::task::spawn_blocking(move || span.in_scope(work));
    Ok(Done::Growing(body))
}

/// Waits for `work`; where that takes long, answers with what grows from signs of life to its end.
async fn kept_alive(
    work: impl Future<Output = Result<Done, EdgeError>> + Send + 'static,
    signs: Signs,
    every: Duration,
) -> Result<Done, EdgeError> {
    let mut work = Box::pin(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = tokio::time::sleep(every) => if signs.may_be_kept_alive() {
                break;
            }
        }
    }
    let (growing, body) = Growing::open();
    tokio::spawn(grow(work, growing, every).in_current_span());
    Ok(Done::Growing(body))
}

async fn grow(
    work: impl Future<Output = Result<Done, EdgeError>>,
    mut growing: Growing,
    every: Duration,
) {
    let mut work = pin!(work);
    let mut is_heard = growing.send(Bytes::from_static(KEEP_ALIVE)).await;
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            () = tokio::time::sleep(every), if is_heard => {
                is_heard = growing.send(Bytes::from_static(KEEP_ALIVE)).await;
            }
        }
    };
    let answer = match done {
        Ok(Done::Whole(answer)) => answer,
        // It is only whole where signs of life are given.
        Ok(Done::Growing(_)) => Vec::new(),
        Err(error) => {
            tracing::error!(%error, "push failed");
            let mut packets = Vec::new();
            side_band::error(&mut packets, &failure::chain(&error));
            packets
        }
    };
    if !growing.send(Bytes::from(answer)).await {
        tracing::info!("push carried out, and its report lost");
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::time::sleep;

    use super::*;

    const EVERY: Duration = Duration::from_secs(5);

    fn signs(received: bool, bands: bool) -> Signs {
        let found = Signs { received: Received::default(), bands: Arc::default() };
        if received {
            found.received.end();
        }
        found.bands.store(bands, Ordering::Release);
        found
    }

    /// What a client reads that is answered `done` after `seconds`.
    async fn read(seconds: u64, signs: Signs) -> String {
        let work = async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok(Done::Whole(b"done".to_vec()))
        };
        match kept_alive(work, signs, EVERY).await.unwrap() {
            Done::Whole(answer) => format!("whole {}", String::from_utf8(answer).unwrap()),
            Done::Growing(body) => {
                let bytes = body.collect().await.unwrap().to_bytes();
                String::from_utf8(bytes.to_vec()).unwrap()
            }
        }
    }

    // The clock leaps to the next timer whenever nothing else can go on.

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_long_is_told_that_work_goes_on() {
        assert_eq!(read(4, signs(true, true)).await, "whole done");
        assert_eq!(read(6, signs(true, true)).await, "0005\x01done");
        assert_eq!(read(21, signs(true, true)).await, "0005\x01".repeat(4) + "done");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_told_before_the_pack_has_come_or_without_bands() {
        assert_eq!(read(21, signs(false, true)).await, "whole done");
        assert_eq!(read(21, signs(true, false)).await, "whole done");
        let late = signs(false, true);
        let received = late.received.clone();
        tokio::spawn(async move {
            sleep(Duration::from_secs(11)).await;
            received.end();
        });
        assert_eq!(read(21, late).await, "0005\x01".repeat(2) + "done");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_after_a_sign_of_life_is_told_in_band_three() {
        let work = async {
            sleep(2 * EVERY).await;
            Err(EdgeError::Panicked)
        };
        let Done::Growing(body) = kept_alive(work, signs(true, true), EVERY).await.unwrap() else {
            panic!("signs of life were given");
        };
        let bytes = body.collect().await.unwrap().to_bytes();
        assert!(bytes.ends_with(b"\x03the server failed at this request\n"), "{bytes:?}");
    }
}
