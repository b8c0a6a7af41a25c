//! TOML: each key is a unit, of a table's table too, `dependencies.serde`; what is below three keys belongs to the third.
//!
//! Comments, formatting and the order of keys write nothing. Keys mention nothing.

use toml::Value;

use super::keys::{Keys, Node, parts};
use crate::{Fallback, unit::Units};

/// The units of one version.
pub(super) fn units(source: &str) -> Result<Units, Fallback> {
    let table: toml::Table = source.parse().map_err(|_| Fallback::DoesNotParse)?;
    Ok(parts(&Value::Table(table)))
}

impl Keys for Value {
    fn node(&self) -> Node<'_, Self> {
        match self {
            Self::Table(table) if !table.is_empty() => {
                Node::Keys(table.iter().map(|(key, value)| (key.as_str(), value)).collect())
            }
            Self::String(_)
            | Self::Integer(_)
            | Self::Float(_)
            | Self::Boolean(_)
            | Self::Datetime(_)
            | Self::Array(_)
            | Self::Table(_) => Node::Leaf(format!("{self:?}")),
        }
    }
}
