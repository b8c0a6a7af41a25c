//! The conversation with the hook `proc-receive`, which carries out commands in the server's stead.
//!
//! The stages, in order:
//!
//! ```text
//! begin    S: version=1 [NUL capabilities], flush
//! Version  H: version=<n> [NUL capabilities], flush
//!          S: <old> <new> <ref> for each command, flush; push options, flush, where the hook asks for them
//! Report   H: ok <ref>, ng <ref> <reason>, option <key> [<value>], flush
//! Over     nothing more is read
//! ```
//!
//! [`Conversation::hear`] takes bytes as they come and gives what to say next; [`Conversation::close`] gives the answer
//! of a hook that is over, however far it came. Never fails: what a hook says wrongly becomes a complaint.
//!
//! Source: githooks(5), "proc-receive"; git's `builtin/receive-pack.c`, `run_proc_receive_hook`.

use std::collections::{BTreeMap, BTreeSet};

use bstr::{BString, ByteSlice};
use gix_hash::Kind;
use zit_model::{Oid, RefName};

use crate::pkt::{self, Decoded, Packet};
use crate::receive::PushRequest;
use crate::refs::push_oid_or_zero;
use crate::report::Rewritten;

/// The most bytes that a hook may say: ten thousand reports with all their options.
pub const MAX_ANSWER: usize = 4 << 20;

/// The most updates that a hook may report beside its commands.
pub const MAX_UPDATES: usize = 10_000;

/// The longest complaint, in bytes. Source: the buffer of git's `rp_error`.
const MAX_COMPLAINT: usize = 4096;

/// What the hook made of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing: it was not left to the hook.
    NotAsked,
    /// The hook ended before it could say.
    Unanswered,
    /// The hook said all that it had to say, and nothing of this.
    Unreported,
    /// It is done; the updates are what was really done, where that is not what the command says.
    Done(Vec<Rewritten>),
    /// It is refused, with the hook's reason.
    Refused(String),
    /// It is handed back, to be carried out as if there were no hook.
    FallThrough,
}

/// What the hook made of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "commands without an answer are refused"]
pub struct Answer {
    /// One for each command of the push, in its order.
    pub fates: Vec<Fate>,
    /// Whether anything was refused, missing or wrong: an atomic push fails then.
    pub failed: bool,
    /// What was wrong with what the hook said; the hook's own bytes are in it.
    pub complaint: Option<BString>,
}

/// What to do once something was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Write these bytes, and go on listening.
    Say(Vec<u8>),
    /// Nothing more is said or read.
    End,
}

enum Stage {
    Version { version: i64, wants_options: bool },
    Report { n_lines: usize },
    Over,
}

/// One conversation about a push.
pub struct Conversation<'a> {
    request: &'a PushRequest,
    kind: Kind,
    stage: Stage,
    /// The first command of each name.
    names: BTreeMap<&'a [u8], usize>,
    fates: Vec<Fate>,
    /// The command that the last line said `ok` of.
    open: Option<usize>,
    /// Whether an option has followed that line.
    has_update: bool,
    n_updates: usize,
    n_heard: usize,
    unread: Vec<u8>,
    complained_of_option: bool,
    failed: bool,
    complaint: Vec<u8>,
}

impl<'a> Conversation<'a> {
    /// A conversation about those commands of `request` whose places are in `left`.
    #[must_use]
    pub fn new(request: &'a PushRequest, left: &BTreeSet<usize>, kind: Kind) -> Self {
        let asked = |n| if left.contains(&n) { Fate::Unanswered } else { Fate::NotAsked };
        let mut names = BTreeMap::new();
        for (n, command) in request.commands.iter().enumerate() {
            names.entry(command.name.as_slice()).or_insert(n);
        }
        Self {
            request,
            kind,
            stage: Stage::Version { version: 0, wants_options: false },
            names,
            fates: (0..request.commands.len()).map(asked).collect(),
            open: None,
            has_update: false,
            n_updates: 0,
            n_heard: 0,
            unread: Vec::new(),
            complained_of_option: false,
            failed: false,
            complaint: Vec::new(),
        }
    }

