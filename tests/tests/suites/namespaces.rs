//! A namespace of a repository looks from outside as behind `git http-backend` with `GIT_NAMESPACE`, and what is not
//! git's (claims, landing) is refused in it.
//!
//! Twins with one content and configuration, one behind our server and one behind git's, get the same requests.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use zit_tests::curl::curl;
use zit_tests::world::text;
use zit_tests::{Git, Run, Twins, http, process, twins, wire};

fn twins() -> Twins {
    let refspecs = [
        "HEAD~2:refs/heads/main",
        "HEAD~1:refs/namespaces/b/refs/heads/main",
        "HEAD~1:refs/namespaces/a/refs/heads/old",
    ];
    Twins::start(&refspecs, &["--namespaces", "namespaces/ours.git=ours.git"])
}

fn urls(twins: &Twins, namespace: &str) -> [String; 2] {
    let ours = twins.server.url(&format!("namespaces/ours.git/{namespace}"));
    [ours, twins.peer.namespace("theirs.git", namespace)]
}

/// Pushes to both, and expects one outcome of both for each ref.
#[track_caller]
fn push_both(twins: &Twins, namespace: &str, args: &[&str]) -> String {
    twins.push(urls(twins, namespace), args)
}

/// Lists both by each protocol, and expects one list of both.
#[track_caller]
fn list_both(twins: &Twins, namespace: &str) -> String {
    // By protocol 2 git lists the HEAD of a namespace twice: as HEAD, and as a ref that is there.
    twins.listed(&urls(twins, namespace), |list| {
        let mut seen = BTreeSet::new();
        list.lines().filter(|line| seen.insert(*line)).collect::<Vec<_>>().join("\n")
    })
}

/// What both tell somebody who is about to push, one `<oid> <name>` a line, `.have` lines sorted.
#[track_caller]
fn offer_both(twins: &Twins, namespace: &str) -> Vec<String> {
    let [ours, theirs] = urls(twins, namespace).map(|url| {
        // HEAD is no name that anybody can push to; git names it here, as one more thing that is there.
        let mut lines = twins::offered(&url);
        lines.retain(|line| !line.ends_with(" HEAD"));
        // Whether git repeats as `.have` what a ref names depends on the order of their names.
        let named: BTreeSet<String> = lines
            .iter()
            .filter(|line| !line.ends_with(" .have"))
            .filter_map(|line| Some(line.split_once(' ')?.0.to_owned()))
            .collect();
        lines.retain(|line| !line.strip_suffix(" .have").is_some_and(|oid| named.contains(oid)));
        lines.sort_by_key(|line| (line.ends_with(" .have"), line.clone()));
        lines
    });
    assert_eq!(ours, theirs);
    ours
}

#[test]
fn refs_are_seen_and_written_below_the_namespace() {
    let twins = twins();
    assert!(list_both(&twins, "new").is_empty());
    let outcome = push_both(&twins, "a", &["HEAD:refs/heads/main", "v1", ":refs/heads/old"]);
    assert!(outcome.contains("[new tag]") && outcome.contains("[deleted]"), "{outcome}");
    let outcome = push_both(&twins, "a/b", &["HEAD~1:refs/heads/main"]);
    assert!(outcome.contains("[new branch]"), "{outcome}");
    let stored = twins.ours.ok(["for-each-ref", "--format=%(refname)", "refs/namespaces/"]);
    let expected = "refs/namespaces/a/refs/heads/main\nrefs/namespaces/a/refs/namespaces/b/refs/heads/main\n\
        refs/namespaces/a/refs/tags/v1\nrefs/namespaces/b/refs/heads/main";
    assert_eq!(stored, expected);
    let listed = list_both(&twins, "a");
    assert!(listed.contains("refs/tags/v1^{}") && !listed.contains("HEAD"), "{listed}");
    assert_eq!(list_both(&twins, "a/b").lines().count(), 1);
    // A move that is no fast-forward, and one from a value that the ref has not.
    push_both(&twins, "a", &["HEAD~2:refs/heads/main"]);
    push_both(&twins, "a", &["+HEAD~2:refs/heads/main"]);
    let lease = "--force-with-lease=refs/heads/main:HEAD";
    let outcome = push_both(&twins, "a", &[lease, "HEAD~1:refs/heads/main"]);
    assert!(outcome.contains("stale info"), "{outcome}");
    twins.ours.ok(["fsck", "--strict"]);
}

