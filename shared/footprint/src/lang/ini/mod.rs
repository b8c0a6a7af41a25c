//! INI and its like (`cfg`, `ini`, `editorconfig`): each key of each section is a unit, `section.key`; a line that goes on
//! is indented.

use super::lines::Lines;
use crate::{Fallback, unit::Units};

/// The units of one version.
#[expect(clippy::unnecessary_wraps, reason = "any text is one; other languages are not so")]
pub(super) fn units(source: &str) -> Result<Units, Fallback> {
    let mut lines = Lines::default();
    let (mut section, mut unit) = (String::new(), String::new());
    for (number, line) in source.lines().enumerate() {
        let text = line.trim();
        if text.is_empty() || text.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            name.clone_into(&mut section);
            unit.clone_from(&section);
        } else if !line.starts_with([' ', '\t']) {
            let key = text.split(['=', ':']).next().unwrap_or_default().trim();
            unit = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
        }
        lines.add(&unit, number, line);
    }
    Ok(lines.into_units())
}
