//! One walk over a syntax tree: every token goes to the fragment that owns it, every identifier is told from
//! the names bound around it.
//!
//! Follows a [`Plan`]; never decides what a unit is. Iterative: the depth of a tree costs heap, not stack.

use std::collections::{BTreeMap, HashMap};

use tree_sitter::{Node, Tree, TreeCursor};

use crate::{
    footprint::MAX_SIGNATURE,
    lang::{Binds, Grammar, Trait},
    plan::{MODULE, Plan, Tag, one_line},
    unit::Fragment,
};

/// Tokens that stand for the start and end of a block, and for the end of a statement.
const BLOCK_START: &str = "\u{1}";
const BLOCK_END: &str = "\u{2}";
const STATEMENT_END: &str = "\u{3}";

/// Gives every token of `tree` to its fragment.
pub(crate) fn walk<'s>(grammar: &Grammar, tree: &Tree, plan: Plan<'s>) -> Vec<Fragment<'s>> {
    let mut walk = Walk {
        grammar,
        plan,
        frames: Vec::new(),
        scopes: Scopes::default(),
        last_end: 0,
        after_dot: false,
        comma: None,
        after_item: false,
        signature_end: HashMap::new(),
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
                return walk.plan.fragments;
            }
        }
    }
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
    /// They are bound; `After` waits for the frame with this number.
    BindNow,
    BindAfter(usize),
    /// They are bound around the frame with this number.
    BindOutside(usize),
    Silent,
}

struct Frame<'t> {
    node: Node<'t>,
    traits: Trait,
    fragment: usize,
    list: List,
    names: Names,
    /// How many bindings there were, where the node is a scope.
    scope: Option<usize>,
}

struct Walk<'g, 's, 't> {
    grammar: &'g Grammar,
    plan: Plan<'s>,
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
    signature_end: HashMap<usize, usize>,
}

impl<'t> Walk<'_, '_, 't> {
    /// Enters a node; answers whether its children are to be visited.
    fn enter(&mut self, cursor: &TreeCursor<'t>) -> bool {
        let node = cursor.node();
        let field = cursor.field_id().map_or(0, std::num::NonZero::get);
        let frame = self.frame(node, field);
        let (fragment, list, traits) = (frame.fragment, frame.list, frame.traits);
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
            let (list, names) = (List::Interface, Names::Mention);
            return Frame { node, traits, fragment: MODULE, list, names, scope: None };
        };
        let depth = self.frames.len();
        let mut names = match self.grammar.binding(parent.node, field) {
            Some(Binds::Now) => Names::BindNow,
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
        match self.plan.tags.get(&node.id()) {
            Some(Tag::Unit(index)) => (fragment, list) = (*index, List::Interface),
            Some(Tag::Docs(index)) => (fragment, list) = (*index, List::Docs),
            Some(Tag::Glue) => list = List::None,
            Some(Tag::Name) => names = Names::Silent,
            None => {}
        }
        if traits.is(Trait::SILENT) {
            names = Names::Silent;
        } else if traits.is(Trait::MENTIONS) {
            names = Names::Mention;
        }
        let scope = traits.is(Trait::SCOPE).then(|| self.scopes.len());
        Frame { node, traits, fragment, list, names, scope }
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
        self.scopes.end_node(self.frames.len());
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
        let gap = self.plan.source.get(self.last_end..node.start_byte()).unwrap_or_default().trim();
        if !gap.is_empty() && !gap.bytes().all(|byte| matches!(byte, b';' | b'\\')) {
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
        let mentions = if traits.is(Trait::IDENTIFIER) {
            !self.is_member() || self.is_imported_member()
        } else {
            traits.is(Trait::MEMBER) && self.is_imported_member()
        };
        if !mentions || names == Names::Silent {
            return;
        }
        let Some(text) = self.source_text(text) else { return };
        let upper = traits.is(Trait::CASED) && text.starts_with(char::is_uppercase);
        match names {
            Names::BindNow if !upper => self.scopes.bind(text),
            Names::BindAfter(depth) if !upper => self.scopes.bind_after(depth, text),
            Names::BindOutside(depth) => self.scopes.bind_outside(depth, text),
            Names::Silent | Names::Mention | Names::BindNow | Names::BindAfter(_) => {
                if !self.scopes.knows(text)
                    && let Some(fragment) = self.plan.fragments.get_mut(fragment)
                {
                    fragment.refs.insert(text);
                }
            }
        }
    }
}

impl<'s> Walk<'_, 's, '_> {
    /// The current token's text with the source's lifetime.
    fn source_text(&self, text: &str) -> Option<&'s str> {
        let node = self.frames.last()?.node;
        self.plan.source.get(node.byte_range()).filter(|same| *same == text)
    }

    /// Whether the current identifier is the member in `value.member`.
    fn is_member(&self) -> bool {
        let [.., parent, _] = self.frames.as_slice() else { return false };
        if parent.traits.is(Trait::TOKENS) {
            return self.after_dot;
        }
        self.object().is_some()
    }

    fn is_imported_member(&self) -> bool {
        self.object().is_some_and(|object| {
            let root = object.split('.').next().unwrap_or_default().trim();
            self.plan.imported.contains(root)
        })
    }

    /// The text of what the current node is a member of.
    fn object(&self) -> Option<&'s str> {
        let [.., parent, own] = self.frames.as_slice() else { return None };
        let kind = usize::from(parent.node.kind_id());
        let field = self.grammar.member_of.get(kind).copied().flatten()?;
        let object = parent.node.child_by_field_name(field)?;
        (object.id() != own.node.id()).then(|| self.plan.text(object))
    }
}

/// The names bound around the current node.
#[derive(Default)]
struct Scopes<'s> {
    counts: HashMap<&'s str, u32>,
    log: Vec<&'s str>,
    /// Names that become bound when the frame of the number ends, or its body begins.
    waiting: BTreeMap<usize, Vec<&'s str>>,
    /// Names that become bound when the frame of the number ends.
    outside: BTreeMap<usize, Vec<&'s str>>,
}

impl<'s> Scopes<'s> {
    fn len(&self) -> usize {
        self.log.len()
    }

    fn knows(&self, name: &str) -> bool {
        self.counts.get(name).is_some_and(|count| *count > 0)
    }

    fn bind(&mut self, name: &'s str) {
        *self.counts.entry(name).or_default() += 1;
        self.log.push(name);
    }

    fn bind_after(&mut self, depth: usize, name: &'s str) {
        self.waiting.entry(depth).or_default().push(name);
    }

    fn bind_outside(&mut self, depth: usize, name: &'s str) {
        self.outside.entry(depth).or_default().push(name);
    }

    fn begin_body(&mut self, depth: usize) {
        for name in self.waiting.remove(&depth).unwrap_or_default() {
            self.bind(name);
        }
    }

    /// Ends the node of the frame `depth`; its own scope, if any, is closed already.
    fn end_node(&mut self, depth: usize) {
        self.begin_body(depth);
        for name in self.outside.remove(&depth).unwrap_or_default() {
            self.bind(name);
        }
    }

    fn close(&mut self, len: usize) {
        while self.log.len() > len {
            let Some(name) = self.log.pop() else { return };
            if let Some(count) = self.counts.get_mut(name) {
                *count = count.saturating_sub(1);
            }
        }
    }
}
