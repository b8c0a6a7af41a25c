//! YAML, by its lines: each key at the left edge is a unit, and so is each key one step below it, `jobs.build`.
//!
//! Read by indentation, not parsed: what aliases and tags stand for is not looked at, so that no file can be built to be
//! large once read. Comments on lines of their own and blank lines write nothing.

use super::lines::Lines;
use crate::{Fallback, unit::Units};

/// The units of one version.
///
/// # Errors
/// [`Fallback::DoesNotParse`] when a line is indented by a tab, which YAML forbids.
pub(super) fn units(source: &str) -> Result<Units, Fallback> {
    let mut lines = Lines::default();
    let (mut top, mut second) = (String::new(), String::new());
    // How far the keys below the current one are indented, once the first is seen.
    let mut step: Option<usize> = None;
    for (number, line) in source.lines().enumerate() {
        let text = line.trim_start_matches(' ');
        if text.starts_with('\t') {
            return Err(Fallback::DoesNotParse);
        }
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let indent = line.len() - text.len();
        if indent == 0 {
            (top, second, step) = (key(text).unwrap_or_default().to_owned(), String::new(), None);
        } else if *step.get_or_insert(indent) == indent {
            second = key(text).map_or_else(String::new, |key| format!("{top}.{key}"));
        }
        lines.add(if second.is_empty() { &top } else { &second }, number, line);
    }
    Ok(lines.into_units())
}

/// The key that a line starts with.
fn key(text: &str) -> Option<&str> {
    let (key, rest) = text.split_once(':')?;
    let plain =
        !key.is_empty() && !key.starts_with(['-', '{', '[', '"', '\'', '&', '*', '!', '|', '>']);
    (plain && (rest.is_empty() || rest.starts_with([' ', '\t']))).then(|| key.trim_end())
}
