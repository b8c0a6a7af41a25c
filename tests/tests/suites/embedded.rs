//! Without a server, and beside one: `zit::/path` and `zit::ssh://` are refereed as over HTTP, by one referee at a time.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use zit_tests::barrier::Racer;
use zit_tests::{Barrier, Git, Run, Server, World, process, server};

const FILES: &[(&str, &str)] = &[("src/config.rs", "pub fn parse() -> u32 {\n    1\n}\n")];

const CLAIM: &str = "origin/main:refs/zit/claim/src/config.rs#parse";

/// How many clients race.
const N_CLIENTS: usize = 32;

/// A user that owns nothing here.
const NOBODY: u32 = 65_534;

/// A repository that nobody serves, and a git that finds the helper.
struct Table {
    world: World,
    bare: Git,
    git: Git,
}

fn table() -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let git = world.git().with_env("PATH", &path_with(&[&process::product_folder()]));
    Table { world, bare, git }
}

/// A search path with `folders` in front.
fn path_with(folders: &[&Path]) -> String {
    // Asked for by name, so that a missing one is said plainly.
    let _ = (process::product("git-remote-zit"), process::product("zit-server"));
    let folders = folders.iter().map(|folder| folder.display().to_string());
    let rest = process::search_path().to_string_lossy().into_owned();
    folders.chain([rest]).collect::<Vec<_>>().join(":")
}

impl Table {
    fn path(&self) -> PathBuf {
        self.world.root().join("app.git")
    }

    fn address(&self) -> String {
        format!("zit::{}", self.path().display())
    }

    /// A clone that speaks as `agent`.
    fn clone(&self, address: &str, agent: &str) -> Git {
        let clone = self.git.clone_of(address, agent);
        clone.ok(["config", "zit.agent", agent]);
        clone
    }

    fn claims(&self) -> usize {
        self.bare.ok(["for-each-ref", "refs/zit/claims/"]).lines().count()
    }

    fn seen(&self) -> String {
        fs::read_to_string(self.path().join("zit/seen")).unwrap_or_default()
    }

    /// Makes a repository over HTTP speak first, so that the server opens it.
    fn wake(&self, server: &Server) {
        self.git.ok(["ls-remote", "--quiet", &server.url("app.git")]);
        assert!(self.socket().exists(), "{}", server.log());
    }

    fn socket(&self) -> PathBuf {
        self.path().join("zit/socket")
    }
}

#[test]
fn every_way_of_using_a_repository_works_without_a_server_over_every_protocol() {
    for version in ["0", "1", "2"] {
        let table = table();
        let git = table.git.with_config(format!("protocol.version={version}"));
        let git = git.with_env("ZIT_AGENT", "ada");
        let [writer, reader] =
            ["writer", "reader"].map(|name| git.clone_of(&table.address(), name));
        let new = writer.commit("Next", &[("next.txt", "next\n")]);
        writer.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
        assert_eq!(table.bare.resolve("refs/heads/topic"), Some(new.clone()), "protocol {version}");
        reader.ok(["fetch", "--quiet"]);
        assert_eq!(reader.resolve("origin/topic"), Some(new), "protocol {version}");
        reader.ok(["fsck", "--strict"]);
        writer.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
        assert_eq!(table.bare.ok(["show", "main:next.txt"]), "next", "protocol {version}");
        writer.ok(["push", "--quiet", "origin", "--delete", "topic"]);
        assert_eq!(table.bare.resolve("refs/heads/topic"), None, "protocol {version}");
        // Versions 0 and 1 fetch no single blobs, as with git's own server.
        let partial = (version == "2").then_some("--filter=blob:none");
        for option in ["--depth=1"].into_iter().chain(partial) {
            let name = format!("part{option}");
            git.ok(["clone", "--quiet", option, &table.address(), &name]);
            assert_eq!(git.at(&name).ok(["show", "HEAD:src/config.rs"]).lines().count(), 3);
        }
        let url = format!("zit::file://{}", table.path().display());
        assert_eq!(git.ok(["ls-remote", &url, "HEAD"]).lines().count(), 1, "protocol {version}");
    }
}

