//! Breaks made from real sources: one side alters a declaration, the other adds a use of it in another file, and git
//! merges the two without a word. Each pair must be refused, whichever side lands first.
//!
//! An alteration and a use are text; nothing here asks the judgement whether a pair is worth making. A pair whose files
//! no longer parse is not made.

mod alter;
mod uses;

use std::collections::BTreeMap;
use std::path::Path;

use zit_footprint::{
    Carved, Declaration, FileKind, Footprint, Language, Side, Weight, compare, conflicts,
};
use zit_model::{Oid, Resource};
use zit_referee::footprints::Footprinter;
use zit_store::{Access, Blob, Objects, Store};

use self::alter::Alteration;
use crate::git;

/// The largest file that breaks are made from, in bytes.
const MAX_FILE: u64 = 256 * 1024;

/// How many pairs of one language and alteration are made from one file, so that many files have a share.
const PER_FILE: usize = 2;

/// A source file of the repository.
pub(crate) struct Source {
    pub(crate) path: Resource,
    pub(crate) language: Language,
    pub(crate) text: String,
}

/// Makes up to `limit` pairs of each language and alteration, judges them, and prints what was missed.
pub(crate) fn run(repository: &Path, limit: usize) -> anyhow::Result<bool> {
    let store = Store::open(&git::git_dir(repository)?, Access::ReadOnly)?;
    let objects = store.objects()?;
    let head = git::head(repository)?;
    let sources = sources(&objects, head)?;
    let footprinter = Footprinter::default();
    let around = footprinter.around(&objects, Some(head));
    let mut tally: BTreeMap<(&str, &str, &str), (usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    for source in &sources {
        let side = Side { kind: FileKind::Regular, bytes: source.text.as_bytes() };
        let Some(carved) = Carved::new(source.language, side) else { continue };
        let mut made: BTreeMap<&str, usize> = BTreeMap::new();
        for declaration in carved.declarations() {
            for alteration in Alteration::ALL {
                let key = (source.language.as_str(), what(&declaration), alteration.as_str());
                let of_file = made.entry(alteration.as_str()).or_default();
                if *of_file >= PER_FILE || tally.get(&key).is_some_and(|n| n.0 >= limit) {
                    continue;
                }
                let Some(pair) = Pair::make(source, &declaration, alteration, &sources) else {
                    continue;
                };
                *of_file += 1;
                let (n, bad) = tally.entry(key).or_default();
                *n += 1;
                if !pair.is_refused(&around) {
                    *bad += 1;
                    missed.push(format!("{} {}: {}\n{}", key.1, key.2, pair.about, pair.shown()));
                }
            }
        }
    }
    around.finish()?;
    print(&tally, &missed);
    Ok(missed.is_empty())
}

fn what(declaration: &Declaration<'_>) -> &'static str {
    use zit_footprint::Form;
    match (declaration.form, declaration.container) {
        (Form::Function, Some(_)) => "method",
        (Form::Function, None) => "function",
        (Form::Record, _) => "record",
        (Form::Variants, _) => "variants",
        (Form::Interface, _) => "interface",
        (Form::Value, _) => "value",
        (Form::Alias, _) => "alias",
        (Form::Opaque, _) => "other",
    }
}

fn sources(objects: &Objects, head: Oid) -> anyhow::Result<Vec<Source>> {
    let tree = objects.commit(head)?.tree;
    let mut sources = Vec::new();
    for change in objects.tree_changes(None, tree)? {
        let path = String::from_utf8_lossy(&change.path).into_owned();
        let (Some(language), Some(entry)) = (Language::of_path(&path), change.new) else {
            continue;
        };
        let Some(path) = Resource::file(&path) else { continue };
        if let Blob::Bytes(bytes) = objects.blob(entry.oid, MAX_FILE)?
            && let Ok(text) = String::from_utf8(bytes)
        {
            sources.push(Source { path, language, text });
        }
    }
    Ok(sources)
}

/// Two changes of one base that git merges and that do not fit.
struct Pair {
    about: String,
    /// Who uses: a file and its text after.
    mine: Vec<Changed>,
    /// Who alters.
    theirs: Vec<Changed>,
}

/// A file that a side changes.
struct Changed {
    path: Resource,
    old: Option<String>,
    new: String,
}

impl Pair {
    fn make(
        source: &Source,
        declaration: &Declaration<'_>,
        alteration: Alteration,
        sources: &[Source],
    ) -> Option<Self> {
        let altered = alteration.apply(source, declaration)?;
        let (user, text) = uses::of(source, declaration, altered.member.as_deref(), sources)?;
        let changed = |path: &Resource, old: Option<&str>, new: String| Changed {
            path: path.clone(),
            old: old.map(str::to_owned),
            new,
        };
        let mut theirs = vec![changed(&source.path, Some(&source.text), altered.text)];
        theirs.extend(altered.beside.map(|(path, text)| changed(&path, None, text)));
        let mine = vec![changed(&user.path, Some(&user.text), text)];
        let about = format!("{}#{}", source.path, declaration.unit);
        let pair = Self { about, mine, theirs };
        let whole = |changed: &Changed| changed.compare().fallback.is_none();
        (pair.mine.iter().all(whole) && pair.theirs.iter().all(whole)).then_some(pair)
    }

    fn is_refused(&self, around: &dyn zit_footprint::Surroundings) -> bool {
        let footprint =
            |files: &[Changed]| Footprint::from_files(files.iter().map(Changed::compare));
        let (mine, theirs) = (footprint(&self.mine), footprint(&self.theirs));
        let refuses = |a: &Footprint, b: &Footprint| {
            conflicts(a, b, around).iter().any(|conflict| conflict.weight == Weight::Refuses)
        };
        refuses(&mine, &theirs) && refuses(&theirs, &mine)
    }

    fn shown(&self) -> String {
        let last = |text: &str| text.lines().rev().take(4).map(str::to_owned).collect::<Vec<_>>();
        let mut shown = String::new();
        for changed in &self.mine {
            let mut lines = last(&changed.new);
            lines.reverse();
            shown.push_str(&format!("    {}: {}\n", changed.path, lines.join("\n        ")));
        }
        shown
    }
}

impl Changed {
    fn compare(&self) -> zit_footprint::FileFootprint {
        compare(&self.path, self.old.as_deref().map(side), Some(side(&self.new)))
    }
}

fn side(text: &str) -> Side<'_> {
    Side { kind: FileKind::Regular, bytes: text.as_bytes() }
}

fn print(tally: &BTreeMap<(&str, &str, &str), (usize, usize)>, missed: &[String]) {
    println!("{:12} {:10} {:20} {:>6} {:>7}", "language", "what", "alteration", "pairs", "missed");
    for ((language, what, alteration), (n, bad)) in tally {
        println!("{language:12} {what:10} {alteration:20} {n:6} {bad:7}");
    }
    let n: usize = tally.values().map(|n| n.0).sum();
    println!("\n{n} pairs, {} missed", missed.len());
    missed.iter().take(40).for_each(|text| println!("{text}"));
}
