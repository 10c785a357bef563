//! Caps: of a tree, changed while it runs, of a group, of the whole daemon; pause and resume.

use std::time::Duration;

use roost_tests::real::{Home, Tree, by_name, is_up};
use serde_json::json;

fn running(tree: &Tree<'_>) -> usize {
    tree.status()["workers"].as_array().unwrap().iter().filter(|worker| is_up(worker)).count()
}

// B20.
#[test]
fn a_cap_that_changes_loses_no_job_and_starts_none_early() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "3"]);
    for round in 0..9 {
        tree.spawn(&format!("w{round}"), &format!(r#"echo w{round} >"$F/events"; read x <"$F/gate"; echo {round}"#));
    }
    let waits = tree.roost(["wait", "w8"]).start();
    events.lines(3);
    tree.roost(["cap", "1"]).run().ok();
    // Nobody is killed, and the looks at /proc see them all.
    assert_eq!((running(&tree), home.workers().len()), (3, 3));
    gate.release(1);
    tree.until("one end", |status| status["trees"][0]["completed"] == 1);
    gate.release(1);
    tree.until("two ends", |status| status["trees"][0]["completed"] == 2);
    // Two of three have ended and one lives: nothing was started.
    assert_eq!((running(&tree), events.line_within(Duration::ZERO)), (1, None));
    tree.roost(["cap", "4"]).run().ok();
    let mut next = events.lines(3);
    next.sort();
    assert_eq!(next, ["w3", "w4", "w5"]);
    for bad in ["0", "-1", "1.5", "abc", "1000000000000"] {
        let done = tree.roost(["cap", bad]).run().expect(2);
        assert!(done.err().contains("cap"), "{done}");
    }
    let error = tree.wire().call("cap", &json!({"cap": 100_001})).unwrap_err();
    assert_eq!(error["data"]["kind"], "bad_value");
    assert_eq!(tree.roost(["cap", "--json"]).run().ok().json()["cap"], 4);
    gate.release(7);
    assert_eq!(waits.end().ok().text(), "w8 completed\n");
    tree.roost(["wait"]).run().ok();
    assert_eq!(tree.status()["trees"][0]["completed"], 9);
    // It lasts for the session, over a new broker.
    home.kill_broker();
    assert_eq!(tree.roost(["cap", "--json"]).run().ok().json()["cap"], 4);
}

#[test]
fn a_lower_cap_makes_waiting_parents_give_their_slots_away() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "2"]);
    let script = r#"roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; exec roost wait"#;
    tree.spawn_with("lead", &["--descendants", "1"], script);
    assert_eq!(events.line(), "up");
    let lead = tree.until("the wait", |status| ["waiting", "blocked"].iter().any(|state| by_name(status, "lead")["state"] == *state));
    assert_eq!(lead["trees"][0]["live"], 2);
    tree.roost(["cap", "1"]).run().ok();
    let status = tree.until("a lent slot", |status| status["trees"][0]["live"] == 1);
    assert_eq!(status["trees"][0]["blocked"], 1);
    gate.release(1);
    assert_eq!(tree.answer("lead"), "kid completed\n");
}

#[test]
fn a_paused_tree_starts_nothing_and_stops_nothing() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &[]);
    tree.spawn("before", r#"echo up >"$F/events"; read x <"$F/gate"; echo B"#);
    assert_eq!(events.line(), "up");
    assert_eq!(tree.roost(["pause", "--json"]).run().ok().json(), json!({"paused": true}));
    let queued = tree.spawn("after", "echo A");
    assert_eq!((&queued["status"], &queued["place"]), (&json!("queued"), &json!(1)));
    gate.release(1);
    assert_eq!(tree.answer("before"), "B\n");
    home.kill_broker();
    let status = tree.status();
    assert_eq!((&status["trees"][0]["paused"], &by_name(&status, "after")["state"]), (&json!(true), &json!("queued")));
    tree.roost(["resume"]).run().ok();
    assert_eq!(tree.answer("after"), "A\n");
}

#[test]
fn a_group_has_a_cap_of_its_own_and_the_daemon_one_over_all() {
    let home = Home::new();
    home.start_daemon(&["--cap", "3"]);
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let one = Tree::open(&home, &["--cap", "8", "--group-cap", "writers=1"]);
    let two = Tree::open(&home, &["--cap", "8"]);
    let script = r#"echo "$0" >"$F/events"; read x <"$F/gate""#;
    let spawn = |tree: &Tree<'_>, name: &str, flags: &[&str]| {
        tree.roost(["spawn", "--name", name]).args(flags).args(["--", "sh", "-c", script, name]).run().ok();
    };
    spawn(&one, "writer1", &["--group", "writers"]);
    spawn(&one, "writer2", &["--group", "writers"]);
    spawn(&one, "reader", &[]);
    spawn(&two, "other", &[]);
    let mut up = events.lines(3);
    up.sort();
    // The second writer waits for the first, and holds up nobody behind it; the daemon has three slots in all.
    assert_eq!(up, ["other", "reader", "writer1"]);
    spawn(&two, "fourth", &[]);
    assert_eq!(two.worker("fourth")["state"], "queued");
    assert_eq!(home.daemon_status()["live"], 3);
    gate.release(5);
    let mut rest = events.lines(2);
    rest.sort();
    assert_eq!(rest, ["fourth", "writer2"]);
    one.roost(["wait"]).run().ok();
    two.roost(["wait"]).run().ok();
}
