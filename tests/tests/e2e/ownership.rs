//! Who may: only a lead its own children, only the living incarnation with its own token; to all others a name is unknown.

use roost_tests::real::{Home, Tree, Wire, by_name, is_up, kind_of};
use serde_json::{Value, json};

/// Runs lines in a worker's place: it reads a command per line from its pipe and writes what came of it to another.
const OBEYS: &str = r#"echo up >"$F/events"; while read -r line; do [ -z "$line" ] || { sh -c "$line" >"$F/out" 2>&1; echo "$?" >>"$F/out"; echo done >"$F/events"; }; done <"$F/$0""#;

struct Two<'a> {
    home: &'a Home,
    tree: Tree<'a>,
    events: roost_tests::real::Fifo,
}

impl<'a> Two<'a> {
    /// Two leads, each with a child, all four alive; the leads do what they are told.
    fn new(home: &'a Home) -> Self {
        let mut events = home.fifo("events");
        let tree = Tree::open(home, &[]);
        for lead in ["P1", "P2"] {
            // Open at our end: it never reads an end of file.
            std::mem::forget(home.fifo(lead));
            tree.roost(["spawn", "--name", lead, "--descendants", "1", "--", "sh", "-c", OBEYS, lead]).run().ok();
            assert_eq!(events.line(), "up");
        }
        let mut two = Self { home, tree, events };
        for (lead, child) in [("P1", "reviewer1"), ("P2", "reviewer2")] {
            let (_, code) = two.does(lead, &format!("roost spawn --name {child} -- sleep 600"));
            assert_eq!(code, 0);
        }
        two
    }

    /// Has a lead run a command; returns what it wrote and its exit code.
    fn does(&mut self, lead: &str, command: &str) -> (String, i32) {
        let pipe = std::fs::OpenOptions::new().write(true).open(self.home.file(lead)).unwrap();
        std::io::Write::write_all(&mut &pipe, format!("{command}\n").as_bytes()).unwrap();
        assert_eq!(self.events.line(), "done");
        let text = self.home.read("out");
        let (said, code) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim()));
        (said.to_owned(), code.parse().unwrap())
    }

    /// The kind of the error that a lead's command ends with.
    fn refused(&mut self, lead: &str, command: &str) -> Value {
        let (said, code) = self.does(lead, command);
        assert_eq!(code, 1, "{said}");
        let error: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
        error["error"].clone()
    }

    fn running(&self, name: &str) -> bool {
        is_up(by_name(&self.tree.status(), name))
    }
}

// B23.
#[test]
fn only_a_lead_may_stop_its_own_children() {
    let home = Home::new();
    let mut two = Two::new(&home);
    // (b) another's child, (c) a grandchild of the root, (e) itself, its lead, a name that never was: all the same words.
    let unknown = |name: &str| format!("no worker of yours has the name `{name}`");
    for name in ["reviewer2", "P2", "P1", "nobody"] {
        let error = two.refused("P1", &format!("roost stop {name} --json"));
        assert_eq!((&error["kind"], &error["message"]), (&json!("unknown_worker"), &json!(unknown(name))));
    }
    let error = two.tree.roost(["stop", "reviewer2", "--json"]).run().expect(1).json();
    assert_eq!((&error["error"]["kind"], &error["error"]["message"]), (&json!("unknown_worker"), &json!(unknown("reviewer2"))));
    // Waiting is the lead's, too; looking is wider for the root, and not for a sibling.
    for command in ["roost wait reviewer2 --json", "roost result reviewer2 --json", "roost status reviewer2 --json"] {
        assert_eq!(two.refused("P1", command)["message"], unknown("reviewer2"));
    }
    two.tree.roost(["status", "reviewer2"]).run().ok();
    // (g) one bad name, and nothing is touched.
    let error = two.refused("P2", "roost stop reviewer2 nosuch --json");
    assert!(error["kind"] == "unknown_worker" && error["message"].as_str().unwrap().contains("nosuch"), "{error}");
    assert!(["P1", "P2", "reviewer1", "reviewer2"].into_iter().all(|name| two.running(name)));
    // (a) its own it may.
    assert_eq!(two.does("P1", "roost stop reviewer1"), ("reviewer1 stopped".into(), 0));
    assert!(two.running("reviewer2") && !two.running("reviewer1"));
    // (f) names are unique in the tree, whoever gives them.
    let error = two.tree.roost(["spawn", "--json", "--name", "Reviewer1", "--", "true"]).run().expect(1).json();
    assert_eq!(error["error"]["kind"], "name_taken");
}

