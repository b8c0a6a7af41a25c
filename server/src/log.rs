//! `zit-server log`: a repository's journal, one acknowledged transaction a line, or one JSON object a line.
//!
//! Reads beside a running server, without a lock, what was there when it began. What others wrote stands in lines only as
//! plain words or in quotes, in JSON only as ASCII: it cannot make a line or change how one looks.
//!
//! Never writes to the repository.

use std::io::{self, Write};
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use serde::Serialize;
use zit_model::{Oid, RefUpdate, UnixSeconds, quote};
use zit_store::journal::{
    Fact, InlineObject, InlinePack, JOURNAL_FOLDER, Journal, JournalError, Record, Seq,
};
use zit_store::{Access, Store, StoreError};

use crate::cli::LogArgs;

/// How many ref changes or facts one line for people shows.
const MAX_SHOWN: usize = 20;

/// Why the journal is not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// The repository does not open.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing was written to a journal yet.
    #[error("{} keeps no journal", .0.display())]
    None(PathBuf),
    /// The journal does not open or does not verify.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Nobody takes the lines.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl LogError {
    /// What to do about it, where there is something to do.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Store(error) => error.hint(),
            Self::None(_) => Some("the first push to a server makes one"),
            Self::Journal(JournalError::Retired { .. }) => Some("leave out --since"),
            Self::Journal(error) => error.hint(),
            Self::Output(_) => None,
        }
    }
}

/// Shows or verifies the journal of the repository that `args` names.
pub(crate) fn run(args: &LogArgs, out: &mut dyn Write) -> Result<(), LogError> {
    let folder = Store::open(&args.path, Access::ReadOnly)?.common_dir().join(JOURNAL_FOLDER);
    if !folder.is_dir() {
        return Err(LogError::None(args.path.clone()));
    }
    let (journal, _) = Journal::read_only(&folder)?;
    let shown =
        if args.verify { verify(&journal, args.json, out) } else { show(&journal, args, out) };
    match shown {
        // Whoever reads has seen enough.
        Err(LogError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        shown => shown,
    }
}

fn show(journal: &Journal, args: &LogArgs, out: &mut dyn Write) -> Result<(), LogError> {
    let from = match args.since {
        Some(seq) => Seq(seq),
        None => journal.oldest()?.unwrap_or_default(),
    };
    for record in journal.read_from(from)? {
        let record = record?;
        let line = if args.json { json(&Line::of(&record)) } else { text(&record) };
        writeln!(out, "{line}").map_err(LogError::Output)?;
    }
    out.flush().map_err(LogError::Output)
}

fn verify(journal: &Journal, as_json: bool, out: &mut dyn Write) -> Result<(), LogError> {
    let verified = journal.verify()?;
    let (first, end) = verified.records;
    let (n_records, checkpoints) = (end.0.saturating_sub(first.0), verified.checkpoints);
    let line = if as_json {
        json(&Summary { first: first.0, records: n_records, checkpoints })
    } else if n_records == 0 {
        format!("no records; {checkpoints} checkpoints verified")
    } else {
        format!("records {first} to {} and {checkpoints} checkpoints verified", journal.tail().0)
    };
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(LogError::Output)
}

/// A record for people:
/// `#42 2026-11-30T18:00:00Z alice/agent-7 push refs/heads/x 012345678901..987654321098 +2 objects`.
fn text(record: &Record) -> String {
    let time = UnixSeconds(record.time_ms / 1000).to_rfc3339();
    let mut line = format!("#{} {time} {} {}", record.seq, speaker(record), record.origin.as_str());
    let changes = record.changes.iter().map(change);
    let facts = record.facts.iter().map(fact);
    for part in some_of(changes, record.changes.len()).chain(some_of(facts, record.facts.len())) {
        line.push(' ');
        line.push_str(&part);
    }
    let n_packs = record.packs.len() + record.named_packs.len();
    for (count, noun) in [(record.objects.len(), "object"), (n_packs, "pack")] {
        if count > 0 {
            line.push_str(&format!(" +{count} {noun}{}", if count == 1 { "" } else { "s" }));
        }
    }
    line
}

/// The first of `count` parts, and how many more there are.
fn some_of(parts: impl Iterator<Item = String>, count: usize) -> impl Iterator<Item = String> {
    let more = count.checked_sub(MAX_SHOWN).filter(|more| *more > 0);
    parts.take(MAX_SHOWN).chain(more.map(|more| format!("(and {more} more)")))
}

fn speaker(record: &Record) -> String {
    let principal = word(record.principal.as_bstr(), "");
    if record.agent.is_empty() {
        return principal;
    }
    format!("{principal}/{}", word(record.agent.as_bstr(), ""))
}

fn change(update: &RefUpdate) -> String {
    let short = |oid: Option<Oid>| oid.map_or_else(|| "none".to_owned(), |oid| oid.short());
    let (old, new) = (update.change.old_value(), update.change.new_value());
    format!("{} {}..{}", word(update.name.as_bstr(), "/"), short(old), short(new))
}

fn fact(fact: &Fact) -> String {
    let mut text = word(fact.kind.as_bstr(), "");
    if !fact.key.is_empty() {
        text.push_str(&format!("[{}]", word(fact.key.as_bstr(), "/")));
    }
    format!("{text}={}", word(fact.value.as_bstr(), "/"))
}

/// Foreign text as one word: as it is if it is plain, else in quotes. `also` is plain here.
fn word(text: &BStr, also: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-@:#".contains(c) || also.contains(c);
    let text = text.to_str_lossy();
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        quote::quoted(&text)
    }
}

