//! One version of a unit as pieces, with the names that each reads, binds and changes.
//!
//! Follows a [`Plan`] as `walk` does. Iterative: the depth of a tree costs heap, not stack.

use tree_sitter::{Node, TreeCursor};
use zit_model::resource::Part;

use crate::{
    UnitHash,
    lang::{Among, Binds, Grammar, Link, Trait},
    parse::parse,
    plan::{MODULE, Plan, Tag},
    unit::Repeat,
};

/// How much of a piece tells it from others of a list, in bytes. Source: ours; longer ones that begin alike count as one.
const MAX_KEY: usize = 512;

/// A part of a unit: a statement, an arm, a member, an element.
#[derive(Debug)]
pub(super) struct Piece<'s> {
    /// The piece around it.
    pub parent: Option<usize>,
    /// How it stands beside the others there.
    pub among: Among,
    /// Its own tokens, and those of all that it is in.
    pub same: UnitHash,
    /// By which it is told from others of a list.
    pub key: &'s str,
    /// Names that it mentions; members with a dot before.
    pub reads: Vec<&'s str>,
    /// Names that it binds for what follows.
    pub binds: Vec<&'s str>,
    /// Names that it binds for what is inside.
    pub binds_inside: Vec<&'s str>,
    /// Names that it gives another value.
    pub assigns: Vec<&'s str>,
    /// Names whose values it may change.
    pub mutates: Vec<&'s str>,
    /// How often it leaves a function or loop.
    pub jumps: usize,
    /// Whether it only holds the place of another unit.
    pub is_place: bool,
    tokens: Vec<u8>,
}

impl<'s> Piece<'s> {
    fn new(parent: Option<usize>, among: Among, key: &'s str) -> Self {
        Self {
            parent,
            among,
            same: UnitHash::of([]),
            key,
            reads: Vec::new(),
            binds: Vec::new(),
            binds_inside: Vec::new(),
            assigns: Vec::new(),
            mutates: Vec::new(),
            jumps: 0,
            is_place: false,
            tokens: Vec::new(),
        }
    }
}

/// The pieces of a unit.
#[derive(Debug, Default)]
pub(super) struct Pieces<'s> {
    /// The tokens that are in no piece: a signature, a type's header, attributes.
    pub head: Vec<u8>,
    /// In the order of the file, outer ones before inner ones.
    pub list: Vec<Piece<'s>>,
    /// Names that the head binds.
    parameters: Vec<&'s str>,
}

impl<'s> Pieces<'s> {
    /// The pieces of a unit; `None` if the file does not parse, or has no such unit, or not in one way only.
    pub(super) fn of(grammar: &Grammar, part: &Part, source: &'s str) -> Option<Self> {
        let tree = parse(grammar, source, None).ok()?;
        let mut plan = Plan::new(source);
        (grammar.carve)(&mut plan, tree.root_node());
        let all = plan.fragments.iter().enumerate();
        let own: Vec<usize> = all.filter(|(_, f)| f.part == *part).map(|(at, _)| at).collect();
        let merges =
            |at: &usize| plan.fragments.get(*at).is_some_and(|f| f.repeat == Repeat::Merge);
        if own.is_empty() || own.len() > 1 && !own.iter().all(merges) {
            return None;
        }
        let mut reader =
            Reader { grammar, plan: &plan, own: &own, frames: Vec::new(), pieces: Self::default() };
        reader.read(&mut tree.walk());
        let mut pieces = reader.pieces;
        pieces.hash();
        Some(pieces)
    }

    /// The pieces around one and itself, the outermost first, each with the one of the base that it is.
    pub(super) fn chain(
        &self,
        index: usize,
        of_base: impl Fn(usize) -> Option<usize>,
    ) -> Vec<(Option<usize>, &Piece<'s>)> {
        let up = |at: &usize| self.list.get(*at)?.parent;
        let chain = std::iter::successors(Some(index), up);
        let mut chain: Vec<_> =
            chain.filter_map(|at| Some((of_base(at), self.list.get(at)?))).collect();
        chain.reverse();
        chain
    }

    /// Names that the unit binds, or gives values.
    pub(super) fn locals(&self) -> impl Iterator<Item = &'s str> {
        let inside = self
            .list
            .iter()
            .flat_map(|piece| piece.binds.iter().chain(&piece.binds_inside).chain(&piece.assigns));
        self.parameters.iter().chain(inside).copied()
    }

    fn hash(&mut self) {
        for index in 0..self.list.len() {
            let Some(piece) = self.list.get(index) else { return };
            // What binds nothing, as the value that a method is called on, is no parameter like others.
            if piece.among == Among::Parameters && piece.binds.is_empty() {
                self.head.extend(&piece.tokens);
            }
            let outer = piece.parent.and_then(|parent| self.list.get(parent));
            let outer = outer.map(|outer| outer.same);
            let outer: &[u8] = outer.as_ref().map_or(&[], |outer| outer.as_bytes());
            let same = UnitHash::of([&piece.tokens[..], outer]);
            if let Some(piece) = self.list.get_mut(index) {
                piece.same = same;
                piece.tokens = Vec::new();
            }
        }
    }
}

