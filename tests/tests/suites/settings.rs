//! What a repository's own configuration says of refs and pushes holds here as behind `git http-backend`.
//!
//! Twins with one configuration, one behind our server and one behind git's, get the same requests; the answers are
//! compared line by line.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use zit_tests::{Git, Peer, Run, Server, Twins, World, http, twins};

/// Both hold four branches, a tag and a pull request, all on one history of three commits; HEAD names `main`.
fn twins() -> Twins {
    let branches = ["main", "old", "topic/a", "topic/b"];
    let mut refspecs = branches.map(|name| format!("HEAD~1:refs/heads/{name}")).to_vec();
    refspecs.extend(["v1".to_owned(), "HEAD:refs/pull/1/head".to_owned()]);
    Twins::start(&refspecs.iter().map(String::as_str).collect::<Vec<_>>(), &[])
}

/// Runs a git command against both; `URL` among the arguments stands for the address.
fn both(twins: &Twins, args: &[&str]) -> [Run; 2] {
    twins.both(twins.urls(), args)
}

/// Pushes to both, and expects one outcome of both for each ref.
#[track_caller]
fn push_both(twins: &Twins, args: &[&str]) -> String {
    twins.push(twins.urls(), args)
}

/// Lists both by each protocol, and expects one list of both.
#[track_caller]
fn list_both(twins: &Twins) -> String {
    twins.listed(&twins.urls(), |list| list)
}

/// What both tell somebody who is about to push, one `<oid> <name>` a line.
#[track_caller]
fn offer_both(twins: &Twins) -> String {
    let [ours, theirs] = twins.urls().map(|url| {
        // Nobody relies on the order of what alternates have.
        let (mut haves, refs): (Vec<_>, Vec<_>) =
            twins::offered(&url).into_iter().partition(|line| line.ends_with(" .have"));
        haves.sort();
        [refs, haves].concat().join("\n")
    });
    assert_eq!(ours, theirs);
    ours
}

#[test]
fn a_hidden_ref_is_shown_to_nobody_whichever_way_they_ask() {
    let twins = twins();
    assert!(list_both(&twins).contains("refs/pull/1/head"));
    twins.set("transfer.hideRefs", "refs/pull/");
    twins.set("uploadpack.hideRefs", "refs/heads/topic");
    twins.set("uploadpack.hideRefs", "!refs/heads/topic/b");
    twins.set("receive.hideRefs", "refs/tags");
    let listed = list_both(&twins);
    assert!(!listed.contains("refs/pull") && !listed.contains("topic/a"), "{listed}");
    assert!(
        listed.contains("refs/heads/topic/b") && listed.contains("refs/tags/v1^{}"),
        "{listed}"
    );
    let offered = offer_both(&twins);
    assert!(offered.contains("topic/a") && !offered.contains("refs/tags"), "{offered}");
    twins.set("transfer.hideRefs", "refs");
    assert!(offer_both(&twins).contains("capabilities^{}"));
    assert!(!list_both(&twins).contains("refs/tags/v1"));
}

#[test]
fn a_hidden_head_is_not_listed() {
    let twins = twins();
    twins.set("uploadpack.hideRefs", "HEAD");
    let [ours, theirs] =
        both(&twins, &["-c", "protocol.version=2", "ls-remote", "URL"]).map(|run| run.ok().text());
    assert_eq!(ours, theirs);
    assert!(!ours.contains("HEAD"), "{ours}");
}

#[test]
fn a_hidden_ref_is_wanted_by_its_name_in_vain() {
    let twins = twins();
    twins.set("transfer.hideRefs", "refs/pull");
    twins.set("uploadpack.allowRefInWant", "true");
    for protocol in ["0", "2"] {
        let protocol = format!("protocol.version={protocol}");
        let [ours, theirs] = twins
            .both(twins.urls(), &["-c", &protocol, "fetch", "URL", "refs/pull/1/head"])
            .map(|run| run.failed().stderr);
        assert_eq!(ours, theirs, "{protocol}");
    }
}

#[test]
fn a_hidden_ref_is_neither_updated_nor_deleted() {
    let twins = twins();
    twins.set("receive.hideRefs", "refs/pull");
    let outcome = push_both(&twins, &["HEAD:refs/pull/2/head", "HEAD:refs/heads/new"]);
    assert!(outcome.contains("(deny updating a hidden ref)"), "{outcome}");
    let outcome = push_both(&twins, &["--atomic", "HEAD:refs/pull/2/head"]);
    assert!(outcome.contains("(deny updating a hidden ref)"), "{outcome}");
    let head = twins.clone.ok(["rev-parse", "HEAD"]);
    for url in twins.urls() {
        // git's client sends no deletion of a ref that it is not shown.
        let (address, path) = twins::split(&url);
        let line = format!("{head} {} refs/pull/1/head\0 report-status", "0".repeat(40));
        let body = format!("{:04x}{line}0000", line.len() + 4);
        let answer = http::push(address, path, body.as_bytes()).text();
        assert!(answer.contains("ng refs/pull/1/head deny deleting a hidden ref"), "{answer}");
    }
    assert_eq!(twins.ours.refs(), twins.theirs.refs());
}

