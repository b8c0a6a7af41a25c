//! Connectivity: against git on random histories with objects taken out, and by name where it is easy to be wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use fastrand::Rng;
use zit_model::Oid;
use zit_store::{Connected, Kind, Store};

use crate::support::{Repo, commit, create};

const N_HISTORIES: u64 = 24;
const CASES_EACH: usize = 12;

/// Objects as files of a repository, and what each names.
struct Graph {
    repo: Repo,
    objects: BTreeMap<Oid, (Kind, Vec<u8>, Vec<Oid>)>,
    commits: Vec<Oid>,
    others: Vec<Oid>,
}

impl Graph {
    fn random(rng: &mut Rng) -> Self {
        let repo = Repo::new();
        let mut graph =
            Self { repo, objects: BTreeMap::new(), commits: Vec::new(), others: Vec::new() };
        let mut states: Vec<BTreeMap<String, u32>> = Vec::new();
        for n in 0..rng.usize(4..20) {
            let parents = random_parents(rng, n);
            let mut state = parents.first().map(|p| states[*p].clone()).unwrap_or_default();
            for _ in 0..rng.usize(0..4) {
                let path = format!("{}/{}/{}", rng.u8(0..3), rng.u8(0..3), rng.u8(0..3));
                let path = path.get(rng.usize(0..3) * 2..).unwrap().to_owned();
                let clash = |other: &String| other.starts_with(&path) || path.starts_with(other);
                state.retain(|other, _| !clash(other));
                if rng.u8(0..5) > 0 {
                    state.insert(path, rng.u32(0..9));
                }
            }
            graph.add_commit(rng, &state, &parents);
            states.push(state);
        }
        for kind in ["commit", "tree"] {
            let of = graph.any_of(rng, kind == "commit");
            let text = format!("object {of}\ntype {kind}\ntag t\ntagger A <a@b> 1 +0000\n\nt\n");
            let tag = graph.put(Kind::Tag, text.into_bytes(), vec![of]);
            graph.others.extend([tag, of]);
        }
        graph
    }

    fn any_of(&self, rng: &mut Rng, commits: bool) -> Oid {
        if commits {
            return *rng.choice(&self.commits).unwrap();
        }
        let trees = self.objects.iter().filter(|(_, (kind, ..))| *kind == Kind::Tree);
        *rng.choice(trees.collect::<Vec<_>>()).unwrap().0
    }

    fn add_commit(&mut self, rng: &mut Rng, state: &BTreeMap<String, u32>, parents: &[usize]) {
        let tree = self.tree(state);
        let mut text = format!("tree {tree}\n");
        let mut names = vec![tree];
        for parent in parents {
            text.push_str(&format!("parent {}\n", self.commits[*parent]));
            names.push(self.commits[*parent]);
        }
        // Clocks are wrong now and then.
        let n = self.commits.len();
        let date = if rng.u8(0..6) == 0 { rng.usize(0..5000) } else { 1000 + n * 60 };
        text.push_str(&format!(
            "author A <a@b> {date} +0000\ncommitter A <a@b> {date} +0000\n\n{n}\n"
        ));
        let oid = self.put(Kind::Commit, text.into_bytes(), names);
        self.commits.push(oid);
    }

    fn tree(&mut self, state: &BTreeMap<String, u32>) -> Oid {
        let mut folders: BTreeMap<&str, BTreeMap<String, u32>> = BTreeMap::new();
        let mut data = Vec::new();
        let mut names = Vec::new();
        for (path, version) in state {
            if let Some((folder, rest)) = path.split_once('/') {
                folders.entry(folder).or_default().insert(rest.to_owned(), *version);
            }
        }
        let mut entries = Vec::new();
        for (name, version) in state.iter().filter(|(path, _)| !path.contains('/')) {
            let blob = self.put(Kind::Blob, format!("{version}\n").into_bytes(), Vec::new());
            entries.push((name.clone(), "100644", blob));
        }
        for (name, state) in folders {
            entries.push((name.to_owned(), "40000", self.tree(&state)));
        }
        entries.sort();
        for (name, mode, oid) in entries {
            data.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            data.extend_from_slice(oid.as_bytes());
            names.push(oid);
        }
        self.put(Kind::Tree, data, names)
    }

