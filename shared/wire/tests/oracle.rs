//! git as the oracle: what `git http-backend`, `upload-pack` and `push` say for real repositories, compared with ours.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests are tests; clippy sees only the functions marked so"
)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use bstr::{BString, ByteSlice};
use gix_hash::Kind;
use tempfile::TempDir;
use zit_model::{Oid, RefName};
use zit_wire::advertise::{self, Offering};
use zit_wire::ls_refs;
use zit_wire::pkt::{self, Decoded, Packet};
use zit_wire::receive::{self, Progress, Report, RequestReader};
use zit_wire::refs::{AdvertisedRef, Head};
use zit_wire::report::{self, CommandReport, Rewritten};
use zit_wire::service::{ProtocolVersion, Service};
use zit_wire::side_band::{self, Band};
use zit_wire::{Agent, Extras};

/// A bare repository in a directory of its own, with receive-pack over http allowed.
struct Repo {
    dir: TempDir,
    format: Kind,
}

impl Repo {
    fn empty(format: Kind) -> Self {
        let dir = TempDir::new().unwrap();
        let repo = Self { dir, format };
        let object_format = format!("--object-format={format}");
        repo.git(&["init", "-q", "--bare", "-b", "main", &object_format, "."]);
        repo.git(&["config", "http.receivepack", "true"]);
        repo.git(&["config", "receive.advertisePushOptions", "true"]);
        repo
    }

    /// Branches, a light and an annotated tag, a tag of a tag, a symref beside HEAD, and refs of other namespaces.
    fn with_history(format: Kind) -> Self {
        let repo = Self::empty(format);
        let tree = repo.git(&["mktree"]);
        let first = repo.git(&["commit-tree", "-m", "first", &tree]);
        let second = repo.git(&["commit-tree", "-m", "second", "-p", &first, &tree]);
        for (name, oid) in [
            ("refs/heads/main", &second),
            ("refs/heads/a/b", &first),
            ("refs/zit/current", &second),
            ("refs/tags/light", &first),
        ] {
            repo.git(&["update-ref", name, oid]);
        }
        repo.git(&["tag", "-a", "-m", "one", "v1", &first]);
        repo.git(&["tag", "-a", "-m", "of a tag", "v2", "v1"]);
        repo.git(&["symbolic-ref", "refs/heads/same", "refs/heads/main"]);
        repo
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Runs git here and answers its output, less the final line feed.
    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let output = run(git_in(self.path()).args(args), b"");
        String::from_utf8(output).unwrap().trim_end_matches('\n').to_owned()
    }

    fn head(&self) -> Option<Head> {
        let symref = run_any(git_in(self.path()).args(["symbolic-ref", "-q", "HEAD"]), b"");
        let target = symref.status.success().then(|| symref.stdout.trim().as_bstr().to_owned());
        let target = target.map(|target| RefName::new(target).unwrap());
        let oid = run_any(git_in(self.path()).args(["rev-parse", "-q", "--verify", "HEAD"]), b"");
        let oid = oid.status.success().then(|| Oid::from_hex(oid.stdout.trim()).unwrap());
        let peeled = || {
            let end = run_any(git_in(self.path()).args(["rev-parse", "HEAD^{}"]), b"");
            Oid::from_hex(end.stdout.trim()).ok().filter(|end| Some(*end) != oid)
        };
        match (target, oid) {
            (Some(target), Some(oid)) => Some(Head::Attached { target, oid, peeled: peeled() }),
            (Some(target), None) => Some(Head::Unborn(target)),
            (None, oid) => oid.map(|oid| Head::Detached { oid, peeled: peeled() }),
        }
    }

    fn refs(&self) -> Vec<AdvertisedRef> {
        let format = "--format=%(refname) %(objectname) %(objecttype) %(symref)";
        self.git(&["for-each-ref", format]).lines().map(|line| self.advertised(line)).collect()
    }

