//! Thirty-two stock clients push one claim in the same instant: one wins, and every other learns at
//! once who did, for how long, and what to type.

use std::collections::BTreeMap;
use std::env;

use zit_tests::barrier::Racer;
use zit_tests::{Barrier, Git, Run, Server, World, server};

/// How many clients race.
const N_CLIENTS: usize = 32;

/// How many rounds are run when `ZIT_ROUNDS` does not say: enough for every order of arrival to occur.
const ROUNDS: usize = 100;

/// What they race for.
const RESOURCE: &str = "src/config.rs#parse";

const FILES: &[(&str, &str)] =
    &[("src/config.rs", "pub fn parse(text: &str) -> usize {\n    text.len()\n}\n")];

/// A served repository and a clone for each agent.
struct Race {
    _world: World,
    server: Server,
    bare: Git,
    clients: Vec<(String, Git)>,
}

fn race() -> Race {
    let world = World::new();
    let bare = server::seeded(&world, "repo.git", FILES);
    let server = Server::start(&world);
    let join = |n| {
        let agent = format!("a{n:02}");
        let clone = world.git().clone_of(&server.seat(&agent, "repo.git"), &agent);
        (agent, clone)
    };
    let clients = (0..N_CLIENTS).map(join).collect();
    Race { _world: world, server, bare, clients }
}

#[test]
fn one_of_thirty_two_racing_claims_wins_and_the_others_learn_who() {
    let mut race = race();
    let barrier = Barrier::new();
    let rounds = env::var("ZIT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let mut wins = BTreeMap::new();
    for round in 0..rounds.unwrap_or(ROUNDS) {
        let runs = barrier.race(&race.racers());
        let winner = race.judge(round, &runs);
        *wins.entry(race.clients[winner].0.clone()).or_insert(0) += 1;
        let tried = if round == 0 { N_CLIENTS } else { 1 };
        race.run_what_losers_are_told(winner, &runs, tried);
        let (_, git) = &race.clients[winner];
        git.ok(["push", "--quiet", "origin", &request("release")]);
        assert_eq!(race.claims(), 0, "round {round}: the claim was released");
    }
    assert!(race.server.is_alive(), "{}", race.server.log());
    race.bare.ok(["fsck", "--strict"]);
    eprintln!("wins: {wins:?}");
}

impl Race {
    /// Each client with its push of the claim.
    fn racers(&self) -> Vec<Racer> {
        let args = |agent: &str| {
            let intent = format!("zit.intent=work of {agent}");
            ["-o", &intent, "origin", &request("claim")].map(str::to_owned).to_vec()
        };
        self.clients.iter().map(|(agent, git)| (git.clone(), args(agent))).collect()
    }

    /// The index of the one winner, after checking what every loser read.
    #[track_caller]
    fn judge(&self, round: usize, runs: &[Run]) -> usize {
        let won = runs.iter().enumerate().filter(|(_, run)| run.is_ok());
        let won = won.map(|(index, _)| index).collect::<Vec<_>>();
        let [winner] = won[..] else {
            panic!("round {round}: {} winners: {}", won.len(), runs[*won.first().unwrap_or(&0)])
        };
        assert_eq!(self.claims(), 1, "round {round}: one claim ref");
        let name = &self.clients[winner].0;
        for (index, run) in runs.iter().enumerate().filter(|(index, _)| *index != winner) {
            let case = format!("round {round}, {} against {name}", self.clients[index].0);
            let reason = rejection(run).unwrap_or_else(|| panic!("{case}: no reason: {run}"));
            assert!(reason.contains(name.as_str()), "{case}: the ng line names the winner: {run}");
            let told = run.remote_lines().join("\n");
            assert!(told.contains(name.as_str()), "{case}: the text names the winner: {run}");
            assert!(told.contains(&format!("work of {name}")), "{case}: and its intent: {run}");
            assert!(names_a_lease(&told), "{case}: the text says what is left: {run}");
            assert!(!run.printed_commands().is_empty(), "{case}: the way out is printed: {run}");
        }
        winner
    }

    /// Types what the first `n_tried` losers were told to type.
    #[track_caller]
    fn run_what_losers_are_told(&self, winner: usize, runs: &[Run], n_tried: usize) {
        let losers = runs.iter().enumerate().filter(|(index, _)| *index != winner);
        for (index, run) in losers.take(n_tried) {
            let (agent, git) = &self.clients[index];
            for command in run.printed_commands() {
                let tried = git.shell(&command);
                let sensible = tried.is_ok() || rejection(&tried).is_some();
                assert!(sensible, "{agent} typed {command:?}, which was printed: {tried}");
            }
            // Whatever the commands claimed is given back, so that the next round starts clean.
            let _ = git.run(["push", "--quiet", "origin", &request("release")]);
        }
        assert_eq!(self.claims(), 1, "the winner still holds what it won");
    }

    fn claims(&self) -> usize {
        self.bare.ok(["for-each-ref", "refs/zit/claims/"]).lines().count()
    }
}

/// The refspec of a request about the contested resource, encoded as refs must be.
fn request(verb: &str) -> String {
    format!("origin/main:refs/zit/{verb}/{RESOURCE}")
}

/// The reason in git's `! [remote rejected] … (reason)` line.
fn rejection(run: &Run) -> Option<&str> {
    let line = run.stderr.lines().find(|line| line.contains("[remote rejected]"))?;
    line.split_once(" (").map(|(_, reason)| reason.trim_end_matches(')'))
}

/// Whether the text says how long the lease still runs, in minutes or seconds.
fn names_a_lease(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).collect::<Vec<_>>();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    let short = words.iter().any(|word| {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
        unit.len() < word.len() && (unit.starts_with('m') || unit.starts_with('s'))
    });
    let long = words.windows(2).any(|pair| {
        is_number(pair[0]) && (pair[1].starts_with("min") || pair[1].starts_with("sec"))
    });
    short || long
}

#[test]
fn an_accept_into_a_resource_under_anothers_live_claim_is_refused() {
    let race = race();
    let (holder, late) = (&race.clients[0].1, &race.clients[1].1);
    holder.ok(["push", "--quiet", "origin", &request("claim")]);
    late.commit(
        "Change parse",
        &[("src/config.rs", "pub fn parse(text: &str) -> usize {\n    0\n}\n")],
    );
    let before = race.bare.resolve("refs/heads/main");
    let run = late.fails(["push", "origin", "HEAD:refs/for/main"]).says("a00");
    assert_eq!(race.bare.resolve("refs/heads/main"), before, "{run}");
}

#[test]
fn a_claim_survives_a_kill_of_the_server() {
    let race = race();
    let Race { _world: world, server, bare, clients } = race;
    clients[0].1.ok(["push", "--quiet", "origin", &request("claim")]);
    let server = server.restart();
    let url = server.seat("a01", "repo.git");
    let run = clients[1].1.fails(["push", &url, &request("claim")]).says("a00");
    assert_eq!(bare.ok(["for-each-ref", "refs/zit/claims/"]).lines().count(), 1, "{run}");
    drop(world);
}
