//! `roost run`: one command, its answer and its exit code.

use std::time::Duration;

use roost_tests::real::{Home, Tree};
use rustix::process::Signal;

#[test]
fn the_answer_is_the_commands_output_byte_by_byte() {
    let home = Home::new();
    let done = home.roost(["run", "--", "sh", "-c", r"printf 'a\000\377\376b\r\n\n\033[2J no newline'"]).run().ok();
    assert_eq!(done.stdout, b"a\0\xff\xfeb\r\n\n\x1b[2J no newline");
    assert!(done.stderr.is_empty(), "{done}");
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let home = Home::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137), ("kill -TERM $$", 143)] {
        let done = home.roost(["run", "--", "sh", "-c", script]).run().expect(code);
        assert_eq!(done.stderr.is_empty(), code == 0, "{done}");
    }
}

#[test]
fn a_missing_program_is_127_and_is_named() {
    let home = Home::new();
    for program in ["/no/such/program", "no-such-program"] {
        let done = home.roost(["run", "--", program, "--flag"]).run().expect(127);
        assert!(done.err().contains(program), "{done}");
    }
    // A directory and a file without the bit are no programs either.
    std::fs::write(home.file("plain"), "#!/bin/sh\n").unwrap();
    let plain = home.file("plain");
    let done = home.roost(["run", "--", plain.to_str().unwrap()]).run().expect(127);
    assert!(done.err().contains("plain"), "{done}");
}

#[test]
fn a_command_that_takes_too_long_is_124_and_gone() {
    let home = Home::new();
    let done = home.roost(["run", "--timeout", "300ms", "--", "sh", "-c", "echo so far; exec sleep 600"]).run().expect(124);
    assert_eq!(done.text(), "so far\n");
    assert!(done.took < Duration::from_secs(10), "{done}");
    assert!(home.workers().is_empty());
}

#[test]
fn standard_error_of_a_failure_is_passed_on() {
    let home = Home::new();
    let done = home.roost(["run", "--", "sh", "-c", "echo part; echo the reason >&2; exit 4"]).run().expect(4);
    assert_eq!(done.text(), "part\n");
    assert!(done.err().contains("the reason") && done.err().contains("exit code 4"), "{done}");
}

#[test]
fn json_says_how_it_ended_and_where_the_answer_is() {
    let home = Home::new();
    let done = home.roost(["run", "--json", "--name", "job", "--", "sh", "-c", "echo x; exit 3"]).run().expect(3);
    let result = done.json();
    assert_eq!((&result["name"], &result["partial"], &result["answer"]), (&"job".into(), &true.into(), &"x\n".into()));
    assert_eq!(result["outcome"], serde_json::json!({"status": "failed", "kind": "exit", "code": 3}));
    assert_eq!(std::fs::read_to_string(result["answer_path"].as_str().unwrap()).unwrap(), "x\n");
}

#[test]
fn ctrl_c_ends_the_tree_and_leaves_nothing() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let script = r#"for i in 1 2 3; do roost spawn --name kid$i -- sh -c 'echo up >"$F/events"; exec sleep 600'; done
        echo up >"$F/events"; sleep 600 & wait"#;
    let run = home.roost(["run", "--cap", "3", "--", "sh", "-c", script]).start();
    // Three live, one is queued: all four end.
    events.lines(3);
    run.signal(Signal::INT);
    let done = run.end().expect(130);
    assert!(done.took < Duration::from_secs(10), "{done}");
    assert!(home.workers().is_empty());
    let status = home.daemon_status();
    assert_eq!((&status["trees"], &status["live"], &status["queued"]), (&0.into(), &0.into(), &0.into()));
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let home = Home::new();
    let mut events = home.fifo("events");
    let script = r#"trap 'echo term >"$F/events"' TERM; echo up >"$F/events"; while :; do sleep 600 & wait; done"#;
    let run = home.roost(["run", "--stop-grace", "1h", "--", "sh", "-c", script]).start();
    assert_eq!(events.line(), "up");
    run.signal(Signal::INT);
    // The first was heard: the command was asked to end, and does not.
    assert_eq!(events.line(), "term");
    run.signal(Signal::INT);
    run.end_within(Duration::from_secs(5)).expect(130);
}

#[test]
fn a_run_inside_of_a_worker_is_its_child_in_the_same_tree() {
    let home = Home::new();
    // At cap 1 the outer one lends its slot while it waits.
    let script = r#"roost run --descendants 0 --name inner -- sh -c 'printf inner; exit 5' ; echo " $?"; roost run -- sh -c 'roost run -- printf deep'"#;
    let done = home.roost(["run", "--cap", "1", "--", "sh", "-c", script]).run().ok();
    assert_eq!(done.text(), "inner 5\ndeep");
    let script = r#"roost run -- sh -c 'echo $ROOST_TREE'; echo $ROOST_TREE"#;
    let tree = home.roost(["run", "--", "sh", "-c", script]).run().ok();
    let ids: Vec<&str> = tree.text().lines().collect();
    assert!(ids.len() == 2 && ids[0] == ids[1], "{tree}");
    let done = home.roost(["run", "--", "sh", "-c", "roost run --cap 2 -- true"]).run().expect(2);
    assert!(done.err().contains("--cap"), "{done}");
}

#[test]
fn a_run_in_a_scripts_tree_is_a_child_of_its_root() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--cap", "1"]);
    let done = tree.roost(["run", "--tree", &tree.id, "--name", "a", "--", "echo", "in the tree"]).run().ok();
    assert_eq!(done.text(), "in the tree\n");
    assert_eq!(tree.worker("a")["state"], "ended");
}
