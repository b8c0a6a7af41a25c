//! One program of the repository's owner, such as a hook, from its start to its end: fed, listened to, and killed with its
//! children when it must end.
//!
//! Threads turn what can happen into one closed list of [`Event`]s: one feeds the program, one reads it, one learns
//! that it has exited. Standard output and error are one pipe, so that their order is kept; where the standard output is one side
//! of a [`Talk`], it has a pipe and a reader of its own.
//!
//! A child that it left behind may hold the pipe open for hours. It is left alone; what it writes once the program has been
//! over for [`AFTERGLOW`] goes nowhere.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// How much of what one program writes is passed on, in bytes. The rest is thrown away.
const MAX_WORDS: usize = 4 << 20;

/// How much is read at once, in bytes.
const PIECE: usize = 8 * 1024;

/// How many pieces wait for the audience; then the program waits.
const PIECES: usize = 4;

/// How long after its end the programs that it writes through may take to pass its last words on.
const AFTERGLOW: Duration = Duration::from_millis(500);

/// `execve` says this of a script without a first line that names its interpreter.
const ENOEXEC: i32 = 8;

/// How long a program may run, and how often its audience hears of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For the program.
    pub(crate) time: Duration,
    /// Between two signs of life.
    pub(crate) beat: Option<Duration>,
    /// What of it is heard.
    pub(crate) heard: Heard,
}

/// What of a program its audience hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Standard output and error, in their order.
    Both,
    /// Standard output alone, because it is read by a program.
    Output,
}

/// Whoever a program's words are for has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("whoever asked has gone")]
pub struct Gone;

/// Where the words of a program go while it runs.
pub trait Audience {
    /// Takes some bytes of what it writes: neither whole lines nor whole characters.
    ///
    /// # Errors
    /// [`Gone`] when nobody listens any more, which ends the program.
    fn hear(&mut self, words: &[u8]) -> Result<(), Gone>;

    /// Learns that work goes on although there is nothing to hear.
    ///
    /// # Errors
    /// As [`Audience::hear`].
    fn wait(&mut self) -> Result<(), Gone>;
}

/// How a program ended.
#[derive(Debug)]
#[must_use = "a program that did not pass agrees to nothing"]
pub enum ProgramEnd {
    /// It succeeded: a hook agreed.
    Passed,
    /// It did not.
    Declined(ExitStatus),
    /// It was killed after this time.
    TimedOut(Duration),
    /// It was killed because its audience went away.
    Abandoned,
    /// It could not be run.
    Failed(std::io::Error),
}

/// A conversation with a program: what it writes on standard output is answered on its standard input.
pub trait Talk {
    /// What is said first.
    fn begin(&mut self) -> Vec<u8>;

    /// Takes the next piece of what the program says. What to say to it, or `None` when there is nothing more to say
    /// or to hear: its input then ends.
    fn hear(&mut self, piece: &[u8]) -> Option<Vec<u8>>;
}

