//! Times and tries that a tree is opened with, as real processes meet them.

use std::time::{Duration, Instant};

use roost_tests::real::{Home, Tree};
use serde_json::json;

/// Parks by the protocol and then does not exit; woken, it answers.
const LINGERS: &str = r#"
import json, os, signal, socket
if os.environ.get("ROOST_WAKE") == "1":
    print("woken")
else:
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(os.environ["ROOST_SOCKET"])
    lines = peer.makefile("rw")
    def call(number, method, params):
        lines.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        lines.flush()
        assert "result" in json.loads(lines.readline())
    identity = {"tree": os.environ["ROOST_TREE"], "worker": os.environ["ROOST_WORKER"], "token": os.environ["ROOST_TOKEN"],
                "epoch": int(os.environ["ROOST_EPOCH"])}
    call(1, "hello", {"protocol_min": 1, "protocol_max": 1, "client": "lingers", "identity": identity})
    call(2, "park", {"context": "c"})
    signal.pause()
"#;

#[test]
fn settle_to_exit_ends_a_parked_process_that_stays() {
    let home = Home::new();
    if !home.has_python("a parked process that stays") {
        return;
    }
    let tree = Tree::open(&home, &["--set", "settle_to_exit=700ms"]);
    let begun = Instant::now();
    tree.roost(["spawn", "--name", "w", "--", "python3", "-c", LINGERS]).run().ok();
    assert_eq!(tree.answer("w"), "woken\n");
    // Not before, and long before the default of 5 s.
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(700) && took < Duration::from_millis(4_500), "{took:?}");
    assert_eq!(tree.worker("w")["epoch"], 2);
}

/// Leaves a process behind that says when it is told to end, and does not.
const LEAVES: &str =
    r#"sh -c 'trap "echo term >>\"$F/told\"" TERM; echo up >"$F/go"; while :; do sleep 600 & wait; done' & read up <"$F/go"; echo done"#;

#[test]
fn leftovers_grace_is_the_time_between_term_and_kill() {
    let home = Home::new();
    let _go = home.fifo("go");
    // Without a grace there is no TERM at all.
    let tree = Tree::open(&home, &["--set", "leftovers_grace=0"]);
    tree.spawn("w", LEAVES);
    assert_eq!(tree.answer("w"), "done\n");
    assert!(home.workers().is_empty() && !home.file("told").exists());
    let tree = Tree::open(&home, &["--set", "leftovers_grace=1500ms"]);
    let begun = Instant::now();
    tree.spawn("w", LEAVES);
    assert_eq!(tree.answer("w"), "done\n");
    assert!(begun.elapsed() >= Duration::from_millis(1_500));
    assert!(home.workers().is_empty() && home.read("told").starts_with("term\n"));
}

#[test]
fn a_tree_shows_what_it_was_opened_with_and_an_unknown_setting_names_the_known_ones() {
    let home = Home::new();
    let set = ["--set", "park_again=2m", "--set", "start_retries=0", "--set", "wake_bypass=1"];
    let opened = home.roost(["open", "--json"]).args(set).run().ok().json();
    let timing = json!({
        "settle_to_exit_ms": 5_000, "leftovers_grace_ms": 1_000, "start_retries": 0, "start_retry_ms": 1_000,
        "early_wake_dwell_ms": 250, "wake_bypass": 1, "park_deadline_ms": 10_000, "park_again_ms": 120_000,
        "startup_ms": 120_000, "idle_ms": 1_200_000, "hold_ms": 200, "join_window_ms": 100, "join_hold_ms": 30_000, "join_straggler_ms": 15_000,
    });
    assert_eq!(opened["settings"]["timing"], timing);
    let refused = home.roost(["open", "--set", "no_such=1"]).run().expect(2);
    assert!(refused.err().contains("no_such") && refused.err().contains("settle_to_exit, leftovers_grace"), "{refused}");
    // What is out of its range, the daemon says.
    let refused = home.roost(["open", "--json", "--set", "wake_bypass=0"]).run();
    assert!(refused.code() != 0 && refused.text().contains("bad_value") && refused.text().contains("wake_bypass"), "{refused}");
    // Both commands that open trees have it, and say so.
    for command in ["open", "run"] {
        assert!(home.roost([command, "--help"]).run().ok().text().contains("settle_to_exit=5s"));
    }
}
