//! `examples/agent` and `examples/agent.py` speak the same protocol: both are led through the life of a worker.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use roost::proto::link::EXIT_LINE;
use rustix::pipe::{PipeFlags, pipe_with};
use serde_json::{Value, json};

use crate::bounded::start as start_bounded;
use crate::fake;
use crate::peer::{self, Peer, Talk, completion};
use roost_not_tested::not_tested;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

fn rust() -> Command {
    Command::new(Path::new(env!("CARGO_BIN_EXE_roost")).with_file_name("examples").join("agent"))
}

/// `None` on a machine without Python.
fn python() -> Option<Command> {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        not_tested("examples/agent.py: no python3");
        return None;
    }
    let mut command = Command::new("python3");
    command.arg(examples().join("agent.py"));
    Some(command)
}

struct Agent {
    process: Process,
    talk: Talk,
    hello: Value,
}

/// Starts a process of the worker; with a context it is one that was woken.
fn start(peer: &Peer, command: Command, context: Option<&Path>) -> Agent {
    // As under the supervisor: a pipe that stays open.
    start_with(peer, command, context, Stdio::piped())
}

fn start_with(peer: &Peer, mut command: Command, context: Option<&Path>, stdin: Stdio) -> Agent {
    let epoch = if context.is_some() { "2" } else { "1" };
    command.env("ROOST_SOCKET", &peer.socket).env("ROOST_STATE_DIR", peer.socket.with_extension("state"));
    command.env("ROOST_TREE", "t1").env("ROOST_WORKER", "w1").env("ROOST_TOKEN", fake::TOKEN).env("ROOST_EPOCH", epoch);
    command.env("MARK", "of the submitter");
    if let Some(context) = context {
        command.env("ROOST_WAKE", "1").env("ROOST_CONTEXT", context);
    }
    let process = Process(start_bounded(command.stdin(stdin)));
    let (talk, hello) = peer.welcome(peer::worker(json!({"wakes": context.is_some()})));
    Agent { process, talk, hello }
}

impl Agent {
    fn exits(mut self) {
        self.talk.end();
        assert_eq!(self.process.0.wait().unwrap().code(), Some(0));
    }
}

/// One that has not exited when its test is over would wait for a daemon for ever.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn task(text: &str) -> Value {
    json!([{"seq": 1, "type": "task", "text": text}])
}

fn counted(seq: u64, execution: u64, answer: &str) -> Value {
    let mut item = completion(seq, execution);
    item["answer"] = answer.into();
    item
}