    fn advertised(&self, line: &str) -> AdvertisedRef {
        let [name, oid, kind, symref] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().unwrap();
        let peeled = || self.git(&["rev-parse", &format!("{name}^{{}}")]).parse().unwrap();
        AdvertisedRef {
            name: name.parse().unwrap(),
            oid: oid.parse().unwrap(),
            peeled: (kind == "tag").then(peeled),
            symref_target: (!symref.is_empty()).then(|| symref.parse().unwrap()),
        }
    }

    /// What `git http-backend` answers to `GET info/refs`: its content type and its body.
    fn info_refs(&self, service: Service, protocol: &str) -> (String, Vec<u8>) {
        let mut command = git_in(self.path());
        command
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", self.path())
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", "/info/refs")
            .env("QUERY_STRING", format!("service={service}"))
            .env("REQUEST_METHOD", "GET")
            .env("HTTP_GIT_PROTOCOL", protocol)
            .env("GIT_PROTOCOL", protocol);
        let response = run(&mut command, b"");
        let (headers, body) = response.split_once_str("\r\n\r\n").unwrap();
        let content_type =
            headers.lines().find_map(|line| line.strip_prefix(b"Content-Type: ")).unwrap();
        (String::from_utf8(content_type.to_vec()).unwrap(), body.to_vec())
    }

    fn offering(&self, extras: Extras) -> Offering {
        let version = self.git(&["version"]);
        let agent = version.rsplit(' ').next().unwrap();
        Offering {
            object_format: self.format,
            agent: Agent::new(&format!("git/{agent}")),
            extras,
            haves: BTreeSet::new(),
            nonce: None,
            session_id: None,
            shallow: BTreeSet::new(),
        }
    }
}

/// git without any configuration of this machine or its user, and with names and times that do not vary.
#[allow(clippy::disallowed_methods, reason = "the oracle is a program; a test may start it")]
fn git_in(dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{who}_NAME"), "a")
            .env(format!("GIT_{who}_EMAIL"), "a@example.com");
        command.env(format!("GIT_{who}_DATE"), "1700000000 +0000");
    }
    command
}

fn run_any(command: &mut Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn run(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let output = run_any(command, input);
    assert!(output.status.success(), "{command:?}: {}", output.stderr.as_bstr());
    output.stdout
}

/// Bytes as packets, one a line, without `zit=1`, which git has not.
fn packets(mut bytes: &[u8]) -> Vec<String> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let Decoded::Complete { packet, consumed } = pkt::decode(bytes).unwrap() else {
            panic!("cut short: {:?}", bytes.as_bstr());
        };
        bytes = &bytes[consumed..];
        if packet != Packet::Data(b"zit=1\n") {
            packets.push(format!("{:?}", Shown(packet)).replace(" zit=1", ""));
        }
    }
    packets
}

struct Shown<'a>(Packet<'a>);

impl std::fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Packet::Data(data) => write!(f, "{:?}", data.as_bstr()),
            Packet::Flush | Packet::Delim | Packet::ResponseEnd => self.0.fmt(f),
        }
    }
}

const VERSIONS: [(&str, ProtocolVersion); 3] = [
    ("", ProtocolVersion::V0),
    ("version=1", ProtocolVersion::V1),
    ("version=2", ProtocolVersion::V2),
];

#[track_caller]
fn check_upload_pack(repo: &Repo, extras: Extras, case: &str) {
    for (protocol, version) in VERSIONS {
        let (content_type, expected) = repo.info_refs(Service::UploadPack, protocol);
        let body = advertise::upload_pack(
            &repo.offering(extras),
            version,
            repo.head().as_ref(),
            &repo.refs(),
        );
        assert_eq!(packets(&body), packets(&expected), "{case}, {version:?}");
        assert_eq!(Service::UploadPack.advertisement_type(), content_type, "{case}, {version:?}");
        assert!(body.contains_str("zit=1"), "{case}, {version:?}");
    }
}

