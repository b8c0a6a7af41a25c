//! Stock git, run the way a user runs it and cut off from the machine's configuration.
//!
//! [`Git`] says where and as whom, [`Git::run`] runs one command, [`Run`] is what a person would
//! have seen. Identity and dates are fixed, so equal commands make equal objects.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use std::{fmt, fs};

use zit_store::journal::Journal;

use crate::process;
use crate::world::text;

/// The date of every author and committer, unless the test sets another.
const DATE: &str = "2026-01-05T10:00:00Z";

/// A git program, the folder it runs in, and its environment.
#[derive(Clone, Debug)]
pub struct Git {
    program: PathBuf,
    home: PathBuf,
    dir: PathBuf,
    config: Vec<String>,
    env: Vec<(String, String)>,
}

impl Git {
    /// The first git on the `PATH`, with `home` as its home folder, run in `dir`.
    pub fn new(home: &Path, dir: &Path) -> Self {
        Self {
            program: PathBuf::from("git"),
            home: home.to_path_buf(),
            dir: dir.to_path_buf(),
            config: Vec::new(),
            env: Vec::new(),
        }
    }

    /// The same git in another folder.
    #[must_use = "the receiver stays where it was"]
    pub fn at(&self, dir: impl AsRef<Path>) -> Self {
        Self { dir: self.dir.join(dir), ..self.clone() }
    }

    /// The same folder with another git program.
    #[must_use = "the receiver keeps its program"]
    pub fn with_program(&self, program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), ..self.clone() }
    }

    /// The same git with `-c setting` on every command; `setting` is `key=value`.
    #[must_use = "the receiver keeps its settings"]
    pub fn with_config(&self, setting: impl Into<String>) -> Self {
        let mut git = self.clone();
        git.config.push(setting.into());
        git
    }

    /// The same git with one more environment variable.
    #[must_use = "the receiver keeps its environment"]
    pub fn with_env(&self, name: &str, value: &str) -> Self {
        let mut git = self.clone();
        git.env.push((name.to_owned(), value.to_owned()));
        git
    }

    /// The folder that commands run in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs one command to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        self.run_with_input(args, b"")
    }

    /// Runs one command with `input` on its standard input.
    pub fn run_with_input<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Run {
        // A program that ends without reading everything is judged by its status, not here.
        self.run_fed(args, |stdin| _ = stdin.write_all(input))
    }

    /// Runs one command with what `feed` writes on its standard input, however much that is.
    pub fn run_fed<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        feed: impl FnOnce(&mut dyn Write) + Send,
    ) -> Run {
        settled(&self.dir);
        let mut command = self.command(args);
        let output = process::run_fed(&mut command, feed);
        Run::new(&command, output)
    }

    /// Runs one command that must succeed; its standard output without the last line feed.
    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        self.run(args).ok().text()
    }

    /// Runs one command that must fail.
    #[track_caller]
    pub fn fails<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Run {
        self.run(args).failed()
    }

    /// Runs `line` in a shell in this git's folder, as a person who copies a printed command would.
    pub fn shell(&self, line: &str) -> Run {
        let mut command = process::command("bash");
        command.arg("-c").arg(line);
        self.dress(&mut command);
        let output = process::run(&mut command, b"");
        Run::new(&command, output)
    }

    /// Writes `files` (path and content), stages everything and commits it; the new commit's oid.
    #[track_caller]
    pub fn commit(&self, message: &str, files: &[(&str, &str)]) -> String {
        for (path, content) in files {
            let path = self.dir.join(path);
            let folder = path.parent().expect("a file is in a folder");
            std::fs::create_dir_all(folder).expect("a clone is writable");
            std::fs::write(&path, content).expect("a clone is writable");
        }
        self.ok(["add", "--all"]);
        self.ok(["commit", "--quiet", "--allow-empty", "-m", message]);
        self.ok(["rev-parse", "HEAD"])
    }

    /// Clones `url` into `name` next to this git's folder; the git of the clone.
    #[track_caller]
    pub fn clone_of(&self, url: &str, name: &str) -> Self {
        let path = self.dir.join(name);
        self.ok(["clone", "--quiet", url, text(&path)]);
        self.at(name)
    }

    /// What `refname` resolves to here, or `None`.
    pub fn resolve(&self, refname: &str) -> Option<String> {
        let run = self.run(["rev-parse", "--verify", "--quiet", refname]);
        run.is_ok().then(|| run.text())
    }

    /// Every ref outside `refs/zit`, one `<oid> <refname>` a line.
    #[track_caller]
    pub fn refs(&self) -> String {
        let all = self.ok(["for-each-ref", "--format=%(objectname) %(refname)"]);
        all.lines().filter(|line| !line.contains(" refs/zit/")).collect::<Vec<_>>().join("\n")
    }

    fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = process::command(&self.program);
        for setting in &self.config {
            command.arg("-c").arg(setting);
        }
        command.args(args);
        self.dress(&mut command);
        command
    }

    fn dress(&self, command: &mut Command) {
        command
            .current_dir(&self.dir)
            .env("HOME", &self.home)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_AUTHOR_DATE", DATE)
            .env("GIT_COMMITTER_DATE", DATE)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
    }
}

