//! `git-remote-zit` between stock git and a server: the real one, and ones that write down what they were told.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use zit_tests::{Git, Run, Server, World, server};

use crate::git;

/// Answers one request and remembers its head.
struct Recorder {
    address: String,
    thread: JoinHandle<String>,
}

impl Recorder {
    /// Answers with a status line and headers, and no body.
    fn start(answer: &'static str) -> Self {
        Self::start_with(answer.to_owned())
    }

    fn start_with(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(&stream).lines().map_while(Result::ok);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            // Whoever only connected to end the wait is not there to read.
            let _ = write!(
                stream,
                "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            head.join("\n")
        });
        Self { address, thread }
    }

    /// The head of the request, once git has ended; empty if there was none.
    fn head(self) -> String {
        // Ends the wait of a recorder that nobody asked; one that was asked is gone.
        drop(TcpStream::connect(&self.address));
        self.thread.join().unwrap()
    }
}

fn has(head: &str, header: &str) -> bool {
    head.lines().any(|line| line == header)
}

#[test]
fn clone_fetch_and_push_work_through_the_server_as_the_agent() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("src/a.rs", "pub fn f() {}\n")]);
    let server = Server::start(&world);
    let git = git(&world).with_env("ZIT_AGENT", "ada");
    let url = format!("zit://{}/app.git", server.address());
    let clone = git.clone_of(&url, "one");
    let other = git
        .with_env("ZIT_AGENT", "bob")
        .clone_of(&format!("zit::{}", server.url("app.git")), "two");

    let new = clone.commit("Change", &[("src/a.rs", "pub fn f() { g() }\n")]);
    clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/side"]);
    assert_eq!(bare.resolve("refs/heads/side"), Some(new.clone()));
    other.ok(["fetch", "--quiet", "origin"]);
    assert_eq!(other.resolve("origin/side"), Some(new));
}

#[test]
fn a_claim_through_the_helper_is_the_agents() {
    let world = World::new();
    server::seeded(&world, "app.git", &[("src/a.rs", "pub fn f() {}\n")]);
    let server = Server::start(&world);
    let clone = git(&world).clone_of(&format!("zit://{}/app.git", server.address()), "one");
    let claim = |agent: &str| {
        let claim = ["push", "origin", "origin/main:refs/zit/claim/src/a.rs#f"];
        clone.with_env("ZIT_AGENT", agent).run(claim)
    };
    let _ = claim("ada").ok();
    let refused = claim("bob").failed().says("[remote rejected]");
    assert!(refused.stderr.contains("ada"), "the holder is named: {refused}");
}

#[test]
fn agent_and_item_travel_as_headers_beside_the_users_own() {
    let world = World::new();
    let recorder = Recorder::start("404 Not Found");
    let git = git(&world)
        .with_config("http.extraHeader=X-Mine: 1")
        .with_config("zit.agent=config-agent")
        .with_env("GIT_CONFIG_COUNT", "1")
        .with_env("GIT_CONFIG_KEY_0", "http.extraHeader")
        .with_env("GIT_CONFIG_VALUE_0", "X-Theirs: 2")
        .with_env("ZIT_ITEM", "0123456789ab");
    // Git splits settings at '='; an address may have one too.
    let _ = git.fails(["ls-remote", &format!("zit://{}/a=b.git", recorder.address)]);
    let head = recorder.head();
    assert!(head.starts_with("GET /a=b.git/info/refs?service=git-upload-pack"), "{head}");
    for header in ["Zit-Agent: config-agent", "Zit-Item: 0123456789ab", "X-Mine: 1", "X-Theirs: 2"]
    {
        assert!(has(&head, header), "{header} is missing:\n{head}");
    }
}

#[test]
fn without_an_agent_nothing_is_added() {
    let world = World::new();
    let recorder = Recorder::start("404 Not Found");
    let _ = git(&world).fails(["ls-remote", &format!("zit::http://{}/r.git", recorder.address)]);
    let head = recorder.head();
    assert!(head.starts_with("GET /r.git/info/refs"), "{head}");
    assert!(!head.contains("Zit-"), "{head}");
}

#[test]
fn a_redirect_takes_the_agent_nowhere() {
    let world = World::new();
    let elsewhere = Recorder::start("404 Not Found");
    let location = format!("302 Found\r\nLocation: http://{}/r.git/info/refs", elsewhere.address);
    let recorder = Recorder::start_with(location);
    let git = git(&world).with_env("ZIT_AGENT", "ada");
    let run = git.fails(["ls-remote", &format!("zit::http://{}/r.git", recorder.address)]);
    assert!(has(&recorder.head(), "Zit-Agent: ada"));
    assert_eq!(elsewhere.head(), "", "the target of the redirect was asked");
    let _ = run.says("302");
}

#[test]
fn a_redirect_without_an_agent_is_followed_as_git_does() {
    let world = World::new();
    let target = Recorder::start("404 Not Found");
    let location = format!("302 Found\r\nLocation: http://{}/r.git/info/refs", target.address);
    let recorder = Recorder::start_with(location);
    let _ = git(&world).fails(["ls-remote", &format!("zit::http://{}/r.git", recorder.address)]);
    assert!(recorder.head().starts_with("GET /r.git/info/refs"));
    assert!(target.head().starts_with("GET /r.git/info/refs"));
}

#[test]
fn an_address_that_is_not_supported_says_which_ones_are() {
    let world = World::new();
    let git = git(&world);
    for address in ["zit::git@host:r", "zit::ftp://host/r.git"] {
        let run = refused(&git, address);
        assert!(run.stderr.starts_with("fatal: cannot reach "), "{address}: {run}");
        assert!(run.stderr.contains("\nhint: use zit::https://<host>/<path>"), "{address}: {run}");
    }
    let run = refused(&git, "zit::r.git");
    assert!(run.stderr.starts_with("fatal: not an absolute path: r.git\nhint: "), "{run}");
    let run = refused(&git, "zit://host:port/r.git");
    assert!(
        run.stderr.starts_with("fatal: not an address: zit://host:port/r.git\nhint: "),
        "{run}"
    );
}

#[test]
fn a_bad_agent_or_item_stops_before_the_network() {
    let world = World::new();
    let recorder = Recorder::start("404 Not Found");
    let url = format!("zit://{}/r.git", recorder.address);
    let run = refused(&git(&world).with_env("ZIT_AGENT", "Not Good"), &url);
    assert!(
        run.stderr.starts_with("fatal: environment variable ZIT_AGENT: not an agent id:"),
        "{run}"
    );
    world.git().ok(["config", "--global", "zit.item", "12"]);
    let run = refused(&git(&world), &url);
    assert!(run.stderr.starts_with("fatal: git config zit.item: not an item id:"), "{run}");
    assert!(run.stderr.contains("\nhint: leave it unset"), "{run}");
    assert_eq!(recorder.head(), "", "the server was asked");
}

/// Asks for the refs of a remote that cannot be reached; git must end with 128 and print nothing else.
#[track_caller]
fn refused(git: &Git, address: &str) -> Run {
    let run = git.shell(&format!("git ls-remote '{address}'; test $? = 128")).ok();
    assert_eq!(run.text(), "", "{run}");
    run
}
