//! How much slower taking files apart is than the bare parse of the same bytes, in one run, in processor time.
//!
//! Use: `cargo bench -p zit-footprint -- <folder>…` prints one line a language: how fast both versions of each file are
//! parsed, and how many times as long it takes to compare them: `cold` with nothing known, `cached` with the old version
//! known. The goals are 1.4 and 0.9. `added` is the comparison of the new version with none, to the parse of that one alone.
//! The new version has a name changed a third into the file and another at two thirds.
//!
//! Reads every source below the folders; those that stay at file level are counted and not measured. Never judges
//! correctness.

#![allow(clippy::print_stdout, reason = "a bench's result goes to stdout")]

use std::{
    collections::BTreeMap,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use zit_footprint::{Carved, FileKind, Language, MAX_FILE, Parsed, Side, compare, compare_carved};
use zit_model::Resource;

/// How often everything is measured; the least counts.
const ROUNDS: usize = 5;

/// Two versions of a file, and what is known of the old one.
struct File {
    language: Language,
    path: Resource,
    old: Vec<u8>,
    new: Vec<u8>,
    known: (Carved, Option<Parsed>),
}

fn main() {
    let folders: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from).collect();
    let mut sources = BTreeMap::new();
    for folder in &folders {
        gather(folder, &mut sources);
    }
    for (language, sources) in sources {
        let n_sources = sources.len();
        let files: Vec<File> =
            sources.into_iter().filter_map(|(path, old)| File::new(language, path, old)).collect();
        report(language, &files, n_sources - files.len());
    }
}

fn report(language: Language, files: &[File], n_whole: usize) {
    let works: [fn(&File); 5] = [
        |file| parse(file.language, &[&file.new]),
        |file| drop(black_box(compare(&file.path, None, Some(side(&file.new))))),
        |file| parse(file.language, &[&file.old, &file.new]),
        |file| drop(black_box(compare(&file.path, Some(side(&file.old)), Some(side(&file.new))))),
        File::compare_with_known,
    ];
    let mut least = [f64::MAX; 5];
    for _ in 0..ROUNDS {
        for (least, work) in least.iter_mut().zip(works) {
            *least = least.min(time(files, work).as_secs_f64());
        }
    }
    let [parse_new, added, parse_both, cold, cached] = least;
    let bytes: usize = files.iter().map(|file| file.old.len() + file.new.len()).sum();
    let megabytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6;
    println!(
        "{:12} {megabytes:6.1} MB in {:4} files  parse {:5.1} MB/s  cold {:.2}  cached {:.2}  added {:.2}  \
         {n_whole} at file level",
        language.as_str(),
        files.len(),
        megabytes / parse_both,
        cold / parse_both,
        cached / parse_both,
        added / parse_new,
    );
}

fn gather(path: &Path, sources: &mut BTreeMap<Language, Vec<(Resource, Vec<u8>)>>) {
    if let Ok(entries) = fs::read_dir(path) {
        entries.flatten().for_each(|entry| gather(&entry.path(), sources));
        return;
    }
    let name = path.to_string_lossy().trim_start_matches('/').to_owned();
    let (Some(language), Some(resource)) = (Language::of_path(&name), Resource::file(&name)) else {
        return;
    };
    match fs::read(path) {
        Ok(bytes) if bytes.len() <= MAX_FILE && grammar(language).is_some() => {
            sources.entry(language).or_default().push((resource, bytes));
        }
        Ok(_) | Err(_) => {}
    }
}

impl File {
    /// A file and a new version of it; `None` if one of them is not taken apart.
    fn new(language: Language, path: Resource, old: Vec<u8>) -> Option<Self> {
        let mut new = old.clone();
        for third in [2, 1] {
            new = with_another_name(&path, &new, old.len() / 3 * third).unwrap_or(new);
        }
        let is_apart = compare(&path, Some(side(&old)), Some(side(&new))).fallback.is_none();
        let known = Carved::after(language, side(&old), None)?;
        (is_apart && old != new).then_some(Self { language, path, old, new, known })
    }

    fn compare_with_known(&self) {
        let (old, parsed) = &self.known;
        let new = Carved::after(self.language, side(&self.new), parsed.as_ref());
        let new = new.as_ref().map(|(new, _)| new);
        black_box(compare_carved(&self.path, Some(old), new));
    }
}

/// The text with a name made longer at the first place after `from` where it still parses.
fn with_another_name(path: &Resource, text: &[u8], from: usize) -> Option<Vec<u8>> {
    let is_part = |at: usize| text.get(at).is_some_and(|b| b.is_ascii_lowercase() || *b == b'_');
    let ends =
        (from..text.len()).filter(|at| *at > 3 && (at - 4..*at).all(is_part) && !is_part(*at));
    ends.take(20).find_map(|end| {
        let mut new = text.to_vec();
        new.splice(end..end, *b"_other");
        let footprint = compare(path, Some(side(text)), Some(side(&new)));
        (footprint.fallback.is_none() && !footprint.writes.is_empty()).then_some(new)
    })
}

fn side(bytes: &[u8]) -> Side<'_> {
    Side { kind: FileKind::Regular, bytes }
}

/// Processor time of all threads.
fn time(files: &[File], work: fn(&File)) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let start = now();
    files.iter().for_each(work);
    now().saturating_sub(start)
}

fn grammar(language: Language) -> Option<tree_sitter::Language> {
    Some(match language {
        Language::Rust => tree_sitter_rust::LANGUAGE.into(),
        Language::Python => tree_sitter_python::LANGUAGE.into(),
        Language::Go => tree_sitter_go::LANGUAGE.into(),
        Language::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        Language::Tsx | Language::JavaScript => tree_sitter_typescript::LANGUAGE_TSX.into(),
        Language::Markdown
        | Language::Toml
        | Language::Json
        | Language::Yaml
        | Language::Ini
        | Language::GoMod => return None,
    })
}

fn parse(language: Language, versions: &[&[u8]]) {
    let Some(grammar) = grammar(language) else { return };
    for bytes in versions {
        let mut parser = tree_sitter::Parser::new();
        if parser.set_language(&grammar).is_ok() {
            black_box(parser.parse(bytes, None));
        }
    }
}
