//! One walk over a syntax tree: every token goes to the fragment that owns it, every identifier is told from
//! the names bound around it.
//!
//! Follows a [`Plan`]; never decides what a unit is. Iterative: the depth of a tree costs heap, not stack.

mod record;

use std::collections::{BTreeMap, HashMap, HashSet};

use tree_sitter::{Node, Tree, TreeCursor};

use crate::{
    footprint::MAX_SIGNATURE,
    lang::{Binds, Grammar, Link, Trait},
    mention::{MAX_PATH, Mention, OWN, VALUE},
    parsed::Records,
    plan::{MODULE, Plan, Tag, one_line},
    shape::Uses,
};
use record::Recorder;

/// How much is said of the names bound around a unit, in bytes; where there is more it is walked each time. Source: ours.
const MAX_SAID: usize = 512;

/// Tokens that stand for the start and end of a block, and for the end of a statement.
const BLOCK_START: &str = "\u{1}";
const BLOCK_END: &str = "\u{2}";
const STATEMENT_END: &str = "\u{3}";

/// Gives every token of `tree` to its fragment, and every name that is not bound.
///
/// Units whose nodes are in `known` are taken from there. Units are recorded if `keep` says so.
pub(crate) fn walk<'s>(
    grammar: &Grammar,
    tree: &Tree,
    plan: Plan<'s>,
    known: Option<&'s Records>,
    keep: Keep,
) -> (Plan<'s>, Records) {
    let mut walk = Walk {
        grammar,
        plan,
        recorder: Recorder { known, keep, open: None, records: Records::default() },
        frames: Vec::new(),
        scopes: Scopes::default(),
        last_end: 0,
        after_dot: false,
        comma: None,
        after_item: false,
        signature_end: HashMap::default(),
    };
    let mut cursor = tree.walk();
    loop {
        if walk.enter(&cursor) && cursor.goto_first_child() {
            continue;
        }
        loop {
            walk.leave();
            if cursor.goto_next_sibling() {
                break;
            }
            if !cursor.goto_parent() {
                return (walk.plan, walk.recorder.records);
            }
        }
    }
}

/// Whether units are recorded for a next version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// They are.
    Records,
    /// They are not.
    Nothing,
}

/// Which of a fragment's token lists a token joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Interface,
    Body,
    Docs,
    None,
}

/// What identifiers are, here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Mention,
    /// They are bound by the frame with this number; `After` waits for its end.
    BindNow(usize),
    BindAfter(usize),
    /// They are bound around the frame with this number.
    BindOutside(usize),
    Silent,
}

struct Frame<'t> {
    node: Node<'t>,
    /// The field of its parent that it is in; zero for none.
    field: u16,
    traits: Trait,
    fragment: usize,
    list: List,
    names: Names,
    /// How everything mentioned inside is used, besides.
    uses: Uses,
    /// Whether the alternatives that are told apart inside leave nothing over.
    exhaustive: bool,
    /// How many mentions there were, where the node holds alternatives.
    alternatives: Option<usize>,
    /// How many bindings there were, where the node is a scope.
    scope: Option<usize>,
    /// Whether a fragment starts here.
    starts: bool,
}

struct Walk<'g, 's, 't> {
    grammar: &'g Grammar,
    plan: Plan<'s>,
    recorder: Recorder<'s>,
    frames: Vec<Frame<'t>>,
    scopes: Scopes<'s>,
    /// Where the last token ended, in bytes.
    last_end: usize,
    /// Whether the last token was a `.`.
    after_dot: bool,
    /// A comma that counts unless the next token closes the list it stands in.
    comma: Option<(usize, List)>,
    /// Whether a comma now would stand between items: the last token neither opened a list nor was one.
    after_item: bool,
    /// Where the last token of each fragment's signature ended.
    signature_end: HashMap<usize, usize, foldhash::fast::RandomState>,
}