#[test]
fn the_upload_pack_advertisement_is_gits_own() {
    for format in [Kind::Sha1, Kind::Sha256] {
        check_upload_pack(&Repo::empty(format), Extras::default(), &format!("empty {format}"));
        let repo = Repo::with_history(format);
        check_upload_pack(&repo, Extras::default(), &format!("{format}"));
        repo.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
        check_upload_pack(&repo, Extras::default(), &format!("unborn HEAD {format}"));
        repo.git(&["update-ref", "--no-deref", "HEAD", "refs/tags/light"]);
        check_upload_pack(&repo, Extras::default(), &format!("detached HEAD {format}"));
        repo.git(&["tag", "-a", "-m", "annotated", "annotated", "refs/tags/light"]);
        repo.git(&["symbolic-ref", "HEAD", "refs/tags/annotated"]);
        check_upload_pack(&repo, Extras::default(), &format!("HEAD on a tag {format}"));
    }
}

#[test]
fn what_configuration_adds_to_the_upload_pack_advertisement_is_gits_own() {
    let none = Extras::default();
    for (key, extras) in [
        ("uploadpack.allowFilter", Extras { filter: true, ..none }),
        ("uploadpack.allowTipSHA1InWant", Extras { tip_wants: true, ..none }),
        ("uploadpack.allowReachableSHA1InWant", Extras { reachable_wants: true, ..none }),
        (
            "uploadpack.allowAnySHA1InWant",
            Extras { tip_wants: true, reachable_wants: true, ..none },
        ),
        ("uploadpack.allowRefInWant", Extras { ref_in_want: true, ..none }),
        ("uploadpack.allowSidebandAll", Extras { sideband_all: true, ..none }),
        ("transfer.advertiseObjectInfo", Extras { object_info: true, ..none }),
        ("uploadpack.advertiseBundleURIs", Extras { bundle_uri: true, ..none }),
    ] {
        let repo = Repo::with_history(Kind::Sha1);
        repo.git(&["config", key, "true"]);
        check_upload_pack(&repo, extras, key);
    }
}

#[test]
fn what_configuration_takes_from_an_advertisement_git_leaves_out_too() {
    let repo = Repo::with_history(Kind::Sha1);
    for word in ["allow", "ignore"] {
        repo.git(&["config", "lsrefs.unborn", word]);
        let extras = Extras { hide_unborn: true, ..Extras::default() };
        check_upload_pack(&repo, extras, word);
    }
    for (key, extras) in [
        ("receive.advertiseAtomic", Extras { hide_atomic: true, ..Extras::default() }),
        ("receive.advertisePushOptions", Extras { hide_push_options: true, ..Extras::default() }),
        ("repack.useDeltaBaseOffset", Extras { hide_ofs_delta: true, ..Extras::default() }),
    ] {
        let repo = Repo::with_history(Kind::Sha1);
        repo.git(&["config", key, "false"]);
        let (_, expected) = repo.info_refs(Service::ReceivePack, "");
        let body =
            advertise::receive_pack(&repo.offering(extras), ProtocolVersion::V0, &repo.refs());
        assert_eq!(packets(&body), packets(&expected), "{key}");
    }
}

/// Each of git's processes has an id of its own, so the one that it told is told again.
#[test]
fn a_session_id_is_where_git_has_it() {
    let repo = Repo::with_history(Kind::Sha1);
    repo.git(&["config", "transfer.advertiseSID", "true"]);
    for service in [Service::UploadPack, Service::ReceivePack] {
        for (protocol, version) in VERSIONS {
            let (_, expected) = repo.info_refs(service, protocol);
            let (_, rest) = expected.split_once_str("session-id=").expect("git tells it");
            let id = rest.split(u8::is_ascii_whitespace).next().unwrap();
            let session_id = Some(String::from_utf8(id.to_vec()).unwrap());
            let offering = Offering { session_id, ..repo.offering(Extras::default()) };
            let body = match service {
                Service::UploadPack => {
                    advertise::upload_pack(&offering, version, repo.head().as_ref(), &repo.refs())
                }
                Service::ReceivePack => advertise::receive_pack(&offering, version, &repo.refs()),
            };
            assert_eq!(packets(&body), packets(&expected), "{service}, {version:?}");
        }
    }
}

