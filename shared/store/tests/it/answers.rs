//! Answers that are made once: what a second client gets without git, and what it must not get.

use std::fs;
use std::path::PathBuf;

use zit_model::Oid;
use zit_store::{AnswerError, AnswerQuery, SharedAnswer, Store};

use crate::support::{Repo, commit, create, moved};

/// What git does not compress, so that answers have the size of their files.
fn noise(n: usize, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.alphanumeric()).take(n).collect()
}

/// A repository whose `main` has one file of `n` bytes.
fn repository(n: usize) -> (Repo, Store, Oid) {
    let repo = Repo::new();
    let tip = repo.commit(&[("noise", &noise(n, 1))], &[], "first");
    let store = repo.referee();
    commit(&store, &[create("refs/heads/main", tip)]).unwrap();
    (repo, store, tip)
}

fn query(want: Oid, arguments: &[&str]) -> AnswerQuery {
    let mut request = b"0011command=fetch0001".to_vec();
    for argument in arguments.iter().map(ToString::to_string).chain([format!("want {want}")]) {
        request.extend_from_slice(format!("{:04x}{argument}", argument.len() + 4).as_bytes());
    }
    request.extend_from_slice(b"0008done0000");
    let include_tag = arguments.contains(&"include-tag");
    AnswerQuery { key: request.clone(), request, wants: vec![want], include_tag }
}

fn read(mut answer: SharedAnswer) -> Result<Vec<u8>, AnswerError> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.next_piece()? {
        bytes.extend(piece);
    }
    Ok(bytes)
}

#[track_caller]
fn ask(store: &Store, query: &AnswerQuery) -> SharedAnswer {
    store.answer(query.clone()).unwrap().expect("it is answered")
}

#[track_caller]
fn assert_whole(bytes: &[u8], n: usize) {
    assert!(bytes.starts_with(b"000dpackfile\n"), "{}", String::from_utf8_lossy(&bytes[..40]));
    assert!(bytes.ends_with(b"0000"));
    assert!(bytes.len() > n / 2, "{} bytes", bytes.len());
}

/// Takes away the file that holds the noise, without which git makes no answer.
fn break_git(repo: &Repo, tip: Oid) {
    let blob = repo.git(&["rev-parse", &format!("{tip}:noise")]);
    let (fan_out, rest) = blob.split_at(2);
    let path: PathBuf = ["objects", fan_out, rest].iter().collect();
    fs::remove_file(repo.path.join(path)).unwrap();
}

#[test]
fn a_second_client_gets_the_same_bytes_without_git() {
    let (repo, store, tip) = repository(300_000);
    let first = read(ask(&store, &query(tip, &["no-progress"]))).unwrap();
    assert_whole(&first, 300_000);
    break_git(&repo, tip);
    assert_eq!(read(ask(&store, &query(tip, &["no-progress"]))).unwrap(), first);
    // The proof that git cannot.
    let other = read(ask(&store, &query(tip, &["thin-pack"])));
    assert!(matches!(other, Err(AnswerError::Making(_))), "{other:?}");
}

#[test]
fn what_shapes_an_answer_is_compared_each_time() {
    let (repo, store, tip) = repository(100_000);
    let tagged = query(tip, &["include-tag"]);
    let plain = query(tip, &[]);
    read(ask(&store, &tagged)).unwrap();
    read(ask(&store, &plain)).unwrap();
    break_git(&repo, tip);
    commit(&store, &[create("refs/zit/claims/c", tip), create("refs/heads/b", tip)]).unwrap();
    read(ask(&store, &tagged)).expect("no tag has changed");
    commit(&store, &[create("refs/tags/v1", tip)]).unwrap();
    read(ask(&store, &plain)).expect("it has no tags");
    assert!(read(ask(&store, &tagged)).is_err(), "there is a new tag");
    repo.git(&["config", "pack.compression", "1"]);
    assert!(read(ask(&store, &plain)).is_err(), "the configuration is another");
}

#[test]
fn a_want_that_is_gone_is_not_answered_from_what_is_kept() {
    let (repo, store, tip) = repository(100_000);
    let (hidden, kept) = {
        let hidden = repo.commit(&[("noise", &noise(50_000, 2))], &[], "hidden");
        commit(&store, &[create("refs/heads/hidden", hidden)]).unwrap();
        (hidden, read(ask(&store, &query(hidden, &[]))).unwrap())
    };
    assert_whole(&kept, 50_000);
    commit(&store, &[moved("refs/heads/hidden", hidden, tip)]).unwrap();
    repo.git(&["prune", "--expire=now"]);
    // As a server that was started since.
    drop(store);
    let store = repo.referee();
    assert!(store.answer(query(hidden, &[])).unwrap().is_none());
    assert!(store.answer(query(tip, &[])).unwrap().is_some());
}

#[test]
fn nothing_is_kept_where_the_configuration_says_so() {
    let (repo, store, tip) = repository(100_000);
    repo.git(&["config", "zit.answerCache", "0"]);
    assert!(store.answer(query(tip, &[])).unwrap().is_none());
}

#[test]
fn what_does_not_fit_reaches_all_who_asked_in_time_and_is_not_kept() {
    const SIZE: usize = 12 << 20;
    let (repo, store, tip) = repository(SIZE);
    repo.git(&["config", "zit.answerCache", "200k"]);
    let wanted = query(tip, &[]);
    let answers: Vec<_> = (0..4).map(|_| ask(&store, &wanted)).collect();
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            answers.into_iter().map(|answer| scope.spawn(|| read(answer).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_whole(&all[0], SIZE);
    assert!(all.iter().all(|bytes| *bytes == all[0]));
    break_git(&repo, tip);
    assert!(read(ask(&store, &wanted)).is_err(), "it is made anew");
}

#[test]
fn older_answers_make_room_for_newer_ones() {
    let (repo, store, tip) = repository(300_000);
    let next = repo.commit(&[("noise", &noise(300_000, 2))], &[], "other");
    commit(&store, &[create("refs/heads/next", next)]).unwrap();
    repo.git(&["config", "zit.answerCache", "400k"]);
    let old = read(ask(&store, &query(tip, &[]))).unwrap();
    assert_whole(&old, 300_000);
    let new = read(ask(&store, &query(next, &[]))).unwrap();
    break_git(&repo, tip);
    break_git(&repo, next);
    assert_eq!(read(ask(&store, &query(next, &[]))).unwrap(), new);
    assert!(read(ask(&store, &query(tip, &[]))).is_err());
}

#[test]
fn a_client_that_goes_away_ends_nothing_for_others_and_all_for_itself() {
    const SIZE: usize = 12 << 20;
    let (repo, store, tip) = repository(SIZE);
    for limit in ["200k", "1g"] {
        repo.git(&["config", "zit.answerCache", limit]);
        let wanted = query(tip, &["ofs-delta"]);
        let (mut gone, stays) = (ask(&store, &wanted), ask(&store, &wanted));
        gone.next_piece().unwrap();
        drop(gone);
        assert_whole(&read(stays).unwrap(), SIZE);
    }
    let wanted = query(tip, &[]);
    let mut gone = ask(&store, &wanted);
    gone.next_piece().unwrap();
    drop(gone);
    assert_whole(&read(ask(&store, &wanted)).unwrap(), SIZE);
}

#[test]
fn an_answer_leaves_no_file_behind() {
    let (repo, store, tip) = repository(100_000);
    let before = repo.files();
    read(ask(&store, &query(tip, &[]))).unwrap();
    assert_eq!(repo.files(), before);
}
