//! The server of the demo: `zit-server serve` on a loopback port of the system's choice, as anybody would start it.
//!
//! A [`Serving`] that goes out of scope ends its server. It never outlives the demo, unless the demo itself is killed.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::DemoError;

/// A server that takes requests.
pub(crate) struct Serving {
    server: Child,
    url: String,
}

impl Serving {
    /// Starts a server for the repositories below `root`, and returns when it takes requests.
    ///
    /// # Errors
    /// [`DemoError`] when it cannot be started or does not say where it listens.
    pub(crate) fn start(root: &Path) -> Result<Self, DemoError> {
        let failed = |source| DemoError::Program { command: "zit-server serve".to_owned(), source };
        let server = server(root).and_then(|mut command| command.spawn()).map_err(failed)?;
        let mut serving = Self { server, url: String::new() };
        let mut line = String::new();
        if let Some(stdout) = serving.server.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        match line.trim_end().strip_prefix("listening on ") {
            Some(url) => url.clone_into(&mut serving.url),
            None => return Err(DemoError::NotListening { line }),
        }
        Ok(serving)
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server. Requests under way are cut off.
    pub(crate) fn stop(&mut self) {
        // Both fail only for a server that has ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

#[allow(clippy::disallowed_methods, reason = "this very program, serving")]
fn server(root: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--log", "error", "--root"])
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Ok(command)
}
