//! Text to syntax tree, within a budget. Never reads a clock: the budget counts the parser's own steps.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser, Tree};

use crate::{Fallback, lang::Grammar};

/// Progress reports the parser may make for a file of no length. Source: ours; see [`REPORTS_PER_BYTE`].
const REPORTS_AT_LEAST: usize = 4096;

/// Progress reports allowed per byte. The parser reports every hundred steps, and real sources need less than
/// one report in twenty bytes, so this stops only what is built to be slow.
const REPORTS_PER_BYTE: usize = 1;

/// Parses `source`.
///
/// # Errors
/// [`Fallback::TooComplex`] over budget, [`Fallback::DoesNotParse`] when the tree has errors.
pub(crate) fn parse(grammar: &Grammar, source: &str) -> Result<Tree, Fallback> {
    let mut parser = Parser::new();
    parser.set_language(&grammar.language).map_err(|_| Fallback::NoGrammar)?;
    let mut left = REPORTS_AT_LEAST.saturating_add(source.len().saturating_mul(REPORTS_PER_BYTE));
    let mut watch = |_: &tree_sitter::ParseState| {
        left = left.saturating_sub(1);
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = source.as_bytes();
    let tree = parser
        .parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(ParseOptions::new().progress_callback(&mut watch)),
        )
        .ok_or(Fallback::TooComplex)?;
    if tree.root_node().has_error() { Err(Fallback::DoesNotParse) } else { Ok(tree) }
}
