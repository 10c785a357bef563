//! A real daemon: what its transcripts say of a worker that parks and is woken, over a restart, and without any room for them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::disk::{SmallDisk, until};

/// Not a test of its own: a worker that speaks the protocol, parks, and is woken by its child's end.
#[test]
fn speaking_worker() {
    if std::env::var("ROOST_WORKER").is_err() {
        return;
    }
    let of = |name: &str| std::env::var(name).unwrap();
    let epoch: u64 = of("ROOST_EPOCH").parse().unwrap();
    let identity = json!({ "tree": of("ROOST_TREE"), "token": of("ROOST_TOKEN"), "worker": of("ROOST_WORKER"), "epoch": epoch });
    let mut client = Client::connect(&of("ROOST_SOCKET").into());
    client.hello(&json!({ "role": "worker", "capabilities": ["park"], "identity": identity })).unwrap();
    let items = client.next("deliver")["items"].as_array().unwrap().clone();
    client.call("ack", &json!({ "items": items.iter().map(|item| item["seq"].clone()).collect::<Vec<_>>() }));
    client.call("report", &json!({ "activity": "busy", "usage": { "sequence": 1, "input": 10, "turns": 1 } }));
    client.call("report", &json!({ "text": "so far", "usage": { "sequence": 2, "input": 20, "turns": 1 } }));
    let context = json!({ "bytes": "saved" });
    if epoch == 1 {
        let leaf = json!({ "argv": ["sh", "-c", "cat; exit 3"], "name": "leaf", "task": "a task" });
        client.call("launch", &json!({ "request_id": "l", "tasks": [leaf], "submitter": submitter() }));
        let settled = client.call("settle", &json!({ "request_id": "s1", "answer": "I wait", "context": context }));
        assert_eq!(settled["next"], "wait");
        client.next("park");
        assert_eq!(client.call("park_ready", &json!({ "context": { "bytes": "more" } }))["parked"], true);
        return;
    }
    client.call("tell_lead", &json!({ "request_id": "t", "text": "a word" }));
    let settled =
        client.call("settle", &json!({ "request_id": "s2", "answer": "done", "usage": { "sequence": 3, "input": 30, "turns": 2 } }));
    assert_eq!(settled["next"], "exit");
}

fn submitter() -> Value {
    json!({ "env": [["PATH", "/usr/bin:/bin"]], "cwd": "/", "umask": 18 })
}

struct Client {
    stream: BufReader<UnixStream>,
    calls: u64,
    notes: Vec<Value>,
}

impl Client {
    fn connect(socket: &PathBuf) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream: BufReader::new(stream), calls: 0, notes: Vec::new() }
    }

    fn hello(&mut self, more: &Value) -> Option<Value> {
        let mut params = json!({ "protocol_min": 1, "protocol_max": 1, "client": "test" });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.try_call("hello", &params)
    }

    /// The next line; `None` when the daemon has hung up.
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).unwrap_or(0);
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|| panic!("{method}: the daemon has hung up"))
    }

    fn try_call(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.calls += 1;
        let line = json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params });
        self.stream.get_mut().write_all(format!("{line}\n").as_bytes()).ok()?;
        loop {
            let answer = self.read()?;
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return Some(answer["result"].clone());
            }
            self.notes.push(answer);
        }
    }

    /// The parameters of the next notification of this name.
    fn next(&mut self, method: &str) -> Value {
        loop {
            let note = if self.notes.is_empty() { self.read().unwrap() } else { self.notes.remove(0) };
            if note["method"] == method {
                return note["params"].clone();
            }
        }
    }

    fn launch(&mut self, task: &Value) {
        let request_id = format!("l{}", self.calls);
        self.call("launch", &json!({ "request_id": request_id, "tasks": [task], "submitter": submitter() }));
    }

    fn result(&mut self, name: &str) -> Value {
        self.call("result", &json!({ "name": name, "wait": true }))["ended"].clone()
    }
}

