//! `go.mod` and `go.work`: each module that is required, replaced, excluded or used is a unit, `require.example.com/x`;
//! what a file says only once (`module`, `go`, `toolchain`) is one.

use super::lines::Lines;
use crate::{Fallback, unit::Units};

/// Directives with one value for the whole file.
const ONCE: &[&str] = &["module", "go", "toolchain"];

/// The units of one version.
#[expect(clippy::unnecessary_wraps, reason = "any text is one; other languages are not so")]
pub(super) fn units(source: &str) -> Result<Units, Fallback> {
    let mut lines = Lines::default();
    let mut block: Option<String> = None;
    for (number, line) in source.lines().enumerate() {
        let text = line.split("//").next().unwrap_or_default().trim();
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first == ")" {
            block = None;
            continue;
        }
        let what = words.next();
        if what == Some("(") {
            block = Some(first.to_owned());
            continue;
        }
        let (directive, what) = match &block {
            Some(directive) => (directive.as_str(), Some(first)),
            None => (first, what),
        };
        let name = match what.filter(|_| !ONCE.contains(&directive)) {
            Some(what) => format!("{directive}.{what}"),
            None => directive.to_owned(),
        };
        // The same line within a block and without one says the same.
        let said = text.strip_prefix(directive).unwrap_or(text).trim();
        lines.add(&name, number, said);
    }
    Ok(lines.into_units())
}
