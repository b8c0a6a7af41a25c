//! One hook from its start to its end: fed, listened to, and killed with its children when it must end.
//!
//! Three threads turn what can happen into one closed list of [`Event`]s: one feeds the hook, one reads it, one learns
//! that it has exited. Standard output and error are one pipe, so that their order is kept.
//!
//! A child that the hook left behind may hold the pipe open for hours. It is left alone; what it writes once the hook
//! has been over for [`AFTERGLOW`] goes nowhere.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{Audience, Gone, HookEnd};

/// How much of what one hook writes is passed on, in bytes. The rest is thrown away.
const MAX_WORDS: usize = 4 << 20;

/// How much is read at once, in bytes.
const PIECE: usize = 8 * 1024;

/// How many pieces wait for the audience; then the hook waits.
const PIECES: usize = 4;

/// How long after the end of a hook the programs that it writes through may take to pass its last words on.
const AFTERGLOW: Duration = Duration::from_millis(500);

/// `execve` says this of a script without a first line that names its interpreter.
const ENOEXEC: i32 = 8;

/// How long a hook may run, and how often its audience hears of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For the hook.
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

enum Event {
    Words(Vec<u8>),
    Silence,
    Exited,
}

/// Runs `file`, which `command` makes a command of.
pub(crate) fn run(
    command: &mut dyn FnMut(&[&OsStr]) -> Command,
    file: &Path,
    input: &[u8],
    limits: Limits,
    audience: &mut dyn Audience,
) -> HookEnd {
    // As git does it: a script that names no interpreter is the shell's.
    let started = match start(command(&[file.as_os_str()]), limits.heard) {
        Err(error) if error.raw_os_error() == Some(ENOEXEC) => {
            start(command(&[OsStr::new("/bin/sh"), file.as_os_str()]), limits.heard)
        }
        started => started,
    };
    let (mut child, events) = match started.and_then(|(child, words)| attend(child, words, input)) {
        Ok(started) => started,
        Err(error) => return HookEnd::Failed(error),
    };
    let ended = listen(&events, limits, audience);
    if !matches!(ended, Ok(())) {
        // Nobody has waited for the leader yet, so the group's number is still this hook's.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    match (ended, child.wait()) {
        (Err(Cut::Time), _) => HookEnd::TimedOut(limits.time),
        (Err(Cut::Gone), _) => HookEnd::Abandoned,
        (Ok(()), Ok(status)) if status.success() => HookEnd::Passed,
        (Ok(()), Ok(status)) => HookEnd::Declined(status),
        (Ok(()), Err(error)) => HookEnd::Failed(error),
    }
}

/// Starts a hook in a process group of its own; what is heard of it comes out of the pipe.
fn start(mut command: Command, heard: Heard) -> io::Result<(Child, io::PipeReader)> {
    let (reader, writer) = io::pipe()?;
    let errors = match heard {
        Heard::Both => writer.try_clone()?.into(),
        Heard::Output => Stdio::null(),
    };
    command.stdin(Stdio::piped()).stdout(writer).stderr(errors).process_group(0);
    // With the command goes our copy of the writing end.
    Ok((command.spawn()?, reader))
}

/// Puts a thread to each of the three things that can happen.
fn attend(
    mut child: Child,
    words: io::PipeReader,
    input: &[u8],
) -> io::Result<(Child, Receiver<Event>)> {
    let (events, received) = sync_channel(PIECES);
    let pid = Pid::from_child(&child);
    let (stdin, input, exits) = (child.stdin.take(), input.to_vec(), events.clone());
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    let threads = thread("hook-input")
        .spawn(move || {
            if let Some(mut stdin) = stdin {
                // A hook need not read what it is given.
                let _ = stdin.write_all(&input);
            }
        })
        .and_then(|_| thread("hook-output").spawn(move || read(words, &events)))
        .and_then(|_| {
            thread("hook-exit").spawn(move || {
                // Only looked at, not waited for: its number must stay its own while it may be killed.
                let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
                let _ = exits.send(Event::Exited);
            })
        });
    match threads {
        Ok(_) => Ok((child, received)),
        Err(error) => {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = child.wait();
            Err(error)
        }
    }
}

fn read(mut words: io::PipeReader, events: &SyncSender<Event>) {
    let mut buffer = vec![0; PIECE];
    loop {
        let event = match words.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => Event::Silence,
            Ok(n) => Event::Words(buffer.get(..n).unwrap_or_default().to_vec()),
        };
        let goes_on = matches!(event, Event::Words(_));
        if events.send(event).is_err() || !goes_on {
            return;
        }
    }
}

/// Why a hook is not heard to its end.
enum Cut {
    Time,
    Gone,
}

impl From<Gone> for Cut {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

/// Passes on what the hook says until it is over.
fn listen(
    events: &Receiver<Event>,
    limits: Limits,
    audience: &mut dyn Audience,
) -> Result<(), Cut> {
    let deadline = Instant::now() + limits.time;
    let (mut end, mut silent, mut room) = (None, false, MAX_WORDS);
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
            Ok(Event::Silence) => silent = true,
            Ok(Event::Exited) => end = Some(Instant::now() + AFTERGLOW),
            Err(RecvTimeoutError::Timeout) => audience.wait()?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        if silent && end.is_some() {
            return Ok(());
        }
    }
}