impl<'s, 't> Walk<'_, 's, 't> {
    /// Enters a node; answers whether its children are to be visited.
    fn enter(&mut self, cursor: &TreeCursor<'t>) -> bool {
        let node = cursor.node();
        let field = cursor.field_id().map_or(0, std::num::NonZero::get);
        let mut frame = self.frame(node, field);
        if frame.starts && self.starts_known(&frame) {
            (frame.traits, frame.scope, frame.alternatives) = (Trait::NONE, None, None);
            self.frames.push(frame);
            return false;
        }
        let (fragment, list, traits) = (frame.fragment, frame.list, frame.traits);
        if traits.is(Trait::IMPORT) {
            (self.grammar.note)(&mut self.plan, node);
        }
        let is_comment = traits.is(Trait::COMMENT);
        let is_token = node.child_count() == 0 || traits.is(Trait::ATOM) || is_comment;
        self.frames.push(frame);
        if is_comment && list != List::Docs {
            self.last_end = self.last_end.max(node.end_byte());
            return false;
        }
        if traits.is(Trait::BLOCK) {
            self.push(fragment, list, BLOCK_START);
        }
        if is_token {
            self.token(node);
        }
        !is_token
    }

    fn frame(&mut self, node: Node<'t>, field: u16) -> Frame<'t> {
        let traits = self.grammar.traits_of(node);
        let Some(parent) = self.frames.last() else {
            let (list, names, uses) = (List::Interface, Names::Mention, Uses::NONE);
            return Frame {
                node,
                field,
                traits,
                fragment: MODULE,
                list,
                names,
                uses,
                exhaustive: false,
                alternatives: None,
                scope: None,
                starts: false,
            };
        };
        let depth = self.frames.len();
        let mut names = match self.grammar.binding(parent.node, field) {
            Some(Binds::Now) => Names::BindNow(depth - 1),
            Some(Binds::After) => Names::BindAfter(depth - 1),
            Some(Binds::Outside) => Names::BindOutside(depth - 1),
            Some(Binds::InBody) if parent.list == List::Body => Names::BindAfter(depth - 1),
            Some(Binds::InBody | Binds::Never) => Names::Silent,
            Some(Binds::Mentions) => Names::Mention,
            None => parent.names,
        };
        let (mut fragment, mut list) = (parent.fragment, parent.list);
        if field != 0 && Some(field) == self.grammar.body {
            self.scopes.begin_body(depth - 1);
            if parent.traits.is(Trait::FUNCTION) && list != List::None {
                list = List::Body;
            }
        }
        let tag = self.plan.tags.get(&node.id());
        match tag {
            Some(Tag::Unit(index)) => (fragment, list) = (*index, List::Interface),
            Some(Tag::Docs(index)) => (fragment, list) = (*index, List::Docs),
            Some(Tag::Glue) => list = List::None,
            Some(Tag::Name) => names = Names::Silent,
            None => {}
        }
        let starts = matches!(tag, Some(Tag::Unit(index)) if *index != MODULE);
        if traits.is(Trait::SILENT) {
            names = Names::Silent;
        } else if traits.is(Trait::MENTIONS) {
            names = Names::Mention;
        }
        let scope = traits.is(Trait::SCOPE).then(|| self.scopes.len());
        let inside = self.grammar.uses_inside(parent.node, field);
        let counts = inside != Uses::MATCH || parent.exhaustive;
        let uses = if counts { parent.uses.or(inside) } else { parent.uses };
        let exhaustive = if traits.is(Trait::ALTERNATIVES) {
            (self.grammar.is_exhaustive)(&self.plan, node)
        } else {
            parent.exhaustive
        };
        let mentioned = || self.plan.fragments.get(fragment).map(|f| f.mentions.len());
        let alternatives = mentioned().filter(|_| traits.is(Trait::ALTERNATIVES));
        Frame {
            node,
            field,
            traits,
            fragment,
            list,
            names,
            uses,
            exhaustive,
            alternatives,
            scope,
            starts,
        }
    }

    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if frame.traits.is(Trait::BLOCK) {
            self.push(frame.fragment, frame.list, BLOCK_END);
        }
        if frame.traits.is(Trait::STATEMENT) {
            self.push(frame.fragment, frame.list, STATEMENT_END);
        }
        if let Some(len) = frame.scope {
            self.scopes.close(len);
        }
        if let Some(start) = frame.alternatives {
            self.tell_apart_once(frame.fragment, start);
        }
        self.scopes.end_node(self.frames.len());
        if frame.starts {
            self.record(&frame);
        }
    }

    /// Of what one list of alternatives tells apart, leaves one mention that says so: an arm more is no new use.
    fn tell_apart_once(&mut self, fragment: usize, start: usize) {
        let Some(fragment) = self.plan.fragments.get_mut(fragment) else { return };
        let mut told: HashSet<(&str, &str), foldhash::fast::RandomState> = HashSet::default();
        for mention in fragment.mentions.get_mut(start..).unwrap_or_default() {
            if mention.uses.meets(Uses::MATCH) && !told.insert((mention.of, mention.name)) {
                mention.uses = mention.uses.without(Uses::MATCH);
            }
        }
    }

    /// Takes the current node as one token.
    fn token(&mut self, node: Node<'t>) {
        let Some(frame) = self.frames.last() else { return };
        let (fragment, list, names, traits) =
            (frame.fragment, frame.list, frame.names, frame.traits);
        let text = self.plan.text(node);
        if self.is_separator(traits) {
            self.last_end = self.last_end.max(node.end_byte());
            return;
        }
        // A grammar may leave text without a node; it counts all the same.
        if let Some(gap) = self.gap(node.start_byte()) {
            self.push(fragment, list, gap);
        }
        self.last_end = self.last_end.max(node.end_byte());
        let prose = if traits.is(Trait::PROSE) { one_line(text) } else { String::new() };
        let token = if traits.is(Trait::PROSE) { prose.as_str() } else { text };
        if token.is_empty() {
            return;
        }
        self.push_unless_trailing_comma(fragment, list, token);
        if list == List::Interface {
            self.sign(fragment, node, text);
        }
        self.name(traits, names, fragment, text);
        self.after_dot = text == ".";
    }

    /// Text that counts and has no node, from the last token on.
    fn gap(&self, end: usize) -> Option<&'s str> {
        let gap = self.plan.source.get(self.last_end..end).unwrap_or_default().trim();
        let counts = !gap.bytes().all(|byte| matches!(byte, b';' | b'\\'));
        counts.then_some(gap)
    }

    /// Whether the current node only ends a statement, which the statement's own end says already.
    fn is_separator(&self, traits: Trait) -> bool {
        traits.is(Trait::SEPARATOR) && !self.keeps_separators()
    }

    fn keeps_separators(&self) -> bool {
        match self.frames.as_slice() {
            [.., parent, _] => parent.traits.is(Trait::KEEPS_SEPARATORS),
            _ => false,
        }
    }

    /// Adds a token, but no comma before a closing bracket: formatters add and remove those.
    fn push_unless_trailing_comma(&mut self, fragment: usize, list: List, token: &str) {
        let closes = matches!(token, ")" | "]" | "}" | ">");
        if let Some((fragment, list)) = self.comma.take().filter(|_| !closes) {
            self.push(fragment, list, ",");
        }
        if token == "," && self.after_item && !self.keeps_separators() {
            self.comma = Some((fragment, list));
        } else {
            self.push(fragment, list, token);
        }
        self.after_item = !matches!(token, "," | "(" | "[" | "{" | "<");
    }

    fn push(&mut self, fragment: usize, list: List, text: &str) {
        self.recorder.sees(fragment);
        let Some(fragment) = self.plan.fragments.get_mut(fragment) else { return };
        let tokens = match list {
            List::Interface => &mut fragment.interface,
            List::Body => &mut fragment.body,
            List::Docs => &mut fragment.docs,
            List::None => return,
        };
        // Invariant: sources have no NUL, so it ends tokens unambiguously. No language here tells CRLF from LF.
        if list == List::Docs {
            text.lines().for_each(|line| tokens.extend(line.trim().bytes().chain([b'\n'])));
        } else if text.contains('\r') {
            tokens.extend(text.replace("\r\n", "\n").bytes());
        } else {
            tokens.extend(text.bytes());
        }
        tokens.push(0);
    }

    /// Adds a token to the fragment's signature, with a space where the source has any.
    fn sign(&mut self, index: usize, node: Node<'t>, text: &str) {
        let Some(fragment) = self.plan.fragments.get_mut(index) else { return };
        if fragment.signature.len() > MAX_SIGNATURE * 4 {
            return;
        }
        let end = self.signature_end.insert(index, node.end_byte());
        if end.is_some_and(|end| end < node.start_byte()) {
            fragment.signature.push(' ');
        }
        let shown: String = text.chars().take(MAX_SIGNATURE).collect();
        fragment.signature.push_str(&one_line(&shown));
    }

    fn name(&mut self, traits: Trait, names: Names, fragment: usize, text: &str) {
        let is_identifier = traits.is(Trait::IDENTIFIER);
        if names == Names::Silent || !(is_identifier || traits.is(Trait::MEMBER)) {
            return;
        }
        let Some(text) = self.source_text(text) else { return };
        let hang = self.hang();
        let upper = traits.is(Trait::CASED) && text.starts_with(char::is_uppercase);
        let is_bare = is_identifier && (hang.before.is_none() || hang.is_field);
        if hang.is_field && matches!(names, Names::BindNow(_) | Names::BindAfter(_)) {
            self.mention(traits, fragment, text, &hang);
        }
        match names {
            Names::BindNow(by) if is_bare && !upper => {
                let ty = self.type_of_binding(text, by);
                self.scopes.bind(text, ty);
            }
            Names::BindAfter(by) if is_bare && !upper => {
                let ty = self.type_of_binding(text, by);
                self.scopes.bind_after(by, text, ty);
            }
            Names::BindOutside(by) if is_bare => self.scopes.bind_outside(by, text),
            Names::Mention
            | Names::BindNow(_)
            | Names::BindAfter(_)
            | Names::BindOutside(_)
            | Names::Silent => self.mention(traits, fragment, text, &hang),
        }
    }
}

