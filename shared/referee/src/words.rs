//! Sentences for facts: what a refusal says, and the commands that get further.
//!
//! Every command is one that the reader can run as it stands. It pushes `origin/<mainline>` where the pushed value does
//! not matter, so that it uploads nothing.

mod phrases;

use std::collections::BTreeSet;

use zit_model::envelope::{Command, Line};
use zit_model::{AgentId, Oid, Prompt, quote};

use self::phrases::{fence, held_by, list, path, stale_reason, staleness_line};
pub(crate) use self::phrases::{holder_line, time, units};
use crate::verdict::{Hold, Holder, Refusal};

/// The longest reason in a report, in bytes. Source: `spec/results.md`, "Reports".
pub(crate) const MAX_REASON: usize = 120;

/// How ids begin that are given to those who have none.
pub(crate) const GIVEN: &str = "agent-";

/// What refusals are told with.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    /// What printed commands are built on.
    pub(crate) prompt: Prompt,
    /// The commit that the command at hand pushed.
    pub(crate) pushed: Option<Oid>,
    /// An agent id that nobody has, for those who have none.
    pub(crate) free_agent: AgentId,
    /// Whether the push came over a network: by HTTP.
    pub(crate) is_over_network: bool,
}

/// A refusal in words.
pub(crate) struct Told {
    /// One line for the report: reason, holder, way out.
    pub(crate) reason: String,
    /// Facts.
    pub(crate) details: Vec<Line>,
    /// Ways forward.
    pub(crate) options: Vec<Command>,
}

impl Voice {
    fn mainline(&self) -> &str {
        &self.prompt.mainline
    }

    fn status(&self, why: &str) -> Command {
        self.prompt.push(&["zit.status"], &self.prompt.request("refs/zit/tell"), why)
    }

    fn land(&self, why: &str) -> Command {
        self.prompt.push(&[], &format!("HEAD:refs/for/{}", self.mainline()), why)
    }

    /// The same push again: by the commit, since only the pusher knows the branch.
    fn land_again(&self, why: &str) -> Command {
        match self.pushed {
            Some(commit) => {
                self.prompt.push(&[], &format!("{commit}:refs/for/{}", self.mainline()), why)
            }
            None => self.land(why),
        }
    }

    fn rebuild(&self) -> Command {
        let onto = format!("origin/{}", self.mainline());
        Command::git(["fetch", "origin"], "rebuild the change on what landed, then land it")
            .then(&Command::git(["rebase", &onto], ""))
            .then(&self.land(""))
    }
}

