//! Answers: an outcome's facts as an envelope and a report.

use serde_json::json;
use zit_footprint::Surroundings;
use zit_model::envelope::{Command as Printed, Envelope, Line, Note, Outcome as Word};
use zit_model::options::{Format, Options};
use zit_model::settings::Policy;
use zit_model::{AgentId, Oid, Prompt, RefChange, RefName, Resource, failure, quote, refs};
use zit_rules::{Age, Work};
use zit_store::Audience;
use zit_wire::receive::{ClientCapabilities, PushRequest, Report};
use zit_wire::report::{self, CommandReport, Rewritten};
use zit_wire::{pkt, side_band};

use crate::actor::{Outcome, Status};
use crate::again;
use crate::error::RefereeError;
use crate::hooks::PostHooks;
use crate::namespaced::NO_REFEREE;
use crate::push::Command;
use crate::speaker::OtherAgent;
use crate::verdict::{Already, Decision, ItemStep, Refusal, Step};
use crate::view::OpenItem;
use crate::words::{self, Voice};

/// The answer to one push: a report for git, and text for whoever reads it.
#[derive(Clone, Debug)]
pub struct PushAnswer {
    /// Whether the pack was taken in.
    pub unpack: Result<(), String>,
    /// One for each command, in the order sent.
    pub reports: Vec<CommandReport>,
    /// What is written on the side-band.
    pub text: String,
    /// The repository's hash function.
    pub object_format: gix_hash::Kind,
    /// The hooks that follow.
    pub(crate) post_hooks: Option<PostHooks>,
}

/// What became of one accept.
pub(crate) enum Accepted {
    /// It landed: current moved between these.
    Landed { from: Oid, to: Oid, released: Vec<Resource> },
    /// It would land.
    WouldLand,
    /// It had landed before.
    Already,
    /// It does not land.
    Refused(Refusal),
    /// Something broke on our side.
    Failed(String),
}

impl PushAnswer {
    /// The body of the response, in the form the client asked for.
    #[must_use]
    pub fn encode(&self, capabilities: &ClientCapabilities) -> Vec<u8> {
        let mut body = self.encode_open(capabilities);
        if capabilities.side_band_64k {
            pkt::flush(&mut body);
        }
        body
    }

    /// The same without the flush that ends it: where a client reads bands, more may follow on band 2.
    #[must_use]
    pub fn encode_open(&self, capabilities: &ClientCapabilities) -> Vec<u8> {
        let unpack = self.unpack.as_ref().copied().map_err(String::as_str);
        let report = report::encode(capabilities.report, unpack, &self.reports, self.object_format);
        if !capabilities.side_band_64k {
            return report;
        }
        let mut body = Vec::new();
        // Also for a quiet client: git says it is one whenever its stderr is no terminal, as an agent's is not.
        side_band::progress(&mut body, &self.text);
        if capabilities.report != Report::None {
            side_band::write(&mut body, side_band::Band::Data, &report);
        }
        body
    }

    /// Whether hooks are to run once the report is on its way.
    #[must_use]
    pub fn has_post_hooks(&self) -> bool {
        self.post_hooks.is_some()
    }

    /// Runs the repository's `post-receive` and `post-update` hooks, if the push moved something. To be called once the
    /// report is on its way; what they say goes to `audience`, and nothing changes the answer.
    pub fn run_post_hooks(&self, audience: &mut dyn Audience) {
        if let Some(hooks) = &self.post_hooks {
            hooks.run(audience);
        }
    }

    /// Every command refused for one reason, because the push as a whole cannot be read.
    pub(crate) fn refused(
        request: &PushRequest,
        kind: gix_hash::Kind,
        reason: &str,
        options: Vec<Printed>,
        format: Format,
    ) -> Self {
        let mut envelope = Envelope::new(Word::Refused, reason);
        envelope.options = options;
        Self {
            unpack: Ok(()),
            reports: all_ng(request, &quote::cut(&quote::one_line(reason), words::MAX_REASON)),
            text: render(&envelope, format),
            object_format: kind,
            post_hooks: None,
        }
    }

