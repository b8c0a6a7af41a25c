//! The peer: `git http-backend` behind nginx and fcgiwrap, as Debian ships them.
//!
//! Configured as its manual shows, with what a busy server would add: a worker for each processor, several requests at
//! once, and connections that stay open. It writes below the folder that it is given and nowhere else.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use crate::cpu::Group;
use crate::process::{self, Program};

/// How many requests the peer answers at once: on two processors more only wait for each other.
const N_WORKERS: usize = 8;

/// How long nginx may take to open its port.
const PATIENCE: Duration = Duration::from_secs(20);

/// Serves the repositories below `root`: where, and by which programs.
///
/// # Errors
/// When a program is missing or nginx does not open its port.
pub(crate) fn start(group: &Group, dir: &Path, root: &Path) -> Result<(SocketAddr, Vec<Program>)> {
    // nginx can only be told a number. It refuses to start if somebody takes the port meanwhile.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let socket = UnixListener::bind(dir.join("socket"))?;
    let mut programs = vec![start_nginx(group, dir, root, address)?];
    for _ in 0..N_WORKERS {
        programs.push(start_worker(group, dir, &socket)?);
    }
    if let Some(nginx) = programs.first_mut() {
        wait_until_open(nginx, address, dir)?;
    }
    Ok((address, programs))
}

/// Every worker takes connections from one socket, which is its standard input.
fn start_worker(group: &Group, dir: &Path, socket: &UnixListener) -> Result<Program> {
    let mut command = group.command("fcgiwrap", dir);
    command.stdin(OwnedFd::from(socket.try_clone()?));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Program::start(&mut command, Signal::KILL).context("install Debian's package fcgiwrap")
}

fn start_nginx(group: &Group, dir: &Path, root: &Path, address: SocketAddr) -> Result<Program> {
    let path = dir.join("nginx.conf");
    fs::write(&path, config(dir, root, address)?)?;
    // Debian keeps it where only an administrator's `PATH` looks.
    let usual = PathBuf::from("/usr/sbin/nginx");
    let program = if usual.is_file() { usual } else { PathBuf::from("nginx") };
    let mut command = group.command(program, dir);
    command.arg("-p").arg(dir).arg("-c").arg(path).arg("-e").arg(dir.join("error.log"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Its master is asked, so that it ends its workers too.
    Program::start(&mut command, Signal::TERM).context("install Debian's package nginx-light")
}

/// nginx has no way to say that it is ready other than to accept a connection.
fn wait_until_open(nginx: &mut Program, address: SocketAddr, dir: &Path) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        let log = || fs::read_to_string(dir.join("error.log")).unwrap_or_default();
        if nginx.child().try_wait()?.is_some() {
            bail!("nginx ended: {}", log());
        }
        ensure!(Instant::now() < deadline, "nginx does not answer: {}", log());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn config(dir: &Path, root: &Path, address: SocketAddr) -> Result<String> {
    let backend = PathBuf::from(process::git(root, ["--exec-path"])?).join("git-http-backend");
    let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
    let (dir, root, backend) = (text(dir)?, text(root)?, text(&backend)?);
    Ok(format!(
        "daemon off;
user root;
worker_processes 2;
pid {dir}/nginx.pid;
error_log {dir}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off;
  keepalive_requests 100000000;
  client_max_body_size 0;
  client_body_temp_path {dir}/body;
  fastcgi_temp_path {dir}/fastcgi;
  proxy_temp_path {dir}/proxy;
  scgi_temp_path {dir}/scgi;
  uwsgi_temp_path {dir}/uwsgi;
  server {{
    listen {address};
    location / {{
      fastcgi_pass unix:{dir}/socket;
      fastcgi_param SCRIPT_FILENAME {backend};
      fastcgi_param GIT_PROJECT_ROOT {root};
      fastcgi_param GIT_HTTP_EXPORT_ALL 1;
      fastcgi_param GIT_PROTOCOL $http_git_protocol;
      fastcgi_param PATH_INFO $uri;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REMOTE_USER peer;
    }}
  }}
}}
"
    ))
}
