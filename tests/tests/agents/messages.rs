//! Words between leads and children: who may, when they are refused, and that nothing accepted is lost.

use roost_tests::real::{Agents, Home, Lead, Tree, kind_of, outcome_of, scripted};
use serde_json::{Value, json};

fn message(name: &str, text: &str) -> Value {
    json!({"request_id": format!("{name} {text}"), "name": name, "text": text})
}

// B17 (a)-(c).
#[test]
fn a_parked_worker_takes_no_words_and_an_awake_one_sees_them_once() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "1"]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&json!([agents.task("C")]));
    assert_eq!(p.settle("asked"), "wait");
    p.park();
    let mut c = agents.begins("C");
    c.begin();
    let refused = lead.call("message", message("P", "too early")).unwrap_err();
    assert_eq!(kind_of(&refused), "parked", "{refused}");
    let refused = c.call("tell_lead", json!({"text": "are you there?"})).unwrap_err();
    assert_eq!(kind_of(&refused), "lead_parked", "{refused}");
    c.finish("R");
    let mut p = agents.begins("P");
    p.does(&json!("hello"));
    assert_eq!(p.texts(), ["R"]);
    let sent = lead.call("message", message("P", "now")).unwrap();
    assert_eq!(sent["sent"]["status"], "steering");
    // The same request again is the same message.
    assert_eq!(lead.call("message", message("P", "now")).unwrap()["message"], sent["message"]);
    assert_eq!(p.texts(), ["now"]);
    assert_eq!(p.does(&json!("heard")), json!([]));
    p.finish("done");
    assert_eq!(tree.answer("P"), "done");
}

// B17 (d).
#[test]
fn words_to_what_cannot_go_on_are_refused() {
    let home = Home::new();
    let (tree, mut gate) = (Tree::open(&home, &[]), home.fifo("gate"));
    let mut lead = Lead::new(&home, &tree);
    let unsaved = json!(["hello", "take", {"settle": {"answer": "X", "context": null}}]);
    tree.launch(json!([scripted(&home, "unsaved", &unsaved)]));
    assert_eq!(tree.answer("unsaved"), "X");
    assert_eq!(kind_of(&lead.call("message", message("unsaved", "more")).unwrap_err()), "not_resumable");
    tree.spawn("command", "read x <$F/gate");
    assert_eq!(kind_of(&lead.call("message", message("command", "more")).unwrap_err()), "not_steerable");
    gate.release(1);
    tree.answer("command");
    assert_eq!(kind_of(&lead.call("message", message("command", "more")).unwrap_err()), "not_resumable");
    assert_eq!(kind_of(&lead.call("message", message("nobody", "more")).unwrap_err()), "unknown_worker");
}

// B17 (e).
#[test]
fn two_hundred_messages_around_a_settle_are_all_read_once() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let mut lead = Lead::new(&home, &tree);
    tree.launch(json!([scripted(&home, "w", &json!(["hello", {"serve": "ok"}]))]));
    let mut accepted = Vec::new();
    for number in 0..200 {
        let text = format!("message {number}");
        if lead.call("message", message("w", &text)).is_ok() {
            accepted.push(text);
        }
    }
    let read = || {
        let log = home.read("w.log");
        let served = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let items = served.flat_map(|line| line["served"]["items"].as_array().cloned().unwrap_or_default());
        items.filter(|item| item["type"] == "lead_message").map(|item| item["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    tree.until("all messages read", |status| status["workers"][0]["state"] == "ended" && read().len() >= accepted.len());
    // In their order, and each once.
    assert_eq!(read(), accepted);
    assert_eq!(accepted.len(), 200);
    assert!(lead.heard().iter().all(|note| !note.to_string().contains("undelivered")));
}

#[test]
fn late_steer_returned() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let w = agents.start(&tree, "w", 0);
    let sent = lead.call("message", message("w", "too late")).unwrap();
    assert_eq!(sent["sent"]["status"], "steering");
    // It ends without having read it.
    w.exit(7);
    let mut items = Vec::new();
    while items.len() < 2 {
        items.extend(lead.take()["items"].as_array().unwrap().clone());
    }
    let back = items.iter().find(|item| item["type"] == "undelivered").unwrap();
    assert_eq!((&back["message"], &back["to"], &back["text"]), (&sent["message"], &json!("w"), &json!("too late")));
    assert!(items.iter().any(|item| outcome_of(item) == "exit"));
    assert!(lead.owed().is_empty());
}

#[test]
fn name_reuse() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    drop(agents.start(&tree, "w", 0));
    tree.result("w");
    let taken = tree.roost(["spawn", "--json", "--name", "W", "--", "cat"]).run().expect(1).json();
    assert_eq!(taken["error"]["kind"], "name_taken");
    // Words for the one that is gone reach nobody else.
    assert_eq!(kind_of(&lead.call("message", message("w", "old")).unwrap_err()), "not_resumable");
}

