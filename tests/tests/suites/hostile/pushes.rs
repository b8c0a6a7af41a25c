//! Pushes that no git would send: broken framing, broken packs, lies about refs, nonsense in options.

use zit_tests::http;
use zit_tests::wire::{PushBody, Report, ZERO, pkt};

use super::{REPOSITORY, Target, empty_pack, pack_of};

#[test]
fn the_push_that_all_others_are_made_from_is_good() {
    let target = Target::new();
    let body = target.good().encode();
    let response = http::push(target.server.address(), REPOSITORY, &body);
    assert_eq!(Report::read(&response.body).lines, ["unpack ok", "ok refs/heads/x"]);
    assert_eq!(target.bare.resolve("refs/heads/x"), Some(target.new));
}

#[test]
fn malformed_pkt_lines_are_refused() {
    let mut target = Target::new();
    let command = format!("{ZERO} {} refs/heads/x\0 report-status-v2", target.new);
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("no pkt-line at all", b"hello, is this the git server?".to_vec()),
        ("a length that is not hex", [b"00zz", command.as_bytes()].concat()),
        ("a length of 3", [b"0003", command.as_bytes()].concat()),
        ("a length beyond the limit", [b"fff5", &vec![b'a'; 65_525][..]].concat()),
        ("a length beyond the end", b"00ffshort".to_vec()),
        ("a sign in the length", [b"+0ab", command.as_bytes()].concat()),
        ("no flush after the commands", pkt(command.as_bytes())),
        ("a delim among the commands", [&pkt(command.as_bytes())[..], b"0001", b"0000"].concat()),
        ("an empty command", [&pkt(b"")[..], b"0000"].concat()),
        (
            "a command without a refname",
            [&pkt(format!("{ZERO} {ZERO}").as_bytes())[..], b"0000"].concat(),
        ),
        ("a short oid", [&pkt(b"1234 5678 refs/heads/x\0 report-status")[..], b"0000"].concat()),
        ("an oid that is not hex", {
            let line = format!("{ZERO} {} refs/heads/x\0 report-status", "g".repeat(40));
            [&pkt(line.as_bytes())[..], b"0000"].concat()
        }),
    ];
    for (case, body) in cases {
        target.refused(case, &body);
    }
}

#[test]
fn damaged_packs_are_refused() {
    let mut target = Target::new();
    let pack = target.pack.clone();
    let edit = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut pack = pack.clone();
        change(&mut pack);
        pack
    };
    let middle = pack.len() / 2;
    let cases = [
        ("no pack", Vec::new()),
        ("half a pack", pack[..middle].to_vec()),
        ("half a header", pack[..7].to_vec()),
        ("a pack without its checksum", pack[..pack.len() - 20].to_vec()),
        ("a wrong checksum", edit(&|pack| *pack.last_mut().unwrap() ^= 1)),
        ("a flipped bit", edit(&|pack| pack[middle] ^= 0x40)),
        ("a wrong magic", edit(&|pack| pack[0] = b'Q')),
        ("an unknown version", edit(&|pack| pack[7] = 9)),
        ("more objects promised than sent", edit(&|pack| pack[8] = 0xff)),
        ("fewer objects promised than sent", edit(&|pack| pack[11] -= 1)),
    ];
    for (case, pack) in cases {
        let said = target.refused(case, &PushBody { pack, ..target.good() }.encode());
        assert!(said.contains("ng refs/heads/x") || said.contains("pack"), "{case}: {said}");
    }
}

#[test]
fn packs_that_lack_objects_are_refused() {
    let mut target = Target::new();
    let long = "pub fn long() -> u32 { 12345 }\n".repeat(300);
    let hidden = target.clone.commit("Hidden", &[("src/long.rs", &long)]);
    let next = target.clone.commit("Next", &[("src/long.rs", &format!("{long}// more\n"))]);
    let range = format!("{next}\n^{hidden}\n");
    let thin = pack_of(&target.clone, &range, &["--thin"]);
    let body = PushBody::of(ZERO, &next, "refs/heads/x", &thin).encode();
    target.refused("a delta whose base the server lacks", &body);
    let whole = pack_of(&target.clone, &range, &[]);
    let body = PushBody::of(ZERO, &next, "refs/heads/x", &whole).encode();
    target.refused("a commit whose parent the server lacks", &body);
    let absent = "1234567890".repeat(4);
    let body = PushBody::of(ZERO, &absent, "refs/heads/x", &target.pack.clone()).encode();
    target.refused("a ref to an object that nobody has", &body);
}

#[test]
fn malformed_objects_are_refused() {
    let mut target = Target::new();
    let git = target.clone.clone();
    let blob = git.ok(["rev-parse", "HEAD:README.md"]);
    let raw = |entries: &[(&str, &str)]| {
        let mut tree = Vec::new();
        for (mode, name) in entries {
            tree.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            tree.extend((0..20).map(|n| u8::from_str_radix(&blob[2 * n..2 * n + 2], 16).unwrap()));
        }
        tree
    };
    let trees = [
        ("a tree with .git", raw(&[("100644", ".git")])),
        ("a tree with ..", raw(&[("100644", "..")])),
        ("a tree with a slash in a name", raw(&[("100644", "a/b")])),
        ("a tree with a name twice", raw(&[("100644", "a"), ("100644", "a")])),
        ("an unsorted tree", raw(&[("100644", "b"), ("100644", "a")])),
        ("a tree with an empty name", raw(&[("100644", "")])),
    ];
    for (case, bytes) in trees {
        let write = ["hash-object", "-t", "tree", "-w", "--stdin", "--literally"];
        let tree = git.run_with_input(write, &bytes).ok().text();
        let commit = format!(
            "tree {tree}\nauthor A <a@example.com> 1 +0000\ncommitter A <a@example.com> 1 +0000\n\nBad\n"
        );
        let write = ["hash-object", "-t", "commit", "-w", "--stdin", "--literally"];
        let commit = git.run_with_input(write, commit.as_bytes()).ok().text();
        let list = format!("{commit}\n{tree}\n{blob}\n");
        let pack = git
            .run_with_input(["pack-objects", "--quiet", "--stdout"], list.as_bytes())
            .ok()
            .stdout;
        target.refused(case, &PushBody::of(ZERO, &commit, "refs/heads/x", &pack).encode());
    }
}

