//! Random pushes: every kind of command, alone and together, with and without what it needs.

use std::collections::BTreeMap;

use fastrand::Rng;
use gix_hash::Kind as Format;
use gix_object::Kind;
use zit_tests::wire::pkt;

use super::forge;
use super::objects::{Objects, Oid, Oids};

/// One push.
#[derive(Clone, Debug)]
pub(super) struct Push {
    pub(super) format: Format,
    pub(super) shallow: Vec<Oid>,
    pub(super) commands: Vec<Command>,
    pub(super) capabilities: Vec<String>,
    pub(super) options: Vec<String>,
    /// The pack; nothing where there is none.
    pub(super) pack: Vec<u8>,
    /// What the pack holds, for the reader of a failure.
    pub(super) packed: Vec<Oid>,
}

/// One command; `None` is the all-zero oid.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) old: Option<Oid>,
    pub(super) new: Option<Oid>,
}

/// The refs that a pusher sees.
pub(super) type Refs = BTreeMap<String, Oid>;

/// Names that git refuses, or that stand in the way of one that is there.
const ODD_NAMES: &[&str] = &[
    "refs/heads/a..b",
    "refs/one",
    "refs/heads/x.lock",
    "HEAD",
    "heads/x",
    "refs/heads/",
    "refs/heads/.x",
    "refs/heads/main/sub",
    "refs/heads/topic",
    "refs/heads/topic/deep",
    "refs/tags/v1/x",
    "refs/heads/a b",
    "refs/heads/a//b",
    "refs/stash",
    "refs/heads/-",
    "refs/heads/ä",
    "refs/heads/@{x",
    "refs",
    "refs/heads/new",
    "refs/heads/HEAD",
    "refs/remotes/origin/x",
];

/// Makes pushes; what they bring is kept, also when it is refused.
pub(super) struct Pusher<'a> {
    pub(super) objects: &'a mut Objects,
    pub(super) format: Format,
    pub(super) refs: &'a Refs,
    pub(super) random: &'a mut Rng,
}