/// The object as one line of ASCII.
pub(crate) fn json(object: &impl Serialize) -> String {
    let text = serde_json::to_string(object).expect("structs with text as keys always serialize");
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_control() {
            line.push(c);
        } else {
            // Only strings hold other characters, and there an escape means the same.
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                line.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    line
}

/// What `--verify --json` prints.
#[derive(Serialize)]
struct Summary {
    first: u64,
    records: u64,
    checkpoints: usize,
}

/// A record, as `--json` prints it.
#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    time: String,
    time_ms: u64,
    principal: Text<'a>,
    agent: Option<Text<'a>>,
    origin: &'static str,
    changes: Vec<ChangeLine<'a>>,
    objects: Vec<ObjectLine>,
    packs: Vec<PackLine<'a>>,
    facts: Vec<FactLine<'a>>,
    prev: String,
}

#[derive(Serialize)]
struct ChangeLine<'a> {
    #[serde(rename = "ref")]
    name: Text<'a>,
    old: Option<String>,
    new: Option<String>,
}

#[derive(Serialize)]
struct ObjectLine {
    oid: String,
    kind: String,
    bytes: usize,
}

#[derive(Serialize)]
struct PackLine<'a> {
    name: Text<'a>,
    /// The pack's size where the journal holds it.
    bytes: Option<usize>,
}

#[derive(Serialize)]
struct FactLine<'a> {
    kind: Text<'a>,
    key: Text<'a>,
    value: Text<'a>,
}

/// A string, or `{"hex": "…"}` for bytes that are not UTF-8.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Utf8(&'a str),
    Bytes { hex: String },
}

impl<'a> Text<'a> {
    fn of(bytes: &'a BStr) -> Self {
        bytes.to_str().map_or_else(
            |_| Self::Bytes { hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect() },
            Self::Utf8,
        )
    }
}

