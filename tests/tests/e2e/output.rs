//! Output: leftovers that hold it, large payloads both ways, bytes that are no text, readers that follow.

use std::time::Duration;

use roost_tests::real::{Home, Tree, find};
use serde_json::json;

// B10 (a), (b), (c).
#[test]
fn whoever_keeps_the_output_open_holds_up_nothing() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1"]);
    for (name, script) in [
        ("out", "sleep 600 & echo done"),
        ("err", "sleep 600 >/dev/null & echo done"),
        ("away", "setsid sleep 600 & echo done"),
        ("deaf", "(trap '' TERM; sleep 600) & echo done"),
    ] {
        tree.spawn(name, script);
        let done = tree.roost(["result", name, "--wait"]).run().ok();
        assert!(done.text() == "done\n" && done.took < Duration::from_secs(5), "{done}");
    }
    tree.spawn("many", "sleep 600 & seq 1 20000");
    let result = tree.result("many");
    assert_eq!(result["answer_bytes"], 108_894);
    let all = tree.roost(["result", "many", "--raw"]).run().ok();
    assert!(all.text().ends_with("\n20000\n") && all.text().lines().count() == 20_000);
    // They were ended, and the one slot was free again each time.
    assert!(home.workers().is_empty());
}

#[test]
fn leftovers_that_are_kept_live_on_without_a_slot() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let tree = Tree::open(&home, &["--cap", "1", "--leftovers", "keep"]);
    tree.spawn("w", r#"sh -c 'echo $$ >"$F/events"; exec sleep 600' & wait_for=1; echo done"#);
    let left: u32 = events.line().parse().unwrap();
    let answered = tree.roost(["result", "w", "--wait"]).run().ok();
    assert!(answered.text() == "done\n" && answered.err() == format!("roost: w left processes behind: {left}\n"), "{answered}");
    assert_eq!(tree.status()["trees"][0]["live"], 0);
    tree.spawn("next", "echo next");
    assert_eq!(tree.answer("next"), "next\n");
    assert!(find(left).is_some_and(|process| process.is_alive()));
    // It is listed for as long as its worker is, and nothing is of whoever left nothing.
    home.kill_broker();
    assert_eq!((&tree.worker("w")["leftovers"], &tree.result("w")["leftovers"]), (&json!([left]), &json!([left])));
    assert!(tree.worker("next").get("leftovers").is_none() && tree.result("next").get("leftovers").is_none());
    let drawn = tree.roost(["status", "w"]).run().ok();
    assert!(drawn.text().ends_with(&format!("  left behind: {left}\n")), "{drawn}");
}

// B12 (a), (d).
#[test]
fn a_large_task_text_arrives_whole() {
    let home = Home::new();
    std::fs::write(home.file("prompt"), "a".repeat(200_000)).unwrap();
    let done = home.roost(["run", "--task-file"]).arg(home.file("prompt")).args(["--", "sha256sum"]).run().ok();
    assert_eq!(done.text(), "2287d207f24a941ff3b56c04c8a25ad56b63e3023207b3bb5b4ac0c9869d74be  -\n");
    // In and out at once, through standard input.
    let text: String = (0..1 << 20).map(|at| if at % 64 == 63 { '\n' } else { 'x' }).collect();
    let done = home.roost(["run", "--task-file", "-", "--", "cat"]).stdin(text.clone()).run().ok();
    assert_eq!(done.stdout.len(), 1_048_576);
    assert!(done.stdout == text.as_bytes());
}

// B12 (c), with 64 MiB instead of 1 GiB: the file takes it, the daemon does not.
#[test]
fn a_flood_of_output_costs_the_daemon_no_memory_and_nobody_time() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "100"]);
    let broker = home.daemon().broker;
    tree.spawn("flood", "yes | head -c 67108864");
    let mut slowest = Duration::ZERO;
    for round in 0..5 {
        let name = format!("hi{round}");
        tree.spawn(&name, "echo hi");
        let done = tree.roost(["result", &name, "--wait"]).run().ok();
        assert_eq!(done.text(), "hi\n");
        slowest = slowest.max(done.took);
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let result = tree.result("flood");
    assert_eq!(
        (&result["outcome"]["status"], &result["answer_bytes"], &result["answer_truncated"]),
        (&json!("completed"), &json!(67_108_864), &json!(true))
    );
    assert!(result["answer"].as_str().unwrap().len() <= 64 << 10);
    assert!(find(broker).unwrap().resident_kib() < 200 << 10);
    let raw = home.sh(r#"roost result flood --raw | wc -c"#);
    assert_eq!(tree.as_root(raw).run().ok().text().trim(), "67108864");
    // A reader that has seen enough is no failure.
    assert_eq!(tree.as_root(home.sh("roost result flood --raw | head -c 4; echo")).run().ok().text(), "y\ny\n\n");
}

// B14 (a), (b), (e).
#[test]
fn characters_are_not_cut_in_two() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &[]);
    tree.spawn("slow", r#"for c in 342 211 244 012; do printf "\\$c"; read x <"$F/gate"; done"#);
    let follows = tree.roost(["logs", "slow", "-f"]).start();
    gate.release(4);
    assert_eq!(tree.answer("slow"), "≤\n");
    assert_eq!(follows.end().ok().text(), "≤\n");
    tree.spawn("many", r#"i=0; while [ $i -lt 500 ]; do printf 你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你你; i=$((i + 1)); done"#);
    let follows = tree.roost(["logs", "many", "-f"]).start();
    let result = tree.result("many");
    let all = tree.roost(["result", "many", "--raw"]).run().ok();
    assert_eq!((result["answer_bytes"].as_u64(), all.text().chars().count()), (Some(150_000), 50_000));
    assert!(all.text().chars().all(|c| c == '你'));
    // What JSON has of it is cut between characters.
    assert!(result["answer_truncated"] == true && result["answer"].as_str().unwrap().chars().all(|c| c == '你'));
    assert!(follows.end().ok().stdout == all.stdout);
}

// B14 (c).
#[test]
fn output_that_is_not_utf8_is_kept_byte_by_byte() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", r#"printf 'ok\377\376end'"#);
    let result = tree.result("w");
    assert_eq!((&result["answer"], &result["answer_bytes"]), (&json!("ok\u{fffd}\u{fffd}end"), &json!(7)));
    assert_eq!(tree.roost(["result", "w", "--raw"]).run().ok().stdout, b"ok\xff\xfeend");
    assert_eq!(tree.roost(["logs", "w"]).run().ok().stdout, b"ok\xff\xfeend");
    assert!(std::str::from_utf8(&tree.roost(["result", "w"]).run().ok().stdout).is_ok());
}

#[test]
fn logs_follow_over_parks_and_a_new_broker() {
    let home = Home::new();
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    let tree = Tree::open(&home, &["--cap", "1"]);
    let script = r#"if [ "${ROOST_WAKE-}" = 1 ]; then echo two; exit; fi
        echo one; roost spawn --name kid -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; exec roost park"#;
    tree.spawn_with("w", &["--descendants", "1"], script);
    let follows = tree.roost(["logs", "w", "-f"]).start();
    assert_eq!(events.line(), "up");
    home.kill_broker();
    gate.release(1);
    assert_eq!(follows.end().ok().text(), "one\ntwo\n");
    // The answer is what its last process wrote.
    assert_eq!(tree.answer("w"), "two\n");
}
