//! The program that libFuzzer drives. Its arguments are libFuzzer's; the environment says what it does:
//!
//! - `ZIT_FUZZ_TARGET`: the name of the target. Without one, the names of all are printed.
//! - `ZIT_FUZZ_SEEDS`: a folder into which the target's seeds are written first.
//!
//! A panic ends it, and libFuzzer keeps the input.
#![no_main]

use std::io::Write as _;
use std::sync::OnceLock;
use std::{env, fs, process};

use zit_fuzz::{TARGETS, Target};

static TARGET: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: begin(),
    |bytes: &[u8]| {
        let target = TARGET.get().expect("libFuzzer calls the other one first");
        (target.decode)(bytes);
    }
);

/// Chooses the target.
fn begin() {
    let Ok(name) = env::var("ZIT_FUZZ_TARGET") else {
        let names: String = TARGETS.iter().map(|target| format!("{}\n", target.name)).collect();
        let printed = std::io::stdout().write_all(names.as_bytes());
        process::exit(i32::from(printed.is_err()));
    };
    let target = Target::named(&name).expect("ZIT_FUZZ_TARGET names a target");
    if let Some(folder) = env::var_os("ZIT_FUZZ_SEEDS") {
        for (n, seed) in (target.seeds)().into_iter().enumerate() {
            let path = std::path::Path::new(&folder).join(format!("seed-{n}"));
            fs::write(path, seed).expect("ZIT_FUZZ_SEEDS is a folder");
        }
    }
    TARGET.get_or_init(|| target);
}
