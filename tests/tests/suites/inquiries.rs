//! What protocol 2 asks beside lists and objects (`object-info`, `bundle-uri`) is answered as by git's server, and starts
//! no program.

use std::fs;

use zit_tests::curl::curl;
use zit_tests::wire::pkt;
use zit_tests::world::text;
use zit_tests::{Peer, Server, World, server};

const UPLOAD: &str = "Content-Type: application/x-git-upload-pack-request";

/// A request of protocol 2: its command, and its arguments unless there is no room for any.
fn request(command: &str, arguments: &[&str], end: &str) -> Vec<u8> {
    let mut bytes = pkt(format!("command={command}\n").as_bytes());
    bytes.extend(b"0001");
    for argument in arguments {
        bytes.extend(pkt(format!("{argument}\n").as_bytes()));
    }
    bytes.extend(end.as_bytes());
    bytes
}

/// What a server says, without the line ends that one puts behind its errors.
fn ask(world: &World, url: &str, body: &[u8]) -> String {
    let url = format!("{url}/git-upload-pack");
    let version = "Git-Protocol: version=2";
    let args = ["--header", UPLOAD, "--header", version, "--data-binary", "@-", &url];
    let answer = curl(world, &args, body);
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text()
}

/// The packets of an answer up to the first error, after which nobody reads on, without line ends.
fn packets(answer: &str) -> Vec<String> {
    let mut rest = answer;
    let mut found = Vec::new();
    while let Some(length) = rest.get(..4).and_then(|hex| usize::from_str_radix(hex, 16).ok()) {
        let end = length.max(4);
        let packet = rest.get(4..end).unwrap_or("(cut off)").trim_end_matches('\n');
        found.push(if length == 0 { "(flush)".to_owned() } else { packet.to_owned() });
        if packet.starts_with("ERR ") {
            break;
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    found
}

/// One repository with loose and packed objects, and a server that can start nothing.
fn table(config: &[(&str, &str)]) -> (World, Server, Peer, [String; 5]) {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n"), ("b/c.txt", "c\n")]);
    for (key, value) in config {
        bare.ok(["config", "--add", key, value]);
    }
    bare.ok(["repack", "-q", "-a", "-d"]);
    bare.ok(["tag", "-a", "-m", "One", "v1", "main"]);
    let names = ["main", "main^{tree}", "main:a.txt", "v1", "main:b"];
    let oids = names.map(|name| bare.ok(["rev-parse", name]));
    let empty = world.path("empty");
    fs::create_dir(&empty).expect("each world has one such server");
    let server = Server::start_with(&world, &[], &[("PATH", text(&empty))]);
    let peer = Peer::start(&world);
    (world, server, peer, oids)
}

#[test]
fn sizes_of_objects_are_told_as_by_git() {
    let (world, server, peer, oids) = table(&[("transfer.advertiseObjectInfo", "true")]);
    let [commit, tree, blob, tag, _] = &oids;
    let oid = |oid: &str| format!("oid {oid}");
    let (commit, tree, blob, tag) = (oid(commit), oid(tree), oid(blob), oid(tag));
    let (absent, zero) = (oid(&"1".repeat(40)), oid(&"0".repeat(40)));
    let (upper, longer) = (blob.to_uppercase().replace("OID", "oid"), format!("{blob} x"));
    let cases: [(&[&str], &str); 14] = [
        (&["size", &commit, &tree, &blob, &tag], "0000"),
        (&[&tag, "size", &blob, &blob], "0000"),
        (&[&commit, &absent], "0000"),
        (&["size", &absent, &commit, &zero], "0000"),
        (&["size", &upper, &longer], "0000"),
        (&["size"], "0000"),
        (&[], "0000"),
        (&["size", &commit, "oid xyz", &blob], "0000"),
        (&["size", "oid "], "0000"),
        (&["size", "oid 1234"], "0000"),
        (&["type", &commit], "0000"),
        (&["size ", &commit], "0000"),
        (&["size", &commit], "0001"),
        (&["size", &commit], "0002"),
    ];
    for (arguments, end) in cases {
        let body = request("object-info", arguments, end);
        let [ours, gits] =
            [server.url("app"), peer.url("app")].map(|url| packets(&ask(&world, &url, &body)));
        assert_eq!(ours, gits, "{arguments:?} {end}");
        assert!(!ours.is_empty(), "{arguments:?} {end}");
    }
    let many: Vec<String> = (0..20_000).map(|n| oid(&format!("{n:040x}"))).collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.push(&blob);
    many.push("size");
    let body = request("object-info", &many, "0000");
    let [ours, gits] = [server.url("app"), peer.url("app")].map(|url| ask(&world, &url, &body));
    assert_eq!(ours.len(), gits.len());
    assert!(ours == gits && ours.contains(&format!("{} 2", &blob[4..])));
}

#[test]
fn bundles_are_told_of_as_the_configuration_lists_them() {
    let (world, server, peer, _) = table(&[
        ("uploadpack.advertiseBundleURIs", "true"),
        ("bundle.version", "1"),
        ("bundle.mode", "any"),
        ("bundle.One.uri", "https://example.org/one file.bundle"),
        ("bundle.One.creationToken", "7"),
        ("bundle.two.uri", "two.bundle"),
        ("bundle.two.uri", "three.bundle"),
        ("bundle.heuristic", "creationToken"),
    ]);
    let body = request("bundle-uri", &[], "0000");
    let [ours, gits] = [server.url("app"), peer.url("app")].map(|url| ask(&world, &url, &body));
    assert_eq!(ours, gits);
    assert!(ours.contains("bundle.One.creationtoken=7"), "{ours}");
    // git ends without a word.
    for (arguments, end, reason) in
        [(&["x"][..], "0000", "unexpected argument: \"x\""), (&[], "0001", "expected flush")]
    {
        let answer = ask(&world, &server.url("app"), &request("bundle-uri", arguments, end));
        assert!(answer.contains("ERR bundle-uri: ") && answer.contains(reason), "{answer}");
    }
}

#[test]
fn what_is_not_offered_is_no_command() {
    let (world, server, peer, _) = table(&[("bundle.version", "1")]);
    for command in ["object-info", "bundle-uri"] {
        let body = request(command, &[], "0000");
        let answer = ask(&world, &server.url("app"), &body);
        assert!(answer.contains(&format!("ERR invalid command \"{command}\"")), "{answer}");
        assert!(!ask(&world, &peer.url("app"), &body).contains("0000"));
    }
}

#[test]
fn both_sides_of_a_session_name_it_in_the_servers_log_where_git_would_too() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let server = Server::start(&world);
    let url = server.url("app.git");
    let told = |protocol: &str, name: &str| {
        let trace = world.path(name);
        let git = world.git().with_config(format!("protocol.version={protocol}"));
        let git = git.with_config("transfer.advertiseSID=true");
        let git = git.with_env("GIT_TRACE2_EVENT", text(&trace));
        let clone = git.clone_of(&url, &format!("clone-{name}"));
        clone.ok(["push", "--quiet", "origin", &format!("HEAD:refs/heads/{name}")]);
        let trace = fs::read_to_string(trace).expect("git writes its trace");
        let ids = trace.split("\"key\":\"server-sid\",\"value\":\"").skip(1);
        ids.map(|rest| rest.split('"').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(told("2", "unset"), [""; 0]);
    bare.ok(["config", "transfer.advertiseSID", "true"]);
    for protocol in ["0", "1", "2"] {
        let ids = told(protocol, &format!("v{protocol}"));
        // Of the others git makes no note.
        assert_eq!(!ids.is_empty(), protocol == "2", "{ids:?}");
        for id in ids {
            assert!(server.log().contains(&id), "protocol {protocol}: {id}");
        }
    }
    let told = server.log().matches(" session_id=").count();
    assert!(told >= 6, "one for each clone and push: {}", server.log());
    let log = server.log();
    assert!(log.matches("client_session_id").count() >= 4, "three pushes and a fetch: {log}");
}

#[test]
fn a_session_id_that_is_not_asked_for_is_refused_as_by_git() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let (server, peer) = (Server::start(&world), Peer::start(&world));
    let mut body = pkt(b"command=ls-refs\n");
    body.extend(pkt(b"session-id=mine\n"));
    body.extend(b"0000");
    let answer = ask(&world, &server.url("app.git"), &body);
    assert!(answer.contains("ERR unknown capability \"session-id\""), "{answer}");
    assert!(!ask(&world, &peer.url("app.git"), &body).contains("refs/heads/main"));
    bare.ok(["config", "transfer.advertiseSID", "true"]);
    let [ours, gits] = [server.url("app.git"), peer.url("app.git")]
        .map(|url| ask(&world, &url, &body).contains("refs/heads/main"));
    assert!(ours && gits);
}

#[test]
fn a_clone_begins_with_a_bundle_that_it_is_told_of() {
    let world = World::new();
    let bare = server::seeded(&world, "app.git", &[("a.txt", "a\n")]);
    let bundle = world.path("app.bundle");
    bare.ok(["bundle", "create", "--quiet", text(&bundle), "main"]);
    let server = Server::start(&world);
    let git = world.git().with_config("transfer.bundleURI=true");
    let bundled = |name: &str| {
        let clone = git.clone_of(&server.url("app"), name);
        assert_eq!(clone.resolve("HEAD"), bare.resolve("refs/heads/main"));
        clone.resolve("refs/bundles/main").or_else(|| clone.resolve("refs/bundles/heads/main"))
    };
    assert_eq!(bundled("before"), None);
    for (key, value) in [
        ("uploadpack.advertiseBundleURIs", "true"),
        ("bundle.version", "1"),
        ("bundle.mode", "all"),
        ("bundle.one.uri", text(&bundle)),
    ] {
        bare.ok(["config", key, value]);
    }
    assert_eq!(bundled("after"), bare.resolve("refs/heads/main"));
}