impl<'a> Line<'a> {
    fn of(record: &'a Record) -> Self {
        let inline = |pack: &'a InlinePack| (&pack.name, Some(pack.pack.len()));
        let named = |name: &'a BString| (name, None);
        let packs = record.packs.iter().map(inline).chain(record.named_packs.iter().map(named));
        Self {
            seq: record.seq.0,
            time: UnixSeconds(record.time_ms / 1000).to_rfc3339(),
            time_ms: record.time_ms,
            principal: Text::of(record.principal.as_bstr()),
            agent: (!record.agent.is_empty()).then(|| Text::of(record.agent.as_bstr())),
            origin: record.origin.as_str(),
            changes: record.changes.iter().map(ChangeLine::of).collect(),
            objects: record.objects.iter().map(ObjectLine::of).collect(),
            packs: packs
                .map(|(name, bytes)| PackLine { name: Text::of(name.as_bstr()), bytes })
                .collect(),
            facts: record.facts.iter().map(FactLine::of).collect(),
            prev: record.prev.to_string(),
        }
    }
}

impl<'a> ChangeLine<'a> {
    fn of(update: &'a RefUpdate) -> Self {
        Self {
            name: Text::of(update.name.as_bstr()),
            old: update.change.old_value().map(|oid| oid.to_string()),
            new: update.change.new_value().map(|oid| oid.to_string()),
        }
    }
}

impl ObjectLine {
    fn of(object: &InlineObject) -> Self {
        Self {
            oid: object.oid.to_string(),
            kind: object.kind.to_string(),
            bytes: object.bytes.len(),
        }
    }
}

impl<'a> FactLine<'a> {
    fn of(fact: &'a Fact) -> Self {
        let [kind, key, value] =
            [&fact.kind, &fact.key, &fact.value].map(|text| Text::of(text.as_bstr()));
        Self { kind, key, value }
    }
}

#[cfg(test)]
mod tests {
    use zit_model::{RefChange, RefName};
    use zit_store::Kind;
    use zit_store::journal::{Draft, JournalOptions, Origin};

    use super::*;

    fn update(name: &[u8], old: Option<u8>, new: Option<u8>) -> RefUpdate {
        let oid = |digit: u8| Oid::from_hex(&[digit; 40]).unwrap();
        let change = RefChange::between(old.map(oid), new.map(oid)).unwrap();
        RefUpdate { name: RefName::new(name).unwrap(), change }
    }

    /// A push, a landing that deletes, and one with text that means harm.
    fn three() -> Vec<Draft> {
        let mut push = Draft::new(1_764_525_600_123, "alice", Origin::Push);
        push.agent = "agent-7".into();
        push.changes = vec![update(b"refs/heads/x", Some(b'1'), Some(b'2'))];
        push.packs = vec![InlinePack { name: "pack-1".into(), pack: vec![0; 5], idx: vec![0; 3] }];
        let mut landing = Draft::new(1_764_525_601_000, "alice", Origin::Referee);
        landing.changes = vec![
            update(b"refs/zit/claim/a.rs#f", Some(b'1'), None),
            update(b"refs/zit/current", None, Some(b'2')),
        ];
        landing.facts = vec![Fact::epoch(3), Fact::owner("agent-7".into(), "alice".into())];
        let mut harm = Draft::new(0, "a\nb/c", Origin::External);
        harm.agent = BString::from(&b"\xff"[..]);
        harm.changes = vec![update("refs/heads/\u{202e}x".as_bytes(), None, Some(b'3'))];
        let oid = Oid::from_hex(&[b'4'; 40]).unwrap();
        harm.objects = vec![InlineObject { kind: Kind::Blob, oid, bytes: vec![0; 7] }];
        harm.facts = vec![Fact::new("k", "", "x\" y=\"\u{1b}[2J\u{1f600}")];
        vec![push, landing, harm]
    }

