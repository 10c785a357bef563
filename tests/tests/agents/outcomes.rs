//! What becomes of a worker that speaks: the table of outcomes, row by row, and what a bad connection or a stranger does to it.

use roost_tests::real::{Agents, Home, Lead, Tree, deaf, kind_of, outcome_of, scripted};
use serde_json::{Value, json};

struct Row {
    name: &'static str,
    script: Value,
    outcome: Value,
    answer: &'static str,
}

fn row(name: &'static str, script: Value, outcome: Value, answer: &'static str) -> Row {
    Row { name, script, outcome, answer }
}

fn settles(name: &'static str, with: Value, outcome: Value, answer: &'static str) -> Row {
    row(name, json!(["hello", "take", {"settle": with}]), outcome, answer)
}

fn failed(kind: &str) -> Value {
    json!({"status": "failed", "kind": kind})
}

fn error(kind: &str, message: &str) -> Value {
    json!({"error": {"kind": kind, "message": message}})
}

fn rows() -> Vec<Row> {
    let said = |ended: Value| json!({"answer": "X", "ended": ended});
    let early = json!(["hello", "take", {"call": ["report", {"text": "EARLY"}]}, {"settle": {"ended": error("provider", "boom")}}]);
    let boom = json!({"status": "failed", "kind": "provider", "message": "boom"});
    vec![
        settles("completed", json!({"answer": "X"}), json!({"status": "completed"}), "X"),
        settles("failed-empty", json!({"ended": error("provider", "boom")}), boom.clone(), ""),
        row("failed-early", early, boom.clone(), "EARLY"),
        settles("failed-said", said(error("provider", "boom")), boom.clone(), "X"),
        settles(
            "turn-limit",
            said(error("turn_limit", "40 turns")),
            json!({"status": "failed", "kind": "turn_limit", "message": "40 turns"}),
            "X",
        ),
        settles(
            "protocol-turn",
            said(error("protocol", "no JSON")),
            json!({"status": "failed", "kind": "protocol", "reason": "no JSON"}),
            "X",
        ),
        settles("aborted", said(json!({"aborted": true})), json!({"status": "aborted", "reason": "it was cut off"}), "X"),
        settles("wrapped-up", said(json!({"wrapped_up": true})), json!({"status": "wrapped_up"}), "X"),
        // Cut with text it is an answer; with none it is a failure.
        settles("truncated-said", said(json!({"truncated": true})), json!({"status": "completed"}), "X"),
        settles("truncated-empty", json!({"ended": {"truncated": true}}), failed("truncated"), ""),
        // Precedence: aborted > failed > wrapped up > completed.
        settles(
            "all-at-once",
            said(json!({"aborted": true, "wrapped_up": true, "error": {"kind": "provider", "message": "boom"}})),
            json!({"status": "aborted", "reason": "boom"}),
            "X",
        ),
        settles("failed-wrapped", said(json!({"wrapped_up": true, "error": {"kind": "provider", "message": "boom"}})), boom.clone(), "X"),
        settles("no-answer", json!({}), failed("no_answer"), ""),
        row("silent-exit", json!(["hello", "take", {"exit": 0}]), failed("no_answer"), ""),
        row(
            "unsettled-exit",
            json!(["hello", "take", {"call": ["report", {"text": "X"}]}, {"exit": 0}]),
            json!({"status": "failed", "kind": "protocol", "reason": "it left without having settled"}),
            "X",
        ),
        row(
            "exit-3",
            json!(["hello", "take", {"call": ["report", {"text": "X"}]}, {"exit": 3}]),
            json!({"status": "failed", "kind": "exit", "code": 3}),
            "X",
        ),
        row(
            "crash",
            json!(["hello", "take", {"call": ["report", {"text": "hi"}]}, {"kill": 9}]),
            json!({"status": "failed", "kind": "crash", "signal": 9}),
            "hi",
        ),
        // What is printed is no answer of one that speaks.
        row("printed", json!(["hello", "take", {"print": "noise"}, {"settle": {"answer": "X"}}]), json!({"status": "completed"}), "X"),
    ]
}