    /// Every command failed, because the pack was not taken in or something broke on our side.
    pub(crate) fn failed(
        request: &PushRequest,
        kind: gix_hash::Kind,
        error: &RefereeError,
        format: Format,
    ) -> Self {
        let told = chain(error);
        let mut envelope = Envelope::new(Word::Refused, &told);
        envelope.details.extend(error.hint().map(Line::new));
        let (unpack, reason) = match error {
            RefereeError::Pack(_) => (Err(told), "unpacker error"),
            RefereeError::Declined => (Ok(()), "ref updates aborted by hook"),
            RefereeError::Store(_)
            | RefereeError::Contended
            | RefereeError::Busy
            | RefereeError::Unflushed(_)
            | RefereeError::Suspect
            | RefereeError::Closed
            | RefereeError::Thread(_) => (Ok(()), "the referee failed; see the remote: lines"),
        };
        Self {
            unpack,
            reports: all_ng(request, reason),
            text: render(&envelope, format),
            object_format: kind,
            post_hooks: None,
        }
    }
}

/// The error and what caused it, in one line. Where the repository lies is not the pusher's business.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    shorten_paths(&quote::one_line(&failure::chain(error)))
}

/// Absolute paths, cut down to their last two components.
fn shorten_paths(text: &str) -> String {
    let word = |word: &str| {
        let (quoted, end) =
            word.split_at(word.trim_end_matches([':', ',', ';', ')', '\'', '"']).len());
        let path = quoted.trim_start_matches(['(', '\'', '"']);
        if !path.starts_with('/') || path.matches('/').count() < 3 {
            return word.to_owned();
        }
        let start = &quoted[..quoted.len() - path.len()];
        let last: Vec<&str> = path.trim_end_matches('/').rsplit('/').take(2).collect();
        format!("{start}…/{}/{}{end}", last.get(1).unwrap_or(&""), last.first().unwrap_or(&""))
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn all_ng(request: &PushRequest, reason: &str) -> Vec<CommandReport> {
    let ng =
        |name: &bstr::BString| CommandReport { name: name.clone(), result: Err(reason.into()) };
    request.commands.iter().map(|command| ng(&command.name)).collect()
}

fn render(envelope: &Envelope, format: Format) -> String {
    match format {
        Format::Text => envelope.to_text(),
        Format::Json => envelope.to_json(),
    }
}

/// The answer to a push that was decided. `around` answers for the repository; `accepted` has one entry for each command that asks to land something.
pub(crate) fn decided(
    outcome: &Outcome,
    accepted: &[(usize, Accepted)],
    absent: &[Resource],
    around: &dyn Surroundings,
    status: Option<&Status>,
    kind: gix_hash::Kind,
) -> PushAnswer {
    let branch = outcome.mainline.as_ref().and_then(RefName::branch);
    let speaker = &outcome.push.speaker;
    let prompt = Prompt {
        mainline: branch.map_or_else(|| "main".into(), ToString::to_string),
        agent: match &speaker.agent {
            Some(agent) => speaker.named_by_option.then(|| agent.clone()),
            // What was taken as its author's work is asked about as that agent: as another it would be in its own way.
            None => Some(outcome.done.author().unwrap_or_else(|| outcome.free_agent.clone())),
        },
    };
    let free_agent = outcome.free_agent.clone();
    let is_over_network = outcome.push.committer.address.is_some();
    let voice = Voice { prompt, pushed: None, free_agent, is_over_network };
    let mut telling = Telling::new(outcome, voice);
    for (n, (command, decision)) in
        outcome.push.commands.iter().zip(&outcome.verdict.commands).enumerate()
    {
        let landing = accepted.iter().find(|(at, _)| *at == n).map(|(_, accepted)| accepted);
        telling.command(command, decision, landing);
    }
    for (text, decision) in &outcome.verdict.options {
        telling.wish(text, decision);
    }
    telling.ended(&outcome.done.released);
    let mainline = telling.voice.prompt.mainline.clone();
    telling.details.extend(
        absent.iter().map(|r| Line::new(format!("{} does not exist on {mainline} yet", r.shown()))),
    );
    let (reports, envelope) = telling.finish(around, status);
    PushAnswer {
        unpack: Ok(()),
        reports,
        text: render(&envelope, outcome.push.options.format),
        object_format: kind,
        post_hooks: None,
    }
}

/// Gathers lines, reports and options while an outcome is told.
struct Telling<'a> {
    outcome: &'a Outcome,
    voice: Voice,
    said: Vec<(Word, String)>,
    details: Vec<Line>,
    options: Vec<Printed>,
    reports: Vec<CommandReport>,
    landed: Vec<Oid>,
}

impl<'a> Telling<'a> {
    fn new(outcome: &'a Outcome, voice: Voice) -> Self {
        Self {
            outcome,
            voice,
            said: Vec::new(),
            details: Vec::new(),
            options: Vec::new(),
            reports: Vec::new(),
            landed: Vec::new(),
        }
    }

    fn dry_run(&self) -> bool {
        self.outcome.push.options.dry_run
    }

    fn command(&mut self, command: &Command, decision: &Decision, accepted: Option<&Accepted>) {
        let sent = command.sent.to_string();
        let result = match (decision, accepted) {
            (Decision::Refuse(refusal), _) | (_, Some(Accepted::Refused(refusal))) => {
                // A dry run records nothing that could be dropped.
                self.voice.pushed = command.new.filter(|_| !self.dry_run());
                Err(self.refuse(refusal, &sent))
            }
            (_, Some(Accepted::Failed(why))) => {
                self.said.push((Word::Refused, format!("{sent}: {why}")));
                Err("the referee failed; see the remote: lines, and push again".into())
            }
            (Decision::Nothing(already), _) => {
                let said = match (already, command.new) {
                    (Already::Same, None) => format!("{sent} does not exist"),
                    _ => nothing(already, &sent),
                };
                self.said.push((Word::NothingToDo, said));
                Ok(Vec::new())
            }
            (Decision::Do(step), _) if self.dry_run() => {
                let what = if let Step::Land { commit, .. } = step {
                    format!("{} would land on {}", commit.short(), self.voice.prompt.mainline)
                } else {
                    format!("{sent} would be done")
                };
                self.said.push((Word::Ok, format!("dry run: {what}")));
                let name = Some(refs::dry_run());
                Ok(vec![Rewritten { refname: name, old: None, new: command.new, forced: false }])
            }
            (Decision::Do(step), accepted) => Ok(self.done(command, step, accepted)),
        };
        self.reports.push(CommandReport { name: command.sent.clone(), result });
    }

    fn wish(&mut self, text: &str, decision: &Decision) {
        match decision {
            Decision::Refuse(refusal) => drop(self.refuse(refusal, text)),
            Decision::Nothing(already) => {
                self.said.push((Word::NothingToDo, nothing(already, text)));
            }
            Decision::Do(_) if self.dry_run() => {
                self.said.push((Word::Ok, format!("dry run: {text} would be granted")));
            }
            Decision::Do(step) => {
                let (said, _) = self.claim_step(step).unwrap_or_else(|| (text.into(), None));
                self.said.push((Word::Ok, said));
            }
        }
    }

    fn refuse(&mut self, refusal: &Refusal, sent: &str) -> String {
        let told = words::refusal(refusal, sent, &self.voice);
        // A claim's reason names the resource; the request ref would only say it again.
        let known = sent.starts_with("refs/zit/claim/") || told.reason.contains(sent);
        let named = if known { String::new() } else { format!("{sent}: ") };
        self.said.push((Word::Refused, format!("{named}{}", told.reason)));
        self.details.extend(told.details);
        for option in told.options {
            if !self.options.contains(&option) {
                self.options.push(option);
            }
        }
        told.reason
    }

    fn done(
        &mut self,
        command: &Command,
        step: &Step,
        accepted: Option<&Accepted>,
    ) -> Vec<Rewritten> {
        let sent = command.sent.to_string();
        let (said, moved) = match step {
            Step::Update { update, item } => {
                let said = match item {
                    ItemStep::Open { agent, item, .. } if self.opened(command) => {
                        let writes = command.study.as_ref().map_or(0, |s| s.footprint.writes.len());
                        let writes = words::units(writes);
                        format!("{sent} is open work of {agent} (item {item}): {writes} written")
                    }
                    ItemStep::Close => format!("{sent} is no longer open work"),
                    // What landed with the same push is no open work.
                    ItemStep::Open { .. } | ItemStep::None => match update.change {
                        RefChange::Create { .. } => format!("{sent} created"),
                        RefChange::Move { .. } => format!("{sent} moved"),
                        RefChange::Delete { .. } => format!("{sent} deleted"),
                    },
                };
                let old = update.change.old_value();
                let differs = old != command.old;
                let new = update.change.new_value();
                let moved = Rewritten { refname: None, old, new, forced: false };
                (said, if differs { vec![moved] } else { Vec::new() })
            }
            Step::Forward { mainline, .. } => {
                let said = match mainline.change {
                    RefChange::Create { .. } => {
                        format!("{sent} is the mainline: changes land on it")
                    }
                    RefChange::Move { .. } | RefChange::Delete { .. } => {
                        format!("{sent} moved forward")
                    }
                };
                (said, Vec::new())
            }
            Step::Tell => ("heard".into(), Vec::new()),
            Step::Handled(updates) => {
                (format!("{sent} was left to the proc-receive hook"), updates.clone())
            }
            Step::Land { commit, .. } => self.landed(*commit, accepted),
            Step::Grant(_) | Step::Renew { .. } | Step::Release { .. } => {
                let (said, moved) = self.claim_step(step).unwrap_or((sent, None));
                (said, moved.into_iter().collect())
            }
        };
        self.said.push((Word::Ok, said));
        moved
    }

    fn opened(&self, command: &Command) -> bool {
        self.outcome.done.opened.iter().any(|item| Some(&item.name) == command.name.as_ref())
    }

    /// The sentence for a claim that was written, renewed or dropped, and how its ref moved.
    fn claim_step(&self, step: &Step) -> Option<(String, Option<Rewritten>)> {
        let moved = |key: &str, old, new| Rewritten {
            refname: Some(refs::claim(key)),
            old,
            new,
            forced: false,
        };
        match step {
            Step::Grant(grant) => {
                let oid = self.outcome.done.granted.iter().find(|(g, _)| g == grant)?.1;
                let from = match &grant.taken_from {
                    Some(agent) => format!(", taken over from {agent}, whose lease had lapsed"),
                    None => String::new(),
                };
                let said = format!(
                    "{} holds {} for {} (epoch {}){from}",
                    grant.record.agent,
                    grant.record.resource.shown(),
                    words::time(grant.record.lease),
                    grant.record.epoch
                );
                Some((said, Some(moved(&grant.record.resource.key(), grant.expected, Some(oid)))))
            }
            Step::Renew { resource, oid } => {
                let said = format!("the lease on {} starts anew", resource.shown());
                Some((said, Some(moved(&resource.key(), Some(*oid), Some(*oid)))))
            }
            Step::Release { resource, oid } => Some((
                format!("{} is released", resource.shown()),
                Some(moved(&resource.key(), Some(*oid), None)),
            )),
            Step::Update { .. }
            | Step::Forward { .. }
            | Step::Tell
            | Step::Handled(_)
            | Step::Land { .. } => None,
        }
    }

    /// Claims that ended because what they were for has landed.
    fn ended(&mut self, released: &[Resource]) {
        let line = |r: &Resource| Line::new(format!("the claim on {} ended with it", r.shown()));
        self.details.extend(released.iter().map(line));
    }

    fn landed(&mut self, commit: Oid, accepted: Option<&Accepted>) -> (String, Vec<Rewritten>) {
        let current = |from, to| Rewritten {
            refname: Some(refs::current()),
            old: Some(from),
            new: Some(to),
            forced: false,
        };
        let mainline = self.voice.prompt.mainline.clone();
        match accepted {
            Some(Accepted::Landed { from, to, released }) => {
                self.landed.push(commit);
                self.ended(released);
                let fetch = Printed::git(["fetch", "origin"], "brings it to you");
                self.options.push(fetch);
                let how = if *to == commit {
                    format!("{} landed on {mainline}", commit.short())
                } else {
                    format!("{} landed on {mainline} as {}", commit.short(), to.short())
                };
                (how, vec![current(*from, *to)])
            }
            Some(Accepted::Already | Accepted::WouldLand) | None => {
                (format!("{} has landed before", commit.short()), Vec::new())
            }
            Some(Accepted::Refused(_) | Accepted::Failed(_)) => (String::new(), Vec::new()),
        }
    }

    fn finish(
        mut self,
        around: &dyn Surroundings,
        status: Option<&Status>,
    ) -> (Vec<CommandReport>, Envelope) {
        let word = |word| self.said.iter().any(|(said, _)| *said == word);
        let outcome = if word(Word::Refused) {
            Word::Refused
        } else if word(Word::NothingToDo) && !word(Word::Ok) {
            Word::NothingToDo
        } else {
            Word::Ok
        };
        // What decided the outcome is the summary; the rest are facts.
        let first = self.said.iter().position(|(word, _)| *word == outcome);
        let summary = match first {
            Some(n) => self.said.remove(n).1,
            None => "nothing was asked for".into(),
        };
        let mut envelope = Envelope::new(outcome, summary);
        envelope.details = self.said.iter().map(|(_, said)| Line::new(said)).collect();
        envelope.details.extend(self.details);
        envelope.options = self.options;
        envelope.notes = notes(self.outcome, &self.landed, around, &self.voice.prompt);
        envelope.open = (
            envelope.notes.len(),
            envelope
                .notes
                .iter()
                .filter(|n| n.severity == zit_model::envelope::Severity::Act)
                .count(),
        );
        for holder in &self.outcome.fences {
            let line = words::holder_line(holder);
            if envelope.details.contains(&line) {
                continue;
            }
            let then = match self.outcome.bind {
                Policy::Refuse => "; landing waits for it",
                Policy::Advise => "",
            };
            envelope.warnings.push(Line::new(format!("{}{then}", line.as_str())));
        }
        envelope.data = data(self.outcome);
        if let Some(status) = status {
            crate::status::tell(status, &mut envelope);
        }
        (self.reports, envelope)
    }
}

fn nothing(already: &Already, sent: &str) -> String {
    match already {
        Already::NoClaim(resource) => format!("nobody holds {}", resource.shown()),
        Already::Accepted(commit) => format!("{} has landed before", commit.short()),
        Already::Same => format!("{sent} is so already"),
    }
}

/// What the rules find between the work this push opened, and did not land at once, and everybody else's.
fn notes(
    outcome: &Outcome,
    landed: &[Oid],
    around: &dyn Surroundings,
    prompt: &Prompt,
) -> Vec<Note> {
    fn work(item: &OpenItem, age: Age) -> Work<'_> {
        Work {
            age,
            agent: &item.agent,
            item: &item.item,
            intent: item.intent.as_deref(),
            name: &item.name,
            footprint: &item.footprint,
        }
    }
    let others: Vec<Work<'_>> = outcome.others.iter().map(|(item, age)| work(item, *age)).collect();
    let claimed: Vec<&Resource> = outcome.fences.iter().map(|holder| &holder.resource).collect();
    let mut notes: Vec<Note> = outcome
        .done
        .opened
        .iter()
        .filter(|item| !landed.contains(&item.head))
        .flat_map(|item| {
            zit_rules::evaluate(&work(item, Age::Fresh), &others, around, &claimed, prompt)
        })
        .collect();
    notes.sort_by(|a, b| (a.severity, &a.id).cmp(&(b.severity, &b.id)));
    notes.dedup_by(|a, b| a.id == b.id);
    notes
}