/// One command that has ended.
#[derive(Debug)]
pub struct Run {
    command: String,
    code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, the remote's words included.
    pub stderr: String,
}

impl Run {
    fn new(command: &Command, output: Output) -> Self {
        let words = command.get_args().map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ");
        Self {
            command: format!("{} {words}", command.get_program().to_string_lossy()),
            code: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Whether it exited with 0.
    pub fn is_ok(&self) -> bool {
        self.code == Some(0)
    }

    /// The exit code, or `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.code
    }

    /// This run, which must have succeeded.
    #[track_caller]
    #[must_use = "name what is expected of the output, or call `Git::ok`"]
    pub fn ok(self) -> Self {
        assert!(self.is_ok(), "should have succeeded: {self}");
        self
    }

    /// This run, which must have failed by itself (not by a signal).
    #[track_caller]
    #[must_use = "a failure is only right with the right reason"]
    pub fn failed(self) -> Self {
        assert!(self.code.is_some_and(|code| code != 0), "should have failed: {self}");
        self
    }

    /// This run, whose standard error must hold `needle`.
    #[track_caller]
    pub fn says(self, needle: &str) -> Self {
        assert!(self.stderr.contains(needle), "should say {needle:?}: {self}");
        self
    }

    /// Standard output as text, without the last line feed.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    /// The remote's lines, without git's `remote: ` and without the blanks that git pads them with.
    pub fn remote_lines(&self) -> Vec<String> {
        self.stderr
            .lines()
            .filter_map(|line| line.strip_prefix("remote:"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned())
            .collect()
    }

    /// The git commands that the remote printed as ways forward, in order.
    ///
    /// Only rows below an `options:` heading count, so a forged row elsewhere is not one of them.
    pub fn printed_commands(&self) -> Vec<String> {
        let (mut commands, mut inside) = (Vec::new(), false);
        for line in self.remote_lines() {
            let line = line.trim_start();
            let row = line.strip_prefix("- ").filter(|_| inside);
            inside = line == "options:" || row.is_some();
            // A command may be followed by three blanks and what it does.
            let command = row.and_then(|row| row.split("   ").next());
            commands
                .extend(command.filter(|command| command.starts_with("git ")).map(str::to_owned));
        }
        commands
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stdout = String::from_utf8_lossy(&self.stdout);
        let (command, code, stderr) = (&self.command, self.code, &self.stderr);
        write!(f, "{command}\nexit: {code:?}\nstdout: {stdout}\nstderr: {stderr}")
    }
}

/// How long a referee may take to put what it acknowledged into files, before the test fails.
const SETTLES: Duration = Duration::from_secs(20);

/// Waits until a referee has taken away the `.keep` files of packs, which it does a moment after all refs are in files.
pub(crate) fn let_go(folder: &Path) {
    let packs = folder.join("objects/pack");
    let since = Instant::now();
    let is_ours = |entry: fs::DirEntry| {
        let path = entry.path();
        path.extension().is_some_and(|extension| extension == "keep")
            && fs::read(path).is_ok_and(|words| words.starts_with(b"zit:"))
    };
    while fs::read_dir(&packs).is_ok_and(|files| files.flatten().any(is_ours)) {
        assert!(since.elapsed() < SETTLES, "{} keeps packs", folder.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the files of a repository with a running referee show everything: stock git looks at files only.
pub(crate) fn settled(folder: &Path) {
    let zit = folder.join("zit");
    let since = Instant::now();
    loop {
        let pid = fs::read_to_string(zit.join("lock")).unwrap_or_default();
        if pid.is_empty() || !Path::new("/proc").join(pid.trim()).join("exe").exists() {
            return;
        }
        let Ok((journal, _)) = Journal::read_only(&zit.join("journal")) else { return };
        let mark = fs::read_to_string(zit.join("settled")).unwrap_or_default();
        let mark = mark.split_whitespace().nth(1).and_then(|seq| seq.parse().ok()).unwrap_or(0);
        let tail = journal.tail().0.0;
        if tail <= mark {
            return;
        }
        let late = since.elapsed() >= SETTLES;
        assert!(!late, "{}: files show {mark} of {tail} records", folder.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}
