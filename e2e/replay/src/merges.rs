//! Judges merges that were good: how many would have been refused, why, and how long that takes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use zit_footprint::{Because, Conflict, Footprint, Prose, Weight, conflicts};
use zit_referee::footprints::Footprinter;
use zit_store::{Access, Objects, Store};

use crate::git::{self, CleanMerge};

/// Judges the merges and prints what was found.
pub(crate) fn run(repository: &Path, limit: usize, examples: usize) -> anyhow::Result<()> {
    let merges = git::merges(repository, limit)?;
    let store = Store::open(&git::git_dir(repository)?, Access::ReadOnly)?;
    let objects = store.objects()?;
    let footprinter = Footprinter::default();
    let mut tally = Tally::default();
    for merge in &merges.clean {
        let start = Instant::now();
        match judge(&footprinter, &objects, merge) {
            Ok(refusals) => tally.add(merge, &refusals, start.elapsed(), examples),
            // Copies of repositories may lack their largest files.
            Err(error) => {
                let [one, two] = merge.parents;
                eprintln!("{} + {} is not judged: {error:#}", one.short(), two.short());
            }
        }
    }
    tally.print(merges.two_sided);
    Ok(())
}

fn judge(
    footprinter: &Footprinter,
    objects: &Objects,
    merge: &CleanMerge,
) -> anyhow::Result<Vec<Conflict>> {
    let [one, two] = merge.parents;
    let between = |tip| -> anyhow::Result<_> {
        let footprint = footprinter.between(objects, Some(merge.base), tip)?;
        // What authors declare says how they work, not how good the judgement is.
        Ok(Footprint { reads: BTreeSet::default(), ..(*footprint).clone() })
    };
    let (mine, theirs) = (between(two)?, between(one)?);
    let around = footprinter.around(objects, Some(merge.base)).with_sides(two, one);
    let found = conflicts(&mine, &theirs, &around);
    around.finish()?;
    let refuses = |c: &Conflict| c.weight == Weight::Refuses && c.prose() == Prose::Stands;
    Ok(found.into_iter().filter(refuses).collect())
}

/// What refusals there were.
#[derive(Default)]
struct Tally {
    took: Vec<Duration>,
    refused: usize,
    /// Merges refused for nothing but this.
    alone: BTreeMap<String, usize>,
    causes: BTreeMap<String, usize>,
    names: BTreeMap<String, usize>,
    examples: Vec<String>,
}

impl Tally {
    fn add(&mut self, merge: &CleanMerge, refusals: &[Conflict], took: Duration, examples: usize) {
        self.took.push(took);
        if refusals.is_empty() {
            return;
        }
        self.refused += 1;
        let mut causes: Vec<String> = refusals.iter().map(cause).collect();
        causes.sort();
        causes.dedup();
        if let [only] = &causes[..] {
            *self.alone.entry(only.clone()).or_default() += 1;
        }
        for cause in causes {
            *self.causes.entry(cause).or_default() += 1;
        }
        for name in refusals.iter().filter_map(Conflict::name) {
            *self.names.entry(name.to_owned()).or_default() += 1;
        }
        if self.examples.len() < examples {
            let [one, two] = merge.parents;
            let mut text = format!("{} + {}\n", one.short(), two.short());
            for Conflict { kind, mine, theirs, because, .. } in refusals.iter().take(5) {
                text.push_str(&format!("  {} {mine} | {theirs}: {because:?}\n", kind.as_str()));
            }
            self.examples.push(text);
        }
    }

    fn print(&mut self, two_sided: usize) {
        let clean = self.took.len();
        self.took.sort_unstable();
        let median = self.took.get(clean / 2).copied().unwrap_or_default();
        let all: Duration = self.took.iter().sum();
        let number = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
        let share = |n: usize| 100.0 * number(n) / number(clean.max(1));
        println!("{two_sided} two-sided merges, {clean} of them made by git as recorded");
        println!("{} refused: {:.1} %", self.refused, share(self.refused));
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let mean = ms(all) / number(clean.max(1));
        println!("{:.1} ms a merge, half of them within {:.1} ms", mean, ms(median));
        let mut causes: Vec<_> = self.causes.iter().collect();
        causes.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        println!("\ncause, merges, of them for nothing else");
        for (cause, n) in causes.iter().take(30) {
            let alone = self.alone.get(*cause).copied().unwrap_or_default();
            println!("{n:5} {alone:5}  {cause}");
        }
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        println!("\nnames");
        for (name, n) in names.iter().take(20) {
            println!("{n:5}  {name}");
        }
        println!("\nexamples");
        self.examples.iter().for_each(|example| println!("{example}"));
    }
}

/// What a refusal is about, in a few words.
fn cause(conflict: &Conflict) -> String {
    let part = |of: &zit_model::Resource| match of.part() {
        zit_model::resource::Part::File => "file",
        zit_model::resource::Part::Module => "code outside symbols",
        zit_model::resource::Part::Imports => "imports",
        zit_model::resource::Part::Unit(_) => "unit",
    };
    let extension = conflict.theirs.path().rsplit('.').next().unwrap_or_default();
    match &conflict.because {
        Because::Overlap => {
            format!(
                "both write: {} | {} ({extension})",
                part(&conflict.mine),
                part(&conflict.theirs)
            )
        }
        Because::Reference { why, reach, .. } => {
            format!("{:?}: {} ({extension})", reach, why.as_str())
        }
        other => format!("{other:?} ({extension})"),
    }
}