#[test]
fn words_with_a_larger_allowance_let_a_worker_launch() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--budget", "10"]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let mut w = agents.start(&tree, "w", 0);
    let task = json!([{"argv": ["true"]}]);
    assert_eq!(kind_of(&w.tries(&json!({"launch": task})).unwrap_err()), "budget");
    w.finish("none");
    let left = || tree.status()["trees"][0]["budget_remaining"].as_u64();
    assert_eq!(left(), Some(9));
    let raise = |to: u64| json!({"request_id": format!("raise {to}"), "name": "w", "text": "more", "max_subagents_allowed": to});
    lead.call("message", raise(2)).unwrap();
    assert_eq!(left(), Some(7));
    let mut w = agents.begins("w");
    w.does(&json!("hello"));
    assert_eq!(w.texts(), ["more"]);
    // Lower gives nothing back, back to where it was draws nothing, and too much is refused as a whole.
    for to in [1, 2] {
        let lead_again = json!({"request_id": format!("to {to}"), "name": "w", "text": "so many", "max_subagents_allowed": to});
        lead.call("message", lead_again).unwrap();
        assert_eq!((w.texts(), left()), (vec!["so many".to_owned()], Some(7)));
    }
    assert_eq!(kind_of(&lead.call("message", raise(100)).unwrap_err()), "budget");
    w.launch(&json!([{"argv": ["true"]}, {"argv": ["true"]}]));
    assert_eq!(kind_of(&w.tries(&json!({"launch": task})).unwrap_err()), "budget");
    // What is given out cannot be taken back.
    assert_eq!(kind_of(&lead.call("message", raise(0)).unwrap_err()), "bad_value");
    assert_eq!(left(), Some(7));
}

#[test]
fn a_saved_worker_is_resumed_after_the_whole_daemon_was_killed() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    agents.start(&tree, "w", 0).finish("first");
    assert_eq!(tree.answer("w"), "first");
    home.kill_daemon();
    home.roost(["daemon", "start"]).run().ok();
    tree.roost(["message", "w", "go on"]).run().ok();
    let mut w = agents.begins("w");
    assert!(w.env["ROOST_CONTEXT"].is_string(), "{}", w.env);
    w.does(&json!("hello"));
    assert_eq!(w.texts(), ["go on"]);
    w.finish("second");
    assert_eq!(tree.answer("w"), "second");
}