    /// What is said first.
    #[must_use]
    pub fn begin(&self) -> Vec<u8> {
        let offered = &self.request.capabilities;
        let words = [(offered.atomic, "atomic"), (offered.push_options, "push-options")];
        let words: Vec<&str> =
            words.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect();
        let mut out = Vec::new();
        pkt::text_with(&mut out, |out| {
            out.extend_from_slice(b"version=1");
            if !words.is_empty() {
                out.push(0);
                out.extend_from_slice(words.join(" ").as_bytes());
            }
        });
        pkt::flush(&mut out);
        out
    }

    /// Takes what the hook says next: neither whole packets nor one at a time.
    pub fn hear(&mut self, bytes: &[u8]) -> Turn {
        if matches!(self.stage, Stage::Over) {
            return Turn::End;
        }
        self.n_heard = self.n_heard.saturating_add(bytes.len());
        if self.n_heard > MAX_ANSWER {
            return self.give_up(format!("proc-receive reported more than {MAX_ANSWER} bytes"));
        }
        self.unread.extend_from_slice(bytes);
        let heard = std::mem::take(&mut self.unread);
        let (mut rest, mut said) = (heard.as_slice(), Vec::new());
        loop {
            match pkt::decode(rest) {
                Ok(Decoded::Complete { packet, consumed }) => {
                    self.packet(packet, &mut said);
                    rest = rest.get(consumed..).unwrap_or_default();
                }
                Ok(Decoded::Incomplete { .. }) => break,
                Err(error) => return self.give_up(format!("proc-receive: {error}")),
            }
            if matches!(self.stage, Stage::Over) {
                return Turn::End;
            }
        }
        self.unread = rest.to_vec();
        Turn::Say(said)
    }

    /// The answer of a hook that says nothing more.
    pub fn close(mut self) -> Answer {
        match self.stage {
            Stage::Version { .. } => {
                self.complain(b"fail to negotiate version with proc-receive hook");
            }
            Stage::Report { n_lines: 0 } => self.complain(b"proc-receive exited abnormally"),
            Stage::Report { .. } => self.end_report(),
            Stage::Over => {}
        }
        let complaint = self.complaint.trim_end_with(|c| c == '\n');
        let complaint = (!complaint.is_empty()).then(|| complaint.into());
        Answer { fates: self.fates, failed: self.failed, complaint }
    }

    fn packet(&mut self, packet: Packet<'_>, said: &mut Vec<u8>) {
        // git reads each line as a string of C.
        let line = packet.as_line().map(|line| (line.as_bytes(), line.find_byte(0)));
        match (&mut self.stage, line) {
            (Stage::Version { version, wants_options }, Some((line, nul))) => {
                let (text, features) = line.split_at(nul.unwrap_or(line.len()));
                if let Some(number) = text.strip_prefix(b"version=").filter(|_| line.len() > 8) {
                    *version = leading_number(number);
                    let mut features = features.get(1..).unwrap_or_default().split_str(" ");
                    *wants_options |= features.any(|feature| feature == b"push-options");
                }
            }
            (Stage::Version { version: 0 | 1, wants_options }, None) => {
                let wants_options = *wants_options;
                self.stage = Stage::Report { n_lines: 0 };
                self.commands(wants_options, said);
            }
            (Stage::Version { version, .. }, None) => {
                let text = format!("proc-receive version '{version}' is not supported");
                self.give_up(text);
            }
            (Stage::Report { n_lines }, Some((line, nul))) => {
                *n_lines += 1;
                self.report_line(line.get(..nul.unwrap_or(line.len())).unwrap_or_default());
            }
            (Stage::Report { .. }, None) => {
                self.end_report();
                self.stage = Stage::Over;
            }
            (Stage::Over, _) => {}
        }
    }

