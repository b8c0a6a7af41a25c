//! Symbolic refs that lead nowhere. Git's fsck tells of each as of an oid of zeros; what helps is the name of a branch.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};
use zit_model::{Oid, quote};

use super::Finding;
use crate::Store;
use crate::git::Git;

/// What a line of `git fsck` says instead of an oid when it cannot follow a ref.
const NO_OID: &str = ": invalid sha1 pointer 000000";

/// The finding for a line of `git fsck`, if it is about a symbolic ref that leads nowhere. `refs` are those that are there.
pub(super) fn find(store: &Store, line: &BStr, refs: &BTreeMap<BString, Oid>) -> Option<Finding> {
    let line = line.to_str().ok()?;
    let (name, _) = line.strip_prefix("error: ")?.split_once(NO_OID)?;
    let asked = Git::at(store.common_dir(), &[], "symbolic-ref").args(["--quiet", name]);
    let target = asked.output().ok()?;
    let target = target.trim_end().to_str().ok()?;
    let what = format!("{name} names {target}, which does not exist");
    let command = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| quote::shell_word(word)).collect();
        format!("git symbolic-ref {}", words.join(" "))
    };
    let Some(prefix) = name.strip_suffix("HEAD").filter(|prefix| is_namespace(prefix)) else {
        return Some(Finding::problem("ref", &what, &command(&["-d", name])));
    };
    let heads = format!("{prefix}refs/heads/");
    let Some(branch) = branch(&heads, target, refs) else {
        let next = if target.starts_with(&heads) {
            format!("nothing: a push of {target} makes it")
        } else {
            format!("{} names a branch of the namespace", command(&[name, &format!("{heads}main")]))
        };
        return Some(Finding::note("ref", &what, &next));
    };
    Some(Finding::problem("ref", &what, &command(&[name, &branch])))
}

/// Whether a prefix of refnames is a namespace's: `refs/namespaces/<name>/`, perhaps several times.
fn is_namespace(prefix: &str) -> bool {
    let mut components = prefix.trim_end_matches('/').split('/');
    let mut n = 0;
    loop {
        match (components.next(), components.next(), components.next()) {
            (Some("refs"), Some("namespaces"), Some(_)) => n += 1,
            (None, None, None) => return n > 0,
            _ => return false,
        }
    }
}

/// The branch below `heads` that a HEAD with that target should name: of the same short name, `main`, `master`, or any.
fn branch(heads: &str, target: &str, refs: &BTreeMap<BString, Oid>) -> Option<String> {
    let short = target.rsplit_once("refs/heads/").map_or(target, |(_, short)| short);
    let likely = [short, "main", "master"].map(|short| format!("{heads}{short}"));
    let is_there = |name: &String| refs.contains_key(name.as_bytes().as_bstr());
    likely.into_iter().find(is_there).or_else(|| {
        let mut names = refs.keys().filter_map(|name| name.to_str().ok());
        names.find(|name| name.starts_with(heads)).map(str::to_owned)
    })
}