/// Says why, by whom, and what to type.
#[allow(clippy::too_many_lines, reason = "one arm a refusal, each a few words")]
pub(crate) fn refusal(refusal: &Refusal, sent: &str, voice: &Voice) -> Told {
    let told = |reason: String, details: Vec<Line>, options: Vec<Command>| Told {
        reason: quote::cut(&quote::one_line(&reason), MAX_REASON),
        details,
        options,
    };
    match refusal {
        Refusal::BadName { why } => told(
            format!("not a valid refname: {why}; see git-check-ref-format(1)"),
            Vec::new(),
            vec![Command::git(["check-ref-format", sent], "shows whether git takes a name")],
        ),
        Refusal::UnknownRef => told(
            "no such ref below refs/zit/; the remote: lines list the known ones".into(),
            std::iter::once(Line::new("known refs:"))
                .chain(zit_model::refs::KNOWN.iter().map(Line::new))
                .collect(),
            vec![voice.status("who is at work here, and on what")],
        ),
        Refusal::NotInNamespace => told(
            "a namespace has no referee: use the repository itself for refs/zit/ and refs/for/"
                .into(),
            Vec::new(),
            vec![Command::git(["push", "origin", "HEAD"], "your branch, which a namespace takes")],
        ),
        Refusal::RefereeOnly => told(
            format!(
                "only the referee writes it; land changes by HEAD:refs/for/{}",
                voice.mainline()
            ),
            Vec::new(),
            vec![voice.land("record HEAD as a change and land it")],
        ),
        Refusal::OthersRef { owner } => told(
            format!("it belongs to agent {owner}"),
            Vec::new(),
            vec![voice.status("your own items and claims")],
        ),
        Refusal::NoAgent => told(
            format!(
                "say which agent you are: git push -o zit.agent=<id>, always the same; {} is free",
                voice.free_agent
            ),
            vec![
                Line::new(
                    "use the id that you have, if you were given one: under another you stand in your own way",
                ),
                Line::new(
                    "or clone from http://<host>/@<agent>/<repo>, which says it with every push",
                ),
            ],
            vec![introduce(voice, sent)],
        ),
        Refusal::ForeignAgent { agent, owner } => told(
            format!("agent {agent} belongs to {}; use another id", quote::quoted(owner)),
            Vec::new(),
            vec![as_free_agent(voice).push(
                &[],
                &voice.prompt.request("refs/zit/tell"),
                "an id that nobody has yet",
            )],
        ),
        Refusal::BadResource(error) => told(
            error.to_string(),
            vec![Line::new(error.hint())],
            vec![voice.prompt.push(
                &["zit.claim=path/to/file#name"],
                &voice.prompt.request("refs/zit/tell"),
                "the form of a resource",
            )],
        ),
        Refusal::KeyCollision { found } => told(
            format!("its claim ref is taken by {}; claim the whole file instead", found.shown()),
            Vec::new(),
            vec![voice.status("what is claimed")],
        ),
        Refusal::BadDocument { why } => told(
            format!("claim.json cannot be used: {why}"),
            vec![Line::new("the request ref needs no document: refs/zit/claim/<resource>")],
            vec![voice.status("what is claimed")],
        ),
        Refusal::Held { resource, holders } => {
            let held = holders.first().map_or_else(String::new, |first| held_by(first, resource));
            let works = holders.iter().filter_map(|holder| match &holder.hold {
                Hold::InFlight { name, .. } => {
                    Some(voice.prompt.fetch(name, "see their work, as FETCH_HEAD"))
                }
                Hold::Claim { .. } => None,
            });
            let mut options: Vec<Command> = works.collect();
            options.push(voice.status("who is at work, and how long each claim has left"));
            let claimed = holders.iter().any(|h| matches!(h.hold, Hold::Claim { .. }));
            let when = if claimed { "the lease has run out" } else { "that work has landed" };
            options.push(voice.prompt.claim(resource, &format!("ask again, once {when}")));
            told(held, holder_lines(voice, holders), options)
        }
        Refusal::NotYours { holder } => told(
            format!("{} holds it, not you: {}", holder.agent, holder.resource.shown()),
            vec![holder_line(holder)],
            vec![voice.status("your own claims")],
        ),
        Refusal::ClaimMoved { found } => told(
            match found {
                Some(oid) => format!("the claim's ref is at {} now; fetch and look", oid.short()),
                None => "the claim's ref is gone; use refs/zit/claim/<resource>".into(),
            },
            Vec::new(),
            vec![Command::git(["fetch", "origin", sent], "see it as FETCH_HEAD")],
        ),
        Refusal::NotForward { current } => told(
            format!(
                "{} is at {} and moves only forward; push HEAD:refs/for/{}",
                voice.mainline(),
                current.short(),
                voice.mainline()
            ),
            Vec::new(),
            vec![
                voice.land("composes HEAD with what landed, if it still holds"),
                Command::git(
                    ["pull", "--rebase", "origin", voice.mainline()],
                    "or take it in first",
                ),
            ],
        ),
        Refusal::MainlineDelete => told(
            format!("{} is the mainline and is never deleted", voice.mainline()),
            vec![Line::new("an administrator chooses another one by git config zit.mainline")],
            vec![voice.status("what is open here")],
        ),
        Refusal::Diverged { mainline, current } => {
            let at =
                mainline.map_or_else(|| "gone".to_owned(), |oid| format!("at {}", oid.short()));
            let name = format!("refs/heads/{}", voice.mainline());
            told(
                format!(
                    "{} was moved by other means (now {at}, current {}); an administrator repairs it",
                    voice.mainline(),
                    current.short()
                ),
                vec![Line::new("run the command below in the repository on the server")],
                vec![Command::git(
                    ["update-ref", &name, &current.to_string()],
                    "puts the mainline back where current is",
                )],
            )
        }
        Refusal::NotMainline { mainline } => match mainline {
            Some(_) => told(
                format!(
                    "changes land on {}; push HEAD:refs/for/{}",
                    voice.mainline(),
                    voice.mainline()
                ),
                Vec::new(),
                vec![voice.land("land HEAD there")],
            ),
            None => told(
                "nothing has landed yet; push the first branch".into(),
                Vec::new(),
                vec![voice.prompt.push(&[], "HEAD:refs/heads/main", "it becomes the mainline")],
            ),
        },
        Refusal::NothingToLand => told(
            format!("an accept needs a commit; push HEAD:refs/for/{}", voice.mainline()),
            Vec::new(),
            vec![voice.land("land HEAD")],
        ),
        Refusal::NotACommit { oid } => told(
            format!("{} is not a commit", oid.short()),
            Vec::new(),
            vec![Command::git(["cat-file", "-t", &oid.to_string()], "what it is")],
        ),
        Refusal::AtomicAccept => told(
            "an accept lands on its own; push it without the other refs".into(),
            Vec::new(),
            vec![voice.land("land HEAD alone")],
        ),
        Refusal::NameIsNotValue { value } => {
            let name = zit_model::refs::change(*value).to_string();
            told(
                format!("a change's ref is named by its commit: {}", value.short()),
                Vec::new(),
                vec![voice.prompt.push(&[], &format!("{value}:{name}"), "records the change")],
            )
        }
        Refusal::CreateOnly => told(
            "a change is recorded once and never moves".into(),
            Vec::new(),
            vec![voice.land("record HEAD as a change of its own, and land it")],
        ),
        Refusal::Hidden { is_deletion } => told(
            format!("deny {} a hidden ref", if *is_deletion { "deleting" } else { "updating" }),
            vec![Line::new("the repository's configuration hides it (transfer.hideRefs)")],
            vec![voice.status("what is open here")],
        ),
        Refusal::LeftToHook => told(
            "fail to run proc-receive hook".into(),
            vec![Line::new("the configuration leaves the ref to it (receive.procReceiveRefs)")],
            vec![voice.status("what is open here")],
        ),
        Refusal::ByHook { why } => told(
            zit_model::quote::one_line(why),
            Vec::new(),
            vec![voice.status("what is open here")],
        ),
        Refusal::DeleteDenied { name } => told(
            "deletion prohibited".into(),
            vec![Line::new(format!("denying ref deletion for {name} (receive.denyDeletes)"))],
            vec![voice.status("what is open here")],
        ),
        Refusal::CurrentDelete { name } => told(
            "deletion of the current branch prohibited".into(),
            vec![Line::new(format!("HEAD names {name} (receive.denyDeleteCurrent)"))],
            vec![voice.status("what is open here")],
        ),
        Refusal::NonFastForward { name } => told(
            "non-fast-forward".into(),
            vec![Line::new(format!("denying non-fast-forward {name} (you should pull first)"))],
            vec![Command::git(["fetch", "origin"], "see what is there now")],
        ),
        Refusal::CheckedOut { name } => told(
            format!("{name} is checked out in a work tree on the server; push another branch"),
            vec![Line::new("an administrator serves a bare clone instead: git clone --bare")],
            vec![voice.status("what is open here")],
        ),
        Refusal::TagExists { .. } => told(
            "tags are created once; give yours another name".into(),
            vec![Line::new(
                "a repository allows moves by tags = \"move\" below [refs] in zit.toml",
            )],
            vec![Command::git(["fetch", "origin", &format!("+{sent}:{sent}")], "take theirs over")],
        ),
        Refusal::Stale { reasons } => told(
            stale_reason(reasons),
            reasons.iter().map(staleness_line).collect(),
            with_discard(voice, vec![voice.rebuild()]),
        ),
        Refusal::Unrelated => told(
            format!("shares no history with {}; rebuild it on what landed", voice.mainline()),
            Vec::new(),
            with_discard(voice, vec![voice.rebuild()]),
        ),
        Refusal::Conflict { paths } => told(
            format!("conflicts with what landed in {}; rebase, then land again", list(paths)),
            paths.iter().map(|p| Line::new(format!("conflict in {}", path(p)))).collect(),
            with_discard(voice, vec![voice.rebuild()]),
        ),
        Refusal::Fenced { holders } => told(
            holders.first().map_or_else(String::new, fence),
            holder_lines(voice, holders),
            past_fence(voice, sent, holders),
        ),
        Refusal::Ref(refused) => told(
            refused.to_string(),
            refused.hint().map(Line::new).into_iter().collect(),
            vec![Command::git(["fetch", "origin"], "see what is there now")],
        ),
        Refusal::Incomplete { why } => told(
            format!("objects are missing: {why}"),
            vec![Line::new(
                "a shallow clone pushes what the repository lacks only once it is whole",
            )],
            vec![Command::git(["fetch", "--unshallow", "origin"], "completes a shallow clone")],
        ),
        Refusal::ShallowUpdate => told(
            "shallow update not allowed".into(),
            vec![Line::new(
                "your clone is shallow, and the repository lacks what lies before its first commits",
            )],
            vec![Command::git(["fetch", "--unshallow", "origin"], "completes a shallow clone")],
        ),
        Refusal::Hook => told(
            "hook declined".into(),
            vec![Line::new("the repository's update hook refuses it; what it said stands above")],
            vec![voice.status("what is open here")],
        ),
        Refusal::Duplicate => told(
            "the push names it more than once".into(),
            Vec::new(),
            vec![voice.status("what is open here")],
        ),
        Refusal::Aliased => told(
            "inconsistent aliased update".into(),
            vec![Line::new(
                "the push also names the ref by another name, and asks for something else",
            )],
            vec![voice.status("what is open here")],
        ),
        Refusal::Contradiction { resource } => told(
            format!("the push both claims and releases {}", resource.shown()),
            Vec::new(),
            vec![voice.prompt.claim(resource, "claim it alone")],
        ),
        Refusal::TooMany { what, max } => told(
            format!("more than {max} {what}; push in several steps, or land what is done"),
            Vec::new(),
            vec![voice.status("what is open, and what is claimed")],
        ),
        Refusal::Atomic { culprit } => told(
            format!("not applied (see {})", quote::cut(&quote::one_line(culprit), 80)),
            Vec::new(),
            Vec::new(),
        ),
        Refusal::ClaimRequired { resource } => told(
            format!("not applied: the push requires the claim on {}", quote::one_line(resource)),
            Vec::new(),
            Vec::new(),
        ),
    }
}

