//! curl, which speaks HTTP/2 and shows what it got.

use std::fs;

use crate::World;
use crate::process;

/// What came of one transfer.
#[derive(Debug)]
pub struct Transfer {
    /// The status code.
    pub status: u16,
    /// `1.1` or `2`.
    pub version: String,
    /// The header lines as sent.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
}

/// Runs curl with `args`, `body` on its standard input (`--data-binary @-` sends it), and no configuration.
pub fn curl(world: &World, args: &[&str], body: &[u8]) -> Transfer {
    try_curl(world, args, body).unwrap_or_else(|said| panic!("curl {args:?}: {said}"))
}

/// As [`curl`], for a transfer that may fail.
///
/// # Errors
/// What curl says when there was no whole answer.
pub fn try_curl(world: &World, args: &[&str], body: &[u8]) -> Result<Transfer, String> {
    let folder = world.path("curl");
    fs::create_dir_all(&folder).expect("the world is writable");
    let (head, output) = (folder.join("head"), folder.join("body"));
    // There may be none: curl makes it when there is something to put in it.
    let _ = fs::remove_file(&output);
    let mut command = process::command("curl");
    command.args(["--disable", "--silent", "--show-error", "--noproxy", "*", "--max-time", "60"]);
    command.arg("--dump-header").arg(&head).arg("--output").arg(&output);
    command.args(["--write-out", "%{http_code} %{http_version}"]).args(args);
    command.env("HOME", world.home());
    let run = process::run(&mut command, body);
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into_owned());
    }
    let summary = String::from_utf8_lossy(&run.stdout);
    let (status, version) = summary.split_once(' ').expect("two words were asked for");
    Ok(Transfer {
        status: status.parse().expect("a status code is a number"),
        version: version.to_owned(),
        head: fs::read_to_string(&head).unwrap_or_default(),
        body: fs::read(&output).unwrap_or_default(),
    })
}

impl Transfer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The last value of a header in lower case; empty when there is none.
    pub fn header(&self, name: &str) -> String {
        let named = |line: &str| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        };
        self.head.lines().filter_map(named).next_back().unwrap_or_default()
    }
}
