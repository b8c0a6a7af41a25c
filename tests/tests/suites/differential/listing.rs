//! Lists of refs: advertisements of both services in every version, and `ls-refs`.

use fastrand::Rng;
use gix_hash::Kind as Format;
use zit_tests::Git;
use zit_tests::wire::pkt;

use super::cases::Cases;
use super::twins::{Arena, Side, Twins};

/// What each kind of configuration offers.
const SETTINGS: &[&[&str]] = &[
    &[],
    &["uploadpack.allowRefInWant=true", "uploadpack.allowSidebandAll=true"],
    &["uploadpack.allowAnySHA1InWant=true", "lsrefs.unborn=allow"],
    &["uploadpack.allowReachableSHA1InWant=true", "transfer.advertiseObjectInfo=true"],
    &["uploadpack.allowTipSHA1InWant=true", "lsrefs.unborn=ignore"],
    &["uploadpack.allowFilter=false", "receive.advertiseAtomic=false"],
    &["repack.useDeltaBaseOffset=false"],
];

#[test]
fn lists_of_refs_are_the_peers() {
    run("lists_of_refs_are_the_peers", 12, Format::Sha1);
}

#[test]
fn lists_of_refs_are_the_peers_with_sha256() {
    run("lists_of_refs_are_the_peers_with_sha256", 6, Format::Sha256);
}

#[track_caller]
fn run(test: &'static str, percent: u64, format: Format) {
    let arena = Arena::open();
    let mut cases = Cases::of(test, percent, 15);
    for group in cases.groups() {
        let seed = cases.seed_of_group(group);
        let settings = SETTINGS[usize::try_from(seed).unwrap_or_default() % SETTINGS.len()];
        let twins = arena.twins(&format!("g{group}"), format, seed, settings);
        // Our server has read the refs once when they change.
        twins.ours.advertisement("git-upload-pack", 2);
        let mut random = Rng::with_seed(seed);
        for _ in 0..random.usize(0..6) {
            change_refs(&twins, &mut random);
        }
        for (n, mut random) in cases.in_group(group) {
            let question = Question::random(&twins, &mut random);
            match compare(&twins, &question) {
                Ok(outcome) => cases.saw(outcome),
                Err(what) => cases.fail(n, &format!("{what}\n{settings:?} {question:?}")),
            }
        }
    }
    cases.finish(&[(REFS, 60)]);
}

/// What is asked.
#[derive(Debug)]
enum Question {
    Advertisement { service: &'static str, version: u8 },
    LsRefs { arguments: Vec<String> },
}

const REFS: &str = "a list";
const SILENT: &str = "an answer that git breaks off";

impl Question {
    fn random(twins: &Twins, random: &mut Rng) -> Self {
        if random.u8(0..4) == 0 {
            let service = ["git-upload-pack", "git-receive-pack"][random.usize(0..2)];
            return Self::Advertisement { service, version: random.u8(0..3) };
        }
        let mut arguments = Vec::new();
        for flag in ["peel", "symrefs", "unborn"] {
            if random.bool() {
                arguments.push(flag.to_owned());
            }
        }
        for _ in 0..random.usize(0..4) {
            arguments.push(format!("ref-prefix {}", prefix(twins, random)));
        }
        if random.u8(0..30) == 0 {
            arguments.push("nonsense".to_owned());
        }
        random.shuffle(&mut arguments);
        Self::LsRefs { arguments }
    }

    /// The answer as lines; `None` when it is broken off or an error.
    fn ask(&self, side: &Side, format: Format) -> Result<Option<Vec<String>>, String> {
        let response = match self {
            Self::Advertisement { service, version } => side.advertisement(service, *version),
            Self::LsRefs { arguments } => {
                side.post("git-upload-pack", 2, &ls_refs(arguments, format))
            }
        };
        if response.status != 200 {
            return Err(format!("status {}", response.status));
        }
        Ok(lines(&response.body))
    }
}

fn compare(twins: &Twins, question: &Question) -> Result<&'static str, String> {
    let [ours, theirs] = twins.sides().map(|side| question.ask(side, twins.format));
    let (ours, theirs) = (normal(ours?), normal(theirs?));
    if ours != theirs {
        return Err(format!("the lists differ\nours: {ours:#?}\ntheirs: {theirs:#?}"));
    }
    Ok(if theirs.is_some() { REFS } else { SILENT })
}