#[test]
fn a_namespace_has_a_head_of_its_own() {
    let twins = twins();
    push_both(&twins, "a", &["HEAD:refs/heads/main", "v1"]);
    twins.inside(&["symbolic-ref", "refs/namespaces/a/HEAD", "refs/namespaces/a/refs/heads/main"]);
    assert!(list_both(&twins, "a").starts_with("ref: refs/heads/main\tHEAD\n"));
    for protocol in ["0", "1", "2"] {
        let git = twins.world.git().with_config(format!("protocol.version={protocol}"));
        for (n, url) in urls(&twins, "a").iter().enumerate() {
            let clone = git.clone_of(url, &format!("clone-{protocol}-{n}"));
            assert_eq!(clone.resolve("HEAD"), twins.clone.resolve("HEAD"), "{url} {protocol}");
            assert_eq!(clone.ok(["symbolic-ref", "HEAD"]), "refs/heads/main");
            assert!(clone.resolve("refs/tags/v1").is_some());
            clone.ok(["fsck", "--strict"]);
            clone.ok(["fetch", "--quiet", "--depth=1", "origin"]);
        }
    }
    twins.inside(&["symbolic-ref", "refs/namespaces/a/HEAD", "refs/namespaces/a/refs/heads/none"]);
    list_both(&twins, "a");
    twins.inside(&["update-ref", "--no-deref", "refs/namespaces/a/HEAD", "refs/heads/main"]);
    list_both(&twins, "a");
    // Named by a client that asks for a ref by its name.
    twins.inside(&["config", "uploadpack.allowRefInWant", "true"]);
    for url in urls(&twins, "a") {
        twins.world.git().ok(["init", "--quiet", "--bare", "by-name.git"]);
        let by_name = twins.world.git().at("by-name.git");
        by_name.ok(["-c", "protocol.version=2", "fetch", "--quiet", &url, "refs/heads/main:x"]);
        assert_eq!(by_name.resolve("x"), twins.clone.resolve("HEAD"));
        std::fs::remove_dir_all(by_name.dir()).unwrap();
    }
}

#[test]
fn what_is_elsewhere_need_not_be_sent_again() {
    let twins = twins();
    push_both(&twins, "a", &["HEAD~1:refs/heads/main"]);
    let offered = offer_both(&twins, "a");
    let count = |end: &str| offered.iter().filter(|line| line.ends_with(end)).count();
    assert_eq!((count(" refs/heads/main"), count(" .have")), (1, 1), "{offered:?}");
}

#[test]
fn refs_are_hidden_by_the_name_of_the_namespace_or_with_a_caret_by_the_repositorys() {
    let twins = twins();
    let push = ["HEAD:refs/heads/main", "HEAD:refs/heads/topic", "HEAD:refs/pull/1", "v1"];
    push_both(&twins, "a", &push);
    push_both(&twins, "a/b", &push);
    for pattern in [
        "refs/pull",
        "^refs/namespaces/a/refs/tags",
        "^refs/namespaces/b",
        "refs/namespaces/a/refs/heads/main",
        "!^refs/namespaces/a/refs/namespaces/b/refs/pull",
    ] {
        twins.inside(&["config", "--add", "transfer.hideRefs", pattern]);
        for namespace in ["a", "a/b", "b"] {
            list_both(&twins, namespace);
            offer_both(&twins, namespace);
        }
    }
    let listed = list_both(&twins, "a");
    assert!(listed.contains("refs/heads/main") && !listed.contains("\trefs/pull"), "{listed}");
    assert!(!listed.contains("\trefs/tags/v1"), "{listed}");
    assert!(list_both(&twins, "a/b").contains("refs/pull/1"));
    let outcome = push_both(&twins, "a", &["HEAD~1:refs/tags/light", "HEAD~1:refs/pull/2"]);
    assert_eq!(outcome.matches("(deny updating a hidden ref)").count(), 2, "{outcome}");
}

