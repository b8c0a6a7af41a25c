//! What is asked over HTTP is answered as `git http-backend` answers it: status, headers, and content.
//!
//! Both serve the same repositories at the same time. Where a body is git's own, it is compared too; a refusal of ours
//! has a text besides, which git keeps for its log.

use std::fs;

use zit_tests::curl::{Transfer, curl};
use zit_tests::world::text;
use zit_tests::{Git, Peer, Server, World, server};

/// The repositories: how each is configured, on top of what `zit-server init` writes.
const REPOSITORIES: [(&str, &[(&str, &str)]); 5] = [
    ("plain.git", &[]),
    (
        "closed.git",
        &[
            ("http.uploadpack", "false"),
            ("http.receivepack", "false"),
            ("http.getanyfile", "false"),
        ],
    ),
    (
        "open.git",
        &[
            ("http.uploadpack", "yes"),
            ("http.receivepack", "true"),
            ("http.getanyfile", "1"),
            ("http.uploadarchive", "on"),
        ],
    ),
    ("empty.git", &[]),
    ("work/.git", &[]),
];

/// What is asked of each, by GET, HEAD and POST.
const PATHS: [&str; 16] = [
    "HEAD",
    "info/refs",
    "info/refs?service=git-upload-pack",
    "info/refs?service=git-receive-pack",
    "info/refs?x=y&service=git%2Dupload-pack",
    "info/refs?service=upload-pack",
    "info/refs?service=",
    "info/refs?service=git-frotz",
    "objects/info/packs",
    "objects/info/alternates",
    "objects/info/http-alternates",
    "objects/12/34567890123456789012345678901234567890",
    "objects/pack/pack-0123456789012345678901234567890123456789.pack",
    "config",
    "objects",
    "",
];

const SERVICES: [&str; 3] = ["git-upload-pack", "git-receive-pack", "git-upload-archive"];

/// Makes the repositories of [`REPOSITORIES`]; the one that is not empty has loose objects, a pack and a tag.
fn world() -> World {
    let world = World::new();
    for (name, config) in REPOSITORIES {
        let git = match name {
            "empty.git" => server::init(&world, name),
            "work/.git" => with_work_tree(&world),
            _ => server::seeded(&world, name, &[("a.txt", "a\n"), ("b/c.txt", "c\n")]),
        };
        // Unset, git gives archives to whom its web server knows, and the peer's knows everybody.
        git.ok(["config", "http.uploadarchive", "false"]);
        for (key, value) in config {
            git.ok(["config", key, value]);
        }
        if name != "empty.git" {
            git.ok(["tag", "-a", "-m", "One", "v1", "main"]);
            git.ok(["repack", "-q", "-a", "-d"]);
            git.ok(["tag", "-a", "-m", "Two", "v2", "main"]);
        }
    }
    world
}

fn with_work_tree(world: &World) -> Git {
    let folder = world.root().join("work");
    world.git().ok(["init", "--quiet", text(&folder)]);
    let git = world.git().at(&folder);
    git.commit("Begin", &[("a.txt", "a\n")]);
    git
}

/// What is compared of an answer.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
}

fn seen(answer: &Transfer, with_body: bool) -> Seen {
    let mut headers = vec!["pragma", "cache-control", "last-modified", "allow"];
    if answer.status == 200 {
        headers.push("content-type");
    }
    let mut headers: Vec<_> = headers.into_iter().map(|name| (name, answer.header(name))).collect();
    // What is kept for ever expires a year after it was asked for.
    let expires = answer.header("expires");
    let is_past = expires.starts_with("Fri, 01 Jan 1980") || expires.is_empty();
    headers.push(("expires", if is_past { expires } else { "later".to_owned() }));
    for (name, value) in &mut headers {
        if *name == "last-modified" {
            *value = as_in_http(value);
        }
    }
    Seen { status: answer.status, headers, body: with_body.then(|| answer.text()) }
}

