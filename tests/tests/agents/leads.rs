//! What a lead is told and when: modes, joins, notices, back-pressure, and stops that are not its own.

use roost_tests::real::{Agents, Home, Lead, Tree, kind_of, outcome_of};
use serde_json::{Value, json};

fn names(delivery: &Value) -> Vec<&str> {
    delivery["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn each_mode_is_told_with_the_welcome_and_decides_what_is_pushed_and_what_wakes() {
    for (mode, wakes) in [("steer", true), ("follow_up", true), ("next_turn", false)] {
        let home = Home::new();
        let tree = Tree::open(&home, &["--delivery", mode]);
        let mut lead = Lead::new(&home, &tree);
        assert_eq!(lead.welcome["delivery"], mode);
        tree.spawn("w", "echo R");
        let taken = lead.take();
        assert_eq!((names(&taken), taken["wake"].as_bool()), (vec!["w"], Some(wakes)), "{mode}");
    }
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--delivery", "passive"]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let mut w = agents.start(&tree, "w", 0);
    w.call("tell_lead", json!({"text": "words come all the same"})).unwrap();
    w.finish("R");
    tree.until_state("w", "ended");
    assert_eq!(lead.take()["items"][0]["text"], "words come all the same");
    assert_eq!(lead.heard(), Vec::<Value>::new());
    assert_eq!(lead.call("result", json!({"name": "w"})).unwrap()["ended"]["answer"], "R");
}

/// Two children in one launch, with this time for the first one to wait for the second.
fn joined<'a>(home: &'a Home, agents: &mut Agents<'_>, hold: &str) -> (Tree<'a>, Lead) {
    let flags = ["--delivery", "follow_up", "--join", "group", "--set", "join_window=50ms", "--set", "join_straggler=50ms"];
    let tree = Tree::open(home, &[&flags[..], &["--set", hold]].concat());
    let lead = Lead::new(home, &tree);
    tree.launch(json!([agents.task("a"), agents.task("b")]));
    (tree, lead)
}

#[test]
fn ends_of_a_group_are_announced_as_one() {
    let home = Home::new();
    let mut agents = Agents::new(&home);
    let (tree, mut lead) = joined(&home, &mut agents, "join_hold=1h");
    for name in ["a", "b"] {
        let mut agent = agents.begins(name);
        agent.begin();
        agent.finish(name);
        tree.until_state(name, "ended");
    }
    let taken = lead.take();
    assert_eq!((names(&taken), taken["active_children"].as_u64()), (vec!["a", "b"], Some(0)));
    assert!(lead.heard().is_empty());
}

#[test]
fn a_group_that_takes_too_long_is_announced_in_parts() {
    let home = Home::new();
    let mut agents = Agents::new(&home);
    let (_tree, mut lead) = joined(&home, &mut agents, "join_hold=100ms");
    let (mut a, mut b) = (agents.begins("a"), agents.begins("b"));
    a.begin();
    b.begin();
    a.finish("A");
    let taken = lead.take();
    assert_eq!((names(&taken), taken["active_children"].as_u64()), (vec!["a"], Some(1)));
    b.finish("B");
    assert_eq!(names(&lead.take()), ["b"]);
}

#[test]
fn a_stopped_member_of_a_group_counts_as_arrived() {
    let home = Home::new();
    let mut agents = Agents::new(&home);
    let (tree, mut lead) = joined(&home, &mut agents, "join_hold=1h");
    let (mut a, mut b) = (agents.begins("a"), agents.begins("b"));
    a.begin();
    b.begin();
    a.finish("A");
    tree.until_state("a", "ended");
    assert!(lead.heard().is_empty());
    tree.roost(["stop", "b"]).run().ok();
    assert_eq!(names(&lead.take()), ["a"]);
}

#[test]
fn notices_of_one_worker_become_one() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&json!([{"name": "kid", "argv": ["sleep", "600"]}]));
    // Nobody takes the notices in: the newest stands for all.
    for turn in 0..3 {
        assert_eq!(p.settle(&format!("turn {turn}")), "wait");
        tree.roost(["message", "P", "again"]).run().ok();
        assert_eq!(p.texts(), ["again"]);
    }
    let owed = lead.owed();
    assert_eq!((owed.len(), &owed[0]["type"], &owed[0]["text"]), (1, &json!("notice"), &json!("turn 2")), "{owed:?}");
    // A notice wakes nobody and ends nothing.
    assert!(lead.heard().iter().all(|note| note["params"]["wake"] != true));
    assert_eq!(outcome_of(&tree.worker("P")), "none");
}

#[test]
fn a_lead_that_takes_nothing_in_is_warned_and_then_launches_no_more() {
    let home = Home::in_memory();
    let tree = Tree::open(&home, &["--budget", "300"]);
    let mut lead = Lead::new(&home, &tree);
    let tasks: Vec<Value> = (0..20).map(|_| json!({"argv": ["true"]})).collect();
    let mut warned = Vec::new();
    for _ in 0..10 {
        let receipt = tree.launch(json!(tasks));
        warned.push(receipt["warnings"].as_array().is_some_and(|warnings| !warnings.is_empty()));
        tree.until("all ended", |status| status["trees"][0]["live"] == 0 && status["trees"][0]["queued"] == 0);
    }
    // With 20 owed no word of it, with 40 there is.
    assert_eq!(warned[..4], [false, false, true, true]);
    let refused = tree.roost(["spawn", "--json", "--", "true"]).run();
    assert_ne!(refused.code(), 0);
    assert_eq!(refused.json()["error"]["kind"], "backpressure");
    let mut taken = 0;
    while taken < 200 {
        taken += lead.take()["items"].as_array().unwrap().len();
    }
    tree.roost(["spawn", "--", "true"]).run().ok();
}

#[test]
fn a_stop_that_is_not_the_leads_own_is_told_once() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    drop(Lead::new(&home, &tree));
    let mut w = agents.start(&tree, "w", 0);
    w.call("report", json!({"text": "half"})).unwrap();
    // No command lets anybody else stop one worker; the end of the daemon stops them all.
    home.roost(["daemon", "stop", "--now"]).run().ok();
    home.roost(["daemon", "start"]).run().ok();
    let mut lead = Lead::new(&home, &tree);
    let taken = lead.take();
    assert_eq!((names(&taken), outcome_of(&taken["items"][0])), (vec!["w"], "stopped"));
    assert_eq!((&taken["items"][0]["answer"], &taken["items"][0]["partial"]), (&json!("half"), &json!(true)));
    assert!(Lead::new(&home, &tree).heard().is_empty());
}

#[test]
fn an_observer_and_a_caller_are_pushed_nothing() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let mut eye = tree.wire();
    tree.spawn("w", "echo R");
    tree.until_state("w", "ended");
    eye.call("inbox", &json!({})).unwrap();
    assert!(eye.notes().is_empty());
    let mut lead = Lead::new(&home, &tree);
    let refused = eye.call("ack", &json!({"items": [1]})).unwrap_err();
    assert_eq!(kind_of(&refused), "stale_lease");
    assert_eq!(names(&lead.take()), ["w"]);
}
