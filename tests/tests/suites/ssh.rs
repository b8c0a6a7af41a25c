//! Through a real sshd: by the helper, and by clients that only know ssh and a login that is forced to `zit-server stdio`.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

use std::path::{Path, PathBuf};

use zit_tests::{Git, Server, Sshd, World, process, server};

const FILES: &[(&str, &str)] = &[("src/config.rs", "pub fn parse() -> u32 {\n    1\n}\n")];

const CLAIM: &str = "origin/main:refs/zit/claim/src/config.rs#parse";

/// Where Debian keeps the libraries of Java.
const JARS: [&str; 4] = ["org.eclipse.jgit", "jsch", "slf4j-api", "slf4j-nop"];

/// A repository that is reached by ssh.
struct Table {
    world: World,
    bare: Git,
    git: Git,
    sshd: Sshd,
}

fn table(forced: Option<&str>) -> Table {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    let sshd = Sshd::start(&world, forced);
    let _ = (process::product("git-remote-zit"), process::product("zit-server"));
    let path = [process::product_folder().into_os_string(), process::search_path()];
    let path = path.map(|folders| folders.into_string().unwrap()).join(":");
    let ssh = sshd.client().to_str().unwrap().to_owned();
    let git = world.git().with_env("PATH", &path).with_env("GIT_SSH_COMMAND", &ssh);
    let git = git.with_env("GIT_SSH_VARIANT", "ssh");
    Table { world, bare, git, sshd }
}

impl Table {
    fn path(&self) -> PathBuf {
        self.world.root().join("app.git")
    }

    fn url(&self) -> String {
        self.sshd.url(&self.path())
    }
}

/// Clones, pushes, deletes, claims, lands, sends an option, and fetches, over one version of the protocol.
fn everything_works(table: &Table, git: &Git, url: &str, name: &str) {
    let [writer, reader] =
        ["writer", "reader"].map(|who| git.clone_of(url, &format!("{who}-{name}")));
    let file = format!("{name}.txt");
    let new = writer.commit("Next", &[(&file, "next\n")]);
    let intent = format!("zit.intent=Say hello over {name}");
    writer.ok(["push", "--quiet", "-o", &intent, "origin", "HEAD:refs/heads/topic"]);
    assert_eq!(table.bare.resolve("refs/heads/topic"), Some(new.clone()), "{name}");
    let state = table.bare.ok(["show", "refs/zit/agents/ada/state:state.json"]);
    assert!(state.contains(&format!("Say hello over {name}")), "{name}: {state}");
    reader.ok(["fetch", "--quiet"]);
    assert_eq!(reader.resolve("origin/topic"), Some(new), "{name}");
    reader.ok(["fsck", "--strict"]);
    let _ = writer.run(["push", "origin", CLAIM]).ok().says("src/config.rs#parse");
    writer.ok(["push", "--quiet", "origin", "HEAD:refs/for/main"]);
    assert_eq!(table.bare.ok(["show", &format!("main:{file}")]), "next", "{name}");
    writer.ok(["push", "--quiet", "origin", "--delete", "topic"]);
    assert_eq!(table.bare.resolve("refs/heads/topic"), None, "{name}");
    let run = writer.run(["push", "-o", "zit.nope=1", "origin", "HEAD:refs/heads/x"]).failed();
    let _ = run.says("zit.nope");
}

#[test]
fn the_helper_does_everything_through_sshd_over_every_protocol() {
    let table = table(None);
    let url = format!("zit::{}", table.url());
    for version in ["0", "1", "2"] {
        let git = table.git.with_config(format!("protocol.version={version}"));
        let git = git.with_env("ZIT_AGENT", "ada");
        everything_works(&table, &git, &url, &format!("v{version}"));
    }
}

#[test]
fn stock_git_does_everything_through_a_login_that_is_forced_to_the_server() {
    let table = table(Some("zit-server stdio --agent ada"));
    for version in ["0", "1", "2"] {
        let git = table.git.with_config(format!("protocol.version={version}"));
        everything_works(&table, &git, &table.url(), &format!("v{version}"));
        let packets = git.with_env("GIT_TRACE_PACKET", "1").run(["ls-remote", &table.url()]).ok();
        let says = |line: &str| packets.stderr.contains(&format!("ls-remote< {line}"));
        assert_eq!((says("version 1"), says("version 2")), (version == "1", version == "2"));
    }
    // The helper is understood there, too, and speaks as who the key says.
    let url = format!("zit::{}", table.url());
    let ben = table.git.with_env("ZIT_AGENT", "ben");
    let _ = ben.fails(["ls-remote", &url]).says("this login speaks as ada, not as ben");
    table.git.ok(["ls-remote", &url]);
}

#[test]
fn a_login_that_is_forced_to_an_agent_speaks_as_no_other_by_a_push_option() {
    // The second hands on what was asked for itself.
    for forced in [
        "zit-server stdio --agent ada",
        "eval exec zit-server stdio --agent ada $SSH_ORIGINAL_COMMAND",
    ] {
        let table = table(Some(forced));
        for served in [false, true] {
            let server = served.then(|| Server::start(&table.world));
            if let Some(server) = &server {
                table.git.ok(["ls-remote", "--quiet", &server.url("app.git")]);
            }
            let clone = format!("clone-{served}");
            let clone = table.git.clone_of(table.bare.dir().to_str().unwrap(), &clone);
            for refspec in [CLAIM, "origin/main:refs/heads/eves"] {
                let run = clone.run(["push", "-o", "zit.agent=eve", &table.url(), refspec]);
                let _ = run.failed().says("this login speaks as ada, not as eve");
            }
            assert!(!table.bare.ok(["for-each-ref"]).contains("eve"));
            let _ = clone
                .run(["push", "-o", "zit.agent=ada", &table.url(), CLAIM])
                .ok()
                .says("src/config.rs#parse");
        }
    }
}

