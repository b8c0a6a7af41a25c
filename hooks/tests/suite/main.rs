//! `zit-hook` with stock git: what git may do in a repository whose refs zit writes, and what it may not.
//!
//! Every test installs the hook as an administrator does and then only runs git.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its repository has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use zit_tests::{Git, World, process};

/// A bare repository with the hook, one branch, and `refs/zit/x` and `refs/zit/y` as zit would have written them.
struct Repo {
    git: Git,
    first: String,
    second: String,
    world: World,
}

impl Repo {
    fn new() -> Self {
        let repo = Self::without_hook();
        repo.install();
        repo
    }

    fn without_hook() -> Self {
        let world = World::new();
        let git = world.bare("r.git");
        world.git().ok(["init", "--quiet", "work"]);
        let work = world.git().at("work");
        let first = work.commit("First", &[("a", "1\n")]);
        let second = work.commit("Second", &[("a", "2\n")]);
        work.ok(["push", "--quiet", git.dir().to_str().unwrap(), "HEAD:refs/heads/main"]);
        let repo = Self { git, first, second, world };
        repo.write_as_zit("refs/zit/x", &repo.first);
        repo.write_as_zit("refs/zit/y", &repo.second);
        repo
    }

    /// Writes a ref without git, and so without hooks.
    fn write_as_zit(&self, name: &str, oid: &str) {
        let path = self.git.dir().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{oid}\n")).unwrap();
    }

