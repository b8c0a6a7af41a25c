//! How much slower a cold comparison is than the bare parse of the same bytes, in one run.
//!
//! Use: `cargo bench -p zit-footprint -- <folder>…` prints one line a language: speeds, their ratio, and how many
//! files could not be taken apart. The goal is a ratio of at most 1.4.
//! Reads every source below the folders; never judges correctness.

#![allow(clippy::print_stdout, reason = "a bench's result goes to stdout")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use zit_footprint::{FileKind, Language, MAX_FILE, Side, compare};
use zit_model::Resource;

fn main() {
    let folders: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).map(PathBuf::from).collect();
    let mut sources: BTreeMap<&str, Vec<(Resource, Vec<u8>)>> = BTreeMap::new();
    for folder in &folders {
        gather(folder, &mut sources);
    }
    for (language, files) in &sources {
        let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut best = [Duration::MAX; 2];
        for _ in 0..3 {
            best[0] = best[0].min(time(files, |_, bytes| parse(language, bytes)));
            best[1] = best[1].min(time(files, |path, bytes| {
                let side = Side { kind: FileKind::Regular, bytes };
                std::hint::black_box(compare(path, None, Some(side)));
            }));
        }
        let [bare, cold] = best.map(|time| time.as_secs_f64());
        let megabytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6;
        let whole = files.iter().filter(|(path, bytes)| is_whole(path, bytes)).count();
        println!(
            "{language:12} {megabytes:7.1} MB  parse {:5.1} MB/s  compare {:5.1} MB/s  ratio {:.2}  \
             {whole} of {} at file level",
            megabytes / bare,
            megabytes / cold,
            cold / bare,
            files.len()
        );
    }
}

fn gather(path: &Path, sources: &mut BTreeMap<&str, Vec<(Resource, Vec<u8>)>>) {
    if let Ok(entries) = fs::read_dir(path) {
        entries.flatten().for_each(|entry| gather(&entry.path(), sources));
        return;
    }
    let name = path.to_string_lossy().trim_start_matches('/').to_owned();
    let (Some(language), Some(resource)) = (Language::of_path(&name), Resource::file(&name)) else {
        return;
    };
    match fs::read(path) {
        Ok(bytes) if bytes.len() <= MAX_FILE && language != Language::Markdown => {
            sources.entry(language.as_str()).or_default().push((resource, bytes));
        }
        Ok(_) | Err(_) => {}
    }
}

fn time(files: &[(Resource, Vec<u8>)], work: impl Fn(&Resource, &[u8])) -> Duration {
    let start = Instant::now();
    for (path, bytes) in files {
        work(path, bytes);
    }
    start.elapsed()
}

fn is_whole(path: &Resource, bytes: &[u8]) -> bool {
    let side = Side { kind: FileKind::Regular, bytes };
    let fallback = compare(path, None, Some(side)).fallback;
    if let Some(fallback) = fallback {
        eprintln!("{path}: {}", fallback.as_str());
    }
    fallback.is_some()
}

fn parse(language: &str, bytes: &[u8]) {
    let grammar = match language {
        "rust" => tree_sitter_rust::LANGUAGE,
        "python" => tree_sitter_python::LANGUAGE,
        "go" => tree_sitter_go::LANGUAGE,
        "typescript" => tree_sitter_typescript::LANGUAGE_TYPESCRIPT,
        _ => tree_sitter_typescript::LANGUAGE_TSX,
    };
    let mut parser = tree_sitter::Parser::new();
    if parser.set_language(&grammar.into()).is_ok() {
        std::hint::black_box(parser.parse(bytes, None));
    }
}
