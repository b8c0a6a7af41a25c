//! What git does with our server is what it does with `git http-backend`.
//!
//! Each scenario runs against both, over protocol v0, v1 and v2, on a history of 5,000 commits. Then
//! the refs outside `refs/zit`, the ids of all objects, and the shallow file must be equal on the
//! client and on the server, and every repository must pass `git fsck --strict`.

use std::fs;
use std::path::{Path, PathBuf};

use zit_tests::world::text;
use zit_tests::{Git, Peer, Server, World, history, server};

/// The size of the history.
const N_COMMITS: u32 = 5_000;

/// The seed it grows from.
const SEED: u64 = 20_260_105;

/// One end of a comparison: a server's repository and a folder to clone into.
struct Side {
    /// git in an empty folder.
    git: Git,
    /// Where the repository is reached.
    url: String,
    /// git inside the served repository.
    bare: Git,
}

/// What is compared.
#[derive(Debug, PartialEq)]
struct Snapshot {
    refs: Vec<String>,
    objects: Vec<String>,
    shallow: String,
}

#[test]
fn a_clone_gets_what_the_peer_gives() {
    compare("clone", &every_protocol(), |side| vec![side.clone(&[])]);
}

#[test]
fn a_mirror_clone_gets_what_the_peer_gives() {
    compare("mirror", &every_protocol(), |side| vec![side.clone(&["--mirror"])]);
}

#[test]
fn a_fetch_after_another_clients_push_gets_what_the_peer_gives() {
    compare("fetch", &every_protocol(), |side| {
        let (reader, writer) = (side.clone(&[]), side.clone(&[]));
        writer.ok(["switch", "--quiet", "topic/2"]);
        writer.commit("More on topic 2", &[("topics/more.txt", "more\n")]);
        writer.ok(["push", "--quiet", "origin", "topic/2"]);
        reader.ok(["fetch", "--quiet"]);
        assert_eq!(reader.resolve("origin/topic/2"), writer.resolve("HEAD"));
        vec![reader, writer]
    });
}

#[test]
fn a_pushed_branch_arrives_as_at_the_peer() {
    compare("push", &every_protocol(), |side| {
        let writer = side.clone(&[]);
        writer.ok(["switch", "--quiet", "-c", "feature", "origin/main"]);
        for n in 0..5 {
            writer.commit(&format!("Feature {n}"), &[("feature.txt", &format!("{n}\n"))]);
        }
        writer.ok(["push", "--quiet", "origin", "feature"]);
        vec![writer]
    });
}

#[test]
fn a_forced_push_of_a_topic_arrives_as_at_the_peer() {
    compare("force", &every_protocol(), |side| {
        let writer = side.clone(&[]);
        writer.ok(["switch", "--quiet", "topic/3"]);
        writer.ok(["commit", "--quiet", "--amend", "-m", "Another topic 3"]);
        writer.fails(["push", "origin", "topic/3"]).says("non-fast-forward");
        writer.ok(["push", "--quiet", "--force", "origin", "topic/3"]);
        vec![writer]
    });
}

#[test]
fn a_deleted_branch_goes_as_at_the_peer() {
    compare("delete", &every_protocol(), |side| {
        let writer = side.clone(&[]);
        writer.ok(["push", "--quiet", "origin", "--delete", "topic/4"]);
        assert_eq!(side.bare.resolve("refs/heads/topic/4"), None);
        vec![writer]
    });
}

#[test]
fn new_tags_arrive_as_at_the_peer() {
    compare("tags", &every_protocol(), |side| {
        let writer = side.clone(&[]);
        writer.ok(["tag", "plain", "origin/main~3"]);
        writer.ok(["tag", "-a", "-m", "Annotated", "annotated", "origin/main~5"]);
        writer.ok(["push", "--quiet", "--tags", "origin"]);
        let reader = side.clone(&[]);
        assert_eq!(reader.resolve("refs/tags/annotated"), writer.resolve("refs/tags/annotated"));
        vec![writer, reader]
    });
}

#[test]
fn a_shallow_clone_deepens_as_at_the_peer() {
    compare("depth", &every_protocol(), |side| {
        let shallow = side.clone(&["--depth=20", "--no-single-branch"]);
        let before = shallow_file(&shallow);
        assert!(!before.is_empty());
        shallow.ok(["fetch", "--quiet", "--deepen=30"]);
        assert_ne!(shallow_file(&shallow), before);
        vec![shallow]
    });
}