    fn commands(&self, wants_options: bool, said: &mut Vec<u8>) {
        for (command, fate) in self.request.commands.iter().zip(&self.fates) {
            if *fate == Fate::NotAsked {
                continue;
            }
            pkt::frame(said, |out| {
                for oid in [command.old, command.new] {
                    push_oid_or_zero(out, oid, self.kind);
                    out.push(b' ');
                }
                out.extend_from_slice(&command.name);
            });
        }
        pkt::flush(said);
        if wants_options {
            for option in &self.request.options {
                pkt::frame(said, |out| out.extend_from_slice(option));
            }
            pkt::flush(said);
        }
    }

    /// # Source
    /// git's `builtin/receive-pack.c`, `read_proc_receive_report`.
    fn report_line(&mut self, line: &[u8]) {
        let Some((head, rest)) = line.split_once_str(" ") else {
            let text = [b"proc-receive reported incomplete status line: '", line, b"'"].concat();
            return self.complain(&text);
        };
        if head == b"option" {
            return self.option(rest);
        }
        self.open = None;
        let (name, reason) = match rest.split_once_str(" ") {
            Some((name, reason)) => (name, Some(reason)),
            None => (rest, None),
        };
        if head != b"ok" && head != b"ng" {
            let text = [b"proc-receive reported bad status '", head, b"' on ref '", name, b"'"];
            return self.complain(&text.concat());
        }
        let Some(&n) = self.names.get(name) else {
            let text = [b"proc-receive reported status on unknown ref: ", name].concat();
            return self.complain(&text);
        };
        let Some(fate) = self.fates.get_mut(n) else { return };
        match fate {
            Fate::NotAsked | Fate::FallThrough => {
                let text = [b"proc-receive reported status on unexpected ref: ", name].concat();
                return self.complain(&text);
            }
            Fate::Unanswered if head == b"ok" => *fate = Fate::Done(Vec::new()),
            Fate::Unanswered | Fate::Unreported | Fate::Done(_) | Fate::Refused(_) => {}
        }
        if head == b"ok" {
            (self.open, self.has_update) = (Some(n), false);
        } else {
            let reason = reason.unwrap_or(b"failed");
            *fate = Fate::Refused(String::from_utf8_lossy(reason).into_owned());
            self.failed = true;
        }
    }

    fn option(&mut self, option: &[u8]) {
        let (Some(n), kind) = (self.open, self.kind) else {
            self.failed = true;
            if !std::mem::replace(&mut self.complained_of_option, true) {
                self.complain(
                    b"proc-receive reported 'option' without a matching 'ok/ng' directive",
                );
            }
            return;
        };
        let (Some(command), Some(fate)) = (self.request.commands.get(n), self.fates.get_mut(n))
        else {
            return;
        };
        let (key, value) = option.split_once_str(" ").unwrap_or((option, b""));
        let Fate::Done(updates) = fate else { return };
        if key == b"fall-through" {
            *fate = Fate::FallThrough;
            return;
        }
        if !std::mem::replace(&mut self.has_update, true) {
            self.n_updates += 1;
            if self.n_updates > MAX_UPDATES {
                self.give_up(format!("proc-receive reported more than {MAX_UPDATES} updates"));
                return;
            }
            let (old, new) = (command.old, command.new);
            updates.push(Rewritten { refname: None, old, new, forced: false });
        }
        let Some(update) = updates.last_mut() else { return };
        match key {
            // What is no name or no oid says nothing.
            b"refname" => update.refname = RefName::new(value).ok(),
            b"old-oid" => update.old = oid(value, kind).map_or(update.old, Oid::from_gix),
            b"new-oid" => update.new = oid(value, kind).map_or(update.new, Oid::from_gix),
            b"forced-update" => update.forced = true,
            _ => {}
        }
    }

