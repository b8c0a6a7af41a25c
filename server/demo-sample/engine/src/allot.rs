//! Finds each boat a berth: the shortest free one that is long enough.

use crate::config::Config;

/// A boat as its skipper announced it.
#[derive(Clone, Debug)]
pub struct Boat {
    /// The name on its stern.
    pub name: String,
    /// Its length in metres.
    pub length_m: u32,
    /// The hour at which it leaves.
    pub leaves_at: u8,
}

/// One place at the pier.
#[derive(Clone, Debug)]
pub struct Berth {
    /// Its number, as painted on the pier.
    pub number: u32,
    /// The longest boat it takes, in metres.
    pub length_m: u32,
    /// The boat in it.
    pub boat: Option<Boat>,
}

/// Why a boat has no berth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It is longer than every berth.
    TooLong,
    /// All that would do are taken.
    Full,
}

/// The pier: every berth, in the order of their numbers.
pub struct Pier {
    berths: Vec<Berth>,
}

impl Pier {
    /// An empty pier; berths grow longer towards its head.
    pub fn new(config: &Config) -> Self {
        let length_of = |number: u32| {
            let step = config.longest_m.saturating_sub(6) * number / config.berths.max(1);
            6 + step
        };
        let berth = |number| Berth { number, length_m: length_of(number), boat: None };
        Self { berths: (1..=config.berths).map(berth).collect() }
    }

    /// Gives the boat the shortest free berth that takes it.
    pub fn allot(&mut self, boat: Boat) -> Result<u32, Turned> {
        let fits = |berth: &Berth| berth.length_m >= boat.length_m;
        if !self.berths.iter().any(fits) {
            return Err(Turned::TooLong);
        }
        let free = self.berths.iter_mut().filter(|berth| berth.boat.is_none() && fits(berth));
        let berth = free.min_by_key(|berth| berth.length_m).ok_or(Turned::Full)?;
        berth.boat = Some(boat);
        Ok(berth.number)
    }

    /// Frees a berth and says which boat left it.
    pub fn leave(&mut self, number: u32) -> Option<Boat> {
        self.berths.iter_mut().find(|berth| berth.number == number)?.boat.take()
    }

    /// The berths whose boat should have left by now.
    pub fn overdue(&self, hour: u8) -> Vec<&Berth> {
        let late = |boat: &Boat| boat.leaves_at < hour;
        self.berths.iter().filter(|berth| berth.boat.as_ref().is_some_and(late)).collect()
    }
}
