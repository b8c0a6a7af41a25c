//! Every decoder against inputs at random, for a while.
//!
//! `ZIT_FUZZ_SECONDS` says how long each target takes; the default is 2. The random numbers begin anew with each run and
//! a find names their seed; `ZIT_FUZZ_RANDOM` begins with that one again.

use std::time::Duration;

use zit_fuzz::{TARGETS, run};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[track_caller]
fn fuzz(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("it is in the table");
    let budget = Duration::from_secs(number("ZIT_FUZZ_SECONDS").unwrap_or(2));
    let random = number("ZIT_FUZZ_RANDOM").unwrap_or_else(|| fastrand::u64(..));
    let n_inputs = run(*target, budget, random);
    eprintln!("{name}: {n_inputs} inputs");
    assert!(n_inputs > 0, "{name}: not one input in {budget:?}");
}

macro_rules! tests {
    ($($test:ident: $name:literal;)*) => {
        $(#[test] fn $test() { fuzz($name); })*

        #[test]
        fn every_target_has_its_test() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$($name),*]);
        }
    };
}

tests! {
    no_bytes_break_pkt_lines: "pkt-line";
    no_bytes_break_push_requests: "push request";
    no_bytes_break_lists_of_refs: "ls-refs";
    no_bytes_break_fetches: "fetch";
    no_bytes_break_protocol_versions: "protocol version";
    no_bytes_break_refnames: "refname";
    no_bytes_break_resources: "resource";
    no_bytes_break_push_options: "push options";
    no_bytes_break_documents: "documents";
    no_bytes_break_settings: "settings";
    no_bytes_break_trailers: "trailers";
    no_bytes_break_packs: "pack";
    no_bytes_break_journals: "journal";
    no_bytes_break_rust: "rust";
    no_bytes_break_go: "go";
    no_bytes_break_python: "python";
    no_bytes_break_typescript: "typescript";
    no_bytes_break_markdown: "markdown";
}
