//! The repositories that are measured, grown with `git fast-import`: equal arguments give equal object ids.
//!
//! Each function makes one bare repository. None of it depends on the clock or on chance beyond a fixed seed.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use crate::process;

/// Commits of the mainline of [`small`].
pub(crate) const N_COMMITS: usize = 64;

/// Refs of [`many_refs`], in [`N_GROUPS`] groups of the same size.
pub(crate) const N_REFS: usize = 10_000;

/// Groups of refs of [`many_refs`]: `refs/bench/<group>/<number>`.
pub(crate) const N_GROUPS: usize = 100;

/// Files that one of the measured commits changes.
pub(crate) const N_FILES: usize = 50;

/// Commits that one of the measured long pushes sends.
pub(crate) const N_PUSHED: usize = 1_000;

/// Branches `files/<n>` of [`pushes`]: so many short pushes can be measured on each side.
pub(crate) const N_SHORT_PUSHES: usize = 60;

/// Branches `commits/<n>` of [`pushes`]: so many long pushes can be measured on each side.
pub(crate) const N_LONG_PUSHES: usize = 8;

/// Source files of [`sources`].
const N_SOURCES: usize = 200;

/// Functions of each source file.
const N_FUNCTIONS: usize = 30;

/// Text of one file of [`large`], in bytes. Random hexadecimal digits, so a pack holds half of it.
const LARGE_FILE: usize = 20_000;

/// Commits of [`large`] behind the first.
const N_EDITS: usize = 500;

/// [`N_COMMITS`] commits on `main`, as many branches `small/<n>` of one commit each on top, and `hot`.
///
/// # Errors
/// When git fails or the disk is full; so for each function here.
pub(crate) fn small(path: &Path) -> Result<()> {
    import(path, small_stream)
}

/// [`small`] with [`N_REFS`] more refs, all packed.
pub(crate) fn many_refs(path: &Path) -> Result<()> {
    import(path, |out| {
        small_stream(out)?;
        for n in 0..N_REFS {
            write!(out, "reset refs/bench/{}/{n}\nfrom :1\n\n", n % N_GROUPS)?;
        }
        Ok(())
    })
}

/// One commit of [`N_SOURCES`] Rust files, about 400 kB: what the measured pushes are pushed to.
pub(crate) fn sources(path: &Path) -> Result<()> {
    import(path, sources_stream)
}

/// [`sources`] with what is pushed: branches `files/<n>` and `commits/<n>`.
pub(crate) fn pushes(path: &Path) -> Result<()> {
    import(path, |out| {
        sources_stream(out)?;
        for n in 1..=N_SHORT_PUSHES {
            commit(out, &format!("files/{n}"), n, Some(1))?;
            for file in 0..N_FILES {
                write_source(out, file, &[(0, n)])?;
            }
        }
        for n in 1..=N_LONG_PUSHES {
            write_long_push(out, n)?;
        }
        Ok(())
    })
}

/// A history of about `n_megabytes` in its one pack, with a bitmap: what is cloned.
pub(crate) fn large(path: &Path, n_megabytes: usize) -> Result<()> {
    let n_files = n_megabytes * 2_000_000 / LARGE_FILE;
    import(path, |out| {
        let mut random = fastrand::Rng::with_seed(1);
        commit(out, "main", 1, None)?;
        for file in 0..n_files {
            write_file(out, &large_path(file), &random_text(&mut random))?;
        }
        for edit in 2..=N_EDITS {
            commit(out, "main", edit, None)?;
            let file = random.usize(0..n_files);
            write_file(out, &large_path(file), &format!("edit {edit}\n"))?;
        }
        Ok(())
    })?;
    // The objects have nothing in common, so looking for deltas longer would find none.
    process::git(path, ["repack", "-a", "-d", "-q", "--window=2", "--write-bitmap-index"])?;
    Ok(())
}