struct Daemon {
    dir: tempfile::TempDir,
    process: Option<Child>,
}

impl Daemon {
    fn prepared() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        Self { dir, process: None }
    }

    fn start(&mut self) -> Client {
        self.start_with(&[])
    }

    fn start_with(&mut self, flags: &[&str]) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_roostd"));
        command.arg("--state-dir").arg(self.dir.path()).args(["--cgroup", "off"]).args(flags);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ROOST_")) {
            command.env_remove(name);
        }
        let log = fs::File::options().create(true).append(true).open(self.dir.path().join("daemon.log")).unwrap();
        self.process = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap());
        until("it listens", || UnixStream::connect(self.socket()).is_ok());
        self.connect(&json!({}))
    }

    /// A connection, of the new broker where the old one took it and left.
    fn connect(&self, more: &Value) -> Client {
        loop {
            let mut client = Client::connect(&self.socket());
            if client.hello(more).is_some() {
                return client;
            }
        }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("roost.sock")
    }

    fn text(&self, execution: u64) -> String {
        fs::read_to_string(self.dir.path().join(format!("transcripts/x{execution}.jsonl"))).unwrap_or_default()
    }

    /// A whole transcript, when its last line is there.
    fn transcript(&self, execution: u64) -> Vec<Value> {
        until("the outcome is told", || self.text(execution).contains(r#""kind":"outcome""#));
        self.text(execution).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A new broker. The old one has left.
    fn restart(&self, client: &mut Client, identity: &Value) -> Client {
        let old = client.call("daemon.restart", &json!({}))["broker_pid"].clone();
        self.newer_than(&old, identity)
    }

    fn newer_than(&self, old: &Value, identity: &Value) -> Client {
        loop {
            let mut client = self.connect(&json!({ "identity": identity }));
            if client.try_call("daemon.status", &json!({})).is_some_and(|status| status["broker_pid"] != *old) {
                return client;
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // Its workers have ended by now; a test that failed leaves them to this.
        let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            self.connect(&json!({})).call("daemon.stop", &json!({ "now": true }));
        }));
        if stopped.is_err() {
            process.kill().ok();
        }
        process.wait().ok();
    }
}

fn open(client: &mut Client) -> Value {
    let opened = client.call("open", &json!({ "request_id": "o", "settings": { "cap": 1 } }));
    json!({ "tree": opened["tree"], "token": opened["token"] })
}

fn kinds(transcript: &[Value]) -> Vec<(u64, &str)> {
    transcript.iter().map(|line| (line["epoch"].as_u64().unwrap(), line["kind"].as_str().unwrap())).collect()
}

#[test]
fn what_goes_in_and_out_of_a_worker_is_told_through_park_and_wake() {
    let mut daemon = Daemon::prepared();
    let mut root = daemon.start();
    open(&mut root);
    let test = std::env::current_exe().unwrap();
    let argv = [test.to_str().unwrap(), "--exact", "transcripts::daemon::speaking_worker", "--nocapture"];
    root.launch(&json!({ "argv": argv, "runner": "worker", "task": "the task", "name": "top", "max_subagents_allowed": 1 }));
    let result = root.result("top");
    assert_eq!((&result["outcome"]["status"], &result["answer"], result.get("lossy")), (&"completed".into(), &"done".into(), None));
    let told = daemon.transcript(1);
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
    let leaf = daemon.transcript(2);
    assert_eq!(kinds(&leaf), [(1, "task"), (1, "outcome")]);
    assert_eq!((&leaf[0]["text"], &leaf[1]["outcome"]["code"]), (&"a task".into(), &3.into()));
    assert_eq!(fs::read_to_string(leaf[1]["output"].as_str().unwrap()).unwrap(), "a task");
}

/// A command that ends when its fifo is opened for writing.
fn launch_held(daemon: &Daemon, root: &mut Client, name: &str) -> PathBuf {
    let fifo = daemon.dir.path().join(name);
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    root.launch(&json!({ "argv": ["cat", fifo.to_str().unwrap()], "name": name, "task": "held" }));
    fifo
}

#[test]
fn a_transcript_goes_on_after_a_restart() {
    let mut daemon = Daemon::prepared();
    let mut root = daemon.start();
    let identity = open(&mut root);
    let fifo = launch_held(&daemon, &mut root, "held");
    // The old broker leaves when all of it is written.
    let mut root = daemon.restart(&mut root, &identity);
    assert!(daemon.text(1).ends_with("\"text\":\"held\"}\n"), "{}", daemon.text(1));
    fs::write(fifo, "out").unwrap();
    let result = root.result("held");
    assert_eq!((&result["outcome"]["status"], &result["answer"], result.get("lossy")), (&"completed".into(), &"out".into(), None));
    assert_eq!(kinds(&daemon.transcript(1)), [(1, "task"), (1, "restart"), (1, "outcome")]);
}

#[test]
fn a_line_that_a_killed_broker_left_half_is_cut_and_told() {
    let mut daemon = Daemon::prepared();
    let mut root = daemon.start();
    let identity = open(&mut root);
    let fifo = launch_held(&daemon, &mut root, "held");
    until("its task is told", || daemon.text(1).ends_with('\n'));
    let broker = root.call("daemon.status", &json!({}))["broker_pid"].clone();
    let pid = i32::try_from(broker.as_i64().unwrap()).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).unwrap();
    let path = daemon.dir.path().join("transcripts/x1.jsonl");
    fs::File::options().append(true).open(path).unwrap().write_all(b"{\"at_ms\":17,\"epo").unwrap();
    let mut root = daemon.newer_than(&broker, &identity);
    fs::write(fifo, "out").unwrap();
    assert_eq!(root.result("held")["outcome"]["status"], "completed");
    let told = daemon.transcript(1);
    assert_eq!(kinds(&told), [(1, "task"), (1, "gap"), (1, "restart"), (1, "outcome")]);
    assert_eq!((&told[1]["why"], told[1].get("lost")), (&"torn".into(), None));
    assert_eq!(root.result("held")["lossy"], true);
}

