//! What each row of the table does, as clients of [`crate::load`].
//!
//! Every answer is looked at: a server that refuses, or lists too few refs, ends the run.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::history;
use crate::http::Connection;
use crate::load::{self, Attempt, Client, Sample};
use crate::options::{Row, SideName};
use crate::pkt::{self, Report, ZERO};
use crate::process;
use crate::side::Side;

/// Clients that work at once where a row is not one git client after another.
pub(crate) const N_CLIENTS: usize = 32;

/// How often a repository is cloned at most; each clone is thrown away at once.
const MAX_CLONES: usize = 100;

/// How many claims one push may take.
const MAX_CLAIMS: usize = 64;

const UPLOAD_PACK: &str = "git-upload-pack";
const RECEIVE_PACK: &str = "git-receive-pack";

/// The group of refs that is polled, of [`history::many_refs`].
const PREFIX: &str = "refs/bench/42/";

/// The ref that everybody moves, of [`history::small`].
const HOT: &str = "refs/heads/hot";

/// Makes the repositories that `rows` need: below `templates` what is served, in `client` what is pushed.
///
/// # Errors
/// When git fails.
pub(crate) fn prepare(rows: &[Row], full: bool, templates: &Path, client: &Path) -> Result<()> {
    let needs = |needed: &[Row]| rows.iter().any(|row| needed.contains(row));
    fs::create_dir_all(templates)?;
    if needs(&[Row::Poll]) {
        history::many_refs(&templates.join("refs.git"))?;
    }
    if needs(&[Row::Claim, Row::Move, Row::Fetch]) {
        history::small(&templates.join("small.git"))?;
    }
    if needs(&[Row::Clone]) {
        history::large(&templates.join("large.git"), if full { 300 } else { 30 })?;
    }
    if needs(&[Row::PushFiles, Row::PushCommits]) {
        history::sources(&templates.join("sources.git"))?;
        history::pushes(client)?;
    }
    Ok(())
}

/// Takes `n` claims in the repository that is claimed in, by as many agents as there are clients; of the peer, whose pushes
/// would take hours, makes as many refs and packs them.
///
/// # Errors
/// When the server or git does not do it.
pub(crate) fn take_claims(side: &Side, n: u64) -> Result<()> {
    let folder = side.folder("small.git");
    let main = process::git(&folder, ["rev-parse", "main"])?;
    let names = |prefix: &'static str, suffix: &'static str| {
        (0..n).map(move |n| format!("{prefix}{n:08x}{suffix}"))
    };
    if side.name() == SideName::Peer {
        process::git_fed(&folder, ["update-ref", "--stdin"], |out| {
            names("refs/zit/claims/ffffffff", "")
                .try_for_each(|name| writeln!(out, "create {name} {main}"))
        })?;
        process::git(&folder, ["pack-refs", "--all"])?;
        return Ok(());
    }
    let mut connections = (0..N_CLIENTS)
        .map(|n| Connection::open(side.address(), &side.path(n, "small.git"), RECEIVE_PACK))
        .collect::<Result<Vec<_>>>()?;
    let names = names("refs/zit/claim/src/before/f", ".rs#run").collect::<Vec<_>>();
    for (n, names) in names.chunks(MAX_CLAIMS).enumerate() {
        let connection = connections.get_mut(n % N_CLIENTS).context("a client for each push")?;
        let request = pkt::push_all(&main, names);
        match pkt::report(connection.post(&request)?)? {
            Report::Ok => {}
            Report::Ng(reason) => bail!("claim refused: {reason}"),
        }
    }
    Ok(())
}

/// Measures one row on one side; `client` is what [`prepare`] made.
///
/// # Errors
/// When the server does not do what was asked.
pub(crate) fn measure(row: Row, side: &Side, span: Duration, client: &Path) -> Result<Sample> {
    match row {
        Row::Poll => under_load(side, span, |n| Poll::new(side, n)),
        Row::Claim => {
            let main = process::git(&side.folder("small.git"), ["rev-parse", "main"])?;
            under_load(side, span, |n| Claim::new(side, n, main.clone()))
        }
        Row::Move => {
            let commits = process::git(&side.folder("small.git"), ["rev-list", "main"])?;
            let commits = commits.lines().map(str::to_owned).collect::<Arc<[_]>>();
            under_load(side, span, |n| Move::new(side, n, Arc::clone(&commits)))
        }
        Row::Fetch => {
            let format = ["for-each-ref", "--format=%(objectname)", "refs/heads/small/"];
            let heads = process::git(&side.folder("small.git"), format)?;
            let main = process::git(&side.folder("small.git"), ["rev-parse", "main"])?;
            under_load(side, span, |n| Fetch::new(side, n, &heads, &main))
        }
        Row::Clone => load::by_git(MAX_CLONES, side.group(), span, |_| clone(side, client)),
        Row::PushFiles => {
            let n_max = history::N_SHORT_PUSHES - 1;
            load::by_git(n_max, side.group(), span, |n| {
                push(side, client, &format!("files/{}", n + 1))
            })
        }
        Row::PushCommits => {
            let n_max = history::N_LONG_PUSHES - 1;
            load::by_git(n_max, side.group(), span, |n| {
                push(side, client, &format!("commits/{}", n + 1))
            })
        }
    }
}

fn under_load<C: Client>(
    side: &Side,
    span: Duration,
    client: impl FnMut(usize) -> Result<C>,
) -> Result<Sample> {
    let clients = (0..N_CLIENTS).map(client).collect::<Result<Vec<_>>>()?;
    load::keep_alive(clients, side.group(), span)
}

