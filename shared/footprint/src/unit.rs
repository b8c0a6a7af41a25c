//! Units: fragments of one name merged and hashed. Never looks at a syntax tree.

use std::collections::BTreeMap;

use zit_model::resource::Part;

use crate::{
    UnitHash,
    footprint::MAX_SIGNATURE,
    mention::{Mention, Mentions},
    plan::Role,
    shape::Shape,
};

/// What becomes of a second fragment with the name of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Both are the same unit: overloads, a type and its `impl` headers, merged declarations.
    Merge,
    /// The later is a unit of its own, `name#2`: Go's `init`, functions under different `cfg`s.
    Number,
}

/// Part of a unit that stands in one place.
#[derive(Clone, Debug)]
pub(crate) struct Fragment<'s> {
    /// Which unit.
    pub part: Part,
    /// The identifier by which other code mentions the unit.
    pub name: Option<String>,
    /// The type that it is a member of.
    pub container: Option<String>,
    /// The modules within the file that it is in, with `/` between them.
    pub inline: String,
    /// What becomes of another fragment of the name.
    pub repeat: Repeat,
    /// What those who implement its container must do about it.
    pub role: Role,
    /// Whether it is what its module gives to those who import no name.
    pub is_default: bool,
    /// What those who use it depend on.
    pub shape: Shape,
    /// Further names that the same code declares.
    pub aliases: Vec<String>,
    /// First and last line, from one.
    pub lines: Option<(u32, u32)>,
    /// Tokens outside function bodies, each ended by NUL.
    pub interface: Vec<u8>,
    /// Tokens inside function bodies, each ended by NUL.
    pub body: Vec<u8>,
    /// Tokens of documentation and attributes, each ended by NUL.
    pub docs: Vec<u8>,
    /// The declaration on one line.
    pub signature: String,
    /// What it mentions and does not bind, once for each time.
    pub mentions: Vec<Mention<'s>>,
    /// What it mentions besides, as an earlier version said it.
    pub known: Option<&'s Mentions>,
}

impl Fragment<'_> {
    /// A fragment without tokens.
    pub(crate) fn new(part: Part, name: Option<String>, repeat: Repeat) -> Self {
        Self {
            part,
            name,
            container: None,
            inline: String::new(),
            repeat,
            role: Role::Free,
            is_default: false,
            shape: Shape::default(),
            aliases: Vec::new(),
            lines: None,
            interface: Vec::new(),
            body: Vec::new(),
            docs: Vec::new(),
            signature: String::new(),
            mentions: Vec::new(),
            known: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.interface.is_empty() && self.body.is_empty() && self.docs.is_empty()
    }
}

/// Units by name.
pub(crate) type Units = BTreeMap<Part, Unit>;

/// One unit of one version of a file. It outlives the file's text.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    /// The identifier by which other code mentions it.
    pub name: Option<Box<str>>,
    /// The type that it is a member of.
    pub container: Option<Box<str>>,
    /// The modules within the file that it is in, with `/` between them.
    pub inline: Box<str>,
    /// What those who implement its container must do about it.
    pub role: Role,
    /// Whether it is what its module gives to those who import no name.
    pub is_default: bool,
    /// What those who use it depend on.
    pub shape: Shape,
    /// First and last line of its first fragment, from one.
    pub lines: Option<(u32, u32)>,
    /// Hash of everything: interface, bodies, documentation.
    pub whole: UnitHash,
    /// Hash of the tokens, inside and outside function bodies.
    pub code: UnitHash,
    /// Hash of the tokens inside function bodies.
    pub body: UnitHash,
    /// The declaration on one line.
    pub signature: Box<str>,
    /// What it mentions and does not bind.
    pub mentions: Mentions,
}

impl Unit {
    /// Whether it has tokens inside function bodies.
    pub(crate) fn has_body(&self) -> bool {
        self.body != UnitHash::of([])
    }
}

/// Whether fragments of one unit mean the same in another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// They do not.
    Counts,
    /// They do.
    Free,
}