#[test]
fn deletions_and_rewinds_are_denied_in_gits_words() {
    let twins = twins();
    let outcome = push_both(&twins, &[":refs/heads/main"]);
    assert!(outcome.contains("(deletion of the current branch prohibited)"), "{outcome}");
    twins.set("receive.denyDeletes", "true");
    twins.set("receive.denyNonFastForwards", "true");
    let outcome = push_both(&twins, &[":refs/heads/old", "HEAD:refs/heads/topic/a"]);
    assert!(outcome.contains("(deletion prohibited)"), "{outcome}");
    let outcome = push_both(&twins, &["+HEAD~2:refs/heads/topic/a", "+HEAD~2:refs/pull/1/head"]);
    assert!(outcome.contains("(non-fast-forward)"), "{outcome}");
}

#[test]
fn the_current_branch_is_deleted_where_the_configuration_lets_it() {
    for word in ["ignore", "warn", "false"] {
        let twins = twins();
        twins.set("receive.denyDeleteCurrent", word);
        let outcome = push_both(&twins, &[":refs/heads/main"]);
        assert!(outcome.contains("[deleted]"), "{word}: {outcome}");
    }
}

#[test]
fn a_branch_of_a_linked_work_tree_is_not_moved_under_it() {
    let twins = twins();
    for (repository, name) in [(&twins.ours, "ours"), (&twins.theirs, "theirs")] {
        let path = twins.world.path(format!("tree-of-{name}"));
        repository.ok(["worktree", "add", "--quiet", path.to_str().expect("plain"), "old"]);
    }
    let [ours, theirs] = both(&twins, &["push", "URL", "HEAD:refs/heads/old"]).map(Run::failed);
    assert!(ours.stderr.contains("checked out"), "{ours}");
    assert!(theirs.stderr.contains("branch is currently checked out"), "{theirs}");
    push_both(&twins, &["HEAD:refs/heads/topic/a"]);
    twins.set("receive.denyCurrentBranch", "warn");
    let [ours, theirs] = both(&twins, &["push", "URL", "HEAD:refs/heads/old"]).map(Run::ok);
    for run in [ours, theirs] {
        assert!(run.stderr.contains("warning: updating the current branch"), "{run}");
    }
}

#[test]
fn options_that_are_not_offered_are_not_taken() {
    let twins = twins();
    for repository in [&twins.ours, &twins.theirs] {
        repository.ok(["config", "receive.advertisePushOptions", "false"]);
    }
    let [ours, theirs] =
        both(&twins, &["push", "-o", "x", "URL", "HEAD:refs/heads/new"]).map(Run::failed);
    for run in [ours, theirs] {
        assert!(run.stderr.contains("does not support push options"), "{run}");
    }
}

#[test]
fn refs_given_out_as_a_file_are_all_refs() {
    let twins = twins();
    twins.set("transfer.hideRefs", "refs/pull");
    let [ours, theirs] = twins.urls().map(|url| {
        let (address, path) = twins::split(&url);
        http::get(address, &format!("/{path}/info/refs")).text()
    });
    assert_eq!(ours, theirs);
    assert!(ours.contains("refs/pull/1/head"), "{ours}");
}

#[test]
fn a_setting_in_an_included_file_counts() {
    let twins = twins();
    twins.set("include.path", "../hidden.conf");
    let before = list_both(&twins);
    let path = twins.world.root().join("hidden.conf");
    std::fs::write(path, "[transfer]\n\thideRefs = refs/pull\n").expect("the root is writable");
    let after = list_both(&twins);
    assert!(before.contains("refs/pull") && !after.contains("refs/pull"), "{after}");
}

#[test]
fn a_ref_that_is_left_to_a_hook_is_not_moved_without_it() {
    let twins = twins();
    twins.set("receive.procReceiveRefs", "a:refs/changes/");
    let outcome = push_both(&twins, &["HEAD:refs/changes/1", "HEAD:refs/heads/new"]);
    assert!(outcome.contains("(fail to run proc-receive hook)"), "{outcome}");
    push_both(&twins, &["HEAD:refs/heads/changes"]);
}

