//! The few questions that are put to git itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use zit_model::Oid;

/// The folder with a repository's objects and refs.
pub(crate) fn git_dir(repository: &Path) -> anyhow::Result<PathBuf> {
    let path = run(repository, &["rev-parse", "--absolute-git-dir"], "")?;
    Ok(PathBuf::from(path.trim()))
}

/// The commit that HEAD leads to.
pub(crate) fn head(repository: &Path) -> anyhow::Result<Oid> {
    oid(run(repository, &["rev-parse", "HEAD^{commit}"], "")?.trim())
}

/// A merge of two parents that git makes by itself, as it was recorded.
pub(crate) struct CleanMerge {
    /// The only merge base of the parents.
    pub(crate) base: Oid,
    /// The parents.
    pub(crate) parents: [Oid; 2],
}

/// How a repository's two-sided merges fare with git.
#[derive(Default)]
pub(crate) struct Merges {
    /// Merges of two parents of which neither contains the other.
    pub(crate) two_sided: usize,
    /// Those that git makes by itself, with the recorded result.
    pub(crate) clean: Vec<CleanMerge>,
}

/// The two-sided merges of HEAD's history, the youngest first, until `limit` clean ones are found.
pub(crate) fn merges(repository: &Path, limit: usize) -> anyhow::Result<Merges> {
    let list = run(
        repository,
        &["rev-list", "--min-parents=2", "--max-parents=2", "--parents", "HEAD"],
        "",
    )?;
    let mut found = Merges::default();
    for line in list.lines() {
        if found.clean.len() >= limit {
            break;
        }
        let [merge, one, two] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let bases = run(repository, &["merge-base", "--all", one, two], "").unwrap_or_default();
        let [base] = bases.lines().collect::<Vec<_>>()[..] else { continue };
        if base == one || base == two {
            continue;
        }
        found.two_sided += 1;
        let Ok(merged) = run(repository, &["merge-tree", "--write-tree", one, two], "") else {
            continue;
        };
        let recorded = run(repository, &["rev-parse", &format!("{merge}^{{tree}}")], "")?;
        if merged.lines().next() == recorded.lines().next() {
            let parents = [oid(one)?, oid(two)?];
            found.clean.push(CleanMerge { base: oid(base)?, parents });
        }
    }
    Ok(found)
}

fn oid(text: &str) -> anyhow::Result<Oid> {
    text.parse().map_err(|_| anyhow::anyhow!("git printed {text:?} where an oid stands"))
}

#[expect(clippy::disallowed_methods, reason = "a tool beside the product, which asks git")]
fn run(repository: &Path, args: &[&str], input: &str) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(args);
    // New objects of a merge go nowhere that matters.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().context("git cannot be started")?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).context("git does not listen")?;
    }
    let output = child.wait_with_output().context("git does not answer")?;
    if !output.status.success() {
        bail!("git {} ended with {}", args.join(" "), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