    /// A repository with a journal of those.
    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.git");
        Store::init(&path).unwrap();
        let (journal, _) =
            Journal::open(&path.join(JOURNAL_FOLDER), JournalOptions::default()).unwrap();
        journal.append(&three()).unwrap();
        journal.checkpoint(Seq(2), b"state").unwrap();
        folder
    }

    fn printed(folder: &tempfile::TempDir, change: impl FnOnce(&mut LogArgs)) -> String {
        let path = folder.path().join("r.git");
        let mut args = LogArgs { path, json: false, since: None, verify: false };
        change(&mut args);
        let mut out = Vec::new();
        run(&args, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_record_is_a_line_and_foreign_text_stays_inside_its_quotes() {
        insta::assert_snapshot!(printed(&repository(), |_| ()), @r#"
        #1 2025-11-30T18:00:00Z alice/agent-7 push refs/heads/x 111111111111..222222222222 +1 pack
        #2 2025-11-30T18:00:01Z alice referee refs/zit/claim/a.rs#f 111111111111..none refs/zit/current none..222222222222 epoch=3 owner[agent-7]=alice
        #3 1970-01-01T00:00:00Z "a b/c"/"�" external "refs/heads/ x" none..333333333333 k="x' y=' [2J😀" +1 object
        "#);
    }

    #[test]
    fn json_is_one_ascii_object_a_line_and_loses_nothing() {
        let lines = printed(&repository(), |args| args.json = true);
        assert!(lines.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
        let last = lines.lines().last().unwrap();
        insta::assert_snapshot!(last, @r#"{"seq":3,"time":"1970-01-01T00:00:00Z","time_ms":0,"principal":"a\nb/c","agent":{"hex":"ff"},"origin":"external","changes":[{"ref":"refs/heads/\u202ex","old":null,"new":"3333333333333333333333333333333333333333"}],"objects":[{"oid":"4444444444444444444444444444444444444444","kind":"blob","bytes":7}],"packs":[],"facts":[{"kind":"k","key":"","value":"x\" y=\"\u001b[2J\ud83d\ude00"}],"prev":"d955db097282142d7c828e34bc02a4093f430329a3b2dd6274348f433721d36c"}"#);
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(last["facts"][0]["value"], "x\" y=\"\u{1b}[2J\u{1f600}");
        assert_eq!(last["changes"][0]["ref"], "refs/heads/\u{202e}x");
    }

    #[test]
    fn since_starts_at_a_record_and_one_to_come_gives_nothing() {
        let folder = repository();
        for (since, expected) in [(0, 3), (1, 3), (3, 1), (4, 0), (u64::MAX, 0)] {
            let lines = printed(&folder, |args| args.since = Some(since));
            assert_eq!(lines.lines().count(), expected, "since {since}");
        }
    }

    #[test]
    fn verify_says_what_was_verified() {
        let folder = repository();
        let text = printed(&folder, |args| args.verify = true);
        assert_eq!(text, "records 1 to 3 and 1 checkpoints verified\n");
        let json = printed(&folder, |args| (args.verify, args.json) = (true, true));
        assert_eq!(json, "{\"first\":1,\"records\":3,\"checkpoints\":1}\n");
    }

    #[test]
    fn a_torn_end_is_passed_over_and_damage_is_named() {
        let folder = repository();
        let segment =
            folder.path().join("r.git").join(JOURNAL_FOLDER).join("00000000000000000001.log");
        let whole = std::fs::read(&segment).unwrap();
        std::fs::write(&segment, [&whole[..], &whole[..90]].concat()).unwrap();
        assert_eq!(printed(&folder, |_| ()).lines().count(), 3);
        let mut damaged = whole;
        damaged[100] ^= 1;
        std::fs::write(&segment, damaged).unwrap();
        let path = folder.path().join("r.git");
        let args = LogArgs { path, json: false, since: None, verify: true };
        let error = run(&args, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("00001.log is damaged at byte 0"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("restore")));
    }

    #[test]
    fn a_repository_without_a_journal_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.git");
        Store::init(&path).unwrap();
        let args = LogArgs { path, json: false, since: None, verify: false };
        let error = run(&args, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().ends_with("r.git keeps no journal"), "{error}");
    }
}
