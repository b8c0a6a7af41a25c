//! A repository in a temporary folder, with stock git beside the store.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use zit_model::{Oid, RefChange, RefName, RefUpdate, UnixSeconds};
use zit_store::journal::{Draft, Origin};
use zit_store::{Access, PrepareError, Quarantine, RefusedUpdate, Signature, Store};

pub(crate) struct Repo {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) fn name(name: &str) -> RefName {
    RefName::new(name).unwrap()
}

pub(crate) fn create(to: &str, new: Oid) -> RefUpdate {
    RefUpdate { name: name(to), change: RefChange::Create { new } }
}

pub(crate) fn moved(to: &str, old: Oid, new: Oid) -> RefUpdate {
    RefUpdate { name: name(to), change: RefChange::Move { old, new } }
}

pub(crate) fn delete(what: &str, old: Oid) -> RefUpdate {
    RefUpdate { name: name(what), change: RefChange::Delete { old } }
}

/// Git with an environment that depends on nothing.
pub(crate) fn git_command(git_dir: &Path) -> Command {
    #[allow(clippy::disallowed_methods, reason = "git is the oracle")]
    let mut command = Command::new("git");
    command
        .env("GIT_DIR", git_dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("LC_ALL", "C");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "A U Thor");
        command.env(format!("GIT_{role}_EMAIL"), "a@example.org");
        command.env(format!("GIT_{role}_DATE"), "1700000000 +0000");
    }
    command
}

pub(crate) fn run(mut command: Command, stdin: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that does not read is judged by its output.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

impl Repo {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.git");
        Store::init(&path).unwrap();
        Self { folder, path }
    }

    /// As [`Repo::new`], with refs in a reftable.
    pub(crate) fn reftable() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.git");
        let repo = Self { folder, path };
        repo.git(&["init", "--quiet", "--bare", "--ref-format=reftable", "--initial-branch=main"]);
        repo.git(&["config", "transfer.fsckObjects", "true"]);
        repo
    }

    /// A repository without the store's own configuration, for git alone.
    pub(crate) fn referee(&self) -> Store {
        Store::open(&self.path, Access::Referee).unwrap()
    }

    pub(crate) fn try_git(&self, args: &[&str], stdin: &[u8]) -> Output {
        let mut command = git_command(&self.path);
        command.args(args);
        run(command, stdin)
    }

    #[track_caller]
    pub(crate) fn git_with(&self, args: &[&str], stdin: &[u8]) -> String {
        let output = self.try_git(args, stdin);
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_with(args, b"")
    }

    pub(crate) fn blob(&self, content: &str) -> Oid {
        self.git_with(&["hash-object", "-w", "--stdin"], content.as_bytes()).parse().unwrap()
    }

    /// A tree of files.
    pub(crate) fn tree(&self, files: &[(&str, &str)]) -> Oid {
        let line =
            |(path, content): &(&str, &str)| format!("100644 {}\t{path}\n", self.blob(content));
        self.tree_of(&files.iter().map(line).collect::<String>())
    }

    /// A tree of lines `mode oid TAB path`.
    pub(crate) fn tree_of(&self, lines: &str) -> Oid {
        let index = self.folder.path().join("index");
        let indexed = |args: &[&str], stdin: &str| {
            let mut command = git_command(&self.path);
            command.env("GIT_INDEX_FILE", &index).args(args);
            let output = run(command, stdin.as_bytes());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        let _ = std::fs::remove_file(&index);
        indexed(&["update-index", "--add", "--index-info"], lines);
        indexed(&["write-tree"], "").trim().parse().unwrap()
    }

    pub(crate) fn commit(&self, files: &[(&str, &str)], parents: &[Oid], message: &str) -> Oid {
        let tree = self.tree(files).to_string();
        let mut args = vec!["commit-tree".to_owned(), tree, "-m".to_owned(), message.to_owned()];
        for parent in parents {
            args.extend(["-p".to_owned(), parent.to_string()]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        self.git(&args).parse().unwrap()
    }

    /// Commits that are all different and share the empty tree.
    pub(crate) fn commits<const N: usize>(&self) -> [Oid; N] {
        std::array::from_fn(|i| self.commit(&[], &[], &format!("commit {i}")))
    }

    /// Every ref, as git sees it.
    pub(crate) fn git_refs(&self) -> BTreeMap<String, String> {
        let listed = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let pairs = listed.lines().filter_map(|line| line.split_once(' '));
        pairs.map(|(name, oid)| (name.to_owned(), oid.to_owned())).collect()
    }

    /// Every ref, as the store sees it.
    pub(crate) fn store_refs(store: &Store) -> BTreeMap<String, String> {
        let refs = store.refs().unwrap();
        refs.into_iter().map(|found| (found.name.to_string(), found.oid.to_string())).collect()
    }

    /// Every file below the repository, sorted, without the journal and what belongs to it.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let mut folders = vec![self.path.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with("zit/journal") || path.ends_with("zit/settled") {
                    continue;
                }
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        files
    }
}

