//! Small fetches against git's own idea of what a client lacks.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use zit_model::Oid;
use zit_store::{Access, FetchError, FetchLimits, FetchQuery, Fetched, Store};

use crate::support::Repo;

/// How many commits a random history has.
const N_COMMITS: usize = 60;

/// Folders and files that random commits touch.
const PATHS: &[&str] = &["a", "b", "d/a", "d/b", "d/e/a", "f/a", "f/e/a", "f/e/b"];

/// A repository of either hash function.
struct Case {
    repo: Repo,
}

impl Case {
    fn new(format: &str) -> Self {
        let repo = Repo::new();
        std::fs::remove_dir_all(&repo.path).unwrap();
        let format = format!("--object-format={format}");
        repo.git(&["init", "-q", "--bare", &format, repo.path.to_str().unwrap()]);
        Self { repo }
    }

    fn open(&self) -> Store {
        Store::open(&self.repo.path, Access::ReadOnly).unwrap()
    }

    fn oid(&self, rev: &str) -> Oid {
        self.repo.git(&["rev-parse", rev]).parse().unwrap()
    }

    /// The objects that git would send at most.
    fn lacking(&self, wants: &[Oid], haves: &[Oid]) -> BTreeSet<String> {
        let mut revs = wants.iter().map(|oid| format!("{oid}\n")).collect::<String>();
        revs.extend(haves.iter().map(|oid| format!("^{oid}\n")));
        let args = ["rev-list", "--objects", "--no-object-names", "--stdin"];
        self.repo.git_with(&args, revs.as_bytes()).lines().map(str::to_owned).collect()
    }

