//! A disk that is full, cannot be written, or fails to flush: what cannot be kept is refused in words, nothing half-written
//! is left, and the server goes on once the disk does.
//!
//! Each test starts itself again in a mount namespace of its own, where it may mount what it likes; mounts end with it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use rustix::process::geteuid;
use zit_tests::world::text;
use zit_tests::{Git, Server, World, files, process, server};

/// Set within the namespace.
const INSIDE: &str = "ZIT_OWN_MOUNTS";

/// The size of the small disk.
const SMALL: &str = "size=4m";

/// More claims than fit into what is left of a page.
const MOST: usize = 40;

const FILES: &[(&str, &str)] = &[("src/lib.rs", "pub fn f() {}\n")];

/// Runs the test of this name again with mounts of its own. Whether it is to go on, because that is here.
fn has_own_mounts(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let mut command = process::command("unshare");
    if !geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let exe = std::env::current_exe().expect("a running test knows its own path");
    command.args(["--mount", "--"]).arg(exe).args(["--exact", test, "--nocapture"]);
    let output = process::run(command.env(INSIDE, "1"), b"");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    false
}

#[track_caller]
fn mount(args: &[&str]) {
    let output = process::run(process::command("mount").args(args), b"");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A served repository, and a clone with one commit to push.
struct Table {
    bare: Git,
    server: Server,
    ada: Git,
    /// Last: its folder has the server's log.
    world: World,
}

fn table(world: World, env: &[(&str, &str)]) -> Table {
    let bare = server::seeded(&world, "repo.git", FILES);
    bare.ok(["config", "maintenance.auto", "false"]);
    let server = Server::start_with(&world, &[], env);
    let ada = world.git().clone_of(&server.seat("ada", "repo.git"), "ada");
    ada.ok(["push", "--quiet", "origin", "HEAD:refs/zit/claim/first.txt"]);
    ada.commit("More", &[("more.txt", "more\n")]);
    Table { bare, server, ada, world }
}

impl Table {
    /// Claims until one is refused in words; how many were taken before.
    #[track_caller]
    fn claims_until_refused(&self, why: &str) -> usize {
        for n in 0..MOST {
            let run = self.ada.run(["push", "origin", &format!("HEAD:refs/zit/claim/{n}.txt")]);
            if !run.is_ok() {
                let _ = run.says(why);
                return n;
            }
        }
        panic!("{MOST} claims were taken");
    }

    /// What was refused is taken now, and the repository is sound.
    #[track_caller]
    fn goes_on(&mut self, n_claims: usize) {
        for to in ["refs/zit/claim/second.txt", "refs/heads/topic"] {
            self.ada.ok(["push", "--quiet", "origin", &format!("HEAD:{to}")]);
        }
        assert_eq!(self.bare.resolve("refs/heads/topic"), self.ada.resolve("HEAD"));
        assert!(self.server.stop().success());
        assert_eq!(files::leftovers(self.bare.dir()), [""; 0]);
        assert_eq!(self.bare.ok(["for-each-ref", "refs/zit/claims"]).lines().count(), n_claims + 2);
        let mut check = process::command(process::product("zit-server"));
        check.arg("check").arg(self.bare.dir()).env("HOME", self.world.home());
        let output = process::run(&mut check, b"");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.starts_with("sound: "), "{said}");
    }
}

#[test]
fn a_full_disk_refuses_pushes_until_there_is_room_again() {
    if !has_own_mounts("disk::a_full_disk_refuses_pushes_until_there_is_room_again") {
        return;
    }
    let world = World::new();
    mount(&["-t", "tmpfs", "-o", SMALL, "tmpfs", text(&world.root())]);
    let mut table = table(world, &[]);
    let ballast = table.world.root().join("ballast");
    fill(&ballast);
    // There may be room for some of them in the last page of the journal.
    let n_claims = table.claims_until_refused("o space left on device");
    let _ = table.ada.fails(["push", "origin", "HEAD:refs/heads/topic"]).says("remote: refused: ");
    assert!(!table.bare.dir().join("refs/heads/topic").exists());
    assert!(table.server.is_alive(), "{}", table.server.log());
    fs::remove_file(ballast).unwrap();
    table.goes_on(n_claims);
}

/// Writes until there is no room.
fn fill(path: &Path) {
    let mut file = File::create(path).expect("there is room for a name");
    while file.write_all(&[7; 512]).is_ok() {}
}

#[test]
fn a_folder_that_cannot_be_written_refuses_pushes_until_it_can() {
    if !has_own_mounts("disk::a_folder_that_cannot_be_written_refuses_pushes_until_it_can") {
        return;
    }
    let mut table = table(World::new(), &[]);
    files::file_list(table.bare.dir());
    let bare = text(table.bare.dir()).to_owned();
    mount(&["--bind", &bare, &bare]);
    mount(&["-o", "remount,bind,ro", &bare]);
    let refs = table.bare.refs();
    let _ =
        table.ada.fails(["push", "origin", "HEAD:refs/heads/topic"]).says("ead-only file system");
    assert_eq!(table.bare.refs(), refs);
    assert!(table.server.is_alive(), "{}", table.server.log());
    let output = process::run(process::command("umount").args(["--lazy", &bare]), b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(files::leftovers(table.bare.dir()).is_empty());
    table.goes_on(0);
}

#[test]
fn a_flush_that_fails_refuses_the_push_and_the_next_one_is_taken() {
    for to in ["refs/zit/claim/second.txt", "refs/heads/topic"] {
        let mut table = table(World::new(), &[("ZIT_FAIL_AT", "journal.flush:3")]);
        // The first record makes current, the second is the claim's.
        let run = table.ada.fails(["push", "origin", &format!("HEAD:{to}")]);
        let _ = run.says("Input/output error");
        // It may have happened, and then is there; else the same push is taken.
        table.ada.run(["push", "--quiet", "origin", &format!("HEAD:{to}")]);
        table.goes_on(0);
    }
}