// B18, and the table of contract section 9.
#[test]
fn every_end_of_a_turn_has_its_outcome_and_keeps_its_text() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "4"]);
    let mut lead = Lead::new(&home, &tree);
    let rows = rows();
    let tasks: Vec<Value> = rows.iter().map(|row| scripted(&home, row.name, &row.script)).collect();
    for tasks in tasks.chunks(20) {
        tree.launch(json!(tasks));
    }
    let mut told: Vec<Value> = Vec::new();
    while told.len() < rows.len() {
        told.extend(lead.take()["items"].as_array().unwrap().iter().cloned());
    }
    let mut wrong = Vec::new();
    for row in &rows {
        let item = told.iter().find(|item| item["name"] == row.name).unwrap_or_else(|| panic!("{} was not told", row.name));
        let result = tree.result(row.name);
        let is_success = ["completed", "wrapped_up"].contains(&row.outcome["status"].as_str().unwrap());
        for said in [item, &result] {
            if said["outcome"] != row.outcome || said["answer"] != row.answer || (said["partial"] == true) == is_success {
                wrong.push(format!("{}: {} {:?} partial {}", row.name, said["outcome"], said["answer"], said["partial"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!((tree.status()["trees"][0]["live"].as_u64(), home.workers().len()), (Some(0), 0));
}

// B18: settled, then never exits.
#[test]
fn one_that_never_exits_after_it_settled_is_ended_and_has_answered() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1", "--set", "settle_to_exit=200ms"]);
    let stays = json!(["hello", "take", "deaf", {"settle": {"answer": "X"}}, "hang"]);
    tree.launch(json!([
        deaf(scripted(&home, "stays", &stays)),
        scripted(&home, "next", &json!(["hello", "take", {"settle": {"answer": "Y"}}]))
    ]));
    assert_eq!(tree.answer("stays"), "X");
    // The slot came back: the next one has it.
    assert_eq!(tree.answer("next"), "Y");
    assert_eq!(home.workers().len(), 0);
}

#[test]
fn a_stopped_worker_keeps_what_it_had_said_and_nobody_is_told() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let mut w = agents.start(&tree, "w", 0);
    w.call("report", json!({"text": "so far"})).unwrap();
    assert_eq!(tree.roost(["stop", "w"]).run().ok().text(), "w stopped\n");
    let result = tree.result("w");
    assert_eq!((outcome_of(&result), &result["answer"], &result["partial"]), ("stopped", &json!("so far"), &json!(true)));
    assert_eq!(lead.heard(), Vec::<Value>::new());
}

#[test]
fn a_stop_that_comes_after_the_settle_changes_nothing() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 0);
    assert_eq!(w.settle("X"), "exit");
    // Its process is still there, and goes with the stop.
    let reply = tree.wire().call("stop", &json!({"names": ["w"]})).unwrap();
    assert_eq!(reply["workers"][0]["result"], "already_settled");
    assert_eq!(tree.answer("w"), "X");
    assert_eq!(home.workers().len(), 0);
}

#[test]
fn a_resume_that_says_nothing_new_never_returns_the_earlier_answer() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    agents.start(&tree, "w", 0).finish("first");
    let first = lead.take()["items"][0].clone();
    assert_eq!(first["answer"], "first");
    let sent = lead.call("message", json!({"request_id": "m", "name": "w", "text": "again"})).unwrap();
    assert_eq!(sent["sent"]["status"], "resumed", "{sent}");
    let mut again = agents.begins("w");
    again.does(&json!("hello"));
    assert_eq!(again.texts(), ["again"]);
    assert_eq!(again.does(&json!({"settle": {}}))["next"], "exit");
    again.exit(0);
    let second = lead.take()["items"][0].clone();
    assert_eq!((outcome_of(&second), &second["answer"]), ("no_answer", &json!("")));
    assert_ne!(second["execution"], first["execution"]);
    // Each execution keeps its own.
    let read = lead.call("result", json!({"execution": first["execution"]})).unwrap();
    assert_eq!(read["ended"]["answer"], "first");
}

#[test]
fn garbage_and_lines_without_end_cost_a_worker_its_connection_at_most() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let settle = json!({"settle": {"answer": "X"}});
    let garbage = json!(["hello", "take", {"raw": "no JSON\n"}, {"raw": "{\"jsonrpc\":\"2.0\"}\n"}, {"raw": "\n\r\n"}, settle]);
    let endless = json!(["hello", "take", {"long": (8 << 20) + 1}, {"call": ["report", {}]}, settle]);
    let twice = json!(["hello", {"hello": {"keep": true}}, "take", settle]);
    let closes = json!(["hello", "close", "hello", "take", "close", "hello", settle]);
    let scripts = [("garbage", garbage), ("endless", endless), ("twice", twice), ("closes", closes)];
    tree.launch(scripts.iter().map(|(name, script)| scripted(&home, name, script)).collect());
    for (name, _) in &scripts {
        assert_eq!(tree.answer(name), "X", "{name}: {}", home.read(&format!("{name}.log")));
    }
}

#[test]
fn only_one_process_speaks_for_a_worker() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 1);
    // A child of its own has another identity; with its lead's it is another process.
    w.launch(&json!([agents.task("kid")]));
    let mut kid = agents.begins("kid");
    let stolen = json!({"tree": w.env["ROOST_TREE"], "worker": w.env["ROOST_WORKER"], "token": w.env["ROOST_TOKEN"], "epoch": 1});
    let refused = kid.tries(&json!({"hello": {"identity": stolen}})).unwrap_err();
    assert_eq!(kind_of(&refused), "unknown_identity", "{refused}");
    kid.begin();
    kid.finish("K");
    assert_eq!(w.texts(), ["K"]);
    w.finish("X");
    assert_eq!(tree.answer("w"), "X");
}
