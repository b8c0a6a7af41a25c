//! The one place where the suites start programs.
//!
//! [`command`] gives a command whose environment holds nothing of the caller's but `PATH`, so that a
//! developer's git configuration or a CI variable cannot change what a test sees.

use std::env;
use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// Starts a command line for `program` with an environment of `PATH`, `LC_ALL` and `TZ` only.
#[allow(clippy::disallowed_methods, reason = "this is the wrapper that the lint points to")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", search_path()).env("LC_ALL", "C").env("TZ", "UTC");
    command
}

/// Runs `command` to its end with `input` on its standard input.
pub fn run(command: &mut Command, input: &[u8]) -> Output {
    // A program that ends without reading everything is judged by its status, not here.
    run_fed(command, |stdin| _ = stdin.write_all(input))
}

/// Runs `command` to its end with what `feed` writes on its standard input, however much that is.
pub fn run_fed(command: &mut Command, feed: impl FnOnce(&mut dyn Write) + Send) -> Output {
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    feed_and_wait(child, feed)
}

/// The path of a program of this workspace, next to the running test binary.
///
/// Cargo builds the programs of other packages only when asked, so a missing one is said plainly.
pub fn product(name: &str) -> PathBuf {
    let path = product_folder().join(name);
    assert!(path.is_file(), "{} does not exist; build it first: ./test", path.display());
    path
}

/// The folder that holds the programs of this workspace.
pub fn product_folder() -> PathBuf {
    let exe = env::current_exe().expect("a running test knows its own path");
    let deps = exe.parent().expect("a program is in a folder");
    deps.parent().expect("test binaries are in target/<profile>/deps").to_path_buf()
}

/// The caller's `PATH`.
pub fn search_path() -> std::ffi::OsString {
    env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin:/usr/sbin".into())
}

/// Writes from a thread of its own, so that neither side waits for a full pipe of the other.
fn feed_and_wait(mut child: Child, feed: impl FnOnce(&mut dyn Write) + Send) -> Output {
    let mut stdin = child.stdin.take().expect("standard input was asked to be a pipe");
    std::thread::scope(|scope| {
        scope.spawn(move || feed(&mut stdin));
        child.wait_with_output().expect("a child that was started can be waited for")
    })
}
