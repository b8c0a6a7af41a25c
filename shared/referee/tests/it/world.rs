//! [`World`]: one repository with its referee, a clock that stands still, and stock git beside it.
//!
//! Objects are written by stock git without any ref, so a push finds them there and brings an empty pack.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use zit_model::{AgentId, Oid, Principal, PrincipalKind, Resource, refs};
use zit_referee::{Caller, Clock, Door, ManualClock, PushAnswer, Repository};
use zit_store::{PackLimits, Store};
use zit_wire::receive::{self, ClientCapabilities, PushRequest};
use zit_wire::report::CommandReport;

/// A pack of no objects: header, and the SHA-1 of the header.
pub(crate) const EMPTY_PACK: &[u8] = b"PACK\0\0\0\x02\0\0\0\0\
    \x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e";

/// Stands for the text of a file that a commit takes away.
pub(crate) const GONE: &str = "\0gone";

/// How long a claim lives where `zit.toml` says nothing.
pub(crate) const LEASE: Duration = Duration::from_mins(10);

/// A file of two functions and a type with two methods.
pub(crate) fn source(one: &str, two: &str) -> String {
    format!(
        "pub fn one() -> u32 {{\n    {one}\n}}\n\n\
         pub fn two() -> u32 {{\n    {two}\n}}\n\n\
         pub struct T;\n\nimpl T {{\n    pub fn m(&self) {{}}\n\n    pub fn n(&self) {{}}\n}}\n"
    )
}

pub(crate) fn resource(text: &str) -> Resource {
    text.parse().unwrap()
}

/// One command of a push: name, old value, new value.
pub(crate) type Sent = (String, Option<Oid>, Option<Oid>);

/// A request in the form that carries no object.
pub(crate) fn ask(name: &str) -> Sent {
    (name.to_owned(), None, None)
}

pub(crate) fn claim(text: &str) -> Sent {
    ask(&format!("refs/zit/claim/{}", resource(text).encode()))
}

pub(crate) fn release(text: &str) -> Sent {
    ask(&format!("refs/zit/release/{}", resource(text).encode()))
}

pub(crate) fn tell() -> Sent {
    ask("refs/zit/tell")
}

pub(crate) fn create(name: &str, new: Oid) -> Sent {
    (name.to_owned(), None, Some(new))
}

pub(crate) fn moved(name: &str, old: Oid, new: Oid) -> Sent {
    (name.to_owned(), Some(old), Some(new))
}

pub(crate) fn delete(name: &str, old: Oid) -> Sent {
    (name.to_owned(), Some(old), None)
}

pub(crate) fn accept(commit: Oid) -> Sent {
    create("refs/for/main", commit)
}

pub(crate) fn change_ref(commit: Oid) -> String {
    refs::change(commit).to_string()
}

pub(crate) fn claim_ref(text: &str) -> String {
    refs::claim(&resource(text).key()).to_string()
}

pub(crate) fn wip_ref(agent: &str, item: &str) -> String {
    format!("refs/zit/wip/{agent}/{item}")
}

/// A caller of an open server that says which agent it is; none for an empty name.
pub(crate) fn seat(agent: &str) -> Caller {
    let header = (!agent.is_empty()).then(|| AgentId::new(agent).unwrap());
    Caller { header, ..Caller::anyone() }
}

/// A caller whose credential was checked.
pub(crate) fn principal(name: &str, agent: Option<&str>) -> Caller {
    Caller {
        principal: Principal { name: name.into(), kind: PrincipalKind::Human },
        door: Door::Credential,
        header: agent.map(|agent| AgentId::new(agent).unwrap()),
        seat: None,
        only: None,
        item: None,
        nonce: None,
        address: None,
        namespace: None,
        account: None,
    }
}

/// One repository and its referee.
pub(crate) struct World {
    /// Where the repository lies; removed with the world.
    _folder: TempDir,
    pub(crate) path: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
    repository: Option<Repository>,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) reports: Vec<CommandReport>,
}

