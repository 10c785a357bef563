//! A shell script as the root of its tree: every verb, receipts, places, request ids, budget, names.

use std::fs;

use roost_tests::real::{Home, Tree, by_name, outcome_of};
use serde_json::{Value, json};

#[test]
fn a_script_is_a_root() {
    let home = Home::new();
    let script = r#"set -eu
        eval "$(roost open --cap 4)"
        [ -n "$ROOST_TREE" ] && [ -n "$ROOST_TOKEN" ] && [ -z "${ROOST_WORKER-}" ]
        roost spawn --name a -- sh -c 'echo A; echo log >&2'
        roost spawn --name b --env K=V -- sh -c 'echo "$K"; exit 2'
        roost spawn --name c --task 'the text' -- cat
        roost wait a c
        roost wait --all || echo "wait said $?"
        roost result a; roost result c --raw; echo
        roost result b || echo "result said $?"
        roost logs a; roost logs a --stderr; roost logs a -f
        roost cap; roost cap 2
        roost pause
        roost spawn --name d -- echo D
        roost result d || echo "not ended"
        roost resume
        roost result d --wait
        roost spawn --name e -- sleep 600
        roost stop e; roost stop e
        roost interrupt
        roost close
        roost spawn -- true || echo "closed said $?""#;
    let done = home.sh(script).run().ok();
    let expected = "a started\nb started\nc started\na completed\nc completed\nb failed: exit code 2\nwait said 1\nA\nthe text\nV\nresult said 1\n\
        A\nlog\nA\ncap 4  live 0  queued 0\ncap 2  live 0  queued 0\npaused\nd queued 1 (";
    assert!(done.text().starts_with(expected), "{done}");
    let rest = ")\nnot ended\nrunning\nD\ne started\ne stopped\ne already settled\nnothing to do\nclosed\nclosed said 1\n";
    assert!(done.text().ends_with(rest), "{done}");
    for text in ["tree_closed", "d has not ended: queued"] {
        assert!(done.err().contains(text), "{done}");
    }
}

#[test]
fn interrupt_stops_everything_that_runs_is_queued_or_parked() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "2"]);
    let parks = r#"roost spawn --name below -- sh -c 'echo up >"$F/events"; exec sleep 600' >&2; exec roost park"#;
    tree.spawn_with("parked", &["--descendants", "1"], parks);
    assert_eq!(events.line(), "up");
    tree.spawn("runs", r#"echo up >"$F/events"; exec sleep 600"#);
    assert_eq!(events.line(), "up");
    tree.spawn("waits", "echo never >>\"$F/never\"");
    let reply = tree.roost(["interrupt", "--json"]).run().ok().json();
    assert_eq!(reply["stopped"], 4);
    assert!(home.workers().is_empty());
    let status = tree.status();
    for name in ["parked", "below", "runs", "waits"] {
        assert_eq!(by_name(&status, name)["outcome"]["status"], "stopped", "{name}");
    }
    assert_eq!(tree.roost(["interrupt", "--json"]).run().ok().json()["stopped"], 0);
    // The tree goes on: what is launched afterwards runs, and what was stopped stays so.
    tree.spawn("later", "echo later");
    assert_eq!(tree.answer("later"), "later\n");
    assert_eq!(home.read("never"), "");
}