/// A date as HTTP wants it. git writes dates as in mail: an offset, and one digit for the days before the tenth.
fn as_in_http(date: &str) -> String {
    let words = date.split(' ').map(|word| match word {
        "+0000" => "GMT".to_owned(),
        day if day.len() == 1 => format!("0{day}"),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn every_way_into_a_repository_is_answered_as_by_git() {
    let world = world();
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    let compare = |args: &[&str], repository: &str, path: &str, with_body: bool| {
        let ask =
            |url: String| curl(&world, &[args, &[&format!("{url}/{path}")]].concat(), b"0000");
        let repository = repository.strip_suffix(".git").unwrap_or(repository);
        let repository = repository.trim_end_matches('/');
        let (ours, gits) = (ask(server.url(repository)), ask(peer.url(repository)));
        let case = format!("{args:?} {repository}/{path}: {ours:?}");
        assert_eq!(seen(&ours, with_body), seen(&gits, with_body), "{case}");
        let refused = (400..500).contains(&ours.status);
        let probed = path.starts_with("objects/");
        assert!(!refused || probed || args[0] == "--head" || !ours.body.is_empty(), "{case}");
    };
    let absent = ("absent.git", &[][..]);
    for (repository, _) in REPOSITORIES.into_iter().chain([absent]) {
        for path in PATHS {
            let is_text = !path.contains("service") && repository != "absent.git";
            let is_refused =
                repository == "closed.git" || ["config", "objects", ""].contains(&path);
            compare(&["--get"], repository, path, is_text && !is_refused);
            compare(&["--head"], repository, path, false);
            compare(&["--request", "POST"], repository, path, false);
        }
        for service in SERVICES {
            let right = format!("Content-Type: application/x-{service}-request");
            let wrong = "Content-Type: text/plain";
            let is_open = match repository {
                "closed.git" | "absent.git" => false,
                "open.git" => true,
                _ => service != "git-upload-archive",
            };
            compare(&["--get"], repository, service, false);
            // Nothing is sent where it is refused: fcgiwrap may answer 502 when git leaves a body unread.
            let is_plain = is_open && service != "git-upload-archive";
            let sent: &[&str] =
                if is_open { &["--data-binary", "@-"] } else { &["--request", "POST"] };
            compare(&[&["--header", &right], sent].concat(), repository, service, is_plain);
            // git's text, to the letter.
            compare(&["--header", wrong, "--request", "POST"], repository, service, is_open);
            let none = "Content-Type:";
            compare(&["--header", none, "--request", "POST"], repository, service, is_open);
        }
    }
}

#[test]
fn objects_are_given_out_as_files_that_may_be_kept() {
    let world = world();
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    let objects = world.root().join("plain.git/objects");
    let mut n_files = 0;
    for folder in fs::read_dir(&objects).unwrap().map(Result::unwrap) {
        let folder_name = folder.file_name().into_string().unwrap();
        if !folder.path().is_dir() || folder_name == "info" {
            continue;
        }
        for file in fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            let name = file.file_name().into_string().unwrap();
            let path = format!("objects/{folder_name}/{name}");
            for args in [&["--get"][..], &["--head"], &["--http2-prior-knowledge"]] {
                let ask = |url: String| curl(&world, &[args, &[&url]].concat(), b"");
                let ours = ask(server.url(&format!("plain/{path}")));
                // nginx speaks HTTP/1.1.
                let args: &[&str] = if args[0].starts_with("--http2") { &["--get"] } else { args };
                let gits =
                    curl(&world, &[args, &[&peer.url(&format!("plain/{path}"))]].concat(), b"");
                assert_eq!(seen(&ours, false), seen(&gits, false), "{path} {args:?}: {ours:?}");
                // curl writes the headers of HEAD into the body.
                assert!(
                    args == ["--head"] || ours.status != 200 || ours.body == gits.body,
                    "{path} {args:?}"
                );
                let length = |answer: &Transfer| {
                    (answer.status == 200).then(|| answer.header("content-length"))
                };
                assert_eq!(length(&ours), length(&gits), "{path}");
            }
            n_files += 1;
        }
    }
    assert!(n_files >= 3, "a pack, its index, a loose object: {n_files}");
}

#[test]
fn a_client_that_knows_no_service_clones() {
    let world = world();
    let server = Server::start(&world);
    let git = world.git().with_env("GIT_SMART_HTTP", "0");
    let clone = git.clone_of(&server.url("plain"), "dumb");
    let bare = world.git().at(world.root().join("plain.git"));
    assert_eq!(clone.resolve("refs/tags/v2"), bare.resolve("refs/tags/v2"));
    assert_eq!(clone.resolve("HEAD"), bare.resolve("refs/heads/main"));
    clone.ok(["fsck", "--strict"]);
    git.fails(["clone", &server.url("closed"), "none"]).says("403");
}

#[test]
fn an_archive_is_made_where_it_is_allowed() {
    let world = world();
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    let archive = |url: &str| {
        let remote = format!("--remote={url}");
        let run = world.git().run(["archive", &remote, "--format=tar", "v1", "b"]);
        (run.code(), run.text())
    };
    let ours = archive(&server.url("open"));
    assert_eq!(ours.0, Some(0), "{ours:?}");
    assert_eq!(ours, archive(&peer.url("open")));
    let refused =
        world.git().fails(["archive", &format!("--remote={}", server.url("plain")), "v1"]);
    refused.says("403");
}

#[test]
fn a_closed_service_is_closed_to_git_too() {
    let world = world();
    let server = Server::start(&world);
    world
        .git()
        .fails(["ls-remote", &server.url("closed")])
        .says("service not enabled: 'upload-pack'");
    let clone = world.git().clone_of(&server.url("plain"), "clone");
    clone
        .fails(["push", &server.url("closed"), "HEAD:x"])
        .says("service not enabled: 'receive-pack'")
        .says("git config http.receivepack true");
    clone.ok(["push", &server.url("open"), "HEAD:refs/heads/x"]);
}

#[test]
fn only_marked_repositories_are_served_when_asked_for() {
    let world = world();
    let server = Server::start_with(&world, &["--require-export-ok"], &[]);
    let refs = |repository: &str| {
        curl(
            &world,
            &[&server.url(&format!("{repository}/info/refs?service=git-upload-pack"))],
            b"",
        )
    };
    let answer = refs("plain");
    let told = "repository not exported: \"plain\"\nhint: whoever runs the server can give it out with \
                `touch <repository>/git-daemon-export-ok`\n";
    assert_eq!((answer.status, answer.text().as_str()), (404, told));
    let mark = world.root().join("plain.git/git-daemon-export-ok");
    fs::write(&mark, "").unwrap();
    assert_eq!(refs("plain").status, 200);
    fs::remove_file(mark).unwrap();
    assert_eq!(refs("plain").status, 404, "the next request sees it");
    assert_eq!(refs("absent").status, 404);
}