#[test]
fn a_pusher_reads_the_same_words_with_and_without_a_server() {
    let told = |with_server: bool| {
        let table = table();
        let server = with_server.then(|| Server::start(&table.world));
        let http = server.as_ref().map(|server| format!("zit::{}", server.url("app.git")));
        let address = http.unwrap_or_else(|| table.address());
        let [ada, ben] = ["ada", "ben"].map(|agent| table.clone(&address, agent));
        let mut runs = vec![
            ada.run(["push", "origin", CLAIM]),
            ben.run(["push", "-o", "zit.intent=mine", "origin", CLAIM]),
            ben.run(["push", "-o", "zit.nope=1", "origin", "HEAD:refs/heads/x"]),
            ben.run([
                "push",
                "-o",
                "zit.status",
                "-o",
                "zit.format=json",
                "origin",
                "HEAD:refs/zit/tell",
            ]),
        ];
        ben.commit("Change parse", &[("src/config.rs", "pub fn parse() -> u32 {\n    2\n}\n")]);
        runs.push(ben.run(["push", "origin", "HEAD:refs/for/main"]));
        runs.push(ben.run(["push", "origin", "HEAD:refs/heads/topic", "HEAD:refs/zit/current"]));
        let words =
            |run: &Run| (run.code(), seconds_left_out(&run.stderr.replace(&address, "URL")));
        runs.iter().map(words).collect::<Vec<_>>()
    };
    assert_eq!(told(false), told(true));
}

/// The text without numbers of seconds, which pass, and without warnings: one that repeats a refusal is left out, unless
/// a second passed between the two.
fn seconds_left_out(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("remote: warning: "));
    let text = lines.collect::<Vec<_>>().join("\n");
    let digits_out = |word: &str| {
        let is_time = word.contains('m') && word.contains('s') && word.contains(char::is_numeric);
        if is_time { "TIME".to_owned() } else { word.to_owned() }
    };
    text.split(' ').map(digits_out).collect::<Vec<_>>().join(" ")
}

#[test]
fn one_of_thirty_two_racing_claims_wins_without_a_server() {
    let table = table();
    let join = |n| table.clone(&table.address(), &format!("a{n:02}"));
    let clients = (0..N_CLIENTS).map(join).collect::<Vec<_>>();
    let racer =
        |git: &Git| -> Racer { (git.clone(), ["origin", CLAIM].map(str::to_owned).to_vec()) };
    let runs = Barrier::new().race(&clients.iter().map(racer).collect::<Vec<_>>());
    let won = runs.iter().position(Run::is_ok).expect("somebody wins");
    for (n, run) in runs.iter().enumerate().filter(|(n, _)| *n != won) {
        assert!(run.stderr.contains(&format!("held by a{won:02}")), "client {n}: {run}");
    }
    assert_eq!(table.claims(), 1);
    table.bare.ok(["fsck", "--strict"]);
}

#[test]
fn a_running_server_judges_for_those_who_come_by_path() {
    let table = table();
    let server = Server::start(&table.world);
    table.wake(&server);
    let mode = fs::metadata(table.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "only the server's user may come in");
    let [ada, ben] = ["ada", "ben"].map(|agent| table.clone(&table.address(), agent));
    ada.ok(["push", "--quiet", "origin", CLAIM]);
    assert_eq!(table.seen(), "", "the server judged, not the helper");
    let refused = table.git.clone_of(&server.seat("cyd", "app.git"), "cyd");
    let _ = refused.fails(["push", "origin", CLAIM]).says("held by ada");
    let _ = ben.fails(["push", "origin", CLAIM]).says("held by ada");
    for version in ["0", "1", "2"] {
        let ben = ben.with_config(format!("protocol.version={version}"));
        let commit = ben.commit("More", &[(version, "more\n")]);
        ben.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
        assert_eq!(ada.ok(["ls-remote", "origin", "topic"]).split('\t').next(), Some(&*commit));
        ben.ok(["fetch", "--quiet"]);
    }
    assert!(server.log().contains("conversation held"), "{}", server.log());
}