#[test]
fn a_transcript_goes_with_its_tree() {
    let mut daemon = Daemon::prepared();
    let mut root = daemon.start_with(&["--keep", "0"]);
    open(&mut root);
    root.launch(&json!({ "argv": ["true"], "name": "a" }));
    root.result("a");
    assert_eq!(kinds(&daemon.transcript(1)), [(1, "task"), (1, "outcome")]);
    root.call("close", &json!({}));
    until("it is gone", || fs::read_dir(daemon.dir.path().join("transcripts")).unwrap().count() == 0);
}

/// Runs a worker with no room for its transcript: nothing but `lossy` is different, also after a restart.
fn runs_without_transcripts(mut daemon: Daemon) {
    let mut root = daemon.start();
    let identity = open(&mut root);
    let fifo = launch_held(&daemon, &mut root, "held");
    let mark = daemon.dir.path().join("executions/x1.lossy");
    until("it is known that its task is missing", || mark.exists());
    fs::write(fifo, "out").unwrap();
    let result = root.result("held");
    assert_eq!((&result["outcome"]["status"], &result["answer"], &result["lossy"]), (&"completed".into(), &"out".into(), &true.into()));
    let mut root = daemon.restart(&mut root, &identity);
    assert_eq!(root.result("held")["lossy"], true);
    assert_eq!(daemon.text(1), "");
}

#[test]
fn without_room_for_transcripts_outcomes_are_the_same_and_lossy() {
    let daemon = Daemon::prepared();
    let Some(_disk) = SmallDisk::mount(&daemon.dir.path().join("transcripts"), 64) else { return };
    runs_without_transcripts(daemon);
}

#[test]
fn with_a_directory_that_is_none_outcomes_are_the_same_and_lossy() {
    let daemon = Daemon::prepared();
    fs::write(daemon.dir.path().join("transcripts"), "").unwrap();
    runs_without_transcripts(daemon);
}
