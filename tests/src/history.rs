//! Histories grown from a seed with `git fast-import`: equal arguments give equal object ids.

use std::fmt::Write as _;

use crate::Git;

/// The first commit's time; each later one is a minute younger.
const EPOCH: u64 = 1_700_000_000;

/// Branches that are left unmerged.
const N_OPEN: u32 = 5;

/// Every this many commits of the mainline, a topic branch is merged.
const MERGE_EVERY: u32 = 25;

/// Grows `n_commits` commits into the repository of `git`: the mainline `main` with merges of topic
/// branches, `topic/1` to `topic/5` left open, light and annotated tags, files of several languages.
pub fn grow(git: &Git, n_commits: u32, seed: u64) {
    let stream = Grower::new(seed).grow(n_commits);
    let run = git.run_with_input(["fast-import", "--quiet", "--force"], stream.as_bytes());
    assert!(run.is_ok(), "{run}");
}

/// The time of commit number `n`, in seconds since 1970.
pub fn time_of(n: u32) -> u64 {
    EPOCH + u64::from(n) * 60
}

struct Grower {
    random: fastrand::Rng,
    stream: String,
    files: Vec<(&'static str, Vec<String>)>,
    n_commits: u32,
}

impl Grower {
    fn new(seed: u64) -> Self {
        let paths =
            ["src/lib.rs", "src/config.rs", "tools/build.py", "web/app.ts", "docs/guide.md"];
        let files = paths.into_iter().map(|path| (path, first_lines(path))).collect();
        let random = fastrand::Rng::with_seed(seed);
        Self { random, stream: String::new(), files, n_commits: 0 }
    }

    /// The whole stream. A mark is the number of its commit, counted from 1.
    fn grow(mut self, n_commits: u32) -> String {
        self.plant();
        while self.n_commits + N_OPEN < n_commits {
            let tip = self.n_commits;
            if self.n_commits.is_multiple_of(MERGE_EVERY) && self.n_commits + N_OPEN + 2 < n_commits
            {
                self.merge_a_topic(tip);
            } else {
                self.edit(tip);
            }
            self.tag();
        }
        let tip = self.n_commits;
        for number in 1..=N_OPEN {
            let from = tip - self.random.u32(0..tip.min(200));
            self.commit(&format!("refs/heads/topic/{number}"), Some(from), None);
            self.write_file(&format!("topics/open-{number}.txt"), &format!("open {number}\n"));
        }
        self.stream.push_str("done\n");
        self.stream
    }

    fn plant(&mut self) {
        self.commit("refs/heads/main", None, None);
        for index in 0..self.files.len() {
            self.write_known(index);
        }
    }

    fn edit(&mut self, tip: u32) {
        self.commit("refs/heads/main", Some(tip), None);
        let index = self.random.usize(0..self.files.len());
        let n = self.n_commits;
        let lines = &mut self.files[index].1;
        let at = self.random.usize(0..lines.len());
        let value = self.random.u32(..);
        let line = lines[at].clone();
        let stem = line.split("//").next().unwrap_or(&line).trim_end();
        lines[at] = format!("{stem} // {n} {value}");
        if lines.len() < 120 {
            lines.push(format!("// line of {n}"));
        }
        self.write_known(index);
    }

    /// A topic commit beside the mainline and the merge that brings it in.
    fn merge_a_topic(&mut self, tip: u32) {
        let number = self.n_commits;
        let (path, text) = (format!("topics/{number}.txt"), format!("topic {number}\n"));
        self.commit("refs/heads/topic/merged", Some(tip), None);
        self.write_file(&path, &text);
        let topic = self.n_commits;
        self.commit("refs/heads/main", Some(tip), Some(topic));
        self.write_file(&path, &text);
    }

    fn tag(&mut self) {
        let n = self.n_commits;
        if n % 400 == 7 {
            let _ = writeln!(self.stream, "reset refs/tags/light-{n}\nfrom :{n}\n");
        }
        if n % 600 == 11 {
            let date = time_of(n);
            let _ = writeln!(self.stream, "tag v{n}\nfrom :{n}");
            let _ = writeln!(self.stream, "tagger Ada Example <ada@example.com> {date} +0000");
            self.data(&format!("Version {n}\n"));
        }
    }

    fn commit(&mut self, refname: &str, from: Option<u32>, merge: Option<u32>) {
        self.n_commits += 1;
        let (n, date) = (self.n_commits, time_of(self.n_commits));
        let _ = writeln!(self.stream, "commit {refname}\nmark :{n}");
        let _ = writeln!(self.stream, "committer Ada Example <ada@example.com> {date} +0000");
        self.data(&format!("Step {n}\n"));
        if let Some(from) = from {
            let _ = writeln!(self.stream, "from :{from}");
        }
        if let Some(merge) = merge {
            let _ = writeln!(self.stream, "merge :{merge}");
        }
    }

    fn write_known(&mut self, index: usize) {
        let (path, lines) = self.files[index].clone();
        self.write_file(path, &(lines.join("\n") + "\n"));
    }

    fn write_file(&mut self, path: &str, content: &str) {
        let _ = writeln!(self.stream, "M 100644 inline {path}");
        self.data(content);
    }

    fn data(&mut self, content: &str) {
        let _ = writeln!(self.stream, "data {}\n{content}", content.len());
    }
}

fn first_lines(path: &str) -> Vec<String> {
    (0..20).map(|n| format!("// {path} {n}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;

    #[test]
    fn equal_seeds_grow_equal_histories_with_branches_merges_and_tags() {
        let world = World::new();
        let grown = ["a.git", "b.git"].map(|name| {
            let git = world.bare(name);
            grow(&git, 900, 1);
            git
        });
        assert_eq!(grown[0].refs(), grown[1].refs());
        assert_eq!(grown[0].ok(["rev-list", "--all", "--count"]), "900");
        assert_ne!(grown[0].ok(["rev-list", "--merges", "--all", "--count"]), "0");
        let kinds = grown[0].ok(["for-each-ref", "--format=%(objecttype)", "refs/tags"]);
        assert!(kinds.contains("commit") && kinds.contains("tag"), "{kinds}");
        grown[0].ok(["fsck", "--strict"]);
    }
}