#[test]
fn thirty_two_clients_race_for_a_claim_half_by_path_and_half_over_http() {
    let table = table();
    let server = Server::start(&table.world);
    let join = |n| {
        let agent = format!("a{n:02}");
        if n % 2 == 0 {
            table.clone(&table.address(), &agent)
        } else {
            table.git.clone_of(&server.seat(&agent, "app.git"), &agent)
        }
    };
    let clients = (0..N_CLIENTS).map(join).collect::<Vec<_>>();
    let racer =
        |git: &Git| -> Racer { (git.clone(), ["origin", CLAIM].map(str::to_owned).to_vec()) };
    let runs = Barrier::new().race(&clients.iter().map(racer).collect::<Vec<_>>());
    let won = runs.iter().position(Run::is_ok).expect("somebody wins");
    for (n, run) in runs.iter().enumerate().filter(|(n, _)| *n != won) {
        assert!(run.stderr.contains(&format!("held by a{won:02}")), "client {n}: {run}");
    }
    assert_eq!(table.claims(), 1);
}

#[test]
fn a_server_that_opens_a_repository_between_advertisement_and_push_judges_the_push() {
    let table = table();
    let ada = table.clone(&table.address(), "ada");
    ada.commit("Big", &[("big.txt", &"many words\n".repeat(300_000)), ("small.txt", "x")]);
    let server = Server::start(&table.world);
    // The hook runs between the two: there, the server comes to have the repository open.
    let hook = ada.dir().join(".git/hooks/pre-push");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let wake = format!("#!/bin/sh\nexec git ls-remote --quiet {} >&2\n", server.url("app.git"));
    fs::write(&hook, wake).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let run = ada.run(["push", "origin", "HEAD:refs/heads/topic", CLAIM]).ok().says("ada holds");
    assert!(server.log().contains("conversation held"), "{run}\n{}", server.log());
    assert_eq!(table.bare.resolve("refs/heads/topic"), ada.resolve("HEAD"));
}

#[test]
fn a_lease_counts_on_from_command_to_command_and_anew_after_a_boot_or_a_server() {
    let table = table();
    let [ada, ben] = ["ada", "ben"].map(|agent| table.clone(&table.address(), agent));
    ada.ok(["push", "--quiet", "origin", CLAIM]);
    let first = table.seen();
    ben.fails(["push", "--quiet", "origin", CLAIM]).says("held by ada");
    assert_eq!(table.seen(), first, "looking at a claim does not renew it");

    // Ten minutes ago is a lease ago.
    let aged = with_moments(&first, |millis| millis.saturating_sub(11 * 60_000));
    fs::write(table.path().join("zit/seen"), &aged).unwrap();
    let status = ben.run(["push", "-o", "zit.status", "origin", "HEAD:refs/zit/tell"]);
    assert!(status.stderr.contains("lapsed") || !status.stderr.contains("lease left"), "{status}");
    ben.ok(["push", "--quiet", "origin", CLAIM]);

    let lapsed = with_moments(&table.seen(), |millis| millis.saturating_sub(11 * 60_000));
    let other_boot = lapsed.replacen("zit-seen 1 ", "zit-seen 1 0", 1);
    fs::write(table.path().join("zit/seen"), other_boot).unwrap();
    let _ = ada.fails(["push", "--quiet", "origin", CLAIM]).says("held by ben");

    fs::write(table.path().join("zit/seen"), lapsed).unwrap();
    let mut server = Server::start(&table.world);
    table.wake(&server);
    assert!(server.stop().success());
    assert!(!table.socket().exists(), "the socket goes with its server");
    let _ = ada.fails(["push", "--quiet", "origin", CLAIM]).says("held by ben");
}

/// The file with each moment changed.
fn with_moments(seen: &str, change: impl Fn(u64) -> u64) -> String {
    let line = |line: &str| match line.rsplit_once(' ') {
        Some((start, last)) if !line.starts_with("zit-seen") => {
            format!("{start} {}\n", change(last.parse().expect("a moment is a number")))
        }
        _ => format!("{line}\n"),
    };
    seen.lines().map(line).collect()
}

