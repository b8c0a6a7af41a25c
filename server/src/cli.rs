//! The command line: each option once, with its type, default, unit and help.
//!
//! What is read here is as the user typed it; [`crate::config::Config`] is what it comes to once checked.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use zit_model::{AgentId, ItemId};
use zit_store::PackLimits;
use zit_wire::service::{ProtocolVersion, Service};

use crate::demo::DemoOptions;
use crate::http::namespaces::Rule;

/// Serve git repositories to many agents at once, and referee what they push
#[derive(Debug, Parser)]
#[command(name = "zit-server", version)]
pub(crate) struct Cli {
    /// Log what passes FILTER to standard error: a level, or `warn,zit_server=debug` [default: info; of stdio: off]
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,

    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What is logged.
    pub(crate) fn log_filter(&self) -> &str {
        // Standard error of a conversation is the client's screen.
        let default = if matches!(self.command, Command::Stdio(_)) { "off" } else { "info" };
        self.log.as_deref().unwrap_or(default)
    }
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the repositories below a directory until stopped
    Serve(ServeArgs),
    /// Create an empty bare repository
    Init {
        /// Create it here; the directory must not exist or be empty
        path: PathBuf,
    },
    /// Show what a repository has acknowledged, one transaction a line
    Log(LogArgs),
    /// Look a repository over, and say what is wrong and what to do; exit with 1 if anything is
    Check(CheckArgs),
    /// Hold one conversation with a git client over standard input and output, as ssh has it
    Stdio(StdioArgs),
    /// Play two agents against a repository made for the occasion, and show what each of them sees
    Demo(DemoOptions),
}

/// The options of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve the bare repositories below DIR, each at its path
    #[arg(long, value_name = "DIR")]
    pub(crate) root: PathBuf,

    /// Listen on ADDR, a loopback address and port; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8417", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// Serve only the repositories that hold a file git-daemon-export-ok, as git's own servers do
    #[arg(long)]
    pub(crate) require_export_ok: bool,

    /// Serve what is below PREFIX as namespaces of one repository: PREFIX/a is its namespace a; may be repeated
    #[arg(long, value_name = "PREFIX=REPO")]
    pub(crate) namespaces: Vec<Rule>,

    /// Refuse a push whose pack has more than BYTES
    #[arg(long, value_name = "BYTES", default_value_t = PackLimits::default().max_bytes)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_pack: u64,
}

/// The options of `log`.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The repository; a server may have it open
    #[arg(value_name = "REPO")]
    pub(crate) path: PathBuf,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,

    /// Start with record N instead of the oldest that is kept
    #[arg(long, value_name = "N")]
    pub(crate) since: Option<u64>,

    /// Check every record and checkpoint, and show none
    #[arg(long, conflicts_with = "since")]
    pub(crate) verify: bool,
}

/// The options of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The repository; a server may have it open
    #[arg(value_name = "REPO")]
    pub(crate) path: PathBuf,

    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of `stdio`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StdioArgs {
    /// What the client wants: git-upload-pack or git-receive-pack [default: what `SSH_ORIGINAL_COMMAND` says]
    #[arg(value_parser = service, requires = "path")]
    pub(crate) service: Option<Service>,

    /// The repository; `~/` is the user's home folder
    pub(crate) path: Option<PathBuf>,

    /// Version of git's protocol [default: what `GIT_PROTOCOL` says]
    #[arg(long, value_name = "0|1|2", value_parser = version)]
    pub(crate) protocol: Option<ProtocolVersion>,

    /// Agent that speaks
    #[arg(long)]
    pub(crate) agent: Option<AgentId>,

    /// Item that it works on
    #[arg(long, value_parser = ItemId::new)]
    pub(crate) item: Option<ItemId>,
}

impl StdioArgs {
    /// What the client wants, of which repository; `None` when the command line does not say.
    pub(crate) fn wanted(&self) -> Option<(Service, &Path)> {
        self.service.zip(self.path.as_deref())
    }
}

fn service(name: &str) -> Result<Service, &'static str> {
    Service::from_name(name).ok_or("services are git-upload-pack and git-receive-pack")
}

fn version(text: &str) -> Result<ProtocolVersion, &'static str> {
    match text {
        "0" => Ok(ProtocolVersion::V0),
        "1" => Ok(ProtocolVersion::V1),
        "2" => Ok(ProtocolVersion::V2),
        _ => Err("versions are 0, 1 and 2"),
    }
}

/// Reads an address and port. `localhost` is 127.0.0.1; no other name is looked up.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let local = text.strip_prefix("localhost:").and_then(|port| port.parse().ok());
    local
        .map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .or_else(|| text.parse().ok())
        .ok_or("write an address and port, such as 127.0.0.1:8417")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn help(path: &[&str]) -> String {
        let mut command = Cli::command().term_width(100);
        command.build();
        let command = path.iter().fold(&mut command, |command, name| {
            command.find_subcommand_mut(name).expect("the subcommand exists")
        });
        command.render_help().to_string()
    }

    #[test]
    fn the_help_says_what_there_is() {
        insta::assert_snapshot!(help(&[]), @r#"
        Serve git repositories to many agents at once, and referee what they push

        Usage: zit-server [OPTIONS] <COMMAND>

        Commands:
          serve  Serve the repositories below a directory until stopped
          init   Create an empty bare repository
          log    Show what a repository has acknowledged, one transaction a line
          check  Look a repository over, and say what is wrong and what to do; exit with 1 if anything is
          stdio  Hold one conversation with a git client over standard input and output, as ssh has it
          demo   Play two agents against a repository made for the occasion, and show what each of them sees
          help   Print this message or the help of the given subcommand(s)

        Options:
              --log <FILTER>  Log what passes FILTER to standard error: a level, or `warn,zit_server=debug` [default: info; of stdio: off]
          -h, --help          Print help
          -V, --version       Print version
        "#);
    }

    #[test]
    fn the_help_of_serve_says_every_option_and_default() {
        insta::assert_snapshot!(help(&["serve"]), @r#"
        Serve the repositories below a directory until stopped

        Usage: zit-server serve [OPTIONS] --root <DIR>

        Options:
              --log <FILTER>              Log what passes FILTER to standard error: a level, or `warn,zit_server=debug` [default: info; of stdio: off]
              --root <DIR>                Serve the bare repositories below DIR, each at its path
              --listen <ADDR>             Listen on ADDR, a loopback address and port; port 0 picks a free one [default: 127.0.0.1:8417]
              --require-export-ok         Serve only the repositories that hold a file git-daemon-export-ok, as git's own servers do
              --namespaces <PREFIX=REPO>  Serve what is below PREFIX as namespaces of one repository: PREFIX/a is its namespace a; may be repeated
              --max-pack <BYTES>          Refuse a push whose pack has more than BYTES [default: 2147483648]
          -h, --help                      Print help
        "#);
    }

    #[test]
    fn localhost_is_an_address_and_other_names_are_told_how_to_write_one() {
        assert_eq!(address("localhost:8417"), Ok(SocketAddr::from(([127, 0, 0, 1], 8417))));
        assert_eq!(address("[::1]:0"), "[::1]:0".parse().map_err(|_| "unreachable"));
        for text in
            ["localhost", "localhost:x", "localhost:65536", "example.org:80", "127.0.0.1", ""]
        {
            assert!(address(text).is_err_and(|why| why.contains("127.0.0.1:8417")), "{text:?}");
        }
    }

    #[test]
    fn a_pack_limit_of_nothing_is_refused() {
        let args = ["zit-server", "serve", "--root", ".", "--max-pack", "0"];
        assert!(Cli::try_parse_from(args).is_err());
    }
}
