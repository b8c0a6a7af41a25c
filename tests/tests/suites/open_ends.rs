//! A client that keeps its side open while it waits for the report, as `JGit` does, gets the report: a pack ends by itself.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic like tests")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use zit_tests::wire::{PushBody, Report, ZERO};
use zit_tests::{Git, Server, World, process, server};

const FILES: &[(&str, &str)] = &[("README.md", "# Repo\n")];

/// More than is unpacked in memory, in bytes.
const LARGE: usize = 6 << 20;

/// A repository, a clone that makes packs, and perhaps a server through whose socket everything goes.
struct Table {
    world: World,
    bare: Git,
    clone: Git,
    server: Option<Server>,
}

fn tables() -> Vec<Table> {
    let table = |with_server: bool| {
        let world = World::new();
        let bare = server::seeded(&world, "app.git", FILES);
        let clone = world.git().clone_of(world.root().join("app.git").to_str().unwrap(), "clone");
        let server = with_server.then(|| Server::start(&world));
        if let Some(server) = &server {
            clone.ok(["ls-remote", "--quiet", &server.url("app.git")]);
        }
        Table { world, bare, clone, server }
    };
    vec![table(false), table(true)]
}

impl Table {
    fn path(&self) -> PathBuf {
        self.world.root().join("app.git")
    }

    /// The objects of HEAD that the repository lacks.
    fn pack(&self) -> Vec<u8> {
        let out = self.world.path("out.pack");
        let pipe = "printf 'HEAD\\n^origin/main\\n' | git pack-objects --revs --stdout --thin -q";
        let _ = self.clone.shell(&format!("{pipe} >'{}'", out.display())).ok();
        std::fs::read(out).unwrap()
    }

    fn converse(&self) -> Conversation {
        Conversation::begin(&self.path(), &self.world.home())
    }

    /// Where the referee was: in the program, or in the server.
    fn assert_held(&self) {
        if let Some(server) = &self.server {
            assert!(server.log().contains("conversation held"), "{}", server.log());
        }
    }
}

/// One `zit-server stdio git-receive-pack` whose input stays open.
struct Conversation {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Conversation {
    /// Starts it, and reads the advertisement.
    fn begin(path: &Path, home: &Path) -> Self {
        let mut command = process::command(process::product("zit-server"));
        command.args(["stdio", "--agent", "ada", "git-receive-pack"]).arg(path).env("HOME", home);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut conversation = Self { child, input, output };
        let _ = conversation.read_to_flush();
        conversation
    }

    fn read_to_flush(&mut self) -> Vec<u8> {
        let mut read = Vec::new();
        loop {
            let mut head = [0; 4];
            self.output.read_exact(&mut head).unwrap();
            read.extend_from_slice(&head);
            let size = usize::from_str_radix(std::str::from_utf8(&head).unwrap(), 16).unwrap();
            if size == 0 {
                return read;
            }
            let mut packet = vec![0; size - 4];
            self.output.read_exact(&mut packet).unwrap();
            read.extend_from_slice(&packet);
        }
    }

    /// Sends a push and reads the report, with the input open.
    fn push(&mut self, body: &[u8]) -> Report {
        self.input.write_all(body).unwrap();
        Report::read(&self.read_to_flush())
    }

    /// The program ends although its input is open.
    fn ends(mut self) {
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
        assert!(self.child.wait().unwrap().success());
    }

    /// The client has read enough, and goes.
    fn leave(self) {
        drop(self.input);
        let _ = self.child.wait_with_output().unwrap();
    }
}

#[test]
fn a_push_is_answered_while_the_client_keeps_its_side_open() {
    for table in tables() {
        let text = "many words, none of them twice\n".repeat(40);
        table.clone.commit("Small", &[("a.txt", &text)]);
        let tip = table.clone.resolve("HEAD").unwrap();
        let body = PushBody::of(ZERO, &tip, "refs/heads/small", &table.pack()).encode();
        let mut conversation = table.converse();
        assert_eq!(conversation.push(&body).lines, ["unpack ok", "ok refs/heads/small"]);
        conversation.ends();
        assert_eq!(table.bare.resolve("refs/heads/small"), Some(tip.clone()));

        let body = PushBody::of(&tip, ZERO, "refs/heads/small", b"").encode();
        let mut conversation = table.converse();
        assert_eq!(conversation.push(&body).lines, ["unpack ok", "ok refs/heads/small"]);
        conversation.ends();
        table.assert_held();
    }
}

#[test]
fn so_is_a_push_whose_pack_goes_through_git() {
    for table in tables() {
        let noise =
            process::command("head").arg("-c").arg(LARGE.to_string()).arg("/dev/urandom").output();
        std::fs::write(table.clone.dir().join("large.bin"), noise.unwrap().stdout).unwrap();
        table.clone.commit("Large", &[("a.txt", "a\n")]);
        table.clone.ok(["add", "large.bin"]);
        table.clone.ok(["commit", "--quiet", "--amend", "--no-edit"]);
        let tip = table.clone.resolve("HEAD").unwrap();
        let pack = table.pack();
        assert!(pack.len() > LARGE);
        let body = PushBody::of(ZERO, &tip, "refs/heads/large", &pack).encode();
        let mut conversation = table.converse();
        assert_eq!(conversation.push(&body).lines, ["unpack ok", "ok refs/heads/large"]);
        conversation.ends();
        table.bare.ok(["fsck", "--strict"]);
        table.assert_held();
    }
}

#[test]
fn a_push_that_is_refused_before_its_pack_is_read_is_answered_too() {
    for table in tables() {
        table.clone.commit("Next", &[("a.txt", "a\n")]);
        let tip = table.clone.resolve("HEAD").unwrap();
        let push = PushBody::of(ZERO, &tip, "refs/heads/x", &table.pack());
        let mut conversation = table.converse();
        let report = conversation.push(&push.with_option("zit.nope=1").encode());
        assert!(!report.refusals().is_empty(), "{report:?}");
        conversation.ends();
        assert_eq!(table.bare.resolve("refs/heads/x"), None);
    }
}

#[test]
fn a_pack_that_is_broken_is_answered_as_soon_as_that_is_seen() {
    for table in tables() {
        table.clone.commit("Next", &[("a.txt", "a\n")]);
        let tip = table.clone.resolve("HEAD").unwrap();
        let mut pack = table.pack();
        // The first entry's compressed data.
        pack[16..24].fill(0xff);
        let mut conversation = table.converse();
        let report = conversation.push(&PushBody::of(ZERO, &tip, "refs/heads/x", &pack).encode());
        assert!(report.lines[0].contains("inflate"), "{report:?}");
        conversation.leave();
        assert_eq!(table.bare.resolve("refs/heads/x"), None);
    }
}
