//! Shapes: what those who use a unit depend on, and what a change of it does to them.
//!
//! A [`Shape`] is the structural signature of one unit: its parameters, result, members, bases, by themselves, so that
//! formatting, comments and the names of parameters (where no caller can write them) are no change. [`effects`] compares
//! two of them. Languages fill shapes in; never looks at a syntax tree, never knows who uses what.
//!
//! Source: `spec/footprints.md`, "Shapes".

use std::collections::BTreeMap;

/// What a unit is to those who use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Called: a function, a method, a constructor.
    Function,
    /// Built and taken apart: a struct, a class.
    Record,
    /// One of several alternatives: an enum, a union of literals.
    Variants,
    /// Implemented by others: a trait, an interface.
    Interface,
    /// Read: a constant, a variable, a static.
    Value,
    /// Another name for a type.
    Alias,
    /// Whatever else has a name: a macro, a module. Any change of its tokens is noticed.
    #[default]
    Opaque,
}

/// What callers have to give for a parameter, or implementors for a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Need {
    /// It must be there.
    #[default]
    Required,
    /// It may be left out.
    Optional,
    /// Any number of them may be given.
    Variadic,
}

/// One parameter of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Param {
    /// Its name where callers may write it, else empty.
    pub name: Box<str>,
    /// The tokens of its type; empty where none is written.
    pub ty: Box<str>,
    /// What stands in for it when it is left out; empty without.
    pub default: Box<str>,
    /// Whether callers must give it.
    pub need: Need,
}

/// A field, a variant, a member of an interface: part of a type's own unit, used by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name; a position for what has none.
    pub name: Box<str>,
    /// The tokens of its type, payload or signature; empty where none is written.
    pub ty: Box<str>,
    /// Whether implementors and those who build the type must give it.
    pub need: Need,
    /// How far it is seen; larger is wider.
    pub visibility: u8,
}

/// The structural signature of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// What it is.
    pub form: Form,
    /// The tokens of all that has no place of its own: keywords, generics, markers, bases, the receiver's type.
    pub head: Box<str>,
    /// How far it is seen; larger is wider.
    pub visibility: u8,
    /// Parameters, in order.
    pub params: Vec<Param>,
    /// The tokens of a result, of a constant's type, of what an alias stands for.
    pub result: Box<str>,
    /// The tokens of a constant's value.
    pub value: Box<str>,
    /// Members, in order.
    pub members: Vec<Member>,
}

impl Shape {
    /// Adds the shape of another part of the same unit: an overload, a merged declaration, an `impl` block's header.
    pub(crate) fn join(&mut self, mut other: Self) {
        if *self == Self::default() {
            *self = other;
            return;
        }
        let apart = |of: &str| of.is_empty() || *self.head == *of;
        if !apart(&other.head) {
            self.head = format!("{} ; {}", self.head, other.head).into();
        }
        if other.form == Form::Function && !(other.params.is_empty() && other.result.is_empty()) {
            // Overloads: callers may use any of them.
            let shown: Vec<_> = other.params.iter().map(|param| &*param.ty).collect();
            let shown = format!("{} ; ( {} ) {}", self.head, shown.join(" , "), other.result);
            self.head = shown.into();
        }
        if matches!(self.form, Form::Opaque) {
            self.form = other.form;
        }
        self.visibility = self.visibility.max(other.visibility);
        self.members.append(&mut other.members);
    }
}

/// Uses of a unit, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uses(u8);

impl Uses {
    /// No use.
    pub const NONE: Self = Self(0);
    /// It is called.
    pub const CALL: Self = Self(1);
    /// It is named as a type.
    pub const TYPE: Self = Self(1 << 1);
    /// A value of it is built from its fields.
    pub const CONSTRUCT: Self = Self(1 << 2);
    /// It is implemented, inherited from or embedded.
    pub const EXTEND: Self = Self(1 << 3);
    /// All its alternatives are told apart, without one for the rest.
    pub const MATCH: Self = Self(1 << 4);
    /// It is read, or named in another way.
    pub const VALUE: Self = Self(1 << 5);
    /// It is imported.
    pub const IMPORT: Self = Self(1 << 6);
    /// Any use.
    pub const ALL: Self = Self(0x7f);

