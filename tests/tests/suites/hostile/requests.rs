//! Requests that no git would send: cut off, of the wrong kind, out of the root, or far too large.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use flate2::Compression;
use flate2::write::GzEncoder;
use zit_tests::http;
use zit_tests::wire::{Report, pkt};
use zit_tests::world::text;

use super::{REPOSITORY, Target};

/// No request may make the server hold more than this.
const MAX_RESIDENT_KIB: u64 = 512 * 1024;

#[test]
fn half_sent_bodies_leave_nothing() {
    let mut target = Target::new();
    let body = target.good().encode();
    let path = format!("/{REPOSITORY}/git-receive-pack");
    let length = format!("Content-Length: {}", body.len());
    for encoding in [length.as_str(), "Transfer-Encoding: chunked"] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{encoding}\r\n\
             Content-Type: application/x-git-receive-pack-request\r\n\r\n"
        );
        for cut in [0, 1, 3, 50, body.len() / 2, body.len() - 10, body.len() - 1] {
            let mut bytes = head.clone().into_bytes();
            if encoding != length {
                bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
            }
            bytes.extend_from_slice(&body[..cut]);
            http::hang_up_after(target.server.address(), &bytes).unwrap();
            target.unharmed(&format!("{encoding}, cut off after {cut} bytes"));
        }
    }
    http::hang_up_after(target.server.address(), b"POST /app.git/git-rec").unwrap();
    target.unharmed("half a request line");
    assert_eq!(target.bare.resolve("refs/heads/x"), None);
}

#[test]
fn wrong_methods_types_and_services_get_an_http_error() {
    let mut target = Target::new();
    let body = target.good().encode();
    let push = "/app.git/git-receive-pack";
    let right = "Content-Type: application/x-git-receive-pack-request";
    let other = "Content-Type: application/x-git-upload-pack-request";
    let deflate = "Content-Encoding: br";
    let gzip = "Content-Encoding: gzip";
    let cases: [(&str, &str, &[&str]); 13] = [
        ("POST", push, &["Content-Type: text/plain"]),
        ("POST", push, &[other]),
        ("POST", push, &[]),
        ("POST", push, &[right, deflate]),
        ("POST", push, &[right, gzip]),
        ("GET", push, &[right]),
        ("POST", "/app.git/git-upload-pack", &[right]),
        ("POST", "/app.git/info/refs?service=git-receive-pack", &[right]),
        ("GET", "/app.git/info/refs?service=git-evil-pack", &[]),
        ("GET", "/app.git/objects/info/alternates/", &[]),
        ("GET", "/absent.git/info/refs?service=git-upload-pack", &[]),
        ("POST", "/absent.git/git-receive-pack", &[right]),
        ("GET", "/app.git/config", &[]),
    ];
    for (method, path, headers) in cases {
        let case = format!("{method} {path} {headers:?}");
        let response = http::request(target.server.address(), method, path, headers, &body);
        assert!((400..500).contains(&response.status), "{case}: {}", response.head);
        assert!(!response.body.is_empty(), "{case}: says what is wrong");
        target.unharmed(&case);
    }
}

#[test]
fn a_bad_fetch_request_gets_an_error_and_harms_nothing() {
    let mut target = Target::new();
    let kind = "Content-Type: application/x-git-upload-pack-request";
    let unknown = [&pkt(b"command=evil\n")[..], b"0000"].concat();
    let bodies: [(&str, Vec<u8>); 4] = [
        ("an unknown command", unknown),
        ("no pkt-line", b"hello".to_vec()),
        ("half a pkt-line", b"00ffcommand=".to_vec()),
        ("a want that is no oid", [&pkt(b"want nothing\n")[..], b"0000"].concat()),
    ];
    for (what, body) in bodies {
        for version in ["version=2", "version=0"] {
            let case = format!("{what} with {version}");
            let protocol = format!("Git-Protocol: {version}");
            let headers = [kind, protocol.as_str()];
            let address = target.server.address().to_owned();
            let response =
                http::request(&address, "POST", "/app.git/git-upload-pack", &headers, &body);
            let refused = response.status >= 400 || !response.text().contains("PACK");
            assert!(refused && response.status != 500, "{case}: {}", response.head);
            target.unharmed(&case);
        }
    }
}

