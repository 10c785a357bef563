//! Workers that do not behave: deaf, endless, silent, talkative.

use std::time::{Duration, Instant};

use roost_tests::real::{Home, Tree, find, not_tested, outcome_of};
use serde_json::json;

#[test]
fn one_that_never_reads_its_task_disturbs_nobody() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let task = home.script("task", &"a long task\n".repeat(300_000));
    let tree = Tree::open(&home, &["--cap", "2"]);
    // More than a pipe holds; nobody has to wait until it is read.
    tree.spawn_with("deaf", &["--task-file", task.to_str().unwrap()], r#"echo up >"$F/events"; read x <"$F/gate"; printf done"#);
    assert_eq!(events.line(), "up");
    tree.spawn("sibling", "printf sibling");
    assert_eq!(tree.answer("sibling"), "sibling");
    gate.release(1);
    assert_eq!(tree.answer("deaf"), "done");
}

#[test]
fn one_that_never_ends_and_hears_nothing_ends_in_time() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "2", "--stop-grace", "300ms"]);
    let deaf = "trap '' TERM INT HUP; printf 'so far'; while :; do sleep 600; done";
    tree.spawn_with("endless", &["--timeout", "500ms"], deaf);
    let result = tree.result("endless");
    assert_eq!((outcome_of(&result), &result["answer"], &result["partial"]), ("timeout", &json!("so far"), &json!(true)));
    let worker = tree.worker("endless");
    let took = worker["ended_at_ms"].as_u64().unwrap() - worker["started_at_ms"].as_u64().unwrap();
    assert!((750..5_000).contains(&took), "{took} ms");
    assert!(home.workers().is_empty());
}

#[test]
fn the_time_of_a_worker_goes_on_over_restarts() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn_with("timed", &["--timeout", "3s"], r#"echo up >"$F/events"; exec sleep 600"#);
    assert_eq!(events.line(), "up");
    home.kill_broker();
    home.kill_broker();
    home.kill_supervisor();
    tree.status();
    let worker = tree.until_state("timed", "ended");
    assert_eq!(outcome_of(&worker), "timeout");
    // Neither begun anew by a restart, nor cut short by one.
    let took = worker["ended_at_ms"].as_u64().unwrap() - worker["started_at_ms"].as_u64().unwrap();
    assert!((2_900..5_000).contains(&took), "{took} ms");
}

#[test]
fn one_that_writes_256_mib_costs_the_broker_nothing() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "2"]);
    let pids = home.daemon();
    let resident = |pid: u32| find(pid).unwrap().resident_kib();
    let before = (resident(pids.supervisor), resident(pids.broker));
    let bytes = 256_u64 << 20;
    tree.spawn("talks", &format!(r"head -c {bytes} /dev/zero | tr '\0' x"));
    let result = tree.result("talks");
    assert_eq!((outcome_of(&result), &result["answer_bytes"], &result["answer_truncated"]), ("completed", &json!(bytes), &json!(true)));
    assert_eq!(result["answer"].as_str().unwrap().len(), 64 << 10);
    let count = tree.as_root(home.sh("roost result talks --raw | wc -c")).within(Duration::from_secs(60)).run().ok();
    assert_eq!(count.text().trim(), bytes.to_string());
    let after = (resident(pids.supervisor), resident(pids.broker));
    assert!(after.0 < before.0 + (8 << 10) && after.1 < before.1 + (16 << 10), "{before:?} -> {after:?} KiB");
    assert_eq!(home.daemon(), pids);
}

/// How much a gibibyte and what else is written meanwhile may take.
const ROOM_BYTES: u64 = 4 << 30;

#[test]
fn one_that_writes_1_gib_costs_the_daemon_no_memory_and_nobody_time() {
    let home = Home::new();
    let disk = rustix::fs::statvfs(home.dir()).unwrap();
    if disk.f_bavail * disk.f_frsize < ROOM_BYTES {
        not_tested(&format!("less than 4 GiB are free in {}", home.dir().display()));
        return;
    }
    let tree = Tree::open(&home, &["--cap", "2"]);
    let pids = home.daemon();
    let bytes = 1_u64 << 30;
    tree.spawn("talks", &format!("yes | head -c {bytes}"));
    let (mut most_kib, mut slowest, mut others) = (0, Duration::ZERO, 0);
    let until = Instant::now() + Duration::from_secs(120);
    let result = loop {
        assert!(Instant::now() < until, "it writes and writes");
        let began = Instant::now();
        let hi = tree.roost(["run", "--", "echo", "hi"]).run().ok();
        slowest = slowest.max(began.elapsed());
        assert_eq!(hi.text(), "hi\n");
        others += 1;
        most_kib = most_kib.max([pids.supervisor, pids.broker].iter().map(|pid| find(*pid).unwrap().resident_kib()).sum());
        let result = tree.roost(["result", "talks", "--json"]).run().json();
        if !result["outcome"].is_null() {
            break result;
        }
    };
    assert_eq!((outcome_of(&result), &result["answer_bytes"], &result["answer_truncated"]), ("completed", &json!(bytes), &json!(true)));
    assert!(result["answer"].as_str().unwrap().len() <= 64 << 10);
    eprintln!("{others} others meanwhile, the slowest in {slowest:?}; at most {most_kib} KiB resident");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    assert!(most_kib < 200 << 10, "{most_kib} KiB");
    assert_eq!(home.daemon(), pids);
    // The file goes with the home.
}
