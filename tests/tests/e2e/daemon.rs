//! The daemon's own life: one per state directory, idle exit, orderly stops, restarts.

use std::time::Duration;

use roost_tests::real::{Home, Tree, Watched, by_name, outcome_of};
use rustix::process::Signal;
use serde_json::json;

#[test]
fn a_state_directory_has_one_daemon() {
    let home = Home::new();
    let pids = home.start_daemon(&[]);
    let done = home.command(home.program("roostd")).arg("--detach").run().expect(3);
    let said = format!("{}{}", done.text(), done.err());
    assert!(said.contains(&pids.supervisor.to_string()), "{done}");
    // Nor one with another socket.
    let done = home.command(home.program("roostd")).arg("--socket").arg(home.file("other/sock")).run().expect(3);
    assert!(done.err().contains(&pids.supervisor.to_string()), "{done}");
    assert_eq!((home.daemons().0.len(), home.daemons().1.len(), home.daemon()), (1, 1, pids));
    let done = home.roost(["daemon", "start"]).run().ok();
    assert!(done.text().contains(&pids.supervisor.to_string()), "{done}");
    let status = home.daemon_status();
    let expected = (json!(home.socket()), json!(home.state_dir()), json!(env!("CARGO_PKG_VERSION")));
    assert_eq!((status["socket"].clone(), status["state_dir"].clone(), status["versions"]["daemon"].clone()), expected);
}

#[test]
fn it_leaves_when_it_is_idle_and_not_before() {
    let home = Home::new();
    let pids = home.start_daemon(&["--idle-exit", "1"]);
    let supervisor = Watched::new(pids.supervisor);
    let tree = Tree::open(&home, &[]);
    // An open tree is a reason to stay.
    assert!(!supervisor.ends_within(Duration::from_millis(1_500)));
    // So is a client.
    let client = home.wire();
    tree.roost(["close"]).run().ok();
    assert!(!supervisor.ends_within(Duration::from_millis(1_500)));
    drop(client);
    assert!(supervisor.ends_within(Duration::from_secs(6)));
    assert!(home.daemons().1.is_empty() && !home.socket().exists());
    home.roost(["daemon", "status"]).run().expect(4);
    assert_eq!(home.roost(["run", "--", "echo", "again"]).run().ok().text(), "again\n");
}

#[test]
fn stop_waits_for_what_runs_and_keeps_what_is_queued() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("runs", r#"echo up >"$F/events"; read x <"$F/gate"; echo R; exit 5"#);
    tree.spawn("queued", r#"echo Q >>"$F/log"; echo Q"#);
    assert_eq!(events.line(), "up");
    // With a time limit it is called off, naming what still runs; then all goes on.
    let error = home.roost(["daemon", "stop", "--timeout", "100ms", "--json"]).run().expect(1).json();
    assert!(error["error"]["kind"] == "draining" && error["error"]["message"].as_str().unwrap().contains("runs"), "{error}");
    let accepts = || tree.roost(["spawn", "--json", "--request-id", "r", "--name", "accepted", "--", "true"]).run().ok().json();
    let receipt = accepts();
    let supervisor = Watched::new(home.daemon().supervisor);
    let mut stop = home.roost(["daemon", "stop"]).start();
    // From the moment when the drain is on nothing new is taken.
    loop {
        let done = tree.roost(["spawn", "--json", "--", "true"]).run();
        if done.code() != 0 {
            assert_eq!(done.json()["error"]["kind"], "draining", "{done}");
            break;
        }
    }
    // What was accepted before is told again.
    assert_eq!(accepts(), receipt);
    assert!(stop.is_running());
    gate.release(1);
    assert_eq!(stop.end().ok().text(), "stopped\n");
    supervisor.await_end();
    assert_eq!((home.read("log"), home.workers().len(), home.daemons().1.len()), (String::new(), 0, 0));
    // The next start knows the exit code and goes on with the queue, in order and once.
    let result = tree.result("runs");
    assert_eq!((&result["outcome"]["code"], &result["answer"]), (&json!(5), &json!("R\n")));
    assert_eq!(tree.answer("queued"), "Q\n");
    assert_eq!(home.read("log"), "Q\n");
    tree.roost(["wait"]).run();
    assert_eq!(outcome_of(&tree.worker("accepted")), "completed");
}

#[test]
fn stop_now_ends_what_runs() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "1", "--stop-grace", "300ms"]);
    tree.spawn("runs", r#"trap '' TERM; echo part; echo up >"$F/events"; while :; do sleep 600; done"#);
    tree.spawn("queued", "echo Q");
    assert_eq!(events.line(), "up");
    let done = home.roost(["daemon", "stop", "--now", "--json"]).run().ok();
    assert_eq!(done.json(), json!({"running": false, "stopped": 1}));
    assert!(home.workers().is_empty() && home.daemons().0.is_empty());
    // Stopping what is stopped is fine.
    home.roost(["daemon", "stop"]).run().ok();
    assert_eq!(tree.answer("queued"), "Q\n");
    let runs = tree.result("runs");
    assert_eq!((outcome_of(&runs), &runs["answer"]), ("stopped", &json!("part\n")));
}

#[test]
fn a_term_is_an_orderly_end() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &[]);
    tree.spawn("runs", r#"echo up >"$F/events"; exec sleep 600"#);
    assert_eq!(events.line(), "up");
    let supervisor = Watched::new(home.daemon().supervisor);
    supervisor.signal(Signal::TERM);
    supervisor.await_end();
    assert!(home.workers().is_empty() && home.daemons().1.is_empty());
    assert_eq!(outcome_of(&tree.worker("runs")), "stopped");
}

#[test]
fn a_restart_keeps_workers_and_their_exit_codes() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("w", r#"echo up >"$F/events"; read x <"$F/gate"; exit 9"#);
    tree.spawn("queued", "echo Q");
    assert_eq!(events.line(), "up");
    let pid = tree.pid("w");
    let waits = tree.roost(["wait", "w", "queued"]).start();
    let before = home.daemon();
    let after = home.roost(["daemon", "restart", "--json"]).run().ok().json();
    assert_eq!(after["supervisor_pid"], before.supervisor);
    assert_ne!(after["broker_pid"], before.broker);
    let status = tree.status();
    let w = by_name(&status, "w");
    assert_eq!((&w["state"], &w["pid"], &w["epoch"]), (&json!("running"), &json!(pid), &json!(1)));
    gate.release(1);
    assert_eq!(waits.end().expect(1).text(), "w failed: exit code 9\nqueued completed\n");
}

#[test]
fn a_tree_is_found_again_by_its_key() {
    let home = Home::new();
    let script = r#"eval "$(roost open --key mine --cap 3)"; echo "$ROOST_TREE""#;
    let first = home.sh(script).run().ok();
    home.kill_daemon();
    assert_eq!(home.sh(script).run().ok().text(), first.text());
    let tree = first.text().trim();
    home.roost(["close", "--tree", tree]).run().ok();
    assert_ne!(home.sh(script).run().ok().text().trim(), tree);
}
