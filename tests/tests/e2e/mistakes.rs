//! The mistakes that people make: each is answered with the name of the thing, why, what to do next, and its exit code.

use std::fs;

use roost_tests::real::{Done, Home, Tree};

/// A command that is refused, and what its answer says.
type Row = (&'static [&'static str], i32, &'static [&'static str]);

/// Before there is a daemon or a tree.
const ALONE: &[Row] = &[
    (&["open", "--cap", "0"], 2, &["--cap", "the least is 1"]),
    (&["open", "--depth", "x"], 2, &["--depth", "1 to 65536"]),
    (&["daemon", "start", "--idle-exit", "x"], 2, &["--idle-exit", "500ms, 30s, 5m"]),
    (&["daemon", "start", "--keep", "-1"], 2, &["--keep", "whole number"]),
    (&["spawn", "--timeout", "-1s", "--", "true"], 2, &["--timeout", "`-1s` is not a duration"]),
    (&["spawn"], 2, &["<CMD>"]),
    (&["--no-start", "status"], 4, &["no daemon listens", "no_daemon", "`roost daemon start`"]),
    (&["spawn", "--", "true"], 2, &["ROOST_TREE is not set", "no_tree", "eval"]),
];

/// In a tree of two slots with one group.
const IN_TREE: &[Row] = &[
    (&["spawn", "--group", "x", "--", "true"], 1, &["one of `w`", "`x`", "bad_value"]),
    (&["spawn", "--tasks", "none.json"], 1, &["1 to 20 tasks", "this one has 0", "argv"]),
    (&["spawn", "--tasks", "missing.json"], 1, &["missing.json", "No such file"]),
    (&["spawn", "--name", "a/b", "--", "true"], 1, &["`a/b` contains a slash", "no `/`"]),
    (&["spawn", "--name=-x", "--", "true"], 1, &["`-x` starts with a dash", "neither a dash"]),
    (&["spawn", "--descendants", "9", "--", "true"], 1, &["10 budget slots and 5 are left", "--budget"]),
    (&["open", "--stop-grace", "3h"], 1, &["stop_grace", "3600000 ms, and 10800000 ms is not"]),
    (&["open", "--set", "idle=99d"], 1, &["idle must be", "86400000 ms"]),
    (&["result", "nobody"], 1, &["`nobody`", "unknown_worker", "`roost status`"]),
];

fn is_answered(done: Done, code: i32, parts: &[&str]) {
    let done = done.expect(code);
    let said = done.err();
    for part in parts {
        assert!(said.contains(part), "`{part}` is missing: {said}");
    }
    // Paths that the environment gave are nothing that a command line must have.
    assert!(!said.contains("--socket") && !said.contains("--state-dir"), "{said}");
}

#[test]
fn each_is_answered_with_what_why_and_what_next() {
    let home = Home::new();
    for (args, code, parts) in ALONE {
        is_answered(home.roost(*args).run(), *code, parts);
    }
    let tree = Tree::open(&home, &["--cap", "2", "--budget", "5", "--group-cap", "w=1"]);
    fs::write(home.file("none.json"), "[]").unwrap();
    for (args, code, parts) in IN_TREE {
        is_answered(tree.roost(*args).cwd(home.dir()).run(), *code, parts);
    }
    // None of it has cost anything.
    let status = &tree.roost(["status", "--json"]).run().ok().json()["trees"][0];
    assert_eq!((&status["budget_remaining"], &status["live"], &status["queued"]), (&5.into(), &0.into(), &0.into()), "{status}");
}

#[test]
fn variables_that_do_not_belong_together_are_named() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    for (name, value, why) in
        [("ROOST_TOKEN", "x", "32 hexadecimal digits"), ("ROOST_TREE", "x", "`x` is not a tree"), ("ROOST_WORKER", "w1", "ROOST_EPOCH")]
    {
        is_answered(tree.roost(["status"]).env(name, value).run(), 2, &[name, why, "environment", "unset ROOST_TREE"]);
    }
    is_answered(tree.roost(["status"]).env("ROOST_WORKER", "w1").env("ROOST_EPOCH", "x").run(), 2, &["ROOST_EPOCH", "whole number"]);
}

#[test]
fn a_worker_without_budget_is_sent_to_its_lead_and_not_to_another_tree() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("leaf", "roost spawn -- true");
    tree.roost(["wait", "leaf"]).run().expect(1);
    let said = tree.roost(["logs", "leaf", "--stderr"]).run().ok();
    assert!(said.text().contains("1 budget slot and 0 are left") && said.text().contains("--descendants N"), "{said}");
}

#[test]
fn whoever_asks_an_open_tree_for_other_settings_is_told_that_it_keeps_its_own() {
    let home = Home::new();
    let first = home.roost(["open", "--key", "k", "--cap", "2", "--depth", "3"]).run().ok();
    let same = home.roost(["open", "--key", "k", "--cap", "2"]).run().ok();
    assert_eq!((same.text(), same.err().as_str()), (first.text(), ""));
    let other = home.roost(["open", "--key", "k", "--cap", "3", "--depth", "3", "--delivery", "passive"]).run().ok();
    assert_eq!(other.text(), first.text());
    assert!(other.err().contains("without effect: --cap --delivery") && other.err().contains("roost cap"), "{other}");
}

#[test]
fn a_name_for_no_does_not_forbid_the_start() {
    let home = Home::new();
    for no in ["0", "no", "False", "off", ""] {
        home.roost(["status"]).env("ROOST_NO_START", no).run().ok();
    }
    home.roost(["daemon", "stop"]).run().ok();
    home.roost(["status"]).env("ROOST_NO_START", "yes").run().expect(4);
}

#[test]
fn one_worker_is_one_worker() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1"]);
    let mut gate = home.fifo("gate");
    tree.spawn("w", r#"read x <"$F/gate""#);
    is_answered(tree.roost(["close"]).run(), 1, &["1 worker of the tree is active", "--now"]);
    is_answered(tree.roost(["result", "w"]).run(), 1, &["w has not ended: running", "--wait"]);
    let drained = tree.roost(["daemon", "stop", "--timeout", "1ms"]).run();
    is_answered(drained, 1, &["1 worker is still running: w", "--now"]);
    gate.release(1);
    tree.roost(["result", "w", "--wait"]).run().ok();
}
