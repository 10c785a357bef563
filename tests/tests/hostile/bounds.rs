//! Every bound that a client can go beyond with a few calls, and the kind of the refusal: the one that `docs/limits.md` names.

use roost_proto::limits::{
    ACK_ITEMS_MAX, ARGUMENT_BYTES_MAX, BUDGET_MAX, CALLS_PER_CONNECTION_MAX, CAP_MAX, DEPTH_MAX, EXEC_BYTES_MAX, GROUPS_MAX,
    HELLO_BYTES_MAX, LABEL_BYTES_MAX, LINE_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, NAMES_PER_CALL_MAX, RESULTS_PER_CONNECTION_MAX,
    START_RETRIES_MAX, STOP_GRACE_MS_MAX, TASKS_LOOKED_AT_MAX, TASKS_PER_LAUNCH_MAX, TIMING_MS_MAX, TREES_OPEN_MAX, WAITS_PER_CALLER_MAX,
    WAKE_BYPASS_MAX, WORDS_OWED_MAX,
};
use roost_tests::real::{Home, Tree, Wire, kind_of};
use serde_json::{Value, json};

/// More connections than one are needed for more waits than one may have.
const WAITS_PER_WIRE: usize = 250;

/// What the list says of what is beyond a bound: the last column, or, for times, the line above their table.
fn listed(constant: &str) -> &'static str {
    let (bounds, times) = include_str!("../../../docs/limits.md").split_once("\n| time |").unwrap();
    let name = format!("`{constant}`");
    if times.contains(&name) {
        return bounds.trim_end().lines().last().unwrap();
    }
    let row = bounds.lines().find(|line| line.contains(&name)).unwrap_or_else(|| panic!("{constant} is not listed"));
    row.trim_end_matches(" |").rsplit(" | ").next().unwrap()
}

#[track_caller]
fn is_beyond(constant: &str, error: &Value) {
    let kind = kind_of(error);
    assert!(listed(constant).contains(&format!("`{kind}`")), "{constant}: {error}, and the list says: {}", listed(constant));
}

fn launch(task: Value) -> Value {
    let mut plain = json!({"argv": ["true"]});
    plain.as_object_mut().unwrap().extend(task.as_object().unwrap().clone());
    launch_of(vec![plain])
}

fn launch_of(tasks: Vec<Value>) -> Value {
    json!({"request_id": "r", "tasks": tasks, "submitter": {"env": [["PATH", "/usr/bin:/bin"]], "cwd": "/", "umask": 18}})
}

/// One `open` for each setting that has a bound.
fn settings() -> Vec<(&'static str, Value)> {
    let groups: serde_json::Map<_, _> = (0..=GROUPS_MAX).map(|number| (format!("g{number}"), json!(1))).collect();
    let times = ["settle_to_exit_ms", "leftovers_grace_ms", "start_retry_ms", "park_deadline_ms", "startup_ms", "idle_ms", "hold_ms"];
    let mut found = vec![
        ("CAP_MAX", json!({"cap": CAP_MAX + 1})),
        ("CAP_MAX", json!({"cap": 0})),
        ("CAP_MAX", json!({"group_caps": {"g": CAP_MAX + 1}})),
        ("BUDGET_MAX", json!({"budget": BUDGET_MAX + 1})),
        ("DEPTH_MAX", json!({"depth_max": DEPTH_MAX + 1})),
        ("GROUPS_MAX", json!({"group_caps": groups})),
        ("LABEL_BYTES_MAX", json!({"group_caps": {"g".repeat(LABEL_BYTES_MAX + 1): 1}})),
        ("STOP_GRACE_MS_MAX", json!({"stop_grace_ms": STOP_GRACE_MS_MAX + 1})),
        ("WAKE_BYPASS_MAX", json!({"timing": {"wake_bypass": WAKE_BYPASS_MAX + 1}})),
        ("START_RETRIES_MAX", json!({"timing": {"start_retries": START_RETRIES_MAX + 1}})),
    ];
    found.extend(times.map(|time| ("TIMING_MS_MAX", json!({"timing": {time: TIMING_MS_MAX + 1}}))));
    found
}