/// Merges fragments into units. No unit has an empty token list.
pub(crate) fn assemble(fragments: Vec<Fragment<'_>>, order: Order) -> Units {
    let mut groups: BTreeMap<Part, Vec<Fragment<'_>>> = BTreeMap::new();
    let mut counts: BTreeMap<Part, usize> = BTreeMap::new();
    for mut fragment in fragments.into_iter().filter(|fragment| !fragment.is_empty()) {
        for alias in std::mem::take(&mut fragment.aliases) {
            let mut copy = fragment.clone();
            copy.part = Part::Unit(alias.clone());
            copy.name = Some(alias);
            place(&mut groups, &mut counts, copy);
        }
        place(&mut groups, &mut counts, fragment);
    }
    groups
        .into_iter()
        .map(|(part, group)| {
            let free = order == Order::Free || part == Part::Imports;
            let unit = merge(group, if free { Order::Free } else { Order::Counts });
            (part, unit)
        })
        .collect()
}

/// Puts a fragment with the others of its unit; with `#2`, `#3`, … when it must not share the name.
fn place<'s>(
    groups: &mut BTreeMap<Part, Vec<Fragment<'s>>>,
    counts: &mut BTreeMap<Part, usize>,
    fragment: Fragment<'s>,
) {
    let mut part = fragment.part.clone();
    if let (Part::Unit(name), Some(group)) = (&part, groups.get(&part)) {
        let shares = fragment.repeat == Repeat::Merge
            || group.iter().any(|earlier| earlier.repeat == Repeat::Merge);
        if !shares {
            let name = name.clone();
            let count = counts.entry(part.clone()).or_insert(1);
            while groups.contains_key(&part) {
                *count += 1;
                part = Part::Unit(format!("{name}#{count}"));
            }
        }
    }
    groups.entry(part).or_default().push(fragment);
}

fn merge(mut group: Vec<Fragment<'_>>, order: Order) -> Unit {
    let lines = group.iter().find_map(|fragment| fragment.lines);
    let mut signature = String::new();
    for fragment in &group {
        if !signature.is_empty() && !fragment.signature.is_empty() {
            signature.push_str("; ");
        }
        signature.push_str(&fragment.signature);
        if signature.len() > MAX_SIGNATURE * 4 {
            break;
        }
    }
    if order == Order::Free {
        group.sort_by(|a, b| {
            (&a.interface, &a.body, &a.docs).cmp(&(&b.interface, &b.body, &b.docs))
        });
        group.dedup_by(|a, b| (&a.interface, &a.body, &a.docs) == (&b.interface, &b.body, &b.docs));
    }
    // Fragments without code still have documentation; those without documentation still have code.
    let parts = |pick: for<'a> fn(&'a Fragment<'a>) -> &'a [u8]| {
        UnitHash::of(group.iter().map(pick).filter(|tokens| !tokens.is_empty()))
    };
    let (interface, body, docs) = (parts(|f| &f.interface), parts(|f| &f.body), parts(|f| &f.docs));
    let code = UnitHash::of([interface.as_bytes(), body.as_bytes()]);
    let mut shape = Shape::default();
    for fragment in &mut group {
        shape.join(std::mem::take(&mut fragment.shape));
    }
    let role = group.iter().map(|fragment| fragment.role).max();
    Unit {
        name: group.iter().find_map(|fragment| fragment.name.as_deref().map(Into::into)),
        container: group.iter().find_map(|fragment| fragment.container.as_deref().map(Into::into)),
        inline: group.first().map(|fragment| fragment.inline.as_str().into()).unwrap_or_default(),
        role: role.unwrap_or_default(),
        is_default: group.iter().any(|fragment| fragment.is_default),
        shape,
        lines,
        whole: UnitHash::of([code.as_bytes(), docs.as_bytes()]),
        code,
        body,
        signature: signature.chars().take(MAX_SIGNATURE).collect(),
        mentions: mentions(group),
    }
}

/// What all fragments mention.
fn mentions(group: Vec<Fragment<'_>>) -> Mentions {
    if let [Fragment { mentions, known: Some(known), .. }] = group.as_slice()
        && mentions.is_empty()
    {
        return (*known).clone();
    }
    let mut all = Vec::new();
    for mut fragment in group {
        all.append(&mut fragment.mentions);
        all.extend(fragment.known.into_iter().flat_map(Mentions::iter));
    }
    Mentions::of(all)
}
