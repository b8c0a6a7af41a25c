//! Errors as the one line that people read: what failed, and why.

use std::error::Error;

/// The error and everything that caused it, joined by `: `; a cause that is already told is not told again.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let told = cause.to_string();
        if !text.contains(&told) {
            text.push_str(&format!(": {told}"));
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot open {0}")]
    struct Open(&'static str, #[source] std::io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error(transparent)]
    struct Same(#[from] Open);

    #[test]
    fn causes_follow_what_failed_and_none_is_told_twice() {
        let denied = || std::io::Error::other("denied");
        assert_eq!(chain(&Open("a", denied())), "cannot open a: denied");
        assert_eq!(chain(&Same(Open("a", denied()))), "cannot open a: denied");
        let twice = Open("denied", denied());
        assert_eq!(chain(&twice), "cannot open denied");
    }
}