#[test]
fn an_interrupt_reaches_no_further_than_the_tree_says() {
    let home = Home::new();
    for (scope, stopped) in [("none", 0), ("foreground", 1)] {
        let (mut events, mut gate) = (home.fifo(&format!("{scope}.events")), home.fifo(&format!("{scope}.gate")));
        let tree = Tree::open(&home, &["--interrupt-scope", scope]);
        let waits = format!(r#"echo up >"$F/{scope}.events"; read x <"$F/{scope}.gate"; echo went on"#);
        tree.spawn("background", &waits);
        let run = tree.roost(["run", "--tree", &tree.id, "--name", "foreground", "--", "sh", "-c", &waits]).start();
        assert_eq!(events.lines(2), ["up", "up"]);
        let background = tree.pid("background");
        assert_eq!(tree.roost(["interrupt", "--json"]).run().ok().json()["stopped"], stopped, "{scope}");
        assert_eq!(tree.pid("background"), background, "{scope}");
        gate.release(2 - stopped);
        let done = run.end();
        let (code, text, outcome) = if stopped == 0 { (0, "went on\n", "completed") } else { (130, "", "stopped") };
        assert_eq!((done.code(), done.text(), outcome_of(&tree.worker("foreground"))), (code, text, outcome), "{scope}: {done}");
        assert_eq!(tree.answer("background"), "went on\n", "{scope}");
    }
}

#[test]
fn places_are_consecutive_and_starts_keep_the_order() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &["--cap", "1"]);
    let first = tree.spawn("blocker", r#"read x <"$F/gate""#);
    assert_eq!((&first["status"], &first["place"]), (&json!("started"), &Value::Null));
    // Names whose alphabet is not the order of submission, one by one and in jobs.
    let mut names = Vec::new();
    for (job, prefix) in ["z", "a", "10", "9", "M"].iter().enumerate() {
        let tasks: Vec<Value> = (0..4)
            .map(|index| {
                names.push(format!("{prefix}-{index}"));
                json!({"name": names.last(), "argv": ["sh", "-c", format!("echo {prefix}-{index} >>\"$F/log\"")]})
            })
            .collect();
        let receipt = tree.roost(["spawn", "--json", "--tasks", "-"]).stdin(json!(tasks).to_string()).run().ok().json();
        for (index, task) in receipt["tasks"].as_array().unwrap().iter().enumerate() {
            assert_eq!((&task["status"], &task["place"]), (&json!("queued"), &json!(job * 4 + index + 1)), "{receipt}");
            assert!(!task["reason"].as_str().unwrap().is_empty());
        }
    }
    let alone = tree.spawn("last", "echo last >>\"$F/log\"");
    names.push("last".into());
    assert_eq!(alone["place"], 21);
    assert_eq!(tree.worker("a-0")["place"], 5);
    gate.release(1);
    tree.roost(["wait"]).run().ok();
    assert_eq!(home.read("log").lines().collect::<Vec<_>>(), names);
}

#[test]
fn the_same_request_is_the_same_receipt() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "10"]);
    let spawn = |script: &str| tree.roost(["spawn", "--json", "--request-id", "r1", "--", "sh", "-c", script]).run();
    let receipt = spawn("echo x >>\"$F/log\"").ok().json();
    let name = receipt["tasks"][0]["name"].as_str().unwrap().to_owned();
    tree.result(&name);
    let again = spawn("echo x >>\"$F/log\"").ok().json();
    assert_eq!((&again["job"], &again["tasks"][0]["execution"]), (&receipt["job"], &receipt["tasks"][0]["execution"]));
    let error = spawn("echo other").expect(1).json();
    assert_eq!(error["error"]["kind"], "request_id_reused");
    // It is on disk: the next broker knows it too.
    home.kill_broker();
    let again = spawn("echo x >>\"$F/log\"").ok().json();
    assert_eq!(again["tasks"][0]["execution"], receipt["tasks"][0]["execution"]);
    assert_eq!(home.read("log"), "x\n");
    assert_eq!(tree.status()["trees"][0]["budget_remaining"], 9);
}

// B21 (a), and everything else that is refused as a whole.
#[test]
fn a_launch_is_all_or_nothing() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "30"]);
    let task = |index: usize| json!({"name": format!("n{index}"), "argv": ["sh", "-c", "echo >>\"$F/ran\""]});
    let with = |extra: Value| {
        let mut bad = task(1);
        bad.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!([task(0), bad, task(2)])
    };
    let cases = [
        (json!((0..21).map(task).collect::<Vec<_>>()), "task_count", "21"),
        (json!([]), "task_count", "0"),
        (with(json!({"cwd": "/no/such/directory"})), "bad_cwd", "/no/such/directory"),
        (with(json!({"name": "n0"})), "name_taken", "n0"),
        (with(json!({"name": "N2"})), "name_taken", "2"),
        (with(json!({"name": "a/b"})), "bad_name", "a/b"),
        (with(json!({"max_subagents_allowed": 28})), "budget", "31"),
        (with(json!({"argv": []})), "bad_value", "argv"),
        (with(json!({"argv": ["x".repeat(131_072)]})), "bad_value", "131"),
        (with(json!({"nmae": "x"})), "usage", "nmae"),
        (with(json!({"timeout_ms": "5s"})), "usage", "timeout_ms"),
    ];
    for (tasks, kind, named) in cases {
        fs::write(home.file("tasks"), tasks.to_string()).unwrap();
        let done = tree.roost(["spawn", "--json", "--tasks"]).arg(home.file("tasks")).run();
        assert_ne!(done.code(), 0, "{kind}: {done}");
        let error = done.json();
        assert_eq!(error["error"]["kind"], kind, "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(named), "{named}: {error}");
    }
    let status = tree.status();
    assert_eq!((&status["trees"][0]["budget_remaining"], &status["workers"]), (&json!(30), &json!([])));
    // Twenty are fine, from a file too.
    fs::write(home.file("tasks"), json!({"tasks": (0..20).map(task).collect::<Vec<_>>()}).to_string()).unwrap();
    tree.roost(["spawn", "--tasks"]).arg(home.file("tasks")).run().ok();
    tree.roost(["wait"]).run().ok();
    assert_eq!(home.read("ran").lines().count(), 20);
}