    /// Whether it has a use in common with `other`.
    #[must_use]
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The set as bits, at most 127.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// The set of bits that [`Self::bits`] answered.
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The uses as documents spell them; `any` alone for all of them.
    #[must_use]
    pub fn words(self) -> Vec<&'static str> {
        const WORDS: &[(Uses, &str)] = &[
            (Uses::CALL, "call"),
            (Uses::TYPE, "type"),
            (Uses::CONSTRUCT, "construct"),
            (Uses::EXTEND, "extend"),
            (Uses::MATCH, "match"),
            (Uses::VALUE, "value"),
            (Uses::IMPORT, "import"),
        ];
        if self == Self::ALL {
            return vec!["any"];
        }
        WORDS.iter().filter(|(uses, _)| self.meets(*uses)).map(|(_, word)| *word).collect()
    }

    /// This set less the other.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a change does to uses that were right before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Break {
    /// They stay right.
    Compatible,
    /// They may be wrong now.
    Breaking,
}

/// In which way a unit, or a member of it, changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// It is gone.
    Removed,
    /// It has another name.
    Renamed,
    /// It is found elsewhere.
    Moved,
    /// It is seen less far.
    Narrowed,
    /// It is seen farther.
    Widened,
    /// Keywords, generics, markers or bases differ.
    Header,
    /// Parameters differ.
    Parameters,
    /// A parameter that may be left out was added at the end.
    OptionalParameter,
    /// What stands in for a parameter that is left out differs.
    Default,
    /// The type of what it gives back differs.
    Result,
    /// A type was written where none was.
    Annotated,
    /// The value of a constant differs.
    Value,
    /// A member differs.
    Member,
    /// A member is gone.
    MemberRemoved,
    /// A member that must be given was added.
    MemberRequired,
    /// A member that may be left out was added.
    MemberAdded,
    /// Members stand in another order.
    Reordered,
}

impl Why {
    /// The reason in a few words, as people read it after "it".
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "is removed",
            Self::Renamed => "has another name",
            Self::Moved => "has moved to another module",
            Self::Narrowed => "is seen less far",
            Self::Widened => "is seen farther",
            Self::Header => "is declared differently",
            Self::Parameters => "takes other parameters",
            Self::OptionalParameter => "takes one more parameter that may be left out",
            Self::Default => "has another default for a parameter",
            Self::Result => "has another type or result",
            Self::Annotated => "has types written where there were none",
            Self::Value => "has another value",
            Self::Member => "has a member that differs",
            Self::MemberRemoved => "has a member less",
            Self::MemberRequired => "has one more member that must be given",
            Self::MemberAdded => "has one more member that may be left out",
            Self::Reordered => "has its members in another order",
        }
    }
}

/// Whose uses an effect is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The unit's.
    Unit,
    /// Those of a member of it that is no unit: a field, a variant.
    Member(Box<str>),
    /// Those of the type that the unit is a member of.
    Container,
}

/// What a change of a unit does to some uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    /// Of what.
    pub subject: Subject,
    /// The uses concerned.
    pub uses: Uses,
    /// Whether they may be wrong now.
    pub breaks: Break,
    /// Why.
    pub why: Why,
}

/// What a language's users see of a change, where languages differ.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "a table of what languages do or do not")]
pub(crate) struct Habits {
    /// Values are built from positions, so that a field's place counts.
    pub fields_in_order: bool,
    /// A field that is added need not be given by those who build a value.
    pub fields_may_be_left_out: bool,
    /// Those who name an interface as a type give values of it, which must have a member that is added.
    pub structural: bool,
    /// Alternatives have values by their place.
    pub variants_in_order: bool,
    /// The compiler asks for every alternative to be matched.
    pub exhaustive: bool,
}