/// What a program reads: claims with their epochs, items with what they write.
fn data(outcome: &Outcome) -> serde_json::Value {
    let claims: Vec<_> = outcome
        .done
        .granted
        .iter()
        .map(|(grant, oid)| {
            json!({
                "resource": grant.record.resource.to_string(), "agent": grant.record.agent.as_str(),
                "epoch": grant.record.epoch, "leaseSeconds": grant.record.lease.as_secs(), "oid": oid.to_string(),
            })
        })
        .collect();
    let items: Vec<_> = outcome
        .done
        .opened
        .iter()
        .map(|item| {
            let writes: Vec<_> =
                item.footprint.writes.keys().take(200).map(ToString::to_string).collect();
            json!({
                "agent": item.agent.as_str(), "item": item.item.as_str(),
                "ref": item.name.to_string(), "head": item.head.to_string(), "writes": writes,
            })
        })
        .collect();
    json!({ "claims": claims, "items": items })
}

/// The answer to options that cannot be read.
pub(crate) fn bad_options(
    request: &PushRequest,
    kind: gix_hash::Kind,
    error: &zit_model::options::OptionError,
) -> PushAnswer {
    let option = again::mended(request).unwrap_or_else(|| {
        // The options cannot be read as a whole; the agent among them can, as far as it is one.
        let named = request.options.iter().find_map(|option| option.strip_prefix(b"zit.agent="));
        let named = named.and_then(|id| AgentId::new(std::str::from_utf8(id).ok()?).ok());
        let prompt = Prompt { mainline: "main".into(), agent: named };
        prompt.push(&["zit.status"], "HEAD:refs/zit/tell", "an option that works")
    });
    let json = request.options.iter().any(|option| option == "zit.format=json");
    let format = if json { Format::Json } else { Options::default().format };
    PushAnswer::refused(request, kind, &error.to_string(), vec![option], format)
}

