//! The contract of `../README.md` with gix, as far as gix goes: it clones, fetches and lists, and cannot push.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, anyhow, bail};
use gix::progress::Discard;
use gix::remote::ref_map::Options;
use gix::remote::{Direction, fetch::Tags};

/// Nobody interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["read", dir, url, rounds] => read(Path::new(dir), url, rounds.parse()?),
        ["refs", dir] => refs(&gix::open(dir)?),
        _ => bail!("not a verb of the contract that gix can do: {args:?}"),
    }
}

/// Clones, and fetches as often as the others push.
fn read(dir: &Path, url: &str, rounds: u32) -> anyhow::Result<()> {
    let (repository, _) = gix::prepare_clone(url, dir)?.fetch_only(Discard, &NEVER)?;
    for _ in 0..rounds {
        fetch(&repository)?;
    }
    Ok(())
}

/// Fetches all branches and tags, and gives those of the clone's refs that the server has.
fn fetch(repository: &gix::Repository) -> anyhow::Result<BTreeSet<String>> {
    let remote = repository.find_remote("origin")?.with_fetch_tags(Tags::All);
    let connection = remote.connect(Direction::Fetch)?;
    let fetched =
        connection.prepare_fetch(Discard, Options::default())?.receive(Discard, &NEVER)?;
    let names = fetched.ref_map.mappings.into_iter().filter_map(|mapping| mapping.local);
    Ok(names.map(|name| name.to_string()).collect())
}

/// Fetches, forgets what is gone, and prints the rest. gix itself forgets nothing in a fetch.
fn refs(repository: &gix::Repository) -> anyhow::Result<()> {
    let there = fetch(repository)?;
    let platform = repository.references()?;
    for prefix in ["refs/remotes/origin/", "refs/tags/"] {
        for reference in platform.prefixed(prefix)? {
            let reference = reference.map_err(|error| anyhow!(error))?;
            let name = reference.name().as_bstr().to_string();
            if name.ends_with("/HEAD") {
                continue;
            }
            if !there.contains(&name) {
                reference.delete()?;
                continue;
            }
            let oid = reference.try_id().with_context(|| format!("{name} names no object"))?;
            println!("{oid} {}", name.replace("refs/remotes/origin/", "refs/heads/"));
        }
    }
    Ok(())
}