impl Habits {
    /// None of them.
    pub(crate) const NONE: Self = Self {
        fields_in_order: false,
        fields_may_be_left_out: false,
        structural: false,
        variants_in_order: false,
        exhaustive: false,
    };
}

/// What the change from `old` to `new` does to those who use the unit; empty when they cannot notice.
pub(crate) fn effects(old: &Shape, new: &Shape, habits: Habits) -> Vec<Effect> {
    let mut found = Found::default();
    if old.form != new.form || old.head != new.head {
        found.breaking(Uses::ALL, Why::Header);
    }
    if new.visibility < old.visibility {
        found.breaking(Uses::ALL, Why::Narrowed);
    } else if new.visibility > old.visibility {
        found.compatible(Uses::ALL, Why::Widened);
    }
    params(&mut found, old, new);
    result(&mut found, old, new);
    if old.value != new.value {
        found.breaking(Uses::ALL, Why::Value);
    }
    members(&mut found, old, new, habits);
    found.0
}

#[derive(Default)]
struct Found(Vec<Effect>);

impl Found {
    fn breaking(&mut self, uses: Uses, why: Why) {
        self.0.push(Effect { subject: Subject::Unit, uses, breaks: Break::Breaking, why });
    }

    fn compatible(&mut self, uses: Uses, why: Why) {
        self.0.push(Effect { subject: Subject::Unit, uses, breaks: Break::Compatible, why });
    }

    fn member(&mut self, name: &str, breaks: Break, why: Why) {
        self.0.push(Effect { subject: Subject::Member(name.into()), uses: Uses::ALL, breaks, why });
    }
}

/// Uses that see a function's parameters: who only names a type does not.
const SEES_PARAMETERS: Uses =
    Uses::CALL.or(Uses::VALUE).or(Uses::EXTEND).or(Uses::CONSTRUCT).or(Uses::IMPORT);

fn params(found: &mut Found, old: &Shape, new: &Shape) {
    if old.params == new.params {
        return;
    }
    let kept = old.params.len();
    let same_start = new.params.len() >= kept
        && old.params.iter().zip(&new.params).all(|(old, new)| fits(old, new));
    let added = new.params.get(kept..).unwrap_or_default();
    if !same_start || added.iter().any(|param| param.need == Need::Required) {
        return found.breaking(SEES_PARAMETERS, Why::Parameters);
    }
    if !added.is_empty() {
        found.compatible(Uses::ALL, Why::OptionalParameter);
        // Who overrides it no longer has its parameters.
        found.breaking(Uses::EXTEND, Why::Parameters);
    }
    let changed = |by: fn(&Param) -> &str| {
        old.params.iter().zip(&new.params).any(|(old, new)| by(old) != by(new))
    };
    if changed(|param| &param.default) {
        found.breaking(SEES_PARAMETERS, Why::Default);
    }
    if changed(|param| &param.ty) {
        found.compatible(Uses::ALL, Why::Annotated);
    }
}

/// Whether what was given for `old` can be given for `new`.
fn fits(old: &Param, new: &Param) -> bool {
    old.name == new.name && old.need == new.need && (old.ty == new.ty || old.ty.is_empty())
}

fn result(found: &mut Found, old: &Shape, new: &Shape) {
    if old.result == new.result {
        return;
    }
    // Only a language in which types may be left out has empty ones on both kinds of declarations.
    if old.result.is_empty() && old.form == new.form && annotation_only(old, new) {
        found.compatible(Uses::ALL, Why::Annotated);
    } else {
        found.breaking(Uses::ALL, Why::Result);
    }
}

/// Whether a missing type says that none was written, not that there is no result.
fn annotation_only(old: &Shape, new: &Shape) -> bool {
    const MAY_BE_LEFT_OUT: &str = "?";
    new.head.ends_with(MAY_BE_LEFT_OUT) && old.head.ends_with(MAY_BE_LEFT_OUT)
}

