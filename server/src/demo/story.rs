//! The order of events: who types what, and how it must end for the story to go on.
//!
//! In order: [`play`] publishes the sample, seats two agents, lets them race for one claim, pushes overlapping and disjoint
//! work, lands one change, composes the disjoint one, has the overlapping one refused, and rebuilds it. Who plays which
//! part is decided by the race.

use std::io::Write;
use std::path::Path;

use super::DemoError;
use super::git::{Ran, Seat};
use super::rename::Renames;
use super::sample;
use super::tasks::{COLONS, COMMENTS, CONTESTED, LENGTHS, Task};
use super::transcript::Transcript;

/// The repository's folder below the server's root.
pub(crate) const REPOSITORY: &str = "moorings.git";

/// Where the demo is played.
pub(crate) struct Stage<'a> {
    /// The folder that holds the agents' clones.
    pub(crate) folder: &'a Path,
    /// The server, as `http://127.0.0.1:PORT`.
    pub(crate) url: &'a str,
    /// Other names for the sample's symbols.
    pub(crate) renames: &'a Renames,
}

impl Stage<'_> {
    /// The address from which `who` clones: `http://127.0.0.1:PORT/@WHO/moorings.git`.
    pub(crate) fn clone_url(&self, who: &str) -> String {
        format!("{}/@{who}/{REPOSITORY}", self.url)
    }
}

/// Plays all steps.
///
/// # Errors
/// [`DemoError`] from the first step that cannot be taken or ends otherwise than it must.
pub(crate) fn play<W: Write>(
    stage: &Stage<'_>,
    transcript: &mut Transcript<W>,
) -> Result<(), DemoError> {
    let mut story = Story { stage, transcript, contested: stage.renames.apply(CONTESTED) };
    story.publish()?;
    let (ada, ben) = (story.player("ada", COMMENTS), story.player("ben", COLONS));
    story.join(&ada, &ben)?;
    let (first, second) = story.race(ada, ben)?;
    story.work(&first, &second)?;
    story.land(&first)?;
    story.compose(&second)?;
    let refused = story.be_stale(&second)?;
    story.rebuild(&second, &refused)?;
    story.look(&first)
}

/// One agent, and what it has come to do.
struct Player {
    seat: Seat,
    task: Task,
}

struct Story<'a, W> {
    stage: &'a Stage<'a>,
    transcript: &'a mut Transcript<W>,
    /// The resource that both agents want.
    contested: String,
}