/// The answer to a push that the repository's `pre-receive` hook refuses.
pub(crate) fn declined_by_hook(
    request: &PushRequest,
    kind: gix_hash::Kind,
    options: &Options,
) -> PushAnswer {
    let agent = options.agent.clone();
    let prompt = Prompt { mainline: "main".into(), agent };
    let status = prompt.push(&["zit.status"], "HEAD:refs/zit/tell", "what is open here");
    PushAnswer::refused(request, kind, "pre-receive hook declined", vec![status], options.format)
}

/// The answer to a push that speaks as an agent which its login may not speak for.
pub(crate) fn other_agent(
    request: &PushRequest,
    kind: gix_hash::Kind,
    options: &Options,
    error: &OtherAgent,
) -> PushAnswer {
    let prompt = Prompt { mainline: "main".into(), agent: None };
    let status = prompt.push(&["zit.status"], "HEAD:refs/zit/tell", "without zit.agent");
    PushAnswer::refused(request, kind, &error.to_string(), vec![status], options.format)
}

/// The answer to a push whose certificate signs other options than came with it.
pub(crate) fn unsigned_options(
    request: &PushRequest,
    kind: gix_hash::Kind,
    options: &Options,
) -> PushAnswer {
    let again = Printed::git(["push", "--signed", "origin", "HEAD"], "signs what is sent with it");
    PushAnswer::refused(request, kind, "inconsistent push options", vec![again], options.format)
}

/// The answer to a push to a namespace that asks for the referee.
pub(crate) fn no_referee(
    request: &PushRequest,
    kind: gix_hash::Kind,
    options: &Options,
) -> PushAnswer {
    let prompt = Prompt { mainline: "main".into(), agent: options.agent.clone() };
    let plain =
        prompt.push(&[], "HEAD", "without these; they are for the repository's own address");
    PushAnswer::refused(request, kind, NO_REFEREE, vec![plain], options.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pusher_does_not_learn_where_the_repository_lies() {
        for (text, shown) in [
            ("cannot write /srv/git/app.git/zit/tx/0: no space", "cannot write …/tx/0: no space"),
            (
                "unable to write '/srv/git/app.git/objects/': x",
                "unable to write '…/app.git/objects': x",
            ),
            ("see refs/heads/x and a/b/c/d", "see refs/heads/x and a/b/c/d"),
            ("/dev/null", "/dev/null"),
        ] {
            assert_eq!(shorten_paths(text), shown);
        }
    }
}