fn members(found: &mut Found, old: &Shape, new: &Shape, habits: Habits) {
    if old.members == new.members {
        return;
    }
    let by_name = |shape: &Shape| -> BTreeMap<Box<str>, Member> {
        shape.members.iter().map(|member| (member.name.clone(), member.clone())).collect()
    };
    let (before, after) = (by_name(old), by_name(new));
    for (name, member) in &before {
        match after.get(name) {
            None => gone(found, old.form, name),
            Some(now) if now != member => differs(found, old.form, member, now),
            Some(_) => {}
        }
    }
    let n_effects = found.0.len();
    for member in new.members.iter().filter(|member| !before.contains_key(&member.name)) {
        added(found, old, new, member, habits);
    }
    let kept = |shape: &Shape, other: &BTreeMap<Box<str>, Member>| -> Vec<Box<str>> {
        let names = shape.members.iter().map(|member| member.name.clone());
        names.filter(|name| other.contains_key(name)).collect()
    };
    let counts = match old.form {
        Form::Variants => habits.variants_in_order,
        Form::Function
        | Form::Record
        | Form::Interface
        | Form::Value
        | Form::Alias
        | Form::Opaque => habits.fields_in_order,
    };
    if kept(old, &after) != kept(new, &before) {
        if counts {
            found.breaking(Uses::ALL, Why::Reordered);
        } else if found.0.len() == n_effects {
            found.compatible(Uses::ALL, Why::Reordered);
        }
    }
}

/// Uses that name all members of a unit of the form at once.
fn whole(form: Form) -> Uses {
    match form {
        Form::Interface => Uses::EXTEND,
        Form::Variants => Uses::MATCH,
        Form::Function | Form::Record | Form::Value | Form::Alias | Form::Opaque => BUILDS,
    }
}

/// Uses that give a record all its fields: some languages write them as calls.
const BUILDS: Uses = Uses::CONSTRUCT.or(Uses::EXTEND).or(Uses::CALL);

fn gone(found: &mut Found, form: Form, name: &str) {
    found.member(name, Break::Breaking, Why::Removed);
    found.breaking(whole(form), Why::MemberRemoved);
}

fn differs(found: &mut Found, form: Form, old: &Member, new: &Member) {
    let annotated = old.ty.is_empty() && Member { ty: new.ty.clone(), ..old.clone() } == *new;
    let widened = Member { visibility: new.visibility, ..old.clone() } == *new
        && new.visibility > old.visibility;
    if annotated || widened {
        let why = if annotated { Why::Annotated } else { Why::Widened };
        return found.member(&old.name, Break::Compatible, why);
    }
    found.member(&old.name, Break::Breaking, Why::Member);
    found.breaking(whole(form), Why::Member);
}

fn added(found: &mut Found, old: &Shape, new: &Shape, member: &Member, habits: Habits) {
    let optional = member.need != Need::Required;
    match old.form {
        Form::Variants if habits.exhaustive => found.breaking(Uses::MATCH, Why::MemberRequired),
        Form::Variants => {
            let last = new.members.len().saturating_sub(1);
            let at_end = new.members.iter().position(|m| m.name == member.name) >= Some(last);
            if habits.variants_in_order && !at_end {
                found.breaking(Uses::ALL, Why::Reordered);
            } else {
                found.compatible(Uses::ALL, Why::MemberAdded);
            }
        }
        _ if optional => found.compatible(Uses::ALL, Why::MemberAdded),
        Form::Interface if habits.structural => {
            found.breaking(Uses::EXTEND.or(Uses::TYPE), Why::MemberRequired);
        }
        Form::Interface => found.breaking(Uses::EXTEND, Why::MemberRequired),
        _ if habits.fields_may_be_left_out => found.compatible(Uses::ALL, Why::MemberAdded),
        _ if habits.fields_in_order && !appended(old, new) => {
            found.breaking(Uses::ALL, Why::Reordered);
        }
        Form::Function | Form::Record | Form::Value | Form::Alias | Form::Opaque => {
            found.breaking(BUILDS, Why::MemberRequired);
        }
    }
}

fn appended(old: &Shape, new: &Shape) -> bool {
    old.members.iter().zip(&new.members).all(|(old, new)| old.name == new.name)
}
