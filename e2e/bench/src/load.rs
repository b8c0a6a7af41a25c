//! Drives clients against a server and measures what they get and what it costs.
//!
//! [`keep_alive`] has many clients at once, each on a thread and connections of its own; [`by_git`] runs one git client
//! after another. Neither knows what an operation is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::cpu::{self, Group};

/// How long clients run before they are measured: caches fill, programs are read from disk.
const WARM_UP: Duration = Duration::from_millis(700);

/// How often the main thread looks whether a client has failed.
const GLANCE: Duration = Duration::from_millis(20);

/// The fewest git clients that are measured, however long they take.
const MIN_RUNS: usize = 3;

/// One client of a server.
pub(crate) trait Client: Send {
    /// Tries to do one operation.
    ///
    /// # Errors
    /// When the server does not do what was asked.
    fn attempt(&mut self) -> Result<Attempt>;
}

/// What came of trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The operation is done.
    Done,
    /// Another client was faster; it takes another attempt.
    Lost,
}

/// What was measured of one row on one side.
#[derive(Debug)]
pub(crate) struct Sample {
    /// How long was measured.
    pub(crate) span: Duration,
    /// How long each operation took, with the attempts that it lost before; the shortest first.
    pub(crate) latencies: Vec<Duration>,
    /// Attempts lost to other clients.
    pub(crate) n_lost: usize,
    /// Processor time of the server, if it is known.
    pub(crate) server_cpu: Option<Duration>,
    /// Processor time of the clients.
    pub(crate) client_cpu: Duration,
}

/// Lets all `clients` work for `span`; `server` is the group of the server's processes.
///
/// # Errors
/// The first that a client reports.
pub(crate) fn keep_alive<C: Client>(
    clients: Vec<C>,
    server: &Group,
    span: Duration,
) -> Result<Sample> {
    let stop = AtomicBool::new(false);
    let (meter, finished) = thread::scope(|scope| {
        let start = |client| scope.spawn(|| work(client, &stop));
        let workers = clients.into_iter().map(start).collect::<Vec<_>>();
        wait(WARM_UP, &stop);
        let meter = Meter::start(server);
        wait(span, &stop);
        let meter = meter.read();
        stop.store(true, Ordering::Relaxed);
        let finished = workers.into_iter().map(join).collect::<Result<Vec<_>>>();
        finished.map(|finished| (meter, finished))
    })?;
    let inside = |tried: &&Tried| (meter.begin..meter.end).contains(&tried.end);
    let inside = finished.iter().flatten().filter(inside);
    let latencies = inside.clone().filter_map(|tried| tried.latency).collect::<Vec<_>>();
    let n_lost = inside.count() - latencies.len();
    meter.sample(latencies, n_lost)
}

/// Runs `operate` with the numbers 1 to `n_max`, for about `span` and at least [`MIN_RUNS`] times, after one run with
/// the number 0 that is not measured.
///
/// # Errors
/// The first of `operate`.
pub(crate) fn by_git(
    n_max: usize,
    server: &Group,
    span: Duration,
    mut operate: impl FnMut(usize) -> Result<()>,
) -> Result<Sample> {
    operate(0)?;
    let meter = Meter::start(server);
    let mut latencies = Vec::new();
    for n in 1..=n_max {
        let begin = Instant::now();
        operate(n)?;
        latencies.push(begin.elapsed());
        if n >= MIN_RUNS && meter.begin.elapsed() > span {
            break;
        }
    }
    meter.read().sample(latencies, 0)
}

/// One attempt of a client.
#[derive(Debug)]
struct Tried {
    end: Instant,
    /// From the first attempt at an operation to its end; of a lost attempt there is none.
    latency: Option<Duration>,
}

fn work(mut client: impl Client, stop: &AtomicBool) -> Result<Vec<Tried>> {
    let mut all = Vec::new();
    let mut begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let attempt = client.attempt().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        let end = Instant::now();
        let latency = (attempt == Attempt::Done).then(|| end - begin);
        if latency.is_some() {
            begin = end;
        }
        all.push(Tried { end, latency });
    }
    Ok(all)
}

fn join<T>(worker: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    worker.join().map_err(|_| anyhow!("a client panicked"))?
}

/// Waits for `span`, or until a client has failed.
fn wait(span: Duration, stop: &AtomicBool) {
    let begin = Instant::now();
    while begin.elapsed() < span && !stop.load(Ordering::Relaxed) {
        thread::sleep(GLANCE.min(span.saturating_sub(begin.elapsed())));
    }
}

/// Reads the clock and the processor times at the begin of a measurement, and at its end.
struct Meter<'a> {
    server: &'a Group,
    begin: Instant,
    server_cpu: Option<Duration>,
    client_cpu: Duration,
}

/// What was used between the two readings.
struct Reading {
    begin: Instant,
    end: Instant,
    server_cpu: Option<Duration>,
    client_cpu: Duration,
}

impl<'a> Meter<'a> {
    fn start(server: &'a Group) -> Self {
        let (server_cpu, client_cpu) = (server.used(), cpu::of_self());
        Self { server, begin: Instant::now(), server_cpu, client_cpu }
    }

    fn read(self) -> Reading {
        let used = self.server.used().zip(self.server_cpu);
        Reading {
            begin: self.begin,
            end: Instant::now(),
            server_cpu: used.map(|(end, begin)| end.saturating_sub(begin)),
            client_cpu: cpu::of_self().saturating_sub(self.client_cpu),
        }
    }
}

impl Reading {
    fn sample(self, mut latencies: Vec<Duration>, n_lost: usize) -> Result<Sample> {
        ensure!(
            !latencies.is_empty(),
            "no operation ended in {:?}; give --seconds more",
            self.end - self.begin
        );
        latencies.sort_unstable();
        let (span, server_cpu, client_cpu) =
            (self.end - self.begin, self.server_cpu, self.client_cpu);
        Ok(Sample { span, latencies, n_lost, server_cpu, client_cpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fails(usize);

    impl Client for Fails {
        fn attempt(&mut self) -> Result<Attempt> {
            self.0 = self.0.checked_sub(1).ok_or_else(|| anyhow!("the server is gone"))?;
            Ok(Attempt::Done)
        }
    }

    #[test]
    fn one_failing_client_ends_the_measurement_with_its_error() {
        let clients = [usize::MAX, 3].map(Fails).into();
        let error = keep_alive(clients, &Group::none(), Duration::from_mins(1)).unwrap_err();
        assert_eq!(error.to_string(), "the server is gone");
    }

    #[test]
    fn git_runs_are_measured_but_for_the_first_up_to_their_number() {
        let mut ran = Vec::new();
        let operate = |n| {
            ran.push(n);
            ensure!(n <= 4, "there are no more");
            Ok(())
        };
        let sample = by_git(4, &Group::none(), Duration::from_mins(1), operate).unwrap();
        assert_eq!((sample.latencies.len(), ran), (4, vec![0, 1, 2, 3, 4]));
    }
}
