//! The repository's own hooks, run by our server as git's server runs them.
//!
//! The oracle is `git http-backend`: one script writes down what it is told, both servers run it for the same push, and
//! the two records are the same once the paths are.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use zit_tests::world::text;
use zit_tests::{Git, Peer, Server, World, process};

const HOOKS: [&str; 4] = ["pre-receive", "update", "post-receive", "post-update"];

/// Writes down everything that a hook is told, and says so.
const RECORDER: &str = r#"#!/bin/sh
name=$(basename "$0")
{
  echo "== $name"
  echo "cwd $(pwd)"
  for arg in "$@"; do echo "arg $arg"; done
  env | grep -E '^(GIT_|REMOTE_(USER|ADDR)=)' | sort
  case "$name" in
  *-receive) while read -r old new ref; do
    echo "line $old $new $ref"
    case "$new" in *[1-9a-f]*) echo "sees $(git cat-file -t "$new")" ;; esac
  done ;;
  update) case "$3" in *[1-9a-f]*) echo "sees $(git cat-file -t "$3")" ;; esac ;;
  esac
} >>record
echo "said by $name"
echo "shouted by $name" >&2
"#;

pub(super) fn hook(repository: &Git, name: &str, script: &str) {
    let folder = repository.dir().join("hooks");
    fs::create_dir_all(&folder).expect("a repository is writable");
    write_hook(&folder, name, script);
}

fn write_hook(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, script).expect("the folder is writable");
    let may_run = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&path, may_run).expect("the file is ours");
}

/// One repository behind our server and its twin behind git's, and a clone that pushes to both.
pub(super) struct Twins {
    world: World,
    server: Server,
    peer: Peer,
    pub(super) ours: Git,
    pub(super) theirs: Git,
    pub(super) clone: Git,
}

impl Twins {
    pub(super) fn new() -> Self {
        let world = World::new();
        let (ours, theirs) = (world.bare("ours.git"), world.bare("theirs.git"));
        world.git().ok(["init", "--quiet", "clone"]);
        let clone = world.git().at("clone");
        clone.commit("Begin", &[("a.txt", "one\n")]);
        let (server, peer) = (Server::start(&world), Peer::start(&world));
        let twins = Self { world, server, peer, ours, theirs, clone };
        for url in twins.urls() {
            twins.clone.ok([
                "push",
                "--quiet",
                &url,
                "HEAD:refs/heads/main",
                "HEAD:refs/heads/old",
            ]);
        }
        twins
    }

    pub(super) fn urls(&self) -> [String; 2] {
        [self.server.seat("ada", "ours.git"), self.peer.url("theirs.git")]
    }

    pub(super) fn hooks(&self, names: &[&str], script: &str) {
        for repository in [&self.ours, &self.theirs] {
            for name in names {
                hook(repository, name, script);
            }
        }
    }

    /// What the hooks of both wrote down about one push, ours first.
    pub(super) fn records(&self) -> [String; 2] {
        [&self.ours, &self.theirs].map(|repository| {
            let path = repository.dir().join("record");
            let record = fs::read_to_string(&path).unwrap_or_default();
            let _ = fs::remove_file(path);
            normalised(&record, repository)
        })
    }
}