#[test]
fn a_shallow_clone_becomes_whole_as_at_the_peer() {
    compare("unshallow", &["2"], |side| {
        let shallow = side.clone(&["--depth=5"]);
        shallow.ok(["fetch", "--quiet", "--unshallow"]);
        assert_eq!(shallow_file(&shallow), "");
        vec![shallow]
    });
}

#[test]
fn a_clone_since_a_date_is_cut_as_at_the_peer() {
    compare("since", &every_protocol(), |side| {
        let since = format!("--shallow-since={}", history::time_of(N_COMMITS - 300));
        vec![side.clone(&[&since, "--single-branch"])]
    });
}

#[test]
fn a_shallow_client_pushes_as_to_the_peer() {
    compare("shallow-push", &every_protocol(), |side| {
        let writer = side.clone(&["--depth=3"]);
        writer.ok(["switch", "--quiet", "-c", "from-shallow"]);
        writer.commit("From a shallow clone", &[("shallow.txt", "yes\n")]);
        writer.ok(["push", "--quiet", "origin", "from-shallow"]);
        vec![writer]
    });
}

#[test]
fn a_blobless_clone_gets_what_the_peer_gives_and_asks_for_the_rest() {
    compare("filter", &every_protocol(), |side| {
        // Only protocol v2 lets a client ask for any object without this.
        side.bare.ok(["config", "uploadpack.allowAnySHA1InWant", "true"]);
        let partial = side.clone(&["--filter=blob:none", "--no-checkout"]);
        let blobs = objects(&partial).iter().filter(|line| line.ends_with(" blob")).count();
        assert_eq!(blobs, 0, "a clone without blobs has none");
        partial.ok(["checkout", "--quiet", "main"]);
        assert!(partial.dir().join("src/lib.rs").is_file());
        vec![partial]
    });
}

#[test]
fn a_whole_history_pushed_into_an_empty_repository_arrives_as_at_the_peer() {
    let world = World::new();
    let source = world.bare("source.git");
    history::grow(&source, N_COMMITS, SEED);
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    let ours = server::init(&world, "ours.git");
    let theirs = world.bare("theirs.git");
    for (url, bare) in [(server.url("ours.git"), &ours), (peer.url("theirs.git"), &theirs)] {
        source.ok([
            "push",
            "--quiet",
            &url,
            "refs/heads/*:refs/heads/*",
            "refs/tags/*:refs/tags/*",
        ]);
        bare.ok(["fsck", "--strict"]);
    }
    assert_same("whole history", &snapshot(&ours), &snapshot(&theirs));
    assert_eq!(ours.resolve("refs/zit/current"), source.resolve("refs/heads/main"));
}

#[test]
fn other_gits_of_this_machine_clone_and_push_as_at_the_peer() {
    for program in other_gits() {
        compare(text(&program), &["0", "2"], |side| {
            let side = Side { git: side.git.with_program(&program), ..side };
            let writer = side.clone(&[]);
            writer.ok(["switch", "--quiet", "-c", "feature"]);
            writer.commit("From another git", &[("feature.txt", "yes\n")]);
            writer.ok(["push", "--quiet", "origin", "feature"]);
            vec![writer]
        });
    }
}

/// Runs `scenario` on both sides for each protocol version and compares what came of it.
#[track_caller]
fn compare(name: &str, protocols: &[&str], scenario: impl Fn(Side) -> Vec<Git>) {
    let world = World::new();
    let source = world.bare("source.git");
    history::grow(&source, N_COMMITS, SEED);
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    for protocol in protocols {
        let case = format!("{name} over protocol {protocol}");
        let outcomes = ["ours", "theirs"].map(|whose| {
            let repository = format!("{whose}-{protocol}.git");
            let url = if whose == "ours" { server.url(&repository) } else { peer.url(&repository) };
            let bare = copy(&world, &source, &repository);
            let clients =
                scenario(side(&world, &format!("{whose}-{protocol}"), url, &bare, protocol));
            outcome(&case, &bare, &clients)
        });
        let [ours, theirs] = outcomes;
        assert_eq!(ours.len(), theirs.len(), "{case}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_same(&case, ours, theirs);
        }
        assert_current_is_mainline(&world, &format!("ours-{protocol}.git"), &case);
    }
}

fn every_protocol() -> [&'static str; 3] {
    ["0", "1", "2"]
}