    fn end_report(&mut self) {
        for fate in &mut self.fates {
            if *fate == Fate::Unanswered {
                *fate = Fate::Unreported;
                self.failed = true;
            }
        }
    }

    fn give_up(&mut self, complaint: impl AsRef<[u8]>) -> Turn {
        self.complain(complaint.as_ref());
        self.unread = Vec::new();
        self.stage = Stage::Over;
        Turn::End
    }

    fn complain(&mut self, text: &[u8]) {
        self.failed = true;
        self.complaint.extend_from_slice(text);
        self.complaint.push(b'\n');
        self.complaint.truncate(MAX_COMPLAINT);
    }
}

/// The oid that `value` begins with.
fn oid(value: &[u8], kind: Kind) -> Option<gix_hash::ObjectId> {
    gix_hash::ObjectId::from_hex(value.get(..kind.len_in_hex())?).ok()
}

/// The number that text begins with, 0 without one, as C's `atoi` reads it.
fn leading_number(text: &[u8]) -> i64 {
    let (sign, digits) = text.strip_prefix(b"-").map_or((1, text), |digits| (-1, digits));
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, digit| {
        number.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    sign * number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::receive::{ClientCapabilities, Command};

    fn oid(digit: u8) -> Oid {
        Oid::from_hex(&[digit; 40]).unwrap()
    }

    fn request() -> PushRequest {
        let command = |name: &str| Command { name: name.into(), old: None, new: Some(oid(b'2')) };
        PushRequest {
            commands: ["refs/for/a", "refs/for/b", "refs/heads/c"].map(command).into(),
            options: vec!["one".into(), "".into()],
            capabilities: ClientCapabilities {
                atomic: true,
                push_options: true,
                ..ClientCapabilities::default()
            },
            ..PushRequest::default()
        }
    }

    fn packets(lines: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            match *line {
                "flush" => pkt::flush(&mut out),
                line => pkt::data(&mut out, line.as_bytes()).unwrap(),
            }
        }
        out
    }

    /// The answer to what the hook says of the first two commands, and what was said to it.
    fn talk(request: &PushRequest, lines: &[&str]) -> (Answer, Vec<u8>) {
        let mut talk = Conversation::new(request, &BTreeSet::from([0, 1]), Kind::Sha1);
        let mut said = Vec::new();
        // Byte by byte: where a piece ends means nothing.
        for byte in packets(lines) {
            if let Turn::Say(bytes) = talk.hear(&[byte]) {
                said.extend_from_slice(&bytes);
            }
        }
        (talk.close(), said)
    }

    #[test]
    fn the_hook_is_told_its_commands_and_the_options_that_it_asks_for() {
        let request = request();
        let talk_of = Conversation::new(&request, &BTreeSet::from([0, 1]), Kind::Sha1);
        assert_eq!(talk_of.begin(), b"0022version=1\0atomic push-options\n0000".as_slice());
        let (zero, two) = ("0".repeat(40), "2".repeat(40));
        let commands = [format!("{zero} {two} refs/for/a"), format!("{zero} {two} refs/for/b")];
        let [a, b] = commands.each_ref().map(String::as_str);
        let (_, said) = talk(&request, &["version=1\n", "flush"]);
        assert_eq!(said, packets(&[a, b, "flush"]));
        let (_, said) = talk(&request, &["version=1\0x push-options", "flush"]);
        assert_eq!(said, packets(&[a, b, "flush", "one", "", "flush"]));
    }

    #[test]
    fn each_command_gets_the_fate_that_is_reported() {
        let request = request();
        let new = format!("option new-oid {}", "3".repeat(40));
        let moved = |name: &str, new| Rewritten {
            refname: Some(name.parse().unwrap()),
            old: None,
            new: Some(new),
            forced: false,
        };
        for (lines, fates, complaint) in [
            (
                vec!["ok refs/for/a", "ng refs/for/b no, not now"],
                [Fate::Done(vec![]), Fate::Refused("no, not now".into())],
                None,
            ),
            (
                vec![
                    "ok refs/for/a",
                    "option refname refs/x/1",
                    "ok refs/for/a",
                    "option refname refs/x/2",
                    new.as_str(),
                    "ok refs/for/b",
                    "option fall-through",
                ],
                [
                    Fate::Done(vec![moved("refs/x/1", oid(b'2')), moved("refs/x/2", oid(b'3'))]),
                    Fate::FallThrough,
                ],
                None,
            ),
            (
                vec!["ok refs/for/a", "ok refs/heads/c", "ok refs/for/d", "what refs/x"],
                [Fate::Done(vec![]), Fate::Unreported],
                Some(concat!(
                    "proc-receive reported status on unexpected ref: refs/heads/c\n",
                    "proc-receive reported status on unknown ref: refs/for/d\n",
                    "proc-receive reported bad status 'what' on ref 'refs/x'"
                )),
            ),
        ] {
            let lines =
                [vec!["version=1", "flush"], lines, vec!["flush", "ng refs/for/a"]].concat();
            let (answer, _) = talk(&request, &lines);
            let [a, b] = fates;
            let failed = b != Fate::FallThrough;
            assert_eq!(answer.fates, [a, b, Fate::NotAsked], "{lines:?}");
            assert_eq!(answer.complaint, complaint.map(BString::from), "{lines:?}");
            assert_eq!(answer.failed, failed, "{lines:?}");
        }
    }

    #[test]
    fn a_hook_that_ends_early_leaves_its_commands_unanswered() {
        for (lines, complaint) in [
            (vec![], "fail to negotiate version with proc-receive hook"),
            (vec!["version=1"], "fail to negotiate version with proc-receive hook"),
            (vec!["version=02x", "flush"], "proc-receive version '2' is not supported"),
            (vec!["version=-1", "flush"], "proc-receive version '-1' is not supported"),
            (vec!["version=1", "flush"], "proc-receive exited abnormally"),
        ] {
            let (answer, _) = talk(&request(), &lines);
            assert_eq!(answer.complaint, Some(complaint.into()), "{lines:?}");
            assert_eq!(answer.fates, [Fate::Unanswered, Fate::Unanswered, Fate::NotAsked]);
            assert!(answer.failed);
        }
    }

    #[test]
    fn a_hook_that_never_stops_is_not_heard_to_its_end() {
        let request = request();
        for lines in [["ok refs/for/a", "option refname x"], ["what", "ever"]] {
            let mut talk = Conversation::new(&request, &BTreeSet::from([0]), Kind::Sha1);
            assert_eq!(talk.hear(&packets(&["flush"])), talk_says(&request));
            let piece = packets(&lines);
            let n_pieces = (1..=MAX_ANSWER).find(|_| talk.hear(&piece) == Turn::End).unwrap();
            assert!(n_pieces * piece.len() <= MAX_ANSWER + 2 * piece.len());
            let answer = talk.close();
            assert!(answer.failed && answer.complaint.unwrap().len() <= MAX_COMPLAINT);
        }
    }

    fn talk_says(request: &PushRequest) -> Turn {
        let mut said = Vec::new();
        Conversation::new(request, &BTreeSet::from([0]), Kind::Sha1).commands(false, &mut said);
        Turn::Say(said)
    }

    proptest! {
        #[test]
        fn any_bytes_are_heard_without_panic(
            lines in proptest::collection::vec(
                prop_oneof!["(ok|ng|option|\\PC{0,5}) ?(refs/for/[ab])?\\PC{0,9}", "flush", "version=\\PC{0,9}"],
                0..12,
            ),
            rest in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let request = request();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let mut talk = Conversation::new(&request, &BTreeSet::from([0, 1]), Kind::Sha1);
            let _ = talk.hear(&packets(&lines));
            let _ = talk.hear(&rest);
            let answer = talk.close();
            prop_assert_eq!(answer.fates.len(), 3);
        }
    }
}
