//! Watchdogs: a process that never says hello, a turn that says nothing, and what is no idleness.

use roost_tests::real::{Agents, Home, Tree, by_name, outcome_of, scripted};
use serde_json::json;

#[test]
fn one_that_never_says_hello_is_tried_again_and_then_failed() {
    let home = Home::in_memory();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--set", "startup=1s", "--set", "start_retries=2", "--set", "start_retry=10ms"]);
    tree.launch(json!([scripted(&home, "w", &json!([{"say": "up"}, "hang"]))]));
    assert_eq!(events.lines(3), ["w up", "w up", "w up"]);
    let result = tree.result("w");
    assert_eq!((outcome_of(&result), &result["answer"]), ("startup", &json!("")));
    assert_eq!((tree.worker("w")["epoch"].as_u64(), home.workers().len()), (Some(3), 0));
}

#[test]
fn a_second_try_that_says_hello_does_the_task() {
    let home = Home::in_memory();
    let (tree, mut agents) = (Tree::open(&home, &["--set", "startup=1s", "--set", "start_retry=10ms"]), Agents::new(&home));
    let silent = agents.launch(&tree, "w", 0);
    let mut second = agents.begins("w");
    assert_eq!((&silent.env["ROOST_EPOCH"], &second.env["ROOST_EPOCH"]), (&json!("1"), &json!("2")));
    assert_eq!(silent.env["ROOST_EXECUTION"], second.env["ROOST_EXECUTION"]);
    second.begin();
    second.finish("X");
    assert_eq!(tree.answer("w"), "X");
}

#[test]
fn a_turn_that_says_nothing_is_ended_and_keeps_its_text() {
    let home = Home::in_memory();
    let (tree, mut agents) = (Tree::open(&home, &["--set", "idle=1s"]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 0);
    w.call("report", json!({"activity": "tool"})).unwrap();
    // Out of the tool again: from here it counts.
    w.call("report", json!({"activity": "busy", "text": "half"})).unwrap();
    let result = tree.result("w");
    assert_eq!((outcome_of(&result), &result["answer"], &result["partial"]), ("idle_timeout", &json!("half"), &json!(true)));
    assert_eq!(home.workers().len(), 0);
}

#[test]
fn waiting_is_not_idle() {
    let home = Home::in_memory();
    let mut gate = home.fifo("gate");
    let (tree, mut agents) = (Tree::open(&home, &["--set", "idle=1s"]), Agents::new(&home));
    let kid = |name: &str| json!([{"name": name, "argv": ["sh", "-c", "read x <$F/gate; echo K"]}]);
    let mut tool = agents.start(&tree, "tool", 0);
    tool.call("report", json!({"activity": "tool"})).unwrap();
    let mut waits = agents.start(&tree, "waits", 1);
    waits.launch(&kid("kid1"));
    assert_eq!(waits.settle("I wait"), "wait");
    let mut parks = agents.start(&tree, "parks", 1);
    parks.call("report", json!({"activity": "tool"})).unwrap();
    parks.launch(&kid("kid2"));
    assert_eq!(parks.settle("I park"), "wait");
    let mut blocked = agents.launch(&tree, "blocked", 1);
    blocked.does(&json!({"hello": {"capabilities": ["steer"]}}));
    blocked.take();
    blocked.call("report", json!({"activity": "tool"})).unwrap();
    blocked.launch(&kid("kid3"));
    let call = blocked.does(&json!({"send": ["wait", {"request_id": "w", "names": ["kid3"]}]}));
    tree.until_state("blocked", "waiting");
    // Both waiting ones are asked to park, and one does.
    tree.roost(["cap", "1"]).run().ok();
    parks.park();
    waits.await_note("park");
    waits.call("park_decline", json!({"not_before_ms": 60_000})).unwrap();
    tree.until_state("parks", "parked");
    tree.roost(["cap", "9"]).run().ok();
    // The clock: turns that say nothing come to their end, one after the other.
    for clock in ["clock1", "clock2", "clock3"] {
        let _stays = agents.start(&tree, clock, 0);
        assert_eq!(outcome_of(&tree.result(clock)), "idle_timeout");
    }
    let status = tree.status();
    let states: Vec<_> =
        ["tool", "waits", "parks", "blocked"].map(|name| by_name(&status, name)["state"].as_str().unwrap().to_owned()).into();
    // Inside of the call it may have lent its slot while the cap was low.
    assert!(states[..3] == ["running", "waiting", "parked"] && ["waiting", "blocked"].contains(&states[3].as_str()), "{states:?}");
    gate.release(3);
    assert_eq!(waits.texts(), ["K\n"]);
    waits.finish("W");
    let mut woken = agents.begins("parks");
    woken.does(&json!("hello"));
    assert_eq!(woken.texts(), ["K\n"]);
    woken.finish("P");
    assert_eq!(blocked.does(&json!({"answer": call}))["ended"][0]["name"], "kid3");
    blocked.finish("B");
    tool.finish("T");
    for (name, answer) in [("tool", "T"), ("waits", "W"), ("parks", "P"), ("blocked", "B")] {
        assert_eq!(tree.answer(name), answer);
    }
}
