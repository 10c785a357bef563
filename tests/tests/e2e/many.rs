//! Ten thousand workers: memory for two of them, one order, and a daemon that is as small afterwards as before.

use std::time::Duration;

use roost_tests::real::{Home, Sampler, Tree, find};
use serde_json::{Value, json};

const JOBS: usize = 500;
const TASKS: usize = 20;
/// For supervisor and broker together, in KiB.
pub const MEMORY: u64 = 100 << 10;

fn memory(home: &Home) -> u64 {
    let pids = home.daemon();
    [pids.supervisor, pids.broker].iter().map(|pid| find(*pid).unwrap().resident_kib()).sum()
}

// B21 (b), at cap 2 as the issue wants it.
#[test]
fn ten_thousand_workers_need_memory_for_two() {
    let home = Home::in_memory();
    let tree = Tree::open(&home, &["--cap", "2", "--budget", "10000"]);
    tree.roost(["pause"]).run().ok();
    let before = home.descriptors();
    // Three clients look on all the time.
    let watchers: Vec<_> = (0..3)
        .map(|_| {
            let mut wire = tree.wire();
            wire.call("watch", &json!({})).unwrap();
            wire
        })
        .collect();
    let mut wire = tree.wire();
    for job in 0..JOBS {
        let tasks: Vec<Value> = (0..TASKS)
            .map(|index| {
                let number = job * TASKS + index;
                // An alphabet that is not the order of submission; every tenth fails.
                let program = if number % 10 == 9 { "false" } else { "true" };
                json!({"name": format!("{}{number}", ["z", "a", "M", ""][number % 4]), "argv": [program]})
            })
            .collect();
        let submitter = json!({"env": [["PATH", "/usr/bin:/bin"], ["HOME", "/"]], "cwd": "/", "umask": 18});
        let receipt = wire.call("launch", &json!({"request_id": format!("j{job}"), "tasks": tasks, "submitter": submitter})).unwrap();
        assert_eq!(receipt["tasks"][0]["place"], json!(job * TASKS + 1));
    }
    let sampler = home.sample();
    let queued = memory(&home);
    assert!(queued < MEMORY, "{queued} KiB with all of them queued");
    tree.roost(["resume"]).run().ok();
    let done = tree.roost(["wait", "--json"]).within(Duration::from_secs(170)).run().expect(1);
    let ended = done.json()["ended"].clone();
    let executions: std::collections::BTreeSet<&str> =
        ended.as_array().unwrap().iter().map(|end| end["execution"].as_str().unwrap()).collect();
    assert_eq!(executions.len(), JOBS * TASKS);
    let samples = Sampler::stop(sampler);
    assert!(samples.most <= 2, "{} workers at once", samples.most);
    let (after, most) = (memory(&home), home.peak_kib());
    assert!(after < MEMORY && most < MEMORY, "{after} KiB at the end, {most} KiB at most");
    println!("{queued} KiB queued, {after} KiB at the end, {most} KiB at most, {} workers at once", samples.most);
    drop((watchers, wire));
    // Starts in the order of submission, to the millisecond that is kept; status comes in pages and says it for all.
    let status = tree.status();
    let progress = &status["trees"][0];
    assert_eq!((&progress["completed"], &progress["failed"], &progress["live"]), (&json!(9_000), &json!(1_000), &json!(0)));
    let started: Vec<u64> = status["workers"].as_array().unwrap().iter().map(|worker| worker["started_at_ms"].as_u64().unwrap()).collect();
    assert_eq!(started.len(), JOBS * TASKS);
    assert!(started.is_sorted());
    assert_eq!(home.zombies(), 0);
    let now = home.descriptors();
    assert!(now.0.abs_diff(before.0) <= 3 && now.1.abs_diff(before.1) <= 3, "{before:?} -> {now:?}");
}