#[test]
fn a_launch_that_is_too_deep_is_refused_and_reserves_nothing() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--depth", "1"]);
    tree.spawn_with("w", &["--descendants", "3"], "roost spawn --json -- true; echo $?");
    let said = tree.answer("w");
    assert!(said.contains("\"depth\"") && said.ends_with("1\n"), "{said}");
    let worker = tree.worker("w");
    assert_eq!((&worker["budget_remaining"], tree.status()["workers"].as_array().unwrap().len()), (&json!(3), 1), "{worker}");
}

#[test]
fn budget_is_a_ledger_and_nothing_comes_back() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "7", "--cap", "1"]);
    let remaining = || tree.status()["trees"][0]["budget_remaining"].clone();
    tree.spawn_with("four", &["--descendants", "3"], "exit 1");
    assert_eq!(remaining(), 3);
    let error = tree.roost(["spawn", "--json", "--descendants", "3", "--", "true"]).run().expect(1).json();
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("needs 4") && message.contains("3 are left"), "{message}");
    tree.result("four");
    tree.spawn("one", "exec sleep 600");
    tree.roost(["stop", "one"]).run().ok();
    // Neither unused, failed nor stopped ones are given back.
    assert_eq!(remaining(), 2);
    tree.roost(["spawn", "--descendants", "rest", "--", "true"]).run().ok();
    assert_eq!(remaining(), 0);
    tree.roost(["spawn", "--", "true"]).run().expect(1);
    for bad in ["0", "-1", "9007199254740992", "x"] {
        home.roost(["open", "--budget", bad]).run().expect(2);
    }
    let large = Tree::open(&home, &["--budget", "9007199254740991"]);
    large.spawn_with("all", &["--descendants", "9007199254740990"], "true");
    assert_eq!(large.status()["trees"][0]["budget_remaining"], 0);
}

#[test]
fn a_worker_launches_as_many_as_it_was_allowed() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let script = r#"roost spawn -- true >&2 && echo yes; roost spawn --json -- true"#;
    tree.spawn_with("one", &["--descendants", "1"], script);
    tree.spawn("none", "roost spawn --json -- true");
    let one = tree.result("one")["answer"].as_str().unwrap().to_owned();
    assert!(one.starts_with("yes\n") && one.contains("\"budget\"") && one.contains("0 are left"), "{one}");
    let none = tree.result("none")["answer"].as_str().unwrap().to_owned();
    assert!(none.contains("\"budget\""), "{none}");
    // What its lead has not spent of its own is no help: siblings cannot borrow.
    assert_eq!(tree.status()["trees"][0]["budget_remaining"], 47);
}

