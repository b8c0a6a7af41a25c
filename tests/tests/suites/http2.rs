//! Whatever is said over HTTP/1.1 can be said over HTTP/2, and is answered the same.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use zit_tests::curl::{Transfer, curl, try_curl};
use zit_tests::process;
use zit_tests::wire::pkt;
use zit_tests::{Server, World, server};

const UPLOAD: &str = "Content-Type: application/x-git-upload-pack-request";

/// Every way in which curl can be told to speak, and what it then speaks to a server without TLS.
const WAYS: [(&str, &str); 3] =
    [("--http1.1", "1.1"), ("--http2", "1.1"), ("--http2-prior-knowledge", "2")];

/// A request that lists the branches, in version 2.
fn list_branches() -> Vec<u8> {
    let prefix = pkt(b"ref-prefix refs/heads/\n");
    [pkt(b"command=ls-refs\n"), b"0001".to_vec(), prefix, b"0000".to_vec()].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

fn list(world: &World, server: &Server, args: &[&str], body: &[u8]) -> Transfer {
    let url = server.url("app/git-upload-pack");
    let mut all = vec!["--header", UPLOAD, "--header", "Git-Protocol: version=2"];
    all.extend_from_slice(args);
    all.extend_from_slice(&["--data-binary", "@-", &url]);
    curl(world, &all, body)
}

#[test]
fn a_request_is_answered_the_same_in_both_versions_and_every_encoding() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let server = Server::start(&world);
    let main = bare.resolve("refs/heads/main").unwrap();
    let expected = [pkt(format!("{main} refs/heads/main\n").as_bytes()), b"0000".to_vec()].concat();
    let (plain, packed) = (list_branches(), gzip(&list_branches()));
    let encodings: [(&[&str], &[u8]); 4] = [
        (&[], &plain),
        (&["--header", "Content-Encoding: gzip"], &packed),
        // Over HTTP/2, where every body is sent in pieces anyway, curl leaves this one out.
        (&["--header", "Transfer-Encoding: chunked"], &plain),
        (&["--header", "Expect: 100-continue"], &plain),
    ];
    for (way, version) in WAYS {
        for (args, body) in encodings {
            let answer = list(&world, &server, &[&[way], args].concat(), body);
            let case = format!("{way} {args:?}: {answer:?}");
            assert_eq!((answer.status, answer.version.as_str()), (200, version), "{case}");
            assert_eq!(answer.body, expected, "{case}");
            assert_eq!(answer.header("content-type"), "application/x-git-upload-pack-result");
        }
    }
}

#[test]
fn git_fetches_and_pushes_whichever_version_it_asks_for() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let server = Server::start(&world);
    for version in ["HTTP/1.1", "HTTP/2"] {
        let git = world.git().with_config(format!("http.version={version}"));
        let clone = git.clone_of(&server.url("app"), &version.replace('/', "-"));
        let branch = version.replace('/', "-");
        let new = clone.commit("More", &[(&branch, "b\n")]);
        clone.ok(["push", "--quiet", "origin", &format!("HEAD:refs/heads/{branch}")]);
        assert_eq!(bare.resolve(&format!("refs/heads/{branch}")), Some(new), "{version}");
    }
}

#[test]
fn many_requests_share_one_http2_connection() {
    let world = World::new();
    server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let server = Server::start(&world);
    let url = server.url("app/info/refs?service=git-upload-pack");
    let mut load = process::command("h2load");
    load.args(["--requests=2000", "--clients=2", "--max-concurrent-streams=80", &url]);
    let run = process::run(&mut load, b"");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}");
    assert!(said.contains("Application protocol: h2c"), "{said}");
    assert!(said.contains("status codes: 2000 2xx"), "{said}");
}

#[test]
fn the_host_is_checked_in_both_versions() {
    let world = World::new();
    let server = Server::start(&world);
    for (way, version) in WAYS {
        let answer =
            curl(&world, &[way, "--header", "Host: example.org", &server.url("livez")], b"");
        assert_eq!((answer.status, answer.version.as_str()), (421, version), "{way}");
        let answer = curl(&world, &[way, &server.url("livez")], b"");
        assert_eq!((answer.status, answer.text().as_str()), (200, "ok\n"), "{way}");
    }
}

#[test]
fn headers_past_the_limit_are_refused_in_both_versions() {
    let world = World::new();
    let server = Server::start(&world);
    let file = world.path("headers");
    let long = |n| format!("X-Long-{n}: {}\n", "x".repeat(15_000));
    std::fs::write(&file, (0..5).map(long).collect::<String>()).unwrap();
    let header = format!("@{}", file.display());
    for (way, _) in WAYS {
        let args = [way, "--header", &header, &server.url("livez")];
        match try_curl(&world, &args, b"") {
            Ok(answer) => assert_eq!(answer.status, 431, "{way}"),
            // Over HTTP/2 the server may also end the connection.
            Err(said) => assert!(said.contains("Connection died"), "{way}: {said}"),
        }
        assert_eq!(curl(&world, &[way, &server.url("livez")], b"").status, 200, "{way}");
    }
}
