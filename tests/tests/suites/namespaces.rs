//! A namespace of a repository looks from outside as behind `git http-backend` with `GIT_NAMESPACE`, and what is not
//! git's (claims, landing) is refused in it.
//!
//! Twins with one content and configuration, one behind our server and one behind git's, get the same requests.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use zit_tests::curl::curl;
use zit_tests::world::text;
use zit_tests::{Git, Peer, Run, Server, World, http, process};

/// A pack without objects.
const EMPTY_PACK: &[u8] = b"PACK\0\0\0\x02\0\0\0\0\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";

/// One repository behind our server and its twin behind git's, and a clone that pushes to both.
struct Twins {
    world: World,
    server: Server,
    peer: Peer,
    ours: Git,
    theirs: Git,
    clone: Git,
}

impl Twins {
    fn new() -> Self {
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
            clone.ok([
                "push",
                "--quiet",
                text(repository.dir()),
                "HEAD~2:refs/heads/main",
                "HEAD~1:refs/namespaces/b/refs/heads/main",
                "HEAD~1:refs/namespaces/a/refs/heads/old",
            ]);
        }
        let rule = ["--namespaces", "namespaces/ours.git=ours.git"];
        let (server, peer) = (Server::start_with(&world, &rule, &[]), Peer::start(&world));
        Self { world, server, peer, ours, theirs, clone }
    }

    fn urls(&self, namespace: &str) -> [String; 2] {
        let ours = self.server.url(&format!("namespaces/ours.git/{namespace}"));
        [ours, self.peer.namespace("theirs.git", namespace)]
    }

    /// Runs a git command in both repositories.
    fn both(&self, args: &[&str]) {
        for repository in [&self.ours, &self.theirs] {
            repository.ok(args);
        }
    }

    /// Pushes to both, and expects one outcome of both for each ref.
    #[track_caller]
    fn push(&self, namespace: &str, args: &[&str]) -> String {
        let [ours, theirs] = self.urls(namespace).map(|url| {
            let run = self.clone.run([&["push", "--porcelain", &url], args].concat());
            let lines: Vec<String> =
                run.text().lines().filter(|l| !l.starts_with("To ")).map(str::to_owned).collect();
            format!("{:?}\n{}", run.code(), lines.join("\n"))
        });
        assert_eq!(ours, theirs, "{args:?}");
        assert_eq!(self.ours.refs(), self.theirs.refs(), "{args:?}");
        ours
    }

    /// Lists both by each protocol, and expects one list of both.
    #[track_caller]
    fn listed(&self, namespace: &str) -> String {
        let mut last = String::new();
        for protocol in ["0", "1", "2"] {
            let protocol = format!("protocol.version={protocol}");
            let [ours, theirs] = self.urls(namespace).map(|url| {
                let run = self.clone.run(["-c", &protocol, "ls-remote", "--symref", &url]).ok();
                // By protocol 2 git lists the HEAD of a namespace twice: as HEAD, and as a ref that is there.
                let (mut seen, text) = (BTreeSet::new(), run.text());
                let once: Vec<_> = text.lines().filter(|line| seen.insert(*line)).collect();
                once.join("\n")
            });
            assert_eq!(ours, theirs, "{protocol}");
            last = ours;
        }
        last
    }

    /// What both tell somebody who is about to push, one `<oid> <name>` a line, `.have` lines sorted.
    #[track_caller]
    fn offered(&self, namespace: &str) -> Vec<String> {
        let [ours, theirs] = self.urls(namespace).map(|url| {
            let (address, path) =
                url.trim_start_matches("http://").split_once('/').expect("an address has a path");
            let body = http::get(address, &format!("/{path}/info/refs?service=git-receive-pack"));
            let text = body.text();
            let lines = text.lines().skip(1).filter_map(|line| {
                let line = line.trim_start_matches("0000").get(4..)?;
                Some(line.split('\0').next().unwrap_or_default().to_owned())
            });
            // HEAD is no name that anybody can push to; git names it here, as one more thing that is there.
            let mut lines: Vec<_> =
                lines.filter(|line| !line.is_empty() && !line.ends_with(" HEAD")).collect();
            // Whether git repeats as `.have` what a ref names depends on the order of their names.
            let named: BTreeSet<String> = lines
                .iter()
                .filter(|line| !line.ends_with(" .have"))
                .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
                .collect();
            lines
                .retain(|line| !line.strip_suffix(" .have").is_some_and(|oid| named.contains(oid)));
            lines.sort_by_key(|line| (line.ends_with(" .have"), line.clone()));
            lines
        });
        assert_eq!(ours, theirs);
        ours
    }
}

