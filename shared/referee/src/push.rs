//! A push as the referee judges it: commands expanded to what they ask for, and what was learned of their objects.
//!
//! [`expand`] turns what the wire carried into a [`Push`]; the studies are filled in from objects before judging.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bstr::{BString, ByteSlice};
use zit_footprint::Footprint;
use zit_model::document::ClaimRequest;
use zit_model::options::Options;
use zit_model::refs::{self, Address, Request};
use zit_model::resource::ResourceError;
use zit_model::{AgentId, ItemId, Oid, RefName, Resource};
use zit_wire::receive::PushRequest;
use zit_wire::report::Rewritten;

use crate::signed::Signed;
use crate::speaker::{Caller, Committer, Speaker};
use crate::verdict::{Decision, Refusal, Verdict};

/// How many branches one push may move before it counts as a mirror's, whose branches open no item.
pub(crate) const MIRROR_BRANCHES: usize = 8;

/// The longest component of a stored refname, in bytes. Source: 255 for a file's name, less `.lock`.
const MAX_COMPONENT: usize = 250;

/// A push whose speaker is known.
#[derive(Clone, Debug)]
pub(crate) struct Push {
    /// Who speaks.
    pub speaker: Speaker,
    /// Who moves the refs, as logs and hooks name it.
    pub committer: Committer,
    /// What the options say.
    pub options: Options,
    /// The item named by option or header.
    pub item: Option<ItemId>,
    /// The certificate, and whose it is.
    pub signed: Option<Signed>,
    /// All refs or none.
    pub atomic: bool,
    /// What is asked for, in the order sent.
    pub commands: Vec<Command>,
    /// Claims and releases given as options: the required ones first.
    pub wishes: Vec<Wish>,
    /// The mainline that the commands were expanded for.
    pub mainline: Option<RefName>,
    /// Whether nothing lands because a work tree has the mainline checked out.
    pub guards_mainline: bool,
    /// The branch that becomes the mainline of a repository without any.
    pub adopts: Option<RefName>,
}

/// One command of a push.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The refname as sent, for the report.
    pub sent: BString,
    /// The ref that it is about, where the refname is one: what it names if that is a symbolic ref.
    pub name: Option<RefName>,
    /// The value that the client saw.
    pub old: Option<Oid>,
    /// The value that it wants.
    pub new: Option<Oid>,
    /// What the refname asks for.
    pub ask: Ask,
    /// What was learned of the new value; refs that take any object have none.
    pub study: Option<Study>,
    /// The footprint as it is published, where an item may open.
    pub document: Option<Arc<str>>,
    /// What the ref holds as judging begins.
    pub found: Option<Oid>,
    /// Where the repository's history will end too once a ref names the new value: the pusher's clone is shallow.
    pub roots: BTreeSet<Oid>,
}

/// What a command asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Nothing that can be done.
    Broken(Refusal),
    /// A branch that is not the mainline.
    Head,
    /// The mainline.
    Mainline,
    /// A tag.
    Tag,
    /// A ref outside `refs/zit/` that is neither.
    Other,
    /// A change's ref, named by the change.
    Change(Oid),
    /// A snapshot of unfinished work.
    Wip(AgentId, ItemId),
    /// A claim's ref by key, with the document pushed to it.
    ClaimDocument(String, Option<ClaimRequest>),
    /// A claim.
    Claim(Resource),
    /// The release of a claim.
    Release(Resource),
    /// To record a change and land it.
    Accept,
    /// Nothing but the options.
    Tell,
    /// Nothing any more: the hook `proc-receive` did it, and says what, where that is not what the command says.
    Handled(Vec<Rewritten>),
    /// What another command of the push asks for by the name of the ref itself.
    Same,
}

/// What the objects say of a pushed commit.
#[derive(Clone, Debug)]
pub(crate) struct Study {
    /// Where current stood when this was found out.
    pub current: Option<Oid>,
    /// Whether current already contains the commit.
    pub merged: bool,
    /// Whether the commit contains current.
    pub forward: bool,
    /// What the commit touches since it left current.
    pub footprint: Arc<Footprint>,
    /// The agent that the commit's author name stands for.
    pub author: Option<AgentId>,
}

/// A claim or release given as an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// The option's value.
    pub text: String,
    /// What it asks for.
    pub kind: WishKind,
    /// The value as a resource.
    pub resource: Result<Resource, ResourceError>,
}