/// How a name hangs on what is around it.
struct Hang<'t> {
    /// What stands before it, if anything does.
    before: Option<(Node<'t>, Before)>,
    /// Whether that is the type that has it as a field; then the name may be a value's, too.
    is_field: bool,
    /// How it, or the path that it ends, is used, where that can be told.
    uses: Option<Uses>,
}

/// What a name is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// A path: what stands before the name is a name, too.
    Path,
    /// Perhaps a value.
    Value,
}

impl<'s, 't> Walk<'_, 's, 't> {
    /// The current token's text with the source's lifetime.
    fn source_text(&self, text: &str) -> Option<&'s str> {
        let node = self.frames.last()?.node;
        self.plan.source.get(node.byte_range()).filter(|same| *same == text)
    }

    fn mention(&mut self, traits: Trait, fragment: usize, name: &'s str, hang: &Hang<'t>) {
        let of = match hang.before {
            Some((before, kind)) => self.before(before, kind),
            // A member of nothing is a key.
            None if !traits.is(Trait::IDENTIFIER) || self.scopes.knows(name) => return,
            None => "",
        };
        let inside = self.frames.last().map_or(Uses::NONE, |frame| frame.uses);
        let default = if traits.is(Trait::TYPE_NAME) { Uses::TYPE } else { Uses::VALUE };
        let uses = hang.uses.unwrap_or(default).or(inside);
        if let Some(fragment) = self.plan.fragments.get_mut(fragment) {
            fragment.mentions.push(Mention { name, of, uses });
        }
    }

    fn hang(&self) -> Hang<'t> {
        let (mut before, mut is_field) = (None, false);
        let mut rest = self.frames.as_slice();
        while let [above @ .., parent, own] = rest {
            rest = rest.get(..above.len() + 1).unwrap_or_default();
            if parent.traits.is(Trait::TOKENS) {
                let value = self.after_dot.then_some((parent.node, Before::Value));
                return Hang { before: value, is_field, uses: None };
            }
            let link = self.grammar.link(parent.node, own.field);
            match link {
                Some(Link::Wrap) => continue,
                Some(Link::Path(field)) if before.is_none() => {
                    before = parent.node.child_by_field_id(field).map(|node| (node, Before::Path));
                }
                Some(Link::Member(field)) if before.is_none() => {
                    before = parent.node.child_by_field_id(field).map(|node| (node, Before::Value));
                }
                Some(Link::Field(kind, field)) if before.is_none() => {
                    let owner = above.iter().rev().find(|frame| frame.node.kind_id() == kind);
                    let owner = owner.and_then(|frame| frame.node.child_by_field_id(field));
                    before = owner.map(|node| (node, Before::Path));
                    is_field = before.is_some();
                }
                _ => {
                    let uses = self.grammar.uses_of(parent.node, own.field);
                    return Hang { before, is_field, uses };
                }
            }
            if before.is_none() {
                break;
            }
        }
        Hang { before, is_field, uses: None }
    }

    /// What stands before a name, as [`Mention::of`] says it.
    fn before(&self, before: Node<'t>, kind: Before) -> &'s str {
        if before.byte_range().len() > MAX_PATH {
            return VALUE;
        }
        let Some((root, is_root)) = self.root(before) else { return VALUE };
        let text = self.plan.text(root);
        if self.grammar.is_own(text) && (kind == Before::Value || text == "Self") {
            return if is_root { OWN } else { VALUE };
        }
        match self.scopes.look_up(text) {
            Known::Of(ty) if is_root => ty,
            Known::Of(_) | Known::Bound => VALUE,
            Known::No if kind == Before::Value && self.grammar.values_apart => VALUE,
            Known::No => self.plan.text(before),
        }
    }

    /// The first name of a path, and whether it is all of it; `None` for what is no path of names.
    fn root(&self, mut node: Node<'t>) -> Option<(Node<'t>, bool)> {
        let mut is_all = true;
        loop {
            let traits = self.grammar.traits_of(node);
            if traits.is(Trait::IDENTIFIER) || traits.is(Trait::ROOT) {
                return Some((node, is_all));
            }
            if let Some(field) = self.grammar.before_of(node) {
                is_all = false;
                node = node.child_by_field_id(field)?;
            } else if traits.is(Trait::TYPE_ARGUMENTS) {
                node = self.grammar.inner(node)?;
            } else {
                return None;
            }
        }
    }

    /// The type that a binding writes for its name, or builds a value of. `by` is the frame that binds.
    fn type_of_binding(&self, name: &str, by: usize) -> Option<&'s str> {
        if self.grammar.is_own(name) {
            return Some(OWN);
        }
        let own = self.frames.len().checked_sub(1)?;
        [own.checked_sub(1)?, by].into_iter().find_map(|at| {
            let (ty, value) = self.grammar.typed_by(self.frames.get(at)?.node)?;
            // Part of a pattern has another type than the whole.
            let between = self.frames.get(at + 1..own)?;
            let whole = between.iter().all(|frame| frame.node.named_child_count() == 1);
            let node = self.frames.get(at).filter(|_| whole)?.node;
            let written = node.child_by_field_id(ty).and_then(|node| self.peeled(node));
            written.or_else(|| self.built(node.child_by_field_id(value)?))
        })
    }

    /// The name of the type that a node writes.
    fn peeled(&self, mut node: Node<'t>) -> Option<&'s str> {
        loop {
            if self.root(node).is_some() {
                let text = self.plan.text(node);
                let known = self.scopes.knows(text) || self.grammar.is_transparent(text);
                return (!known).then_some(text);
            }
            node = self.grammar.inner(node)?;
        }
    }

    /// The name of the type of which an expression builds a value.
    fn built(&self, mut node: Node<'t>) -> Option<&'s str> {
        loop {
            if let Some(function) = self.grammar.called(node) {
                self.root(function)?;
                return constructed(self.plan.text(function)).filter(|ty| !self.scopes.knows(ty));
            }
            if self.grammar.builds(node) {
                return self.peeled(self.grammar.inner(node)?);
            }
            node = self.grammar.inner(node)?;
        }
    }
}

/// The type of what a call of `function` gives back, by habit: `T(…)`, `T::new(…)`, `T.create(…)`, `NewT(…)`.
fn constructed(function: &str) -> Option<&str> {
    let is_type = |path: &str| {
        let last = path.rsplit([':', '.']).next().unwrap_or(path);
        last.starts_with(char::is_uppercase)
    };
    if let Some(ty) = function.strip_prefix("New").filter(|ty| is_type(ty)) {
        return Some(ty);
    }
    if is_type(function) {
        return Some(function);
    }
    let ty = function.rsplit_once("::").or_else(|| function.rsplit_once('.'))?.0;
    is_type(ty).then_some(ty)
}

/// A bound name, and the type that is written for it.
type Bound<'s> = (&'s str, Option<&'s str>);

/// What is known of a name here.
enum Known<'s> {
    /// It is not bound.
    No,
    /// It is bound, to a value of any type.
    Bound,
    /// It is bound to a value of this type.
    Of(&'s str),
}

/// The names bound around the current node.
#[derive(Default)]
struct Scopes<'s> {
    /// The types of each name, the innermost last.
    types: HashMap<&'s str, Vec<Option<&'s str>>, foldhash::fast::RandomState>,
    log: Vec<&'s str>,
    /// Names that become bound when the frame of the number ends, or its body begins.
    waiting: BTreeMap<usize, Vec<Bound<'s>>>,
    /// Names that become bound when the frame of the number ends.
    outside: BTreeMap<usize, Vec<&'s str>>,
}