#[test]
fn a_helper_that_is_killed_anywhere_leaves_a_sound_repository_and_no_lock() {
    for point in zit_store::CRASH_POINTS {
        let table = table();
        let ada = table.clone(&table.address(), "ada");
        ada.commit("Next", &[("next.txt", "next\n")]);
        let push = ["push", "--atomic", "origin", "HEAD:refs/heads/a", "HEAD:refs/heads/b"];
        let run = ada.with_env("ZIT_CRASH_AT", point).run(push);
        let moved = |name: &str| table.bare.resolve(&format!("refs/heads/{name}"));
        ada.ok(["fetch", "--quiet"]);
        assert_eq!(moved("a"), moved("b"), "{point}: {run}");
        assert_eq!(ada.resolve("origin/a"), moved("a"), "{point}: a fetch sees what is there");
        ada.ok(push);
        assert_eq!(moved("a"), ada.resolve("HEAD"), "{point}");
        table.bare.ok(["fsck", "--strict"]);
    }
}

#[test]
fn a_socket_that_a_killed_server_left_behind_is_passed_over_and_replaced() {
    let table = table();
    let mut server = Server::start(&table.world);
    table.wake(&server);
    server.kill();
    assert!(fs::metadata(table.socket()).unwrap().file_type().is_socket(), "left behind");
    let ada = table.clone(&table.address(), "ada");
    ada.ok(["push", "--quiet", "origin", CLAIM]);
    assert_ne!(table.seen(), "", "the helper judged");
    let server = server.restart();
    table.wake(&server);
    let ben = table.clone(&table.address(), "ben");
    let _ = ben.fails(["push", "origin", CLAIM]).says("held by ada");
    assert_eq!(table.seen(), "", "the server judged");
}

#[test]
fn a_path_too_long_for_a_socket_is_served_by_one_all_the_same() {
    let table = table();
    let folder = "x".repeat(120);
    let name = format!("{folder}/app.git");
    fs::create_dir(table.world.root().join(&folder)).unwrap();
    fs::rename(table.path(), table.world.root().join(&name)).unwrap();
    let server = Server::start(&table.world);
    table.git.ok(["ls-remote", "--quiet", &server.url(&name)]);
    let address = format!("zit::{}", table.world.root().join(&name).display());
    let ada = table.clone(&address, "ada");
    ada.ok(["push", "--quiet", "origin", CLAIM]);
    assert!(server.log().contains("conversation held"), "{}", server.log());
}

#[test]
fn what_is_no_repository_says_so_and_is_left_alone() {
    let table = table();
    let place = table.world.root().join("notes");
    fs::create_dir(&place).unwrap();
    for path in ["notes", "absent"] {
        let address = format!("zit::{}", table.world.root().join(path).display());
        let run = table.git.fails(["ls-remote", &address]).says("fatal: no git repository at ");
        assert!(run.stderr.contains("\nhint: create one with `git init --bare <path>`"), "{run}");
    }
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

#[test]
fn a_repository_with_a_work_tree_is_found_like_git_finds_it() {
    let table = table();
    table.git.ok(["clone", "--quiet", table.path().to_str().unwrap(), "work"]);
    let address = format!("zit::{}", table.git.at("work").dir().display());
    let ada = table.clone(&address, "ada");
    ada.commit("Topic", &[("t", "t\n")]);
    ada.ok(["push", "--quiet", "origin", "HEAD:refs/heads/topic"]);
    assert_eq!(table.git.at("work").resolve("refs/heads/topic"), ada.resolve("HEAD"));
}

/// Only root can be another user.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// `path` and all in it, given to `user`.
fn give(path: &Path, user: u32) {
    chown(path, Some(user), Some(user)).expect("root may");
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_dir() {
            give(&entry.path(), user);
        } else {
            chown(entry.path(), Some(user), Some(user)).expect("root may");
        }
    }
}

#[test]
fn another_users_repository_is_opened_only_if_its_owner_is_trusted() {
    if !is_root() {
        return;
    }
    let table = table();
    give(&table.path(), NOBODY);
    let run = table.git.fails(["ls-remote", &table.address()]).says("belongs to another user");
    assert!(run.stderr.contains("safe.directory"), "{run}");
    table.git.ok(["config", "--global", "--add", "safe.directory", table.path().to_str().unwrap()]);
    assert_eq!(table.git.ok(["ls-remote", &table.address(), "HEAD"]).lines().count(), 1);
}

