//! Many pushes of one branch at once: one wins, and what the others are told does not depend on when they lost.

use std::io::Read;
use std::sync::Barrier;
use std::thread;

use zit_model::Oid;
use zit_store::PackLimits;
use zit_wire::receive::{ClientCapabilities, Command, PushRequest};

use crate::world::{EMPTY_PACK, World, create, moved, seat};

/// As many pushes as race at once.
const N: usize = 12;

/// Commits on `base`, each of another file.
fn works(world: &World, base: Oid) -> Vec<Oid> {
    let work = |n| world.commit(Some(base), &[(format!("n/{n}.txt").as_str(), "x\n")]);
    (0..N).map(work).collect()
}

#[test]
fn a_move_that_lost_is_told_the_same_whether_it_is_seen_on_arrival_or_under_the_lock() {
    let (world, base) = World::new();
    let works = works(&world, base);
    // Of a ref that is no branch, the transaction says that it has moved.
    let told = ["refs/heads/t", "refs/other/t"].map(|name| {
        world.push("ada", &[create(name, works[0])], &[]).ok();
        world.push("ada", &[moved(name, works[0], works[1])], &[]).ok();
        let answer = world.push("bob", &[moved(name, works[0], works[2])], &[]);
        answer.refused(&format!("is at {}, not at {}", works[1].short(), works[0].short()));
        let parts = [answer.reason(0), &answer.text].map(|text| text.replace(name, "T"));
        let offers = answer.offers();
        (parts, offers)
    });
    assert_eq!(told[0], told[1]);
    assert!(!told[0].1.is_empty(), "the next command is offered");
}

#[test]
fn the_pack_of_a_move_that_lost_on_arrival_is_read_to_its_end_and_leaves_nothing() {
    let (world, base) = World::new();
    let works = works(&world, base);
    world.push("ada", &[create("refs/heads/t", works[0])], &[]).ok();
    let command = Command { name: "refs/heads/t".into(), old: Some(base), new: Some(works[1]) };
    let request = PushRequest {
        cert: None,
        commands: vec![command],
        capabilities: ClientCapabilities::default(),
        options: Vec::new(),
        shallow: Vec::new(),
    };
    let before = world.files();
    let limits = PackLimits { max_objects: 10, max_bytes: 1 << 20 };
    let mut pack = std::io::repeat(b'x').take(100_000);
    let answer = world.repository().push(&seat("bob"), &request, &mut pack, &limits);
    assert_eq!(pack.limit(), 0, "a client that is still sending would not read why");
    assert!(answer.reports[0].result.is_err(), "{}", answer.text);
    assert_eq!(world.files(), before);
}

#[test]
fn of_pushes_that_move_one_branch_at_once_one_wins_and_names_itself_to_the_others() {
    let (world, base) = World::new();
    let works = works(&world, base);
    world.push("ada", &[create("refs/heads/t", base)], &[]).ok();
    let together = Barrier::new(N);
    let answers = thread::scope(|scope| {
        let push = |work: &Oid| {
            together.wait();
            world.push("bob", &[moved("refs/heads/t", base, *work)], &[])
        };
        let pushes: Vec<_> = works.iter().map(|work| scope.spawn(move || push(work))).collect();
        pushes.into_iter().map(|push| push.join().unwrap()).collect::<Vec<_>>()
    });
    let (won, lost): (Vec<_>, Vec<_>) =
        answers.iter().zip(&works).partition(|(answer, _)| answer.reports[0].result.is_ok());
    assert_eq!(won.len(), 1);
    let winner = *won[0].1;
    assert_eq!(world.find("refs/heads/t"), Some(winner));
    for (answer, _) in lost {
        answer.refused(&format!("is at {}, not at {}", winner.short(), base.short()));
    }
}

#[test]
fn a_push_that_fails_in_its_turn_lets_the_next_one_through() {
    let (world, base) = World::new();
    let good = world.commit(Some(base), &[("n.txt", "x\n")]);
    world.push("ada", &[create("refs/heads/t", base)], &[]).ok();
    let together = Barrier::new(N);
    let answers = thread::scope(|scope| {
        let push = |n: usize| {
            let absent = format!("{n:040x}").parse::<Oid>().unwrap();
            let new = if n == N { good } else { absent };
            together.wait();
            world.push("bob", &[moved("refs/heads/t", base, new)], &[])
        };
        let pushes: Vec<_> = (1..=N).map(|n| scope.spawn(move || push(n))).collect();
        pushes.into_iter().map(|push| push.join().unwrap()).collect::<Vec<_>>()
    });
    let (last, others) = answers.split_last().unwrap();
    last.ok();
    for answer in others {
        assert!(answer.reports[0].result.is_err(), "{}", answer.text);
    }
    assert_eq!(world.find("refs/heads/t"), Some(good));
}

/// A pack of no objects, before which something happens.
struct Late<'a, F: FnMut()> {
    before: Option<F>,
    pack: &'a [u8],
}

impl<F: FnMut()> Read for Late<'_, F> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if let Some(mut before) = self.before.take() {
            before();
        }
        self.pack.read(buf)
    }
}

#[test]
fn what_the_commands_of_one_push_are_told_held_at_one_moment() {
    for atomic in [false, true] {
        let (world, base) = World::new();
        let works = works(&world, base);
        let names = ["refs/heads/t", "refs/other/t"];
        let set = |from, to| {
            world.push_atomic("ada", &names.map(|name| moved(name, from, to)), &[]).ok();
        };
        world.push_atomic("ada", &names.map(|name| create(name, works[0])), &[]).ok();
        // When it arrives, both are elsewhere; before it is judged, both are back where it expects them.
        set(works[0], works[1]);
        let command =
            |name: &str| Command { name: name.into(), old: Some(works[0]), new: Some(works[2]) };
        let request = PushRequest {
            cert: None,
            commands: names.map(command).into(),
            capabilities: ClientCapabilities { atomic, ..ClientCapabilities::default() },
            options: Vec::new(),
            shallow: Vec::new(),
        };
        let limits = PackLimits { max_objects: 10, max_bytes: 1 << 20 };
        let mut pack = Late { before: Some(|| set(works[1], works[0])), pack: EMPTY_PACK };
        let answer = world.repository().push(&seat("bob"), &request, &mut pack, &limits);
        let told: Vec<_> = answer.reports.iter().map(|report| report.result.is_ok()).collect();
        assert!(told == [true; 2] || told == [false; 2], "{told:?}: {}", answer.text);
    }
}