/// What a program is told.
pub(crate) enum Input<'a> {
    /// This, and no more.
    Text(&'a [u8]),
    /// What its own words call for.
    Talk(&'a mut dyn Talk),
}

enum Event {
    Words(Vec<u8>),
    /// What is said to the other side of a [`Talk`].
    Said(Vec<u8>),
    /// One of the pipes has ended; whether it is that of a [`Talk`].
    Silence {
        of_talk: bool,
    },
    Exited,
}

/// Runs `file`, which `command` makes a command of.
pub(crate) fn run(
    command: &mut dyn FnMut(&[&OsStr]) -> Command,
    file: &Path,
    input: Input<'_>,
    limits: Limits,
    audience: &mut dyn Audience,
) -> ProgramEnd {
    let talks = matches!(input, Input::Talk(_));
    // As git does it: a script that names no interpreter is the shell's.
    let started = match start(command(&[file.as_os_str()]), limits.heard, talks) {
        Err(error) if error.raw_os_error() == Some(ENOEXEC) => {
            start(command(&[OsStr::new("/bin/sh"), file.as_os_str()]), limits.heard, talks)
        }
        started => started,
    };
    let (mut child, events, feed) = match started.and_then(|(child, pipes)| attend(child, pipes)) {
        Ok(started) => started,
        Err(error) => return ProgramEnd::Failed(error),
    };
    let partner = Partner::begin(input, feed);
    let ended = listen(&events, limits, partner, audience);
    if !matches!(ended, Ok(())) {
        // Nobody has waited for the leader yet, so the group's number is still this program's.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    match (ended, child.wait()) {
        (Err(Cut::Time), _) => ProgramEnd::TimedOut(limits.time),
        (Err(Cut::Gone), _) => ProgramEnd::Abandoned,
        (Ok(()), Ok(status)) if status.success() => ProgramEnd::Passed,
        (Ok(()), Ok(status)) => ProgramEnd::Declined(status),
        (Ok(()), Err(error)) => ProgramEnd::Failed(error),
    }
}

/// What is heard of a program: its words, and its side of a [`Talk`].
struct Pipes {
    words: io::PipeReader,
    talk: Option<io::PipeReader>,
}

/// Starts a program in a process group of its own; what is heard of it comes out of the pipes.
fn start(mut command: Command, heard: Heard, talks: bool) -> io::Result<(Child, Pipes)> {
    let (words, writer) = io::pipe()?;
    let errors = match heard {
        Heard::Both => writer.try_clone()?.into(),
        Heard::Output => Stdio::null(),
    };
    let (talk, output) = if talks {
        let (talk, output) = io::pipe()?;
        drop(writer);
        (Some(talk), output)
    } else {
        (None, writer)
    };
    command.stdin(Stdio::piped()).stdout(output).stderr(errors).process_group(0);
    // With the command go our copies of the writing ends.
    Ok((command.spawn()?, Pipes { words, talk }))
}

/// Puts a thread to each of the things that can happen.
fn attend(mut child: Child, pipes: Pipes) -> io::Result<(Child, Receiver<Event>, Sender<Vec<u8>>)> {
    let (events, received) = sync_channel(PIECES);
    let (feed, input) = channel::<Vec<u8>>();
    let pid = Pid::from_child(&child);
    let (stdin, exits, said) = (child.stdin.take(), events.clone(), events.clone());
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let threads = thread("program-input")
        .spawn(move || {
            let Some(mut stdin) = stdin else { return };
            for piece in input {
                if stdin.write_all(&piece).is_err() {
                    // A program need not read what it is given.
                    return;
                }
            }
        })
        .and_then(|_| {
            let words = pipes.words;
            thread("program-output").spawn(move || read(words, &events, false))
        })
        .and_then(|_| match pipes.talk {
            Some(talk) => thread("program-talk").spawn(move || read(talk, &said, true)).map(drop),
            None => Ok(()),
        })
        .and_then(|()| {
            thread("program-exit").spawn(move || {
                // Only looked at, not waited for: its number must stay its own while it may be killed.
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
                let _ = exits.send(Event::Exited);
            })
        });
    match threads {
        Ok(_) => Ok((child, received, feed)),
        Err(error) => {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = child.wait();
            Err(error)
        }
    }
}

fn read(mut pipe: io::PipeReader, events: &SyncSender<Event>, of_talk: bool) {
    let mut buffer = vec![0; PIECE];
    loop {
        let event = match pipe.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => Event::Silence { of_talk },
            Ok(n) => {
                let piece = buffer.get(..n).unwrap_or_default().to_vec();
                if of_talk { Event::Said(piece) } else { Event::Words(piece) }
            }
        };
        let goes_on = !matches!(event, Event::Silence { .. });
        if events.send(event).is_err() || !goes_on {
            return;
        }
    }
}

/// Our side of a conversation. Once the way to the program is dropped, its standard input ends.
enum Partner<'a> {
    /// All is said, or nobody is listened to.
    Silent,
    Talking(&'a mut dyn Talk, Sender<Vec<u8>>),
}

impl<'a> Partner<'a> {
    /// Says what comes first. Whether the program still reads does not matter here: its end is noticed.
    fn begin(input: Input<'a>, feed: Sender<Vec<u8>>) -> Self {
        match input {
            Input::Text(text) => {
                let _ = feed.send(text.to_vec());
                Self::Silent
            }
            Input::Talk(talk) => {
                let _ = feed.send(talk.begin());
                Self::Talking(talk, feed)
            }
        }
    }

    fn hear(&mut self, piece: &[u8]) {
        let Self::Talking(talk, feed) = self else { return };
        match talk.hear(piece) {
            Some(said) if said.is_empty() => {}
            Some(said) => drop(feed.send(said)),
            None => *self = Self::Silent,
        }
    }

    fn n_pipes(&self) -> usize {
        match self {
            Self::Silent => 1,
            Self::Talking(..) => 2,
        }
    }
}

/// Why a program is not heard to its end.
enum Cut {
    Time,
    Gone,
}

impl From<Gone> for Cut {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// Passes on what the program says until it is over.
fn listen(
    events: &Receiver<Event>,
    limits: Limits,
    mut partner: Partner<'_>,
    audience: &mut dyn Audience,
) -> Result<(), Cut> {
    let deadline = Instant::now() + limits.time;
    let (mut end, mut n_open, mut room) = (None, partner.n_pipes(), MAX_WORDS);
    loop {
        let left = end.unwrap_or(deadline).saturating_duration_since(Instant::now());
        if left.is_zero() {
            return if end.is_some() { Ok(()) } else { Err(Cut::Time) };
        }
        match events.recv_timeout(limits.beat.map_or(left, |beat| left.min(beat))) {
            Ok(Event::Words(words)) => {
                let heard = words.get(..room.min(words.len())).unwrap_or_default();
                room -= heard.len();
                audience.hear(heard)?;
            }
            Ok(Event::Said(piece)) => partner.hear(&piece),
            Ok(Event::Silence { of_talk }) => {
                n_open = n_open.saturating_sub(1);
                if of_talk {
                    partner = Partner::Silent;
                }
            }
            Ok(Event::Exited) => end = Some(Instant::now() + AFTERGLOW),
            Err(RecvTimeoutError::Timeout) => audience.wait()?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if n_open == 0 && end.is_some() {
            return Ok(());
        }
    }
}