#[test]
fn a_tree_that_is_opened_beyond_a_bound_is_refused_as_listed() {
    let home = Home::in_memory();
    home.start_daemon(&[]);
    let mut wire = home.wire();
    for (constant, settings) in settings() {
        is_beyond(constant, &wire.call("open", &json!({"request_id": "r", "settings": settings})).unwrap_err());
    }
    let long = "x".repeat(LABEL_BYTES_MAX + 1);
    is_beyond("LABEL_BYTES_MAX", &wire.call("open", &json!({"request_id": long})).unwrap_err());
    is_beyond("LABEL_BYTES_MAX", &wire.call("open", &json!({"request_id": "r", "key": long})).unwrap_err());
    for number in 0..TREES_OPEN_MAX {
        wire.call("open", &json!({"request_id": format!("r{number}")})).unwrap();
    }
    is_beyond("TREES_OPEN_MAX", &wire.call("open", &json!({"request_id": "one more"})).unwrap_err());
}

#[test]
fn a_call_beyond_a_bound_is_refused_as_listed() {
    let home = Home::in_memory();
    let tree = Tree::open(&home, &["--depth", "1"]);
    let (long, names) = ("x".repeat(LABEL_BYTES_MAX + 1), vec!["n"; NAMES_PER_CALL_MAX + 1]);
    let arguments = vec!["x".repeat(ARGUMENT_BYTES_MAX); EXEC_BYTES_MAX / ARGUMENT_BYTES_MAX + 1];
    let tasks = |count: usize| launch_of(vec![json!({"argv": ["true"]}); count]);
    let numbers: Vec<usize> = (0..=ACK_ITEMS_MAX).collect();
    let executions: Vec<String> = numbers.iter().map(|number| format!("x{}", number + 1)).collect();
    let calls = [
        ("CAP_MAX", "cap", json!({"cap": CAP_MAX + 1})),
        ("BUDGET_MAX", "launch", launch(json!({"max_subagents_allowed": BUDGET_MAX + 1}))),
        ("BUDGET_MAX", "launch", launch(json!({"max_subagents_allowed": 50}))),
        ("TASKS_PER_LAUNCH_MAX", "launch", tasks(0)),
        ("TASKS_PER_LAUNCH_MAX", "launch", tasks(TASKS_PER_LAUNCH_MAX + 1)),
        ("TASKS_LOOKED_AT_MAX", "launch", tasks(TASKS_LOOKED_AT_MAX + 1)),
        ("NAME_BYTES_MAX", "launch", launch(json!({"name": "n".repeat(NAME_BYTES_MAX + 1)}))),
        ("LABEL_BYTES_MAX", "launch", launch(json!({"group": long}))),
        ("LABEL_BYTES_MAX", "wait", json!({"request_id": long})),
        ("LABEL_BYTES_MAX", "message", json!({"request_id": long, "name": "n", "text": "t"})),
        ("NAMES_PER_CALL_MAX", "wait", json!({"request_id": "w", "names": names})),
        ("NAMES_PER_CALL_MAX", "stop", json!({"names": names})),
        ("ARGUMENT_BYTES_MAX", "launch", launch(json!({"argv": ["x".repeat(ARGUMENT_BYTES_MAX + 1)]}))),
        ("ARGUMENT_BYTES_MAX", "launch", launch(json!({"env": {"V": "x".repeat(ARGUMENT_BYTES_MAX)}}))),
        ("EXEC_BYTES_MAX", "launch", launch(json!({"argv": arguments}))),
        ("MESSAGE_BYTES_MAX", "message", json!({"request_id": "m", "name": "n", "text": "x".repeat(MESSAGE_BYTES_MAX + 1)})),
        ("ACK_ITEMS_MAX", "ack", json!({"items": numbers})),
        ("ACK_ITEMS_MAX", "told", json!({"executions": executions})),
    ];
    let mut wire = tree.wire();
    for (constant, method, params) in calls {
        is_beyond(constant, &wire.call(method, &params).unwrap_err());
    }
    // What only a worker can go beyond.
    tree.spawn_with("w", &["--descendants", "1"], "roost spawn --json -- true || true");
    let said = tree.answer("w");
    is_beyond("DEPTH_MAX", &serde_json::from_str(&said).unwrap());
    assert_eq!(tree.status()["workers"].as_array().unwrap().len(), 1, "{said}");
}

