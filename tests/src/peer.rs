//! The peer: `git http-backend` behind nginx and fcgiwrap, as Debian ships them.
//!
//! It serves the same kind of bare repository as our server, so that a suite can do one thing
//! against both and compare what came of it. It is never a part of the product.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::World;
use crate::process;
use crate::world::text;

/// How many requests the peer answers at once.
const WORKERS: usize = 3;

/// How long nginx may take to open its port.
const PATIENCE: Duration = Duration::from_secs(20);

/// One running peer; its programs end when it is dropped.
#[derive(Debug)]
pub struct Peer {
    programs: Vec<Child>,
    port: u16,
}

impl Peer {
    /// Serves the world's root.
    pub fn start(world: &World) -> Self {
        let folder = world.path("peer");
        fs::create_dir(&folder).expect("a world has one peer");
        let port = free_port();
        let config = folder.join("nginx.conf");
        fs::write(&config, nginx_config(world, &folder, port)).expect("the folder is writable");
        let mut peer = Self { programs: start_workers(world, &folder), port };
        peer.programs.push(start_nginx(&folder, &config));
        peer.wait_until_open(&folder);
        peer
    }

    /// The address of a namespace of a repository below the root.
    pub fn namespace(&self, repository: &str, namespace: &str) -> String {
        self.url(&format!("namespaces/{repository}/{namespace}"))
    }

    /// The address of a repository below the root.
    pub fn url(&self, repository: &str) -> String {
        format!("http://127.0.0.1:{}/{repository}", self.port)
    }

    /// nginx has no way to say that it is ready other than to accept a connection.
    fn wait_until_open(&mut self, folder: &Path) {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let nginx = self.programs.last_mut().expect("nginx was pushed last");
            let ended = nginx.try_wait().expect("a child can be asked").is_some();
            let log = || fs::read_to_string(folder.join("error.log")).unwrap_or_default();
            assert!(!ended, "nginx ended: {}", log());
            assert!(Instant::now() < deadline, "nginx does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The last one is nginx's master, which must be asked so that it ends its worker too.
        if let Some(nginx) = self.programs.last() {
            let pid = rustix::process::Pid::from_child(nginx);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let mut programs = self.programs.drain(..).rev();
        if let Some(mut nginx) = programs.next() {
            let _ = nginx.wait();
        }
        for mut worker in programs {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// Every worker takes connections from one socket, which is its standard input.
fn start_workers(world: &World, folder: &Path) -> Vec<Child> {
    let socket = UnixListener::bind(folder.join("socket")).expect("the folder is writable");
    let start = |_| {
        let socket = socket.try_clone().expect("a socket can be duplicated");
        let mut command = process::command("fcgiwrap");
        command.env("HOME", world.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        command.stdin(OwnedFd::from(socket)).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap_or_else(|error| panic!("cannot start fcgiwrap ({error}): ./test"))
    };
    (0..WORKERS).map(start).collect()
}

fn start_nginx(folder: &Path, config: &Path) -> Child {
    let mut command = process::command(nginx_program());
    command.arg("-p").arg(folder).arg("-c").arg(config).arg("-e").arg(folder.join("error.log"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("cannot start nginx ({error}): ./test"))
}

/// Debian keeps nginx where only an administrator's `PATH` looks.
fn nginx_program() -> PathBuf {
    let usual = PathBuf::from("/usr/sbin/nginx");
    if usual.is_file() { usual } else { PathBuf::from("nginx") }
}

/// A port that was free a moment ago. nginx refuses to start if somebody takes it meanwhile.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

fn nginx_config(world: &World, folder: &Path, port: u16) -> String {
    let root = world.root();
    let backend = PathBuf::from(world.git().ok(["--exec-path"])).join("git-http-backend");
    let (folder, root, backend) = (text(folder), text(&root), text(&backend));
    let params = format!(
        "fastcgi_pass unix:{folder}/socket;
      fastcgi_param SCRIPT_FILENAME {backend};
      fastcgi_param GIT_PROJECT_ROOT {root};
      fastcgi_param GIT_HTTP_EXPORT_ALL 1;
      fastcgi_param GIT_PROTOCOL $http_git_protocol;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param SERVER_PROTOCOL HTTP/1.1;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REMOTE_USER peer;
      fastcgi_param REMOTE_ADDR $remote_addr;"
    );
    format!(
        "daemon off;
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_max_body_size 0;
  client_body_temp_path {folder}/body;
  fastcgi_temp_path {folder}/fastcgi;
  proxy_temp_path {folder}/proxy;
  scgi_temp_path {folder}/scgi;
  uwsgi_temp_path {folder}/uwsgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{
      {params}
      fastcgi_param PATH_INFO $uri;
    }}
    location ~ ^/namespaces/([^/]+)/(.+?)(/(?:HEAD|info/refs|objects/.*|git-[a-z-]+))$ {{
      {params}
      fastcgi_param PATH_INFO /$1$3;
      fastcgi_param GIT_NAMESPACE $2;
    }}
  }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_serves_clones_and_pushes_over_every_protocol() {
        let world = World::new();
        let bare = world.bare("app.git");
        let peer = Peer::start(&world);
        for version in ["0", "1", "2"] {
            let git = world.git().with_config(format!("protocol.version={version}"));
            let clone = git.clone_of(&peer.url("app.git"), &format!("clone-{version}"));
            let big = "line\n".repeat(500_000) + version;
            let new = clone.commit("Commit", &[("file", &big)]);
            // Larger than the client's buffer, so that it is sent in chunks of unknown length.
            let clone = clone.with_config("http.postBuffer=1000");
            clone.ok(["push", "--quiet", "origin", "HEAD:refs/heads/main"]);
            assert_eq!(bare.resolve("refs/heads/main"), Some(new), "protocol {version}");
        }
    }
}