// B23 (d), and the tokens of the dead.
#[test]
fn a_token_works_for_its_own_process_and_epoch() {
    let home = Home::new();
    let mut two = Two::new(&home);
    let (p2, _) = two.does("P2", "echo $ROOST_WORKER $ROOST_TOKEN $ROOST_EPOCH");
    let words: Vec<&str> = p2.split(' ').collect();
    let (worker, token, epoch) = (words[0], words[1], words[2]);
    for command in [
        format!("ROOST_TOKEN={token} roost stop reviewer1 --json"),
        format!("ROOST_WORKER={worker} roost stop reviewer2 --json"),
        // Both halves are right, and it is another worker's process that holds them.
        format!("ROOST_WORKER={worker} ROOST_TOKEN={token} ROOST_EPOCH={epoch} roost stop reviewer2 --json"),
    ] {
        assert_eq!(two.refused("P1", &command)["kind"], "unknown_identity", "{command}");
    }
    assert!(two.running("reviewer1") && two.running("reviewer2"));
    // From outside of the worker nobody speaks for it, the test's own process least of all.
    let mut wire = Wire::connect(&home.socket());
    let identity = json!({"tree": two.tree.id, "worker": worker, "token": token, "epoch": epoch.parse::<u64>().unwrap()});
    assert_eq!(kind_of(&wire.hello(Some(identity)).unwrap_err()), "unknown_identity");
    let mut wire = Wire::connect(&home.socket());
    let guess = json!({"tree": two.tree.id, "token": "0".repeat(32)});
    assert_eq!(kind_of(&wire.hello(Some(guess)).unwrap_err()), "unknown_identity");
    for epoch in ["0", "2", "7"] {
        let kind = two.refused("P1", &format!("ROOST_EPOCH={epoch} roost status --json"))["kind"].clone();
        assert!(kind == "stale_epoch" || kind == "unknown_identity", "{kind}");
    }
    // A child of the worker's process does speak for it.
    assert_eq!(two.does("P1", "sh -c 'setsid roost cap'").1, 0);
}

#[test]
fn a_process_of_an_incarnation_that_is_over_is_refused() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--leftovers", "keep"]);
    let script = r#"if [ "${ROOST_WAKE-}" = 1 ]; then echo woken >"$F/events"; read x <"$F/gate"; exit; fi
        setsid sh -c 'read x <"$F/late"; roost spawn --json -- true >"$F/out" 2>&1; echo late >"$F/events"' &
        exec roost park"#;
    let mut late = home.fifo("late");
    tree.spawn_with("w", &["--descendants", "1"], script);
    assert_eq!(events.line(), "woken");
    late.release(1);
    assert_eq!(events.line(), "late");
    let error: Value = serde_json::from_str(&home.read("out")).unwrap();
    assert_eq!(error["error"]["kind"], "stale_epoch");
    gate.release(1);
    tree.answer("w");
    assert_eq!(tree.status()["workers"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_the_roots_is_refused_to_workers() {
    let home = Home::new();
    let mut two = Two::new(&home);
    for command in ["roost cap 50", "roost cap 1", "roost pause", "roost resume", "roost interrupt", "roost close --now"] {
        let error = two.refused("P1", &format!("{command} --json"));
        assert_eq!(error["kind"], "not_root", "{command}");
    }
    assert_eq!(two.does("P1", "roost cap").0, "cap 8  live 4  queued 0");
}

#[test]
fn tokens_are_in_no_argument_no_log_and_no_status() {
    let home = Home::new();
    let mut two = Two::new(&home);
    let (token, _) = two.does("P1", "echo $ROOST_TOKEN");
    let (none, _) = two.does("P1", "env | grep -c ^ROOST_TOKEN=");
    assert_eq!((token.len(), none.as_str()), (32, "1"));
    for process in roost_tests::real::all() {
        let arguments = process.arguments().concat();
        assert!(!String::from_utf8_lossy(&arguments).contains(&token));
    }
    let shown = [two.tree.status().to_string(), home.daemon_status().to_string()].concat();
    let log = home.log();
    for token in [&token, &two.tree.token] {
        assert!(!shown.contains(token) && !log.contains(token));
    }
}