#[test]
fn more_calls_that_wait_than_are_allowed_are_refused_as_listed() {
    let home = Home::in_memory();
    let tree_of_waits = || {
        let tree = Tree::open(&home, &[]);
        tree.spawn("w", "exec sleep 600");
        tree
    };
    let wait = |number: usize| json!({"request_id": format!("w{number}"), "names": ["w"]});
    let tree = tree_of_waits();
    let mut wire = tree.wire();
    for number in 0..CALLS_PER_CONNECTION_MAX {
        wire.send("wait", &wait(number));
    }
    is_beyond("CALLS_PER_CONNECTION_MAX", &wire.call("wait", &wait(CALLS_PER_CONNECTION_MAX)).unwrap_err());

    let mut wire = tree.wire();
    let result = json!({"name": "w", "wait": true});
    for _ in 0..RESULTS_PER_CONNECTION_MAX {
        wire.send("result", &result);
    }
    is_beyond("RESULTS_PER_CONNECTION_MAX", &wire.call("result", &result).unwrap_err());

    let tree = tree_of_waits();
    let mut wires = Vec::new();
    for first in (0..WAITS_PER_CALLER_MAX).step_by(WAITS_PER_WIRE) {
        let mut wire = tree.wire();
        for number in first..first + WAITS_PER_WIRE {
            wire.send("wait", &wait(number));
        }
        // Calls of one connection are taken in their order: now all of them wait.
        wire.call("cap", &json!({})).unwrap();
        wires.push(wire);
    }
    is_beyond("WAITS_PER_CALLER_MAX", &tree.wire().call("wait", &wait(WAITS_PER_CALLER_MAX)).unwrap_err());
}

#[test]
fn more_messages_than_a_receiver_may_owe_are_refused_as_listed() {
    let home = Home::in_memory();
    let tree = Tree::open(&home, &["--cap", "1"]);
    tree.spawn("holds the slot", "exec sleep 600");
    let mut wire = tree.wire();
    wire.call("launch", &launch(json!({"name": "queued", "runner": "worker", "task": "its task"}))).unwrap();
    let mut say = |number: usize| wire.call("message", &json!({"request_id": format!("m{number}"), "name": "queued", "text": "t"}));
    for number in 1..WORDS_OWED_MAX {
        say(number).unwrap();
    }
    is_beyond("WORDS_OWED_MAX", &say(WORDS_OWED_MAX).unwrap_err());
}

#[test]
fn a_line_that_is_too_long_is_refused_as_listed_and_the_connection_closed() {
    let home = Home::new();
    home.start_daemon(&[]);
    let lines = [("HELLO_BYTES_MAX", Wire::connect(&home.socket()), HELLO_BYTES_MAX), ("LINE_BYTES_MAX", home.wire(), LINE_BYTES_MAX)];
    for (constant, mut wire, most) in lines {
        // Whether all of it is still taken does not matter.
        wire.bytes(&vec![b' '; most + 1]).ok();
        let answer = wire.answer(roost_tests::real::PATIENCE).expect("an answer");
        is_beyond(constant, &answer["error"]);
        assert!(wire.is_closed_within(roost_tests::real::PATIENCE), "{constant}");
    }
}
