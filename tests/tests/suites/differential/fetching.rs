//! Fetches: equal requests bring equal objects, acknowledgments and shallow boundaries.

use gix_hash::Kind as Format;

use super::answer::Answer;
use super::cases::Cases;
use super::fetch::Fetch;
use super::objects::{Oids, Pack};
use super::twins::{Arena, Twins};

/// Settings that open what is closed by default.
const OPEN: &[&str] = &[
    "uploadpack.allowRefInWant=true",
    "uploadpack.allowSidebandAll=true",
    "uploadpack.allowAnySHA1InWant=true",
];

#[test]
fn fetches_by_version_2_bring_what_the_peer_sends() {
    run("fetches_by_version_2_bring_what_the_peer_sends", 26, Format::Sha1, &[2]);
}

#[test]
fn fetches_by_version_2_bring_what_the_peer_sends_with_sha256() {
    run("fetches_by_version_2_bring_what_the_peer_sends_with_sha256", 12, Format::Sha256, &[2]);
}

#[test]
fn fetches_by_versions_0_and_1_bring_what_the_peer_sends() {
    run("fetches_by_versions_0_and_1_bring_what_the_peer_sends", 12, Format::Sha1, &[0, 1]);
}

#[test]
fn fetches_by_versions_0_and_1_bring_what_the_peer_sends_with_sha256() {
    let test = "fetches_by_versions_0_and_1_bring_what_the_peer_sends_with_sha256";
    run(test, 6, Format::Sha256, &[0, 1]);
}

#[track_caller]
fn run(test: &'static str, percent: u64, format: Format, versions: &[u8]) {
    let arena = Arena::open();
    let mut cases = Cases::of(test, percent, 40);
    for group in cases.groups() {
        let settings = if group % 3 == 2 { &[] } else { OPEN };
        let twins = arena.twins(&format!("g{group}"), format, cases.seed_of_group(group), settings);
        for (n, mut random) in cases.in_group(group) {
            let version = versions[random.usize(0..versions.len())];
            let fetch = Fetch::random(&twins, version, &mut random);
            match compare(&twins, &fetch) {
                Ok(outcome) => cases.saw(outcome),
                Err(what) => cases.fail(n, &format!("{what}\n{fetch:#?}")),
            }
        }
    }
    cases.finish(&[(PACK, 40), (NO_PACK, 4), (REFUSED, 1), (SILENT, 1)]);
}

// What a fetch comes to.
const PACK: &str = "a pack";
const NO_PACK: &str = "acknowledgments without a pack";
const REFUSED: &str = "a refusal";
const SILENT: &str = "an answer that git breaks off";

/// Sends the request to both; what came of it.
fn compare(twins: &Twins, fetch: &Fetch) -> Result<&'static str, String> {
    let body = fetch.encode();
    let [mut ours, mut theirs] = twins.sides().map(|side| {
        let response = side.post("git-upload-pack", fetch.version, &body);
        Answer::read(fetch, &response)
    });
    // Rule 2.
    if theirs.error.is_none() && !theirs.ended && ours.error.is_some() {
        return Ok(SILENT);
    }
    let packs = [std::mem::take(&mut ours.pack), std::mem::take(&mut theirs.pack)];
    if ours != theirs {
        return Err(format!("the answers differ\nours: {ours:#?}\ntheirs: {theirs:#?}"));
    }
    match packs {
        [a, b] if a.is_empty() && b.is_empty() => {
            Ok(if ours.error.is_some() { REFUSED } else { NO_PACK })
        }
        [ours, theirs] => compare_packs(twins, fetch, &ours, &theirs).map(|()| PACK),
    }
}

fn compare_packs(twins: &Twins, fetch: &Fetch, ours: &[u8], theirs: &[u8]) -> Result<(), String> {
    let read = |pack: &[u8]| twins.objects.read_pack(pack, twins.format);
    let (ours, theirs) = (read(ours)?, read(theirs)?);
    let cut = fetch.shallow.iter().cloned().collect::<Oids>();
    let held = twins.objects.closure(&fetch.haves, &cut);
    if let Some(base) = ours.bases.difference(&held).next() {
        return Err(format!(
            "a delta is made against {base}, which the client has not said it has"
        ));
    }
    if !fetch.is("thin-pack") && !ours.bases.is_empty() {
        return Err("a thin pack for a client that asked for none".to_owned());
    }
    let Pack { oids: found, .. } = ours;
    let Pack { oids: mut expected, .. } = theirs;
    // Rule 3.
    if fetch.is_plain() {
        expected.extend(found.intersection(&held).cloned());
    }
    if found == expected {
        return Ok(());
    }
    let name = |oid: &String| {
        let kind = twins.objects.get(oid).map(|object| object.kind.to_string());
        format!("{oid} {}", kind.unwrap_or_else(|| "unknown".to_owned()))
    };
    let only = |a: &Oids, b: &Oids| a.difference(b).map(name).collect::<Vec<_>>();
    let (more, less) = (only(&found, &expected), only(&expected, &found));
    Err(format!("the packs differ\nonly ours: {more:#?}\nonly theirs: {less:#?}"))
}
