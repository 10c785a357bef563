//! Few descriptors and few processes: who comes too late is told so, what runs goes on, and no answer is wrong for want of a file.

use std::time::Duration;

use roost_tests::real::{Home, ProcessLimit, Tree, Wire, by_name, kind_of, outcome_of};
use serde_json::json;

#[test]
fn with_256_descriptors_300_connections_do_not_disturb_a_tree() {
    let home = Home::new();
    home.sh("ulimit -n 256; exec roostd --detach").run().ok();
    let before = home.daemon();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "8"]);
    for number in 0..8 {
        tree.spawn(
            &format!("w{number}"),
            r#"echo up >"$F/events"; read x <"$F/gate"; roost daemon status >/dev/null 2>&1; printf 'an answer'"#,
        );
    }
    events.lines(8);
    let mut root = tree.wire();
    let mut inside = Vec::new();
    let mut refused = 0;
    for _ in 0..300 {
        let mut wire = Wire::connect(&home.socket());
        let params = json!({"protocol_min": 1, "protocol_max": 1, "client": "one of many"});
        // One that was shown out may have closed before the hello was sent.
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": params});
        wire.bytes(format!("{line}\n").as_bytes()).ok();
        // Nobody waits: inside or not is known at once.
        let answer = wire.answer(Duration::from_secs(5)).expect("an answer");
        if answer["error"].is_null() {
            inside.push(wire);
        } else {
            assert_eq!(kind_of(&answer["error"]), "limit", "{answer}");
            refused += 1;
        }
    }
    assert!(inside.len() > 100 && refused > 40, "{} inside, {refused} refused", inside.len());
    // Whoever is inside is served, the workers end, and their answers are whole.
    gate.release(8);
    for number in 0..8 {
        let reply = root.call("result", &json!({"name": format!("w{number}"), "wait": true})).unwrap();
        let result = &reply["ended"];
        assert_eq!((&result["outcome"]["status"], &result["answer"]), (&json!("completed"), &json!("an answer")), "{result}");
    }
    drop(inside);
    tree.spawn("after", "printf after");
    assert_eq!((tree.answer("after").as_str(), home.daemon()), ("after", before));
}

#[test]
fn a_start_that_finds_no_process_is_tried_again() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "4"]);
    let pids = home.daemon();
    let Some(limit) = ProcessLimit::around(pids.supervisor) else { return };
    limit.close();
    tree.spawn("later", "printf 'started after all'");
    tree.until("a further try", |status| by_name(status, "later")["reason"].as_str().is_some_and(|reason| reason.contains("tried again")));
    assert!(limit.refusals() > 0);
    limit.open();
    assert_eq!(tree.answer("later"), "started after all");
    // For good: its own failure, with the cause.
    limit.close();
    tree.spawn("never", "true");
    let worker = tree.until_state("never", "ended");
    assert_eq!(outcome_of(&worker), "spawn");
    assert!(worker["outcome"]["reason"].as_str().unwrap().contains("Resource temporarily unavailable"), "{worker}");
    limit.open();
    tree.spawn("after", "printf after");
    assert_eq!((tree.answer("after").as_str(), home.daemon()), ("after", pids));
}