#[test]
fn who_may_not_write_can_fetch_and_is_told_why_a_push_is_refused() {
    if !is_root() {
        return;
    }
    let table = table();
    let address = table.address();
    let ada = table.clone(&address, "ada");
    ada.commit("Next", &[("next.txt", "next\n")]);
    let (path, home) = (table.path(), table.world.home());
    table.git.ok(["config", "--global", "--add", "safe.directory", "*"]);
    open_up(&path);
    give(home.as_ref(), NOBODY);
    give(ada.dir(), NOBODY);
    let as_nobody = |args: &str| {
        ada.shell(&format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups git {args}"))
    };
    let _ = as_nobody("fetch origin").ok();
    let run = as_nobody("push origin HEAD:refs/heads/x").failed();
    assert!(run.stderr.contains("cannot push to "), "{run}");
    assert!(run.stderr.contains("this user may not write to it"), "{run}");

    let server = Server::start(&table.world);
    table.wake(&server);
    let _ = as_nobody("fetch origin").ok();
    let run = as_nobody("push origin HEAD:refs/heads/x").failed();
    assert!(run.stderr.contains("the server of another user has it open"), "{run}");
    assert_eq!(table.bare.resolve("refs/heads/x"), None);
}

#[test]
fn whoever_may_do_anything_leaves_nothing_of_theirs_in_anothers_repository() {
    if !is_root() {
        return;
    }
    let table = table();
    let path = table.path();
    table.git.ok(["config", "--global", "--add", "safe.directory", "*"]);
    let root = table.clone(&table.address(), "boss");
    let nobodys = root.commit("Next", &[("next.txt", "next\n")]);
    open_up(&path);
    give(&path, NOBODY);
    let foreign = || {
        let found = root.shell(&format!("find {} -not -user {NOBODY}", path.display())).ok();
        String::from_utf8_lossy(&found.stdout).trim().to_owned()
    };
    // Before a referee was there, and after one of its owner's.
    for n in 0..2 {
        root.ok(["fetch", "--quiet", "origin"]);
        let run = root.run(["push", "origin", "HEAD:refs/heads/roots"]).failed();
        assert!(run.stderr.contains("it belongs to another user"), "{run}");
        assert_eq!(foreign(), "", "{n}");
        give(root.dir(), NOBODY);
        let setpriv = format!("setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups");
        give(table.world.home().as_ref(), NOBODY);
        let _ = root.shell(&format!("{setpriv} git push origin HEAD:refs/heads/x-{n}")).ok();
        assert_eq!(table.bare.resolve(&format!("refs/heads/x-{n}")).as_ref(), Some(&nobodys));
        give(root.dir(), 0);
        give(table.world.home().as_ref(), 0);
    }
}

/// Lets everybody pass through the folders above `path`, and programs of this build be run.
fn open_up(path: &Path) {
    for folder in path.ancestors().chain(process::product_folder().ancestors()) {
        let mode = fs::metadata(folder).unwrap().permissions().mode();
        if mode & 0o005 != 0o005 && folder.starts_with("/tmp") {
            fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o055)).unwrap();
        }
    }
}

#[test]
fn a_lock_that_is_held_is_waited_for_by_pushes_and_not_by_fetches() {
    let table = table();
    let ada = table.clone(&table.address(), "ada");
    ada.ok(["push", "--quiet", "origin", CLAIM]);
    let lock = fs::File::open(table.path().join("zit/lock")).unwrap();
    lock.lock().unwrap();
    let waiting = std::thread::spawn({
        let ada = ada.clone();
        move || ada.run(["push", "origin", CLAIM])
    });
    assert_eq!(
        ada.ok(["ls-remote", "origin", "HEAD"]).lines().count(),
        1,
        "reading waits for nobody"
    );
    lock.unlock().unwrap();
    let _ = waiting.join().unwrap().ok().says("the lease on src/config.rs#parse starts anew");
}