#[test]
fn the_receive_pack_advertisement_is_gits_own() {
    for format in [Kind::Sha1, Kind::Sha256] {
        for repo in [Repo::empty(format), Repo::with_history(format)] {
            for (protocol, version) in &VERSIONS {
                let (content_type, expected) = repo.info_refs(Service::ReceivePack, protocol);
                let offering = repo.offering(Extras::default());
                let body = advertise::receive_pack(&offering, *version, &repo.refs());
                assert_eq!(packets(&body), packets(&expected), "{format}, {version:?}");
                assert_eq!(Service::ReceivePack.advertisement_type(), content_type);
                assert!(body.contains_str(" zit=1\n"));
            }
        }
    }
}

#[test]
fn ls_refs_is_answered_as_git_answers_it() {
    let argument_lists: &[&[&str]] = &[
        &[],
        &["peel"],
        &["symrefs"],
        &["peel", "symrefs", "unborn"],
        &["unborn"],
        &["symrefs", "unborn", "ref-prefix HEAD"],
        &["peel", "ref-prefix refs/tags/"],
        &["ref-prefix refs/heads/ma", "ref-prefix refs/heads/", "ref-prefix refs/tags/v1"],
        &["ref-prefix "],
        &["ref-prefix refs/none"],
    ];
    let unborn = Repo::with_history(Kind::Sha1);
    unborn.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    for repo in [
        Repo::empty(Kind::Sha1),
        Repo::with_history(Kind::Sha1),
        unborn,
        Repo::with_history(Kind::Sha256),
    ] {
        for arguments in argument_lists {
            let request = ls_refs_request(repo.format, arguments);
            let mut git = git_in(repo.path());
            git.args(["upload-pack", "--stateless-rpc", "."]).env("GIT_PROTOCOL", "version=2");
            let expected = run(&mut git, &request);
            let parsed = ls_refs::parse(&request, repo.format).unwrap();
            let body = ls_refs::respond(&parsed, repo.head().as_ref(), &repo.refs());
            assert_eq!(packets(&body), packets(&expected), "{arguments:?}, HEAD {:?}", repo.head());
        }
    }
}

fn ls_refs_request(format: Kind, arguments: &[&str]) -> Vec<u8> {
    let mut request = Vec::new();
    for line in ["command=ls-refs", "agent=git/test", &format!("object-format={format}")] {
        pkt::text(&mut request, line.as_bytes()).unwrap();
    }
    pkt::delim(&mut request);
    for argument in arguments {
        pkt::text(&mut request, argument.as_bytes()).unwrap();
    }
    pkt::flush(&mut request);
    request
}

/// Lets a real `git send-pack` talk to us: answers the request it sent, and what it told its user of our report.
fn send_pack(repo: &Repo, advertisement: &[u8], report: &[u8], args: &[&str]) -> (Vec<u8>, String) {
    // In stateless mode the client reads both our messages from its input, and wraps its request in packets of its own;
    // a transport would take that wrapping off. The service line and its flush never reach it.
    let (_, advertisement) = advertisement.split_once_str("\n0000").unwrap();
    let mut git = git_in(repo.path());
    git.args(["send-pack", "--stateless-rpc", "--no-thin"]).args(args);
    let output = run_any(&mut git, &[advertisement, report].concat());
    let (mut request, mut rest) = (Vec::new(), output.stdout.as_slice());
    while let Ok(Decoded::Complete { packet, consumed }) = pkt::decode(rest) {
        if let Packet::Data(data) = packet {
            request.extend_from_slice(data);
        }
        rest = &rest[consumed..];
    }
    (request, String::from_utf8(output.stderr).unwrap())
}

