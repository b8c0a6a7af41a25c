//! Clients that create, move, delete and atomically push shared refs, claim and release, while the server
//! is stopped and killed under them: one order of all calls explains what every client was told.
//!
//! `ZIT_LINEAR_CALLS` and `ZIT_LINEAR_SEED` make a longer or another run. What is lawful is said in `model`;
//! `order` looks for the order.

mod client;
mod model;
mod order;

use std::env;
use std::fmt::Write as _;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use zit_tests::wire::ZERO;
use zit_tests::{Git, Server, World, server};

use client::{Client, Field, Group, Kind, REPOSITORY, Service};
use model::{Call, Entry};

/// How many clients call at once.
const N_CLIENTS: usize = 32;

/// How many calls they make together when `ZIT_LINEAR_CALLS` does not say.
const N_CALLS: usize = 3_000;

/// Chooses what they do when `ZIT_LINEAR_SEED` does not say.
const SEED: u64 = 20_260_105;

/// How often the server ends and comes back meanwhile.
const N_RESTARTS: usize = 6;

/// How many commits the refs choose from.
const N_COMMITS: usize = 24;

const FILES: &[(&str, &str)] = &[("README.md", "# Repo\n")];

#[test]
fn what_every_client_was_told_has_one_order_across_restarts() {
    let n_calls = setting("ZIT_LINEAR_CALLS")
        .map_or(N_CALLS, |n| usize::try_from(n).expect("a count of calls"));
    let seed = setting("ZIT_LINEAR_SEED").unwrap_or(SEED);
    eprintln!("ZIT_LINEAR_SEED={seed} ZIT_LINEAR_CALLS={n_calls}");
    let world = World::new();
    let bare = server::seeded(&world, REPOSITORY, FILES);
    let field = field(&bare, n_calls);
    let server = Server::start(&world);
    field.service.set(server.address());
    let mut clients = (0..N_CLIENTS).map(|n| Client::new(n, seed, &field)).collect::<Vec<_>>();
    let (sender, done) = mpsc::channel();
    let server = std::thread::scope(|scope| {
        for client in &mut clients {
            let sender = sender.clone();
            scope.spawn(move || client.work(&sender));
        }
        drop(sender);
        restart_now_and_then(server, &field.service, &done, n_calls, seed)
    });
    // What was acknowledged last must be there too.
    let mut server = server.restart();
    field.service.set(server.address());
    let mut last = Client::new(N_CLIENTS, seed, &field);
    last.read_all();
    clients.push(last);
    let history = clients.into_iter().flat_map(|client| client.history).collect::<Vec<_>>();
    judge(&field, history);
    // Maintenance ends with the server: packs that are folded meanwhile vanish under `git fsck`.
    assert!(server.stop().success());
    bare.ok(["fsck", "--strict"]);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

/// The history must be lawful; and not because the checker lets everything pass.
#[track_caller]
fn judge(field: &Field, mut history: Vec<Entry>) {
    let n_lost = history.iter().filter(|entry| entry.call.is_lost()).count();
    eprintln!("{} calls, {n_lost} answers lost", history.len());
    if let Err((group, verdict)) = model::check(&history) {
        history.retain(|entry| entry.group == group);
        history.sort_by_key(|entry| entry.sent);
        let lines = history.iter().map(|entry| format!("{entry:?}\n")).collect::<String>();
        panic!("{verdict:?}: {:?}\n{lines}", field.groups[group].names);
    }
    let last = history.last_mut().expect("the last client has read everything");
    let Call::Read { found, .. } = &mut last.call else { panic!("the last call is a read") };
    *found += 1;
    assert!(model::check(&history).is_err(), "the checker lets a wrong last read pass");
}

/// Ends the server at chosen counts of calls, by turns gracefully and as `kill -9` does.
fn restart_now_and_then(
    mut server: Server,
    service: &Service,
    done: &Receiver<()>,
    n_calls: usize,
    seed: u64,
) -> Server {
    let mut random = fastrand::Rng::with_seed(!seed);
    let span = n_calls / (N_RESTARTS + 1);
    for n in 0..N_RESTARTS {
        for _ in 0..span / 2 + random.usize(0..=span / 2) {
            done.recv().expect("the clients have more calls to make");
        }
        if n.is_multiple_of(2) {
            server.stop();
        }
        server = server.restart();
        service.set(server.address());
    }
    done.iter().for_each(drop);
    server
}

/// Every group, with its objects in the repository.
fn field(bare: &Git, n_calls: usize) -> Field {
    let seed = bare.resolve("refs/heads/main").expect("the repository is seeded");
    let (pool, chain) = (grow_pool(bare), grow_chain(bare, n_calls / 8));
    let slots =
        |prefix: &str, names: [&str; 3]| names.map(|name| format!("{prefix}/{name}")).to_vec();
    let group = |kind, seat: Option<&str>, names| Group {
        kind,
        seat: seat.map(str::to_owned),
        names,
        oids: pool.clone(),
        none: ZERO.to_owned(),
    };
    let names = ["a", "b", "c"];
    let main = ["refs/heads/main", "refs/zit/current"].map(str::to_owned).to_vec();
    let mut groups = vec![
        group(Kind::Refs, None, slots("refs/heads/first", names)),
        group(Kind::Refs, None, slots("refs/heads/second", names)),
        group(Kind::Refs, None, slots("refs/shared/third", names)),
        group(Kind::Refs, None, slots("refs/notes/fourth", names)),
        // Unconditional writes of several refs leave too many orders to search.
        group(Kind::Wip, Some("w1"), vec!["refs/zit/wip/w1/aaaaaaaaaaaa".to_owned()]),
        group(Kind::Wip, Some("w2"), vec!["refs/zit/wip/w2/bbbbbbbbbbbb".to_owned()]),
        group(Kind::Claim, None, vec!["claimed/one.txt".to_owned()]),
        group(Kind::Claim, None, vec!["claimed/two.rs#parse".to_owned()]),
    ];
    // The last group must be one that can be read.
    groups.push(Group { oids: chain, none: seed, ..group(Kind::Mainline, None, main) });
    let (service, budget) = (Service::default(), AtomicUsize::new(n_calls));
    Field { service, groups, started: Instant::now(), budget }
}

/// Commits that each write a file of their own beside what is there.
fn grow_pool(bare: &Git) -> Vec<String> {
    let mut stream = String::new();
    for n in 1..=N_COMMITS {
        let _ = writeln!(stream, "commit refs/keep/pool-{n}\nmark :{n}");
        let _ = writeln!(
            stream,
            "committer Ada <ada@example.com> {} +0000\ndata 1\nx",
            1_767_600_000 + n
        );
        let _ = writeln!(stream, "from refs/heads/main^0\nM 100644 inline pool/{n}.txt\ndata 1\nx");
    }
    import(bare, &stream, N_COMMITS)
}

/// Levels of two commits, each a fast-forward of both of the level below.
fn grow_chain(bare: &Git, n_levels: usize) -> Vec<String> {
    let mut stream = String::new();
    for n in 1..=2 * n_levels {
        let side = if n.is_multiple_of(2) { "right" } else { "left" };
        let _ = writeln!(stream, "commit refs/keep/{side}\nmark :{n}");
        let _ = writeln!(
            stream,
            "committer Ada <ada@example.com> {} +0000\ndata 1\nx",
            1_767_600_000 + n
        );
        // The first of the two commits below; 0 or less below the lowest level.
        match n.div_ceil(2) * 2 {
            2 => stream.push_str("from refs/heads/main^0\n"),
            top => stream.push_str(&format!("from :{}\nmerge :{}\n", top - 3, top - 2)),
        }
        let _ = writeln!(stream, "M 100644 inline chain.txt\ndata {}\n{n}", n.to_string().len());
    }
    import(bare, &stream, 2 * n_levels)
}

/// The oids of the marks 1 to `n_marks` of a stream for `git fast-import`.
fn import(bare: &Git, stream: &str, n_marks: usize) -> Vec<String> {
    let run = bare.run_with_input(
        ["fast-import", "--quiet", "--force", "--export-marks=marks"],
        stream.as_bytes(),
    );
    assert!(run.is_ok(), "{run}");
    let path = bare.dir().join("marks");
    let marks = std::fs::read_to_string(&path).expect("git wrote the marks");
    std::fs::remove_file(path).expect("the file is there");
    let mut oids = vec![String::new(); n_marks];
    for line in marks.lines() {
        let (mark, oid) = line.split_once(' ').expect("a mark and its oid");
        let mark = mark.trim_start_matches(':').parse::<usize>().expect("a mark is a number");
        oid.clone_into(&mut oids[mark - 1]);
    }
    oids
}

fn setting(name: &str) -> Option<u64> {
    env::var(name).ok().map(|value| value.parse().expect("the setting is a number"))
}
