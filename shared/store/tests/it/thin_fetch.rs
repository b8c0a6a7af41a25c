//! What a small fetch takes on the wire: deltas, against what is sent before and against what the client has.

use std::fmt::Write as _;

use fastrand::Rng;
use zit_model::Oid;
use zit_store::{Access, FetchLimits, FetchQuery, Fetched, Store};

use crate::support::Repo;

/// Lines of one file.
const N_LINES: usize = 400;

fn new_repo(format: &str) -> Repo {
    let repo = Repo::new();
    std::fs::remove_dir_all(&repo.path).unwrap();
    let format = format!("--object-format={format}");
    repo.git(&["init", "-q", "--bare", &format, repo.path.to_str().unwrap()]);
    repo
}

fn pack(repo: &Repo, want: Oid, haves: &[Oid], thin_pack: bool) -> Vec<u8> {
    let store = Store::open(&repo.path, Access::ReadOnly).unwrap();
    let (wants, haves) = (vec![want], haves.to_vec());
    let query = FetchQuery { wants, haves, done: true, thin_pack, ..FetchQuery::default() };
    match store.fetch(&query, &FetchLimits::default()) {
        Ok(Fetched::Pack { pack, .. }) => pack,
        other => panic!("{query:?}: {other:?}"),
    }
}

/// What git sends in its place.
fn pack_of_git(repo: &Repo, want: Oid, have: Oid) -> Vec<u8> {
    let revs = format!("{want}\n^{have}\n");
    let args = ["pack-objects", "--thin", "--delta-base-offset", "--revs", "--stdout", "-q"];
    let output = repo.try_git(&args, revs.as_bytes());
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// A repository that has `have` with all it reaches, and takes a pack for `want`.
fn receive(from: &Repo, format: &str, have: Oid, want: Oid, pack: &[u8]) {
    let receiver = new_repo(format);
    let url = from.path.to_str().unwrap();
    receiver.git(&["fetch", "-q", "--no-tags", url, &format!("{have}:refs/heads/have")]);
    receiver.git_with(&["index-pack", "--stdin", "--fix-thin", "--strict"], pack);
    receiver.git(&["update-ref", "refs/heads/want", &want.to_string()]);
    receiver.git(&["fsck", "--strict", "--connectivity-only", "--no-dangling"]);
}

fn import(repo: &Repo, stream: &str) -> Vec<Oid> {
    repo.git_with(&["fast-import", "--quiet", "--force"], stream.as_bytes());
    let n_commits = stream.lines().filter(|line| line.starts_with("commit ")).count();
    let commit = |n| repo.git(&["rev-parse", &format!("refs/heads/b{n}")]).parse().unwrap();
    (1..=n_commits).map(commit).collect()
}

fn begin_commit(n: usize, parents: &[usize], stream: &mut String) {
    let date = 1_700_000_000 + n * 60;
    let _ = writeln!(stream, "commit refs/heads/b{n}\nmark :{n}");
    let _ = writeln!(stream, "committer A <a@example.org> {date} +0000\ndata 0");
    for (at, parent) in parents.iter().enumerate() {
        let _ = writeln!(stream, "{} :{parent}", if at == 0 { "from" } else { "merge" });
    }
}

fn write_file(path: &str, lines: &[String], stream: &mut String) {
    let text = lines.concat();
    let _ = writeln!(stream, "M 100644 inline {path}\ndata {}\n{text}", text.len());
}

fn lines(random: &mut Rng, n: usize) -> Vec<String> {
    (0..n).map(|line| format!("line {line} is {:016x}\n", random.u64(..))).collect()
}

#[test]
fn a_client_makes_the_objects_that_git_would_send_of_deltas_against_what_it_has() {
    for (format, seeds) in [("sha1", 0..4), ("sha256", 4..5)] {
        for seed in seeds {
            let mut random = Rng::with_seed(seed);
            let mut stream = String::new();
            let mut files = (0..6).map(|_| lines(&mut random, N_LINES)).collect::<Vec<_>>();
            for n in 1..=12 {
                let merged = (n > 3 && random.u8(..4) == 0).then(|| n - 2);
                let parents = (n > 1).then(|| n - 1).into_iter().chain(merged).collect::<Vec<_>>();
                begin_commit(n, &parents, &mut stream);
                for (at, file) in files.iter_mut().enumerate() {
                    if n == 1 || random.u8(..3) == 0 {
                        let line = random.usize(..file.len());
                        file[line] = format!("changed in {n}\n");
                        write_file(&format!("d{}/f{at}.txt", at % 2), file, &mut stream);
                    }
                }
            }
            let repo = new_repo(format);
            let commits = import(&repo, &stream);
            for round in 0..3 {
                let want = commits[random.usize(6..12)];
                let have = commits[random.usize(..6)];
                let thin = pack(&repo, want, &[have], true);
                receive(&repo, format, have, want, &thin);
                let whole = pack(&repo, want, &[have], false);
                receive(&repo, format, have, want, &whole);
                let of_git = pack_of_git(&repo, want, have).len();
                let n = thin.len();
                let name = format!("{format}, seed {seed}, round {round}");
                assert!(n <= whole.len(), "{name}: {n} of {}", whole.len());
                assert!(n <= of_git * 2 + 1000, "{name}: {n} bytes, git sends {of_git}");
            }
        }
    }
}

#[test]
fn one_line_of_a_large_file_takes_few_bytes_however_the_file_is_stored() {
    let mut random = Rng::with_seed(1);
    let mut file = lines(&mut random, 7_000);
    assert!(file.concat().len() > 200_000);
    let mut stream = String::new();
    begin_commit(1, &[], &mut stream);
    write_file("large.txt", &file, &mut stream);
    begin_commit(2, &[1], &mut stream);
    file[3_000] = "another line\n".to_owned();
    write_file("large.txt", &file, &mut stream);
    let repo = new_repo("sha1");
    let [have, want] = import(&repo, &stream)[..] else { panic!("two commits") };
    for stored in ["as they came", "as deltas"] {
        let of_git = pack_of_git(&repo, want, have).len();
        let thin = pack(&repo, want, &[have], true);
        assert!(thin.len() < 5_000, "{stored}: {} bytes, git sends {of_git}", thin.len());
        assert!(thin.len() <= of_git * 3 / 2, "{stored}: {} bytes, git {of_git}", thin.len());
        receive(&repo, "sha1", have, want, &thin);
        let whole = pack(&repo, want, &[have], false);
        assert!(whole.len() > 50_000, "{stored}: no base is sent, and none may be missing");
        receive(&repo, "sha1", have, want, &whole);
        repo.git(&["repack", "-adfq"]);
    }
}
