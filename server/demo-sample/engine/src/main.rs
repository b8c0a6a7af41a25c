//! The engine: reads the configuration, then one event a line from standard input.
//!
//! `name, metres, hour` announces a boat, `leave BERTH` frees a berth, and `late HOUR` lists who should have left.

mod allot;
mod config;

use std::io::BufRead;

use allot::{Boat, Pier, Turned};

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "moorings.conf".to_owned());
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let config = match config::parse_config(&text) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("{path}: {error}");
            std::process::exit(2);
        }
    };
    println!("{}", config::describe(&config));
    let mut pier = Pier::new(&config);
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        println!("{}", react(&mut pier, &line));
    }
}

fn react(pier: &mut Pier, line: &str) -> String {
    if let Some(number) = number_after(line, "leave ") {
        return match pier.leave(number) {
            Some(boat) => format!("{}: left berth {number}", boat.name),
            None => format!("berth {number} is free"),
        };
    }
    if let Some(hour) = number_after(line, "late ") {
        let late: Vec<_> =
            pier.overdue(hour).iter().map(|berth| berth.number.to_string()).collect();
        return format!("late: {}", late.join(" "));
    }
    match announced(line) {
        Some(boat) => answer(pier, boat),
        None => "say: name, metres, hour".to_owned(),
    }
}

fn number_after<N: std::str::FromStr>(line: &str, word: &str) -> Option<N> {
    line.strip_prefix(word)?.trim().parse().ok()
}

/// Reads `name, metres, hour`.
fn announced(line: &str) -> Option<Boat> {
    let mut parts = line.split(',').map(str::trim);
    let name = parts.next()?.to_owned();
    let length_m = parts.next()?.parse().ok()?;
    let leaves_at = parts.next()?.parse().ok()?;
    Some(Boat { name, length_m, leaves_at })
}

fn answer(pier: &mut Pier, boat: Boat) -> String {
    let name = boat.name.clone();
    match pier.allot(boat) {
        Ok(number) => format!("{name}: berth {number}"),
        Err(Turned::TooLong) => format!("{name}: no berth is long enough"),
        Err(Turned::Full) => format!("{name}: every berth that would do is taken"),
    }
}