#[test]
fn refs_are_seen_and_written_below_the_namespace() {
    let twins = Twins::new();
    assert!(twins.listed("new").is_empty());
    let outcome = twins.push("a", &["HEAD:refs/heads/main", "v1", ":refs/heads/old"]);
    assert!(outcome.contains("[new tag]") && outcome.contains("[deleted]"), "{outcome}");
    let outcome = twins.push("a/b", &["HEAD~1:refs/heads/main"]);
    assert!(outcome.contains("[new branch]"), "{outcome}");
    let stored = twins.ours.ok(["for-each-ref", "--format=%(refname)", "refs/namespaces/"]);
    let expected = "refs/namespaces/a/refs/heads/main\nrefs/namespaces/a/refs/namespaces/b/refs/heads/main\n\
        refs/namespaces/a/refs/tags/v1\nrefs/namespaces/b/refs/heads/main";
    assert_eq!(stored, expected);
    let listed = twins.listed("a");
    assert!(listed.contains("refs/tags/v1^{}") && !listed.contains("HEAD"), "{listed}");
    assert_eq!(twins.listed("a/b").lines().count(), 1);
    // A move that is no fast-forward, and one from a value that the ref has not.
    twins.push("a", &["HEAD~2:refs/heads/main"]);
    twins.push("a", &["+HEAD~2:refs/heads/main"]);
    let lease = "--force-with-lease=refs/heads/main:HEAD";
    let outcome = twins.push("a", &[lease, "HEAD~1:refs/heads/main"]);
    assert!(outcome.contains("stale info"), "{outcome}");
    twins.ours.ok(["fsck", "--strict"]);
}

#[test]
fn a_namespace_has_a_head_of_its_own() {
    let twins = Twins::new();
    twins.push("a", &["HEAD:refs/heads/main", "v1"]);
    twins.both(&["symbolic-ref", "refs/namespaces/a/HEAD", "refs/namespaces/a/refs/heads/main"]);
    assert!(twins.listed("a").starts_with("ref: refs/heads/main\tHEAD\n"));
    for protocol in ["0", "1", "2"] {
        let git = twins.world.git().with_config(format!("protocol.version={protocol}"));
        for (n, url) in twins.urls("a").iter().enumerate() {
            let clone = git.clone_of(url, &format!("clone-{protocol}-{n}"));
            assert_eq!(clone.resolve("HEAD"), twins.clone.resolve("HEAD"), "{url} {protocol}");
            assert_eq!(clone.ok(["symbolic-ref", "HEAD"]), "refs/heads/main");
            assert!(clone.resolve("refs/tags/v1").is_some());
            clone.ok(["fsck", "--strict"]);
            clone.ok(["fetch", "--quiet", "--depth=1", "origin"]);
        }
    }
    twins.both(&["symbolic-ref", "refs/namespaces/a/HEAD", "refs/namespaces/a/refs/heads/none"]);
    twins.listed("a");
    twins.both(&["update-ref", "--no-deref", "refs/namespaces/a/HEAD", "refs/heads/main"]);
    twins.listed("a");
    // Named by a client that asks for a ref by its name.
    twins.both(&["config", "uploadpack.allowRefInWant", "true"]);
    for url in twins.urls("a") {
        twins.world.git().ok(["init", "--quiet", "--bare", "by-name.git"]);
        let by_name = twins.world.git().at("by-name.git");
        by_name.ok(["-c", "protocol.version=2", "fetch", "--quiet", &url, "refs/heads/main:x"]);
        assert_eq!(by_name.resolve("x"), twins.clone.resolve("HEAD"));
        std::fs::remove_dir_all(by_name.dir()).unwrap();
    }
}

