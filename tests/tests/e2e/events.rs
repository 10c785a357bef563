//! The numbered stream of a tree, over the real socket: no gap, no matter who follows, how slowly, and which broker answers.

use std::time::Duration;

use roost_tests::real::{Home, Tree, Wire};
use serde_json::{Value, json};

/// All events from a number on, page by page.
fn all_from(wire: &mut Wire, tree: &Tree<'_>, mut from: u64) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let page = wire.call("events", &json!({"tree": tree.id, "from": from})).unwrap();
        events.extend(page["events"].as_array().unwrap().iter().cloned());
        from = page["next"].as_u64().unwrap();
        if page["next"] == page["end"] {
            return events;
        }
    }
}

fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["number"].as_u64().unwrap()).collect()
}

#[test]
fn a_follower_is_told_everything_in_order_and_goes_on_by_number_over_a_killed_broker() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "2"]);
    let mut wire = home.wire();
    let first = wire.call("events", &json!({"tree": tree.id, "follow": true})).unwrap();
    let mut seen = numbers(first["events"].as_array().unwrap());
    let name = |n: usize| format!("w{n}");
    (0..5).for_each(|n| drop(tree.spawn(&name(n), "true")));
    tree.roost(["wait", "--all"]).run().ok();
    let mut ended = 0;
    while ended < 5 {
        let told = wire.answer(Duration::from_secs(30)).expect("a notification");
        assert_eq!(told["method"], "events");
        let events = told["params"]["events"].as_array().unwrap();
        ended += events.iter().filter(|event| event["event"] == "ended").count();
        seen.extend(numbers(events));
    }
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    home.kill_broker();
    let mut wire = home.wire();
    tree.spawn("late", "true");
    tree.roost(["wait", "late"]).run().ok();
    let rest = all_from(&mut wire, &tree, seen.len() as u64 + 1);
    seen.extend(numbers(&rest));
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    // Each execution was created, queued, started and ended in this order.
    let all = all_from(&mut wire, &tree, 1);
    for n in (0..5).map(name).chain(["late".into()]) {
        let mut of = all.iter().filter(|event| event["name"] == n.as_str()).map(|event| event["event"].as_str().unwrap());
        for expected in ["created", "queued", "started", "ended"] {
            assert!(of.any(|event| event == expected), "{n}: no {expected} in its place: {all:?}");
        }
    }
}

#[test]
fn a_follower_that_does_not_read_is_cut_off_and_nobody_waits_for_it() {
    let home = Home::in_memory();
    let tree = Tree::open(&home, &["--cap", "8", "--budget", "100000"]);
    let mut slow = home.wire();
    slow.call("events", &json!({"tree": tree.id, "follow": true})).unwrap();
    // What the kernel, the connection and its queue hold for it is full long before this; nobody else waits for it.
    let mut root = tree.wire();
    let submitter = json!({"env": [["PATH", "/usr/bin:/bin"]], "cwd": "/", "umask": 18});
    let launched = 2_000;
    for n in 0..launched {
        let launch = json!({"request_id": format!("r{n}"), "tasks": [{"argv": ["true"]}], "submitter": submitter});
        root.call("launch", &launch).unwrap();
    }
    tree.roost(["wait", "--all"]).run().ok();
    // It reads now, and finds the end of its connection behind what was on its way.
    assert!(slow.is_closed_within(Duration::from_secs(60)), "it was never cut off");
    let mut wire = home.wire();
    let all = numbers(&all_from(&mut wire, &tree, 1));
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    assert!(all.len() >= 5 * launched, "{} events", all.len());
}

#[test]
fn only_the_root_and_the_operator_read_the_stream() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", "roost events 2>&1; true");
    let said = tree.answer("w");
    assert!(said.contains("not_root"), "{said}");
    let mut wire = home.wire();
    let refused = wire.call("events", &json!({})).unwrap_err();
    assert_eq!(refused["data"]["kind"], "no_tree");
    let refused = wire.call("events", &json!({"tree": "t1"})).unwrap_err();
    assert_eq!(refused["data"]["kind"], "no_tree");
}
