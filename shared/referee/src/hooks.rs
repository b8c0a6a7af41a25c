//! When the repository's hooks run in a push, what they are told, and what their answers mean.
//!
//! [`Errand::pre_receive`] and [`Errand::updates`] run their hooks beside the actor, once the objects are in quarantine
//! and before anything is judged; between them is the turn of [`crate::proc_receive`]. [`PostHooks::run`] runs `post-receive` and `post-update` once the report is written. Neither runs
//! for a dry run: hooks act. [`Voter`] asks `reference-transaction`, the only hook that runs on the actor.
//!
//! What hooks say is passed on as [`Overheard`] text, so that it never reads as ours.
//!
//! Source: `spec/hooks.md`; githooks(5).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use bstr::BString;
use zit_model::overheard::Overheard;
use zit_model::{Namespace, Oid, RefName, RefUpdate, quote, refs};
use zit_store::{
    Audience, Gone, Hook, HookCall, HookLine, Hooks, ProgramEnd, Quarantine, Store, StoreError,
    Talk, quarantine_env,
};
use zit_wire::receive::{Command, PushRequest};
use zit_wire::report::Rewritten;

use crate::actor::Outcome;
use crate::answer::Accepted;
use crate::denied::Denied;
use crate::error::RefereeError;
use crate::open;
use crate::proc_receive::Handled;
use crate::signed::Signed;
use crate::speaker::{Caller, Committer, Speaker};
use crate::verdict::{Decision, Step};

/// Nobody: what hooks say is thrown away, and no hook ends because of it.
pub struct Nobody;