/// Both borrow from `middle.git`, which borrows from `base.git`; each has a history of its own.
fn borrowing() -> Twins {
    let twins = twins();
    for (name, from) in [("base", None), ("middle", Some("base"))] {
        let repository = twins.world.bare(&format!("{name}.git"));
        let tree = twins.world.git().at("clone").ok(["rev-parse", "HEAD^{tree}"]);
        let commit = twins.clone.ok(["commit-tree", "-m", name, &tree]);
        let path = repository.dir().to_str().expect("a temporary folder has a plain name");
        let (branch, tag) = (format!("{commit}:refs/heads/{name}"), "v1:refs/tags/v1");
        twins.clone.ok(["push", "--quiet", path, &branch, tag]);
        if let Some(from) = from {
            let from = twins.world.root().join(format!("{from}.git/objects"));
            borrow(&repository, from.to_str().expect("a temporary folder has a plain name"));
        }
    }
    for repository in [&twins.ours, &twins.theirs] {
        borrow(repository, "# the next one\n../../middle.git/objects");
    }
    twins
}

fn borrow(repository: &Git, from: &str) {
    let file = repository.dir().join("objects/info/alternates");
    std::fs::write(file, format!("{from}\n")).expect("a repository is writable");
}

#[test]
fn what_alternates_have_is_offered_to_pushers() {
    let twins = borrowing();
    assert_eq!(offer_both(&twins).matches(" .have").count(), 2, "{}", offer_both(&twins));
    twins.set("core.alternateRefsPrefixes", "refs/heads/base refs/tags");
    assert_eq!(offer_both(&twins).matches(" .have").count(), 1, "{}", offer_both(&twins));
    let script = twins.world.path("refs.sh");
    let text = "case $1 in *middle.git) git --git-dir=\"$1\" rev-parse refs/heads/middle;; esac\n";
    std::fs::write(&script, text).expect("a world is writable");
    twins.set("core.alternateRefsCommand", &format!("sh {}", script.display()));
    assert_eq!(offer_both(&twins).matches(" .have").count(), 1, "{}", offer_both(&twins));
}

#[test]
fn what_an_alternate_has_can_be_fetched_and_built_upon() {
    let twins = borrowing();
    let base = twins.world.git().at("root/base.git").ok(["rev-parse", "refs/heads/base"]);
    push_both(&twins, &[&format!("{base}:refs/heads/borrowed")]);
    for (n, url) in twins.urls().iter().enumerate() {
        let clone = twins.world.git().clone_of(url, &format!("again-{n}"));
        assert_eq!(clone.ok(["rev-parse", "origin/borrowed"]), base);
    }
}

#[test]
fn the_tip_of_a_hidden_ref_is_wanted_by_its_oid_as_the_configuration_lets_it() {
    let twins = twins();
    twins.set("transfer.hideRefs", "refs/pull");
    let tip = twins.ours.ok(["rev-parse", "refs/pull/1/head"]);
    for (setting, protocol, expected) in [
        ("uploadpack.allowAnySHA1InWant=false", "0", false),
        ("uploadpack.allowAnySHA1InWant=false", "2", true),
        ("uploadpack.allowTipSHA1InWant=true", "0", true),
    ] {
        let (key, value) = setting.split_once('=').expect("a setting is key=value");
        twins.set(key, value);
        let protocol = format!("protocol.version={protocol}");
        for url in twins.urls() {
            let clone = twins.world.git().at("fresh");
            let _ = std::fs::remove_dir_all(clone.dir());
            twins.world.git().ok(["init", "--quiet", "fresh"]);
            let run = clone.run(["-c", &protocol, "fetch", &url, &tip]);
            assert_eq!(run.is_ok(), expected, "{setting} {protocol} {run}");
        }
    }
}

#[test]
fn where_a_shallow_repository_ends_is_told() {
    let world = World::new();
    world.git().ok(["init", "--quiet", "source"]);
    let source = world.git().at("source");
    for n in ["one", "two", "three"] {
        source.commit(n, &[("a.txt", n)]);
    }
    let from = format!("file://{}", source.dir().display());
    for name in ["ours", "theirs"] {
        let to = world.root().join(format!("{name}.git"));
        let to = to.to_str().expect("a temporary folder has a plain name");
        world.git().ok(["clone", "--quiet", "--bare", "--depth=2", &from, to]);
        world.git().at(to).ok(["config", "http.receivepack", "true"]);
    }
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    let end = source.ok(["rev-parse", "HEAD~1"]);
    for (n, url) in [server.url("ours.git"), peer.url("theirs.git")].iter().enumerate() {
        for protocol in ["0", "2"] {
            let git = world.git().with_config(format!("protocol.version={protocol}"));
            let clone = git.clone_of(url, &format!("clone-{n}-{protocol}"));
            let shallow = std::fs::read_to_string(clone.dir().join(".git/shallow"));
            assert_eq!(shallow.ok().as_deref(), Some(format!("{end}\n").as_str()), "{url}");
            clone.commit("Go on", &[("b.txt", protocol)]);
            clone.ok(["push", "--quiet", "origin", &format!("HEAD:refs/heads/new-{protocol}")]);
        }
    }
}