/// A program in the place of ssh that runs the command here; `zit-server` is on the path.
fn fake_ssh(table: &Table) -> (PathBuf, Git) {
    let program = table.world.path("fake-ssh");
    let log = table.world.path("ssh.log");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >>'{}'\ntest \"$1\" = -G && exit 0\n\
         while test \"${{1#-}}\" != \"$1\"; do shift 2; done\nshift\nexec sh -c \"$*\"\n",
        log.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let git = table.git.with_env("GIT_SSH_COMMAND", program.to_str().unwrap());
    (log, git)
}

#[test]
fn ssh_reaches_the_referee_on_the_other_side() {
    let table = table();
    let (log, git) = fake_ssh(&table);
    let address = format!("zit::ssh://ada@example.org:2222{}", table.path().display());
    for version in ["0", "1", "2"] {
        let git =
            git.with_config(format!("protocol.version={version}")).with_env("ZIT_AGENT", "ada");
        let clone = git.clone_of(&address, &format!("clone{version}"));
        let new = clone.commit("Next", &[(version, "next\n")]);
        clone.ok(["push", "--quiet", "origin", &format!("HEAD:refs/heads/topic{version}")]);
        assert_eq!(table.bare.resolve(&format!("refs/heads/topic{version}")), Some(new));
        let _ = clone.run(["push", "origin", CLAIM]).ok().says("src/config.rs#parse");
    }
    let log = fs::read_to_string(log).unwrap();
    let line = format!(
        "-p 2222 ada@example.org zit-server stdio --protocol=0 --agent=ada git-receive-pack '{}'",
        table.path().display()
    );
    assert!(log.lines().any(|found| found == line), "{log}");

    let absent = format!("zit::ssh://example.org{}/absent", table.world.root().display());
    let run = git.fails(["ls-remote", &absent]).says("no git repository at ");
    assert!(run.stderr.contains("hint: create one"), "{run}");
}

#[test]
fn stock_git_reaches_the_referee_through_ssh_by_naming_the_program() {
    let table = table();
    let (_, git) = fake_ssh(&table);
    let url = format!("ssh://example.org{}", table.path().display());
    let upload = "zit-server stdio git-upload-pack";
    git.ok(["clone", "--quiet", "--upload-pack", upload, &url, "stock"]);
    let clone = git.at("stock");
    clone.ok([
        "config",
        "remote.origin.receivepack",
        "zit-server stdio --agent ada git-receive-pack",
    ]);
    let _ = clone.run(["push", "origin", CLAIM]).ok().says("ada holds src/config.rs#parse");
}

#[test]
fn ssh_on_the_servers_machine_goes_through_its_socket() {
    let table = table();
    let (_, git) = fake_ssh(&table);
    let server = Server::start(&table.world);
    table.wake(&server);
    let address = format!("zit::ssh://example.org{}", table.path().display());
    let clone = git.with_env("ZIT_AGENT", "ada").clone_of(&address, "clone");
    let _ = clone.run(["push", "origin", CLAIM]).ok().says("ada holds src/config.rs#parse");
    let _ = git.with_env("ZIT_AGENT", "ben").at("clone").fails(["push", "origin", CLAIM]);
    assert!(server.log().contains("conversation held"), "{}", server.log());
    assert_eq!(table.seen(), "", "the server judged");
}

#[test]
fn a_socket_that_speaks_something_else_ends_the_command_and_not_the_machine() {
    let table = table();
    fs::create_dir_all(table.path().join("zit")).unwrap();
    let listener = UnixListener::bind(table.socket()).unwrap();
    let answering = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let _ = table.git.fails(["ls-remote", &table.address()]);
    answering.join().unwrap();
}

#[test]
fn a_program_that_says_no_hello_is_told_and_the_server_goes_on() {
    let table = table();
    let server = Server::start(&table.world);
    table.wake(&server);
    let mut command = process::command("python3");
    let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n\
                  s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')\ns.shutdown(1)\nprint(s.recv(999).decode())\n";
    command.arg("-c").arg(script).arg(table.socket()).stdin(Stdio::null());
    let said = process::run(&mut command, b"");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("ERR not the start of a conversation"), "{said}");
    assert_eq!(table.git.ok(["ls-remote", &table.address(), "HEAD"]).lines().count(), 1);
}
