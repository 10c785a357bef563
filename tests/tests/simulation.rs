//! The main test: random trees, random clients, random crashes over the real core, thousands of seeds.
//!
//! `ROOST_SIM_SEEDS=N` sets how many, `ROOST_SIM_SEED=S` runs one and prints what happens.

use std::panic::{AssertUnwindSafe, catch_unwind};

use roost_tests::sim::run::{Report, run};

const SEEDS: u64 = 3_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} must be a number, and is {value}")))
}

/// Seeds that failed once are run first, for ever.
fn kept() -> Vec<u64> {
    include_str!("../seeds.txt")
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim())
        .filter(|line| !line.is_empty())
        .map(|line| line.parse().unwrap_or_else(|_| panic!("tests/seeds.txt: {line} is no seed")))
        .collect()
}

/// A panic of the core (an overflow, an assertion) is a failure like any other.
fn checked(seed: u64, trace: bool) -> Result<Report, String> {
    catch_unwind(AssertUnwindSafe(|| run(seed, trace))).unwrap_or_else(|_| Err("it panics".into()))
}

#[test]
fn every_seed_holds() {
    if let Some(seed) = number("ROOST_SIM_SEED") {
        let report = checked(seed, true);
        println!("{report:?}");
        assert!(report.is_ok(), "{}", report.unwrap_err());
        return;
    }
    let begun = std::time::Instant::now();
    let mut total = Report::default();
    let mut failed = Vec::new();
    let seeds = number("ROOST_SIM_SEEDS").unwrap_or(SEEDS);
    for seed in kept().into_iter().chain(1..=seeds) {
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
    println!("{seeds} seeds, {} workers, {} steps in {:?}: {:?}", total.workers, total.steps, begun.elapsed(), total.seen);
    for (seed, why) in &failed {
        println!(
            "seed {seed}: {why}\n  again: ROOST_SIM_SEED={seed} cargo test -p roost-tests --test simulation -- --nocapture\n  keep: echo {seed} >> tests/seeds.txt"
        );
    }
    assert!(failed.is_empty(), "{} seeds failed", failed.len());
}