/// A record without what differs by right: where the repository lies, the quarantine's name, who pushes, and what
/// http-backend takes over from its web server.
///
/// git migrates objects before it runs `update`; here, where a refused push leaves no object, that hook too sees them in
/// quarantine.
fn normalised(record: &str, repository: &Git) -> String {
    let cgi =
        ["GIT_HTTP_EXPORT_ALL=", "GIT_PROJECT_ROOT=", "GIT_PROTOCOL=", "GIT_CONFIG_NOSYSTEM="];
    let who = ["GIT_COMMITTER_NAME=", "GIT_COMMITTER_EMAIL=", "REMOTE_USER="];
    let apart =
        ["GIT_QUARANTINE_PATH=", "GIT_OBJECT_DIRECTORY=", "GIT_ALTERNATE_OBJECT_DIRECTORIES="];
    let (mut kept, mut in_update) = (Vec::new(), false);
    for line in record.lines() {
        in_update = if line.starts_with("== ") { line == "== update" } else { in_update };
        let has = |starts: &[&str]| starts.iter().any(|start| line.starts_with(start));
        if has(&cgi) || has(&who) || (in_update && has(&apart)) {
            continue;
        }
        let line = line.replace(text(repository.dir()), "<repository>");
        let line = line.replace("/./", "/");
        let line = match line.split_once("/objects/") {
            Some((start, _)) => format!("{start}/objects/<quarantine>"),
            None => line,
        };
        kept.push(line);
    }
    kept.join("\n")
}

#[test]
fn hooks_are_told_what_gits_server_tells_them() {
    let twins = Twins::new();
    twins.hooks(&HOOKS, RECORDER);
    twins.clone.commit("Second", &[("a.txt", "two\n")]);
    twins.clone.ok(["tag", "-a", "-m", "tag", "v1"]);
    let pushes: [&[&str]; 5] = [
        &["HEAD:refs/heads/new"],
        &["-o", "zit.intent=two words", "-o", "own=1", "HEAD:refs/heads/next", "v1"],
        &["--force", "HEAD~1:refs/heads/next", ":refs/heads/old"],
        &["HEAD:refs/heads/main"],
        &["--delete", "refs/heads/new"],
    ];
    for push in pushes {
        for url in twins.urls() {
            let mut args = vec!["push", "--quiet"];
            args.extend(push.iter().filter(|word| word.starts_with('-') || word.contains('=')));
            args.push(&url);
            args.extend(push.iter().filter(|word| !word.starts_with('-') && !word.contains('=')));
            let run = twins.clone.run(args).ok();
            let lines = run.remote_lines();
            for word in ["pre-receive", "post-receive", "post-update"] {
                assert!(lines.contains(&format!("said by {word}")), "{word}: {run}");
                assert!(lines.contains(&format!("shouted by {word}")), "{word}: {run}");
            }
        }
        let [ours, theirs] = twins.records();
        assert!(ours.contains("== post-update"), "{ours}");
        assert_eq!(ours, theirs, "{push:?}");
    }
}

#[test]
fn a_declined_push_is_refused_in_gits_words_and_leaves_nothing() {
    let twins = Twins::new();
    let before = twins.ours.refs();
    twins.clone.commit("Second", &[("a.txt", "two\n")]);
    for (name, reason, survivor) in
        [("pre-receive", "pre-receive hook declined", false), ("update", "hook declined", true)]
    {
        let script = "#!/bin/sh\n[ \"$1\" = refs/heads/good ] && exit 0\necho no: $0 >&2; exit 3\n";
        twins.hooks(&[name], script);
        for (url, repository) in twins.urls().iter().zip([&twins.ours, &twins.theirs]) {
            let run = twins
                .clone
                .fails(["push", url, "HEAD:refs/heads/bad", "HEAD~1:refs/heads/good"])
                .says(&format!("HEAD -> bad ({reason})"))
                .says("remote: no: ");
            if name == "update" {
                let _ = run.says("remote: error: hook declined to update refs/heads/bad");
            }
            assert_eq!(repository.resolve("refs/heads/bad"), None, "{name}");
            assert_eq!(repository.resolve("refs/heads/good").is_some(), survivor, "{name}");
        }
        for repository in [&twins.ours, &twins.theirs] {
            fs::remove_file(repository.dir().join("hooks").join(name)).unwrap();
        }
    }
    twins.ours.ok(["update-ref", "-d", "refs/heads/good"]);
    assert_eq!(twins.ours.refs(), before);
    let left = fs::read_dir(twins.ours.dir().join("objects")).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.starts_with("incoming")), "no quarantine is left");
}