/// Takes the free id for every push of the clone, and asks again. Said with one push only, the next one would be told
/// another id, and be in the way of the first.
fn introduce(voice: &Voice, sent: &str) -> Command {
    let refspec =
        if needs_head(sent) { format!("HEAD:{sent}") } else { voice.prompt.request(sent) };
    let why = "if you have no id yet: this one, for every push of this clone";
    let header = format!("Zit-Agent: {}", voice.free_agent);
    if voice.is_over_network {
        let nameless = Prompt { agent: None, ..voice.prompt.clone() };
        let config = Command::git(["config", "--add", "http.extraHeader", &header], why);
        return config.then(&nameless.push(&[], &refspec, ""));
    }
    let config = Command::git(["config", "zit.agent", voice.free_agent.as_str()], why);
    config.then(&as_free_agent(voice).push(&[], &refspec, ""))
}

/// Who holds what; and, for somebody who names an agent with each push, that it may be that agent under another id.
fn holder_lines(voice: &Voice, holders: &[Holder]) -> Vec<Line> {
    let mut lines: Vec<Line> = holders.iter().map(holder_line).collect();
    if voice.prompt.agent.is_some() {
        let given: BTreeSet<&AgentId> = holders
            .iter()
            .map(|holder| &holder.agent)
            .filter(|agent| agent.as_str().starts_with(GIVEN))
            .collect();
        lines.extend(given.into_iter().map(|agent| {
            Line::new(format!("if you were given the id {agent}, push with -o zit.agent={agent}"))
        }));
    }
    lines
}

