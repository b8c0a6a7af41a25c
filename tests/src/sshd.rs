//! A real sshd on a loopback port, with keys and a configuration of its own, for the current user.
//!
//! A thread listens on a port that the system picks, and starts `sshd -i` on each connection, as inetd does. So no port is
//! guessed, and no daemon outlives its test: each sshd ends with its connection, or is killed.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::world::text;
use crate::{World, process};

/// Where Debian has it.
const SSHD: &str = "/usr/sbin/sshd";

/// A running sshd; ends when dropped.
#[derive(Debug)]
pub struct Sshd {
    port: u16,
    folder: PathBuf,
    ends: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Sshd {
    /// Starts one whose logins find the workspace's programs on their `PATH`.
    ///
    /// `forced`, if given, is run for each login in place of what it asks for.
    pub fn start(world: &World, forced: Option<&str>) -> Self {
        let folder = world.path("sshd");
        fs::create_dir(&folder).expect("one sshd for each world");
        for key in ["host", "user"] {
            let mut command = process::command("ssh-keygen");
            command.args(["-q", "-t", "ecdsa", "-N", "", "-f"]).arg(folder.join(key));
            assert!(process::run(&mut command, b"").status.success(), "ssh-keygen makes a key");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        write_configuration(world, &folder, port, forced);
        let ends = Arc::new(AtomicBool::new(false));
        let config = folder.join("sshd_config");
        let listening = {
            let ends = Arc::clone(&ends);
            std::thread::spawn(move || listen(&listener, &config, &ends))
        };
        Self { port, folder, ends, listening: Some(listening) }
    }

    /// `ssh://127.0.0.1:<port><path>`.
    pub fn url(&self, path: &Path) -> String {
        format!("ssh://127.0.0.1:{}{}", self.port, text(path))
    }

    /// An ssh that knows this sshd and has a key for it.
    pub fn client(&self) -> PathBuf {
        self.folder.join("ssh")
    }
}

/// Connects once more, so that the thread wakes up and sees that it is over.
impl Drop for Sshd {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // An error means that nobody listens any more, which is what was asked for.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
        if std::thread::panicking() {
            eprintln!(
                "--- sshd log\n{}",
                fs::read_to_string(self.folder.join("log")).unwrap_or_default()
            );
        }
    }
}

/// Starts an sshd for each connection, and ends those that are left.
fn listen(listener: &TcpListener, config: &Path, ends: &AtomicBool) {
    let mut children: Vec<Child> = Vec::new();
    for stream in listener.incoming() {
        if ends.load(Ordering::SeqCst) {
            break;
        }
        let stream = OwnedFd::from(stream.expect("a connection is taken"));
        let output = stream.try_clone().expect("there is room for a descriptor");
        let mut command = process::command(SSHD);
        command.arg("-i").arg("-f").arg(config).arg("-E").arg(config.with_file_name("log"));
        command.stdin(Stdio::from(stream)).stdout(Stdio::from(output)).stderr(Stdio::null());
        children.push(command.spawn().expect("sshd is installed: ./test"));
    }
    for mut child in children {
        // An error means that it has already ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn write_configuration(world: &World, folder: &Path, port: u16, forced: Option<&str>) {
    let write = |name: &str, content: &str| {
        fs::write(folder.join(name), content).expect("the folder is writable");
    };
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("the key was made");
    if rustix::process::geteuid().is_root() {
        // sshd gives up its rights into this folder; an init script makes it where there is one.
        fs::create_dir_all("/run/sshd").expect("root may");
    }
    let command = forced.map_or(String::new(), |forced| format!("command=\"{forced}\","));
    write("authorized", &format!("{command}restrict {}", read("user.pub")));
    write("known", &format!("[127.0.0.1]:{port} {}", read("host.pub")));
    let (at, home) = (text(folder).to_owned(), world.home());
    write(
        "sshd_config",
        &format!(
            "HostKey {at}/host\nAuthorizedKeysFile {at}/authorized\nStrictModes no\nUsePAM no\n\
             PasswordAuthentication no\nPidFile none\nAcceptEnv GIT_PROTOCOL\n\
             SetEnv PATH={}:/usr/local/bin:/usr/bin:/bin HOME={} GIT_CONFIG_NOSYSTEM=1\n",
            text(&process::product_folder()),
            text(&home)
        ),
    );
    // `-G` too: git asks with it which options the program takes.
    write(
        "ssh",
        &format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F none -i '{at}/user' -o UserKnownHostsFile='{at}/known' \
             -o BatchMode=yes \"$@\"\n"
        ),
    );
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.join("ssh"), mode).expect("the file is ours");
}