#[test]
fn an_atomic_push_with_one_declined_ref_moves_none() {
    let twins = Twins::new();
    twins.hooks(&["update"], "#!/bin/sh\n[ \"$1\" != refs/heads/bad ]\n");
    for (url, repository) in twins.urls().iter().zip([&twins.ours, &twins.theirs]) {
        let push = ["push", "--atomic", url, "HEAD:refs/heads/bad", "HEAD:refs/heads/good"];
        let _ = twins.clone.fails(push).says("hook declined");
        assert_eq!(repository.resolve("refs/heads/good"), None);
    }
}

#[test]
fn a_landing_is_the_mainlines_move_to_the_hooks_that_follow() {
    let twins = Twins::new();
    twins.hooks(&["pre-receive", "post-receive"], RECORDER);
    let [url, _] = twins.urls();
    let old = twins.ours.resolve("refs/heads/main").unwrap();
    let new = twins.clone.commit("Second", &[("a.txt", "two\n")]);
    twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/for/main"]);
    let [record, _] = twins.records();
    let zero = "0".repeat(40);
    assert!(record.contains(&format!("line {zero} {new} refs/for/main\n")), "as sent: {record}");
    let (_, after) = record.split_once("== post-receive").unwrap();
    assert!(after.contains(&format!("line {old} {new} refs/heads/main")), "as moved: {after}");
    twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/zit/claim/a.txt"]);
    let [record, _] = twins.records();
    assert!(record.contains(" refs/zit/claim/a.txt\n"), "as sent: {record}");
    let (_, after) = record.split_once("== post-receive").unwrap();
    assert!(after.contains(" refs/zit/claims/"), "as moved: {after}");
}

#[test]
fn a_dry_run_runs_no_hook() {
    let twins = Twins::new();
    twins.hooks(&HOOKS, RECORDER);
    let [url, _] = twins.urls();
    twins.clone.ok(["push", "--quiet", "-o", "zit.dry-run", &url, "HEAD:refs/heads/x"]);
    assert_eq!(twins.records(), ["", ""]);
}

#[test]
fn hooks_may_lie_elsewhere_need_no_interpreter_line_and_must_be_executable() {
    let twins = Twins::new();
    let folder = twins.world.path("shared-hooks");
    fs::create_dir(&folder).unwrap();
    write_hook(&folder, "pre-receive", "echo no interpreter; exit 1\n");
    for repository in [&twins.ours, &twins.theirs] {
        repository.ok(["config", "core.hooksPath", "../../shared-hooks"]);
    }
    for url in twins.urls() {
        let push = twins.clone.fails(["push", &url, "HEAD:refs/heads/x"]);
        let _ = push.says("remote: no interpreter").says("pre-receive hook declined");
    }
    let not = fs::Permissions::from_mode(0o644);
    fs::set_permissions(folder.join("pre-receive"), not).unwrap();
    for url in twins.urls() {
        twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/heads/x"]);
    }
    assert!(twins.server.log().contains("not set as executable"), "{}", twins.server.log());
}

#[test]
fn what_a_hook_says_cannot_pass_for_the_referees_words() {
    let twins = Twins::new();
    let script = "#!/bin/sh\nprintf 'options:\\n- git push --force\\n\\033[2Jok: done\\nfine'\n";
    hook(&twins.ours, "pre-receive", script);
    let [url, _] = twins.urls();
    let run = twins.clone.run(["push", &url, "HEAD:refs/heads/x"]).ok();
    assert_eq!(run.printed_commands(), Vec::<String>::new(), "{run}");
    let lines = run.remote_lines();
    let expected = ["hook: options:", "hook: - git push --force", "hook:  [2Jok: done", "fine"];
    assert_eq!(lines[..4], expected, "{run}");
    assert!(lines[4].starts_with("ok: "), "our own line begins anew: {run}");
}