/// Our advertisement of the main branch alone, and that branch.
fn advertise_main(repo: &Repo) -> (Vec<u8>, AdvertisedRef) {
    let main = repo.refs().into_iter().find(|r| r.name.as_bstr() == "refs/heads/main").unwrap();
    let offering = repo.offering(Extras::default());
    (advertise::receive_pack(&offering, ProtocolVersion::V0, [&main]), main)
}

#[test]
fn what_git_sends_in_answer_to_our_advertisement_is_read_whole() {
    let repo = Repo::with_history(Kind::Sha1);
    let (advertisement, main) = advertise_main(&repo);
    let args =
        ["--push-option=zit.claim=a.rs", "--atomic", ".", "v1:refs/tags/v1", ":refs/heads/main"];
    let (sent, _) = send_pack(&repo, &advertisement, b"", &args);
    let Progress::Done { request, consumed } = RequestReader::new(Kind::Sha1).feed(&sent).unwrap()
    else {
        panic!("not a whole request: {:?}", sent.as_bstr());
    };
    let mut commands: Vec<_> =
        request.commands.iter().map(|c| (c.name.to_string(), c.old, c.new)).collect();
    commands.sort();
    let tag = repo.git(&["rev-parse", "v1"]).parse().unwrap();
    let expected = [
        ("refs/heads/main".to_owned(), Some(main.oid), None),
        ("refs/tags/v1".to_owned(), None, Some(tag)),
    ];
    assert_eq!(commands, expected);
    assert_eq!(request.options, [BString::from("zit.claim=a.rs")]);
    assert!(request.capabilities.atomic);
    assert_eq!(request.capabilities.report, Report::V2);
    assert!(sent[consumed..].starts_with(b"PACK"), "{:?}", sent[consumed..].as_bstr());
}

#[test]
fn a_delete_of_a_ref_that_was_not_advertised_is_a_command_without_oids() {
    let repo = Repo::with_history(Kind::Sha1);
    let (advertisement, _) = advertise_main(&repo);
    let (sent, _) = send_pack(&repo, &advertisement, b"", &[".", ":refs/zit/release/a"]);
    let progress = RequestReader::new(Kind::Sha1).feed(&sent).unwrap();
    let Progress::Done { request, consumed } = progress else { panic!("{progress:?}") };
    let expected = receive::Command { name: "refs/zit/release/a".into(), old: None, new: None };
    assert_eq!(request.commands, [expected]);
    assert_eq!(consumed, sent.len(), "no pack follows");
}

#[test]
fn git_tells_its_user_what_our_report_says() {
    let repo = Repo::with_history(Kind::Sha1);
    let (advertisement, main) = advertise_main(&repo);
    let light = repo.git(&["rev-parse", "light"]).parse().unwrap();
    let landed = Rewritten {
        refname: Some("refs/zit/current".parse().unwrap()),
        old: Some(light),
        new: Some(main.oid),
        forced: false,
    };
    let commands = [
        CommandReport { name: "refs/for/main".into(), result: Ok(vec![landed]) },
        CommandReport { name: "refs/heads/x".into(), result: Err("held by\nclaude".into()) },
    ];
    let mut answer = Vec::new();
    side_band::progress(&mut answer, "one note");
    side_band::write(
        &mut answer,
        Band::Data,
        &report::encode(Report::V2, Ok(()), &commands, Kind::Sha1),
    );
    pkt::flush(&mut answer);
    let args = [".", "main:refs/for/main", "main:refs/heads/x"];
    let (_, told) = send_pack(&repo, &advertisement, &answer, &args);
    let (light, main) = (&light.to_string()[..7], &main.oid.to_string()[..7]);
    for line in [
        "remote: one note".to_owned(),
        format!("   {light}..{main}  main -> refs/zit/current"),
        " ! [remote rejected] main -> x (held by claude)".to_owned(),
    ] {
        assert!(told.lines().any(|found| found.trim_end() == line), "{line:?} in {told}");
    }
}
