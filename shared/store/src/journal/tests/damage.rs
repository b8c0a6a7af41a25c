//! Damage that no crash makes: it is never cut off, and the error says where it is.

use super::sim::SimDisk;
use super::*;

/// A journal of several segments: its disk and its segments' names.
fn several() -> (SimDisk, Vec<String>) {
    let disk = SimDisk::new(3);
    let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
    for n in 0..30 {
        journal.append(&drafts(n..n + 1)).unwrap();
    }
    let names = disk.names();
    assert!(names.len() > 2, "{names:?}");
    (disk, names)
}

#[track_caller]
fn check(harm: impl FnOnce(&SimDisk, &[String]), expected: &str) {
    let (disk, names) = several();
    harm(&disk, &names);
    let before = disk.names();
    let error = open_on(Box::new(disk.clone())).expect_err("it does not open");
    let error = format!("{error} ({})", error.hint().unwrap_or_default());
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("restore"), "{error}");
    assert_eq!(disk.names(), before, "nothing was removed");
}

#[test]
fn a_flipped_bit_in_the_middle_is_named_by_file_and_byte() {
    check(
        |disk, names| disk.damage(&names[0], |bytes| bytes[90] ^= 1),
        "00001.log is damaged at byte 0",
    );
    let (disk, names) = several();
    let frame = frame_len(&disk.content(&names[1]));
    disk.damage(&names[1], |bytes| bytes[frame + 100] ^= 1);
    let error = open_on(Box::new(disk)).unwrap_err().to_string();
    assert!(error.contains(&names[1]) && error.contains(&format!("at byte {frame}")), "{error}");
}

#[test]
fn a_flipped_bit_in_the_last_batch_is_damage_and_not_a_torn_end() {
    check(
        |disk, names| disk.damage(names.last().unwrap(), |bytes| *bytes.last_mut().unwrap() ^= 1),
        "the hash does not match",
    );
}

#[test]
fn damage_before_a_whole_batch_is_not_a_torn_end() {
    check(
        |disk, names| disk.damage(&names[names.len() - 2], |bytes| bytes.truncate(bytes.len() - 9)),
        "is damaged at byte",
    );
    check(
        |disk, names| disk.damage(&names[0], |bytes| bytes[..80].fill(0)),
        "is damaged at byte 0",
    );
}

#[test]
fn a_file_cut_short_before_an_empty_one_is_damage() {
    check(
        |disk, names| {
            let [.., before, last] = names else { unreachable!() };
            disk.damage(last, Vec::clear);
            disk.damage(before, |bytes| bytes.truncate(bytes.len() - 9));
        },
        "a later file follows",
    );
}

#[test]
fn a_missing_file_is_named_by_the_record_it_held() {
    check(
        |disk, names| super::super::disk::Disk::remove(disk, &names[0]).unwrap(),
        "record 1 is missing",
    );
    check(
        |disk, names| super::super::disk::Disk::remove(disk, &names[1]).unwrap(),
        "the file ends before record",
    );
}

#[test]
fn a_batch_of_another_journal_does_not_continue_the_chain() {
    let (disk, names) = several();
    let other = SimDisk::new(4);
    let (journal, _) = open_on(Box::new(other.clone())).unwrap();
    for n in 0..30 {
        let mut draft = draft(n, 100);
        draft.principal = "mallo".into();
        journal.append(&[draft]).unwrap();
    }
    let foreign = other.content(&names[1]);
    disk.damage(&names[1], |bytes| *bytes = foreign);
    let error = open_on(Box::new(disk)).unwrap_err().to_string();
    assert!(error.contains("does not continue the chain") && error.contains(&names[1]), "{error}");
}

#[test]
fn records_lost_behind_a_checkpoint_are_missed() {
    let (disk, names) = several();
    let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
    journal.checkpoint(Seq(30), b"all").unwrap();
    super::super::disk::Disk::remove(&disk, names.last().unwrap()).unwrap();
    let error = open_on(Box::new(disk)).unwrap_err();
    assert!(matches!(error, JournalError::Missing { seq: Seq(30), .. }), "{error}");
}

#[test]
fn verify_finds_damage_that_opening_has_no_need_to_look_at() {
    let (disk, names) = several();
    let (journal, _) = open_on(Box::new(disk.clone())).unwrap();
    journal.checkpoint(Seq(29), b"most").unwrap();
    disk.damage(&names[0], |bytes| bytes[90] ^= 1);
    let (journal, _) = open_on(Box::new(disk)).unwrap();
    let error = journal.verify().unwrap_err().to_string();
    assert!(error.contains(&names[0]), "{error}");
}

/// The length of the first batch of a segment.
fn frame_len(segment: &[u8]) -> usize {
    super::super::frame::Header::parse(segment).unwrap().total()
}