// B23, and B26 as far as names are addresses.
#[test]
fn foreign_control_matrix() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let other = Tree::open(&home, &[]);
    let (mut lead, mut stranger) = (Lead::new(&home, &tree), Lead::new(&home, &other));
    let mut p1 = agents.start(&tree, "P1", 1);
    let mut p2 = agents.start(&tree, "P2", 1);
    p1.launch(&json!([agents.task("reviewer-🦀")]));
    p2.launch(&json!([agents.task("reviewer é")]));
    let (mut c1, mut c2) = (agents.begins("reviewer-🦀"), agents.begins("reviewer é"));
    c1.begin();
    c2.begin();
    let refused = |tries: &mut dyn FnMut(&str, Value) -> Result<Value, Value>, who: &str, target: &str| {
        for (method, with) in [("message", json!({"name": target, "text": "hm"})), ("stop", json!({"names": [target]}))] {
            let mut with_id = with.clone();
            with_id["request_id"] = json!(format!("{who} {method} {target}"));
            let error = tries(method, with_id).unwrap_err();
            assert_eq!(kind_of(&error), "unknown_worker", "{who} {method} {target}: {error}");
            // The same words as for a name that nobody has.
            let nobody =
                tries(method, json!({"request_id": format!("{who} {method}"), "name": "nobody", "names": ["nobody"], "text": "hm"}))
                    .unwrap_err();
            assert_eq!(error.to_string().replace(target, "nobody"), nobody.to_string());
        }
    };
    for target in ["reviewer-🦀", "reviewer é"] {
        refused(&mut |method, with| lead.call(method, with), "grandparent", target);
        refused(&mut |method, with| stranger.call(method, with), "stranger", target);
    }
    for target in ["P1", "P2"] {
        refused(&mut |method, with| stranger.call(method, with), "stranger", target);
        refused(&mut |method, with| c1.call(method, with), "grandchild", target);
    }
    refused(&mut |method, with| p1.call(method, with), "sibling", "P2");
    refused(&mut |method, with| p1.call(method, with), "itself", "P1");
    refused(&mut |method, with| p1.call(method, with), "uncle", "reviewer é");
    refused(&mut |method, with| c1.call(method, with), "cousin", "reviewer é");
    refused(&mut |method, with| c1.call(method, with), "itself", "reviewer-🦀");
    // B23 (d), (g): another's owner id does not help, and one bad name leaves all alone.
    let mixed = json!({"tree": p1.env["ROOST_TREE"], "worker": p2.env["ROOST_WORKER"], "token": p1.env["ROOST_TOKEN"], "epoch": 1});
    assert_eq!(kind_of(&p1.tries(&json!({"hello": {"identity": mixed}})).unwrap_err()), "unknown_identity");
    assert_eq!(kind_of(&p2.call("stop", json!({"names": ["reviewer é", "nosuch"]})).unwrap_err()), "unknown_worker");
    // Nobody was touched, and nobody read a word. The owner may.
    for agent in [&mut c1, &mut c2] {
        assert_eq!(agent.does(&json!("heard")), json!([]));
    }
    p2.call("message", message("reviewer é", "well")).unwrap();
    assert_eq!(c2.texts(), ["well"]);
    p1.does(&json!("hello"));
    assert_eq!(p1.call("stop", json!({"names": ["reviewer-🦀"]})).unwrap()["workers"][0]["result"], "stopped");
    assert_eq!(outcome_of(&tree.worker("reviewer é")), "none");
}

#[test]
fn an_old_process_and_an_old_token_are_refused() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "1"]), Agents::new(&home));
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&json!([{"argv": ["true"]}]));
    p.settle("asked");
    p.park();
    let mut p = agents.begins("P");
    let old = json!({"tree": p.env["ROOST_TREE"], "worker": p.env["ROOST_WORKER"], "token": p.env["ROOST_TOKEN"], "epoch": 1});
    assert_eq!(kind_of(&p.tries(&json!({"hello": {"identity": old}})).unwrap_err()), "stale_epoch");
    p.does(&json!("hello"));
    p.take();
    p.finish("done");
    assert_eq!(tree.answer("P"), "done");
}

#[test]
fn a_childs_words_come_before_its_end() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let mut w = agents.start(&tree, "w", 0);
    for number in 0..3 {
        w.call("tell_lead", json!({"text": format!("word {number}")})).unwrap();
    }
    w.finish("end");
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.extend(
            lead.take()["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["text"].as_str().or(item["answer"].as_str()).unwrap().to_owned()),
        );
    }
    assert_eq!(seen, ["word 0", "word 1", "word 2", "end"]);
}
