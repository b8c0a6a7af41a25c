//! [`Twins`]: a repository behind our server and its twin behind git's. Whatever is asked of both is to come to the same.

use crate::world::text;
use crate::{Git, Peer, Run, Server, World, http};

/// Both repositories, their servers, and a clone that pushes to both.
#[derive(Debug)]
pub struct Twins {
    /// What holds all of it.
    pub world: World,
    /// Ours, which serves `ours.git`.
    pub server: Server,
    /// git's, which serves `theirs.git`.
    pub peer: Peer,
    /// The repository behind our server.
    pub ours: Git,
    /// The repository behind git's.
    pub theirs: Git,
    /// Three commits to `a.txt`; the tag `v1` is the first of them.
    pub clone: Git,
}

impl Twins {
    /// Pushes `refspecs` of the clone to both, and serves them; our server gets `args`.
    ///
    /// The mainline is none of the branches, so that nothing but what is tried is in the way of a push.
    pub fn start(refspecs: &[&str], args: &[&str]) -> Self {
        let world = World::new();
        let (ours, theirs) = (world.bare("ours.git"), world.bare("theirs.git"));
        world.git().ok(["init", "--quiet", "clone"]);
        let clone = world.git().at("clone");
        for n in ["one", "two", "three"] {
            clone.commit(n, &[("a.txt", n)]);
        }
        clone.ok(["tag", "-a", "-m", "First", "v1", "HEAD~2"]);
        for repository in [&ours, &theirs] {
            repository.ok(["config", "zit.mainline", "trunk"]);
            clone.ok([&["push", "--quiet", text(repository.dir())], refspecs].concat());
        }
        let (server, peer) = (Server::start_with(&world, args, &[]), Peer::start(&world));
        Self { world, server, peer, ours, theirs, clone }
    }

    /// Their addresses, ours first.
    pub fn urls(&self) -> [String; 2] {
        [self.server.url("ours.git"), self.peer.url("theirs.git")]
    }

    /// Runs a git command inside both repositories.
    pub fn inside(&self, args: &[&str]) {
        for repository in [&self.ours, &self.theirs] {
            repository.ok(args);
        }
    }

    /// Sets a key in both, beside the values that it has.
    pub fn set(&self, key: &str, value: &str) {
        self.inside(&["config", "--add", key, value]);
    }

    /// Runs a git command of the clone against both; `URL` among the arguments stands for the address.
    pub fn both(&self, urls: [String; 2], args: &[&str]) -> [Run; 2] {
        urls.map(|url| {
            let args = args.iter().map(|arg| if *arg == "URL" { url.as_str() } else { *arg });
            self.clone.run(args)
        })
    }

    /// Pushes to both, and expects one outcome of both for each ref.
    #[track_caller]
    pub fn push(&self, urls: [String; 2], args: &[&str]) -> String {
        let args = [&["push", "--porcelain", "URL"], args].concat();
        let [ours, theirs] = self.both(urls, &args).map(|run| outcome(&run));
        assert_eq!(ours, theirs, "{args:?}");
        assert_eq!(self.ours.refs(), self.theirs.refs(), "{args:?}");
        ours
    }

    /// Lists both by each protocol, as `seen`, and expects one list of both.
    #[track_caller]
    pub fn listed(&self, urls: &[String; 2], seen: impl Fn(String) -> String) -> String {
        let mut last = String::new();
        for protocol in ["0", "1", "2"] {
            let protocol = format!("protocol.version={protocol}");
            let args = ["-c", &protocol, "ls-remote", "--symref", "URL"];
            let [ours, theirs] = self.both(urls.clone(), &args).map(|run| seen(run.ok().text()));
            assert_eq!(ours, theirs, "{protocol}");
            last = ours;
        }
        last
    }
}

/// The exit code and the lines of `git push --porcelain`, without the address and what our refusals say beside git's words.
pub fn outcome(run: &Run) -> String {
    let text = run.text();
    let lines = text.lines().filter(|line| !line.starts_with("To http"));
    format!("{:?}\n{}", run.code(), lines.collect::<Vec<_>>().join("\n"))
}

/// What a server tells somebody who is about to push to `url`, one `<oid> <name>` a line.
pub fn offered(url: &str) -> Vec<String> {
    let (address, path) = split(url);
    let text = http::get(address, &format!("/{path}/info/refs?service=git-receive-pack")).text();
    let lines = text.lines().skip(1).filter_map(|line| {
        let line = line.trim_start_matches("0000").get(4..)?;
        Some(line.split('\0').next().unwrap_or_default().to_owned())
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// The address and the path of a URL.
pub fn split(url: &str) -> (&str, &str) {
    url.trim_start_matches("http://").split_once('/').expect("an address has a path")
}
