//! A running `zit-server`, started from the workspace's own build.
//!
//! The server picks its port and says so on its first line of output, so tests never guess one and
//! never wait by sleeping. Its log goes to a file that a failing test prints.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process;
use crate::{Git, World};

/// How long a process that is dying may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the server prints when it is ready.
const READY: &str = "listening on ";

/// One `zit-server serve`, killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
    root: PathBuf,
    home: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Serves the world's root.
    pub fn start(world: &World) -> Self {
        Self::start_with(world, &[], &[])
    }

    /// Serves the world's root with further arguments and environment variables.
    pub fn start_with(world: &World, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::launch(world.root(), world.home(), world.path("server.log"), args, env)
    }

    /// Kills this server as `kill -9` does, and serves the same root again on a new port.
    #[must_use = "the new server ends when it is dropped"]
    pub fn restart(mut self) -> Self {
        self.kill();
        let (root, home, log) = (self.root.clone(), self.home.clone(), self.log.clone());
        Self::launch(root, home, log, &[], &[])
    }

    /// `127.0.0.1:<port>`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The address that a client without an agent's seat uses.
    pub fn url(&self, repository: &str) -> String {
        format!("http://{}/{repository}", self.address)
    }

    /// The address that says which agent is speaking.
    pub fn seat(&self, agent: &str, repository: &str) -> String {
        format!("http://{}/@{agent}/{repository}", self.address)
    }

    /// The process, for [`kill_nine`].
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the process at once, as `kill -9` does.
    pub fn kill(&mut self) {
        // An error means that it has already ended, which is what was asked for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the process to end and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        kill_process(self.pid(), Signal::TERM).expect("a child that was not waited for has a pid");
        self.child.wait().expect("a child that was started can be waited for")
    }

    /// Waits for the process to end by itself, for instance at a crash point; whether it did.
    pub fn dies(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while self.is_alive() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        !self.is_alive()
    }

    /// The most memory the process ever held at once, in KiB, as Linux counts it.
    pub fn peak_resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("a live process has a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).expect("VmHWM is a number")
    }

    /// The memory that the process and all that it started hold now beside what is in files, in KiB.
    pub fn anonymous_kib(&self) -> u64 {
        let mut left = vec![self.child.id()];
        let mut sum = 0;
        while let Some(pid) = left.pop() {
            // One that has just ended holds nothing.
            let maps = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let line = maps.lines().find_map(|line| line.strip_prefix("Anonymous:"));
            let number = line.and_then(|line| line.split_whitespace().next());
            sum += number.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
            for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten()
            {
                let children = fs::read_to_string(thread.path().join("children"));
                let children = children.unwrap_or_default();
                left.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
        }
        sum
    }

    /// Everything logged so far, by every server of this world.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn launch(
        root: PathBuf,
        home: PathBuf,
        log: PathBuf,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let stderr = File::options().create(true).append(true).open(&log).expect("log is writable");
        let mut command = process::command(process::product("zit-server"));
        command.arg("serve").arg("--root").arg(&root).args(["--listen", "127.0.0.1:0"]).args(args);
        command.env("HOME", &home).env("GIT_CONFIG_NOSYSTEM", "1").envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().expect("the server can be started");
        let address = read_address(&mut child, &log);
        Self { child, address, root, home, log }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- server log\n{}", self.log());
        }
    }
}

/// Ends a process that a thread without its [`Server`] knows by id, as `kill -9` does.
///
/// The server must not have been waited for yet, or the id may be another process by now.
pub fn kill_nine(pid: Pid) {
    // An error means that it has already ended, which is what was asked for.
    let _ = kill_process(pid, Signal::KILL);
}

/// Makes a bare repository below the world's root the way an administrator does.
pub fn init(world: &World, name: &str) -> Git {
    let path = world.root().join(name);
    let mut command = process::command(process::product("zit-server"));
    command.arg("init").arg(&path).env("HOME", world.home()).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = process::run(&mut command, b"");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    world.git().at(path)
}

/// Makes a bare repository with `files` as the one commit of its mainline; the git inside it.
pub fn seeded(world: &World, name: &str, files: &[(&str, &str)]) -> Git {
    let bare = init(world, name);
    world.git().ok(["init", "--quiet", &format!("seed-{name}")]);
    let seed = world.git().at(format!("seed-{name}"));
    seed.commit("Begin", files);
    // Not through a server: what stood before the first request is the administrator's.
    seed.ok(["push", "--quiet", crate::world::text(bare.dir()), "HEAD:refs/heads/main"]);
    bare
}

fn read_address(child: &mut Child, log: &Path) -> String {
    let stdout = child.stdout.take().expect("standard output was asked to be a pipe");
    let mut reader = BufReader::new(stdout);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a pipe can be read");
    let address = line
        .trim_end()
        .strip_prefix(READY)
        .and_then(|url| url.strip_prefix("http://"))
        .map(|address| address.trim_end_matches('/').to_owned());
    // Keep reading, or a server that prints more would be stopped by a full pipe.
    std::thread::spawn(move || reader.read_to_end(&mut Vec::new()));
    address.unwrap_or_else(|| {
        let log = fs::read_to_string(log).unwrap_or_default();
        panic!("the server printed {line:?} instead of {READY:?} and a url; its log:\n{log}")
    })
}
