//! `roost run` from launch to exit code, with and without signals.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::bounded::{self, output, start};
use crate::fake::{self, Act, Fake};

/// A daemon that runs one worker `w` which ends like this; an interrupt or a stop ends it as stopped.
fn one_worker(dir: &Path, ends_at_once: bool, outcome: Value, answer: &Path, stderr: &Path) -> (Fake, Receiver<String>) {
    let ended = Arc::new((Mutex::new(ends_at_once.then(|| outcome.clone())), Condvar::new()));
    let (tell, called) = mpsc::channel();
    let tell = Mutex::new(tell);
    let (answer, stderr) = (answer.to_owned(), stderr.to_owned());
    let fake = Fake::start(&dir.join("s"), move |method, _| {
        tell.lock().unwrap().send(method.to_owned()).ok();
        let (slot, changed) = &*ended;
        Some(match method {
            "open" => Act::Reply(fake::opened()),
            "launch" => Act::Reply(fake::receipt("w")),
            "status" => Act::Reply(json!({"trees": [], "workers": [fake::worker("w", "ended", &[], &[&stderr])]})),
            "close" => Act::Reply(json!({"stopped": 0})),
            "interrupt" | "stop" => {
                *slot.lock().unwrap() = Some(json!({"status": "stopped"}));
                changed.notify_all();
                Act::Reply(if method == "stop" { json!({"workers": []}) } else { json!({"stopped": 1, "generation": 2}) })
            }
            "result" => {
                let outcome = changed.wait_while(slot.lock().unwrap(), |slot| slot.is_none()).unwrap();
                let outcome = outcome.clone().unwrap();
                Act::Reply(json!({"ended": fake::result("w", outcome, "", Some(&answer))}))
            }
            _ => return None,
        })
    });
    (fake, called)
}

fn until(called: &Receiver<String>, method: &str) {
    while called.recv_timeout(Duration::from_secs(10)).unwrap() != method {}
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn an_answer_is_byte_exact_and_the_tree_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (answer, stderr) = (dir.path().join("out"), dir.path().join("err"));
    fs::write(&answer, b"\x00\xff\x1b no newline").unwrap();
    fs::write(&stderr, b"chatter").unwrap();
    let (fake, _) = one_worker(dir.path(), true, json!({"status": "completed"}), &answer, &stderr);
    let output = output(fake::roost(&fake.socket).args(["run", "--cap", "2", "--budget", "9", "--", "prog", "--cap", "7"]));
    assert_eq!(
        (output.status.code(), output.stdout.as_slice(), output.stderr.as_slice()),
        (Some(0), &b"\x00\xff\x1b no newline"[..], &b""[..])
    );
    let (open, launch) = (&fake.calls("open")[0], &fake.calls("launch")[0]);
    assert_eq!((&open["ephemeral"], &open["settings"]["cap"], &open["settings"]["budget"]), (&json!(true), &json!(2), &json!(9)));
    assert_eq!(
        (&launch["tasks"][0]["argv"], &launch["tasks"][0]["max_subagents_allowed"]),
        (&json!(["prog", "--cap", "7"]), &json!("rest"))
    );
    assert_eq!(fake.calls("close").len(), 1);
}

#[test]
fn a_failure_passes_code_and_standard_error_on() {
    let dir = tempfile::tempdir().unwrap();
    let (answer, stderr) = (dir.path().join("out"), dir.path().join("err"));
    fs::write(&answer, b"half").unwrap();
    fs::write(&stderr, b"it broke").unwrap();
    let (fake, _) = one_worker(dir.path(), true, json!({"status": "failed", "kind": "exit", "code": 7}), &answer, &stderr);
    let output = output(fake::roost(&fake.socket).args(["run", "--", "prog"]));
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(7), &b"half"[..]));
    assert!(err.contains("it broke\n") && err.contains(stderr.to_str().unwrap()), "{err}");
    assert_eq!(err.lines().last(), Some("roost: w failed: exit code 7"));
    let json = bounded::output(fake::roost(&fake.socket).args(["run", "--json", "--", "prog"])).stdout;
    assert_eq!(serde_json::from_slice::<Value>(&json).unwrap()["outcome"]["code"], 7);
}

#[test]
fn in_a_worker_it_is_a_child_of_the_same_tree() {
    let dir = tempfile::tempdir().unwrap();
    let (answer, stderr) = (dir.path().join("out"), dir.path().join("err"));
    fs::write(&answer, b"x").unwrap();
    let (fake, _) = one_worker(dir.path(), true, json!({"status": "completed"}), &answer, &stderr);
    let in_worker = || {
        let mut command = fake.roost();
        command.env("ROOST_WORKER", "w5").env("ROOST_EPOCH", "2");
        command
    };
    assert_eq!(output(in_worker().args(["run", "--", "prog"])).stdout, b"x");
    assert_eq!((fake.calls("open").len(), fake.calls("close").len()), (0, 0));
    assert_eq!((&fake.calls("hello")[0]["identity"]["worker"], &fake.calls("hello")[0]["identity"]["epoch"]), (&json!("w5"), &json!(2)));
    let output = output(in_worker().args(["run", "--cap", "2", "--", "prog"]));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && err.contains("--cap") && err.contains("open already"), "{err}");
}

#[test]
fn ctrl_c_and_term_stop_the_tree_and_wait_for_its_end() {
    for stop in [Signal::INT, Signal::TERM] {
        let dir = tempfile::tempdir().unwrap();
        let (answer, stderr) = (dir.path().join("out"), dir.path().join("err"));
        fs::write(&answer, b"so far").unwrap();
        let (fake, called) = one_worker(dir.path(), false, Value::Null, &answer, &stderr);
        let mut command = fake::roost(&fake.socket);
        let child = start(command.args(["run", "--", "prog"]).stdout(Stdio::piped()).stderr(Stdio::piped()));
        until(&called, "result");
        signal(&child, stop);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(130), &b"so far"[..]));
        assert_eq!((fake.calls("interrupt").len(), fake.calls("close").len()), (1, 1));
    }
}

#[test]
fn a_second_ctrl_c_leaves_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (tell, called) = mpsc::channel();
    let tell = Mutex::new(tell);
    let fake = Fake::start(&dir.path().join("s"), move |method, _| {
        tell.lock().unwrap().send(method.to_owned()).ok();
        Some(match method {
            "open" => Act::Reply(fake::opened()),
            "launch" => Act::Reply(fake::receipt("w")),
            "result" | "interrupt" => Act::Hang,
            _ => return None,
        })
    });
    let mut child = start(fake::roost(&fake.socket).args(["run", "--", "prog"]));
    until(&called, "result");
    signal(&child, Signal::INT);
    until(&called, "interrupt");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