/// What an option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WishKind {
    /// `zit.require-claim`: nothing moves without it.
    Require,
    /// `zit.claim`.
    Claim,
    /// `zit.release`.
    Release,
}

/// What expanding a push needs to know of its repository.
pub(crate) struct Ground<'a> {
    /// The mainline, if there is one yet.
    pub mainline: Option<&'a RefName>,
    /// Where HEAD points.
    pub head: Option<&'a RefName>,
    /// The symbolic refs among the commands, with what they name in the end.
    pub symrefs: &'a BTreeMap<RefName, RefName>,
    /// Whether a path exists in current.
    pub is_path: &'a dyn Fn(&str) -> bool,
    /// Reads a pushed `claim.json`.
    pub read_claim: &'a dyn Fn(Oid) -> Result<ClaimRequest, String>,
}

/// Turns commands into what they ask for.
#[must_use]
pub(crate) fn expand(
    request: &PushRequest,
    options: Options,
    caller: &Caller,
    ground: &Ground<'_>,
) -> Push {
    let adopts = ground.mainline.is_none().then(|| adopted(request, ground.head)).flatten();
    let mainline = ground.mainline.or(adopts.as_ref());
    let duplicates = request.duplicates();
    let mut commands: Vec<Command> = request
        .commands
        .iter()
        .map(|command| {
            let (sent, old, new) = (command.name.clone(), command.old, command.new);
            let (name, ask) = match RefName::new(&sent) {
                Err(error) => (None, Ask::Broken(Refusal::BadName { why: error.why })),
                Ok(name) => {
                    let twice = duplicates.contains(sent.as_bstr()).then_some(Refusal::Duplicate);
                    let fault = twice.or_else(|| new.and_then(|_| fault(&name)));
                    let name = ground.symrefs.get(&name).cloned().unwrap_or(name);
                    let ask = fault.map_or_else(|| ask(&name, new, mainline, ground), Ask::Broken);
                    (Some(name), ask)
                }
            };
            let (study, document, found, roots) = (None, None, None, BTreeSet::new());
            Command { sent, name, old, new, ask, study, document, found, roots }
        })
        .collect();
    agree(&mut commands, ground.symrefs);
    Push {
        speaker: caller.speaker(&options),
        committer: caller.committer(),
        item: options.item.clone().or_else(|| caller.item.clone()),
        signed: None,
        atomic: request.capabilities.atomic,
        commands,
        wishes: wishes(&options, ground.is_path),
        mainline: ground.mainline.cloned(),
        guards_mainline: false,
        adopts,
        options,
    }
}

/// Lets two commands that mean one ref, one of them by a symbolic ref, be one if they ask for the same, and neither if not.
///
/// # Source
/// git's `builtin/receive-pack.c`, `check_aliased_update_internal`.
fn agree(commands: &mut [Command], symrefs: &BTreeMap<RefName, RefName>) {
    if symrefs.is_empty() {
        return;
    }
    for n in 0..commands.len() {
        let Some(alias) = commands.get(n).filter(|c| is_alias(c)) else { continue };
        let (name, asked) = (alias.name.clone(), (alias.old, alias.new));
        let is_target = |c: &Command| !is_alias(c) && c.name.is_some() && c.name == name;
        let Some(at) = commands.iter().position(is_target) else { continue };
        let target = commands.get(at).map(|target| (target.old, target.new));
        if target == Some(asked) {
            set(commands, n, Ask::Same);
        } else {
            set(commands, n, Ask::Broken(Refusal::Aliased));
            set(commands, at, Ask::Broken(Refusal::Aliased));
        }
    }
}

fn is_alias(command: &Command) -> bool {
    command.name.as_ref().is_some_and(|name| *name.as_bstr() != command.sent)
}

/// Unless it cannot be done anyway.
fn set(commands: &mut [Command], n: usize, ask: Ask) {
    if let Some(command) = commands.get_mut(n).filter(|c| !matches!(c.ask, Ask::Broken(_))) {
        command.ask = ask;
    }
}

/// Why no ref of that name can be set.
fn fault(name: &RefName) -> Option<Refusal> {
    if name.is_one_level() && !name.is_zit() {
        let why = "it has one component below refs/, as in refs/x".to_owned();
        return Some(Refusal::BadName { why });
    }
    let why = format!("a component is longer than {MAX_COMPONENT} bytes");
    (!is_file_name(name)).then_some(Refusal::BadName { why })
}

