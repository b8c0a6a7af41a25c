//! Pushes: the same commands are carried out, the same are refused, and the refs stay equal.
//!
//! A group of cases is a story: two repositories grow side by side, push by push.

use gix_hash::Kind as Format;
use zit_tests::Git;
use zit_tests::http::Response;
use zit_tests::wire::Report;

use super::cases::Cases;
use super::push::{Push, Pusher, Refs};
use super::twins::{Arena, Twins};

#[test]
fn pushes_come_to_what_they_come_to_at_the_peer() {
    run("pushes_come_to_what_they_come_to_at_the_peer", 14, Format::Sha1);
}

#[test]
fn pushes_come_to_what_they_come_to_at_the_peer_with_sha256() {
    run("pushes_come_to_what_they_come_to_at_the_peer_with_sha256", 5, Format::Sha256);
}

/// What our server does whatever is configured (rules 5 and 6).
const SETTINGS: &[&str] = &["receive.fsckObjects=true", "receive.denyDeleteCurrent=ignore"];

// What a push comes to.
const DONE: &str = "all done";
const REFUSED: &str = "all refused";
const MIXED: &str = "some done, some refused";
const SILENT: &str = "no report";

#[track_caller]
fn run(test: &'static str, percent: u64, format: Format) {
    let arena = Arena::open();
    let mut cases = Cases::of(test, percent, 8);
    for group in cases.groups() {
        let seed = cases.seed_of_group(group);
        let mut twins = arena.twins(&format!("g{group}"), format, seed, SETTINGS);
        for (n, mut random) in cases.story(group) {
            let refs = shown(&twins.theirs.bare);
            let objects = &mut twins.objects;
            let push = Pusher { objects, format, refs: &refs, random: &mut random }.push();
            match compare(&twins, &push) {
                Ok(outcome) => cases.saw(outcome),
                Err(what) => {
                    cases.fail(n, &format!("{what}\n{:#?}", Shown(&push)));
                    // From here on the two go different ways.
                    break;
                }
            }
        }
        for side in twins.sides() {
            side.bare.ok(["rev-list", "--quiet", "--objects", "--all"]);
        }
    }
    cases.finish(&[(DONE, 20), (REFUSED, 20), (MIXED, 5), (SILENT, 3)]);
}

fn compare(twins: &Twins, push: &Push) -> Result<&'static str, String> {
    let body = push.encode();
    let [ours, theirs] = twins.sides().map(|side| {
        let response = side.post("git-receive-pack", 0, &body);
        (reported(push, &response), shown_with_symrefs(&side.bare))
    });
    if ours != theirs {
        let (found, expected) = (difference(&ours.1, &theirs.1), difference(&theirs.1, &ours.1));
        return Err(format!(
            "ours: {:#?}\ntheirs: {:#?}\nrefs only here: {found:#?}\nrefs only there: {expected:#?}",
            ours.0, theirs.0
        ));
    }
    let count = |start: &str| theirs.0.1.iter().filter(|line| line.starts_with(start)).count();
    let (n_ok, n_refused) = (count("ok "), count("ng "));
    Ok(match (n_ok, n_ok + n_refused) {
        (0, 0) => SILENT,
        (0, _) => REFUSED,
        (n, all) if n == all => DONE,
        _ => MIXED,
    })
}

/// The status code and the report; each line without its reason (rule 4).
fn reported(push: &Push, response: &Response) -> (u16, Vec<String>) {
    let lines = if push.has("side-band-64k") {
        Report::read(&response.body).lines
    } else {
        Report::read_bare(&response.body).lines
    };
    let plain = |line: String| match line.split(' ').collect::<Vec<_>>()[..] {
        ["unpack", "ok"] => line,
        ["unpack", ..] => "unpack failed".to_owned(),
        ["ng", name, ..] => format!("ng {name}"),
        _ => line,
    };
    (response.status, lines.into_iter().map(plain).collect())
}

/// What a pusher is shown, without the mainline and symbolic refs (rule 7).
fn shown(git: &Git) -> Refs {
    let list = git.ok(["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
    let pair = |line: &str| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, oid, ""] if name != super::grow::TRUNK => Some((name.to_owned(), oid.to_owned())),
        _ => None,
    };
    list.lines().filter_map(pair).collect()
}

fn shown_with_symrefs(git: &Git) -> Vec<String> {
    let list = git.ok(["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
    let head = std::fs::read_to_string(git.dir().join("HEAD")).expect("there is a HEAD");
    // Rule 1.
    let refs = list.lines().filter(|line| !line.starts_with("refs/zit/")).map(str::to_owned);
    refs.chain([head]).collect()
}

fn difference<'a>(a: &'a [String], b: &[String]) -> Vec<&'a String> {
    a.iter().filter(|line| !b.contains(line)).collect()
}

/// A push as a failure shows it.
struct Shown<'a>(&'a Push);

impl std::fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Push { shallow, commands, capabilities, options, packed, .. } = self.0;
        let capabilities = capabilities.join(" ");
        writeln!(f, "shallow {shallow:?} options {options:?} capabilities {capabilities}")?;
        for command in commands {
            let oid = |oid: &Option<String>| oid.clone().unwrap_or_else(|| "0".to_owned());
            writeln!(f, "{} {} {}", oid(&command.old), oid(&command.new), command.name)?;
        }
        write!(f, "packed {packed:#?}")
    }
}
