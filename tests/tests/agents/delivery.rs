//! Completions reach a lead that is busy, cut off, replaced or slow exactly once.

use std::time::Duration;

use roost_tests::real::{Agent, Agents, Home, Lead, Tree, kind_of};
use serde_json::{Value, json};

fn kid() -> Value {
    json!([{"name": "kid", "argv": ["sh", "-c", "read x <$F/gate; echo R"]}])
}

/// How many ends the agent's acknowledgements took in.
fn accepted(delivery: &Value) -> usize {
    delivery["acked"]["accepted"].as_array().unwrap().len()
}

/// P in the middle of a turn, with a child whose end it is owed: it has been pushed.
fn busy_parent<'a>(home: &'a Home, agents: &mut Agents<'_>) -> (Tree<'a>, Agent) {
    let mut gate = home.fifo("gate");
    let tree = Tree::open(home, &[]);
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&kid());
    gate.release(1);
    tree.until_state("kid", "ended");
    (tree, p)
}

/// P ends, and the whole of it was told once: one more hello brings nothing.
fn told_once(tree: &Tree<'_>, mut p: Agent) {
    // What came a second time on this connection was dropped by its number.
    p.does(&json!("heard"));
    p.does(&json!("hello"));
    assert_eq!(p.does(&json!("heard")), json!([]), "a repeat");
    p.finish("done");
    assert_eq!(tree.answer("P"), "done");
    let usage = tree.wire().call("usage", &json!({"each": true})).unwrap();
    assert_eq!((usage["totals"]["workers"].as_u64(), usage["workers"].as_array().unwrap().len()), (Some(2), 2), "{usage}");
}

// B15: the turn ends with the item owed, and a new one begins for it.
#[test]
fn a_turn_that_ends_with_a_completion_owed_is_followed_by_one_that_takes_it_in() {
    let home = Home::new();
    let mut agents = Agents::new(&home);
    let (tree, mut p) = busy_parent(&home, &mut agents);
    assert_eq!(p.settle("I did not look"), "go_on");
    let taken = p.take();
    assert_eq!((accepted(&taken), &taken["items"][0]["answer"]), (1, &json!("R\n")));
    told_once(&tree, p);
}

// B15: three new connections, and one that is cut after the item was written and before it was acknowledged.
#[test]
fn a_completion_is_pushed_again_after_each_hello_and_taken_in_once() {
    let home = Home::new();
    let mut agents = Agents::new(&home);
    let (tree, mut p) = busy_parent(&home, &mut agents);
    let mut executions = Vec::new();
    for _ in 0..3 {
        let delivery = p.does(&json!({"take": {"ack": false}}));
        executions.push(delivery["items"][0]["execution"].clone());
        p.does(&json!("close"));
        p.does(&json!("hello"));
    }
    assert!(executions.iter().all(|execution| *execution == executions[0]));
    assert_eq!(accepted(&p.take()), 1);
    told_once(&tree, p);
}

// B15: a broker that goes before the acknowledgement, and one that goes after it.
#[test]
fn brokers_that_die_around_an_acknowledgement_change_nothing() {
    let home = Home::new();
    let mut agents = Agents::new(&home);
    let (tree, mut p) = busy_parent(&home, &mut agents);
    let before = p.does(&json!({"take": {"ack": false}}));
    home.kill_broker();
    p.does(&json!("hello"));
    let taken = p.take();
    assert_eq!((accepted(&taken), &taken["items"][0]["execution"]), (1, &before["items"][0]["execution"]));
    home.kill_broker();
    told_once(&tree, p);
}

// B15: fetched in the moment of the push.
#[test]
fn what_was_read_before_it_was_taken_in_is_gone() {
    let home = Home::new();
    let mut agents = Agents::new(&home);
    let (tree, mut p) = busy_parent(&home, &mut agents);
    let pushed = p.does(&json!({"take": {"ack": false}}));
    assert_eq!(p.call("result", json!({"name": "kid", "wait": true})).unwrap()["ended"]["answer"], "R\n");
    assert_eq!(p.await_note("withdraw")["items"][0], pushed["items"][0]["seq"]);
    let acked = p.call("ack", json!({"items": [pushed["items"][0]["seq"]]})).unwrap();
    assert_eq!(acked, json!({"accepted": [], "gone": [pushed["items"][0]["seq"]]}));
    told_once(&tree, p);
}

