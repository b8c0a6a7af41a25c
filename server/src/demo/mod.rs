//! `zit-server demo`: two stock git clients, refereed, on a repository made for the occasion.
//!
//! [`run`] makes a bare repository in a temporary folder, serves it on a loopback port of the system's choice, and lets
//! two agents claim, edit, push and land. It prints each command and what git printed for it: nothing shown as output
//! was written beforehand. A step that ends otherwise than the story needs is an error.
//!
//! It never reads the user's git configuration, never writes outside its temporary folder, and never leaves loopback.
//!
//! The parts: [`sample`] is the program that the agents work on, [`tasks`] is what they do to it, [`rename`] gives its
//! symbols other names, [`git`] runs a client, [`story`] is the order of events, [`transcript`] prints them,
//! [`serving`] is the server, and [`signals`] end it early.

mod git;
mod rename;
mod sample;
mod serving;
mod signals;
mod story;
mod tasks;
mod transcript;

use std::io;
use std::path::PathBuf;
use std::thread;

use tokio::sync::oneshot;

use rename::{Rename, Renames};
use serving::Serving;
use signals::Signals;
use story::Stage;
use transcript::Transcript;

/// What the demo may be told.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct DemoOptions {
    /// Stop at the end instead of serving on
    #[arg(long)]
    pub(crate) exit: bool,

    /// Give a word of the sample another spelling, to see that the output follows
    #[arg(long, hide = true, value_name = "OLD=NEW")]
    pub(crate) rename: Vec<Rename>,
}

/// Plays the demo on standard output; without `exit` it then serves until it is interrupted.
///
/// # Errors
/// [`DemoError`] when something the demo needs is missing, or a step ends otherwise than it must.
pub(crate) fn run(options: &DemoOptions) -> Result<(), DemoError> {
    let renames = Renames::new(&options.rename)?;
    let mut signals =
        Signals::catch().map_err(|source| DemoError::io("catch an interruption", source))?;
    let folder = tempfile::Builder::new()
        .prefix("zit-demo-")
        .tempdir()
        .map_err(|source| DemoError::io("make a temporary folder", source))?;
    let root = folder.path().join("srv");
    let repository = root.join(story::REPOSITORY);
    zit_store::Store::init(&repository)
        .map_err(|source| DemoError::Init { path: repository, source })?;
    let mut serving = Serving::start(&root)?;
    let url = serving.url().to_owned();
    let stage = Stage { folder: folder.path(), url: &url, renames: &renames };
    let mut transcript = Transcript::new(io::stdout());
    let played = thread::scope(|scope| {
        let (tell, told) = oneshot::channel();
        scope.spawn(|| tell.send(story::play(&stage, &mut transcript)));
        let played = signals.wait_or(told).unwrap_or(Err(DemoError::Interrupted));
        if played.is_err() {
            // Without a server the story comes to its end.
            serving.stop();
        }
        played
    });
    played?;
    if !options.exit {
        transcript.prose(&format!("serving {} (Ctrl-C stops)", stage.clone_url("you")))?;
        signals.wait();
    }
    Ok(())
}

/// Why the demo cannot be played to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// The system refused something.
    #[error("cannot {attempt}")]
    Io {
        /// What was attempted.
        attempt: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program did not run.
    #[error("cannot run `{command}`")]
    Program {
        /// The command as a person types it.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// Nobody takes the transcript.
    #[error("cannot print the transcript")]
    Print(#[source] io::Error),
    /// The repository could not be made.
    #[error("cannot make the repository {}", path.display())]
    Init {
        /// Where it was to be.
        path: PathBuf,
        /// What the store said.
        source: zit_store::StoreError,
    },
    /// The server does not say where it listens.
    #[error("the server does not say where it listens, but {line:?}")]
    NotListening {
        /// What it says.
        line: String,
    },
    /// Somebody stopped it.
    #[error("the demo was interrupted")]
    Interrupted,
    /// A new spelling for a word that the sample does not have.
    #[error("the sample has no symbol {word}")]
    NoSymbol {
        /// The word.
        word: String,
    },
    /// An edit does not find what it replaces.
    #[error("the sample's {path} does not hold the text that the edit replaces")]
    NoPlaceToEdit {
        /// The file.
        path: String,
    },
    /// A step ended otherwise than the story needs.
    #[error("{who}: {what}, after `{command}` printed:\n{output}")]
    Astray {
        /// Whose step it was.
        who: String,
        /// What should have been and was not.
        what: String,
        /// The command.
        command: String,
        /// What it printed.
        output: String,
    },
}

impl DemoError {
    fn io(attempt: impl Into<String>, source: io::Error) -> Self {
        Self::Io { attempt: attempt.into(), source }
    }

    /// What to do about it, where something can be done.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Io { .. } => Some("the demo needs room in the temporary folder, see TMPDIR"),
            Self::Program { .. } => Some("the demo runs stock git: install it, or add it to PATH"),
            Self::Init { source, .. } => source
                .hint()
                .or(Some("the demo needs stock git in PATH, and room in the temporary folder")),
            Self::NoSymbol { .. } => Some("--rename OLD=NEW takes words that stand in the sample"),
            Self::Print(_)
            | Self::NotListening { .. }
            | Self::Interrupted
            | Self::NoPlaceToEdit { .. }
            | Self::Astray { .. } => None,
        }
    }
}
