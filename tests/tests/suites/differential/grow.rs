//! Random histories: a graph with merges, moved files, clocks that go wrong, and refs of every kind.
//!
//! Equal seeds grow equal histories, so that two repositories can stand side by side.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastrand::Rng;
use gix_hash::Kind as Format;
use zit_tests::Git;

/// The first commit's time; the later ones are about a minute apart.
pub(super) const EPOCH: u64 = 1_700_000_000;

/// Paths that files live at.
const PATHS: &[&str] = &[
    "a.txt",
    "b.txt",
    "src/lib.txt",
    "src/main.txt",
    "src/deep/er/x.txt",
    "src/deep/y.txt",
    "doc/guide.md",
    "doc/notes.md",
    "big.bin",
    "src.txt",
    "tools/run",
    "tools/x/y/z/w.txt",
];

/// The branch that is the mainline of every grown repository. No case touches it: what our server does with its
/// mainline is not git's affair.
pub(super) const TRUNK: &str = "refs/heads/trunk";

/// The branch that every commit is made on, gone at the end.
const GROWING: &str = "refs/heads/growing";

/// Settings under which tags behave as in git.
const SETTINGS: &str = "[refs]\ntags = \"move\"\n";

type Files = BTreeMap<String, String>;

/// Grows a history of `n_commits` into the empty repository of `git`, and shapes how it is stored.
pub(super) fn grow(git: &Git, format: Format, n_commits: usize, random: &mut Rng) {
    let n_hex = format.len_in_hex();
    let grower = Grower { random, n_hex, stream: String::new(), commits: Vec::new() };
    let stream = grower.grow(n_commits);
    let run = git.run_with_input(["fast-import", "--quiet", "--force"], stream.as_bytes());
    assert!(run.is_ok(), "{run}");
    git.ok(["update-ref", "-d", GROWING]);
    name_odd_refs(git, random);
    store(git, random);
}

struct Grower<'a> {
    random: &'a mut Rng,
    n_hex: usize,
    stream: String,
    // The files of each commit; a mark is its index plus one.
    commits: Vec<Files>,
}

impl Grower<'_> {
    fn grow(mut self, n_commits: usize) -> String {
        for n in 0..n_commits {
            self.commit(n);
        }
        let _ = writeln!(self.stream, "commit {TRUNK}\ncommitter A <a@example.com> {EPOCH} +0000");
        data(&mut self.stream, "Settings\n");
        let _ = writeln!(self.stream, "M 100644 inline zit.toml");
        data(&mut self.stream, SETTINGS);
        self.name_refs(n_commits);
        self.stream.push_str("done\n");
        self.stream
    }

    fn commit(&mut self, n: usize) {
        let parent = (n > 0 && self.random.u8(..) > 4).then(|| self.recent(n));
        let others = match self.random.u8(..) {
            0..40 if n > 3 => vec![self.recent(n)],
            40..46 if n > 5 => vec![self.recent(n), self.recent(n)],
            _ => Vec::new(),
        };
        let skew = if self.random.u8(..) < 20 { self.random.u64(0..6000) } else { 0 };
        let time = EPOCH + (n as u64) * 60 + self.random.u64(0..90) - skew;
        let mark = n + 1;
        // The reset lets a commit without `from` begin a history of its own.
        let _ = writeln!(self.stream, "reset {GROWING}\ncommit {GROWING}\nmark :{mark}");
        let _ = writeln!(self.stream, "committer A <a@example.com> {time} +0000");
        data(&mut self.stream, &format!("Step {n}\n"));
        if let Some(parent) = parent {
            let _ = writeln!(self.stream, "from :{}", parent + 1);
        }
        for other in others.iter().filter(|&&other| Some(other) != parent) {
            let _ = writeln!(self.stream, "merge :{}", other + 1);
        }
        let mut files = parent.map(|parent| self.commits[parent].clone()).unwrap_or_default();
        if let (Some(&other), Some(_)) = (others.first(), parent) {
            self.take_over(&mut files, other);
        }
        for _ in 0..self.random.usize(0..4) {
            self.change(&mut files, n);
        }
        if self.random.u8(..) < 6 {
            let _ = writeln!(self.stream, "M 160000 {} module", "7".repeat(self.n_hex));
        }
        self.commits.push(files);
    }

    /// Mostly a young one.
    fn recent(&mut self, n: usize) -> usize {
        let back = if self.random.bool() { 3 } else { n };
        n - 1 - self.random.usize(0..back.min(n))
    }

    fn take_over(&mut self, files: &mut Files, other: usize) {
        for (path, text) in self.commits[other].clone() {
            if self.random.u8(..) < 80 {
                self.write(files, &path, text);
            }
        }
    }

    fn change(&mut self, files: &mut Files, n: usize) {
        let paths = files.keys().cloned().collect::<Vec<_>>();
        let path = PATHS[self.random.usize(0..PATHS.len())].to_owned();
        let kind = self.random.u8(0..10);
        if kind < 3 && !paths.is_empty() {
            let from = &paths[self.random.usize(0..paths.len())];
            let text = files[from].clone();
            // Gone, moved, or copied.
            if kind < 2 {
                self.remove(files, from);
            }
            if kind > 0 {
                self.write(files, &path, text);
            }
            return;
        }
        let text = files.get(&path).cloned().unwrap_or_else(|| self.text(&path));
        let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
        let at = self.random.usize(0..=lines.len());
        lines.insert(at, format!("step {n} {}", self.random.u32(..)));
        self.write(files, &path, lines.join("\n") + "\n");
    }

    fn text(&mut self, path: &str) -> String {
        let n_lines = if path == "big.bin" { 150 } else { self.random.usize(1..20) };
        (0..n_lines).map(|n| format!("{path} {n} {}\n", self.random.u64(..))).collect()
    }

    fn write(&mut self, files: &mut Files, path: &str, text: String) {
        let mode = if path == "tools/run" { "100755" } else { "100644" };
        let _ = writeln!(self.stream, "M {mode} inline {path}");
        data(&mut self.stream, &text);
        files.insert(path.to_owned(), text);
    }

    fn remove(&mut self, files: &mut Files, path: &str) {
        let _ = writeln!(self.stream, "D {path}");
        files.remove(path);
    }

    /// Branches and tags on random commits.
    fn name_refs(&mut self, n_commits: usize) {
        let reset = |stream: &mut String, name: &str, commit: usize| {
            let _ = writeln!(stream, "reset {name}\nfrom :{}\n", commit + 1);
        };
        reset(&mut self.stream, "refs/heads/main", n_commits - 1);
        for name in ["topic/a", "topic/b", "topic/deep/c", "old", "other"] {
            let commit = self.random.usize(0..n_commits);
            reset(&mut self.stream, &format!("refs/heads/{name}"), commit);
        }
        for name in ["refs/tags/light", "refs/notes/x", "refs/pull/1/head", "refs/changes/01/1/1"] {
            let commit = self.random.usize(0..n_commits);
            reset(&mut self.stream, name, commit);
        }
        for n in 0..6 {
            let commit = self.random.usize(0..n_commits) + 1;
            let _ = writeln!(self.stream, "tag v{n}\nfrom :{commit}");
            let _ = writeln!(self.stream, "tagger A <a@example.com> {EPOCH} +0000");
            data(&mut self.stream, &format!("Version {n}\n"));
        }
    }
}