// B16: thirty workers, a broker that dies while each of them runs, and now and then the supervisor with it.
#[test]
fn no_completion_is_lost_or_told_twice_while_daemons_die() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "100"]);
    let mut lead = Lead::new(&home, &tree);
    let mut seed = 7_u64;
    let mut told = Vec::new();
    for round in 0..30 {
        tree.spawn(&format!("w{round}"), &format!("sleep 0.1; echo R-{round}"));
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The case's own random moment.
        std::thread::sleep(Duration::from_millis((seed >> 33) % 150));
        // A broker that dies again and again is started later and later; with another supervisor that begins anew.
        if round % 4 == 3 {
            home.kill_daemon();
            home.roost(["daemon", "start"]).run().ok();
        } else {
            home.kill_broker();
        }
        told.extend(lead.told().to_vec());
        lead = Lead::new(&home, &tree);
    }
    while told.len() + lead.told().len() < 30 {
        let delivery = lead.take();
        for item in delivery["items"].as_array().unwrap() {
            let expected = format!("R-{}\n", item["name"].as_str().unwrap().trim_start_matches('w'));
            let is_lost = item["outcome"]["kind"] == "lost";
            assert!(is_lost || item["answer"] == json!(expected), "{item}");
        }
    }
    told.extend(lead.told().to_vec());
    let distinct: std::collections::BTreeSet<String> = told.iter().map(Value::to_string).collect();
    assert_eq!((told.len(), distinct.len()), (30, 30));
    let mut lead = Lead::new(&home, &tree);
    assert_eq!(lead.heard(), Vec::<Value>::new());
    assert_eq!(tree.status()["trees"][0]["live"], 0);
}

// B16: the parent's client is away.
#[test]
fn recipient_gone_then_back() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let lead = Lead::new(&home, &tree);
    drop(lead);
    for name in ["a", "b"] {
        tree.spawn(name, "echo R");
        tree.until_state(name, "ended");
    }
    home.kill_daemon();
    home.roost(["daemon", "start"]).run().ok();
    let mut lead = Lead::new(&home, &tree);
    let taken = lead.take();
    let names: Vec<&Value> = taken["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(Lead::new(&home, &tree).heard().is_empty());
}

#[test]
fn two_windows_one_session() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let mut first = Lead::new(&home, &tree);
    tree.spawn("a", "echo R");
    let pushed = first.delivery();
    let mut second = Lead::new(&home, &tree);
    first.note("lease_lost");
    let refused = first.call("ack", json!({"items": [pushed["items"][0]["seq"]]})).unwrap_err();
    assert_eq!(kind_of(&refused), "stale_lease");
    let taken = second.take();
    assert_eq!(taken["items"][0]["execution"], pushed["items"][0]["execution"]);
    tree.spawn("b", "echo R");
    assert_eq!(second.take()["items"][0]["name"], "b");
    assert!(first.heard().is_empty(), "the old window is told nothing more");
    // Back to the first: nothing comes twice.
    assert!(Lead::new(&home, &tree).heard().is_empty());
}

#[test]
fn pull_then_push() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let mut lead = Lead::new(&home, &tree);
    tree.spawn("w", "echo R");
    let read = lead.call("result", json!({"name": "w", "wait": true})).unwrap();
    assert_eq!(read["ended"]["answer"], "R\n");
    // Pushed before or not: it is owed no more, and no acknowledgement takes it in.
    for note in lead.heard() {
        if note["method"] == "deliver" {
            assert!(lead.ack(&note["params"])["accepted"].as_array().unwrap().is_empty());
        }
    }
    assert!(lead.owed().is_empty() && lead.told().is_empty());
    assert!(Lead::new(&home, &tree).heard().is_empty());
}

#[test]
fn push_then_pull() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let mut lead = Lead::new(&home, &tree);
    tree.spawn("w", "echo R");
    lead.take();
    let read = lead.call("result", json!({"name": "w"})).unwrap();
    assert_eq!((&read["ended"]["answer"], &read["ended"]["told_before"]), (&json!("R\n"), &json!(true)));
    assert!(lead.heard().is_empty());
    assert_eq!(lead.told().len(), 1);
}

#[test]
fn fan_in_200() {
    let home = Home::in_memory();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "1", "--budget", "300"]), Agents::new(&home));
    let mut p = agents.start(&tree, "P", 200);
    let tasks = |from: usize| (from..from + 20).map(|number| json!({"argv": ["printf", number.to_string()]})).collect::<Value>();
    for from in (0..200).step_by(20) {
        p.launch(&tasks(from));
    }
    assert_eq!(p.settle("asked two hundred"), "wait");
    p.park();
    let mut p = agents.begins("P");
    p.does(&json!("hello"));
    let taken = p.take();
    let answers: Vec<String> = taken["items"].as_array().unwrap().iter().map(|item| item["answer"].as_str().unwrap().to_owned()).collect();
    let expected: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    assert_eq!(answers, expected);
    // One wake, for all of them.
    assert_eq!(p.env["ROOST_EPOCH"], "2");
    p.finish("done");
    assert_eq!(tree.answer("P"), "done");
}
