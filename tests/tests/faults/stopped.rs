//! Processes that stand still for a while, as all do when a machine sleeps: nobody is taken for dead, nothing times out in a storm.

use std::time::Duration;

use roost_tests::real::{Home, Running, Tree, Watched, outcome_of};
use rustix::process::Signal;
use serde_json::Value;

/// How long they stand. It is what is tested, so it is slept for.
const STILL: Duration = Duration::from_secs(3);

/// A tree with one of each kind of wait, with limits that are longer than the pause but not by much.
fn busy(tree: &Tree<'_>) -> Running {
    tree.spawn_with("limited", &["--timeout", "30s"], r#"echo up >"$F/events"; read x <"$F/gate"; printf limited"#);
    let waits = r#"roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; roost wait kid --timeout 30s"#;
    tree.spawn_with("waits", &["--descendants", "1"], waits);
    let parks = r#"if [ "${ROOST_WAKE-}" = 1 ]; then printf woken; exit; fi
        roost spawn --name other -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; exec roost park"#;
    tree.spawn_with("parks", &["--descendants", "1"], parks);
    tree.roost(["wait", "--json", "--timeout", "60s"]).start()
}

fn stand_still(what: &str, choose: impl Fn(&Home, &Tree<'_>) -> Vec<u32>) {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "3"]);
    let root = busy(&tree);
    events.lines(3);
    tree.until_state("parks", "parked");
    let before = home.daemon();
    let still: Vec<Watched> = choose(&home, &tree).into_iter().map(Watched::new).collect();
    still.iter().for_each(|process| process.signal(Signal::STOP));
    // It is asked meanwhile, and answers whenever it can.
    let asks = tree.roost(["status", "--json"]).start();
    std::thread::sleep(STILL);
    still.iter().for_each(|process| process.signal(Signal::CONT));
    let status = asks.end().ok().json();
    assert!(status["workers"].as_array().unwrap().iter().all(|worker| worker["state"] != "ended"), "{what}: {status}");
    gate.release(3);
    let told = root.end().ok().json();
    let ends: Vec<(&Value, &str)> = told["ended"].as_array().unwrap().iter().map(|end| (&end["name"], outcome_of(end))).collect();
    assert!(ends.len() == 3 && ends.iter().all(|(_, outcome)| *outcome == "completed"), "{what}: {told}");
    assert_eq!(home.daemon(), before, "{what}");
    let epochs: Vec<u64> = ["limited", "waits", "kid", "other", "parks"].map(|name| tree.worker(name)["epoch"].as_u64().unwrap()).to_vec();
    assert_eq!(epochs, [1, 1, 1, 1, 2], "{what}");
}

#[test]
fn a_broker_that_stood_still() {
    stand_still("broker", |home, _| vec![home.daemon().broker]);
}

#[test]
fn a_supervisor_that_stood_still() {
    stand_still("supervisor", |home, _| vec![home.daemon().supervisor]);
}

#[test]
fn workers_that_stood_still() {
    stand_still("workers", |_, tree| ["limited", "waits", "kid", "other"].map(|name| tree.pid(name)).to_vec());
}

#[test]
fn everything_stood_still() {
    stand_still("all", |home, _| {
        let pids = home.daemon();
        let workers = home.workers().into_values().flatten().map(|process| process.pid);
        workers.chain([pids.broker, pids.supervisor]).collect()
    });
}

#[test]
fn a_worker_that_stands_still_can_be_stopped_and_its_time_is_over_all_the_same() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "2", "--stop-grace", "500ms"]);
    tree.spawn("stopped", r#"echo up >"$F/events"; exec sleep 600"#);
    tree.spawn_with("timed", &["--timeout", "1s"], r#"echo up >"$F/events"; exec sleep 600"#);
    events.lines(2);
    let still = ["stopped", "timed"].map(|name| Watched::new(tree.pid(name)));
    still.iter().for_each(|process| process.signal(Signal::STOP));
    tree.roost(["stop", "stopped"]).run().ok();
    assert_eq!(outcome_of(&tree.worker("stopped")), "stopped");
    assert_eq!(outcome_of(&tree.until_state("timed", "ended")), "timeout");
    still.iter().for_each(Watched::await_end);
}