fn data(stream: &mut String, content: &str) {
    let _ = writeln!(stream, "data {}\n{content}", content.len());
}

/// Tags of tags, of trees and of blobs, symbolic refs, a HEAD of every kind.
fn name_odd_refs(git: &Git, random: &mut Rng) {
    git.ok(["tag", "-a", "-m", "A tag of a tag", "vv", "v0"]);
    git.ok(["tag", "-a", "-m", "A tree's tag", "tree", "main^{tree}"]);
    git.ok(["tag", "-a", "-m", "A blob's tag", "blob", &format!("{TRUNK}:zit.toml")]);
    git.ok(["tag", "lonely", &format!("{TRUNK}:zit.toml")]);
    git.ok(["symbolic-ref", "refs/heads/alias", "refs/heads/topic/a"]);
    git.ok(["symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/nowhere"]);
    match random.u8(0..4) {
        0 => git.ok(["symbolic-ref", "HEAD", "refs/heads/unborn"]),
        1 => {
            let oid = git.ok(["rev-parse", "refs/heads/other"]);
            git.ok(["update-ref", "--no-deref", "HEAD", &oid])
        }
        2 => git.ok(["symbolic-ref", "HEAD", "refs/heads/topic/b"]),
        _ => git.ok(["symbolic-ref", "HEAD", "refs/heads/main"]),
    };
}

/// Objects loose, in one pack with deltas, or as they came; refs packed or loose.
fn store(git: &Git, random: &mut Rng) {
    if random.bool() {
        git.ok(["pack-refs", "--all"]);
        // Some of the packed ones get a loose one before them.
        let oid = git.ok(["rev-parse", "refs/heads/old"]);
        git.ok(["update-ref", "refs/heads/topic/b", &oid]);
    }
    match random.u8(0..3) {
        0 => {
            git.ok(["repack", "-q", "-a", "-d", "-f", "--depth=10"]);
        }
        1 => {
            git.ok(["repack", "-q", "-a", "-d", "-f"]);
            git.ok(["commit-graph", "write", "--reachable"]);
        }
        _ => {}
    }
}