// B26.
#[test]
fn odd_names_are_refused_with_the_rule_or_work_everywhere() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "100"]);
    let daemon = home.daemon();
    let above = |home: &Home| {
        let mut names: Vec<_> = fs::read_dir(home.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = above(&home);
    let launch = |name: &str| {
        let tasks = json!([{"name": name, "argv": ["printf", r"\033]0;t\007 hi"]}]);
        tree.roost(["spawn", "--json", "--tasks", "-"]).stdin(tasks.to_string()).run()
    };
    let long = "x".repeat(300);
    for bad in ["", ".", "..", "../../x", "/etc/x", "a/b", "a\nb", "a\0b", "-rf", " ", &long, "a\u{1b}[2J b"] {
        let done = launch(bad).expect(1);
        let error = done.json();
        assert_eq!(error["error"]["kind"], "bad_name", "{bad:?}: {error}");
        assert!(!done.stdout.contains(&0x1b) && error["error"]["message"].as_str().unwrap().len() > 15, "{error}");
    }
    for good in ["🦀", "\u{e9}", "e\u{301}", "Rev", "a b", "10", "q'u\"o$te", &"x".repeat(128)] {
        launch(good).ok();
        let result = tree.result(good);
        assert_eq!((&result["name"], &result["answer"]), (&json!(good), &json!("\u{1b}]0;t\u{7} hi")));
        let status = tree.roost(["status", good, "--json"]).run().ok().json();
        assert_eq!(status["workers"][0]["name"], good);
        assert_eq!(tree.roost(["stop", good, "--json"]).run().ok().json()["workers"][0]["name"], good);
        let shown = tree.roost(["result", good]).run().ok();
        assert!(!shown.stdout.contains(&0x1b) && !shown.stdout.contains(&0x07), "{shown}");
        assert_eq!(tree.roost(["result", good, "--raw"]).run().ok().stdout, b"\x1b]0;t\x07 hi");
    }
    assert_eq!(launch("rev").expect(1).json()["error"]["kind"], "name_taken");
    assert!(!tree.roost(["status"]).run().ok().stdout.contains(&0x1b));
    assert_eq!((above(&home), home.daemon()), (before, daemon));
}

#[test]
fn a_result_is_told_once_and_read_as_often_as_wanted() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("a", "echo A");
    tree.spawn("b", "echo B");
    assert_eq!(tree.answer("a"), "A\n");
    // What was read is not announced any more.
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "b completed\n");
    assert_eq!(tree.roost(["wait"]).run().ok().text(), "");
    assert_eq!(tree.roost(["wait", "a", "b"]).run().ok().text(), "a completed\nb completed\n");
    for _ in 0..2 {
        assert_eq!(tree.roost(["result", "a"]).run().ok().text(), "A\n");
    }
    tree.roost(["close"]).run().ok();
    assert_eq!(home.roost(["result", "a", "--tree", &tree.id]).run().ok().text(), "A\n");
}

#[test]
fn wait_any_ends_at_the_first_end() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &[]);
    tree.spawn("slow", r#"read x <"$F/gate""#);
    tree.spawn("quick", "true");
    assert_eq!(tree.roost(["wait", "--any"]).run().ok().text(), "quick completed\n");
    let done = tree.roost(["wait", "slow", "quick", "--timeout", "100ms"]).run().expect(124);
    assert!(done.text() == "quick completed\n" && done.err().contains("pending: slow"), "{done}");
    gate.release(1);
    tree.roost(["wait"]).run().ok();
}

#[test]
fn a_repeated_launch_gets_its_receipt_after_its_directory_has_vanished() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let gone = home.file("gone");
    std::fs::create_dir(&gone).unwrap();
    let launch = |request_id: &str| {
        json!({
            "request_id": request_id,
            "tasks": [{"argv": ["true"]}, {"argv": ["true"], "cwd": "/"}],
            "submitter": {"env": [["PATH", "/usr/bin:/bin"]], "cwd": gone, "umask": 18},
        })
    };
    let receipt = tree.wire().call("launch", &launch("r")).unwrap();
    tree.roost(["wait"]).run().ok();
    std::fs::remove_dir(&gone).unwrap();
    assert_eq!(tree.wire().call("launch", &launch("r")), Ok(receipt.clone()));
    // Also by a broker that knows it from the journal.
    home.kill_broker();
    tree.until("two workers", |status| status["workers"].as_array().is_some_and(|workers| workers.len() == 2));
    assert_eq!(tree.wire().call("launch", &launch("r")), Ok(receipt));
    // A new one is refused, in the same words as ever, and takes nothing.
    let error = tree.wire().call("launch", &launch("new")).unwrap_err();
    let expected = format!("task 0: the working directory `{}` cannot be used: No such file or directory (os error 2)", gone.display());
    assert_eq!((roost_tests::real::kind_of(&error), error["message"].as_str()), ("bad_cwd", Some(expected.as_str())));
    assert_eq!(error["data"]["hint"], "create it, or name another one");
    assert_eq!(tree.status()["workers"].as_array().unwrap().len(), 2);
    // With other content it is an error, whether its directory is there or not.
    let mut other = launch("r");
    other["tasks"][0]["argv"] = json!(["false"]);
    assert_eq!(roost_tests::real::kind_of(&tree.wire().call("launch", &other).unwrap_err()), "request_id_reused");
}
