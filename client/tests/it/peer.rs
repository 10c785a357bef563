//! A daemon whose every frame the test sends itself, in its own order: for what `fake.rs` cannot say.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bounded::{PATIENCE, readable};
use crate::fake;

pub struct Peer {
    listener: UnixListener,
    pub socket: PathBuf,
}

/// One connection of a client.
pub struct Talk {
    lines: BufReader<UnixStream>,
    to: UnixStream,
}

/// A call that waits for its answer.
pub struct Asked {
    id: Value,
    pub params: Value,
}

impl Peer {
    pub fn new(dir: &Path) -> Self {
        let socket = dir.join("s");
        Self { listener: UnixListener::bind(&socket).unwrap(), socket }
    }

    /// As a worker of the tree t1; unlike a real one it gives up when the test has.
    pub fn worker_config(&self) -> roost::Config {
        let identity = json!({"tree": "t1", "worker": "w1", "token": fake::TOKEN, "epoch": 1});
        roost::Config {
            identity: Some(serde_json::from_value(identity).unwrap()),
            start: roost::Start::Never,
            ..fake::config(&self.socket)
        }
    }

    /// As the root of the tree t1.
    pub fn root_config(&self) -> roost::Config {
        let identity = json!({"tree": "t1", "token": fake::TOKEN});
        roost::Config { identity: Some(serde_json::from_value(identity).unwrap()), ..fake::config(&self.socket) }
    }

    pub fn accept(&self) -> Talk {
        assert!(readable(&self.listener, PATIENCE), "nobody connects");
        let (to, _) = self.listener.accept().unwrap();
        to.set_read_timeout(Some(PATIENCE)).unwrap();
        Talk { lines: BufReader::new(to.try_clone().unwrap()), to }
    }

    /// Takes a connection and says welcome; returns what its hello said.
    pub fn welcome(&self, more: Value) -> (Talk, Value) {
        let mut talk = self.accept();
        let hello = talk.call("hello");
        let role = hello.params.get("role").cloned().unwrap_or_else(|| json!("root"));
        let mut welcome = json!({"protocol": 1, "daemon": "peer", "role": role, "hold_ms": 0, "delivery": "steer"});
        welcome.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let said = hello.params.clone();
        talk.reply(&hello, welcome);
        (talk, said)
    }

    pub fn welcome_worker(&self) -> Talk {
        self.welcome(worker(json!({}))).0
    }

    pub fn welcome_root(&self) -> Talk {
        self.welcome(json!({"lease": 1})).0
    }
}

/// What a welcome says to a worker.
pub fn worker(more: Value) -> Value {
    let mut me = json!({"name": "w", "execution": "x1", "wakes": false});
    me.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"worker": me})
}

impl Talk {
    /// The next call, which must be this one.
    pub fn call(&mut self, method: &str) -> Asked {
        let mut line = String::new();
        assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the client went away instead of calling {method}");
        let call: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(call["method"], method, "{line}");
        Asked { id: call["id"].clone(), params: call["params"].clone() }
    }

    pub fn reply(&mut self, call: &Asked, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": call.id, "result": result}));
    }

    pub fn refuse(&mut self, call: &Asked, kind: &str) {
        self.line(&json!({"jsonrpc": "2.0", "id": call.id, "error": {"code": -32000, "message": kind, "data": {"kind": kind}}}));
    }

    /// The next call must be this one; answers it and returns its parameters.
    pub fn answer(&mut self, method: &str, result: Value) -> Value {
        let call = self.call(method);
        self.reply(&call, result);
        call.params
    }

    /// An acknowledgement in which everything is accepted.
    pub fn accept_all(&mut self) -> Value {
        let call = self.call("ack");
        let items = call.params["items"].clone();
        self.reply(&call, json!({"accepted": items, "gone": []}));
        items
    }

    pub fn push(&mut self, method: &str, params: Value) {
        self.line(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn deliver(&mut self, items: Value) {
        self.push("deliver", json!({"wake": true, "active_children": 0, "items": items}));
    }

    /// The client has gone, or goes now, without another word.
    pub fn end(&mut self) {
        let mut line = String::new();
        assert_eq!(self.lines.read_line(&mut line).unwrap(), 0, "{line}");
    }

    fn line(&mut self, value: &Value) {
        writeln!(self.to, "{value}").unwrap();
    }
}

pub fn completion(seq: u64, execution: u64) -> Value {
    let mut item = fake::result("a", json!({"status": "completed"}), "R", None);
    item["execution"] = format!("x{execution}").into();
    item["seq"] = seq.into();
    item["type"] = "completion".into();
    item
}

pub fn words(seq: u64, message: u64, text: &str) -> Value {
    json!({"seq": seq, "type": "lead_message", "message": format!("m{message}"), "text": text})
}
