//! A daemon that answers as a test tells it to, and remembers what it was asked.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use roost::Start;
use roost::proto::paths::Surroundings;
use serde_json::{Value, json};

pub const TOKEN: &str = "00112233445566778899aabbccddeeff";

/// What to do with a call.
pub enum Act {
    Reply(Value),
    Refuse(&'static str),
    /// Close the connection without a word.
    Break,
    /// Say nothing and keep it open.
    Hang,
    /// Write the first half of an answer and close the connection.
    Half(Value),
    /// Say an error that answers no call and close the connection.
    ShowOut(&'static str),
    /// Reply, send these as `progress`, and close the connection.
    Progress(Value, Vec<Value>),
}

pub type Handler = dyn Fn(&str, &Value) -> Option<Act> + Send + Sync;

#[derive(Clone)]
pub struct Fake {
    pub socket: PathBuf,
    calls: Arc<Mutex<VecDeque<(String, Value)>>>,
}

impl Fake {
    /// Answers `hello` by itself when the handler has no answer.
    pub fn start(socket: &Path, handler: impl Fn(&str, &Value) -> Option<Act> + Send + Sync + 'static) -> Self {
        let listener = UnixListener::bind(socket).unwrap();
        let fake = Self { socket: socket.to_owned(), calls: Arc::default() };
        let (calls, handler): (_, Arc<Handler>) = (Arc::clone(&fake.calls), Arc::new(handler));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (calls, handler) = (Arc::clone(&calls), Arc::clone(&handler));
                std::thread::spawn(move || serve(stream.unwrap(), &calls, &*handler));
            }
        });
        fake
    }

    /// The calls of this method so far, oldest first.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        self.calls.lock().unwrap().iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }

    pub fn config(&self) -> roost::Config {
        config(&self.socket)
    }

    /// `roost` as the root of the tree t1.
    pub fn roost(&self) -> Command {
        let mut command = roost(&self.socket);
        command.env("ROOST_TREE", "t1").env("ROOST_TOKEN", TOKEN);
        command
    }
}

/// A configuration for this socket that starts nothing.
pub fn config(socket: &Path) -> roost::Config {
    let surroundings = Surroundings { socket: Some(socket.into()), home: Some("/nowhere".into()), ..Surroundings::default() };
    roost::Config {
        paths: surroundings.paths().unwrap(),
        identity: None,
        start: Start::Never,
        unit_directory: None,
        by_unit: false,
        client: "test".into(),
        daemon: None,
        daemon_flags: Vec::new(),
        answer_within: std::time::Duration::from_secs(20),
        back_within: std::time::Duration::from_secs(60),
    }
}

/// `roost` for this socket, outside of any tree, starting nothing.
pub fn roost(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roost"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ROOST")) {
        command.env_remove(name);
    }
    command.env("ROOST_SOCKET", socket).env("ROOST_NO_START", "1");
    command
}

fn serve(stream: UnixStream, calls: &Mutex<VecDeque<(String, Value)>>, handler: &Handler) {
    let mut to = stream.try_clone().unwrap();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { return };
        let call: Value = serde_json::from_str(&line).unwrap();
        let (id, method, params) = (&call["id"], call["method"].as_str().unwrap(), &call["params"]);
        calls.lock().unwrap().push_back((method.to_owned(), params.clone()));
        let act = handler(method, params).unwrap_or_else(|| match method {
            "hello" => Act::Reply(json!({"protocol": 1, "daemon": "fake", "role": "operator"})),
            _ => Act::Refuse("unknown_method"),
        });
        let mut lines = Vec::new();
        let closes = matches!(act, Act::Progress(..) | Act::ShowOut(_));
        match act {
            Act::Reply(result) => lines.push(json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Act::Refuse(kind) => {
                let error = json!({"code": -32000, "message": format!("refused: {kind}"), "data": {"kind": kind}});
                lines.push(json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            Act::Progress(result, more) => {
                lines.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
                lines.extend(more.into_iter().map(|params| json!({"jsonrpc": "2.0", "method": "progress", "params": params})));
            }
            Act::ShowOut(kind) => {
                lines.push(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "go", "data": {"kind": kind}}}));
            }
            Act::Half(result) => {
                let line = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
                to.write_all(&line.as_bytes()[..line.len() / 2]).unwrap();
                return;
            }
            Act::Hang => {}
            Act::Break => return,
        }
        for line in lines {
            if writeln!(to, "{line}").is_err() {
                return;
            }
        }
        if closes {
            return;
        }
    }
}

pub fn progress(live: u32) -> Value {
    json!({"tree": "t1", "cap": 8, "live": live, "queued": 0, "parked": 0, "blocked": 0, "finishing": 0, "completed": 0,
           "failed": 0, "stopped": 0, "paused": false})
}

pub fn opened() -> Value {
    json!({"tree": "t1", "token": TOKEN, "created": true, "settings": {}})
}

pub fn receipt(name: &str) -> Value {
    json!({"job": "j1", "tasks": [{"name": name, "worker": "w1", "execution": "x1", "status": "started"}]})
}

/// A result that has ended; `outcome` as on the wire.
pub fn result(name: &str, outcome: Value, answer: &str, path: Option<&Path>) -> Value {
    let mut result = json!({"name": name, "worker": "w1", "execution": "x1", "job": "j1", "task_index": 0, "outcome": outcome,
                            "answer": answer, "answer_bytes": answer.len()});
    if let Some(path) = path {
        result["answer_path"] = path.to_str().unwrap().into();
        result["answer_bytes"] = path.metadata().unwrap().len().into();
    }
    result
}

pub fn worker(name: &str, state: &str, stdout: &[&Path], stderr: &[&Path]) -> Value {
    let paths = |paths: &[&Path]| paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>();
    json!({"name": name, "worker": "w1", "execution": "x1", "job": "j1", "task_index": 0, "depth": 1, "state": state, "epoch": 1,
           "active_children": 0, "budget_remaining": 0, "accepted_at_ms": 0, "stdout_paths": paths(stdout), "stderr_paths": paths(stderr)})
}