    /// The objects of a pack, which must be sound.
    fn unpack(&self, pack: &[u8]) -> BTreeSet<String> {
        let path = self.repo.folder.path().join("t.pack");
        std::fs::write(&path, pack).unwrap();
        let index = path.with_extension("idx");
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        self.repo.git(&["index-pack", "--strict", "-o", &text(&index), &text(&path)]);
        let format = format!("--object-format={}", self.open().hash_kind());
        let listed = self.repo.git_with(&["show-index", &format], &std::fs::read(index).unwrap());
        listed.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn pack(&self, query: &FetchQuery) -> BTreeSet<String> {
        match self.open().fetch(query, &FetchLimits::default()) {
            Ok(Fetched::Pack { pack, .. }) => self.unpack(&pack),
            other => panic!("{query:?}: {other:?}"),
        }
    }

    /// Imports a stream and answers its commits.
    fn import(&self, stream: &str) -> Vec<Oid> {
        let marks = self.repo.folder.path().join("marks");
        let export = format!("--export-marks={}", marks.display());
        self.repo.git_with(&["fast-import", "--quiet", "--force", &export], stream.as_bytes());
        let text = std::fs::read_to_string(marks).unwrap();
        let mut pairs = text
            .lines()
            .map(|line| line.trim_start_matches(':').split_once(' ').unwrap())
            .map(|(mark, oid)| (mark.parse::<usize>().unwrap(), oid.parse::<Oid>().unwrap()))
            .collect::<Vec<_>>();
        pairs.sort_unstable();
        pairs.into_iter().map(|(_, oid)| oid).collect()
    }
}

/// A history with merges, moves, reverts, submodules, empty trees, tags, and clocks that go wrong.
fn random_history(random: &mut Rng, n_hex: usize) -> String {
    let mut stream = String::new();
    for n in 1..=N_COMMITS {
        let skew = if random.u8(..8) == 0 { random.u64(..3_000) } else { 0 };
        let date = 1_700_000_000 + n as u64 * 60 - skew;
        let who = format!("A <a@example.org> {date} +0000");
        let _ = writeln!(stream, "commit refs/heads/b{n}\nmark :{n}\ncommitter {who}");
        let _ = writeln!(stream, "data 0");
        if n > 1 && random.u8(..20) > 0 {
            let near = n.saturating_sub(6).max(1);
            let _ = writeln!(stream, "from :{}", random.usize(near..n));
            for _ in 0..random.usize(..3).saturating_sub(usize::from(random.bool())) {
                let _ = writeln!(stream, "merge :{}", random.usize(near..n));
            }
        }
        for _ in 0..random.usize(..4) {
            random_change(random, n_hex, &mut stream);
        }
        if n % 7 == 0 {
            let _ = writeln!(stream, "tag v{n}\nfrom :{n}\ntagger {who}\ndata 0");
        }
    }
    stream
}

fn random_change(random: &mut Rng, n_hex: usize, stream: &mut String) {
    let path = PATHS[random.usize(..PATHS.len())];
    let content = random.u8(..20).to_string();
    let n = content.len();
    let _ = match random.u8(..9) {
        0 => writeln!(stream, "D {path}"),
        1 => writeln!(stream, "deleteall"),
        2 => {
            let commit = content.repeat(n_hex)[..n_hex].replace('0', "1");
            writeln!(stream, "M 160000 {commit} sub/{path}")
        }
        3 => writeln!(stream, "M 120000 inline {path}\ndata {n}\n{content}"),
        _ => writeln!(stream, "M 100644 inline {path}\ndata {n}\n{content}"),
    };
}

fn difference(a: &BTreeSet<String>, b: &BTreeSet<String>) -> Vec<String> {
    a.difference(b).cloned().collect()
}

#[test]
fn nothing_that_git_would_send_is_left_out_and_what_is_sent_beyond_is_known_to_the_client() {
    for (format, n_hex, seeds) in [("sha1", 40, 0..6), ("sha256", 64, 6..8)] {
        for seed in seeds {
            let mut random = Rng::with_seed(seed);
            let case = Case::new(format);
            let commits = case.import(&random_history(&mut random, n_hex));
            let (mut n_sent, mut n_extra) = (0, 0);
            for round in 0..8 {
                let mut some = |most| -> Vec<Oid> {
                    (0..random.usize(..=most))
                        .map(|_| random.choice(&commits).copied().unwrap())
                        .collect()
                };
                let (mut wants, haves) = (some(3), some(4));
                wants.push(*commits.last().unwrap());
                let query = FetchQuery {
                    wants: wants.clone(),
                    haves: haves.clone(),
                    done: true,
                    ..FetchQuery::default()
                };
                let sent = case.pack(&query);
                let expected = case.lacking(&wants, &haves);
                let name = format!("{format}, seed {seed}, round {round}");
                assert_eq!(difference(&expected, &sent), [""; 0], "{name}: left out");
                let extra = difference(&sent, &expected);
                let known = case.lacking(&haves, &[]);
                assert!(extra.iter().all(|oid| known.contains(oid)), "{name}: {extra:?}");
                n_sent += sent.len();
                n_extra += extra.len();
            }
            assert!(
                n_extra * 5 <= n_sent,
                "{format}, seed {seed}: {n_extra} of {n_sent} for naught"
            );
        }
    }
}

/// A stream with one commit a list of changes, each on top of the one before.
fn line_of_commits(changes: &[&str]) -> String {
    let mut stream = String::new();
    for (n, changes) in (1..).zip(changes) {
        let date = 1_700_000_000 + n * 60;
        let _ = writeln!(stream, "commit refs/heads/main\nmark :{n}");
        let _ = writeln!(stream, "committer A <a@example.org> {date} +0000\ndata 0");
        if n > 1 {
            let _ = writeln!(stream, "from :{}", n - 1);
        }
        let _ = writeln!(stream, "{changes}");
    }
    stream
}

fn done(wants: &[Oid], haves: &[Oid]) -> FetchQuery {
    FetchQuery { wants: wants.to_vec(), haves: haves.to_vec(), done: true, ..FetchQuery::default() }
}

#[test]
fn a_file_that_moved_is_not_sent_again() {
    let case = Case::new("sha1");
    let commits = case.import(&line_of_commits(&[
        "M 100644 inline a/x\ndata 1\n1\nM 100644 inline a/y\ndata 1\n2\nM 100644 inline b/z\ndata 1\n3",
        "R a/x b/x",
        "R a c",
    ]));
    let sent = case.pack(&done(&commits[2..], &commits[..1]));
    assert_eq!(sent, case.lacking(&commits[2..], &commits[..1]));
}

#[test]
fn a_tag_of_what_is_sent_goes_with_it_only_when_asked_for() {
    let case = Case::new("sha1");
    let commits = case.import(&line_of_commits(&["M 100644 inline a\ndata 1\n1", "D a"]));
    case.repo.git(&["tag", "-a", "-m", "one", "one", &commits[0].to_string()]);
    case.repo.git(&["tag", "-a", "-m", "two", "two", &commits[1].to_string()]);
    case.repo.git(&["tag", "-a", "-m", "of a tag", "nested", "two"]);
    let query = done(&commits[1..], &commits[..1]);
    let plain = case.pack(&query);
    assert_eq!(plain, case.lacking(&commits[1..], &commits[..1]));
    let with_tags = case.pack(&FetchQuery { include_tag: true, ..query });
    let mut expected = ["two", "nested"].map(|tag| case.oid(tag).to_string());
    expected.sort();
    assert_eq!(difference(&with_tags, &plain), expected);
}

#[test]
fn anything_here_can_be_wanted_and_comes_with_all_it_leads_to() {
    let case = Case::new("sha1");
    case.import(&line_of_commits(&[
        "M 100644 inline d/a\ndata 1\n1",
        "M 100644 inline b\ndata 1\n2",
    ]));
    case.repo.git(&["tag", "-a", "-m", "of a tree", "tree", "main^{tree}"]);
    case.repo.git(&["tag", "-a", "-m", "of a blob", "blob", "main:b"]);
    for rev in ["main", "main~", "main^{tree}", "main:d", "main:b", "tree", "blob"] {
        let want = [case.oid(rev)];
        assert_eq!(case.pack(&done(&want, &[])), case.lacking(&want, &[]), "{rev}");
    }
    let tag = [case.oid("tree")];
    assert!(case.pack(&done(&tag, &tag)).len() < 5, "a tag that the client has is not sent");
}

#[test]
fn a_want_that_is_not_here_is_refused_in_gits_words() {
    let case = Case::new("sha1");
    let nowhere = Oid::from_hex(&[b'1'; 40]).unwrap();
    let refused = case.open().fetch(&done(&[nowhere], &[]), &FetchLimits::default()).unwrap_err();
    assert_eq!(refused.to_string(), format!("upload-pack: not our ref {nowhere}"));
}

#[test]
fn a_client_that_is_not_done_waits_until_each_want_leads_to_what_it_has() {
    let case = Case::new("sha1");
    let commits = case.import(&line_of_commits(&["", "", "", ""]));
    let other: Oid = case.repo.git(&["commit-tree", "-m", "alone", "main^{tree}"]).parse().unwrap();
    let nowhere = Oid::from_hex(&[b'1'; 40]).unwrap();
    let (old, tip) = (commits[1], commits[3]);
    let ask = |wants: &[Oid], haves: &[Oid], wait_for_done| {
        let query = FetchQuery { done: false, wait_for_done, ..done(wants, haves) };
        match case.open().fetch(&query, &FetchLimits::default()).unwrap() {
            Fetched::Acknowledged(common) => (false, Some(common)),
            Fetched::Pack { acknowledged, .. } => (true, acknowledged),
        }
    };
    assert_eq!(ask(&[tip], &[], false), (true, None), "nothing to negotiate");
    assert_eq!(ask(&[tip], &[nowhere], false), (false, Some(vec![])));
    assert_eq!(ask(&[tip], &[nowhere, old], false), (true, Some(vec![old])));
    assert_eq!(ask(&[tip], &[old], true), (false, Some(vec![old])));
    assert_eq!(ask(&[tip], &[other], false), (false, Some(vec![other])));
    assert_eq!(ask(&[tip, other], &[old], false), (false, Some(vec![old])));
    assert_eq!(ask(&[tip, other], &[old, other], false), (true, Some(vec![old, other])));
    // The parent of what the client has is as good: git counts it as known.
    assert_eq!(ask(&[old], &[commits[2]], false), (true, Some(vec![commits[2]])));
}

#[test]
fn a_have_that_an_earlier_one_implies_is_not_acknowledged() {
    let case = Case::new("sha1");
    let commits = case.import(&line_of_commits(&["", "", "", ""]));
    let tree = case.oid("main^{tree}");
    let [oldest, old, young, tip] = commits[..] else { panic!("four commits") };
    for (haves, expected) in [
        (vec![young, old], vec![young]),
        (vec![young, young], vec![young]),
        // git looks no further than parents.
        (vec![young, oldest], vec![young, oldest]),
        (vec![young, old, oldest], vec![young]),
        (vec![old, young], vec![old, young]),
        (vec![tree, tree], vec![tree, tree]),
    ] {
        let query = FetchQuery { done: false, wait_for_done: true, ..done(&[tip], &haves) };
        let found = case.open().fetch(&query, &FetchLimits::default()).unwrap();
        assert_eq!(found, Fetched::Acknowledged(expected), "{haves:?}");
    }
}

#[test]
fn a_tag_that_the_client_has_does_not_end_the_negotiation() {
    let case = Case::new("sha1");
    let commits = case.import(&line_of_commits(&["", ""]));
    case.repo.git(&["tag", "-a", "-m", "old", "old", &commits[0].to_string()]);
    let tag = case.oid("old");
    let query = FetchQuery { done: false, ..done(&commits[1..], &[tag]) };
    let found = case.open().fetch(&query, &FetchLimits::default()).unwrap();
    assert_eq!(found, Fetched::Acknowledged(vec![tag]));
}

#[test]
fn a_client_with_everything_gets_an_empty_pack() {
    let case = Case::new("sha256");
    let commits = case.import(&line_of_commits(&["", "M 100644 inline a\ndata 1\n1"]));
    assert_eq!(case.pack(&done(&commits[..1], &commits[1..])), BTreeSet::new());
}

#[test]
fn each_limit_hands_the_fetch_on() {
    let case = Case::new("sha1");
    let long = "x".repeat(5_000);
    let blob = format!("M 100644 inline a\ndata 5000\n{long}");
    let commits = case.import(&line_of_commits(&[&blob, "M 100644 inline b\ndata 1\n1", "D b"]));
    let unlimited = FetchLimits::default();
    for (limits, expected) in [
        (FetchLimits { max_walked: 2, ..unlimited }, Some("too many commits to look at")),
        (FetchLimits { max_walked: 3, ..unlimited }, None),
        (FetchLimits { max_commits: 2, ..unlimited }, Some("too many commits to send")),
        (FetchLimits { max_commits: 3, ..unlimited }, None),
        // Three commits, two trees, since the last is the first's, and two blobs.
        (FetchLimits { max_objects: 6, ..unlimited }, Some("too many objects to send")),
        (FetchLimits { max_objects: 7, ..unlimited }, None),
        (FetchLimits { max_bytes: 5_000, ..unlimited }, Some("too many bytes to send")),
        (FetchLimits { max_bytes: 7_000, ..unlimited }, None),
        (FetchLimits { max_read: 500, ..unlimited }, Some("too many bytes to look at")),
        (FetchLimits { max_read: 2_000, ..unlimited }, None),
    ] {
        let found = match case.open().fetch(&done(&commits[2..], &[]), &limits) {
            Err(FetchError::TooBig(what)) => Some(what),
            Ok(Fetched::Pack { .. }) => None,
            other => panic!("{limits:?}: {other:?}"),
        };
        assert_eq!(found, expected, "{limits:?}");
    }
}

#[test]
fn trees_that_are_compared_over_and_over_are_paid_for_each_time() {
    let case = Case::new("sha1");
    let files = (0..200).map(|n| format!("M 100644 inline {n}\ndata 0\n\n")).collect::<String>();
    let mut parents = case.import(&line_of_commits(&[&files, "M 100644 inline a\ndata 1\n1"]));
    let other = parents.pop().unwrap();
    let tree = |commit: Oid| case.oid(&format!("{commit}^{{tree}}")).to_string();
    // An octopus of commits that share one tree, merged into another.
    let alone = |n: usize| {
        case.repo.git(&["commit-tree", &tree(other), "-m", &n.to_string()]).parse().unwrap()
    };
    let many = (0..8).map(alone).collect::<Vec<Oid>>();
    let mut args =
        vec!["commit-tree".to_owned(), tree(parents[0]), "-m".to_owned(), "all".to_owned()];
    args.extend(many.iter().flat_map(|parent| ["-p".to_owned(), parent.to_string()]));
    let args = args.iter().map(String::as_str).collect::<Vec<_>>();
    let octopus: Oid = case.repo.git(&args).parse().unwrap();
    let limits = FetchLimits { max_read: 30_000, ..FetchLimits::default() };
    let refused = case.open().fetch(&done(&[octopus], &many), &limits);
    assert!(matches!(refused, Err(FetchError::TooBig("too many bytes to look at"))), "{refused:?}");
}

#[test]
fn a_shallow_repository_hands_every_fetch_on() {
    let case = Case::new("sha1");
    let commits = case.import(&line_of_commits(&["", ""]));
    let shallow: PathBuf = case.repo.path.join("shallow");
    std::fs::write(shallow, format!("{}\n", commits[1])).unwrap();
    let refused = case.open().fetch(&done(&commits[1..], &[]), &FetchLimits::default());
    assert!(matches!(refused, Err(FetchError::TooBig(_))), "{refused:?}");
}