fn a_life(command: impl Fn() -> Command) {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    // The first process: launch, settle, park.
    let mut first = start(&peer, command(), None);
    assert_eq!((&first.hello["role"], &first.hello["capabilities"][0]), (&json!("worker"), &json!("park")));
    first.talk.deliver(task("one two\nthree\u{2028}four"));
    assert_eq!(first.talk.accept_all(), json!([1]));
    let launch = first.talk.call("launch");
    let tasks = launch.params["tasks"].as_array().unwrap();
    let texts: Vec<_> = tasks.iter().map(|task| (task["runner"].clone(), task["task"].clone())).collect();
    assert_eq!(texts, [(json!("worker"), json!("one two")), (json!("worker"), json!("three\u{2028}four"))]);
    let env = launch.params["submitter"]["env"].as_array().unwrap();
    assert!(env.contains(&json!(["MARK", "of the submitter"])) && !launch.params["submitter"].to_string().contains("ROOST_TOKEN"));
    let child = |id: u64| json!({"name": format!("n{id}"), "worker": format!("w{id}"), "execution": format!("x{id}"), "status": "queued"});
    first.talk.reply(&launch, json!({"job": "j1", "tasks": [child(2), child(3)]}));
    // The broker is killed over the settle: the same one comes again on a new connection.
    let settle = first.talk.call("settle").params;
    assert_eq!(settle.get("answer"), None);
    first.talk = {
        drop(first.talk);
        peer.welcome_worker()
    };
    assert_eq!(first.talk.answer("settle", json!({"next": "wait"})), settle);
    first.talk.push("park", json!({"deadline_ms": 60_000}));
    first.talk.answer("park_ready", json!({"parked": true}));
    first.exits();

    // Woken early, with one of the two; told twice.
    let context = dir.path().join("context");
    fs::write(&context, settle["context"]["bytes"].as_str().unwrap()).unwrap();
    let mut second = start(&peer, command(), Some(&context));
    second.talk.deliver(json!([counted(2, 2, "2")]));
    assert_eq!(second.talk.accept_all(), json!([2]));
    let settle = second.talk.call("settle");
    assert_eq!(settle.params.get("answer"), None);
    second.talk.reply(&settle, json!({"next": "wait"}));
    second.talk.push("park", json!({}));
    second.talk.answer("park_ready", json!({"parked": true}));
    second.exits();

    // Woken with the other one, and with a repeat of the first whose acknowledgement was lost.
    fs::write(&context, settle.params["context"]["bytes"].as_str().unwrap()).unwrap();
    let mut third = start(&peer, command(), Some(&context));
    third.talk.deliver(json!([counted(2, 2, "2"), counted(3, 3, "40")]));
    let mut acked = Vec::new();
    while acked.len() < 2 {
        acked.extend(third.talk.accept_all().as_array().unwrap().iter().map(|seq| seq.as_u64().unwrap()));
    }
    assert_eq!(acked, [2, 3]);
    assert_eq!(third.talk.answer("settle", json!({"next": "exit"}))["answer"], "42");
    third.exits();
}

fn a_leaf_and_a_stop(command: impl Fn() -> Command) {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let mut leaf = start(&peer, command(), None);
    // The supervisor dies, which is no order.
    drop(leaf.process.0.stdin.take());
    leaf.talk.deliver(task("  one two  three "));
    leaf.talk.accept_all();
    assert_eq!(leaf.talk.answer("settle", json!({"next": "exit"}))["answer"], "3");
    leaf.exits();
    // The supervisor says so: it leaves by itself.
    let mut idle = start(&peer, command(), None);
    idle.process.0.stdin.take().unwrap().write_all(EXIT_LINE).unwrap();
    idle.exits();
    // And in pieces: of such a pipe one read takes what one write has given.
    let (read, write) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
    let slow = start_with(&peer, command(), None, read.into());
    let (first, rest) = EXIT_LINE.split_at(2);
    let mut write = File::from(write);
    write.write_all(first).unwrap();
    write.write_all(rest).unwrap();
    slow.exits();
}

/// Nothing to take in is a turn like any other: accepted, settled, and over.
fn a_bare_wake_and_a_gone_item(command: impl Fn() -> Command) {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let mut bare = start(&peer, command(), None);
    bare.talk.deliver(json!([]));
    assert_eq!(bare.talk.accept_all(), json!([]));
    assert_eq!(bare.talk.answer("settle", json!({"next": "exit"}))["answer"], "0");
    bare.exits();
    // What it has woken for was read by another way.
    let mut gone = start(&peer, command(), None);
    gone.talk.deliver(json!([counted(2, 2, "2")]));
    assert_eq!(gone.talk.answer("ack", json!({"accepted": [], "gone": [2]}))["items"], json!([2]));
    assert_eq!(gone.talk.answer("settle", json!({"next": "exit"}))["answer"], "0");
    gone.exits();
}

#[test]
fn the_agent_in_rust() {
    a_life(rust);
    a_bare_wake_and_a_gone_item(rust);
    a_leaf_and_a_stop(rust);
}

#[test]
fn the_agent_in_python() {
    if python().is_some() {
        a_life(|| python().unwrap());
        a_bare_wake_and_a_gone_item(|| python().unwrap());
        a_leaf_and_a_stop(|| python().unwrap());
    }
}
