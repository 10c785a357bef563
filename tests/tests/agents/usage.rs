//! What work has cost: each report once, each execution once, whatever is repeated, woken, stopped or resumed.

use roost_tests::real::{Agent, Agents, Home, Lead, Tree, by_name, outcome_of};
use serde_json::{Value, json};

fn usage(sequence: u64, input: u64, cost: u64) -> Value {
    json!({"sequence": sequence, "input": input, "output": 0, "cache_read": 0, "cache_write": 0, "cost": cost, "turns": 1, "tool_calls": 0})
}

fn reports(agent: &mut Agent, usage: Value) {
    agent.call("report", json!({"usage": usage})).unwrap();
}

fn of(tree: &Tree<'_>, name: &str) -> Value {
    let reply = tree.wire().call("usage", &json!({"each": true})).unwrap();
    by_name(&reply, name).clone()
}

fn total(tree: &Tree<'_>) -> Value {
    tree.wire().call("usage", &json!({})).unwrap()["totals"].take()
}

// B22.
#[test]
fn a_stop_reaches_the_subtree_keeps_its_usage_and_tells_its_owner_nothing() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "4", "--budget", "12"]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let mut a = agents.start(&tree, "A", 3);
    let mut d = agents.start(&tree, "D", 0);
    let mut task = agents.task("A1");
    task["max_subagents_allowed"] = json!(1);
    a.launch(&json!([task]));
    let mut a1 = agents.begins("A1");
    a1.begin();
    a1.launch(&json!([agents.task("A1a")]));
    let mut a1a = agents.begins("A1a");
    a1a.begin();
    for agent in [&mut a, &mut a1, &mut a1a] {
        reports(agent, usage(1, 100, 250_000_000));
    }
    a.launch(&json!([{"name": "A2", "argv": ["sh", "-c", "touch $F/M"]}]));
    tree.launch(json!([agents.task("B")]));
    let left = || tree.status()["trees"][0]["budget_remaining"].as_u64();
    assert_eq!((tree.worker("B")["state"].as_str(), left()), (Some("queued"), Some(6)));
    tree.roost(["stop", "A"]).run().ok();
    // B has its slot, and so whatever of A would start has had its turn.
    let mut b = agents.begins("B");
    b.begin();
    let status = tree.status();
    for name in ["A", "A1", "A1a", "A2"] {
        assert_eq!(outcome_of(by_name(&status, name)), "stopped", "{name}");
    }
    assert!(by_name(&status, "A2")["started_at_ms"].is_null() && !home.file("M").exists());
    assert_eq!((total(&tree)["total"]["input"].as_u64(), total(&tree)["total"]["cost"].as_u64()), (Some(300), Some(750_000_000)));
    assert_eq!((of(&tree, "A2")["own"]["input"].as_u64(), left()), (Some(0), Some(6)));
    assert!(lead.heard().is_empty());
    reports(&mut d, usage(1, 1, 1));
    d.finish("D");
    b.finish("B");
    assert_eq!((tree.answer("D"), tree.answer("B")), ("D".into(), "B".into()));
}

// B24 (i), (iii), (v).
#[test]
fn reports_replace_each_other_and_an_unknown_price_is_no_zero() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 0);
    let said = |sequence: u64, output: u64| json!({"sequence": sequence, "input": 100, "output": output, "cache_read": 900, "cache_write": 50, "cost": 250_000_000, "turns": 1, "tool_calls": 0, "context_tokens": 1070});
    for (sequence, output) in [(1, 1), (2, 8), (3, 20), (2, 8), (3, 99)] {
        reports(&mut w, said(sequence, output));
    }
    let own = of(&tree, "w")["own"].clone();
    let counts = ["input", "cache_read", "cache_write", "output"].map(|name| own[name].as_u64().unwrap());
    assert_eq!((counts, counts.iter().sum::<u64>()), ([100, 900, 50, 20], 1070));
    let mut unknown = said(4, 20);
    unknown["cost_unknown"] = json!(true);
    reports(&mut w, unknown);
    let own = of(&tree, "w")["own"].clone();
    assert_eq!((&own["cost"], &own["cost_unknown"]), (&json!(250_000_000), &json!(true)));
    // What is no number is refused, and changes nothing.
    for cost in [json!(null), json!(-1), json!(0.25), json!("NaN"), json!(u64::MAX)] {
        let mut wrong = said(5, 20);
        wrong["cost"] = cost;
        w.call("report", json!({"usage": wrong})).unwrap_err();
    }
    assert_eq!(of(&tree, "w")["own"], own);
    w.finish("X");
    let result = tree.result("w");
    assert_eq!((&result["usage"]["own"], result["usage"]["workers"].as_u64()), (&own, Some(1)));
}

