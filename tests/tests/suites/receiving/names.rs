//! Commands that mean a ref by another name, or whose refs cannot be beside each other.

use super::Pair;

impl Pair {
    /// Two branches, and symbolic refs to one of them, to one through another, and to nothing yet.
    fn with_aliases() -> Self {
        let pair = Self::new();
        let branches = ["HEAD~2:refs/heads/other", "HEAD~2:refs/heads/more"];
        let _ = pair.push(&pair.source, &branches);
        for repository in [&pair.ours, &pair.theirs] {
            for (name, target) in [
                ("refs/heads/alias", "refs/heads/other"),
                ("refs/heads/again", "refs/heads/alias"),
                ("refs/heads/nowhere", "refs/heads/later"),
                ("refs/remotes/x/HEAD", "refs/heads/more"),
            ] {
                repository.ok(["symbolic-ref", name, target]);
            }
        }
        pair
    }

    /// As [`Pair::push`]; what the symbolic refs name stays the same, too.
    #[track_caller]
    fn aliased(&self, args: &[&str]) -> String {
        let outcome = self.push(&self.source, args);
        let list = ["for-each-ref", "--format=%(refname) %(objectname) %(symref)"];
        let [ours, theirs] = [&self.ours, &self.theirs].map(|repository| {
            let list = repository.ok(list);
            list.lines().filter(|line| !line.contains("refs/zit/")).collect::<Vec<_>>().join("\n")
        });
        assert_eq!(ours, theirs, "{args:?}");
        outcome
    }
}

#[test]
fn a_push_to_a_symbolic_ref_moves_what_it_names() {
    let pair = Pair::with_aliases();
    let last = pair.source.resolve("HEAD");
    for (args, moved) in [
        (&["HEAD~1:refs/heads/alias"][..], "refs/heads/other"),
        (&["HEAD:refs/heads/again"], "refs/heads/other"),
        (&["HEAD:refs/heads/nowhere"], "refs/heads/later"),
        (&["HEAD:refs/remotes/x/HEAD"], "refs/heads/more"),
    ] {
        assert!(pair.aliased(args).starts_with("Some(0)"), "{args:?}");
        assert!(pair.ours.resolve(moved).is_some(), "{args:?}");
    }
    assert_eq!(pair.ours.resolve("refs/heads/other"), last);
    assert!(pair.aliased(&[":refs/heads/alias"]).starts_with("Some(0)"));
    assert_eq!(pair.ours.resolve("refs/heads/other"), None);
}

#[test]
fn a_ref_that_is_meant_by_two_names_moves_once_or_not_at_all() {
    let pair = Pair::with_aliases();
    let both = ["HEAD~1:refs/heads/alias", "HEAD~1:refs/heads/other"];
    assert!(pair.aliased(&both).starts_with("Some(0)"));
    for args in [
        &["HEAD:refs/heads/other", "HEAD~2:refs/heads/alias", "HEAD:refs/heads/free"][..],
        &["HEAD:refs/heads/again", ":refs/heads/other"],
    ] {
        let args = [&["--force"], args].concat();
        let said = pair.aliased(&args);
        assert!(said.contains("inconsistent aliased update"), "{args:?}: {said}");
    }
    assert!(pair.ours.resolve("refs/heads/free").is_some());
    assert_eq!(pair.ours.resolve("refs/heads/other"), pair.source.resolve("HEAD~1"));
}

#[test]
fn a_symbolic_ref_is_no_way_around_the_mainlines_rules() {
    let pair = Pair::new();
    pair.ours.ok(["config", "zit.mainline", "main"]);
    pair.ours.ok(["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    pair.ours.ok(["symbolic-ref", "refs/heads/current", "refs/zit/current"]);
    let url = pair.server.url("ours.git");
    let _ = pair.source.fails(["push", &url, ":refs/heads/alias"]).says("never deleted");
    let _ = pair.source.fails(["push", "--force", &url, "HEAD~1:refs/heads/alias"]);
    let _ = pair.source.fails(["push", "--force", &url, "HEAD~1:refs/heads/current"]);
    let next = pair.source.commit("four", &[("a.txt", "four")]);
    pair.source.ok(["push", "--quiet", &url, "HEAD:refs/heads/alias"]);
    for name in ["refs/heads/main", "refs/zit/current"] {
        assert_eq!(pair.ours.resolve(name), Some(next.clone()), "{name}");
    }
}

/// git's reason for a conflict of names differs with its version, so only what is done is compared.
#[test]
fn of_a_ref_and_one_below_it_the_one_is_made_that_can_be() {
    let pair = Pair::new();
    let _ = pair.push(&pair.source, &["HEAD:refs/heads/d/e"]);
    for args in [
        &["HEAD~1:refs/heads/p", "HEAD:refs/heads/p/q"][..],
        &["HEAD~1:refs/heads/x/y", "HEAD:refs/heads/x"],
        &["HEAD:refs/heads/d", "--force", "HEAD~1:refs/heads/d/e"],
        &[
            "HEAD:refs/heads/a/b/c",
            "HEAD:refs/heads/a",
            "HEAD:refs/heads/a.b",
            "HEAD:refs/heads/ab",
        ],
        &["--atomic", "HEAD:refs/heads/z", "HEAD:refs/heads/z/b"],
    ] {
        for url in pair.urls() {
            let _ = pair.source.fails([&["push", &url], args].concat());
        }
        assert_eq!(pair.ours.refs(), pair.theirs.refs(), "{args:?}");
    }
    for name in ["p", "x/y", "d/e", "a/b/c", "a.b", "ab"] {
        assert!(pair.ours.resolve(&format!("refs/heads/{name}")).is_some(), "{name}");
    }
}