/// Whether each component of a name that is stored fits a file system, with `.lock` behind it. Requests are not stored.
fn is_file_name(name: &RefName) -> bool {
    matches!(refs::address(name), Address::Request(_))
        || name.as_bstr().split_str("/").all(|component| component.len() <= MAX_COMPONENT)
}

/// The first push into an empty repository makes the mainline: HEAD's branch if it is pushed, else the first branch.
fn adopted(request: &PushRequest, head: Option<&RefName>) -> Option<RefName> {
    let mut branches = request
        .commands
        .iter()
        .filter(|command| command.new.is_some())
        .filter_map(|command| RefName::new(&command.name).ok())
        .filter(|name| name.branch().is_some());
    let first = branches.next()?;
    let head = head?;
    Some(if branches.any(|name| name == *head) { head.clone() } else { first })
}

fn ask(name: &RefName, new: Option<Oid>, mainline: Option<&RefName>, ground: &Ground<'_>) -> Ask {
    let resource = |encoded: &BString, ask: fn(Resource) -> Ask| {
        Resource::decode(encoded, ground.is_path)
            .map_or_else(|e| Ask::Broken(Refusal::BadResource(e)), ask)
    };
    match refs::address(name) {
        Address::Head if mainline == Some(name) => Ask::Mainline,
        Address::Head => Ask::Head,
        Address::Tag => Ask::Tag,
        Address::Other => Ask::Other,
        Address::Current | Address::AgentState(_) | Address::Footprint(_) => {
            Ask::Broken(Refusal::RefereeOnly)
        }
        Address::Change(oid) => Ask::Change(oid),
        Address::Wip(agent, item) => Ask::Wip(agent, item),
        Address::Claim(key) => match new.map(ground.read_claim).transpose() {
            Ok(document) => Ask::ClaimDocument(key, document),
            Err(why) => Ask::Broken(Refusal::BadDocument { why }),
        },
        Address::Request(Request::Claim(encoded)) => resource(&encoded, Ask::Claim),
        Address::Request(Request::Release(encoded)) => resource(&encoded, Ask::Release),
        Address::Request(Request::Accept) => Ask::Accept,
        Address::Request(Request::For(branch)) => {
            if mainline.is_some_and(|m| m.branch() == Some(branch.as_bstr())) {
                Ask::Accept
            } else {
                Ask::Broken(Refusal::NotMainline { mainline: mainline.cloned() })
            }
        }
        Address::Request(Request::Tell) => Ask::Tell,
        Address::Unknown => Ask::Broken(Refusal::UnknownRef),
    }
}

fn wishes(options: &Options, is_path: &dyn Fn(&str) -> bool) -> Vec<Wish> {
    [
        (WishKind::Require, &options.required_claims),
        (WishKind::Claim, &options.claims),
        (WishKind::Release, &options.releases),
    ]
    .into_iter()
    .flat_map(|(kind, texts)| texts.iter().map(move |text| (kind, text)))
    .map(|(kind, text)| Wish { text: text.clone(), kind, resource: Resource::parse(text, is_path) })
    .collect()
}

impl Command {
    /// Whether an item may open with it.
    #[must_use]
    pub(crate) fn may_open(&self) -> bool {
        let carries = matches!(self.ask, Ask::Head | Ask::Change(_) | Ask::Wip(..) | Ask::Accept);
        carries && self.new.is_some()
    }
}

impl Push {
    /// The name of the principal that speaks.
    #[must_use]
    pub(crate) fn principal(&self) -> &str {
        &self.speaker.principal.name
    }

    /// Where the repository's history ends too with what is done.
    #[must_use]
    pub(crate) fn roots(&self, verdict: &Verdict) -> BTreeSet<Oid> {
        let done = self.commands.iter().zip(&verdict.commands);
        let done = done.filter(|(_, decision)| matches!(decision, Decision::Do(_)));
        done.flat_map(|(command, _)| command.roots.iter().copied()).collect()
    }

    /// Whether the push looks like a mirror's: its branches open no item.
    #[must_use]
    pub(crate) fn is_mirror(&self) -> bool {
        self.commands.iter().filter(|c| matches!(c.ask, Ask::Head | Ask::Mainline)).count()
            > MIRROR_BRANCHES
    }
}