    fn put(&mut self, kind: Kind, data: Vec<u8>, names: Vec<Oid>) -> Oid {
        let id = gix_object::compute_hash(gix_hash::Kind::Sha1, kind, &data).unwrap();
        let oid = Oid::from_gix(id).unwrap();
        self.objects.insert(oid, (kind, data, names));
        self.write(oid);
        oid
    }

    fn file(&self, oid: Oid) -> PathBuf {
        let hex = oid.to_string();
        self.repo.path.join("objects").join(&hex[..2]).join(&hex[2..])
    }

    fn write(&self, oid: Oid) {
        let (kind, data, _) = &self.objects[&oid];
        let file = self.file(oid);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let file = fs::File::create(file).unwrap();
        let mut encoder = flate2::write::ZlibEncoder::new(file, flate2::Compression::fast());
        encoder.write_all(&gix_object::encode::loose_header(*kind, data.len() as u64)).unwrap();
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap();
    }

    fn remove(&self, oids: &[Oid]) {
        for oid in oids {
            fs::remove_file(self.file(*oid)).unwrap();
        }
    }

    fn reached(&self, from: &[Oid]) -> BTreeSet<Oid> {
        let mut reached = BTreeSet::new();
        let mut stack = from.to_vec();
        while let Some(oid) = stack.pop() {
            if reached.insert(oid) {
                stack.extend(&self.objects[&oid].2);
            }
        }
        reached
    }

    /// Writes refs without asking anybody.
    fn set_refs(&self, tips: &[Oid]) {
        let heads = self.repo.path.join("refs/heads");
        fs::remove_dir_all(&heads).unwrap();
        fs::create_dir_all(&heads).unwrap();
        let _ = fs::remove_dir_all(self.repo.path.join("refs/tags"));
        fs::create_dir_all(self.repo.path.join("refs/tags")).unwrap();
        for (n, tip) in tips.iter().enumerate() {
            let folder = if self.commits.contains(tip) { "heads" } else { "tags" };
            let path = self.repo.path.join(format!("refs/{folder}/r{n}"));
            fs::write(path, format!("{tip}\n")).unwrap();
        }
    }
}

fn random_parents(rng: &mut Rng, n: usize) -> Vec<usize> {
    let count = if n == 0 { 0 } else { [0, 1, 1, 1, 1, 1, 2, 2, 3][rng.usize(0..9)] };
    // Mostly young ones, as in a history that people made.
    let mut parents = Vec::new();
    for _ in 0..count {
        let back = if rng.bool() { rng.usize(0..n.min(3)) } else { rng.usize(0..n) };
        if !parents.contains(&(n - 1 - back)) {
            parents.push(n - 1 - back);
        }
    }
    parents
}

fn git_says(repo: &Repo, tips: &[Oid]) -> bool {
    let lines: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
    let args = ["rev-list", "--objects", "--stdin", "--quiet", "--not", "--all"];
    repo.try_git(&args, lines.as_bytes()).status.success()
}

#[test]
fn what_is_whole_and_what_is_not_is_what_git_says() {
    let mut counts = [0; 2];
    for seed in 0..N_HISTORIES {
        let mut rng = Rng::with_seed(seed);
        let graph = Graph::random(&mut rng);
        for case in 0..CASES_EACH {
            let whole = one_case(&graph, &mut rng, &format!("history {seed}, case {case}"));
            counts[usize::from(whole)] += 1;
        }
    }
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}

