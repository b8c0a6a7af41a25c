//! What an administrator changes under a running server is seen by the next request.

use std::fs::{self, File};
use std::io::Write;
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use zit_tests::curl::curl;
use zit_tests::world::text;
use zit_tests::{Git, Server, World, http, server, wire};

/// One change, and what a client sees of `app` afterwards: the lines of `git ls-remote --symref` without the tabs, or
/// part of what it says when it fails.
struct Change {
    what: &'static str,
    make: fn(&World, &Git),
    seen: Seen,
}

enum Seen {
    /// These refs, and no others.
    Refs(&'static [&'static str]),
    /// No repository, or nothing to fetch.
    Refused(&'static str),
}

const CHANGES: &[Change] = &[
    Change {
        what: "it appears",
        make: |world, _| {
            server::seeded(world, "app.git", &[("a.txt", "a\n")]);
        },
        seen: Seen::Refs(&["HEAD", "refs/heads/main", "refs/zit/current"]),
    },
    Change {
        what: "a branch is made",
        make: |_, bare| {
            bare.ok(["update-ref", "refs/heads/topic", "main"]);
        },
        seen: Seen::Refs(&["HEAD", "refs/heads/main", "refs/heads/topic", "refs/zit/current"]),
    },
    Change {
        what: "refs and objects are packed",
        make: |_, bare| {
            bare.ok(["gc", "--quiet"]);
        },
        seen: Seen::Refs(&["HEAD", "refs/heads/main", "refs/heads/topic", "refs/zit/current"]),
    },
    Change {
        what: "a packed branch goes",
        make: |_, bare| {
            bare.ok(["branch", "--quiet", "-D", "topic"]);
        },
        seen: Seen::Refs(&["HEAD", "refs/heads/main", "refs/zit/current"]),
    },
    Change {
        what: "HEAD names a branch to come",
        make: |_, bare| {
            bare.ok(["symbolic-ref", "HEAD", "refs/heads/later"]);
        },
        seen: Seen::Refs(&["refs/heads/main", "refs/zit/current"]),
    },
    Change {
        what: "it is closed to fetchers",
        make: |_, bare| {
            bare.ok(["config", "http.uploadpack", "false"]);
        },
        seen: Seen::Refused("service not enabled: 'upload-pack'"),
    },
    Change {
        what: "it is opened again",
        make: |_, bare| {
            bare.ok(["config", "--unset", "http.uploadpack"]);
        },
        seen: Seen::Refs(&["refs/heads/main", "refs/zit/current"]),
    },
    Change {
        what: "it is moved away",
        make: |world, bare| {
            fs::rename(bare.dir(), world.root().join("moved.git")).expect("the root is writable");
        },
        seen: Seen::Refused("no git repository at"),
    },
    Change {
        what: "it is moved back",
        make: |world, bare| {
            fs::rename(world.root().join("moved.git"), bare.dir()).expect("the root is writable");
        },
        seen: Seen::Refs(&["refs/heads/main", "refs/zit/current"]),
    },
    Change {
        what: "another takes its place",
        make: |world, bare| {
            fs::remove_dir_all(bare.dir()).expect("the root is writable");
            let other = server::seeded(world, "other.git", &[("b.txt", "b\n")]);
            fs::rename(other.dir(), bare.dir()).expect("the root is writable");
            bare.ok(["tag", "other", "main"]);
        },
        seen: Seen::Refs(&["HEAD", "refs/heads/main", "refs/tags/other", "refs/zit/current"]),
    },
    Change {
        what: "it is gone",
        make: |_, bare| {
            fs::remove_dir_all(bare.dir()).expect("the root is writable");
        },
        seen: Seen::Refused("no git repository at"),
    },
    Change {
        what: "an empty one appears",
        make: |world, _| {
            server::init(world, "app.git");
        },
        seen: Seen::Refs(&[]),
    },
];

#[test]
fn the_next_request_sees_every_change() {
    let world = World::new();
    let server = Server::start(&world);
    let bare = world.git().at(world.root().join("app.git"));
    for Change { what, make, seen } in CHANGES {
        make(&world, &bare);
        for version in ["0", "2"] {
            let git = world.git().with_config(format!("protocol.version={version}"));
            let run = git.run(["ls-remote", &server.url("app")]);
            match seen {
                Seen::Refs(expected) => {
                    let listed = run.ok().text();
                    let names: Vec<&str> =
                        listed.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
                    assert_eq!(names, *expected, "{what}, protocol {version}");
                }
                Seen::Refused(why) => drop(run.failed().says(why)),
            }
        }
    }
}

