//! The hook `proc-receive`, run by our server as git's server runs it.
//!
//! The oracle is `git http-backend`: one script answers both servers, and what they report, say and move is the same.

use std::fs;

use super::hooks::{Twins, hook};

/// A hook's half of the conversation, which writes down all that it hears.
const PRELUDE: &str = r#"#!/usr/bin/perl
use strict;
binmode STDIN; binmode STDOUT; $| = 1;
open my $record, '>>', 'record';
sub packet {
    read(STDIN, my $digits, 4) == 4 or return undef;
    my $length = hex $digits;
    return undef if $length < 4;
    read(STDIN, my $data, $length - 4);
    return $data;
}
my %new;
sub heard {
    while (defined(my $line = packet())) {
        $line =~ s/\n$//; $line =~ s/\0/ NUL /;
        print $record "$_[0]: $line\n";
        $new{$3} = $2 if $line =~ /^(\w+) (\w+) (refs.*)/;
    }
    print $record "$_[0] end\n";
}
sub reply { printf "%04x%s", length($_) + 4, $_ for @_ }
sub flush { print "0000" }
sub start { heard("version"); reply($_[0]); flush(); heard("command"); }
print STDERR "said by the hook\n";
print $record "env $_=$ENV{$_}\n" for grep { /^GIT_(PUSH|QUARANTINE|OBJECT|ALTERNATE)/ } sort keys %ENV;
"#;

const RECORDER: &str = "#!/bin/sh\nwhile read -r line; do echo \"post $line\" >>record; done\n";

fn twins() -> Twins {
    let twins = Twins::new();
    for repository in [&twins.ours, &twins.theirs] {
        for value in ["refs/for/", "refs/review", "d:refs/heads/kept"] {
            repository.ok(["config", "--add", "receive.procReceiveRefs", value]);
        }
        repository.ok(["config", "receive.advertisePushOptions", "true"]);
    }
    twins.hooks(&["post-receive"], RECORDER);
    twins.clone.commit("Second", &[("a.txt", "two\n")]);
    twins
}

/// Pushes to both with this hook, and expects one outcome of both; what it is, with what the hook wrote down.
#[track_caller]
fn same(twins: &Twins, body: &str, args: &[&str]) -> (String, String) {
    twins.hooks(&["proc-receive"], &format!("{PRELUDE}{body}"));
    pushed(twins, args)
}

#[track_caller]
fn pushed(twins: &Twins, args: &[&str]) -> (String, String) {
    let (flags, refspecs): (Vec<&str>, Vec<&str>) =
        args.iter().partition(|arg| arg.starts_with('-'));
    let [ours, theirs] = twins.urls().map(|url| {
        let head = ["push", "--porcelain"].iter().chain(&flags).copied();
        let run = twins.clone.run(head.chain([url.as_str()]).chain(refspecs.iter().copied()));
        let text = run.text();
        let lines = text.lines().filter(|line| line.contains('\t') && !line.contains("remote:"));
        let said = run.remote_lines();
        let said = said.iter().map(String::as_str);
        let said = said.filter(|l| l.contains("proc-receive") || l.contains("the hook"));
        // Ours tells the outcome once more, in words of its own.
        let starts = ["error: ", "said by", "proc-receive reported"];
        let said = said.filter(|l| starts.iter().any(|start| l.starts_with(start)));
        let all: Vec<&str> = lines.chain(said).collect();
        format!("{:?}\n{}", run.code(), all.join("\n"))
    });
    assert_eq!(ours, theirs, "{args:?}");
    assert_eq!(twins.ours.refs(), twins.theirs.refs(), "{args:?}");
    let [record, other] = twins.records();
    assert_eq!(record, other, "{args:?}: {ours}");
    (ours, record)
}

