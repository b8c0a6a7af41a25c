//! Fetches, answered by stock git behind the door.

use std::io::{Read, Write};

use zit_store::{Exchange, PackSource, ProtocolVersion};

use crate::support::{Repo, commit, create};

fn answer(repo: &Repo, version: ProtocolVersion, exchange: Exchange, request: &[u8]) -> String {
    let store = repo.referee();
    let mut stream = store.pack_source().start(version, exchange).unwrap();
    stream.take_stdin().unwrap().write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    stream.finish().unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn each_version_is_advertised_and_a_request_is_answered() {
    let repo = Repo::new();
    let [a] = repo.commits();
    commit(&repo.referee(), &[create("refs/heads/main", a)]).unwrap();
    let advertise = |version| answer(&repo, version, Exchange::Advertise, b"");
    assert!(advertise(ProtocolVersion::V0).contains(&format!("{a} HEAD")));
    assert!(advertise(ProtocolVersion::V1).contains("version 1"));
    assert!(advertise(ProtocolVersion::V2).contains("version 2"));
    let ls_refs = b"0014command=ls-refs\n0000";
    let listed = answer(&repo, ProtocolVersion::V2, Exchange::Respond, ls_refs);
    assert!(listed.contains(&format!("{a} refs/heads/main")), "{listed}");
}

#[test]
fn a_request_that_git_refuses_is_an_error_with_what_git_said() {
    let repo = Repo::new();
    let store = repo.referee();
    let mut stream = store.pack_source().start(ProtocolVersion::V2, Exchange::Respond).unwrap();
    stream.take_stdin().unwrap().write_all(b"0013command=nonsen\n0000").unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    let error = stream.finish().unwrap_err();
    assert!(error.to_string().contains("nonsen"), "{error}");
}

#[test]
fn a_fetch_that_is_given_up_leaves_no_process() {
    let repo = Repo::new();
    let store = repo.referee();
    let stream = store.pack_source().start(ProtocolVersion::V2, Exchange::Respond).unwrap();
    // Dropping waits for the end of a program that would wait for a request for ever.
    drop(stream);
}