// B25.
#[test]
fn nested_totals_count_each_worker_once() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut lead = Lead::new(&home, &tree);
    let with = |input: u64, cost: u64, context: u64| {
        let mut usage = usage(1, input, cost);
        usage["context_tokens"] = json!(context);
        usage
    };
    lead.call("report", json!({"usage": with(1000, 500_000_000, 9000)})).unwrap();
    let mut a = agents.start(&tree, "A", 2);
    let mut task = agents.task("B");
    task["max_subagents_allowed"] = json!(1);
    a.launch(&json!([task]));
    let mut b = agents.begins("B");
    b.begin();
    b.launch(&json!([agents.task("C")]));
    let mut c = agents.begins("C");
    c.begin();
    reports(&mut c, with(4, 62_500_000, 6));
    c.finish("C");
    assert_eq!(b.texts(), ["C"]);
    reports(&mut b, with(30, 125_000_000, 70));
    b.finish("B");
    // The completion comes a second time.
    a.does(&json!({"take": {"ack": false}}));
    a.does(&json!("hello"));
    assert_eq!(a.texts(), ["B"]);
    reports(&mut a, with(200, 250_000_000, 800));
    a.finish("A");
    let taken = lead.take();
    let told = &taken["items"][0]["usage"];
    assert_eq!(
        (told["total"]["input"].as_u64(), told["total"]["cost"].as_u64(), told["workers"].as_u64()),
        (Some(234), Some(437_500_000), Some(3))
    );
    // Once more to A, which uses nothing new.
    lead.call("message", json!({"request_id": "m", "name": "A", "text": "again"})).unwrap();
    let mut a = agents.begins("A");
    a.does(&json!("hello"));
    a.take();
    a.finish("A");
    assert_eq!(tree.answer("A"), "A");
    let all = total(&tree);
    assert_eq!(
        (all["total"]["input"].as_u64(), all["total"]["cost"].as_u64(), all["workers"].as_u64()),
        (Some(1234), Some(937_500_000), Some(3)),
        "{all}"
    );
    assert_eq!(of(&tree, "A")["context_tokens"], 800);
}

#[test]
fn usage_once() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "1"]), Agents::new(&home));
    let mut p = agents.start(&tree, "P", 1);
    p.launch(&json!([agents.task("kid")]));
    reports(&mut p, usage(1, 10, 100));
    p.settle("asked");
    p.park();
    let mut kid = agents.begins("kid");
    kid.begin();
    reports(&mut kid, usage(1, 5, 50));
    // The same report again, over another connection and to another broker.
    home.kill_broker();
    kid.does(&json!("hello"));
    reports(&mut kid, usage(1, 5, 50));
    kid.finish("K");
    // The next process counts from zero again: its own use comes on top.
    let mut p = agents.begins("P");
    p.does(&json!("hello"));
    p.take();
    reports(&mut p, usage(1, 7, 70));
    p.finish("done");
    let result = tree.result("P");
    let counted = |usage: &Value| (usage["input"].as_u64().unwrap(), usage["cost"].as_u64().unwrap());
    assert_eq!((counted(&result["usage"]["own"]), counted(&result["usage"]["total"])), ((17, 170), (22, 220)));
    assert_eq!((counted(&total(&tree)["total"]), total(&tree)["workers"].as_u64()), ((22, 220), Some(2)));
}

#[test]
fn one_that_is_killed_counts_what_it_last_reported_and_says_that_it_is_partial() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &[]), Agents::new(&home));
    let mut w = agents.start(&tree, "w", 0);
    reports(&mut w, usage(1, 10, 100));
    w.order(&json!({"kill": 9}));
    let result = tree.result("w");
    assert_eq!((result["usage"]["own"]["input"].as_u64(), result["usage"]["partial"].as_bool()), (Some(10), Some(true)));
}
