//! JSON: each key is a unit, of an object's object too, `dependencies.react`; what is below three keys belongs to the
//! third. A file that is no object is taken as one unit, code outside symbols.
//!
//! Formatting and the order of keys write nothing. Keys mention nothing.

use serde_json::Value;

use super::keys::{Keys, Node, parts};
use crate::{Fallback, unit::Units};

/// The units of one version.
pub(super) fn units(source: &str) -> Result<Units, Fallback> {
    let value: Value = serde_json::from_str(source).map_err(|_| Fallback::DoesNotParse)?;
    Ok(parts(&value))
}

impl Keys for Value {
    fn node(&self) -> Node<'_, Self> {
        match self {
            Self::Object(object) if !object.is_empty() => {
                Node::Keys(object.iter().map(|(key, value)| (key.as_str(), value)).collect())
            }
            Self::Null
            | Self::Bool(_)
            | Self::Number(_)
            | Self::String(_)
            | Self::Array(_)
            | Self::Object(_) => Node::Leaf(self.to_string()),
        }
    }
}