#[test]
fn no_url_leads_out_of_the_root() {
    let mut target = Target::new();
    let outside = target.world.path("outside.git");
    target.world.git().ok(["init", "--quiet", "--bare", text(&outside)]);
    let clone = target.clone.clone();
    clone.ok(["push", "--quiet", text(&outside), "HEAD:refs/heads/secret"]);
    let root = target.world.root();
    symlink(&outside, root.join("link.git")).unwrap();
    symlink(target.world.path(""), root.join("up")).unwrap();
    fs::write(root.join("file.git"), format!("gitdir: {}\n", outside.display())).unwrap();
    let absolute = format!("/{}", outside.display());
    let repositories = [
        "/../outside.git",
        "/%2e%2e/outside.git",
        "/%2E%2e/outside.git",
        "/..%2foutside.git",
        "/app.git/../../outside.git",
        "/app.git/%2e%2e/%2e%2e/outside.git",
        "/./../outside.git",
        "/@a/../../outside.git",
        "/@a/%2e%2e/outside.git",
        "/@../outside.git",
        "/link.git",
        "/link",
        "/up/outside.git",
        "/file.git",
        absolute.as_str(),
        "//outside.git",
        "/..\\outside.git",
        "/%252e%252e/outside.git",
        "/app.git%00/../../outside.git",
        "/%00",
        "/%",
        "/%zz",
        "/app.git/objects/..",
        "/app.git/refs",
        "",
    ];
    for repository in repositories {
        for service in ["git-upload-pack", "git-receive-pack"] {
            let path = format!("{repository}/info/refs?service={service}");
            let response = http::get(target.server.address(), &path);
            assert!((400..500).contains(&response.status), "{path}: {}", response.head);
            assert!(!response.text().contains("secret"), "{path}: {}", response.text());
        }
        target.unharmed(repository);
    }
}

#[test]
fn a_gzip_bomb_and_broken_gzip_are_refused_within_bounded_memory() {
    let mut target = Target::new();
    let bomb = gzip_of_zeros(1 << 30);
    for (path, kind) in [("git-receive-pack", "receive"), ("git-upload-pack", "upload")] {
        let path = format!("/app.git/{path}");
        let content = format!("Content-Type: application/x-git-{kind}-pack-request");
        for (case, body) in [("a bomb", &bomb[..]), ("broken gzip", &b"\x1f\x8bnot gzip"[..])] {
            let headers = [content.as_str(), "Content-Encoding: gzip"];
            let response = http::request(target.server.address(), "POST", &path, &headers, body);
            let refused =
                response.status >= 400 || !Report::read(&response.body).refusals().is_empty();
            assert!(refused || response.text().contains("ERR "), "{case} to {path}: {response:?}");
            target.unharmed(case);
        }
    }
    let resident = target.server.peak_resident_kib();
    assert!(resident < MAX_RESIDENT_KIB, "the server held {resident} KiB");
}

fn gzip_of_zeros(n_bytes: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let block = vec![0; 1 << 20];
    for _ in 0..n_bytes / block.len() {
        encoder.write_all(&block).expect("memory takes what it is given");
    }
    encoder.finish().expect("memory takes what it is given")
}

#[test]
fn a_gzipped_push_as_git_sends_it_is_understood() {
    let target = Target::new();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&target.good().encode()).unwrap();
    let headers =
        ["Content-Type: application/x-git-receive-pack-request", "Content-Encoding: gzip"];
    let path = format!("/{REPOSITORY}/git-receive-pack");
    let body = encoder.finish().unwrap();
    let response = http::request(target.server.address(), "POST", &path, &headers, &body);
    assert_eq!(Report::read(&response.body).lines, ["unpack ok", "ok refs/heads/x"]);
}

#[test]
fn an_oversized_url_is_refused() {
    let mut target = Target::new();
    let path = format!("/{}/info/refs", "a".repeat(100_000));
    let response = http::get(target.server.address(), &path);
    assert!((400..500).contains(&response.status), "a long url: {}", response.head);
    target.unharmed("a long url");
}