impl Audience for Nobody {
    fn hear(&mut self, _: &[u8]) -> Result<(), Gone> {
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

/// The hooks of one push.
#[derive(Clone, Debug)]
pub(crate) struct Errand {
    hooks: Hooks,
    /// Who pushes.
    identity: Vec<(String, OsString)>,
    /// The push options and what is known of a certificate: told to those hooks alone that look at the push as a whole.
    options: Vec<(String, OsString)>,
    /// Whose names the hooks are told.
    namespace: Option<Namespace>,
}

/// What is left to run once a push is answered.
#[derive(Clone, Debug)]
pub(crate) struct PostHooks {
    errand: Errand,
    moved: Vec<HookLine>,
}

impl Errand {
    pub(crate) fn new(
        store: &Store,
        caller: &Caller,
        speaker: &Speaker,
        request: &PushRequest,
        signed: Option<&Signed>,
    ) -> Result<Self, StoreError> {
        let count = request.options.len().to_string();
        let mut options = vec![("GIT_PUSH_OPTION_COUNT".to_owned(), count.into())];
        for (n, option) in request.options.iter().enumerate() {
            // The environment has no NUL; git ends the option there.
            let text = option.split(|byte| *byte == 0).next().unwrap_or_default();
            options.push((format!("GIT_PUSH_OPTION_{n}"), OsString::from_vec(text.to_vec())));
        }
        options.extend(signed.map(Signed::env).unwrap_or_default());
        let (identity, namespace) = (identity(caller, speaker), caller.namespace.clone());
        Ok(Self { hooks: store.hooks()?, identity, options, namespace })
    }

    /// Whether there is such a hook.
    pub(crate) fn has(&self, hook: Hook) -> bool {
        self.hooks.has(hook)
    }

    /// The repository's object format.
    pub(crate) fn kind(&self) -> gix_hash::Kind {
        self.hooks.kind()
    }

    /// Asks `pre-receive` about commands whose objects are there, and says whether it agrees. Those in `broken`, the
    /// hidden ones, and those without a valid name are refused in any case and not shown.
    pub(crate) fn pre_receive(
        &self,
        request: &PushRequest,
        broken: &BTreeSet<usize>,
        denied: &Denied,
        incoming: Option<&mut Quarantine>,
        audience: &mut dyn Audience,
    ) -> Result<bool, StoreError> {
        let shown = shown(request, broken, denied);
        if !self.hooks.has(Hook::PreReceive) || shown.is_empty() {
            return Ok(true);
        }
        let objects = quarantine_env(incoming)?;
        let lines: Vec<HookLine> = shown
            .iter()
            .map(|(_, c)| HookLine { old: c.old, new: c.new, name: c.name.clone() })
            .collect();
        let env = [self.identity.as_slice(), &self.options, &objects].concat();
        let input = self.hooks.lines(&lines);
        let call = HookCall { hook: Hook::PreReceive, args: &[], env: &env, input: &input };
        Ok(self.agrees(&call, audience))
    }

    /// Asks `update` about each command that neither the configuration nor another hook has decided; those that it
    /// declines, by their place.
    pub(crate) fn updates(
        &self,
        request: &PushRequest,
        broken: &BTreeSet<usize>,
        denied: &Denied,
        handled: &Handled,
        incoming: Option<&mut Quarantine>,
        audience: &mut dyn Audience,
    ) -> Result<BTreeSet<usize>, StoreError> {
        let shown = shown(request, broken, denied);
        if !self.hooks.has(Hook::Update) || shown.is_empty() {
            return Ok(BTreeSet::new());
        }
        let objects = quarantine_env(incoming)?;
        let declined = shown
            .iter()
            .filter(|(n, _)| !denied.refused.contains_key(n) && !handled.settles(*n))
            .filter(|(_, command)| !self.update(command, &objects, audience));
        Ok(declined.map(|(n, _)| *n).collect())
    }

    fn update(
        &self,
        command: &Command,
        objects: &[(String, OsString)],
        audience: &mut dyn Audience,
    ) -> bool {
        let name = OsString::from_vec(command.name.to_vec());
        let args = [name, self.hooks.hex(command.old).into(), self.hooks.hex(command.new).into()];
        let env = [&self.identity, objects].concat();
        let call = HookCall { hook: Hook::Update, args: &args, env: &env, input: b"" };
        let agrees = self.agrees(&call, audience);
        if !agrees {
            let name = quote::one_line(&command.name.to_string());
            say(audience, &format!("error: hook declined to update {name}\n"));
        }
        agrees
    }

    /// Runs a hook, and says why it did not answer where it did not.
    fn agrees(&self, call: &HookCall<'_>, audience: &mut dyn Audience) -> bool {
        let mut passing_on = PassingOn { audience, overheard: Overheard::default() };
        let ended = self.hooks.run(call, &mut passing_on);
        passing_on.end();
        tell_end(call.hook, &ended, audience);
        matches!(ended, ProgramEnd::Passed)
    }

    /// Runs `proc-receive`, and says why it did not answer where it did not; `None` without such a hook.
    pub(crate) fn converse(
        &self,
        talk: &mut dyn Talk,
        audience: &mut dyn Audience,
    ) -> Option<ProgramEnd> {
        let mut passing_on = PassingOn { audience, overheard: Overheard::default() };
        let ended = self.hooks.converse(&self.identity, talk, &mut passing_on);
        passing_on.end();
        if let Some(ended) = &ended {
            tell_end(Hook::ProcReceive, ended, audience);
        }
        ended
    }

    /// What to run after a push that moved something.
    pub(crate) fn after(
        self,
        outcome: &Outcome,
        accepted: &[(usize, Accepted)],
    ) -> Option<PostHooks> {
        let runs_any = self.hooks.has(Hook::PostReceive) || self.hooks.has(Hook::PostUpdate);
        if !runs_any && !self.hooks.updates_server_info() {
            return None;
        }
        let mut moved = moved(outcome, accepted);
        if let Some(namespace) = &self.namespace {
            for line in &mut moved {
                if let Some(name) = line.name.strip_prefix(namespace.prefix().as_bytes()) {
                    line.name = name.into();
                }
            }
        }
        (!moved.is_empty()).then_some(PostHooks { errand: self, moved })
    }
}

impl PostHooks {
    /// Runs the hooks that follow a push. What is done is done: they go on also if nobody hears them any more.
    pub(crate) fn run(&self, audience: &mut dyn Audience) {
        let Self { errand, moved } = self;
        let mut patient = Patient(audience);
        let input = errand.hooks.lines(moved);
        let env = [errand.identity.as_slice(), &errand.options].concat();
        let call = HookCall { hook: Hook::PostReceive, args: &[], env: &env, input: &input };
        errand.agrees(&call, &mut patient);
        let names: Vec<OsString> =
            moved.iter().map(|line| OsString::from_vec(line.name.to_vec())).collect();
        let call =
            HookCall { hook: Hook::PostUpdate, args: &names, env: &errand.identity, input: b"" };
        errand.agrees(&call, &mut patient);
        if errand.hooks.updates_server_info()
            && let Err(error) = errand.hooks.update_server_info()
        {
            tracing::warn!(%error, "the files for clients without smart HTTP are not written");
        }
    }
}

/// The environment by which git's server knows who pushes.
fn committer_env(committer: &Committer) -> Vec<(String, OsString)> {
    let mut env = vec![
        ("GIT_COMMITTER_EMAIL".to_owned(), committer.email.clone().into()),
        ("GIT_COMMITTER_NAME".to_owned(), committer.user.clone().into()),
    ];
    if let Some(address) = committer.address {
        env.push(("REMOTE_ADDR".to_owned(), address.to_string().into()));
    }
    if committer.proven {
        env.push(("REMOTE_USER".to_owned(), committer.user.clone().into()));
    }
    env
}

/// The same, and what zit knows of it beside.
fn identity(caller: &Caller, speaker: &Speaker) -> Vec<(String, OsString)> {
    let mut env = committer_env(&caller.committer());
    let principal = quote::one_line(&speaker.principal.name);
    env.push(("ZIT_PRINCIPAL".to_owned(), principal.into()));
    if let Some(agent) = &speaker.agent {
        env.push(("ZIT_AGENT".to_owned(), agent.as_str().into()));
    }
    if let Some(namespace) = &caller.namespace {
        env.push(("GIT_NAMESPACE".to_owned(), namespace.as_str().into()));
    }
    env
}

/// The `reference-transaction` hook of one transaction, if there is such a hook and a ref that it is shown.
///
/// It runs on the actor, while refs are locked: it has ten seconds. Only refs outside `refs/zit/` are shown, so that a
/// claim never waits for it. Dropping this without [`Voter::committed`] tells the hook that the transaction was given
/// up.
pub(crate) struct Voter(Option<Vote>);

struct Vote {
    hooks: Hooks,
    env: Vec<(String, OsString)>,
    lines: Vec<u8>,
}

impl Voter {
    /// Asks the hook about a transaction that is prepared.
    pub(crate) fn ask(
        store: &Store,
        committer: Option<&Committer>,
        updates: &[RefUpdate],
        objects: &mut [Quarantine],
    ) -> Result<Self, RefereeError> {
        let mut shown: Vec<HookLine> =
            updates.iter().filter(|update| !update.name.is_zit()).map(line_of).collect();
        if shown.is_empty() {
            return Ok(Self(None));
        }
        let hooks = store.hooks()?;
        if !hooks.has(Hook::ReferenceTransaction) {
            return Ok(Self(None));
        }
        // git shows a move of HEAD's branch as one of HEAD, too.
        let head = open::head_target(store)?;
        let heads = head.and_then(|head| shown.iter().find(|l| l.name == head.as_bstr()).cloned());
        shown.extend(heads.map(|line| HookLine { name: "HEAD".into(), ..line }));
        let env = committer.map(committer_env).unwrap_or_default();
        let lines = hooks.lines(&shown);
        let vote = Vote { hooks, env, lines };
        let apart = quarantine_env(objects)?;
        let ended = vote.tell("prepared", &apart);
        let voter = Self(Some(vote));
        if matches!(ended, ProgramEnd::Passed) {
            return Ok(voter);
        }
        tracing::info!(?ended, "the reference-transaction hook declined");
        // Dropping the voter tells the hook.
        Err(RefereeError::Declined)
    }

    /// Tells the hook that the refs have moved.
    pub(crate) fn committed(mut self) {
        if let Some(vote) = self.0.take() {
            vote.tell_end("committed");
        }
    }
}

impl Drop for Voter {
    fn drop(&mut self) {
        if let Some(vote) = self.0.take() {
            vote.tell_end("aborted");
        }
    }
}

impl Vote {
    fn tell(&self, state: &str, apart: &[(String, OsString)]) -> ProgramEnd {
        let env = [self.env.as_slice(), apart].concat();
        let args = [OsString::from(state)];
        let hook = Hook::ReferenceTransaction;
        let call = HookCall { hook, args: &args, env: &env, input: &self.lines };
        self.hooks.run(&call, &mut Logged)
    }

    /// What the hook says of a transaction that is over changes nothing.
    fn tell_end(&self, state: &str) {
        let ended = self.tell(state, &[]);
        if !matches!(ended, ProgramEnd::Passed) {
            tracing::warn!(state, ?ended, "the reference-transaction hook failed");
        }
    }
}

/// The server's log, where git's server too leaves what this hook says.
struct Logged;

impl Audience for Logged {
    fn hear(&mut self, words: &[u8]) -> Result<(), Gone> {
        let words = quote::one_line(&String::from_utf8_lossy(words));
        tracing::info!(words, "the reference-transaction hook says");
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Gone> {
        Ok(())
    }
}

/// The refs that a push moved, by what it asked for: a landing is the mainline's move, a claim its ref's. What ended by
/// itself because of it is not among them.
fn moved(outcome: &Outcome, accepted: &[(usize, Accepted)]) -> Vec<HookLine> {
    if outcome.push.options.dry_run {
        return Vec::new();
    }
    let mut lines = Vec::new();
    let commands = outcome.verdict.commands.iter().enumerate().map(|(n, d)| (Some(n), d));
    let options = outcome.verdict.options.iter().map(|(_, d)| (None, d));
    for (n, decision) in commands.chain(options) {
        match decision {
            Decision::Do(Step::Land { record, .. }) => {
                lines.extend(record.iter().map(|(update, _)| line_of(update)));
                let landed = accepted.iter().find(|(at, _)| Some(*at) == n);
                if let (Some((_, Accepted::Landed { from, to, .. })), Some(mainline)) =
                    (landed, &outcome.mainline)
                {
                    lines.push(line(mainline, Some(*from), Some(*to)));
                }
            }
            Decision::Do(Step::Handled(updates)) => {
                let command = n.and_then(|n| outcome.push.commands.get(n));
                lines.extend(command.into_iter().flat_map(|c| handled_lines(c, updates)));
            }
            Decision::Do(step) => lines.extend(step_line(outcome, step)),
            Decision::Nothing(_) | Decision::Refuse(_) => {}
        }
    }
    lines
}

fn step_line(outcome: &Outcome, step: &Step) -> Option<HookLine> {
    match step {
        Step::Update { update, .. } | Step::Forward { mainline: update, .. } => {
            Some(line_of(update))
        }
        Step::Grant(grant) => {
            let (_, oid) = outcome.done.granted.iter().find(|(granted, _)| granted == grant)?;
            Some(line(&refs::claim(&grant.record.resource.key()), grant.expected, Some(*oid)))
        }
        Step::Release { resource, oid } => {
            Some(line(&refs::claim(&resource.key()), Some(*oid), None))
        }
        Step::Renew { .. } | Step::Tell | Step::Handled(_) | Step::Land { .. } => None,
    }
}

/// What `proc-receive` says that it did; the command itself where it says no more than that.
fn handled_lines(command: &crate::push::Command, updates: &[Rewritten]) -> Vec<HookLine> {
    let sent = || HookLine { old: command.old, new: command.new, name: command.sent.clone() };
    if updates.is_empty() {
        return vec![sent()];
    }
    let line = |update: &Rewritten| HookLine {
        old: update.old,
        new: update.new,
        name: update.refname.as_ref().map_or_else(|| command.sent.clone(), |r| r.as_bstr().into()),
    };
    updates.iter().map(line).collect()
}

fn line_of(update: &RefUpdate) -> HookLine {
    line(&update.name, update.change.old_value(), update.change.new_value())
}

fn line(name: &RefName, old: Option<Oid>, new: Option<Oid>) -> HookLine {
    HookLine { old, new, name: BString::from(name.as_bstr().to_vec()) }
}

/// What hooks are shown of a push.
fn shown<'r>(
    request: &'r PushRequest,
    broken: &BTreeSet<usize>,
    denied: &Denied,
) -> Vec<(usize, &'r Command)> {
    let commands = request.commands.iter().enumerate();
    commands
        .filter(|(n, _)| !broken.contains(n) && !denied.hidden.contains_key(n))
        .filter(|(_, command)| RefName::new(&command.name).is_ok())
        .collect()
}

/// Says why a hook did not answer where it did not.
fn tell_end(hook: Hook, ended: &ProgramEnd, audience: &mut dyn Audience) {
    match ended {
        ProgramEnd::Passed | ProgramEnd::Declined(_) | ProgramEnd::Abandoned => {}
        ProgramEnd::TimedOut(after) => {
            let seconds = after.as_secs();
            say(audience, &format!("error: {hook} hook ended after {seconds} seconds\n"));
        }
        ProgramEnd::Failed(error) => {
            tracing::warn!(%hook, %error, "cannot run a hook");
            say(audience, &format!("error: cannot run the {hook} hook: {error}\n"));
        }
    }
}

/// Tells what is wrong with what a hook said, its own words among ours.
pub(crate) fn complain(complaint: &[u8], audience: &mut dyn Audience) {
    let mut passing_on = PassingOn { audience, overheard: Overheard::default() };
    // Whoever has gone is noticed by the next hook.
    let _ = passing_on.hear(&[b"error: ", complaint, b"\n"].concat());
    passing_on.end();
}

/// Words of our own. Whoever has gone is noticed by the next hook.
fn say(audience: &mut dyn Audience, text: &str) {
    let _ = audience.hear(text.as_bytes());
}

/// Makes what a hook says fit to stand among our own lines.
struct PassingOn<'a> {
    audience: &'a mut dyn Audience,
    overheard: Overheard,
}

impl PassingOn<'_> {
    fn end(self) {
        let rest = self.overheard.end();
        if !rest.is_empty() {
            say(self.audience, &rest);
        }
    }
}

impl Audience for PassingOn<'_> {
    fn hear(&mut self, words: &[u8]) -> Result<(), Gone> {
        let shown = self.overheard.pass(words);
        if shown.is_empty() { Ok(()) } else { self.audience.hear(shown.as_bytes()) }
    }

    fn wait(&mut self) -> Result<(), Gone> {
        self.audience.wait()
    }
}

/// Lets a hook go on although its audience has gone.
struct Patient<'a>(&'a mut dyn Audience);

impl Audience for Patient<'_> {
    fn hear(&mut self, words: &[u8]) -> Result<(), Gone> {
        let _ = self.0.hear(words);
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Gone> {
        let _ = self.0.wait();
        Ok(())
    }
}
