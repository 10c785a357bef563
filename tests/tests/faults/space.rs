//! A full disk, at each kind of write: what runs goes on, new work is refused, ends are kept, and room is all that it takes.

use std::time::Duration;

use roost_tests::real::{Home, SmallDisk, Tree, Wire, by_name, kind_of, outcome_of};
use serde_json::{Value, json};

/// A home whose state directory is a disk of its own.
fn on_small_disk() -> Option<(Home, SmallDisk)> {
    let home = Home::new();
    let disk = SmallDisk::mount(&home.state_dir(), 48 << 10)?;
    Some((home, disk))
}

fn refused(tree: &Tree<'_>) {
    let refusal = tree.roost(["spawn", "--json", "--", "true"]).run().expect(1);
    let error = refusal.json();
    assert_eq!(error["error"]["kind"], "no_space", "{refusal}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("free some space"), "{refusal}");
}

#[test]
fn little_room_refuses_launches_and_what_runs_goes_on() {
    let Some((home, disk)) = on_small_disk() else { return };
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("runs", r#"echo up >"$F/events"; read x <"$F/gate"; printf done"#);
    tree.spawn("queued", "printf later");
    assert_eq!(events.line(), "up");
    // Less than is kept free for what must be written.
    disk.fill_up_to(8 << 20);
    refused(&tree);
    let opening = home.roost(["open", "--json"]).run().expect(1).json();
    assert_eq!(opening["error"]["kind"], "no_space");
    // Everything else is as ever: what was accepted before runs.
    gate.release(1);
    assert_eq!((tree.answer("runs").as_str(), tree.answer("queued").as_str()), ("done", "later"));
    let broker = home.daemon().broker;
    disk.make_room();
    tree.spawn("after", "printf after");
    assert_eq!((tree.answer("after").as_str(), home.daemon().broker), ("after", broker));
}

#[test]
fn without_any_room_ends_and_contexts_are_kept() {
    let Some((home, disk)) = on_small_disk() else { return };
    let mut events = home.fifo("events");
    let (mut gate, mut go) = (home.fifo("gate"), home.fifo("go"));
    let tree = Tree::open(&home, &["--cap", "4"]);
    tree.spawn("early", r#"printf 'said before'; echo up >"$F/events"; read x <"$F/gate""#);
    tree.spawn("fails", r#"echo up >"$F/events"; read x <"$F/gate"; exit 7"#);
    let lead = r#"if [ "${ROOST_WAKE-}" = 1 ]; then cat "$ROOST_CONTEXT"; exit; fi
        roost spawn --name kid -- sh -c 'read x <"$F/go"' >&2
        head -c 20000 /dev/zero | tr '\0' c >"$F/context"; echo up >"$F/events"; read x <"$F/gate"; exec roost park --context "$F/context""#;
    tree.spawn_with("lead", &["--descendants", "1"], lead);
    events.lines(3);
    let broker = home.daemon().broker;
    disk.fill_up_to(0);
    refused(&tree);
    gate.release(3);
    // The ballast makes room for these.
    tree.until_state("lead", "parked");
    assert_eq!(outcome_of(&tree.until_state("fails", "ended")), "exit");
    assert_eq!(tree.answer("early"), "said before");
    refused(&tree);
    disk.make_room();
    go.release(1);
    assert_eq!(tree.answer("lead"), "c".repeat(20_000));
    tree.spawn("after", "printf after");
    assert_eq!((tree.answer("after").as_str(), home.daemon().broker), ("after", broker));
}

#[test]
fn with_the_ballast_gone_as_well_calls_are_refused_and_nothing_is_lost() {
    let Some((home, disk)) = on_small_disk() else { return };
    let (mut events, mut gate, mut late) = (home.fifo("events"), home.fifo("gate"), home.fifo("late"));
    let tree = Tree::open(&home, &["--cap", "3"]);
    // Its context is larger than anything that is free in the journal.
    let lead = r#"if [ "${ROOST_WAKE-}" = 1 ]; then wc -c <"$ROOST_CONTEXT"; exit; fi
        head -c 900000 /dev/zero | tr '\0' c >"$F/context"; echo up >"$F/events"; read x <"$F/gate"; exec roost park --context "$F/context""#;
    tree.spawn("lead", lead);
    tree.spawn("one", r#"printf said; echo up >"$F/events"; read x <"$F/late""#);
    events.lines(2);
    let waits = tree.roost(["wait", "--json"]).start();
    let pids = home.daemon();
    disk.fill_up_to(0);
    // A worker that writes on and on takes what the ballast gives back.
    std::fs::remove_file(home.state_dir().join("ballast")).unwrap();
    disk.fill_up_to(0);
    gate.release(1);
    // The park cannot be written. Nobody is kept waiting for that: who looks sees what is on disk, who asks for more is told why.
    let until = std::time::Instant::now() + Duration::from_secs(30);
    while !home.log().contains("disk of the state directory is full") {
        let asked = tree.roost(["status", "--json"]).within(Duration::from_secs(10)).run().ok();
        assert_eq!(by_name(&asked.json(), "lead")["state"], "running", "{asked}");
        assert!(std::time::Instant::now() < until, "the park was written on a full disk");
    }
    assert_eq!(tree.worker("lead")["state"], "running");
    assert_eq!(tree.roost(["cap", "2", "--json"]).run().expect(1).json()["error"]["kind"], "no_space");
    refused(&tree);
    // A hello is what it is otherwise: this one may look, and no more.
    let mut eye = Wire::connect(&home.socket());
    let hello = json!({"protocol_min": 1, "protocol_max": 1, "client": "eye", "role": "observer",
        "identity": {"tree": tree.id, "token": tree.token}});
    assert_eq!(eye.call("hello", &hello).unwrap()["role"], "observer");
    assert_eq!(kind_of(&eye.call("cap", &json!({"cap": 2})).unwrap_err()), "read_only");
    for look in ["inbox", "usage", "events"] {
        assert_eq!(kind_of(&eye.call(look, &json!({})).unwrap_err()), "no_space", "{look}");
    }
    late.release(1);
    assert_eq!(tree.worker("one")["state"], "running");
    assert_eq!(home.daemon(), pids);
    disk.make_room();
    let told = waits.end().ok().json();
    let names: Vec<&Value> = told["ended"].as_array().unwrap().iter().map(|end| &end["name"]).collect();
    assert!(names.len() == 2 && names.contains(&&json!("one")) && names.contains(&&json!("lead")), "{told}");
    assert_eq!((tree.answer("one").as_str(), tree.answer("lead").as_str()), ("said", "900000\n"));
    tree.spawn("after", "printf after");
    assert_eq!((tree.answer("after").as_str(), home.daemon()), ("after", pids));
}

#[test]
fn a_worker_that_fills_the_disk_fails_alone() {
    let Some((home, disk)) = on_small_disk() else { return };
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "3"]);
    tree.spawn("bystander", r#"printf 'still here'; echo up >"$F/events"; read x <"$F/gate""#);
    assert_eq!(events.line(), "up");
    tree.spawn("flood", r#"cat /dev/zero; echo "full $?" >"$F/events"; read x <"$F/gate"; exit 5"#);
    assert_eq!(events.line(), "full 1");
    assert!(disk.free() < 1 << 20);
    let broker = home.daemon().broker;
    gate.release(2);
    assert_eq!((tree.answer("bystander").as_str(), outcome_of(&tree.until_state("flood", "ended"))), ("still here", "exit"));
    refused(&tree);
    let flood = tree.worker("flood");
    std::fs::write(flood["stdout_paths"][0].as_str().unwrap(), "").unwrap();
    tree.spawn("after", "printf after");
    assert_eq!((tree.answer("after").as_str(), home.daemon().broker), ("after", broker));
}

/// Leaves room for records, and none for a large file of a worker's. A new broker has worked its log off: that takes no room later.
fn room_for_records_alone(home: &Home, disk: &SmallDisk) {
    home.kill_broker();
    home.daemon();
    disk.fill_up_to(256 << 10);
}

#[test]
fn a_start_waits_for_room() {
    let Some((home, disk)) = on_small_disk() else { return };
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let large = home.script("large", &"0123456789abcde\n".repeat(40_000));
    let large = large.to_str().unwrap();
    let tree = Tree::open(&home, &["--cap", "1"]);
    let lead = r#"if [ "${ROOST_WAKE-}" = 1 ]; then wc -c <"$ROOST_CONTEXT"; exit; fi
        roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; exec roost park --context "$F/large""#;
    tree.spawn_with("lead", &["--descendants", "1"], lead);
    assert_eq!(events.line(), "up");
    tree.spawn_with("stopped", &["--task-file", large], "cat");
    tree.spawn_with("task", &["--task-file", large], "wc -c");
    room_for_records_alone(&home, &disk);
    gate.release(1);
    let waits = |name: &str, state: &str, epoch: u64| {
        let worker = tree.until_state(name, state);
        // Not a start that has failed: those are counted.
        assert_eq!((&worker["epoch"], &worker["reason"]), (&json!(epoch), &Value::Null), "{worker}");
    };
    waits("stopped", "starting", 1);
    tree.roost(["stop", "stopped"]).run().ok();
    assert_eq!(outcome_of(&tree.worker("stopped")), "stopped");
    waits("task", "starting", 1);
    let pids = home.daemon();
    disk.make_room();
    assert_eq!(tree.answer("task"), "640000\n");
    assert_eq!((tree.answer("lead").as_str(), tree.worker("lead")["epoch"].as_u64()), ("640000\n", Some(2)));
    assert_eq!(home.daemon(), pids);
}

#[test]
fn a_wake_waits_for_room() {
    let Some((home, disk)) = on_small_disk() else { return };
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    home.script("large", &"0123456789abcde\n".repeat(40_000));
    let tree = Tree::open(&home, &["--cap", "1"]);
    let lead = r#"if [ "${ROOST_WAKE-}" = 1 ]; then wc -c <"$ROOST_CONTEXT"; exit; fi
        roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; exec roost park --context "$F/large""#;
    tree.spawn_with("lead", &["--descendants", "1"], lead);
    assert_eq!(events.line(), "up");
    room_for_records_alone(&home, &disk);
    gate.release(1);
    let lead = tree.until_state("lead", "waking");
    assert_eq!((&lead["epoch"], &lead["reason"]), (&json!(2), &Value::Null), "{lead}");
    disk.make_room();
    assert_eq!((tree.answer("lead").as_str(), tree.worker("lead")["epoch"].as_u64()), ("640000\n", Some(2)));
}
