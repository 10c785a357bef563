//! The main test: random trees, random clients, random crashes over the real core, thousands of seeds.
//!
//! `ROOST_SIM_SEEDS=N` sets how many, `ROOST_SIM_SEED=S` runs one and prints what happens. A wide run of a seed does what its run of old
//! did not: waits that are told later, turns that are cut off, cut short or silent, roots that say that they are idle and that move to
//! another window while the old one is open. It is named by a `w` before its seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use roost_tests::sim::ownership::{Pairs, foreign_control};
use roost_tests::sim::run::{Report, run};

const SEEDS: u64 = 3_000;

/// A seed, and whether its run is a wide one.
#[derive(Debug, Clone, Copy)]
struct Seed(u64, bool);

impl std::str::FromStr for Seed {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix('w').map_or_else(|| text.parse().map(|seed| Self(seed, false)), |seed| seed.parse().map(|seed| Self(seed, true)))
    }
}

impl std::fmt::Display for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", if self.1 { "w" } else { "" }, self.0)
    }
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<T> {
    let read = |value: String| value.parse().unwrap_or_else(|_| panic!("{name} cannot be {value}"));
    std::env::var(name).ok().map(read)
}

/// Seeds that failed once are run first, for ever.
fn kept() -> Vec<Seed> {
    include_str!("../seeds.txt")
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim())
        .filter(|line| !line.is_empty())
        .map(|line| line.parse().unwrap_or_else(|_| panic!("tests/seeds.txt: {line} is no seed")))
        .collect()
}

/// A panic of the core (an overflow, an assertion) is a failure like any other.
fn checked(seed: Seed, trace: bool) -> Result<Report, String> {
    catch_unwind(AssertUnwindSafe(|| run(seed.0, seed.1, trace))).unwrap_or_else(|_| Err("it panics".into()))
}

#[test]
fn every_seed_holds() {
    if let Some(seed) = variable::<Seed>("ROOST_SIM_SEED") {
        let report = checked(seed, true);
        println!("{report:?}");
        assert!(report.is_ok(), "{}", report.unwrap_err());
        return;
    }
    let begun = std::time::Instant::now();
    let mut total = Report::default();
    let mut failed = Vec::new();
    let seeds = variable("ROOST_SIM_SEEDS").unwrap_or(SEEDS);
    for seed in kept().into_iter().chain((1..=seeds).flat_map(|seed| [Seed(seed, false), Seed(seed, true)])) {
        match checked(seed, false) {
            Ok(report) => {
                total.steps += report.steps;
                total.workers += report.workers;
                for (what, times) in report.seen {
                    *total.seen.entry(what).or_default() += times;
                }
            }
            Err(why) => failed.push((seed, why)),
        }
        if failed.len() >= 8 {
            break;
        }
    }
    println!("{seeds} seeds twice, {} workers, {} steps in {:?}: {:?}", total.workers, total.steps, begun.elapsed(), total.seen);
    for (seed, why) in &failed {
        println!(
            "seed {seed}: {why}\n  again: ROOST_SIM_SEED={seed} cargo test -p roost-tests --test simulation -- --nocapture\n  keep: echo {seed} >> tests/seeds.txt"
        );
    }
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
}

/// For every caller and every worker of random trees, while they run and at their end: whoever does not own a worker can neither stop,
/// tell, wait for nor read it, and is told no more of it than of a name that never was.
#[test]
fn nobody_controls_whom_it_does_not_own() {
    const TRIED: u64 = 300;
    let begun = std::time::Instant::now();
    let mut total = Pairs::default();
    let mut failed = Vec::new();
    for seed in 1..=TRIED {
        match foreign_control(seed) {
            Ok(pairs) => {
                total.all += pairs.all;
                total.living += pairs.living;
                total.below += pairs.below;
            }
            Err(why) => failed.push(format!("seed {seed}: {why}")),
        }
    }
    println!("{TRIED} seeds, {total:?} in {:?}", begun.elapsed());
    assert!(failed.is_empty(), "{} seeds failed: {}", failed.len(), failed.join("\n"));
    assert!(total.all > 20_000 && total.living > 4_000 && total.below > 4_000, "only {total:?} were tried");
}
