//! How a fake agent's process speaks with the daemon: hellos, calls that are made again over a new connection, and what it is told.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use serde_json::{Value, json};

use super::super::super::PATIENCE;
use super::super::super::wire::Wire;
use super::Actor;

impl Actor {
    /// Says hello on a new connection. The one before it is closed, unless `keep` is set.
    pub(super) fn greet(&mut self, with: &Value) -> Result<Value, Value> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let epoch: u64 = variable("ROOST_EPOCH").parse().expect("a number");
        let identity =
            json!({"tree": variable("ROOST_TREE"), "worker": variable("ROOST_WORKER"), "token": variable("ROOST_TOKEN"), "epoch": epoch});
        let mut hello = json!({"protocol_min": 1, "protocol_max": 1, "client": "fake-agent", "identity": identity, "role": "worker"});
        hello["capabilities"] = json!(["park", "steer"]);
        for (name, value) in with.as_object().into_iter().flatten().filter(|(name, _)| *name != "keep") {
            hello[name] = value.clone();
        }
        let before = self.wire.take();
        if with["keep"] == true {
            self.others.extend(before);
        }
        self.hello = Some(hello);
        self.connect()
    }

    /// A connection that has said hello; repeated until there is a daemon again.
    pub(super) fn connect(&mut self) -> Result<Value, Value> {
        let socket = PathBuf::from(std::env::var_os("ROOST_SOCKET").expect("ROOST_SOCKET"));
        let hello = self.hello.clone().expect("hello was said before");
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let connected = UnixStream::connect(&socket).ok().map(Wire::over);
            self.calls += 1;
            if let Some(mut wire) = connected
                && wire.send_as(self.calls, "hello", &hello).is_ok()
            {
                self.wire = Some(wire);
                self.greetings += 1;
                match self.answer_once(self.calls, PATIENCE) {
                    Some(answer) => return answer,
                    None => self.wire = None,
                }
            }
            // Between two daemons nothing tells when the next one is there.
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{}: no daemon comes back", self.name);
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        // The daemon may close before it has taken all of it.
        self.wire.as_mut().expect("a connection").bytes(bytes).ok();
    }

    pub(super) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.calls += 1;
        let id = self.calls;
        // A connection that is gone is noticed when the answer is awaited.
        self.wire.as_mut().expect("a connection").send_as(id, method, &params).ok();
        id
    }

    pub(super) fn call(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        if params.is_null() {
            params = json!({});
        }
        if params["request_id"].is_null() {
            params["request_id"] = json!(format!("{}-{}-{}", self.name, std::process::id(), self.calls));
        }
        loop {
            let id = self.send(method, params.clone());
            if let Some(answer) = self.answer(id, PATIENCE) {
                return answer;
            }
            // The daemon went: the same call again, over a new connection.
            self.connect()?;
        }
    }

    pub(super) fn answer(&mut self, id: u64, within: Duration) -> Option<Result<Value, Value>> {
        let answer = self.answer_once(id, within);
        assert!(answer.is_some() || self.wire.as_ref().is_none_or(|wire| wire.is_over), "no answer to call {id}");
        answer
    }

    pub(super) fn answer_once(&mut self, id: u64, within: Duration) -> Option<Result<Value, Value>> {
        loop {
            if let Some(mut line) = self.early.remove(&id) {
                return Some(if line["error"].is_null() { Ok(line["result"].take()) } else { Err(line["error"].take()) });
            }
            let line = self.wire.as_mut().expect("a connection").answer(within)?;
            self.keep(line);
        }
    }

    /// Keeps a line for whoever asks for it. What answers no call is passed over.
    pub(super) fn keep(&mut self, line: Value) {
        match line["id"].as_u64() {
            Some(id) => drop(self.early.insert(id, line)),
            None => self.notes.extend(line["method"].is_string().then_some(line)),
        }
    }

    /// All notifications that came so far: a call that is answered is behind them.
    pub(super) fn heard(&mut self) -> Result<Value, Value> {
        self.call("inbox", json!({}))?;
        Ok(self.notes.drain(..).collect())
    }

    /// The next notification. When standard input says `exit` first, the process does; an end without that is the death of a
    /// supervisor.
    pub(super) fn note(&mut self) -> Value {
        loop {
            if let Some(note) = self.notes.pop_front() {
                return note;
            }
            let wire = self.wire.as_mut().expect("a connection");
            if !wire.has_line() {
                let stdin = std::io::stdin();
                let mut waits = [PollFd::new(&*wire, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
                let count = if self.deaf { 1 } else { 2 };
                poll(&mut waits[..count], None).expect("poll");
                if !waits[1].revents().is_empty() {
                    let mut line = String::new();
                    stdin.read_line(&mut line).expect("standard input");
                    if line == "exit\n" {
                        std::process::exit(0);
                    }
                    assert_eq!(line, "");
                    self.deaf = true;
                    continue;
                }
            }
            match wire.answer(PATIENCE) {
                Some(line) => self.keep(line),
                None => drop(self.connect().expect("welcome again")),
            }
        }
    }
}