pub(crate) fn commit(
    store: &Store,
    updates: &[RefUpdate],
) -> Result<(), Vec<(usize, RefusedUpdate)>> {
    match store.prepare(updates) {
        Ok(prepared) => {
            prepared.commit(draft(), Vec::new()).unwrap();
            store.settle().unwrap();
            Ok(())
        }
        Err(PrepareError::Refused(refused)) => Err(refused.0),
        Err(PrepareError::Store(error)) => panic!("{error}"),
    }
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

/// What the journal says of a test's transaction.
pub(crate) fn draft() -> Draft {
    Draft::new(1_700_000_000_000, "somebody", Origin::Push)
}

/// Lets the repository have the objects of a quarantine, in files.
pub(crate) fn keep(store: &Store, quarantine: Quarantine) {
    store.prepare(&[]).unwrap().commit(draft(), vec![quarantine]).unwrap();
    store.settle().unwrap();
}

/// A document in a quarantine of its own.
pub(crate) fn document(store: &Store, text: &str) -> (Oid, Quarantine) {
    let mut made = store.quarantine().unwrap();
    let oid = made.write_document_commit("f", text.as_bytes(), &[], "m\n", &somebody()).unwrap();
    (oid, made)
}

/// Journals a ref that names a document of its own, and leaves the files behind where the ref is deferred.
pub(crate) fn write_document(store: &Store, refname: &str) -> Oid {
    let (oid, made) = document(store, refname);
    let update = [create(refname, oid)];
    let prepared = store.prepare_seeing(&update, &[&made.objects()]).unwrap();
    prepared.commit(draft(), vec![made]).unwrap();
    oid
}

/// The machine has started again since the mark was written.
pub(crate) fn reboot(repo: &Repo) {
    std::fs::write(repo.path.join("zit/settled"), "another-boot 100000\n").unwrap();
}

pub(crate) fn somebody() -> Signature {
    Signature {
        name: "A U Thor".into(),
        email: "a@example.org".into(),
        time: UnixSeconds(1_700_000_000),
        offset_minutes: 0,
    }
}

impl Repo {
    /// A pack of what `revs` says, in the form of `git rev-list`.
    pub(crate) fn pack(&self, revs: &str, thin: bool) -> Vec<u8> {
        let mut args = vec!["pack-objects", "--revs", "--stdout", "-q"];
        args.extend(thin.then_some("--thin"));
        let output = self.try_git(&args, revs.as_bytes());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// The bytes of one object, which must not be a blob past what a test holds.
    pub(crate) fn cat(&self, kind: &str, oid: Oid) -> Vec<u8> {
        self.try_git(&["cat-file", kind, &oid.to_string()], b"").stdout
    }
}

impl Repo {
    /// Writes an object that git would refuse to write by itself.
    pub(crate) fn git_hash_literally(&self, kind: &str, content: &[u8]) -> Oid {
        self.git_with(&["hash-object", "--literally", "-w", "-t", kind, "--stdin"], content)
            .parse()
            .unwrap()
    }

    /// A pack of exactly these objects.
    pub(crate) fn pack_of(&self, oids: &[Oid]) -> Vec<u8> {
        let lines: String = oids.iter().map(|oid| format!("{oid}\n")).collect();
        self.try_git(&["pack-objects", "--stdout", "-q"], lines.as_bytes()).stdout
    }
}

/// Waits until the program that outlives whoever started it has committed or given up, and removed its lock.
pub(crate) fn wait_until_gone(lock: &std::path::Path) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while lock.exists() {
        assert!(std::time::Instant::now() < deadline, "{} stays", lock.display());
        std::thread::yield_now();
    }
}