impl Pusher<'_> {
    pub(super) fn push(mut self) -> Push {
        let n_commands = if self.random.bool() { 1 } else { self.random.usize(1..5) };
        let mut commands = Vec::<Command>::new();
        let mut packed = Vec::new();
        while commands.len() < n_commands {
            let command = self.command(&mut packed);
            // Rule 10.
            if commands.iter().all(|other| can_go_together(&other.name, &command.name)) {
                commands.push(command);
            }
        }
        let shallow = self.shallow();
        let mut capabilities = self.capabilities();
        if !self.is_complete(&commands, &packed) {
            // Rule 8.
            capabilities.retain(|word| word != "atomic");
        }
        let has_options = capabilities.iter().any(|word| word == "push-options");
        let options = if has_options { self.options() } else { Vec::new() };
        if !packed.is_empty() && self.random.u8(0..10) == 0 {
            packed.remove(self.random.usize(0..packed.len()));
        }
        let pack = self.pack(&commands, &packed);
        let format = self.format;
        Push { format, shallow, commands, capabilities, options, pack, packed }
    }

    /// What a shallow client says of its history: where it ends, at commits that the repository has (rule 11).
    fn shallow(&mut self) -> Vec<Oid> {
        if self.random.u8(0..8) > 0 {
            return Vec::new();
        }
        (0..self.random.usize(1..3)).map(|_| self.held(Kind::Commit)).collect()
    }

    /// Whether every new value is among what the refs reach and what is packed.
    fn is_complete(&self, commands: &[Command], packed: &[Oid]) -> bool {
        let held = self.objects.closure(self.refs.values(), &Oids::new());
        let known = |oid: &Oid| held.contains(oid) || packed.contains(oid);
        commands.iter().filter_map(|command| command.new.as_ref()).all(known)
    }

    fn command(&mut self, packed: &mut Vec<Oid>) -> Command {
        let (name, oid) = self.any_ref();
        match self.random.u8(0..22) {
            0..5 => Command { name: self.new_name(), old: None, new: Some(self.value(packed)) },
            5..9 => {
                let new = self.child_of(&oid, packed);
                Command { name, old: Some(oid), new: Some(new) }
            }
            9 | 10 => Command { name, old: Some(oid), new: Some(self.value(packed)) },
            11..14 => Command { name, old: Some(oid), new: None },
            14 => Command { name, old: Some(self.any_ref().1), new: Some(self.value(packed)) },
            15 => Command { name, old: Some(self.any_ref().1), new: None },
            16 => Command { name, old: None, new: Some(self.value(packed)) },
            17 => Command { name: self.new_name(), old: Some(oid), new: None },
            18 => Command { name: self.new_name(), old: None, new: None },
            19 => Command { name, old: Some(oid), new: Some("1".repeat(self.format.len_in_hex())) },
            _ => {
                let name = ODD_NAMES[self.random.usize(0..ODD_NAMES.len())].to_owned();
                let old = self.refs.get(&name).cloned();
                Command { name, old, new: Some(self.value(packed)) }
            }
        }
    }

    fn any_ref(&mut self) -> (String, Oid) {
        let n = self.random.usize(0..self.refs.len());
        let (name, oid) = self.refs.iter().nth(n).expect("the number is below the length");
        (name.clone(), oid.clone())
    }

    fn new_name(&mut self) -> String {
        let folder =
            ["refs/heads", "refs/heads/new", "refs/tags", "refs/x/y"][self.random.usize(0..4)];
        format!("{folder}/n{}", self.random.u8(..))
    }

    /// Something for a ref to hold: old or new, of any kind.
    fn value(&mut self, packed: &mut Vec<Oid>) -> Oid {
        match self.random.u8(0..10) {
            0 => {
                let kinds = [Kind::Tree, Kind::Blob, Kind::Tag];
                let kind = kinds[self.random.usize(0..3)];
                self.held(kind)
            }
            1 => {
                let target = self.any_ref().1;
                let tag = forge::tag(self.objects, &target, self.format, self.random);
                packed.push(tag.clone());
                tag
            }
            2 => {
                let made = forge::commit(self.objects, &[], self.format, self.random);
                packed.extend(made.iter().cloned());
                made[2].clone()
            }
            3..6 => self.any_ref().1,
            6 => self.held(Kind::Commit),
            _ => {
                let parent = self.any_ref().1;
                self.child_of(&parent, packed)
            }
        }
    }

    /// An object that refs reach, of a kind if they reach one.
    fn held(&mut self, kind: Kind) -> Oid {
        // Rule 9.
        let held = self.objects.closure(self.refs.values(), &Oids::new());
        let is_kind = |oid: &&Oid| self.objects.get(oid).is_some_and(|o| o.kind == kind);
        let of_kind = held.iter().filter(is_kind).collect::<Vec<_>>();
        match of_kind.len() {
            0 => self.any_ref().1,
            n => of_kind[self.random.usize(0..n)].clone(),
        }
    }

    /// A new commit, or a line of them, on a commit.
    fn child_of(&mut self, parent: &Oid, packed: &mut Vec<Oid>) -> Oid {
        let is_commit = self.objects.get(parent).is_some_and(|object| object.kind == Kind::Commit);
        let mut parents = if is_commit { vec![parent.clone()] } else { Vec::new() };
        for _ in 0..self.random.usize(1..4) {
            let made = forge::commit(self.objects, &parents, self.format, self.random);
            parents = vec![made[2].clone()];
            packed.extend(made);
        }
        parents.swap_remove(0)
    }

    fn capabilities(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        match self.random.u8(0..10) {
            0 => {}
            1 | 2 => words.push("report-status".to_owned()),
            _ => words.push("report-status-v2".to_owned()),
        }
        let mut one_of = |n: u8, word: &str| {
            if self.random.u8(0..n) == 0 {
                words.push(word.to_owned());
            }
        };
        one_of(3, "atomic");
        one_of(3, "quiet");
        one_of(3, "push-options");
        one_of(2, "agent=git/test");
        if self.random.u8(0..4) > 0 {
            words.push("side-band-64k".to_owned());
        }
        if self.format != Format::Sha1 || self.random.bool() {
            words.push(format!("object-format={}", self.format));
        }
        words
    }

    fn options(&mut self) -> Vec<String> {
        (0..self.random.usize(0..3)).map(|n| format!("ci.option{n}=x y")).collect()
    }

    /// Deltas are made against what the refs reach, as in a thin pack.
    fn pack(&mut self, commands: &[Command], packed: &[Oid]) -> Vec<u8> {
        if commands.iter().all(|command| command.new.is_none()) {
            return Vec::new();
        }
        let mut bases = Vec::new();
        if self.random.u8(0..3) == 0 {
            let held = self.objects.closure(self.refs.values(), &Oids::new());
            let is_blob = |oid: &&Oid| self.objects.get(oid).is_some_and(|o| o.kind == Kind::Blob);
            bases = held.iter().filter(is_blob).take(20).cloned().collect();
        }
        forge::pack(self.objects, packed, &bases, self.format, self.random)
    }
}

/// Whether both names may exist, and are two.
fn can_go_together(a: &str, b: &str) -> bool {
    let (a, b) = (format!("{a}/"), format!("{b}/"));
    !a.starts_with(&b) && !b.starts_with(&a)
}

impl Push {
    pub(super) fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|word| word == capability)
    }

    /// The body of the POST.
    pub(super) fn encode(&self) -> Vec<u8> {
        let zero = "0".repeat(self.format.len_in_hex());
        let oid = |oid: &Option<Oid>| oid.clone().unwrap_or_else(|| zero.clone());
        let mut body = Vec::new();
        for shallow in &self.shallow {
            body.extend(pkt(format!("shallow {shallow}").as_bytes()));
        }
        for (n, Command { name, old, new }) in self.commands.iter().enumerate() {
            let line = format!("{} {} {name}", oid(old), oid(new));
            let capabilities = format!("\0 {}", self.capabilities.join(" "));
            body.extend(pkt(if n == 0 { line + &capabilities } else { line }.as_bytes()));
        }
        body.extend_from_slice(b"0000");
        if self.has("push-options") {
            self.options.iter().for_each(|option| body.extend(pkt(option.as_bytes())));
            body.extend_from_slice(b"0000");
        }
        body.extend_from_slice(&self.pack);
        body
    }
}