impl World {
    /// An empty repository.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.git");
        Store::init(&path).unwrap();
        let clock = Arc::new(ManualClock::default());
        let mut world = Self { _folder: folder, path, clock, repository: None };
        world.reopen();
        world
    }

    /// A repository with one commit on main: `src/a.rs` as [`source`], `src/b.rs`, which calls `one`, and prose.
    pub(crate) fn new() -> (Self, Oid) {
        Self::settled("")
    }

    /// As [`World::new`], with a `zit.toml`.
    pub(crate) fn settled(settings: &str) -> (Self, Oid) {
        let world = Self::empty();
        let a = source("1", "2");
        let b = "pub fn three() -> u32 {\n    3\n}\n";
        let base = world.commit(
            None,
            &[
                ("src/a.rs", &a),
                ("src/b.rs", b),
                ("notes.txt", "a\nb\nc\n"),
                ("zit.toml", settings),
            ],
        );
        world.push("", &[create("refs/heads/main", base)], &[]).ok();
        (world, base)
    }

    /// Ends the referee, if there is one, and starts another.
    pub(crate) fn reopen(&mut self) {
        self.repository = None;
        self.repository = Some(self.open());
    }

    /// Ends the referee while `then` runs.
    pub(crate) fn closed(&mut self, then: impl FnOnce(&Self)) {
        self.repository = None;
        then(self);
        self.repository = Some(self.open());
    }

    fn open(&self) -> Repository {
        Repository::open(&self.path, Arc::clone(&self.clock) as Arc<dyn Clock>).unwrap()
    }

    pub(crate) fn repository(&self) -> &Repository {
        self.repository.as_ref().unwrap()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Pushes as `agent` through an open door.
    pub(crate) fn push(&self, agent: &str, commands: &[Sent], options: &[&str]) -> Answer {
        self.push_by(&seat(agent), commands, options)
    }

    pub(crate) fn push_by(&self, caller: &Caller, commands: &[Sent], options: &[&str]) -> Answer {
        self.push_with(caller, commands, options, false)
    }

    pub(crate) fn push_atomic(&self, agent: &str, commands: &[Sent], options: &[&str]) -> Answer {
        self.push_with(&seat(agent), commands, options, true)
    }

    fn push_with(
        &self,
        caller: &Caller,
        commands: &[Sent],
        options: &[&str],
        atomic: bool,
    ) -> Answer {
        let commands = commands
            .iter()
            .map(|(name, old, new)| receive::Command {
                name: name.as_str().into(),
                old: *old,
                new: *new,
            })
            .collect();
        let request = PushRequest {
            cert: None,
            commands,
            capabilities: ClientCapabilities { atomic, ..ClientCapabilities::default() },
            options: options.iter().map(|&option| option.into()).collect(),
            shallow: Vec::new(),
        };
        let limits = PackLimits { max_objects: 10, max_bytes: 1 << 20 };
        let answer = self.repository().push(caller, &request, &mut &EMPTY_PACK[..], &limits);
        let PushAnswer { unpack, reports, text, .. } = answer;
        assert_eq!(unpack, Ok(()), "{text}");
        assert_eq!(reports.len(), request.commands.len());
        Answer { text, reports }
    }

    /// Writes a commit by Ada that changes `files` of its parent, or takes away those that are [`GONE`]. No ref names it.
    pub(crate) fn commit(&self, parent: Option<Oid>, files: &[(&str, &str)]) -> Oid {
        self.commit_by("Ada", "work", parent, files)
    }

    pub(crate) fn commit_by(
        &self,
        author: &str,
        message: &str,
        parent: Option<Oid>,
        files: &[(&str, &str)],
    ) -> Oid {
        let from = parent.map_or_else(String::new, |parent| format!("from {parent}\n"));
        let mut stream = format!(
            "commit refs/fixture/new\nmark :1\nauthor {author} <a@x> 1700000000 +0000\n\
             committer {author} <a@x> 1700000000 +0000\ndata {}\n{message}\n{from}",
            message.len()
        );
        for (path, text) in files {
            let path = path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            if *text == GONE {
                stream.push_str(&format!("D \"{path}\"\n"));
                continue;
            }
            stream.push_str(&format!("M 100644 inline \"{path}\"\ndata {}\n{text}\n", text.len()));
        }
        // The ref is taken back before it is ever written.
        let zero = "0".repeat(40);
        stream.push_str(&format!("get-mark :1\nreset refs/fixture/new\nfrom {zero}\n"));
        let oid = git(&self.path, &["fast-import", "--quiet", "--force"], stream.as_bytes());
        oid.trim().parse().unwrap()
    }

    /// Stock git in the repository, once its files show everything.
    pub(crate) fn git(&self, words: &[&str]) -> String {
        self.git_reading(words, "")
    }

    pub(crate) fn git_reading(&self, words: &[&str], input: &str) -> String {
        if let Some(repository) = &self.repository {
            repository.settle().unwrap();
        }
        git(&self.path, words, input.as_bytes())
    }

    /// Every ref and its value, as stock git sees them.
    pub(crate) fn refs(&self) -> BTreeMap<String, Oid> {
        let listed = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let pairs = listed.lines().map(|line| line.split_once(' ').unwrap());
        pairs.map(|(name, oid)| (name.to_owned(), oid.parse().unwrap())).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Oid> {
        self.refs().get(name).copied()
    }

    /// Where mainline and current stand, which is one place.
    #[track_caller]
    pub(crate) fn current(&self) -> Oid {
        let refs = self.refs();
        assert_eq!(refs.get("refs/heads/main"), refs.get("refs/zit/current"));
        refs["refs/zit/current"]
    }

    /// The document of a claim.
    pub(crate) fn claim_document(&self, text: &str) -> Value {
        let json = self.git(&["show", &format!("{}:claim.json", claim_ref(text))]);
        serde_json::from_str(&json).unwrap()
    }

    /// What the referee answers to `zit.status`.
    pub(crate) fn status(&self) -> Value {
        let answer = self.push("watcher", &[tell()], &["zit.status", "zit.format=json"]);
        answer.json()["data"]["status"].clone()
    }

    /// The refs of open items, in order.
    pub(crate) fn items(&self) -> Vec<String> {
        let status = self.status();
        let items = status["items"].as_array().unwrap().iter();
        items.map(|item| item["ref"].as_str().unwrap().to_owned()).collect()
    }

    /// The live claims as `agent resource`, in order.
    pub(crate) fn claims(&self) -> Vec<String> {
        let status = self.status();
        let word = |claim: &Value, key: &str| claim[key].as_str().unwrap().to_owned();
        let claims = status["claims"].as_array().unwrap().iter();
        claims.map(|c| format!("{} {}", word(c, "agent"), word(c, "resource"))).collect()
    }

    /// Every file of the repository but the journal, once they show everything.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.ends_with("zit/journal") || path.ends_with("zit/settled") {
                    continue;
                }
                if path.is_dir() {
                    walk(&path, found);
                }
                found.push(path);
            }
        }
        let mut found = Vec::new();
        if let Some(repository) = &self.repository {
            repository.settle().unwrap();
        }
        walk(&self.path, &mut found);
        found.sort();
        found
    }
}