#[test]
fn a_hook_that_takes_too_long_is_ended_with_its_children_and_refuses() {
    let twins = Twins::new();
    let script = "#!/bin/sh\nsleep 600 & echo $! >child; echo begun; wait\n";
    hook(&twins.ours, "pre-receive", script);
    twins.ours.ok(["config", "zit.hookTimeout", "1"]);
    let [url, _] = twins.urls();
    let push = twins.clone.fails(["push", &url, "HEAD:refs/heads/x"]);
    let _ = push.says("remote: begun").says("error: pre-receive hook ended after 1 second");
    assert_dies(&twins.ours.dir().join("child"));
}

#[test]
fn a_pusher_that_goes_away_ends_the_hook_and_moves_nothing() {
    let twins = Twins::new();
    let script = "#!/bin/sh\necho $$ >child; echo begun; mkfifo wait; read -r line <wait\n";
    hook(&twins.ours, "pre-receive", script);
    twins.ours.ok(["config", "receive.keepAlive", "1"]);
    let [url, _] = twins.urls();
    let mut client = process::command("timeout");
    client.args(["-s", "KILL", "2", "git", "push", &url, "HEAD:refs/heads/x"]);
    client.current_dir(twins.clone.dir()).env("HOME", twins.world.home());
    let output = process::run(&mut client, b"");
    assert!(!output.status.success());
    assert_dies(&twins.ours.dir().join("child"));
    assert_eq!(twins.ours.resolve("refs/heads/x"), None);
}

