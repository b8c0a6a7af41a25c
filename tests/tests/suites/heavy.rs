//! Many clones of a large repository at once, in little memory.
//!
//! `ZIT_CLONES` says how many there are; 64 without it.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use zit_tests::wire::pkt;
use zit_tests::world::text;
use zit_tests::{Git, Server, World, server};

/// How many blobs there are, and how many bytes each has. Nothing can be made shorter.
const N_BLOBS: usize = 300;
const BLOB: usize = 1 << 20;

/// What all clones together may cost the server, in KiB, git's processes included.
const MAX_KIB: u64 = 500 * 1024;

/// How long the server may send nothing to a client, with all others to serve.
const PATIENCE: Duration = Duration::from_mins(5);

/// Random blobs in one pack of about 300 MB, of which no byte is compressed.
fn large(world: &World, name: &str) -> Git {
    let bare = server::init(world, name);
    let git = bare.with_config("core.compression=0");
    let mut random = fastrand::Rng::with_seed(7);
    let run = git.run_fed(["fast-import", "--quiet"], |out| {
        let mut feed = || {
            out.write_all(b"commit refs/heads/main\n")?;
            out.write_all(b"committer Ada Example <ada@example.com> 1700000000 +0000\n")?;
            out.write_all(b"data 5\nGrow\n\n")?;
            let mut blob = vec![0; BLOB];
            for n in 0..N_BLOBS {
                random.fill(&mut blob);
                write!(out, "M 100644 inline data/{n}.bin\ndata {BLOB}\n")?;
                out.write_all(&blob)?;
                out.write_all(b"\n")?;
            }
            out.write_all(b"done\n")
        };
        // A git that stopped reading says why.
        let _: std::io::Result<()> = feed();
    });
    assert!(run.is_ok(), "{run}");
    bare
}

/// Asks for everything that `tip` reaches and discards it; how many bytes came, and how they ended.
fn discard(address: &str, path: &str, tip: &str, all_began: &Barrier) -> (usize, Vec<u8>) {
    let mut body = Vec::new();
    body.extend(pkt(b"command=fetch"));
    body.extend(pkt(b"object-format=sha1"));
    body.extend(b"0001");
    for line in ["ofs-delta".to_owned(), format!("want {tip}"), "done".to_owned()] {
        body.extend(pkt(line.as_bytes()));
    }
    body.extend(b"0000");
    let head = format!(
        "POST /{path}/git-upload-pack HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Git-Protocol: version=2\r\nContent-Type: application/x-git-upload-pack-request\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero is taken");
    stream.write_all(&[head.as_bytes(), &body].concat()).expect("the server reads the request");
    let (mut buffer, mut n_read, mut end) = (vec![0; 256 * 1024], 0, Vec::new());
    loop {
        let n = stream.read(&mut buffer).expect("the server goes on");
        if n == 0 {
            return (n_read, end);
        }
        if n_read == 0 {
            // None is served before all have their answer under way.
            all_began.wait();
        }
        n_read += n;
        end.extend_from_slice(&buffer[..n]);
        end.drain(..end.len().saturating_sub(16));
    }
}

#[test]
fn clones_of_300_mb_at_once_take_less_than_500_mb_of_memory() {
    let n_clones = env::var("ZIT_CLONES").ok().and_then(|n| n.parse().ok()).unwrap_or(64);
    let world = World::new();
    let bare = large(&world, "large.git");
    let tip = bare.ok(["rev-parse", "main"]);
    let server = Server::start(&world);
    let before = server.anonymous_kib();
    let (all_began, is_over) = (Barrier::new(n_clones), AtomicBool::new(false));
    let peak = thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peak = 0;
            while !is_over.load(Ordering::Relaxed) {
                peak = peak.max(server.anonymous_kib());
                thread::sleep(Duration::from_millis(10));
            }
            peak
        });
        let ask = || discard(server.address(), "large.git", &tip, &all_began);
        let clients = (0..n_clones).map(|_| scope.spawn(ask)).collect::<Vec<_>>();
        for (n, client) in clients.into_iter().enumerate() {
            let (n_bytes, end) = client.join().unwrap();
            assert!(n_bytes > N_BLOBS * BLOB, "client {n}: {n_bytes} bytes");
            assert!(end.ends_with(b"0000\r\n0\r\n\r\n"), "client {n}: {end:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        sampler.join().unwrap()
    });
    println!("{n_clones} clones: {before} KiB before, {peak} KiB at most");
    assert!(peak < MAX_KIB, "{peak} KiB");
    // A client that looks at what comes finds it whole.
    let clone = world.path("clone");
    world.git().ok(["clone", "--quiet", "--bare", &server.url("large.git"), text(&clone)]);
    assert_eq!(world.git().at(clone).ok(["rev-parse", "main"]), tip);
}
