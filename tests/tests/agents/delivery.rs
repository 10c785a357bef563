//! Completions reach a lead that is busy, cut off, replaced or slow exactly once.

use roost_tests::real::{Agent, Agents, Fifo, Home, Lead, Tree, kind_of, outcome_of};
use roost_tests::sim::rng::Rng;
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

/// When the daemon dies in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    /// When the launch was answered.
    Launched,
    /// When the worker runs.
    Up,
    /// While the worker ends.
    Ending,
    /// When it has ended.
    Ended,
    /// When its end was pushed, and not taken in.
    Pushed,
    /// When it is being taken in: the answer to that is never read.
    Acking,
    /// When it was taken in.
    Acked,
}

const BLOWS: [Blow; 7] = [Blow::Launched, Blow::Up, Blow::Ending, Blow::Ended, Blow::Pushed, Blow::Acking, Blow::Acked];

/// A lead whose daemon dies again and again, and what it was told.
struct Deaths<'a> {
    home: &'a Home,
    tree: Tree<'a>,
    lead: Lead,
    events: Fifo,
    /// Executions in the order in which their ends were taken in.
    told: Vec<Value>,
}

impl Deaths<'_> {
    fn strike(&mut self, whole: bool) {
        self.told.extend(self.lead.told().to_vec());
        if whole {
            self.home.kill_daemon();
            self.home.roost(["daemon", "start"]).run().ok();
        } else {
            self.home.kill_broker();
        }
        self.lead = Lead::new(self.home, &self.tree);
    }

    /// One worker, and a death at this moment of its life. Its end is taken in before the next one, unless it is left for later.
    fn round(&mut self, name: &str, blow: Blow, whole: bool, later: bool) {
        let mut gate = self.home.fifo(&format!("gate-{name}"));
        self.tree.spawn(name, &format!(r#"echo up >"$F/events"; read x <"$F/gate-{name}"; echo R-{name}"#));
        if blow == Blow::Launched {
            self.strike(whole);
        }
        assert_eq!(self.events.line(), "up");
        if blow == Blow::Up {
            self.strike(whole);
        }
        gate.release(1);
        if blow == Blow::Ending {
            self.strike(whole);
        }
        self.tree.until_state(name, "ended");
        if blow == Blow::Ended {
            self.strike(whole);
        }
        if later && [Blow::Launched, Blow::Up, Blow::Ending, Blow::Ended].contains(&blow) {
            return;
        }
        match blow {
            Blow::Pushed => {
                self.lead.delivery();
                self.strike(whole);
            }
            Blow::Acking => self.acking(name, whole),
            _ => {}
        }
        if blow != Blow::Acking {
            let end = self.lead.end_of(name);
            // What a supervisor leaves behind is lost; whether its process was there, or there still, is open in two moments.
            let expected: &[&str] = match (blow, whole) {
                (Blow::Up, true) => &["lost"],
                (Blow::Launched | Blow::Ending, true) => &["completed", "lost"],
                _ => &["completed"],
            };
            assert!(expected.contains(&outcome_of(&end)), "{name} {blow:?} {whole}: {end}");
            assert_eq!(end["answer"], format!("R-{name}\n"), "{blow:?} {whole}");
        }
        if blow == Blow::Acked {
            self.strike(whole);
        }
    }

    /// Whoever has not heard that something was taken in says it again, and has taken it in once.
    fn acking(&mut self, name: &str, whole: bool) {
        let items = loop {
            let delivery = self.lead.delivery();
            let items = delivery["items"].as_array().unwrap().clone();
            if items.iter().any(|item| item["name"] == name) {
                break items;
            }
            self.lead.ack(&delivery);
        };
        let seqs: Vec<Value> = items.iter().map(|item| item["seq"].clone()).collect();
        self.lead.send_ack(&seqs);
        self.strike(whole);
        let acked = self.lead.call("ack", json!({"items": seqs})).unwrap();
        assert_eq!(acked, json!({"accepted": seqs, "gone": []}));
        self.told.extend(items.iter().map(|item| item["execution"].clone()));
        // Pushed once more with the lease, when the first try had not arrived; never again after the second.
        self.lead = Lead::new(self.home, &self.tree);
    }
}

// B16: thirty-five workers, a daemon that dies once in the life of each, at every moment of it and of its end on the way to the lead;
// with every fourth death the supervisor goes as well.
#[test]
fn no_completion_is_lost_or_told_twice_while_daemons_die() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "100"]);
    let (lead, events) = (Lead::new(&home, &tree), home.fifo("events"));
    let mut deaths = Deaths { home: &home, tree, lead, events, told: Vec::new() };
    let mut rng = Rng::of(7, "what is left for later");
    for number in 0..35 {
        // A broker that dies again and again is started later and later; with another supervisor that begins anew.
        deaths.round(&format!("w{number}"), BLOWS[number % BLOWS.len()], number % 4 == 3, rng.below(3) == 0);
    }
    let Deaths { tree, mut lead, mut told, .. } = deaths;
    while told.len() + lead.told().len() < 35 {
        lead.take();
    }
    told.extend(lead.told().to_vec());
    let distinct: std::collections::BTreeSet<String> = told.iter().map(Value::to_string).collect();
    assert_eq!((told.len(), distinct.len()), (35, 35), "{told:?}");
    let mut lead = Lead::new(&home, &tree);
    assert_eq!((lead.heard(), lead.owed()), (Vec::new(), Vec::new()));
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
