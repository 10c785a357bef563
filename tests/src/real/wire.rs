//! The protocol as bytes: one JSON object per line. For what the command does not do, and for what it would never send.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use roost_proto::limits::LINE_BYTES_MAX;
use serde_json::{Value, json};

use super::PATIENCE;

/// One connection.
pub struct Wire {
    stream: UnixStream,
    buffer: Vec<u8>,
    last_id: u64,
    /// Notifications that came while an answer was awaited.
    notes: VecDeque<Value>,
    /// Whether the daemon has closed it.
    pub is_over: bool,
}

impl Wire {
    /// Connects and says nothing yet.
    #[track_caller]
    pub fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        Self::over(stream)
    }

    /// Speaks over this one.
    pub fn over(stream: UnixStream) -> Self {
        Self { stream, buffer: Vec::new(), last_id: 0, notes: VecDeque::new(), is_over: false }
    }

    /// Says hello, as an operator without an identity.
    pub fn hello(&mut self, identity: Option<Value>) -> Result<Value, Value> {
        let mut params = json!({"protocol_min": 1, "protocol_max": 1, "client": "roost-tests"});
        if let Some(identity) = identity {
            params["identity"] = identity;
        }
        self.call("hello", &params)
    }

    /// A call and its answer: the result, or the error object.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        loop {
            let mut answer = self.answer(PATIENCE).unwrap_or_else(|| panic!("no answer to {method}"));
            if answer["id"] != json!(id) {
                self.notes.extend(answer["method"].is_string().then_some(answer));
                continue;
            }
            return if answer["error"].is_null() { Ok(answer["result"].take()) } else { Err(answer["error"].take()) };
        }
    }

    /// A call whose answer is read later, or never.
    #[track_caller]
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        self.send_as(self.last_id, method, params).expect("the daemon takes the call");
        self.last_id
    }

    /// The same under an id of the caller's, and it may fail.
    pub fn send_as(&mut self, id: u64, method: &str, params: &Value) -> std::io::Result<()> {
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.bytes(format!("{line}\n").as_bytes())
    }

    /// The next notification, also one that came before an answer; `None` when none comes in this time.
    pub fn note(&mut self, within: Duration) -> Option<Value> {
        let until = Instant::now() + within;
        while self.notes.is_empty() {
            let line = self.answer(until.saturating_duration_since(Instant::now()))?;
            self.notes.extend(line["method"].is_string().then_some(line));
        }
        self.notes.pop_front()
    }

    /// The notifications that are here already.
    pub fn notes(&mut self) -> Vec<Value> {
        self.notes.drain(..).collect()
    }

    /// Whether a whole line can be read without waiting.
    pub fn has_line(&self) -> bool {
        self.buffer.contains(&b'\n')
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// From now on bytes that the daemon does not take within a moment are an error.
    pub fn nonblocking(&self) {
        self.stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    }

    /// The next line from the daemon; `None` when it closed the connection, or said nothing in this time.
    pub fn answer(&mut self, within: Duration) -> Option<Value> {
        let until = Instant::now() + within;
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                assert!(at <= LINE_BYTES_MAX, "a line of {at} bytes");
                let text = String::from_utf8_lossy(&line).into_owned();
                return Some(serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {text}")));
            }
            if !self.fill(until) {
                return None;
            }
        }
    }

    /// Whether the daemon closes the connection in this time, whatever it says before.
    pub fn is_closed_within(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while self.fill(until) {
            self.buffer.clear();
        }
        Instant::now() < until
    }

    /// Reads what there is; false at the end or when the time is over.
    fn fill(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        self.stream.set_read_timeout(Some(left)).expect("a timeout");
        let mut bytes = [0; 64 << 10];
        match self.stream.read(&mut bytes) {
            Ok(0) => {
                self.is_over = true;
                false
            }
            Err(error) => {
                self.is_over |= !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                false
            }
            Ok(read) => {
                self.buffer.extend_from_slice(&bytes[..read]);
                true
            }
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// The word of an error object.
pub fn kind_of(error: &Value) -> &str {
    error["data"]["kind"].as_str().or_else(|| error["error"]["kind"].as_str()).unwrap_or("")
}