#[test]
fn a_forced_login_runs_nothing_else() {
    let table = table(Some("zit-server stdio"));
    let (_, port) =
        table.url().rsplit_once(':').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let port = port.split('/').next().unwrap();
    let ssh = table.sshd.client();
    for command in ["touch touched", "git-receive-pack \"$(touch touched)\"", ""] {
        let line = format!("'{}' -p {port} 127.0.0.1 '{command}'", ssh.display());
        let run = table.git.shell(&line);
        assert_ne!(run.code(), Some(0), "{command}: {run}");
        assert!(run.text().contains("ERR "), "{command}: {run}");
        assert!(!table.world.home().join("touched").exists(), "{command}");
    }
}

#[test]
fn sshd_leads_to_the_running_server() {
    let table = table(Some("zit-server stdio --agent ada"));
    let server = Server::start(&table.world);
    table.git.ok(["ls-remote", "--quiet", &server.url("app.git")]);
    let clone = table.git.clone_of(&table.url(), "clone");
    let _ = clone.run(["push", "origin", CLAIM]).ok().says("ada holds src/config.rs#parse");
    assert!(server.log().contains("conversation held"), "{}", server.log());
}

/// Who the logs of a repository say has pushed, in order.
fn pushers(bare: &Git, branch: &str) -> Vec<String> {
    let log = std::fs::read_to_string(bare.dir().join("logs/refs/heads").join(branch)).unwrap();
    let who = |line: &str| {
        let (head, _) = line.split_once("> ").unwrap();
        head.splitn(3, ' ').nth(2).unwrap().to_owned()
    };
    log.lines().map(who).collect()
}

#[test]
fn who_pushes_is_named_as_git_names_the_user_there() {
    let table = table(None);
    let source = table.world.git();
    source.ok(["init", "--quiet", "source"]);
    let source = table.git.at(source.at("source").dir());
    source.commit("One", &[("a.txt", "one")]);
    let twins = ["ours.git", "theirs.git"].map(|name| table.world.bare(name));
    for twin in &twins {
        twin.ok(["config", "core.logAllRefUpdates", "always"]);
        twin.ok(["config", "zit.mainline", "trunk"]);
        let hook = twin.dir().join("hooks/post-receive");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, "#!/bin/sh\ngit var GIT_COMMITTER_IDENT | sed 's/>.*//' >>who\n")
            .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&hook, mode).unwrap();
    }
    let addresses = |twin: &Git| [twin.dir().display().to_string(), table.sshd.url(twin.dir())];
    let theirs = addresses(&twins[1]);
    let push_both = |git: &Git, branch: &str| {
        for (ours, theirs) in addresses(&twins[0]).iter().zip(&theirs) {
            git.commit("Next", &[("a.txt", &format!("{branch} {ours}"))]);
            let refspec = format!("HEAD:refs/heads/{branch}");
            git.ok(["push", "--quiet", &format!("zit::{ours}"), &refspec]);
            git.ok(["push", "--quiet", theirs, &refspec]);
        }
        let [ours, theirs] = [0, 1].map(|n| pushers(&twins[n], branch));
        assert_eq!(ours, theirs, "{branch}");
        ours
    };
    // The user's own configuration, then the environment where it reaches, then the repository's configuration.
    let users = push_both(&source, "user");
    assert!(!users[0].contains("anonymous"), "{users:?}");
    let named = source.with_env("GIT_COMMITTER_NAME", "Somebody Else");
    let others = push_both(&named, "env");
    assert!(others[0].starts_with("Somebody Else <"), "{others:?}");
    for twin in &twins {
        twin.ok(["config", "user.name", "The Repository"]);
        twin.ok(["config", "user.email", "repository@example.com"]);
    }
    let expected = "The Repository <repository@example.com";
    assert_eq!(push_both(&source, "repository"), [expected; 2]);
    // A running server says the same of whoever comes by its socket.
    let server = Server::start(&table.world);
    source.ok(["ls-remote", "--quiet", &server.url("ours.git")]);
    let others = push_both(&named, "socket");
    assert!(others[0].starts_with("Somebody Else <repository@"), "{others:?}");
    let who = twins.map(|twin| std::fs::read_to_string(twin.dir().join("who")).unwrap());
    assert_eq!(who[0], who[1]);
}

#[test]
fn jgit_keeps_its_side_open_and_gets_its_reports_through_sshd() {
    let table = table(Some("zit-server stdio --agent jgit"));
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/clients/jgit/Client.java");
    let jars = JARS.map(|jar| format!("/usr/share/java/{jar}.jar")).join(":");
    let mut command = process::command("java");
    command.args(["-cp", &jars]).arg(&client).arg("work").arg(table.world.path("jgit"));
    command.args([&table.url(), "jgit", "2"]);
    command.env("HOME", table.world.home()).env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_SSH", table.sshd.client());
    let output = process::run(&mut command, b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    for n in ["1", "2"] {
        assert_eq!(table.bare.ok(["show", &format!("main:jgit/{n}.txt")]), n);
    }
    let claims =
        table.bare.ok(["for-each-ref", "--format=%(refname):claim.json", "refs/zit/claims"]);
    assert!(table.bare.ok(["show", &claims]).contains("\"jgit/claimed.txt\""), "{claims}");
    table.bare.ok(["fsck", "--strict"]);
}