/// Makes the bare repository `path` of what `write` streams to `git fast-import`.
fn import(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send) -> Result<()> {
    std::fs::create_dir_all(path)?;
    process::git(path, ["init", "--bare", "--quiet", "--initial-branch=main", "--template="])?;
    // Maintenance would run beside the measured requests, outside the tree of processes whose time is counted.
    for (key, value) in
        [("gc.auto", "0"), ("receive.autogc", "false"), ("maintenance.auto", "false")]
    {
        process::git(path, ["config", key, value])?;
    }
    process::git_fed(path, ["fast-import", "--quiet", "--done"], |out| {
        write(out)?;
        out.write_all(b"done\n")
    })?;
    process::git(path, ["pack-refs", "--all"])?;
    Ok(())
}

fn small_stream(out: &mut dyn Write) -> io::Result<()> {
    for n in 1..=N_COMMITS {
        commit(out, "main", n, None)?;
        write_source(out, 0, &[(0, n)])?;
        write_source(out, n, &[])?;
    }
    for n in 1..=N_COMMITS {
        commit(out, &format!("small/{n}"), N_COMMITS + n, Some(N_COMMITS))?;
        write_source(out, n, &[(1, n)])?;
    }
    write!(out, "reset refs/heads/hot\nfrom :1\n\n")
}

fn sources_stream(out: &mut dyn Write) -> io::Result<()> {
    commit(out, "main", 1, None)?;
    (0..N_SOURCES).try_for_each(|file| write_source(out, file, &[]))
}

/// [`N_PUSHED`] commits, each with another body for one function.
fn write_long_push(out: &mut dyn Write, n: usize) -> io::Result<()> {
    let branch = format!("commits/{n}");
    for step in 0..N_PUSHED {
        let mark = 1_000 + n * N_PUSHED + step;
        commit(out, &branch, mark, (step == 0).then_some(1))?;
        write_source(out, step % N_SOURCES, &[(step / N_SOURCES, mark)])?;
    }
    Ok(())
}

/// A commit on `branch`; without `from` it follows what the branch holds. Its number is its mark.
fn commit(out: &mut dyn Write, branch: &str, n: usize, from: Option<usize>) -> io::Result<()> {
    let (date, message) = (1_700_000_000 + n * 60, format!("Step {n}\n"));
    write!(out, "commit refs/heads/{branch}\nmark :{n}\n")?;
    writeln!(out, "committer Ada Example <ada@example.com> {date} +0000")?;
    write!(out, "data {}\n{message}\n", message.len())?;
    from.map_or(Ok(()), |from| writeln!(out, "from :{from}"))
}

/// A Rust file of [`N_FUNCTIONS`] functions; `edits` are the numbers of functions with what they return instead.
fn write_source(out: &mut dyn Write, file: usize, edits: &[(usize, usize)]) -> io::Result<()> {
    let mut text = format!("//! Module {file}.\n");
    for function in 0..N_FUNCTIONS {
        let edit = edits.iter().find(|(edited, _)| *edited == function);
        let value = edit.map_or(function, |(_, value)| *value);
        text.push_str(&format!(
            "\n/// Adds {function}.\npub fn add_{file}_{function}(x: u64) -> u64 {{\n    x + {value}\n}}\n"
        ));
    }
    write_file(out, &format!("src/m{:02}/f{file}.rs", file % 10), &text)
}

fn write_file(out: &mut dyn Write, path: &str, text: &str) -> io::Result<()> {
    write!(out, "M 100644 inline {path}\ndata {}\n{text}\n", text.len())
}

fn large_path(file: usize) -> String {
    format!("data/{:02}/{file}.txt", file % 100)
}

fn random_text(random: &mut fastrand::Rng) -> String {
    let mut text = String::with_capacity(LARGE_FILE + 80);
    while text.len() < LARGE_FILE {
        text.push_str(&format!("{:016x}{:016x}\n", random.u64(..), random.u64(..)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_has_the_refs_and_commits_that_are_measured() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("refs.git");
        many_refs(&path).unwrap();
        let count = |pattern| {
            let refs = process::git(&path, ["for-each-ref", pattern]).unwrap();
            refs.lines().count()
        };
        assert_eq!(count("refs/bench/42/"), N_REFS / N_GROUPS);
        assert_eq!(count("refs/heads/small/"), N_COMMITS);
        let commits = process::git(&path, ["rev-list", "--count", "main"]).unwrap();
        assert_eq!(commits, N_COMMITS.to_string());
    }
}