#[test]
fn what_is_elsewhere_need_not_be_sent_again() {
    let twins = Twins::new();
    twins.push("a", &["HEAD~1:refs/heads/main"]);
    let offered = twins.offered("a");
    let count = |end: &str| offered.iter().filter(|line| line.ends_with(end)).count();
    assert_eq!((count(" refs/heads/main"), count(" .have")), (1, 1), "{offered:?}");
}

#[test]
fn refs_are_hidden_by_the_name_of_the_namespace_or_with_a_caret_by_the_repositorys() {
    let twins = Twins::new();
    let push = ["HEAD:refs/heads/main", "HEAD:refs/heads/topic", "HEAD:refs/pull/1", "v1"];
    twins.push("a", &push);
    twins.push("a/b", &push);
    for pattern in [
        "refs/pull",
        "^refs/namespaces/a/refs/tags",
        "^refs/namespaces/b",
        "refs/namespaces/a/refs/heads/main",
        "!^refs/namespaces/a/refs/namespaces/b/refs/pull",
    ] {
        twins.both(&["config", "--add", "transfer.hideRefs", pattern]);
        for namespace in ["a", "a/b", "b"] {
            twins.listed(namespace);
            twins.offered(namespace);
        }
    }
    let listed = twins.listed("a");
    assert!(listed.contains("refs/heads/main") && !listed.contains("\trefs/pull"), "{listed}");
    assert!(!listed.contains("\trefs/tags/v1"), "{listed}");
    assert!(twins.listed("a/b").contains("refs/pull/1"));
    let outcome = twins.push("a", &["HEAD~1:refs/tags/light", "HEAD~1:refs/pull/2"]);
    assert_eq!(outcome.matches("(deny updating a hidden ref)").count(), 2, "{outcome}");
}

