//! Processor time, of this process and of groups of others.
//!
//! A server's time is counted by a control group of its own, because programs that are started for one request, and
//! whose parents do not wait for them as fcgiwrap's do not, leave no trace in `/proc`. Where no group can be made
//! (version 2 of control groups, as root or in a delegated one) a server's time is not known, and that is what is said.
//!
//! Source: Linux, `Documentation/admin-guide/cgroup-v2.rst`, `cpu.stat` and `cgroup.procs`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;

/// How often a group whose last processes are just ending is tried to be removed, a hundredth of a second apart.
const MAX_TRIES: usize = 200;

/// A control group, removed when it is dropped; what was started in it must have ended by then.
#[derive(Debug)]
pub(crate) struct Group(Option<PathBuf>);

impl Group {
    /// Makes a group below that of this process, if that is allowed.
    pub(crate) fn new(name: &str) -> Self {
        let make = || -> Result<PathBuf> {
            let mounts = fs::read_to_string("/proc/self/mounts")?;
            let own = fs::read_to_string("/proc/self/cgroup")?;
            let own =
                folder(&mounts, &own).context("control groups of version 2 are not mounted")?;
            let path = own.join(format!("zit-bench-{}-{name}", std::process::id()));
            fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
            Ok(path)
        };
        let path = make().inspect_err(|error| {
            eprintln!("note: no processor time of servers: {error:#}");
        });
        Self(path.ok())
    }

    /// A group that counts nothing.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// A command line for `program` that will run in the group.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, home: &Path) -> Command {
        let Some(path) = &self.0 else { return process::command(program, home) };
        // The shell joins the group and becomes the program, so that nothing of it is ever outside.
        let mut command = process::command("sh", home);
        command.args(["-c", "echo $$ >\"$0\" && exec \"$@\""]);
        command.arg(path.join("cgroup.procs")).arg(program);
        command
    }

    /// What the processes of the group have used so far; `None` if it could not be made.
    pub(crate) fn used(&self) -> Option<Duration> {
        let stat = fs::read_to_string(self.0.as_ref()?.join("cpu.stat")).ok()?;
        let micros = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
        Some(Duration::from_micros(micros.parse().ok()?))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(path) = &self.0 else { return };
        for _ in 0..MAX_TRIES {
            match fs::remove_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(Duration::from_millis(10));
                }
                Ok(()) | Err(_) => return,
            }
        }
    }
}

/// What this process and the children it has waited for have used so far.
///
/// A server that this process started counts only once it has ended, so the difference of two readings while the
/// servers run is that of the load generator and its git clients. It comes in ticks, mostly of 10 ms.
pub(crate) fn of_self() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks(&stat).unwrap_or_default() * 1000 / per_second)
}

/// The folder of the group that `own` (`/proc/self/cgroup`) names, where `mounts` says that groups are.
fn folder(mounts: &str, own: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "cgroup2").then_some(place)
    })?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount).join(path))
}

/// Reads `utime`, `stime`, `cutime` and `cstime` of `/proc/<pid>/stat`.
///
/// Source: `proc_pid_stat(5)`; the program's name, in parentheses, may hold anything.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    // The first field here is number 3 there, and these are 14 to 17.
    let fields = fields.split_ascii_whitespace().skip(11).take(4);
    fields.map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_times_are_read_behind_any_program_name() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194304 1 2 3 4 10 20 300 4000 20 0 1 0 5";
        assert_eq!(ticks(stat), Some(4330));
    }

    #[test]
    fn the_own_group_is_found_among_other_mounts() {
        let mounts =
            "tmpfs /cg tmpfs rw 0 0\ncgroup /cg/cpu cgroup rw 0 0\nnone /cg/all cgroup2 rw 0 0";
        assert_eq!(folder(mounts, "3:cpu:/x\n0::/user/1\n"), Some("/cg/all/user/1".into()));
        assert_eq!(folder("none /cg/cpu cgroup rw 0 0", "0::/\n"), None);
    }
}