    #[track_caller]
    fn install(&self) {
        let output = self.try_install();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn try_install(&self) -> Output {
        let mut command = process::command(env!("CARGO_BIN_EXE_zit-hook"));
        command.arg("install").arg(self.git.dir()).env("HOME", self.world.home());
        process::run(&mut command, b"")
    }

    /// How the hook answers git's announcement that the ref, which holds `old`, is to go.
    fn drops(&self, name: &str, old: &str) -> Option<i32> {
        let mut command = process::command(env!("CARGO_BIN_EXE_zit-hook"));
        command.args(["reference-transaction", "prepared"]).current_dir(self.git.dir());
        command.env("HOME", self.world.home()).env("GIT_DIR", ".");
        let line = format!("{old} {} {name}\n", "0".repeat(old.len()));
        process::run(&mut command, line.as_bytes()).status.code()
    }

    fn hook(&self, name: &str) -> PathBuf {
        self.git.dir().join("hooks").join(name)
    }

    /// A hook that notes its state and lines in `noted`, and fails in `prepared` if `refuses` is a file.
    fn write_users_hook(&self) {
        let script = "#!/bin/sh\n{ echo \"$@\"; cat; } >>noted\n[ \"$1\" = prepared ] && [ -e refuses ] && exit 1\nexit 0\n";
        write_executable(&self.hook("reference-transaction"), script);
    }

    #[track_caller]
    fn assert_untouched(&self) {
        for (name, oid) in [("refs/zit/x", &self.first), ("refs/zit/y", &self.second)] {
            assert_eq!(self.git.resolve(name).as_ref(), Some(oid), "{name}");
        }
    }
}

fn write_executable(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn stock_git_may_not_write_below_refs_zit() {
    let repo = Repo::new();
    let (first, second) = (repo.first.as_str(), repo.second.as_str());
    for packed in [false, true] {
        if packed {
            repo.git.ok(["pack-refs", "--all"]);
        }
        for args in [
            vec!["update-ref", "refs/zit/new", first],
            vec!["update-ref", "refs/zit/x", second],
            vec!["update-ref", "refs/zit/x", second, first],
            vec!["update-ref", "-d", "refs/zit/x"],
            vec!["update-ref", "-d", "refs/zit/x", first],
            vec!["symbolic-ref", "refs/zit/x", "refs/heads/main"],
            vec!["fetch", "--quiet", ".", "+refs/heads/main:refs/zit/x"],
        ] {
            let run = repo.git.fails(&args).says("is written by zit alone");
            assert!(run.stderr.contains("hint: push through zit-server"), "{args:?}: {run}");
            assert_eq!(repo.git.resolve("refs/zit/new"), None, "{args:?}, packed: {packed}");
            repo.assert_untouched();
        }
    }
}

#[test]
fn a_symbolic_ref_is_no_way_around() {
    let repo = Repo::new();
    repo.git.ok(["symbolic-ref", "refs/heads/side", "refs/zit/x"]);
    let run = repo.git.fails(["update-ref", "refs/heads/side", &repo.second]);
    let _ = run.says("refs/zit/x is written by zit alone");
    repo.assert_untouched();
}

#[test]
fn a_transaction_with_one_such_ref_moves_no_ref() {
    let repo = Repo::new();
    let lines =
        format!("create refs/heads/new {0}\nupdate refs/zit/x {0}\n", repo.second).into_bytes();
    let _ = repo.git.run_with_input(["update-ref", "--stdin"], &lines).failed().says("zit alone");
    assert_eq!(repo.git.resolve("refs/heads/new"), None);
    repo.assert_untouched();
}

#[test]
fn other_refs_are_not_held_up() {
    let repo = Repo::new();
    repo.git.ok(["update-ref", "refs/heads/new", &repo.first]);
    repo.git.ok(["update-ref", "refs/heads/new", &repo.second, &repo.first]);
    repo.git.ok(["update-ref", "-d", "refs/heads/new"]);
}

#[test]
fn packing_refs_and_collecting_garbage_work_again_and_again() {
    let repo = Repo::new();
    for round in 0..2 {
        for args in [vec!["pack-refs", "--all"], vec!["gc", "--quiet", "--prune=now"]] {
            let run = repo.git.run(&args).ok();
            assert_eq!(run.stderr, "", "{args:?}, round {round}");
            assert!(!repo.git.dir().join("refs/zit/x").exists(), "{args:?} left a loose ref");
            repo.assert_untouched();
        }
        // As zit writes it: a loose file over the packed line.
        repo.write_as_zit("refs/zit/x", &repo.first);
    }
}

#[test]
fn only_a_loose_ref_equal_to_its_packed_line_may_be_dropped() {
    let repo = Repo::new();
    repo.git.ok(["pack-refs", "--all"]);
    repo.write_as_zit("refs/zit/x", &repo.second);
    assert_eq!(repo.drops("refs/zit/x", &repo.second), Some(1), "the packed value differs");
    assert_eq!(repo.drops("refs/zit/x", &repo.first), Some(0));
    fs::write(repo.git.dir().join("packed-refs.lock"), "").unwrap();
    assert_eq!(repo.drops("refs/zit/x", &repo.first), Some(1), "a delete holds the lock");
}

#[test]
fn the_users_hook_still_runs_and_may_still_refuse() {
    let repo = Repo::without_hook();
    repo.write_users_hook();
    repo.install();
    repo.git.ok(["update-ref", "refs/heads/new", &repo.first]);
    let noted = fs::read_to_string(repo.git.dir().join("noted")).unwrap();
    let line = format!("{} {} refs/heads/new\n", "0".repeat(40), repo.first);
    assert!(noted.contains(&format!("prepared\n{line}committed\n{line}")), "{noted}");

    let _ = repo.git.fails(["update-ref", "refs/zit/x", &repo.second]).says("zit alone");
    fs::write(repo.git.dir().join("refuses"), "").unwrap();
    let run = repo.git.fails(["update-ref", "refs/heads/other", &repo.first]);
    assert!(!run.stderr.contains("zit"), "{run}");
}

#[test]
fn installing_again_changes_nothing() {
    let repo = Repo::without_hook();
    repo.write_users_hook();
    repo.install();
    let names = ["reference-transaction", "reference-transaction.user"];
    let read = || names.map(|name| fs::read_to_string(repo.hook(name)).unwrap());
    let before = read();
    repo.install();
    assert_eq!(read(), before);
    let n_files = fs::read_dir(repo.git.dir().join("hooks")).unwrap();
    let left =
        n_files.filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().starts_with("zit"));
    assert_eq!(left.count(), 0, "a temporary file was left behind");
}

#[test]
fn a_hook_that_cannot_be_kept_is_left_alone() {
    let repo = Repo::without_hook();
    fs::create_dir_all(repo.hook("reference-transaction")).unwrap();
    let output = repo.try_install();
    assert_eq!(output.status.code(), Some(1), "a folder cannot be read as a hook");
    fs::remove_dir(repo.hook("reference-transaction")).unwrap();

    repo.write_users_hook();
    write_executable(&repo.hook("reference-transaction.user"), "#!/bin/sh\n# mine too\n");
    let output = repo.try_install();
    assert_eq!(output.status.code(), Some(1), "two hooks cannot both be kept under one name");
    let kept = fs::read_to_string(repo.hook("reference-transaction.user")).unwrap();
    assert!(kept.contains("mine too"));
}

#[test]
fn hooks_shared_with_other_repositories_are_left_alone() {
    let repo = Repo::without_hook();
    let shared = repo.world.path("shared-hooks");
    repo.git.ok(["config", "core.hooksPath", shared.to_str().unwrap()]);
    let output = repo.try_install();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("hint: run `git config core.hooksPath hooks`"), "{stderr}");
    assert!(!shared.exists());
}