/// Commands that name the free agent.
fn as_free_agent(voice: &Voice) -> Prompt {
    Prompt { agent: Some(voice.free_agent.clone()), ..voice.prompt.clone() }
}

/// A refused change stays recorded, and holds what it writes, until its author drops it.
fn with_discard(voice: &Voice, mut options: Vec<Command>) -> Vec<Command> {
    if let Some(commit) = voice.pushed {
        let refspec = format!(":{}", zit_model::refs::change(commit));
        options.push(voice.prompt.push(&[], &refspec, "or give it up: drops the recorded change"));
    }
    options
}

/// Requests whose value matters are repeated with HEAD.
fn needs_head(sent: &str) -> bool {
    ["refs/for/", "refs/zit/accept", "refs/zit/wip/", "refs/zit/changes/"]
        .iter()
        .any(|prefix| sent.starts_with(prefix))
}

/// What gets a landing past the claims of others: to wait for the leases, to ask for the claims, or to give up.
fn past_fence(voice: &Voice, sent: &str, holders: &[Holder]) -> Vec<Command> {
    let mut options = vec![
        voice.status("who is at work, and how long each claim has left"),
        voice.land_again("land again, once the lease has run out"),
    ];
    let ask = "or ask for it then, so that nobody else takes it before you land";
    options.extend(holders.iter().map(|holder| voice.prompt.claim(&holder.resource, ask)));
    // A push of the mainline itself records nothing that could be dropped.
    if sent.starts_with("refs/heads/") { options } else { with_discard(voice, options) }
}

#[cfg(test)]
mod guide;