#[test]
fn the_files_for_other_servers_follow_a_push_where_they_are_asked_for() {
    let twins = twins();
    let files = |repository: &Git| {
        let read = |name| std::fs::read_to_string(repository.dir().join(name)).unwrap_or_default();
        (read("info/refs"), !read("objects/info/packs").is_empty())
    };
    push_both(&twins, &["HEAD:refs/heads/before"]);
    assert_eq!(files(&twins.ours).0, "");
    twins.set("receive.updateServerInfo", "true");
    push_both(&twins, &["HEAD:refs/heads/after"]);
    let (ours, theirs) = (files(&twins.ours), files(&twins.theirs));
    assert_eq!(ours, theirs);
    assert!(ours.0.contains("refs/heads/after"), "{}", ours.0);
}

#[test]
fn what_is_set_in_vain_is_named_in_the_log() {
    let twins = twins();
    list_both(&twins);
    assert!(!twins.server.log().contains("is ignored"), "{}", twins.server.log());
    twins.set("uploadpack.blobPackfileUri", "x");
    list_both(&twins);
    let log = twins.server.log();
    let line = log.lines().find(|line| line.contains("a setting of git's is ignored"));
    let line = line.unwrap_or_else(|| panic!("nothing is named: {log}"));
    let config = std::fs::read_to_string(twins.ours.dir().join("config")).expect("it is there");
    let n =
        config.lines().position(|line| line.contains("blobPackfileUri")).expect("it is set") + 1;
    for part in ["uploadpack.blobPackfileUri", "file=config", &format!("line={n}")] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn a_repository_that_needs_more_than_is_known_is_not_served() {
    let twins = twins();
    let ours = twins.world.bare("later.git");
    ours.ok(["config", "core.repositoryFormatVersion", "1"]);
    ours.ok(["config", "extensions.frotz", "true"]);
    let _ = twins.clone.fails(["ls-remote", &twins.server.url("later.git")]);
    assert!(twins.server.log().contains("it needs the extension"), "{}", twins.server.log());
}
/// The modes of what lies below a folder of a repository, by path; objects by whether they are files or folders.
fn modes(repository: &Git, folder: &str) -> BTreeMap<String, BTreeSet<u32>> {
    let (root, mut found) = (repository.dir().join(folder), BTreeMap::new());
    let mut todo = vec![root.clone()];
    while let Some(path) = todo.pop() {
        let meta = std::fs::symlink_metadata(&path).expect("nobody removes it");
        let name = match folder {
            "objects" => if meta.is_dir() { "folders" } else { "files" }.to_owned(),
            _ => path.strip_prefix(repository.dir()).expect("it is below").display().to_string(),
        };
        let mode = meta.permissions().mode() & 0o7777;
        found.entry(name).or_insert_with(BTreeSet::new).insert(mode);
        if meta.is_dir() {
            let entries = std::fs::read_dir(&path).expect("it is a folder");
            todo.extend(entries.map(|entry| entry.expect("it is listed").path()));
        }
    }
    found
}

#[test]
fn new_files_are_shared_as_the_configuration_says() {
    for value in ["umask", "group", "all", "0640", "0600"] {
        let twins = twins();
        twins.set("core.sharedRepository", value);
        twins.set("core.logAllRefUpdates", "true");
        for repository in [&twins.ours, &twins.theirs] {
            repository.ok(["pack-refs", "--all"]);
        }
        twins.clone.commit("More", &[("deep/down/b.txt", value)]);
        push_both(
            &twins,
            &["HEAD:refs/heads/one/two/three", "HEAD:refs/heads/main", ":refs/heads/old"],
        );
        // What is stopped has written all that it owes.
        let Twins { world: _world, server, peer: _peer, ours, theirs, .. } = twins;
        drop(server);
        for folder in ["refs/heads/one", "refs/heads/main", "packed-refs", "logs/refs/heads/one"] {
            assert_eq!(modes(&ours, folder), modes(&theirs, folder), "{value}");
        }
        // Which files hold the objects differs.
        let (ours, theirs) = (modes(&ours, "objects"), modes(&theirs, "objects"));
        for (kind, modes) in ours {
            assert!(modes.is_subset(&theirs[&kind]), "{value}: {modes:?} {theirs:?}");
        }
    }
}
