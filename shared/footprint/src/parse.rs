//! Text to syntax tree, within a budget. Never reads a clock: the budget counts the parser's own steps.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser, Tree};

use crate::{Fallback, lang::Grammar};

/// Progress reports the parser may make for a file of no length. Source: ours; see [`BYTES_PER_REPORT`].
///
/// A step may take ten microseconds where there are many ways to go on, so that this is a quarter of a second at worst.
const REPORTS_AT_LEAST: usize = 256;

/// Bytes for which the parser may make one further report. It reports every hundred steps, and real sources take
/// a few steps a byte at most, so this stops only what is built to be slow.
const BYTES_PER_REPORT: usize = 10;

/// How deep brackets may nest. Real sources stay far below; the parser's time per step grows with the depth.
const MAX_NESTING: usize = 2000;

/// Sources up to this many bytes are parsed on the caller's stack, which holds what they can need; a thread costs more
/// than parsing them does.
const SMALL: usize = 32 * 1024;

/// Stack that parsing may need per byte. The parser's C code frees merged stack versions recursively, one frame
/// of about 100 bytes a level, and there are fewer levels than bytes.
const STACK_PER_BYTE: usize = 256;

/// Parses `source`, and of an `old` tree that was told of the edits only what they touch.
///
/// # Errors
/// [`Fallback::TooComplex`] over budget, [`Fallback::DoesNotParse`] when the tree has errors.
pub(crate) fn parse(grammar: &Grammar, source: &str, old: Option<&Tree>) -> Result<Tree, Fallback> {
    if nesting(source) > MAX_NESTING {
        return Err(Fallback::TooComplex);
    }
    if source.len() <= SMALL {
        return parse_here(grammar, source, old);
    }
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(source.len() * STACK_PER_BYTE + 1024 * 1024)
            .spawn_scoped(scope, || parse_here(grammar, source, old))
            .ok()
            .and_then(|thread| thread.join().ok())
            .unwrap_or(Err(Fallback::TooComplex))
    })
}

fn parse_here(grammar: &Grammar, source: &str, old: Option<&Tree>) -> Result<Tree, Fallback> {
    let mut parser = Parser::new();
    parser.set_language(&grammar.language).map_err(|_| Fallback::NoGrammar)?;
    let mut left = REPORTS_AT_LEAST + source.len() / BYTES_PER_REPORT;
    let mut stopped_by = Fallback::TooComplex;
    let mut watch = |state: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        // Every way to read the file has an error by now, and recovering from it is the slow part.
        if state.has_error() {
            stopped_by = Fallback::DoesNotParse;
            return ControlFlow::Break(());
        }
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = source.as_bytes();
    let tree = parser.parse_with_options(
        &mut |at, _| bytes.get(at..).unwrap_or_default(),
        old,
        Some(ParseOptions::new().progress_callback(&mut watch)),
    );
    let tree = tree.ok_or(stopped_by)?;
    if tree.root_node().has_error() { Err(Fallback::DoesNotParse) } else { Ok(tree) }
}

/// The most brackets open at once; those in strings and comments count too, which only errs when unbalanced.
pub(crate) fn nesting(source: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}
