//! `receive.deny*`: which updates of refs a repository's configuration refuses, whoever asks.
//!
//! Read here, applied by the referee. Source: git-config(1).

use bstr::{BStr, BString, ByteSlice};

/// What is denied to pushers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyConfig {
    /// `receive.denyDeletes`: branches are never deleted.
    pub deletes: bool,
    /// `receive.denyNonFastForwards`: branches move only to what contains them.
    pub non_fast_forwards: bool,
    /// `receive.denyDeleteCurrent`: what becomes of a deletion of the branch that HEAD names.
    pub delete_current: Deny,
    /// `receive.denyCurrentBranch`: what becomes of an update of a branch that a work tree has checked out.
    pub current_branch: Deny,
    /// `receive.procReceiveRefs`: which refs are left to the hook `proc-receive`.
    pub left_to_hook: Vec<LeftToHook>,
}

/// One value of `receive.procReceiveRefs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftToHook {
    /// The updates that are meant: `a`, `m` and `d` for a ref that is added, modified or deleted; all when empty.
    kinds: Vec<u8>,
    /// Whether it is meant for the refs that do not match.
    is_negated: bool,
    prefix: BString,
}

impl LeftToHook {
    /// # Source
    /// git's `builtin/receive-pack.c`, `proc_receive_ref_append`.
    fn read(value: &[u8]) -> Self {
        let (kinds, prefix) = value.split_once_str(":").unwrap_or((b"", value));
        Self {
            kinds: kinds.iter().copied().filter(|kind| b"amd".contains(kind)).collect(),
            is_negated: kinds.contains(&b'!'),
            prefix: prefix.trim_end_with(|c| c == '/').into(),
        }
    }

    /// Whether an update from and to something, or nothing, is left to the hook.
    #[must_use]
    pub fn takes(&self, name: &BStr, has_old: bool, has_new: bool) -> bool {
        let kind = match (has_old, has_new) {
            (_, false) => b'd',
            (false, true) => b'a',
            (true, true) => b'm',
        };
        let rest = name.strip_prefix(self.prefix.as_slice());
        let matches = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"));
        (self.kinds.is_empty() || self.kinds.contains(&kind)) && matches != self.is_negated
    }
}

/// What becomes of an update that git is careful with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deny {
    /// It is done.
    Ignore,
    /// It is done, and the pusher is warned.
    Warn,
    /// It is refused. The default.
    Refuse,
}

impl DenyConfig {
    /// Reads the keys. A value that is no boolean counts as true: git would refuse the push.
    pub(crate) fn read(file: &gix_config::File) -> Self {
        let flag = |key: &str| file.boolean(key).unwrap_or(Some(true)).unwrap_or(false);
        Self {
            deletes: flag("receive.denyDeletes"),
            non_fast_forwards: flag("receive.denyNonFastForwards"),
            delete_current: Deny::read(file, "receive.denyDeleteCurrent"),
            current_branch: Deny::read(file, "receive.denyCurrentBranch"),
            left_to_hook: file
                .values::<BString>("receive.procReceiveRefs")
                .unwrap_or_default()
                .iter()
                .map(|value| LeftToHook::read(value))
                .collect(),
        }
    }
}

impl Deny {
    /// # Source
    /// git's `builtin/receive-pack.c`, `parse_deny_action`. To bring a work tree up to date (`updateInstead`) is not
    /// done here, and so refused.
    fn read(file: &gix_config::File, key: &str) -> Self {
        let Some(word) = file.string(key) else { return Self::Refuse };
        match word.to_ascii_lowercase().as_bytes() {
            b"ignore" => Self::Ignore,
            b"warn" => Self::Warn,
            b"refuse" | b"updateinstead" => Self::Refuse,
            _ => match file.boolean(key) {
                Ok(Some(false)) => Self::Ignore,
                Ok(_) | Err(_) => Self::Refuse,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> DenyConfig {
        DenyConfig::read(
            &gix_config::File::try_from(format!("[receive]\n{line}\n").as_str()).unwrap(),
        )
    }

    #[test]
    fn what_is_unset_is_gits_default() {
        let unset = read("");
        assert!(!unset.deletes && !unset.non_fast_forwards);
        assert_eq!((unset.delete_current, unset.current_branch), (Deny::Refuse, Deny::Refuse));
    }

    #[test]
    fn what_is_left_to_a_hook_is_found_by_kind_and_prefix() {
        for (value, name, has_old, has_new, expected) in [
            ("refs/for/", "refs/for/main", false, true, true),
            ("refs/for", "refs/forest", false, true, false),
            ("ad:refs/heads", "refs/heads/x", true, true, false),
            ("ad:refs/heads", "refs/heads/x", true, false, true),
            ("m:refs/heads", "refs/heads/x", true, true, true),
            ("!:refs/heads", "refs/heads/x", true, true, false),
            ("!:refs/heads", "refs/tags/x", true, true, true),
        ] {
            let read = LeftToHook::read(value.as_bytes());
            assert_eq!(read.takes(name.into(), has_old, has_new), expected, "{value} {name}");
        }
    }

    #[test]
    fn the_words_are_gits_and_the_unknown_is_refused() {
        for (word, expected) in [
            ("ignore", Deny::Ignore),
            ("WARN", Deny::Warn),
            ("refuse", Deny::Refuse),
            ("updateInstead", Deny::Refuse),
            ("false", Deny::Ignore),
            ("yes", Deny::Refuse),
            ("frotz", Deny::Refuse),
        ] {
            assert_eq!(
                read(&format!("denyCurrentBranch = {word}")).current_branch,
                expected,
                "{word}"
            );
        }
        assert!(read("denyDeletes").deletes && read("denyDeletes = frotz").deletes);
    }
}