#[test]
fn bad_refnames_are_refused() {
    let mut target = Target::new();
    let names = [
        "HEAD",
        "main",
        "refs",
        "refs/heads/",
        "refs/heads/a..b",
        "refs/heads/a.lock",
        "refs/heads/.a",
        "refs/heads/a/",
        "refs/heads/a//b",
        "refs/heads/a b",
        "refs/heads/a\x01b",
        "refs/heads/a~b",
        "refs/heads/a^b",
        "refs/heads/a:b",
        "refs/heads/a?b",
        "refs/heads/a*b",
        "refs/heads/a[b",
        "refs/heads/a\\b",
        "refs/heads/@{",
        "refs/../heads/x",
        "../x",
        "/etc/x",
        "refs/heads/a.",
        "refs/zit/nonsense/x",
        "refs/zit",
        "config",
        "objects/info/alternates",
    ];
    for name in names {
        let body = PushBody::of(ZERO, &target.new, name, &target.pack.clone()).encode();
        target.refused(&format!("refname {name:?}"), &body);
    }
}

#[test]
fn wrong_old_values_are_refused() {
    let mut target = Target::new();
    let (base, new) = (target.base.clone(), target.new.clone());
    let absent = "1234567890".repeat(4);
    let cases: [(&str, &str, &str, &str); 6] = [
        ("a create of a ref that exists", ZERO, &new, "refs/heads/taken"),
        ("a create of a ref that exists, with its value", ZERO, &base, "refs/heads/taken"),
        ("a move from a value it does not hold", &new, &new, "refs/heads/taken"),
        ("a move from an unknown value", &absent, &new, "refs/heads/taken"),
        ("a move of a ref that does not exist", &base, &new, "refs/heads/x"),
        ("a delete from a value it does not hold", &new, ZERO, "refs/heads/taken"),
    ];
    for (case, old, wanted, refname) in cases {
        let pack = if wanted == new { target.pack.clone() } else { empty_pack(&target.clone) };
        let pack = if wanted == ZERO { Vec::new() } else { pack };
        let said = target.refused(case, &PushBody::of(old, wanted, refname, &pack).encode());
        assert!(said.contains("ng refs/heads/"), "{case}: {said}");
    }
    assert_eq!(target.bare.resolve("refs/heads/taken"), Some(base));
}

#[test]
fn two_commands_for_one_ref_and_a_blob_as_a_branch_are_refused() {
    let mut target = Target::new();
    let mut twice = target.good();
    twice.commands.push(format!("{ZERO} {} refs/heads/x", target.base).into_bytes());
    target.refused("one ref twice", &twice.encode());
    let blob = target.clone.ok(["rev-parse", "origin/main:README.md"]);
    let pack = empty_pack(&target.clone);
    target.refused("a blob", &PushBody::of(ZERO, &blob, "refs/heads/x", &pack).encode());
}

#[test]
fn unknown_options_are_refused_with_the_known_ones() {
    let mut target = Target::new();
    let body = target.good().with_option("zit.nope=1").encode();
    let said = target.refused("an unknown option", &body);
    assert!(said.contains("zit.nope"), "{said}");
    let args = ["push", "-o", "zit.nope=1", "origin", "HEAD:refs/heads/x"];
    let run = target.clone.fails(args).says("zit.nope").says("zit.claim");
    assert!(run.stderr.contains("rejected"), "{run}");
    target.unharmed("an unknown option from stock git");
}

#[test]
fn claims_on_what_is_no_resource_are_refused() {
    let mut target = Target::new();
    let base = target.base.clone();
    for name in ["", "/", "%zz", "%2", "%2e%2e/x", "a%00b", "%2fetc", "a%0ab", "a//b"] {
        let refname = format!("refs/zit/claim/{name}");
        let body = PushBody::of(ZERO, &base, &refname, &empty_pack(&target.clone)).encode();
        target.refused(&format!("claim ref {refname:?}"), &body);
    }
    for resource in ["", "../x", "/etc/passwd", "a\0b", "a\nb"] {
        let body = target.good().with_option(format!("zit.require-claim={resource}")).encode();
        target.refused(&format!("claim option {resource:?}"), &body);
    }
}

#[test]
fn a_pack_over_the_limit_is_refused() {
    let mut target = Target::with_args(&["--max-pack", "100000"]);
    let mut random = fastrand::Rng::with_seed(1);
    let noise = (0..400_000).map(|_| char::from(random.u8(b' '..=b'~'))).collect::<String>();
    let big = target.clone.commit("Big", &[("big.txt", &noise)]);
    let pack = pack_of(&target.clone, &format!("{big}\n^{}\n", target.base), &[]);
    let body = PushBody::of(ZERO, &big, "refs/heads/x", &pack).encode();
    let said = target.refused("a pack over the limit", &body);
    assert!(said.contains("100000 bytes"), "{said}");
}

#[test]
fn a_push_with_too_many_options_is_refused() {
    let mut target = Target::new();
    let mut many = target.good();
    many.options = vec![b"x=1".to_vec(); 100_000];
    target.refused("a hundred thousand options", &many.encode());
}
