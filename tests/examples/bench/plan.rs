//! How much is measured: in full, or the little that shows that every row works.

use std::path::PathBuf;

/// Where and how much.
pub struct Plan {
    /// Where state directories are made: on a file system that keeps what was synced.
    pub below: PathBuf,
    /// How often both sides of a row are measured, where it does not take long.
    pub rounds: usize,
    pub counts: Counts,
}

impl Plan {
    /// How often the rows are measured that take long.
    pub fn few_rounds(&self) -> usize {
        self.rounds.div_ceil(3)
    }

    /// How often which rows are measured, in words.
    pub fn rounds(&self) -> String {
        format!("{} rounds; of `nested` and `queue` {}, of `memory` and `journal` one", self.rounds, self.few_rounds())
    }
}

/// How many of each.
pub struct Counts {
    /// Workers of a storm.
    pub storm: usize,
    /// Calls in a row of one client, and of each of many.
    pub calls: usize,
    pub clients: usize,
    pub calls_each: usize,
    /// Processes that follow each other in one slot.
    pub slots: usize,
    pub completions: usize,
    pub parents: usize,
    pub nested: usize,
    /// Three depths of the queue, and how many run out of it.
    pub queues: [usize; 3],
    pub out_of_the_queue: usize,
    pub parked: usize,
    pub journalled: usize,
    pub commands: usize,
    pub starts: usize,
    /// Workers in a journal that have ended, beside those that are queued.
    pub ended: usize,
    pub idle: usize,
    pub followers: usize,
    pub storm_in_company: usize,
    pub live: usize,
}

impl Counts {
    pub const FULL: Self = Self {
        storm: 10_000,
        calls: 500,
        clients: 64,
        calls_each: 32,
        slots: 400,
        completions: 200,
        parents: 100,
        nested: 10_000,
        queues: [1_000, 10_000, 100_000],
        out_of_the_queue: 800,
        parked: 10_000,
        journalled: 1_000,
        commands: 100,
        starts: 10,
        ended: 1_000_000,
        idle: 200,
        followers: 20,
        storm_in_company: 2_000,
        live: 1_000,
    };

    pub const QUICK: Self = Self {
        storm: 60,
        calls: 40,
        clients: 8,
        calls_each: 4,
        slots: 12,
        completions: 5,
        parents: 4,
        nested: 15,
        queues: [40, 80, 120],
        out_of_the_queue: 20,
        parked: 10,
        journalled: 40,
        commands: 3,
        starts: 2,
        ended: 2_000,
        idle: 5,
        followers: 2,
        storm_in_company: 40,
        live: 10,
    };
}
