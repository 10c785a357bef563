//! Stops: nothing survives, TERM comes before KILL, nothing of a stopped subtree starts later, and budget stays spent.

use std::time::Duration;

use roost_tests::real::{Home, Tree, Watched, all, by_name, outcome_of};
use rustix::process::Signal;
use serde_json::{Value, json};

/// How many processes have this word in their command line.
fn with_word(word: &str) -> usize {
    let has_it = |argument: &Vec<u8>| argument.windows(word.len()).any(|part| part == word.as_bytes());
    // The commands of the test itself carry the word too, and are over.
    all().iter().filter(|process| process.is_alive() && process.arguments().iter().any(has_it)).count()
}

// B11 (a).
#[test]
fn a_tree_that_ignores_term_leaves_nothing() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--stop-grace", "400ms"]);
    let word = format!("word-{}", home.dir().file_name().unwrap().to_str().unwrap());
    // A child in the group, one in a session of its own, one that forked twice, and one of those without any environment.
    let script = format!(
        r#"trap '' TERM
        sh -c 'trap "" TERM; echo up >"$F/events"; while :; do sleep 600; done' {word} &
        setsid sh -c 'trap "" TERM; echo up >"$F/events"; while :; do sleep 600; done' {word} &
        (setsid sh -c 'trap "" TERM; echo up >"$F/events"; while :; do sleep 600; done' {word} &)
        env -i F="$F" PATH="$PATH" sh -c 'trap "" TERM; echo up >"$F/events"; while :; do sleep 600; done' {word} &
        echo up >"$F/events"; while :; do wait; done"#
    );
    tree.spawn("w", &script);
    events.lines(5);
    assert!(with_word(&word) >= 5);
    let done = tree.roost(["stop", "w"]).run().ok();
    assert_eq!(done.text(), "w stopped\n");
    assert!(done.took >= Duration::from_millis(400) && done.took < Duration::from_secs(8), "{done}");
    assert_eq!((with_word(&word), home.workers().len()), (0, 0));
    assert_eq!(outcome_of(&tree.worker("w")), "stopped");
}

// B11 (b).
#[test]
fn term_comes_before_kill() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--stop-grace", "1h"]);
    tree.spawn("w", r#"trap 'echo bye >>"$F/bye"; exit 0' TERM; echo up >"$F/events"; while :; do sleep 600 & wait; done"#);
    assert_eq!(events.line(), "up");
    tree.roost(["stop", "w"]).run().ok();
    assert_eq!(home.read("bye"), "bye\n");
    // It was stopped, whatever it made of it.
    assert_eq!(outcome_of(&tree.worker("w")), "stopped");
}

// B11 (c).
#[test]
fn a_worker_that_stands_still_is_stopped_too() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--stop-grace", "300ms"]);
    tree.spawn("w", r#"echo up >"$F/events"; exec sleep 600"#);
    assert_eq!(events.line(), "up");
    Watched::new(tree.pid("w")).signal(Signal::STOP);
    assert_eq!(tree.roost(["stop", "w"]).run().ok().text(), "w stopped\n");
    assert!(home.workers().is_empty());
}

// B11 (d).
#[test]
fn fifty_starts_and_stops_leave_no_zombie_and_no_descriptor() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "100"]);
    tree.spawn("first", "true");
    tree.result("first");
    let before = home.descriptors();
    let mut wire = tree.wire();
    for round in 0..50 {
        let name = format!("w{round}");
        let params = json!({
            "request_id": name, "submitter": {"env": [["PATH", "/usr/bin:/bin"]], "cwd": "/", "umask": 18},
            "tasks": [{"name": name, "argv": ["sleep", "600"]}],
        });
        wire.call("launch", &params).unwrap();
        let reply = wire.call("stop", &json!({"names": [name]})).unwrap();
        assert_eq!(reply["workers"][0]["result"], "stopped");
    }
    drop(wire);
    // Without any further start.
    assert_eq!(home.zombies(), 0);
    let after = home.descriptors();
    assert!(after.0.abs_diff(before.0) <= 3 && after.1.abs_diff(before.1) <= 3, "{before:?} -> {after:?}");
    assert!(home.workers().is_empty());
    assert_eq!(home.daemon_status()["live"], 0);
}

