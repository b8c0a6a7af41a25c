//! Pushes from shallow clones, of history that begins where the repository has nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use zit_tests::Git;

use super::{Pair, path};

impl Pair {
    /// A repository of its own history, twelve commits long, cloned to the depth of two.
    fn shallow_clone(&self) -> Git {
        self.world.git().ok(["init", "--quiet", "elsewhere"]);
        let elsewhere = self.world.git().at("elsewhere");
        for n in 0..12 {
            elsewhere.commit(&format!("Elsewhere {n}"), &[("e.txt", &n.to_string())]);
        }
        elsewhere.ok(["branch", "older", "HEAD~5"]);
        let from = format!("file://{}", path(&elsewhere));
        let git = self.world.git();
        git.ok(["clone", "--quiet", "--depth=2", "--no-single-branch", &from, "shallow"]);
        git.at("shallow")
    }

    /// Where both repositories say that their history ends.
    #[track_caller]
    fn ends(&self) -> Vec<String> {
        let [ours, theirs] = [&self.ours, &self.theirs].map(|repository| {
            let text = fs::read_to_string(repository.dir().join("shallow")).unwrap_or_default();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        });
        assert_eq!(ours, theirs);
        ours
    }

    #[track_caller]
    fn sound(&self) {
        for repository in [&self.ours, &self.theirs] {
            repository.ok(["fsck", "--full", "--no-dangling", "--connectivity-only"]);
        }
    }
}

/// A branch of its own that is whole.
fn whole_branch(clone: &Git) -> String {
    let tree = clone.ok(["rev-parse", "HEAD^{tree}"]);
    clone.ok(["commit-tree", "-m", "Whole", &tree])
}

#[test]
fn only_the_refs_that_would_make_a_repository_shallow_are_refused() {
    let pair = Pair::new();
    let clone = pair.shallow_clone();
    let whole = whole_branch(&clone);
    let refspecs = [
        "HEAD:refs/heads/cut".to_owned(),
        format!("{whole}:refs/heads/whole"),
        "HEAD~1:refs/tags/cut".to_owned(),
    ];
    let refspecs = refspecs.each_ref().map(String::as_str);
    let outcome = pair.push(&clone, &refspecs);
    assert_eq!(outcome.matches("(shallow update not allowed)").count(), 2, "{outcome}");
    assert!(outcome.contains("refs/heads/whole\t[new branch]"), "{outcome}");
    let outcome = pair.push(&clone, &["--atomic", "HEAD:refs/heads/cut", "HEAD:refs/heads/cut-2"]);
    assert!(outcome.contains("(shallow update not allowed)"), "{outcome}");
    assert_eq!(pair.ends(), [""; 0]);
    pair.sound();
}

#[test]
fn a_repository_becomes_shallow_where_it_is_allowed_to() {
    let pair = Pair::new();
    pair.set("receive.shallowUpdate", "true");
    let clone = pair.shallow_clone();
    let root = clone.ok(["rev-parse", "HEAD~1"]);
    let older_root = clone.ok(["rev-parse", "origin/older~1"]);
    pair.push(&clone, &["HEAD:refs/heads/cut"]);
    assert_eq!(pair.ends(), [root.as_str()], "only what a pushed ref reaches");
    // Alone: git's server ends without a word for the command after one that made it shallow.
    pair.push(&clone, &["origin/older:refs/tags/older"]);
    let mut both = [root, older_root];
    both.sort();
    assert_eq!(pair.ends(), both);
    clone.commit("Go on", &[("e.txt", "further")]);
    pair.push(&clone, &["HEAD:refs/heads/cut"]);
    assert_eq!(pair.ends(), both);
    let whole = whole_branch(&clone);
    let [url, _] = pair.urls();
    clone.ok([
        "push",
        "--quiet",
        &url,
        "origin/older:refs/pull/1",
        &format!("{whole}:refs/pull/2"),
    ]);
    for name in ["refs/pull/1", "refs/pull/2"] {
        pair.ours.ok(["update-ref", "-d", name]);
    }
    pair.sound();
    for (n, url) in pair.urls().iter().enumerate() {
        let again = pair.world.git().clone_of(url, &format!("again-{n}"));
        assert_eq!(again.ok(["rev-list", "--count", "origin/cut"]), "3", "{url}");
    }
}

#[test]
fn history_that_lands_meanwhile_is_not_cut_by_a_push_that_lacks_it() {
    let pair = Pair::new();
    pair.ours.ok(["config", "receive.shallowUpdate", "true"]);
    let clone = pair.shallow_clone();
    let [url, _] = pair.urls();
    // While `pre-receive` is asked about the one, the other is pushed, with all its history.
    let hook = pair.ours.dir().join("hooks/pre-receive");
    let elsewhere = pair.world.git().at("elsewhere");
    let text = format!(
        "#!/bin/sh\nread old new ref\ntest $ref != refs/heads/cut || env -i PATH=\"$PATH\" git -C {} push -q {url} HEAD:refs/heads/full\n",
        path(&elsewhere)
    );
    fs::create_dir_all(hook.parent().expect("a file is in a folder")).expect("writable");
    fs::write(&hook, text).expect("writable");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("writable");
    clone.ok(["push", "--quiet", &url, "HEAD:refs/heads/cut"]);
    for name in ["full", "cut"] {
        assert_eq!(pair.ours.ok(["rev-list", "--count", name]), "12", "{name}");
    }
    assert!(!pair.ours.dir().join("shallow").exists());
    pair.ours.ok(["fsck", "--full", "--no-dangling", "--connectivity-only"]);
}

#[test]
fn a_large_shallow_history_is_taken_too() {
    let pair = Pair::new();
    pair.set("receive.shallowUpdate", "true");
    let clone = pair.shallow_clone();
    // More than is unpacked in memory, and nothing that compresses.
    let mut noise = fastrand::Rng::with_seed(7);
    let text: String = (0..6 << 20).map(|_| noise.alphanumeric()).collect();
    clone.commit("Large", &[("large.txt", &text)]);
    pair.push(&clone, &["HEAD:refs/heads/cut"]);
    assert_eq!(pair.ends().len(), 1);
    pair.sound();
}

#[test]
fn history_that_only_a_shallow_line_explains_is_not_taken_on_its_word() {
    let pair = Pair::new();
    pair.set("receive.shallowUpdate", "true");
    // The clone says that its history ends at a commit whose parents both repositories have.
    let url = &pair.urls()[0];
    let git = pair.world.git();
    git.ok(["clone", "--quiet", "--depth=1", url, "clone"]);
    let clone = git.at("clone");
    clone.commit("Go on", &[("b.txt", "more")]);
    pair.push(&clone, &["HEAD:refs/heads/next"]);
    assert_eq!(pair.ends(), [""; 0]);
    assert_eq!(pair.ours.ok(["rev-list", "--count", "next"]), "4");
    let three = pair.source.ok(["rev-parse", "HEAD"]);
    assert_eq!(pair.ours.resolve("next~1"), Some(three));
}
