//! The harbour's configuration: `key = value`, one on a line.

use std::fmt;

/// What the engine must know about the harbour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The harbour's name, as painted on the office.
    pub harbour: String,
    /// How many berths there are.
    pub berths: u32,
    /// The longest boat that fits, in metres.
    pub longest_m: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { harbour: "unnamed".to_owned(), berths: 12, longest_m: 15 }
    }
}

/// Why a configuration cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A line without `=`.
    NoValue { line: usize },
    /// A value that should be a number.
    NotANumber { line: usize, value: String },
    /// A key that means nothing here.
    UnknownKey { line: usize, key: String },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoValue { line } => write!(f, "line {line}: no value"),
            Self::NotANumber { line, value } => write!(f, "line {line}: {value} is no number"),
            Self::UnknownKey { line, key } => write!(f, "line {line}: nobody knows {key}"),
        }
    }
}

/// Reads a configuration; keys that are left out keep their defaults.
pub fn parse_config(text: &str) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    for (index, line) in text.lines().enumerate() {
        let line_no = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(ConfigError::NoValue { line: line_no });
        };
        let value = value.trim();
        match key.trim() {
            "berths" => config.berths = number(value, line_no)?,
            "longest" => config.longest_m = number(value, line_no)?,
            "harbour" => config.harbour = value.to_owned(),
            key => return Err(ConfigError::UnknownKey { line: line_no, key: key.to_owned() }),
        }
    }
    Ok(config)
}

fn number(value: &str, line: usize) -> Result<u32, ConfigError> {
    value.parse().map_err(|_| ConfigError::NotANumber { line, value: value.to_owned() })
}

/// One line for the top of the board.
pub fn describe(config: &Config) -> String {
    format!("{}: {} berths", config.harbour, config.berths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_keeps_its_default() {
        let config = parse_config("harbour = South Mole\n").unwrap();
        assert_eq!(config.harbour, "South Mole");
        assert_eq!(config.berths, 12);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let error = parse_config("\nbirths = 3\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: nobody knows births");
    }
}