/// Without what our server adds (rule 1) and without the names that the two servers give themselves.
fn normal(lines: Option<Vec<String>>) -> Option<Vec<String>> {
    let own = |word: &str| word.starts_with("agent=") || word == "zit=1";
    let strip = |line: String| match line.split_once('\0') {
        Some((line, capabilities)) => {
            let kept = capabilities.split(' ').filter(|word| !own(word)).collect::<Vec<_>>();
            format!("{line}\0{}", kept.join(" "))
        }
        None => line,
    };
    let lines = lines?.into_iter();
    Some(lines.filter(|line| !line.contains(" refs/zit/") && !own(line)).map(strip).collect())
}

fn ls_refs(arguments: &[String], format: Format) -> Vec<u8> {
    let mut body =
        [pkt(b"command=ls-refs\n"), pkt(format!("object-format={format}").as_bytes())].concat();
    body.extend_from_slice(b"0001");
    for argument in arguments {
        body.extend(pkt(format!("{argument}\n").as_bytes()));
    }
    body.extend_from_slice(b"0000");
    body
}

/// The packets as text, special ones by their number; `None` unless the last one is a flush.
fn lines(mut body: &[u8]) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    while let Some(head) = body.get(..4) {
        let n = usize::from_str_radix(std::str::from_utf8(head).ok()?, 16).ok()?;
        let n = n.max(4);
        let line = String::from_utf8_lossy(body.get(4..n)?).trim_end_matches('\n').to_owned();
        if line.starts_with("ERR ") {
            return None;
        }
        lines.push(if n == 4 { String::from_utf8_lossy(head).into_owned() } else { line });
        body = &body[n..];
    }
    (lines.last().map(String::as_str) == Some("0000")).then_some(lines)
}

/// A start of a ref's name, or of no ref's.
fn prefix(twins: &Twins, random: &mut Rng) -> String {
    let name = &twins.refs[random.usize(0..twins.refs.len())].0;
    match random.u8(0..6) {
        0 => "HEAD".to_owned(),
        1 => ["refs/heads/", "refs/tags/", "refs/", "H", "refs/heads/alias"][random.usize(0..5)]
            .to_owned(),
        2 => "refs/nowhere/".to_owned(),
        3 => name.clone(),
        _ => name[..random.usize(1..=name.len())].to_owned(),
    }
}

/// One change that an administrator makes with stock git, in both repositories.
fn change_refs(twins: &Twins, random: &mut Rng) {
    let any = |random: &mut Rng| twins.refs[random.usize(0..twins.refs.len())].clone();
    let (name, oid) = any(random);
    let kind = random.u8(0..10);
    let number = random.u16(..);
    let other = any(random).0;
    for side in twins.sides() {
        let git = &side.bare;
        // What git refuses, such as a tag on a branch, it refuses in both.
        let _ = match kind {
            0 => git.run(["pack-refs", "--all"]),
            1 => git.run(["update-ref", "-d", &name]),
            2 => git.run(["update-ref", &other, &oid]),
            3 => git.run(["update-ref", &format!("refs/heads/new/{number}"), &oid]),
            4 => git.run(["symbolic-ref", "HEAD", &name]),
            5 => git.run(["symbolic-ref", &format!("refs/heads/symbolic-{number}"), &name]),
            6 => git.run(["update-ref", "--no-deref", "HEAD", &oid]),
            7 => git.run(["symbolic-ref", "HEAD", "refs/heads/unborn"]),
            8 => break_a_ref(git, number, twins.format),
            _ => git.run(["gc", "-q"]),
        };
    }
}

/// A ref that names an object which is nowhere, as a bad backup leaves it.
fn break_a_ref(git: &Git, number: u16, format: Format) -> zit_tests::Run {
    let path = git.dir().join(format!("refs/heads/broken-{number}"));
    let oid = format!("{:0>width$x}", number.max(1), width = format.len_in_hex());
    std::fs::write(path, format!("{oid}\n")).expect("the repository is writable");
    git.run(["for-each-ref"])
}