/// What identifiers are, here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Read,
    Bind,
    BindInside,
    Assign,
    /// A value that is changed is in them.
    Mutate,
    Silent,
}

#[derive(Clone, Copy)]
struct Frame<'t> {
    node: Node<'t>,
    field: u16,
    /// Whether its tokens belong to the unit.
    is_own: bool,
    piece: Option<usize>,
    role: Role,
    /// The part of the node in which values are changed.
    mutated: Option<Node<'t>>,
}

struct Reader<'r, 's, 't> {
    grammar: &'r Grammar,
    plan: &'r Plan<'s>,
    /// The unit's fragments.
    own: &'r [usize],
    frames: Vec<Frame<'t>>,
    pieces: Pieces<'s>,
}

impl<'t> Reader<'_, '_, 't> {
    fn read(&mut self, cursor: &mut TreeCursor<'t>) {
        loop {
            if self.enter(cursor) && cursor.goto_first_child() {
                continue;
            }
            loop {
                self.frames.pop();
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return;
                }
            }
        }
    }

    /// Enters a node; answers whether its children are to be visited.
    fn enter(&mut self, cursor: &TreeCursor<'t>) -> bool {
        let node = cursor.node();
        let field = cursor.field_id().map_or(0, std::num::NonZero::get);
        let traits = self.grammar.traits_of(node);
        let mut frame = self.frame(node, field);
        if traits.is(Trait::COMMENT) {
            self.frames.push(frame);
            return false;
        }
        self.open(&mut frame);
        self.frames.push(frame);
        let is_token = node.child_count() == 0 || traits.is(Trait::ATOM);
        if is_token && frame.is_own {
            self.token(&frame, traits);
        }
        !is_token
    }

    fn frame(&self, node: Node<'t>, field: u16) -> Frame<'t> {
        let Some(parent) = self.frames.last() else {
            let is_own = self.own.contains(&MODULE);
            let (piece, role, mutated) = (None, Role::Read, None);
            return Frame { node, field, is_own, piece, role, mutated };
        };
        let is_own = match self.plan.tags.get(&node.id()) {
            Some(Tag::Unit(index) | Tag::Docs(index)) => self.own.contains(index),
            Some(Tag::Glue) => false,
            Some(Tag::Name) | None => parent.is_own,
        };
        let role = self.role(parent, node, field);
        Frame { node, field, is_own, piece: parent.piece, role, mutated: parent.mutated }
    }

    fn role(&self, parent: &Frame<'t>, node: Node<'t>, field: u16) -> Role {
        if parent.mutated == Some(node) {
            return Role::Mutate;
        }
        let (parts, kind) = (&self.grammar.parts, parent.node.kind());
        let assigns =
            || parts.assigns.iter().any(|row| row.0 == kind && self.is_field(row.1, field));
        let role = match self.grammar.binding(parent.node, field) {
            Some(Binds::Never) => Role::Silent,
            Some(Binds::Mentions) => Role::Read,
            _ if assigns() => Role::Assign,
            None => parent.role,
            Some(_) if parts.lets.contains(&kind) => Role::Bind,
            Some(_) => Role::BindInside,
        };
        if role == Role::Assign && !self.is_name(node) && !parts.several.contains(&node.kind()) {
            return Role::Mutate;
        }
        let binds = matches!(role, Role::Bind | Role::BindInside);
        if binds && self.grammar.traits_of(node).is(Trait::MENTIONS) { Role::Read } else { role }
    }

    fn is_field(&self, name: &str, field: u16) -> bool {
        self.grammar.language.field_id_for_name(name).is_some_and(|id| id.get() == field)
    }

    fn is_name(&self, node: Node<'_>) -> bool {
        let traits = self.grammar.traits_of(node);
        traits.is(Trait::IDENTIFIER) || traits.is(Trait::MEMBER)
    }

    /// Makes a node a piece, if it stands in a list; notes what it changes.
    fn open(&mut self, frame: &mut Frame<'t>) {
        frame.mutated = self.mutated(frame.node).or(frame.mutated);
        // What a unit itself stands in is not made of its pieces.
        let Some(parent) = self.frames.last().filter(|parent| parent.is_own) else { return };
        if !frame.is_own {
            return self.hold_place(frame);
        }
        let rows = self.grammar.parts.lists;
        let row = rows.iter().find(|(kind, field, _)| {
            *kind == parent.node.kind()
                && (*field == "*"
                    || field.is_empty() && frame.field == 0
                    || self.is_field(field, frame.field))
        });
        let Some((_, _, among)) = row.filter(|_| frame.node.is_named()) else { return };
        let keys = ["name", "key", "pattern", "left", "value"];
        let key = keys.iter().find_map(|name| frame.node.child_by_field_name(name));
        let key = self.plan.text(key.unwrap_or(frame.node));
        let key = &key[..key.floor_char_boundary(MAX_KEY)];
        self.pieces.list.push(Piece::new(frame.piece, *among, key));
        frame.piece = Some(self.pieces.list.len() - 1);
        if *among != Among::Parameters {
            frame.role = Role::Read;
        }
    }

    /// Notes where another unit stands, so that what stands before it is not taken for what stands after it.
    fn hold_place(&mut self, frame: &Frame<'t>) {
        let Some(Tag::Unit(index)) = self.plan.tags.get(&frame.node.id()) else { return };
        let Some(fragment) = self.plan.fragments.get(*index) else { return };
        let mut place = Piece::new(frame.piece, Among::Steps, "");
        place.is_place = true;
        place.tokens = format!("{:?}", fragment.part).into_bytes();
        self.pieces.list.push(place);
    }

    /// What a node may change the value of: the receiver of a call that is a statement, what is lent to be changed.
    fn mutated(&self, node: Node<'t>) -> Option<Node<'t>> {
        let parts = &self.grammar.parts;
        if let Some((_, mark, field)) = parts.lends.iter().find(|row| row.0 == node.kind()) {
            let marked = (0..node.child_count()).filter_map(|at| node.child(at));
            let is_marked = marked.into_iter().any(|child| child.kind() == *mark);
            return node.child_by_field_name(field).filter(|_| is_marked);
        }
        if !parts.runs.contains(&node.kind()) {
            return None;
        }
        let mut call = node.named_child(0)?;
        while let Some(inner) =
            self.grammar.inner(call).filter(|_| self.grammar.called(call).is_none())
        {
            call = inner;
        }
        let function = self.grammar.called(call)?;
        function.child_by_field_id(self.grammar.before_of(function)?)
    }

    fn token(&mut self, frame: &Frame<'t>, traits: Trait) {
        let (text, source) = (self.plan.text(frame.node), self.plan.source);
        if text.is_empty() {
            return;
        }
        let parent = self.frames.len().checked_sub(2).and_then(|at| self.frames.get(at));
        let is_list = |frame: &Frame<'_>| {
            self.grammar.parts.lists.iter().any(|row| row.0 == frame.node.kind())
        };
        if matches!(text, "," | ";") && parent.is_some_and(is_list) {
            return;
        }
        let link = parent.and_then(|parent| self.grammar.link(parent.node, frame.field));
        let is_member = traits.is(Trait::MEMBER) || matches!(link, Some(Link::Member(_)));
        let is_method = is_member && self.is_called();
        let Some(piece) = frame.piece.and_then(|at| self.pieces.list.get_mut(at)) else {
            self.pieces.head.extend(text.bytes().chain([0]));
            if traits.is(Trait::IDENTIFIER) && matches!(frame.role, Role::Bind | Role::BindInside) {
                self.pieces.parameters.push(text);
            }
            return;
        };
        piece.tokens.extend(text.bytes().chain([0]));
        if self.grammar.parts.jumps.contains(&text) {
            piece.jumps += 1;
        }
        if traits.is(Trait::ATOM) {
            piece.reads.extend(in_braces(text));
        }
        if is_method || !(traits.is(Trait::IDENTIFIER) || is_member) {
            return;
        }
        // A member is told from a variable by the dot before it, where one is written.
        let start = frame.node.start_byte();
        let dotted = start.checked_sub(1).and_then(|dot| source.get(dot..frame.node.end_byte()));
        let name = dotted.filter(|name| is_member && name.starts_with('.')).unwrap_or(text);
        let upper = traits.is(Trait::CASED) && text.starts_with(char::is_uppercase);
        match frame.role {
            Role::Silent => {}
            _ if text == "_" => {}
            _ if self.grammar.is_own(text) => {}
            Role::Bind | Role::BindInside if upper || is_member => piece.reads.push(name),
            Role::BindInside if piece.among == Among::Parameters => piece.binds.push(name),
            Role::Bind => piece.binds.push(name),
            Role::BindInside => piece.binds_inside.push(name),
            Role::Assign => piece.assigns.push(name),
            Role::Mutate => piece.mutates.push(name),
            Role::Read => piece.reads.push(name),
        }
    }
}

impl Reader<'_, '_, '_> {
    /// Whether the current token is the name of a method that is called.
    fn is_called(&self) -> bool {
        let [.., call, function, _] = self.frames.as_slice() else { return false };
        self.grammar.called(call.node) == Some(function.node)
    }
}

/// The names that a string mentions in braces, as text that is filled in does.
fn in_braces(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}