#[test]
fn hooks_hear_the_names_of_the_namespace() {
    let twins = twins();
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
    push_both(&twins, "a", &["HEAD:refs/heads/main"]);
    push_both(&twins, "a/b", &["HEAD:refs/heads/main", "v1"]);
    let [ours, theirs] =
        ["ours", "theirs"].map(|name| std::fs::read_to_string(twins.world.path(name)).unwrap());
    assert_eq!(ours, theirs);
    assert!(ours.contains("post-update a/b refs/heads/main refs/tags/v1"), "{ours}");
}

#[test]
fn files_are_those_of_the_namespace() {
    let twins = twins();
    push_both(&twins, "a", &["HEAD:refs/heads/main", "v1"]);
    for head in ["refs/namespaces/a/refs/heads/main", "refs/namespaces/a/refs/heads/none"] {
        twins.inside(&["symbolic-ref", "refs/namespaces/a/HEAD", head]);
        for file in ["HEAD", "info/refs", "objects/info/packs"] {
            let [ours, theirs] = urls(&twins, "a").map(|url| {
                let answer = curl(&twins.world, &[&format!("{url}/{file}")], b"");
                (answer.status, if file.ends_with("packs") { String::new() } else { answer.text() })
            });
            assert_eq!(ours, theirs, "{file} {head}");
        }
    }
}

#[test]
fn there_is_no_referee_in_a_namespace() {
    let twins = twins();
    let url = &urls(&twins, "a")[0];
    let before = twins.ours.ok(["for-each-ref"]);
    let push = |args: &[&str]| -> Run {
        twins.clone.run([&["push", "--porcelain"], args].concat()).failed()
    };
    for name in ["refs/zit/claim/a.txt", "refs/for/main", "refs/zit/current", "refs/zit/tell"] {
        let run = push(&[url, &format!("HEAD:{name}")]);
        assert!(run.text().contains("a namespace has no referee"), "{name}: {run}");
        assert!(run.stderr.contains(" git push origin HEAD"), "{name}: {run}");
    }
    for option in ["zit.claim=a.txt", "zit.require-claim=a.txt", "zit.release=a.txt", "zit.status"]
    {
        let run = push(&["-o", option, url, "HEAD:refs/heads/x"]);
        assert!(run.text().contains("not offered in a namespace"), "{option}: {run}");
        assert!(run.stderr.contains(" git push origin HEAD"), "{option}: {run}");
    }
    // What git's client would not send.
    let (address, path) = twins::split(url);
    let oid = twins.clone.ok(["rev-parse", "HEAD~2"]);
    let zero = "0".repeat(40);
    for name in ["HEAD", "refs/x", "refs/heads/../../../heads/main", "refs/heads/a..b", "heads/x"] {
        for (old, new) in [(&zero, &oid), (&oid, &zero)] {
            let line = format!("{old} {new} {name}\0 report-status");
            let mut body = format!("{:04x}{line}0000", line.len() + 4).into_bytes();
            if *new != zero {
                body.extend(wire::EMPTY_PACK);
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
    let twins = twins();
    for name in ["a.lock", ".a", "a%20b", "a%7e"] {
        let url = &urls(&twins, name)[0];
        let url = format!("{url}/info/refs?service=git-upload-pack");
        let answer = curl(&twins.world, &[&url], b"");
        assert_eq!(answer.status, 404, "{name}");
        assert!(answer.text().contains("not a valid namespace"), "{answer:?}");
        assert!(answer.text().contains("hint: a namespace is named like a branch"), "{answer:?}");
    }
}

#[test]
fn a_conversation_over_pipes_is_held_in_the_namespace_of_its_environment() {
    let twins = twins();
    let server = process::product("zit-server");
    let git = twins.clone.with_config("protocol.ext.allow=always");
    let url = |namespace: &str, repository: &Git| {
        let (server, path) = (text(&server).to_owned(), text(repository.dir()).to_owned());
        format!("ext::env GIT_NAMESPACE={namespace} {server} stdio %S {path}")
    };
    // By the socket of the server, which opens a repository when it is asked for, and without one.
    push_both(&twins, "a", &["HEAD:refs/heads/main"]);
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