fn side(world: &World, folder: &str, url: String, bare: &Git, protocol: &str) -> Side {
    fs::create_dir(world.path(folder)).expect("each case has its own folder");
    let git = world.git().at(folder).with_config(format!("protocol.version={protocol}"));
    Side { git, url, bare: bare.clone() }
}

impl Side {
    /// Clones the repository with `args`; every call makes another clone.
    #[track_caller]
    fn clone(&self, args: &[&str]) -> Git {
        let name = (0..).map(|n| format!("clone-{n}"));
        let name = name.into_iter().find(|name| !self.git.dir().join(name).exists());
        let name = name.expect("numbers do not end");
        let fixed = ["clone", "--quiet", self.url.as_str(), name.as_str()];
        self.git.ok(fixed.iter().chain(args));
        self.git.at(name)
    }
}

/// A copy of the grown repository, made without git so that nothing is repacked.
fn copy(world: &World, source: &Git, name: &str) -> Git {
    let target = world.root().join(name);
    copy_folder(source.dir(), &target);
    world.git().at(target)
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).expect("the copy is new");
    for entry in fs::read_dir(from).expect("the source can be read") {
        let entry = entry.expect("the source can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("the copy is writable");
        }
    }
}

/// The snapshots of the served repository and of every client, all of them sound.
#[track_caller]
fn outcome(case: &str, bare: &Git, clients: &[Git]) -> Vec<Snapshot> {
    let sound = |git: &Git| {
        let run = git.run(["fsck", "--strict"]);
        assert!(run.is_ok(), "{case}: {run}");
    };
    sound(bare);
    clients.iter().for_each(sound);
    let served = Snapshot { objects: reachable(bare), ..snapshot(bare) };
    Some(served).into_iter().chain(clients.iter().map(snapshot)).collect()
}

fn snapshot(git: &Git) -> Snapshot {
    let refs = git.refs().lines().map(str::to_owned).collect();
    let is_bare = git.ok(["rev-parse", "--is-bare-repository"]) == "true";
    let objects = if is_bare { reachable(git) } else { objects(git) };
    Snapshot { refs, objects, shallow: shallow_file(git) }
}

/// Every object, reachable or not, with its kind.
fn objects(git: &Git) -> Vec<String> {
    let format = "--batch-check=%(objectname) %(objecttype)";
    let mut lines = git
        .ok(["cat-file", "--batch-all-objects", "--unordered", format])
        .lines()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    lines.sort();
    lines
}

/// Every object that a ref outside `refs/zit` needs: what is below it is the referee's.
fn reachable(git: &Git) -> Vec<String> {
    let list =
        git.ok(["rev-list", "--objects", "--no-object-names", "--exclude=refs/zit/*", "--all"]);
    let mut lines = list.lines().map(str::to_owned).collect::<Vec<_>>();
    lines.sort();
    lines.dedup();
    lines
}

fn shallow_file(git: &Git) -> String {
    let path = git.ok(["rev-parse", "--git-path", "shallow"]);
    let content = fs::read_to_string(git.dir().join(path)).unwrap_or_default();
    let mut lines = content.lines().collect::<Vec<_>>();
    lines.sort_unstable();
    lines.join("\n")
}

/// Like `assert_eq`, without printing twenty thousand ids.
#[track_caller]
fn assert_same(case: &str, ours: &Snapshot, theirs: &Snapshot) {
    assert_eq!(ours.refs, theirs.refs, "{case}: refs");
    assert_eq!(ours.shallow, theirs.shallow, "{case}: shallow file");
    if ours.objects != theirs.objects {
        let found = zit_tests::files::difference(&theirs.objects, &ours.objects);
        let shown = found.iter().take(20).collect::<Vec<_>>();
        panic!("{case}: {} objects differ from the peer's, such as {shown:#?}", found.len());
    }
}

#[track_caller]
fn assert_current_is_mainline(world: &World, name: &str, case: &str) {
    let bare = world.git().at(world.root().join(name));
    let (current, mainline) = (bare.resolve("refs/zit/current"), bare.resolve("refs/heads/main"));
    assert_eq!(current, mainline, "{case}");
}

/// The gits of this machine that are not the first on the `PATH`.
fn other_gits() -> Vec<PathBuf> {
    let path = zit_tests::process::search_path();
    let mut found = std::env::split_paths(&path)
        .map(|folder| folder.join("git"))
        .filter(|program| program.is_file())
        .filter_map(|program| program.canonicalize().ok())
        .collect::<Vec<_>>();
    found.dedup();
    found.split_off(1.min(found.len()))
}