/// Lists the refs of one prefix.
struct Poll {
    connection: Connection,
    request: Vec<u8>,
}

impl Poll {
    fn new(side: &Side, n: usize) -> Result<Self> {
        let connection = Connection::open(side.address(), &side.path(n, "refs.git"), UPLOAD_PACK)?;
        Ok(Self { connection, request: pkt::ls_refs(PREFIX) })
    }
}

impl Client for Poll {
    fn attempt(&mut self) -> Result<Attempt> {
        let n_refs = pkt::count(self.connection.post(&self.request)?);
        ensure!(n_refs == history::N_REFS / history::N_GROUPS, "{n_refs} refs were listed");
        Ok(Attempt::Done)
    }
}

/// Takes claim after claim, each on something that nobody has; of the peer it asks for a new ref.
struct Claim {
    connection: Connection,
    side: SideName,
    client: usize,
    main: String,
    n_taken: usize,
}

impl Claim {
    fn new(side: &Side, client: usize, main: String) -> Result<Self> {
        let path = side.path(client, "small.git");
        let connection = Connection::open(side.address(), &path, RECEIVE_PACK)?;
        Ok(Self { connection, side: side.name(), client, main, n_taken: 0 })
    }
}

impl Client for Claim {
    fn attempt(&mut self) -> Result<Attempt> {
        self.n_taken += 1;
        let (client, n) = (self.client, self.n_taken);
        let refname = match self.side {
            SideName::Zit => format!("refs/zit/claim/src/c{client}/f{n}.rs#run"),
            SideName::Peer => format!("refs/zit/claims/{client:08x}{n:08x}"),
        };
        match pkt::report(self.connection.post(&pkt::push(ZERO, &self.main, &refname))?)? {
            Report::Ok => Ok(Attempt::Done),
            Report::Ng(reason) => bail!("claim refused: {reason}"),
        }
    }
}

/// Moves a ref that all others move too: reads it, pushes from what it read, and again until its push is the one.
struct Move {
    reading: Connection,
    writing: Connection,
    commits: Arc<[String]>,
    /// What the client itself wrote last, if it has not lost since.
    known: Option<String>,
    random: fastrand::Rng,
}

impl Move {
    fn new(side: &Side, n: usize, commits: Arc<[String]>) -> Result<Self> {
        let path = side.path(n, "small.git");
        let reading = Connection::open(side.address(), &path, UPLOAD_PACK)?;
        let writing = Connection::open(side.address(), &path, RECEIVE_PACK)?;
        let random = fastrand::Rng::with_seed(u64::try_from(n)?);
        Ok(Self { reading, writing, commits, known: None, random })
    }

    fn read(&mut self) -> Result<String> {
        let answer = self.reading.post(&pkt::ls_refs(HOT))?;
        pkt::first_oid(answer).with_context(|| format!("{HOT} is not listed"))
    }
}

impl Client for Move {
    fn attempt(&mut self) -> Result<Attempt> {
        let old = self.known.take().map_or_else(|| self.read(), Ok)?;
        let others = self.commits.iter().filter(|&commit| *commit != old).collect::<Vec<_>>();
        let new = self.random.choice(others).context("one commit to move to")?;
        match pkt::report(self.writing.post(&pkt::push(&old, new, HOT))?)? {
            Report::Ok => {
                self.known = Some(new.clone());
                Ok(Attempt::Done)
            }
            Report::Ng(_) => Ok(Attempt::Lost),
        }
    }
}

/// Fetches one of several branches that are one commit ahead of what the client has.
struct Fetch {
    connection: Connection,
    requests: Vec<Vec<u8>>,
    next: usize,
}

impl Fetch {
    fn new(side: &Side, n: usize, heads: &str, main: &str) -> Result<Self> {
        let connection = Connection::open(side.address(), &side.path(n, "small.git"), UPLOAD_PACK)?;
        let requests = heads.lines().map(|head| pkt::fetch(head, main)).collect();
        Ok(Self { connection, requests, next: n })
    }
}

impl Client for Fetch {
    fn attempt(&mut self) -> Result<Attempt> {
        self.next = (self.next + 1) % self.requests.len().max(1);
        let request = self.requests.get(self.next).context("no branch to fetch")?;
        let answer = self.connection.post(request)?;
        ensure!(pkt::has_pack(answer), "no pack in {:?}", String::from_utf8_lossy(answer));
        Ok(Attempt::Done)
    }
}

/// Clones and throws the clone away. It has no work tree, which would cost the client alone.
fn clone(side: &Side, near: &Path) -> Result<()> {
    let folder = near.with_extension("clone");
    run_git(near, &["clone", "--quiet", "--bare", &side.url("large.git")], Some(&folder))?;
    fs::remove_dir_all(folder).context("cannot remove a clone")
}

fn push(side: &Side, client: &Path, branch: &str) -> Result<()> {
    let (url, refspec) = (side.url("sources.git"), format!("refs/heads/{branch}"));
    let args = ["-C", client.to_str().context("a path is not UTF-8")?, "push", "--quiet"];
    run_git(client, &[&args[..], &[&url, &refspec]].concat(), None)
}

/// Runs one git client; `last` is an argument that is a path.
fn run_git(home: &Path, args: &[&str], last: Option<&Path>) -> Result<()> {
    let parent = home.parent().unwrap_or(home);
    let mut command = process::command("git", parent);
    command.args(args).args(last).stdin(Stdio::null());
    let output = command.output().context("cannot start git")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {}", errors.trim());
    Ok(())
}
