//! Parking of workers that speak: in a call, between two turns, when they refuse, and at cap 1 to any depth.

use roost_tests::real::{Agent, Agents, Home, Tree, scripted, with_children};
use serde_json::{Value, json};

/// A chain of workers, each of which waits in a call for the next one; the last one answers `L`.
fn chain(home: &Home, depth: u64) -> Value {
    if depth == 0 {
        return scripted(home, "d0", &json!(["hello", "take", {"settle": {"answer": "L"}}]));
    }
    let child = chain(home, depth - 1);
    let script = json!(["hello", "take", {"launch": [child]}, {"relay": format!("d{}", depth - 1)}]);
    with_children(scripted(home, &format!("d{depth}"), &script), depth)
}

#[test]
fn calls_that_wait_are_points_to_park_at_four_deep_at_cap_1() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1"]);
    let sampler = home.sample();
    tree.launch(json!([chain(&home, 4)]));
    assert_eq!(tree.answer("d4"), "L");
    assert!(sampler.stop().most <= 1);
    for depth in 1..=4 {
        let worker = tree.worker(&format!("d{depth}"));
        assert_eq!((worker["epoch"].as_u64(), worker["state"].as_str()), (Some(2), Some("ended")), "{worker}");
    }
}

#[test]
fn a_broker_that_dies_again_and_again_does_not_disturb_the_chain() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.launch(json!([chain(&home, 3)]));
    for depth in [2, 1, 0] {
        tree.until(&format!("d{depth}"), |status| {
            status["workers"].as_array().unwrap().iter().any(|worker| worker["name"] == format!("d{depth}"))
        });
        home.kill_broker();
    }
    assert_eq!(tree.answer("d3"), "L");
}

/// P parks, its kid runs in its place, and P goes on to its end.
fn parks_and_goes_on(tree: &Tree<'_>, agents: &mut Agents<'_>, p: Agent) {
    p.park();
    let mut kid = agents.begins("kid");
    kid.begin();
    kid.finish("K");
    let mut p = agents.begins("P");
    p.does(&json!("hello"));
    assert_eq!(p.texts(), ["K"]);
    p.finish("done");
    assert_eq!(tree.answer("P"), "done");
}

#[test]
fn one_that_refuses_or_does_not_answer_keeps_its_slot_and_is_asked_again() {
    let home = Home::new();
    let flags = ["--cap", "1", "--set", "park_deadline=200ms", "--set", "park_again=100ms"];
    let (tree, mut agents) = (Tree::open(&home, &flags), Agents::new(&home));
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&json!([agents.task("kid")]));
    assert_eq!(p.settle("asked"), "wait");
    p.await_note("park");
    p.call("park_decline", json!({"not_before_ms": 1})).unwrap();
    // Asked again; this time it says nothing until the request is called off.
    p.await_note("park");
    p.await_note("park");
    assert_eq!(tree.worker("kid")["state"], "queued");
    parks_and_goes_on(&tree, &mut agents, p);
}

#[test]
fn words_that_come_first_call_off_a_park() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "1"]), Agents::new(&home));
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&json!([agents.task("kid")]));
    assert_eq!(p.settle("asked"), "wait");
    p.await_note("park");
    tree.roost(["message", "P", "not yet"]).run().ok();
    assert_eq!(p.call("park_ready", json!({"context": {"bytes": "0"}})).unwrap()["parked"], false);
    assert_eq!(p.texts(), ["not yet"]);
    assert_eq!(p.settle("now"), "wait");
    parks_and_goes_on(&tree, &mut agents, p);
}

#[test]
fn a_damaged_context_is_an_outcome_and_never_a_fresh_start() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "1"]), Agents::new(&home));
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&json!([{"name": "kid", "argv": ["echo", "K"]}]));
    let own = home.file("own-context");
    std::fs::write(&own, "0").unwrap();
    assert_eq!(p.does(&json!({"settle": {"answer": "asked", "context": {"path": own}}}))["next"], "wait");
    p.await_note("park");
    std::fs::write(&own, "1").unwrap();
    let parked = p.call("park_ready", json!({})).unwrap()["parked"].as_bool().unwrap();
    assert!(parked);
    p.exit(0);
    let result = tree.result("P");
    // The turn that it was to be woken for has said nothing; what the one before answered is no answer of it.
    assert_eq!((&result["outcome"]["kind"], &result["answer"]), (&json!("context_corrupt"), &json!("")), "{result}");
    // What its child had answered can be read all the same.
    assert_eq!(tree.roost(["result", "kid"]).run().ok().text(), "K\n");
}
