//! Two repositories that are equal at first: one served by us, one by the peer.

use std::path::Path;

use fastrand::Rng;
use gix_hash::Kind as Format;
use zit_tests::http::{self, Response};
use zit_tests::world::text;
use zit_tests::{Git, Peer, Server, World, process};

use super::grow;
use super::objects::{Objects, Oid};

/// Both servers, on one folder.
pub(super) struct Arena {
    pub(super) world: World,
    server: Server,
    peer: Peer,
}

/// One repository of a pair.
pub(super) struct Side {
    /// `127.0.0.1:<port>`.
    address: String,
    /// Its path, without a leading slash.
    name: String,
    /// git inside it.
    pub(super) bare: Git,
}

/// A pair.
pub(super) struct Twins {
    pub(super) format: Format,
    pub(super) ours: Side,
    pub(super) theirs: Side,
    /// What both hold at first.
    pub(super) objects: Objects,
    /// Their refs at first, HEAD aside.
    pub(super) refs: Vec<(String, Oid)>,
}

impl Arena {
    pub(super) fn open() -> Self {
        let world = World::new();
        let (server, peer) = (Server::start(&world), Peer::start(&world));
        Self { world, server, peer }
    }

    /// Grows a pair from a seed; `settings` are written into the configuration of both.
    pub(super) fn twins(&self, name: &str, format: Format, seed: u64, settings: &[&str]) -> Twins {
        let mut random = Rng::with_seed(seed);
        let theirs = self.bare(&format!("{name}-theirs.git"), format, settings);
        let n_commits = random.usize(12..70);
        grow::grow(&theirs, format, n_commits, &mut random);
        let ours = theirs.at(format!("../{name}-ours.git"));
        copy(theirs.dir(), ours.dir());
        let (objects, refs) = (Objects::read(&theirs), read_refs(&theirs));
        let ours = Side::new(&self.server.url(""), format!("{name}-ours.git"), ours);
        let theirs = Side::new(&self.peer.url(""), format!("{name}-theirs.git"), theirs);
        Twins { format, ours, theirs, objects, refs }
    }

    /// An empty bare repository whose mainline no case touches.
    fn bare(&self, name: &str, format: Format, settings: &[&str]) -> Git {
        let path = self.world.root().join(name);
        let object_format = format!("--object-format={format}");
        self.world.git().ok(["init", "--quiet", "--bare", &object_format, text(&path)]);
        let git = self.world.git().at(&path);
        let fixed = [
            "zit.mainline=trunk",
            "uploadpack.allowFilter=true",
            "http.receivepack=true",
            "receive.advertisePushOptions=true",
        ];
        for setting in fixed.iter().chain(settings) {
            let (key, value) = setting.split_once('=').expect("a setting is key=value");
            git.ok(["config", key, value]);
        }
        git
    }
}

impl Side {
    fn new(url: &str, name: String, bare: Git) -> Self {
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { address, name, bare }
    }

    /// Where stock git reaches it.
    pub(super) fn url(&self) -> String {
        format!("http://{}/{}", self.address, self.name)
    }

    /// Asks for the advertisement of a service.
    pub(super) fn advertisement(&self, service: &str, version: u8) -> Response {
        let path = format!("/{}/info/refs?service={service}", self.name);
        http::request(&self.address, "GET", &path, &[&protocol(version)], b"")
    }

    /// Posts a request to a service.
    pub(super) fn post(&self, service: &str, version: u8, body: &[u8]) -> Response {
        let path = format!("/{}/{service}", self.name);
        let kind = format!("Content-Type: application/x-{service}-request");
        http::request(&self.address, "POST", &path, &[&kind, &protocol(version)], body)
    }
}

impl Twins {
    /// Both, with what they are called in a failure.
    pub(super) fn sides(&self) -> [&Side; 2] {
        [&self.ours, &self.theirs]
    }
}

fn protocol(version: u8) -> String {
    format!("Git-Protocol: version={version}")
}

fn read_refs(git: &Git) -> Vec<(String, Oid)> {
    let list = git.ok(["for-each-ref", "--format=%(refname) %(objectname)"]);
    let pair = |line: &str| {
        let (name, oid) = line.split_once(' ').expect("two words");
        (name.to_owned(), oid.to_owned())
    };
    list.lines().map(pair).collect()
}

/// Copies a repository without git, so that nothing is repacked.
pub(super) fn copy(from: &Path, to: &Path) {
    let mut command = process::command("cp");
    let output = process::run(command.arg("-a").arg(from).arg(to), b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