impl<W: Write> Story<'_, W> {
    fn publish(&mut self) -> Result<(), DemoError> {
        self.transcript.step("Somebody publishes a program")?;
        let folder = self.stage.folder.join("you");
        sample::write(&folder, self.stage.renames)?;
        let you = Seat { who: "you", folder };
        self.done(&you, &["init", "-q", "-b", "main"])?;
        self.done(&you, &["add", "."])?;
        self.done(&you, &["commit", "-q", "-m", "Allot berths in a small harbour"])?;
        self.done(&you, &["show", "--stat", "--format="])?;
        self.done(&you, &["push", &self.stage.clone_url("you"), "main"])
    }

    fn player(&self, who: &'static str, task: Task) -> Player {
        Player { seat: Seat { who, folder: self.stage.folder.join(who) }, task }
    }

    fn join(&mut self, ada: &Player, ben: &Player) -> Result<(), DemoError> {
        self.transcript.step("Two agents clone it, each from a seat of its own")?;
        for player in [ada, ben] {
            let who = player.seat.who;
            let lobby = Seat { who, folder: self.stage.folder.to_owned() };
            self.done(&lobby, &["clone", "-q", &self.stage.clone_url(who), who])?;
        }
        Ok(())
    }

    /// Both push the same claim at once. Answers the winner, then the other.
    fn race(&mut self, one: Player, two: Player) -> Result<(Player, Player), DemoError> {
        let title = format!("Both claim {} at the same moment", self.contested);
        self.transcript.step(&title)?;
        let spec = format!("origin/main:refs/zit/claim/{}", self.contested);
        let claim = |player: &Player| {
            let intent = format!("zit.intent={}", player.task.intent);
            player.seat.start(&["push", "-o", &intent, "origin", &spec])
        };
        let (running_one, running_two) = (claim(&one)?, claim(&two)?);
        let (ran_one, ran_two) = (running_one.wait()?, running_two.wait()?);
        let one_wins = ran_one.success;
        let (first, won, second, lost) =
            if one_wins { (one, ran_one, two, ran_two) } else { (two, ran_two, one, ran_one) };
        self.print(&first.seat, &won)?;
        self.print(&second.seat, &lost)?;
        check(won.success, &first.seat, "one of two claims should be granted", &won)?;
        check(!lost.success, &second.seat, "one of two claims should be refused", &lost)?;
        check(
            told(&lost, first.seat.who),
            &second.seat,
            "the refusal should name who holds the claim",
            &lost,
        )?;
        Ok((first, second))
    }

    fn work(&mut self, first: &Player, second: &Player) -> Result<(), DemoError> {
        let who = second.seat.who;
        self.transcript.step(&format!("{} does the work", first.seat.who))?;
        self.commit(&first.seat, &first.task)?;
        self.done(&first.seat, &["push", "origin", first.task.branch])?;

        self.transcript
            .step(&format!("{who} edits the same function all the same, in other lines"))?;
        self.commit(&second.seat, &second.task)?;
        let pushed = self.run(&second.seat, &["push", "origin", second.task.branch])?;
        check(pushed.success, &second.seat, "work in progress should be stored", &pushed)?;
        let named = told(&pushed, first.seat.who);
        check(named, &second.seat, "the push should be told who else is there", &pushed)?;

        self.transcript
            .step(&format!("{who} edits other functions, one of them in the same file"))?;
        self.commit(&second.seat, &LENGTHS)?;
        self.done(&second.seat, &["push", "origin", LENGTHS.branch])
    }

    fn land(&mut self, first: &Player) -> Result<(), DemoError> {
        self.transcript.step(&format!("{} lands", first.seat.who))?;
        let landed = self.run(&first.seat, &["push", "origin", "HEAD:refs/for/main"])?;
        check(landed.success, &first.seat, "the change should land", &landed)?;
        self.on_mainline(first, &first.task, true, &landed)
    }

    fn compose(&mut self, second: &Player) -> Result<(), DemoError> {
        let who = second.seat.who;
        self.transcript
            .step(&format!("{who} lands the disjoint work, made on an older mainline"))?;
        let landed = self.run(&second.seat, &["push", "origin", "HEAD:refs/for/main"])?;
        check(landed.success, &second.seat, "the disjoint change should compose", &landed)?;
        self.on_mainline(second, &LENGTHS, true, &landed)
    }

    /// Answers the refusal.
    fn be_stale(&mut self, second: &Player) -> Result<Ran, DemoError> {
        let (who, branch) = (second.seat.who, second.task.branch);
        self.transcript.step(&format!("{who} tries to land the overlapping work"))?;
        self.done(&second.seat, &["switch", "-q", branch])?;
        self.done(&second.seat, &["fetch", "-q"])?;
        self.done(&second.seat, &["merge-tree", "--write-tree", "origin/main", "HEAD"])?;
        self.transcript
            .prose("Git alone would have merged it without a word. The referee does not:")?;
        let refused = self.run(&second.seat, &["push", "origin", "HEAD:refs/for/main"])?;
        check(
            !refused.success,
            &second.seat,
            "the overlapping change should be refused",
            &refused,
        )?;
        let named = refused.output.contains(&self.contested);
        check(named, &second.seat, "the refusal should name what both wrote", &refused)?;
        self.on_mainline(second, &second.task, false, &refused)?;
        Ok(refused)
    }

    /// Types the command that the refusal gave.
    fn rebuild(&mut self, second: &Player, refused: &Ran) -> Result<(), DemoError> {
        let who = second.seat.who;
        self.transcript.step(&format!("{who} types what it was told to type"))?;
        let option = refused.output.lines().find_map(option);
        check(option.is_some(), &second.seat, "the refusal should say what to type", refused)?;
        let landed = second.seat.shell(option.unwrap_or_default())?;
        self.print(&second.seat, &landed)?;
        check(landed.success, &second.seat, "the rebuilt change should land", &landed)?;
        self.on_mainline(second, &second.task, true, &landed)
    }

    fn look(&mut self, first: &Player) -> Result<(), DemoError> {
        self.transcript.step("What stands in the end")?;
        self.done(&first.seat, &["fetch", "-q"])?;
        self.done(&first.seat, &["log", "--graph", "--oneline", "origin/main"])
    }

    /// Does a task on a branch of its own and commits it.
    fn commit(&mut self, seat: &Seat, task: &Task) -> Result<(), DemoError> {
        self.done(seat, &["switch", "-q", "-c", task.branch, "origin/main"])?;
        task.edit(&seat.folder, self.stage.renames)?;
        self.done(seat, &["diff", "-U1"])?;
        self.done(seat, &["commit", "-q", "-a", "-m", task.intent])
    }

    /// Checks, unseen, whether a task's edits stand on the server's mainline after what `ran`.
    fn on_mainline(
        &self,
        player: &Player,
        task: &Task,
        expected: bool,
        ran: &Ran,
    ) -> Result<(), DemoError> {
        player.seat.git(&["fetch", "-q", "origin", "main"])?;
        for edit in task.edits {
            let path = self.stage.renames.apply(edit.path);
            let file = player.seat.git(&["show", &format!("FETCH_HEAD:{path}")])?;
            let stands = file.output.contains(&self.stage.renames.apply(edit.new));
            let what = if expected { "its edits" } else { "none of its edits" };
            let what = format!("the mainline should hold {what} of {path}");
            check(stands == expected, &player.seat, &what, ran)?;
        }
        Ok(())
    }

    /// Runs and prints a command that must succeed.
    fn done(&mut self, seat: &Seat, args: &[&str]) -> Result<(), DemoError> {
        let ran = self.run(seat, args)?;
        check(ran.success, seat, "this should succeed", &ran)
    }

    fn run(&mut self, seat: &Seat, args: &[&str]) -> Result<Ran, DemoError> {
        let ran = seat.git(args)?;
        self.print(seat, &ran)?;
        Ok(ran)
    }

    fn print(&mut self, seat: &Seat, ran: &Ran) -> Result<(), DemoError> {
        self.transcript.command(seat.who, &ran.command, &ran.output)
    }
}