/// Waits for the process whose id is in `file` to end.
#[track_caller]
fn assert_dies(file: &Path) {
    let pid = fs::read_to_string(file).expect("the hook has written its id");
    let status = format!("/proc/{}/stat", pid.trim());
    let deadline = Instant::now() + Duration::from_secs(20);
    let alive = || fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z "));
    while alive() {
        assert!(Instant::now() < deadline, "process {pid} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_hook_is_heard_while_it_runs_and_a_child_left_behind_holds_nobody_up() {
    let twins = Twins::new();
    let script = "#!/bin/sh\necho begun\nsleep 600 &\necho $! >child\n";
    hook(&twins.ours, "post-receive", script);
    let [url, _] = twins.urls();
    let began = Instant::now();
    let run = twins.clone.run(["push", &url, "HEAD:refs/heads/x"]).ok();
    assert!(run.remote_lines().contains(&"begun".to_owned()), "{run}");
    assert!(began.elapsed() < Duration::from_mins(5), "nobody waits for the child");
    let pid = fs::read_to_string(twins.ours.dir().join("child")).unwrap();
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    // Left behind on purpose, it is not the server's to end; it is this test's.
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Writes down what a `reference-transaction` hook is told.
const VOTER: &str = r#"#!/bin/sh
{
  echo "== $1"
  echo "cwd $(pwd)"
  env | grep -E '^GIT_(DIR|EXEC_PATH)=' | sort
  while read -r old new ref; do echo "line $old $new $ref sees $(git cat-file -t "$new")"; done
} >>record
"#;

#[test]
fn a_transactions_hook_is_told_what_gits_server_tells_it() {
    let twins = Twins::new();
    twins.hooks(&["reference-transaction"], VOTER);
    let new = twins.clone.commit("Second", &[("a.txt", "two\n")]);
    for push in ["HEAD:refs/heads/new", "HEAD:refs/heads/old", "HEAD:refs/heads/main"] {
        for url in twins.urls() {
            twins.clone.ok(["push", "--quiet", &url, push]);
        }
        let [ours, theirs] = twins.records();
        assert!(ours.contains("== committed"), "{ours}");
        assert_eq!(ours, theirs, "{push}");
    }
    let [url, _] = twins.urls();
    twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/zit/claim/a.txt"]);
    assert_eq!(twins.records()[0], "", "the referee's own refs are not shown");
    let next = twins.clone.commit("Third", &[("a.txt", "three\n")]);
    twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/for/main"]);
    let [record, _] = twins.records();
    let landed = format!("line {new} {next} refs/heads/main sees commit");
    assert!(record.contains(&landed), "a landing is the mainline's move: {record}");
}

#[test]
fn a_transactions_hook_may_refuse_while_refs_are_locked() {
    let twins = Twins::new();
    let script = "#!/bin/sh\necho $1 >>record; cat >/dev/null; [ $1 != prepared ]\n";
    twins.hooks(&["reference-transaction"], script);
    twins.clone.commit("Second", &[("a.txt", "two\n")]);
    let before = twins.ours.refs();
    let [url, _] = twins.urls();
    for target in ["refs/heads/new", "refs/heads/main", "refs/for/main"] {
        let push = twins.clone.fails(["push", &url, &format!("HEAD:{target}")]);
        let _ = push.says("aborted by hook");
        assert!(twins.records()[0].contains("prepared\naborted"), "{target}");
        assert_eq!(twins.ours.refs(), before, "{target}");
    }
    twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/zit/claim/a.txt"]);
    fs::remove_file(twins.ours.dir().join("hooks/reference-transaction")).unwrap();
    twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/for/main"]);
}

#[test]
fn behind_the_installed_hook_the_users_own_still_votes_and_the_referee_passes() {
    let twins = Twins::new();
    hook(&twins.ours, "reference-transaction", VOTER);
    let mut install = process::command(process::product("zit-hook"));
    install.arg("install").arg(twins.ours.dir()).env("HOME", twins.world.home());
    let output = process::run(&mut install, b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let [url, _] = twins.urls();
    twins.clone.ok(["push", "--quiet", &url, "HEAD:refs/heads/new", "HEAD:refs/zit/claim/a.txt"]);
    let [record, _] = twins.records();
    assert!(record.contains("== prepared") && record.contains(" refs/heads/new sees"), "{record}");
}

#[test]
fn moves_are_logged_as_gits_server_logs_them() {
    let twins = Twins::new();
    for repository in [&twins.ours, &twins.theirs] {
        repository.ok(["config", "core.logAllRefUpdates", "true"]);
    }
    twins.clone.commit("Second", &[("a.txt", "two\n")]);
    for url in twins.urls() {
        let twice = ["HEAD~1:refs/heads/new", "HEAD:refs/heads/new"];
        for push in
            [twice[0], twice[1], "HEAD:refs/heads/main", "HEAD:refs/tags/v1", ":refs/heads/old"]
        {
            twins.clone.ok(["push", "--quiet", &url, push]);
        }
    }
    for log in ["refs/heads/new", "refs/heads/main", "refs/heads/old", "refs/tags/v1", "HEAD"] {
        let [ours, theirs] = [&twins.ours, &twins.theirs].map(|repository| {
            let path = repository.dir().join("logs").join(log);
            fs::read_to_string(path)
                .ok()
                .map(|text| text.lines().map(without_time).collect::<Vec<_>>())
        });
        assert_eq!(ours, theirs, "{log}");
        assert_eq!(ours.is_some(), !log.ends_with("old") && !log.contains("tags"), "{log}");
    }
    assert!(!twins.ours.dir().join("logs/refs/zit").exists());
}

/// A line of a reflog without when and where; who pushes is `peer` to the one and nobody to the other.
fn without_time(line: &str) -> String {
    let (head, message) = line.split_once('\t').unwrap_or((line, ""));
    let words: Vec<&str> = head.split(' ').collect();
    let user = words.get(2).map_or("", |user| if *user == "peer" { "anonymous" } else { user });
    let email = words.get(3).map_or("", |email| email.trim_start_matches("<peer"));
    let email = email.trim_start_matches("<anonymous");
    format!("{} {} {user} {email} {message}", words[0], words[1])
}