#[test]
fn hooks_hear_the_names_of_the_namespace() {
    let twins = Twins::new();
    for (repository, name) in [(&twins.ours, "ours"), (&twins.theirs, "theirs")] {
        for hook in ["pre-receive", "update", "post-receive", "post-update"] {
            let path = repository.dir().join("hooks").join(hook);
            let log = twins.world.path(name);
            let script = format!(
                "#!/bin/sh\n{{ echo {hook} \"$GIT_NAMESPACE\" \"$@\"; test -t 0 || cat; }} >>{}\n",
                text(&log)
            );
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, script).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    twins.push("a", &["HEAD:refs/heads/main"]);
    twins.push("a/b", &["HEAD:refs/heads/main", "v1"]);
    let [ours, theirs] =
        ["ours", "theirs"].map(|name| std::fs::read_to_string(twins.world.path(name)).unwrap());
    assert_eq!(ours, theirs);
    assert!(ours.contains("post-update a/b refs/heads/main refs/tags/v1"), "{ours}");
}

#[test]
fn files_are_those_of_the_namespace() {
    let twins = Twins::new();
    twins.push("a", &["HEAD:refs/heads/main", "v1"]);
    for head in ["refs/namespaces/a/refs/heads/main", "refs/namespaces/a/refs/heads/none"] {
        twins.both(&["symbolic-ref", "refs/namespaces/a/HEAD", head]);
        for file in ["HEAD", "info/refs", "objects/info/packs"] {
            let [ours, theirs] = twins.urls("a").map(|url| {
                let answer = curl(&twins.world, &[&format!("{url}/{file}")], b"");
                (answer.status, if file.ends_with("packs") { String::new() } else { answer.text() })
            });
            assert_eq!(ours, theirs, "{file} {head}");
        }
    }
}

#[test]
fn there_is_no_referee_in_a_namespace() {
    let twins = Twins::new();
    let url = &twins.urls("a")[0];
    let before = twins.ours.ok(["for-each-ref"]);
    let push = |args: &[&str]| -> Run {
        twins.clone.run([&["push", "--porcelain"], args].concat()).failed()
    };
    for name in ["refs/zit/claim/a.txt", "refs/for/main", "refs/zit/current", "refs/zit/tell"] {
        let run = push(&[url, &format!("HEAD:{name}")]);
        assert!(run.text().contains("a namespace has no referee"), "{name}: {run}");
    }
    for option in ["zit.claim=a.txt", "zit.require-claim=a.txt", "zit.release=a.txt", "zit.status"]
    {
        let run = push(&["-o", option, url, "HEAD:refs/heads/x"]);
        assert!(run.text().contains("not offered in a namespace"), "{option}: {run}");
        assert!(run.stderr.contains(" git push origin HEAD"), "{option}: {run}");
    }
    // What git's client would not send.
    let (address, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let oid = twins.clone.ok(["rev-parse", "HEAD~2"]);
    let zero = "0".repeat(40);
    for name in ["HEAD", "refs/x", "refs/heads/../../../heads/main", "refs/heads/a..b", "heads/x"] {
        for (old, new) in [(&zero, &oid), (&oid, &zero)] {
            let line = format!("{old} {new} {name}\0 report-status");
            let mut body = format!("{:04x}{line}0000", line.len() + 4).into_bytes();
            if *new != zero {
                body.extend(EMPTY_PACK);
            }
            let answer = http::push(address, path, &body).text();
            assert!(answer.contains(&format!("ng {name} ")), "{name}: {answer}");
        }
    }
    assert_eq!(twins.ours.ok(["for-each-ref"]), before);
    // Work in a namespace is nobody's open work, and the mainline is the repository's.
    let seat = twins.server.seat("ada", "namespaces/ours.git/a");
    let run = twins.clone.run(["push", &seat, "HEAD:refs/heads/main", "HEAD:refs/heads/y"]).ok();
    assert!(!run.stderr.contains("open work") && !run.stderr.contains("namespaces/a/"), "{run}");
    assert_eq!(twins.ours.resolve("refs/heads/main"), Some(oid));
}

#[test]
fn an_address_that_is_no_namespace_is_not_found() {
    let twins = Twins::new();
    for name in ["a.lock", ".a", "a%20b", "a%7e"] {
        let url = &twins.urls(name)[0];
        let url = format!("{url}/info/refs?service=git-upload-pack");
        let answer = curl(&twins.world, &[&url], b"");
        assert_eq!(answer.status, 404, "{name}");
        assert!(answer.text().contains("not a valid namespace"), "{answer:?}");
        assert!(answer.text().contains("hint: a namespace is named like a branch"), "{answer:?}");
    }
}

#[test]
fn a_conversation_over_pipes_is_held_in_the_namespace_of_its_environment() {
    let twins = Twins::new();
    let server = process::product("zit-server");
    let git = twins.clone.with_config("protocol.ext.allow=always");
    let url = |namespace: &str, repository: &Git| {
        let (server, path) = (text(&server).to_owned(), text(repository.dir()).to_owned());
        format!("ext::env GIT_NAMESPACE={namespace} {server} stdio %S {path}")
    };
    // By the socket of the server, which opens a repository when it is asked for, and without one.
    twins.push("a", &["HEAD:refs/heads/main"]);
    for (repository, name) in [(&twins.ours, "served"), (&twins.theirs, "alone")] {
        git.ok(["push", "--quiet", &url("c/d", repository), &format!("HEAD:refs/heads/{name}")]);
        let stored = format!("refs/namespaces/c/refs/namespaces/d/refs/heads/{name}");
        assert_eq!(repository.resolve(&stored), git.resolve("HEAD"), "{name}");
        for protocol in ["0", "2"] {
            let git = git.with_config(format!("protocol.version={protocol}"));
            let listed = git.ok(["ls-remote", &url("c/d", repository)]);
            assert!(listed.ends_with(&format!("\trefs/heads/{name}")), "{listed}");
            assert_eq!(listed.lines().count(), 1, "{listed}");
        }
        git.fails(["ls-remote", &url("a..b", repository)]).says("not a valid namespace");
    }
}