/// Some refs, some of what they do not reach taken out, some of the rest in a quarantine; then some tips.
fn one_case(graph: &Graph, rng: &mut Rng, name: &str) -> bool {
    let any = |rng: &mut Rng| {
        let from = if rng.u8(0..8) == 0 { &graph.others } else { &graph.commits };
        *rng.choice(from).unwrap()
    };
    let refs: Vec<Oid> = (0..rng.usize(0..4)).map(|_| any(rng)).collect();
    let tips: Vec<Oid> = (0..rng.usize(1..3)).map(|_| any(rng)).collect();
    graph.set_refs(&refs);
    let kept = graph.reached(&refs);
    let mut free: Vec<Oid> = graph.objects.keys().copied().filter(|o| !kept.contains(o)).collect();
    rng.shuffle(&mut free);
    let gone = free.split_off(free.len() - free.len().min([0, 1, 1, 2, 5][rng.usize(0..5)]));
    let incoming = free.split_off(free.len() - rng.usize(0..=free.len()));
    graph.remove(&gone);
    let expected = git_says(&graph.repo, &tips);
    graph.remove(&incoming);
    let store = graph.repo.referee();
    let mut quarantine = store.quarantine().unwrap();
    for oid in &incoming {
        let (kind, data, _) = &graph.objects[oid];
        assert_eq!(quarantine.write(*kind, data).unwrap(), *oid);
    }
    let found = quarantine.connected(&tips, &store.refs().unwrap());
    assert_eq!(found == Connected::Whole, expected, "{name}: {found:?}");
    assert_ne!(found, Connected::Unsure, "{name}");
    for oid in gone.iter().chain(&incoming) {
        graph.write(*oid);
    }
    expected
}

fn connected(store: &Store, tip: Oid) -> Connected {
    store.quarantine().unwrap().connected(&[tip], &store.refs().unwrap())
}

#[test]
fn that_a_commit_is_here_proves_nothing() {
    let repo = Repo::new();
    let base = repo.commit(&[("a", "1")], &[], "base");
    let lost = repo.commit(&[("a", "2")], &[base], "no ref reaches this one");
    let tip = repo.commit(&[("a", "3")], &[lost], "tip");
    let store = repo.referee();
    commit(&store, &[create("refs/heads/main", base)]).unwrap();
    assert_eq!(connected(&store, tip), Connected::Whole);
    let blob = repo.blob("2");
    let hex = blob.to_string();
    fs::remove_file(repo.path.join("objects").join(&hex[..2]).join(&hex[2..])).unwrap();
    assert_eq!(connected(&store, tip), Connected::Missing(blob));
}

#[test]
fn history_ends_where_a_shallow_repository_ends() {
    let repo = Repo::new();
    let there = Repo::new();
    let cut = there.commit(&[("a", "1")], &[], "not here");
    let base = there.commit(&[("a", "1")], &[cut], "base");
    let tip = there.commit(&[("a", "2")], &[base], "tip");
    let pack = there.pack(&format!("{tip}\n^{cut}\n"), false);
    repo.git_with(&["unpack-objects", "-q"], &pack);
    repo.blob("1");
    repo.tree(&[("a", "1")]);
    let store = repo.referee();
    assert_eq!(connected(&store, tip), Connected::Missing(cut));
    fs::write(repo.path.join("shallow"), format!("{base}\n")).unwrap();
    assert_eq!(connected(&store, tip), Connected::Whole);
}

#[test]
fn a_folder_put_where_a_file_is_expected_is_not_whole() {
    let repo = Repo::new();
    let folder = repo.tree(&[("a", "1")]);
    let mut tree = b"100644 a\0".to_vec();
    tree.extend_from_slice(folder.as_bytes());
    let tree = repo.git_hash_literally("tree", &tree);
    assert_eq!(connected(&repo.referee(), tree), Connected::Missing(folder));
}

#[test]
fn a_folder_that_many_paths_name_is_looked_at_once() {
    let repo = Repo::new();
    let store = repo.referee();
    let mut quarantine = store.quarantine().unwrap();
    // Each folder holds the one before twice: few objects, and many paths.
    let mut tree = quarantine.write_tree(&[("f", b"x")]).unwrap();
    for _ in 0..40 {
        let mut data = Vec::new();
        for name in ["a", "b"] {
            data.extend_from_slice(format!("40000 {name}\0").as_bytes());
            data.extend_from_slice(tree.as_bytes());
        }
        tree = quarantine.write(Kind::Tree, &data).unwrap();
    }
    assert_eq!(quarantine.connected(&[tree], &[]), Connected::Whole);
}