#[test]
fn a_repository_that_takes_anothers_place_can_be_pushed_to() {
    let world = World::new();
    let first = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let server = Server::start(&world);
    let clone = world.git().clone_of(&server.url("app"), "clone");
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/one"]);
    fs::remove_dir_all(first.dir()).unwrap();
    let second = server::init(&world, "app.git");
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
    assert_eq!(second.resolve("refs/heads/main"), clone.resolve("HEAD"));
    assert_eq!(second.resolve("refs/heads/one"), None);
    second.ok(["fsck", "--strict"]);
}

#[test]
fn an_idle_repository_costs_little_memory() {
    const N_REPOSITORIES: u64 = 100;
    // A build for tests holds an eighth more than one for use, which stays below 200 kB.
    const MAX_KIB: u64 = 220;
    let world = World::new();
    let first = server::seeded(&world, "r0.git", &[("a.txt", "a\n")]);
    for n in 1..=N_REPOSITORIES {
        let copy = world.root().join(format!("r{n}.git"));
        world.git().ok(["clone", "--quiet", "--mirror", text(first.dir()), text(&copy)]);
    }
    let server = Server::start(&world);
    let ask = |n: u64| {
        let url = server.url(&format!("r{n}/info/refs?service=git-receive-pack"));
        assert_eq!(curl(&world, &[&url], b"").status, 200, "r{n}");
    };
    // What the first ones cost is the server's own.
    (0..10).for_each(ask);
    let before = server.anonymous_kib();
    (10..=N_REPOSITORIES).for_each(ask);
    let each = server.anonymous_kib().saturating_sub(before) / (N_REPOSITORIES - 10);
    assert!(each < MAX_KIB, "{each} KiB each");
}

#[test]
fn a_push_that_takes_long_is_kept_alive() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let server = Server::start(&world);
    let clone = world.git().clone_of(&server.url("app"), "clone");
    clone.commit("More", &[("b.txt", "b\n")]);
    // Somebody else's lock, for which the server waits that long before it gives up.
    bare.ok(["config", "core.filesRefLockTimeout", "3500"]);
    bare.ok(["config", "receive.keepAlive", "1"]);
    fs::write(bare.dir().join("refs/heads/x.lock"), "").unwrap();
    let push = ["push", "origin", "HEAD:refs/heads/x"];
    let run = clone.with_env("GIT_TRACE_PACKET", "1").fails(push);
    let text = run.to_string();
    // git's trace of a packet that has a band and nothing in it.
    let n_alive = text.lines().filter(|line| line.ends_with("sideband< \\1")).count();
    assert!(n_alive >= 2, "{n_alive} of\n{text}");
    assert!(text.contains("refs/heads/x"), "the report follows: {text}");
    fs::remove_file(bare.dir().join("refs/heads/x.lock")).unwrap();
    clone.ok(push);
}

#[test]
fn a_configuration_that_takes_long_to_read_holds_up_only_those_who_need_it() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let server = Server::start(&world);
    let ask = |service: &str, body: &[u8]| {
        let kind = format!("Content-Type: application/x-{service}-request");
        let headers = [&kind, "Git-Protocol: version=2"];
        http::request(server.address(), "POST", &format!("/app.git/{service}"), &headers, body)
    };
    let list = [&wire::pkt(b"command=ls-refs\n"), b"0001".as_slice(), b"0000"].concat();
    let ask_both = || [ask("git-upload-pack", &list), ask("git-receive-pack", b"0000")];
    let known = ask_both().map(|answer| (answer.status, answer.body));
    let (config, before) = (bare.dir().join("config"), world.path("before"));
    fs::rename(&config, &before).unwrap();
    mknodat(CWD, &config, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    thread::scope(|scope| {
        // More than the server has threads that serve all.
        let n_askers = 4 * thread::available_parallelism().unwrap().get();
        let askers: Vec<_> = (0..n_askers).map(|_| scope.spawn(ask_both)).collect();
        // It opens once the server reads, which then waits for what is written.
        let mut writer = File::options().write(true).open(&config).unwrap();
        for n in 0..100 {
            assert_eq!(http::get(server.address(), "/livez").status, 200, "{n}");
        }
        let text = fs::read(&before).unwrap();
        fs::rename(before, &config).unwrap();
        writer.write_all(&text).unwrap();
        drop(writer);
        for asker in askers {
            let answers = asker.join().unwrap().map(|answer| (answer.status, answer.body));
            assert_eq!(answers, known);
        }
    });
}