impl Answer {
    /// Every command is done.
    #[track_caller]
    pub(crate) fn ok(&self) -> &Self {
        for report in &self.reports {
            assert!(report.result.is_ok(), "{report:?}\n{}", self.text);
        }
        self
    }

    /// Every command is refused, the first with a reason that holds `part`.
    #[track_caller]
    pub(crate) fn refused(&self, part: &str) -> &Self {
        for report in &self.reports {
            assert!(report.result.is_err(), "{report:?}\n{}", self.text);
        }
        let reason = self.reason(0);
        assert!(reason.contains(part), "{reason:?} lacks {part:?}\n{}", self.text);
        assert!(reason.len() <= 120, "{reason:?} is long");
        self
    }

    /// Why the command at `index` is refused.
    #[track_caller]
    pub(crate) fn reason(&self, index: usize) -> &str {
        self.reports[index].result.as_ref().expect_err("the command was refused")
    }

    #[track_caller]
    pub(crate) fn says(&self, part: &str) -> &Self {
        assert!(self.text.contains(part), "lacks {part:?}:\n{}", self.text);
        self
    }

    #[track_caller]
    pub(crate) fn keeps_silent_about(&self, part: &str) -> &Self {
        assert!(!self.text.contains(part), "has {part:?}:\n{}", self.text);
        self
    }

    /// How the first command's refs really moved, as `ref old new`.
    pub(crate) fn rewritten(&self) -> Vec<String> {
        let oid = |oid: Option<Oid>| oid.map_or_else(|| "none".into(), |oid| oid.to_string());
        let name = |name: Option<&zit_model::RefName>| {
            name.map_or_else(|| "-".into(), ToString::to_string)
        };
        let moved = self.reports[0].result.as_ref().unwrap().iter();
        moved
            .map(|m| format!("{} {} {}", name(m.refname.as_ref()), oid(m.old), oid(m.new)))
            .collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// The commands it offers.
    pub(crate) fn offers(&self) -> Vec<String> {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("- git "));
        lines.map(|line| format!("git {}", line.split("   # ").next().unwrap())).collect()
    }
}

#[allow(clippy::disallowed_methods, reason = "stock git beside the referee")]
fn git(path: &Path, words: &[&str], input: &[u8]) -> String {
    let mut child = Command::new("git")
        .arg("--git-dir")
        .arg(path)
        .args(words)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}