// B22.
#[test]
fn a_stop_reaches_the_whole_subtree_and_nothing_of_it_starts_later() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "4", "--budget", "12"]);
    let leaf = r#"echo up >"$F/events"; exec sleep 600"#;
    let a1 = format!(r#"roost spawn --name A1a -- sh -c '{leaf}' >&2; {leaf}"#);
    std::fs::write(home.file("a1.sh"), a1).unwrap();
    let a = r#"roost spawn --name A1 --descendants 1 -- sh "$F/a1.sh" >&2; echo up >"$F/events"; read x <"$F/more"
        roost spawn --name A2 -- sh -c ': >"$F/M"' >&2; echo up >"$F/events"; exec sleep 600"#;
    let mut more = home.fifo("more");
    tree.spawn_with("A", &["--descendants", "3"], a);
    tree.spawn("D", leaf);
    events.lines(4);
    more.release(1);
    assert_eq!(events.line(), "up");
    let b = tree.spawn("B", r#"echo up >"$F/events"; exec sleep 600"#);
    assert_eq!(b["status"], "queued");
    let before = tree.status();
    assert_eq!((by_name(&before, "A2")["state"].as_str(), before["trees"][0]["live"].as_u64()), (Some("queued"), Some(4)));
    assert_eq!(before["trees"][0]["budget_remaining"], 6);
    let d = tree.pid("D");
    tree.roost(["stop", "A"]).run().ok();
    // B gets a slot of A's; D was not touched.
    assert_eq!(events.line(), "up");
    let after = tree.status();
    for name in ["A", "A1", "A1a", "A2"] {
        let worker = by_name(&after, name);
        assert_eq!((worker["state"].as_str(), outcome_of(worker)), (Some("ended"), "stopped"), "{worker}");
    }
    let a2 = by_name(&after, "A2");
    assert_eq!((&a2["started_at_ms"], &a2["epoch"]), (&Value::Null, &json!(0)));
    assert_eq!((tree.pid("D"), &after["trees"][0]["budget_remaining"]), (d, &json!(6)));
    assert_eq!(home.workers().len(), 2);
    // Whoever stopped it is told nothing of it any more.
    let reply = tree.roost(["wait", "--json", "--timeout", "0"]).run().json();
    assert_eq!(reply["ended"], json!([]), "{reply}");
    let reply = tree.roost(["stop", "A", "--json"]).run().ok().json();
    assert_eq!(reply["workers"][0]["result"], "already_settled");
    tree.roost(["stop", "B", "D"]).run().ok();
    // All slots are free and nothing is queued: what has not started by now never will.
    assert_eq!((home.daemon_status()["queued"].as_u64(), home.file("M").exists()), (Some(0), false));
}

#[test]
fn a_stopped_worker_launches_nothing_more() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--stop-grace", "30s"]);
    let script = r#"trap 'roost spawn --json -- sh -c ": >$F/M" >"$F/refusal"; exit' TERM; echo up >"$F/events"; while :; do sleep 600 & wait; done"#;
    tree.spawn_with("w", &["--descendants", "5"], script);
    assert_eq!(events.line(), "up");
    tree.roost(["stop", "w"]).run().ok();
    let refusal: Value = serde_json::from_str(&home.read("refusal")).unwrap();
    assert_eq!(refusal["error"]["kind"], "stopping");
    assert!(!home.file("M").exists());
}

#[test]
fn descendants_of_a_worker_that_fails_are_stopped_or_adopted() {
    let home = Home::new();
    for (flags, outcome) in [(&[][..], "parent_failed"), (&["--on-parent-failure", "adopt"][..], "completed")] {
        let tree = Tree::open(&home, flags);
        let dir = home.dir().join(outcome);
        std::fs::create_dir(&dir).unwrap();
        let mut up = roost_tests::real::Fifo::new(&dir.join("up"));
        let mut gate = roost_tests::real::Fifo::new(&dir.join("gate"));
        let flag = format!("D={}", dir.display());
        let script = r#"roost spawn --name kid -- sh -c 'echo up >"$D/up"; read x <"$D/gate"; echo K' >&2; read x <"$D/gate"; exit 3"#;
        tree.spawn_with("lead", &["--descendants", "1", "--env", &flag], script);
        assert_eq!(up.line(), "up");
        // Either of the two may read it; the lead is what fails, so the child's turn is told apart by who is left.
        let lead = Watched::new(tree.pid("lead"));
        lead.kill();
        if outcome == "completed" {
            tree.until("the adoption", |status| outcome_of(by_name(status, "lead")) == "crash");
            gate.release(1);
        }
        let kid = tree.until_state("kid", "ended");
        assert_eq!(outcome_of(&kid), outcome);
        assert_eq!(outcome_of(&tree.until_state("lead", "ended")), "crash");
    }
}