/// Whether the server's words name an agent. The address of the remote, which git prints, holds one too.
fn told(ran: &Ran, who: &str) -> bool {
    let said = ran.output.lines().filter_map(|line| line.strip_prefix("remote: "));
    said.flat_map(|line| line.split(|c: char| !c.is_alphanumeric())).any(|word| word == who)
}

/// The command of an option's line: `- git …   # what it is good for`.
fn option(line: &str) -> Option<&str> {
    let line = line.strip_prefix("remote: - ")?;
    let command = line.split_once("   #").map_or(line, |(command, _)| command).trim_end();
    command.starts_with("git ").then_some(command)
}

fn check(holds: bool, seat: &Seat, what: &str, ran: &Ran) -> Result<(), DemoError> {
    if holds {
        return Ok(());
    }
    Err(DemoError::Astray {
        who: seat.who.to_owned(),
        what: what.to_owned(),
        command: ran.command.clone(),
        output: ran.output.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_says_names_an_agent() {
        let ran = |output: &str| Ran {
            command: "git push".to_owned(),
            output: output.to_owned(),
            success: false,
        };
        assert!(told(&ran("remote: held by ada, lease left 9m\n"), "ada"));
        assert!(!told(&ran("remote: held by adam\nTo http://127.0.0.1:1/@ada/x.git\n"), "ada"));
    }

    #[test]
    fn an_option_is_the_command_without_its_reason() {
        let line = "remote: - git fetch origin && git push origin a:b#c   # see it        ";
        assert_eq!(option(line), Some("git fetch origin && git push origin a:b#c"));
        assert_eq!(option("remote: - git fetch        "), Some("git fetch"));
        assert_eq!(option("remote: - ada holds it"), None);
        assert_eq!(option("- git fetch"), None);
    }
}