#[test]
fn what_the_hook_answers_is_reported_as_by_git() {
    let twins = twins();
    let old = twins.ours.resolve("refs/heads/main").expect("it was pushed");
    let options = format!(
        r#"start("version=1"); my $new = $new{{"refs/for/main/a"}};
        reply("ok refs/for/main/a", "option refname refs/pull/1/head", "option old-oid {old}",
             "option new-oid $new", "option forced-update",
             "ok refs/for/main/a\n", "option refname refs/pull/2/head\n"); flush();"#
    );
    let own = r#"start("version=1"); system("git", "update-ref", "refs/pull/3/head",
        $new{"refs/for/main/a"}) == 0 or exit 1; reply("ok refs/for/main/a"); flush();"#;
    let cases: [(&str, &str); 13] = [
        (r#"start("version=1"); reply("ok refs/for/main/a"); flush();"#, ""),
        (r#"start("version=1"); reply("ng refs/for/main/a not today"); flush();"#, ""),
        (r#"start("version=1"); reply("ng refs/for/main/a"); flush();"#, "(failed)"),
        (&options, "refs/pull/2/head"),
        (own, ""),
        (r#"start("version=1"); flush();"#, "(proc-receive failed to report status)"),
        (r#"start("version=1");"#, "proc-receive exited abnormally"),
        ("exit 1;", "fail to negotiate version with proc-receive hook"),
        (r#"start("version=2");"#, "proc-receive version '2' is not supported"),
        (r#"start("hello"); reply("ok refs/for/main/a"); flush();"#, ""),
        (r#"start("version=1"); reply("ok refs/for/main/a"); flush(); exit 7;"#, ""),
        (
            r#"start("version=1"); reply("option refname x", "yes refs/for/main/a", "ok refs/no",
                "ok refs/heads/plain", "ok", "ok refs/for/main/a"); flush();"#,
            "proc-receive reported incomplete status line: 'ok'",
        ),
        (r#"start("version=1"); reply("ok refs/review/a", "option fall-through"); flush();"#, ""),
    ];
    for (n, (body, expected)) in cases.into_iter().enumerate() {
        let plain = format!("HEAD:refs/heads/plain{n}");
        let target = if body.contains("refs/review") { "refs/review/a" } else { "refs/for/main/a" };
        let left = format!("HEAD:{target}");
        let (outcome, record) = same(&twins, body, &[&left, &plain]);
        assert!(outcome.contains("said by the hook"), "{outcome}");
        assert!(outcome.contains(expected), "{body}: {outcome}");
        assert!(record.contains(&format!(" refs/heads/plain{n}")), "{record}");
        assert!(!record.contains("env "), "{record}");
    }
    assert!(twins.ours.resolve("refs/review/a").is_some(), "fall-through made it");
    assert!(twins.ours.resolve("refs/pull/3/head").is_some(), "the hook made it");
}

#[test]
fn refs_are_left_to_the_hook_by_kind_and_the_hook_may_be_missing() {
    let twins = twins();
    let (outcome, _) = pushed(&twins, &["HEAD:refs/for/main/a", "HEAD:refs/heads/x"]);
    assert!(outcome.contains("(fail to run proc-receive hook)"), "{outcome}");
    assert!(outcome.contains("error: cannot find hook 'proc-receive'"), "{outcome}");
    let (outcome, _) = pushed(&twins, &["--atomic", "HEAD:refs/for/main/a", "HEAD:refs/heads/y"]);
    assert!(!outcome.contains("[new"), "{outcome}");
    pushed(&twins, &["HEAD:refs/heads/kept"]);
    let body = r#"start("version=1"); reply("ok refs/heads/kept"); flush();"#;
    let (_, record) = same(&twins, body, &[":refs/heads/kept"]);
    assert!(record.contains("command: "), "{record}");
    assert!(twins.ours.resolve("refs/heads/kept").is_some(), "the hook did not delete it");
}

#[test]
fn push_options_and_atomic_are_offered_to_the_hook() {
    let twins = twins();
    let ok = r#"start("version=1\0push-options"); heard("option"); reply("ok refs/for/main/a"); flush();"#;
    let (_, record) = same(&twins, ok, &["--push-option=own=1", "HEAD:refs/for/main/a"]);
    assert!(record.contains("version: version=1 NUL push-options\n"), "{record}");
    assert!(record.contains("option: own=1\noption end"), "{record}");
    let args = ["--atomic", "--push-option=two words", "HEAD:refs/for/main/a", "HEAD:refs/heads/x"];
    let (_, record) = same(&twins, ok, &args);
    assert!(record.contains("version: version=1 NUL atomic push-options\n"), "{record}");
    let no = r#"start("version=1"); reply("ng refs/for/main/a no"); flush();"#;
    let (outcome, _) = same(&twins, no, &["--atomic", "HEAD:refs/for/main/a", "HEAD:refs/heads/z"]);
    assert!(outcome.contains("(fail to run proc-receive hook)"), "{outcome}");
    assert_eq!(twins.ours.resolve("refs/heads/z"), None);
    let hand = r#"start("version=1"); reply("ok refs/review/a", "option fall-through"); flush();"#;
    same(&twins, hand, &["--atomic", "HEAD:refs/review/a", "HEAD:refs/heads/z"]);
    assert!(twins.ours.resolve("refs/heads/z").is_some());
}

#[test]
fn the_update_hook_is_asked_of_what_is_handed_back_alone() {
    let twins = twins();
    twins.hooks(&["update"], "#!/bin/sh\necho \"update $1\" >>record\n");
    let body = r#"start("version=1"); reply("ok refs/for/main/a", "ok refs/review/b",
        "option fall-through"); flush();"#;
    let (_, record) = same(&twins, body, &["HEAD:refs/for/main/a", "HEAD:refs/review/b"]);
    assert!(record.contains("update refs/review/b"), "{record}");
    assert!(!record.contains("update refs/for/main/a"), "{record}");
}

#[test]
fn landing_and_claims_stay_the_referees_whatever_is_configured() {
    let twins = twins();
    let body = "print $record 'asked'; exit 1;";
    hook(&twins.ours, "proc-receive", &format!("{PRELUDE}{body}"));
    twins.ours.ok(["config", "--add", "receive.procReceiveRefs", "refs/zit"]);
    let [url, _] = twins.urls();
    let head = twins.clone.ok(["rev-parse", "HEAD"]);
    twins.clone.ok(["push", &url, "HEAD:refs/zit/claim/a.txt"]);
    twins.clone.ok(["push", &url, "HEAD:refs/for/main"]);
    assert_eq!(twins.ours.resolve("refs/heads/main"), Some(head));
    let handed_back =
        r#"start("version=1"); reply("ok refs/for/x", "option fall-through"); flush();"#;
    hook(&twins.ours, "proc-receive", &format!("{PRELUDE}{handed_back}"));
    let _ = twins.clone.fails(["push", &url, "HEAD:refs/for/x"]).says("changes land on main");
    assert!(!twins.records()[0].contains("asked"), "the hook was not run");
}

#[test]
fn a_hook_that_says_too_much_nothing_or_no_packets_is_ended() {
    let twins = twins();
    twins.ours.ok(["config", "zit.hookTimeout", "2"]);
    let [url, _] = twins.urls();
    for (body, said) in [
        ("print 'hello, this is no packet';", "bad pkt-line length"),
        (
            r#"start("version=1"); while (1) { reply("x" x 60000) }"#,
            "reported incomplete status line",
        ),
        ("sleep 600;", "error: proc-receive hook ended after 2 seconds"),
    ] {
        hook(&twins.ours, "proc-receive", &format!("{PRELUDE}{body}"));
        let push = twins.clone.fails(["push", &url, "HEAD:refs/for/main/a"]);
        let _ = push.says("(fail to run proc-receive hook)").says(said);
        let _ = fs::remove_file(twins.ours.dir().join("record"));
    }
}
