//! Clients that are not today's stock git share one repository, all at the same time.
//!
//! The programs are in `e2e/clients`, one folder a client, and keep the contract of its README. Those
//! that the machine does not bring are installed into `target/clients` by `./test`.

use std::path::{Path, PathBuf};
use std::process::Output;

use zit_tests::{Git, Server, World, process, server};

/// How many commits each client pushes.
const N_ROUNDS: u32 = 4;

const FILES: &[(&str, &str)] = &[("README.md", "# Repo\n")];

/// Where Debian keeps the libraries of Java.
const JARS: [&str; 4] = ["org.eclipse.jgit", "jsch", "slf4j-api", "slf4j-nop"];

/// One client program.
struct Client {
    /// Its agent, its branch, its tag and its clone.
    name: &'static str,
    /// The program and its first arguments.
    program: Vec<PathBuf>,
    env: Vec<(&'static str, PathBuf)>,
    sends_options: bool,
}

#[test]
fn clients_of_every_kind_share_one_repository_and_then_see_the_same() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", FILES);
    bare.ok(["branch", "passing", "main"]);
    let server = Server::start(&world);
    let (clients, reader) = (clients(), gix());
    std::thread::scope(|scope| {
        let (world, server) = (&world, &server);
        for client in &clients {
            scope.spawn(move || client.work(world, &server.seat(client.name, "app.git")));
        }
        scope.spawn(|| reader.read(world, &server.url("app.git")));
    });
    // All have cloned it, and have to forget it.
    bare.ok(["push", &server.url("app.git"), ":refs/heads/passing"]);
    bare.ok(["fsck", "--strict"]);
    for client in &clients {
        client.assert_done(&bare);
    }
    let expected = branches_and_tags(&bare);
    assert_eq!(expected.len(), 1 + 2 * clients.len(), "{expected:#?}");
    for client in clients.iter().chain([&reader]) {
        assert_eq!(client.refs(&world), expected, "what {} sees", client.name);
        let fsck = world.git().at(client.name).run(["fsck", "--strict"]);
        assert!(fsck.is_ok(), "{}: {fsck}", client.name);
    }
}

impl Client {
    #[track_caller]
    fn work(&self, world: &World, url: &str) {
        let rounds = N_ROUNDS.to_string();
        self.run(world, "work", &[url, self.name, &rounds]);
    }

    /// What a client that cannot push does meanwhile.
    #[track_caller]
    fn read(&self, world: &World, url: &str) {
        self.run(world, "read", &[url, &N_ROUNDS.to_string()]);
    }

    /// What the client sees after a fetch, sorted.
    fn refs(&self, world: &World) -> Vec<String> {
        let output = self.run(world, "refs", &[]);
        sorted(&String::from_utf8_lossy(&output.stdout))
    }

    /// Everything that the client pushed is there, and nothing that it deleted.
    #[track_caller]
    fn assert_done(&self, bare: &Git) {
        let name = self.name;
        let branch = bare.resolve(&format!("refs/heads/{name}"));
        assert!(branch.is_some(), "{name}: its branch is there");
        assert_eq!(bare.resolve(&format!("refs/tags/{name}")), branch, "{name}: its tag");
        assert_eq!(bare.resolve(&format!("refs/heads/{name}-gone")), None, "{name}: deleted");
        for n in 1..=N_ROUNDS {
            let file = bare.ok(["show".to_owned(), format!("refs/heads/main:{name}/{n}.txt")]);
            assert_eq!(file, n.to_string(), "{name}: its work has landed");
        }
        let claims = bare.ok(["for-each-ref", "--format=%(refname):claim.json", "refs/zit/claims"]);
        let resource = format!("\"{name}/claimed.txt\"");
        let told = claims.lines().any(|claim| bare.ok(["show", claim]).contains(&resource));
        assert_eq!(told, self.sends_options, "{name}: its push option arrived: {claims}");
    }

    #[track_caller]
    fn run(&self, world: &World, verb: &str, args: &[&str]) -> Output {
        let mut command = process::command(&self.program[0]);
        command.args(&self.program[1..]).arg(verb).arg(world.path(self.name)).args(args);
        command.env("HOME", world.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.envs(self.env.iter().map(|(key, value)| (key, value)));
        let output = process::run(&mut command, b"");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {verb}: {}\n{said}", self.name, output.status);
        output
    }
}

/// Where `./test` installs them.
#[track_caller]
fn installed() -> PathBuf {
    let installed = process::product_folder().parent().expect("target/<profile>").join("clients");
    assert!(installed.join("installed").is_file(), "no clients are installed: ./test");
    installed
}

/// It cannot push.
fn gix() -> Client {
    let program = vec![installed().join("gix/debug/zit-client-gix")];
    Client { name: "gix", program, env: vec![], sends_options: false }
}

fn clients() -> Vec<Client> {
    let installed = installed();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../e2e/clients");
    let git = |name, git: PathBuf, sends_options| Client {
        name,
        program: vec![scripts.join("stock-git/client.sh")],
        env: vec![("GIT", git)],
        sends_options,
    };
    let plain = |name, program: &[&Path], env: Vec<_>, sends_options| {
        let program = program.iter().map(|path| path.to_path_buf()).collect();
        Client { name, program, env, sends_options }
    };
    let python = installed.join("venv/bin/python");
    let jars = JARS.map(|jar| format!("/usr/share/java/{jar}.jar")).join(":");
    let (libgit2, dulwich) = (scripts.join("libgit2/client.py"), scripts.join("dulwich/client.py"));
    let (jgit, node) =
        (scripts.join("jgit/Client.java"), scripts.join("isomorphic-git/client.cjs"));
    let modules = installed.join("node_modules");
    vec![
        git("git", "git".into(), true),
        git("debian-git", "/usr/bin/git".into(), true),
        git("old-git", installed.join("git-2.4.3/git"), false),
        plain("libgit2", &[&python, &libgit2], vec![], true),
        plain("dulwich", &[&python, &dulwich], vec![], true),
        plain("jgit", &["java".as_ref(), "-cp".as_ref(), jars.as_ref(), &jgit], vec![], true),
        plain("isomorphic", &["node".as_ref(), &node], vec![("NODE_PATH", modules)], false),
    ]
}

#[track_caller]
fn branches_and_tags(bare: &Git) -> Vec<String> {
    let format = "--format=%(objectname) %(refname)";
    sorted(&bare.ok(["for-each-ref", format, "refs/heads/", "refs/tags/"]))
}

fn sorted(lines: &str) -> Vec<String> {
    let mut lines = lines.lines().map(str::to_owned).collect::<Vec<_>>();
    lines.sort();
    lines
}
