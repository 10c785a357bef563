//! A real daemon: what its transcripts say of a worker that parks and is woken, over a restart, and without any room for them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use roost_tests::real::{Agents, Home, SmallDisk, Tree, outcome_of, until, with_children};
use serde_json::{Value, json};

fn path(home: &Home, execution: u64) -> PathBuf {
    home.state_dir().join(format!("transcripts/x{execution}.jsonl"))
}

fn text(home: &Home, execution: u64) -> String {
    fs::read_to_string(path(home, execution)).unwrap_or_default()
}

/// A whole transcript, when its last line is there.
fn transcript(home: &Home, execution: u64) -> Vec<Value> {
    until("the outcome is told", || text(home, execution).contains(r#""kind":"outcome""#));
    text(home, execution).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(transcript: &[Value]) -> Vec<(u64, &str)> {
    transcript.iter().map(|line| (line["epoch"].as_u64().unwrap(), line["kind"].as_str().unwrap())).collect()
}

#[test]
fn what_goes_in_and_out_of_a_worker_is_told_through_park_and_wake() {
    let home = Home::new();
    let (tree, mut agents) = (Tree::open(&home, &["--cap", "1"]), Agents::new(&home));
    let mut task = with_children(agents.task("top"), 1);
    task["task"] = json!("the task");
    tree.launch(json!([task]));
    let mut top = agents.begins("top");
    top.begin();
    top.call("report", json!({"activity": "busy", "usage": {"sequence": 1, "input": 10, "turns": 1}})).unwrap();
    top.call("report", json!({"text": "so far", "usage": {"sequence": 2, "input": 20, "turns": 1}})).unwrap();
    top.launch(&json!([{"argv": ["sh", "-c", "cat; exit 3"], "name": "leaf", "task": "a task"}]));
    let settled = top.call("settle", json!({"answer": "I wait", "context": {"bytes": "00000"}})).unwrap();
    assert_eq!(settled["next"], "wait");
    // A fake agent's context is where it goes on in its script.
    top.await_note("park");
    assert_eq!(top.call("park_ready", json!({"context": {"bytes": "0000"}})).unwrap()["parked"], true);
    top.exit(0);
    let mut top = agents.begins("top");
    top.does(&json!("hello"));
    top.take();
    top.call("report", json!({"text": "on and on"})).unwrap();
    top.call("tell_lead", json!({"text": "a word"})).unwrap();
    let settled = top.call("settle", json!({"answer": "done", "usage": {"sequence": 3, "input": 30, "turns": 2}})).unwrap();
    assert_eq!(settled["next"], "exit");
    top.exit(0);
    let result = tree.result("top");
    assert_eq!((outcome_of(&result), &result["answer"], result.get("lossy")), ("completed", &json!("done"), None));
    let told = transcript(&home, 1);
    let expected = [
        (1, "items"),
        (1, "ack"),
        (1, "report"),
        (1, "usage"),
        (1, "settle"),
        (1, "park_asked"),
        (1, "parked"),
        (2, "wake"),
        (2, "items"),
        (2, "ack"),
        (2, "report"),
        (2, "message"),
        (2, "usage"),
        (2, "settle"),
        (2, "outcome"),
    ];
    assert_eq!(kinds(&told), expected, "{told:#?}");
    let (task, child) = (&told[0]["delivery"]["items"][0], &told[8]["delivery"]["items"][0]);
    assert_eq!((&task["seq"], &task["type"], &task["text"]), (&1.into(), &"task".into(), &"the task".into()));
    assert_eq!((&child["type"], &child["answer"]), (&"completion".into(), &"a task".into()));
    assert_eq!((&told[1]["items"], &told[9]["items"]), (&json!([1]), &json!([child["seq"]])));
    assert_eq!((&told[2]["text"], &told[3]["input"], &told[12]["input"]), (&"so far".into(), &20.into(), &30.into()));
    assert_eq!((&told[4]["answer"], &told[4]["context_bytes"], &told[6]["context_bytes"]), (&"I wait".into(), &5.into(), &4.into()));
    assert_eq!((&told[11]["direction"], &told[11]["peer"], &told[11]["text"]), (&"out".into(), &Value::Null, &"a word".into()));
    assert_eq!((&told[13]["answer"], &told[13]["outcome"]["status"]), (&"done".into(), &"completed".into()));
    assert!(told.windows(2).all(|two| two[0]["at_ms"].as_u64() <= two[1]["at_ms"].as_u64()));
    let leaf = transcript(&home, 2);
    assert_eq!(kinds(&leaf), [(1, "task"), (1, "outcome")]);
    assert_eq!((&leaf[0]["text"], &leaf[1]["outcome"]["code"]), (&"a task".into(), &3.into()));
    assert_eq!(fs::read_to_string(leaf[1]["output"].as_str().unwrap()).unwrap(), "a task");
}

/// A command that ends when the gate is opened.
fn spawn_held(tree: &Tree<'_>) {
    tree.spawn_with("held", &["--task", "held"], r#"read x <"$F/gate"; printf out"#);
}

#[test]
fn a_transcript_goes_on_after_a_restart() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &[]);
    spawn_held(&tree);
    // The old broker leaves when all of it is written.
    home.roost(["daemon", "restart"]).run().ok();
    assert!(text(&home, 1).ends_with("\"text\":\"held\"}\n"), "{}", text(&home, 1));
    gate.release(1);
    let result = tree.result("held");
    assert_eq!((outcome_of(&result), &result["answer"], result.get("lossy")), ("completed", &json!("out"), None));
    assert_eq!(kinds(&transcript(&home, 1)), [(1, "task"), (1, "restart"), (1, "outcome")]);
}

#[test]
fn a_line_that_a_killed_broker_left_half_is_cut_and_told() {
    let home = Home::new();
    let mut gate = home.fifo("gate");
    let tree = Tree::open(&home, &[]);
    spawn_held(&tree);
    until("its task is told", || text(&home, 1).ends_with('\n'));
    home.kill_broker();
    fs::File::options().append(true).open(path(&home, 1)).unwrap().write_all(b"{\"at_ms\":17,\"epo").unwrap();
    gate.release(1);
    assert_eq!(outcome_of(&tree.result("held")), "completed");
    let told = transcript(&home, 1);
    assert_eq!(kinds(&told), [(1, "task"), (1, "gap"), (1, "restart"), (1, "outcome")]);
    assert_eq!((&told[1]["why"], told[1].get("lost")), (&"torn".into(), None));
    assert_eq!(tree.result("held")["lossy"], true);
}

#[test]
fn a_transcript_goes_with_its_tree() {
    let home = Home::new();
    home.start_daemon(&["--keep", "0"]);
    let tree = Tree::open(&home, &[]);
    tree.spawn("a", "true");
    tree.result("a");
    assert_eq!(kinds(&transcript(&home, 1)), [(1, "task"), (1, "outcome")]);
    tree.roost(["close"]).run().ok();
    until("it is gone", || fs::read_dir(home.state_dir().join("transcripts")).unwrap().count() == 0);
}

/// A home whose state directory is there already, so that a part of it can be something else.
fn prepared() -> Home {
    let home = Home::new();
    fs::DirBuilder::new().mode(0o700).create(home.state_dir()).unwrap();
    home
}

/// Runs a worker with no room for its transcript: nothing but `lossy` is different, also after a restart.
fn runs_without_transcripts(home: &Home) {
    let mut gate = home.fifo("gate");
    let tree = Tree::open(home, &[]);
    spawn_held(&tree);
    let mark = home.state_dir().join("executions/x1.lossy");
    until("it is known that its task is missing", || mark.exists());
    gate.release(1);
    let result = tree.result("held");
    assert_eq!((outcome_of(&result), &result["answer"], &result["lossy"]), ("completed", &json!("out"), &json!(true)));
    home.roost(["daemon", "restart"]).run().ok();
    assert_eq!(tree.result("held")["lossy"], true);
    assert_eq!(text(home, 1), "");
}

#[test]
fn without_room_for_transcripts_outcomes_are_the_same_and_lossy() {
    let home = prepared();
    let Some(_disk) = SmallDisk::mount(&home.state_dir().join("transcripts"), 64) else { return };
    runs_without_transcripts(&home);
}

#[test]
fn with_a_directory_that_is_none_outcomes_are_the_same_and_lossy() {
    let home = prepared();
    fs::write(home.state_dir().join("transcripts"), "").unwrap();
    runs_without_transcripts(&home);
}

#[test]
fn what_a_wake_is_handed_is_told_once_however_long_its_files_find_no_room() {
    let home = prepared();
    let Some(disk) = SmallDisk::mount(&home.state_dir().join("executions"), 1 << 10) else { return };
    let (mut events, mut gate) = (home.fifo("events"), home.fifo("gate"));
    home.script("context", "saved");
    let tree = Tree::open(&home, &["--cap", "1"]);
    let lead = r#"if [ "${ROOST_WAKE-}" = 1 ]; then wc -l; exit; fi
        for kid in 1 2 3; do roost spawn -- sh -c 'head -c 60000 /dev/zero | tr "\0" k' >&2; done
        roost spawn -- sh -c 'echo up >"$F/events"; read x <"$F/gate"' >&2; exec roost park --context-path "$F/context""#;
    tree.spawn_with("lead", &["--descendants", "4"], lead);
    assert_eq!(events.line(), "up");
    disk.fill_up_to(0);
    gate.release(1);
    tree.until_state("lead", "waking");
    until("it waits for room", || {
        fs::read_to_string(home.state_dir().join("daemon.log")).unwrap().contains("starts wait until there is room")
    });
    disk.make_room();
    assert_eq!(tree.answer("lead"), "1\n");
    let told = transcript(&home, 1);
    assert_eq!(kinds(&told).iter().filter(|kind| **kind == (2, "items")).count(), 1, "{:?}", kinds(&told));
}