impl<'s> Scopes<'s> {
    fn len(&self) -> usize {
        self.log.len()
    }

    /// How many names wait to be bound.
    fn n_waiting(&self) -> usize {
        let waiting = self.waiting.values().map(Vec::len).sum::<usize>();
        waiting + self.outside.values().map(Vec::len).sum::<usize>()
    }

    /// Every name that is bound, and the types it has; `None` where that is more than [`MAX_SAID`] bytes.
    fn said(&self) -> Option<String> {
        let mut said = String::new();
        for name in &self.log {
            said.push_str(name);
            for ty in self.types.get(name).into_iter().flatten() {
                said.push('\0');
                said.push_str(ty.unwrap_or("?"));
                if said.len() > MAX_SAID {
                    return None;
                }
            }
            said.push('\n');
        }
        Some(said)
    }

    fn knows(&self, name: &str) -> bool {
        !matches!(self.look_up(name), Known::No)
    }

    fn look_up(&self, name: &str) -> Known<'s> {
        match self.types.get(name).and_then(|types| types.last()) {
            None => Known::No,
            Some(None) => Known::Bound,
            Some(Some(ty)) => Known::Of(ty),
        }
    }

    fn bind(&mut self, name: &'s str, ty: Option<&'s str>) {
        self.types.entry(name).or_default().push(ty);
        self.log.push(name);
    }

    fn bind_after(&mut self, depth: usize, name: &'s str, ty: Option<&'s str>) {
        self.waiting.entry(depth).or_default().push((name, ty));
    }

    fn bind_outside(&mut self, depth: usize, name: &'s str) {
        self.outside.entry(depth).or_default().push(name);
    }

    fn begin_body(&mut self, depth: usize) {
        if self.waiting.is_empty() {
            return;
        }
        for (name, ty) in self.waiting.remove(&depth).unwrap_or_default() {
            self.bind(name, ty);
        }
    }

    /// Ends the node of the frame `depth`; its own scope, if any, is closed already.
    fn end_node(&mut self, depth: usize) {
        self.begin_body(depth);
        if self.outside.is_empty() {
            return;
        }
        for name in self.outside.remove(&depth).unwrap_or_default() {
            self.bind(name, None);
        }
    }

    fn close(&mut self, len: usize) {
        while self.log.len() > len {
            let Some(name) = self.log.pop() else { return };
            if let Some(types) = self.types.get_mut(name) {
                types.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_names_around_a_unit_is_bounded() {
        let mut scopes = Scopes::default();
        scopes.bind("T", Some("Type"));
        assert_eq!(scopes.said().as_deref(), Some("T\0Type\n"));
        let names: Vec<String> = (0..1000).map(|n| format!("T{n}")).collect();
        for name in &names {
            scopes.bind(name, None);
        }
        assert_eq!(scopes.said(), None);
        let mut scopes = Scopes::default();
        for _ in 0..1000 {
            scopes.bind("T", None);
        }
        assert_eq!(scopes.said(), None, "one name many times is as much");
    }
}
