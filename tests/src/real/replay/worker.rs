//! Workers of a transcript: real processes below the daemon that do what the replayer tells them (`tests/data/protocol/bridge.py`).

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::PATIENCE;
use super::super::command::readable;
use super::super::home::Home;

/// Where workers report to the replayer.
pub struct Stage {
    listener: UnixListener,
    socket: PathBuf,
    /// Those that have begun, with their names and environments, and that the transcript has not named yet.
    begun: VecDeque<(String, Worker, Value)>,
}

impl Stage {
    pub fn new(home: &Home) -> Self {
        let socket = home.file("control.sock");
        let listener = UnixListener::bind(&socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        Self { listener, socket, begun: VecDeque::new() }
    }

    /// The program that a worker runs.
    pub fn program(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("data/protocol/bridge.py")
    }

    /// What it is told as its first argument; the second is its name.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The next process of the worker of this name, and its environment.
    pub fn worker(&mut self, name: &str) -> Result<(Worker, Value), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.begun.iter().position(|(begun, _, _)| begun == name) {
                let (_, worker, environment) = self.begun.remove(at).ok_or("nobody")?;
                return Ok((worker, environment));
            }
            if !readable(&self.listener, until.saturating_duration_since(Instant::now())) {
                return Err(format!("`{name}` does not begin"));
            }
            let (control, _) = self.listener.accept().map_err(|error| error.to_string())?;
            let mut worker = Worker { control, buffer: Vec::new(), heard: VecDeque::new(), is_closed: false };
            let first = worker.report(PATIENCE).ok_or("a worker ended before it said who it is")?;
            let begun = first["name"].as_str().ok_or("a worker without a name")?.to_owned();
            self.begun.push_back((begun, worker, first["env"].clone()));
        }
    }
}

/// One process of a worker.
pub struct Worker {
    control: UnixStream,
    buffer: Vec<u8>,
    heard: VecDeque<Value>,
    is_closed: bool,
}

impl Worker {
    /// Says a line to the daemon; with the first one it connects.
    pub fn say(&mut self, line: &str) -> Result<(), String> {
        self.order(&json!({"say": line}))
    }

    /// What the daemon says to it next.
    pub fn heard(&mut self, within: Duration) -> Option<Value> {
        let until = Instant::now() + within;
        while self.heard.is_empty() && !self.is_closed {
            let report = self.report(until.saturating_duration_since(Instant::now()))?;
            match report["heard"].as_str() {
                Some(line) => self.heard.push_back(serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))),
                None => self.is_closed = true,
            }
        }
        self.heard.pop_front()
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Tells the process what to do.
    pub fn order(&mut self, order: &Value) -> Result<(), String> {
        self.control.write_all(format!("{order}\n").as_bytes()).map_err(|error| format!("the worker's process is gone: {error}"))
    }

    /// Waits until the process is gone.
    pub fn await_end(&mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            // The control connection ends with the process; what it still reports does not matter any more.
            if self.report(until.saturating_duration_since(Instant::now())).is_none() && Instant::now() < until {
                return Ok(());
            }
        }
        Err("the worker's process does not end".into())
    }

    /// Its next report; `None` when it is gone, or says nothing in this time.
    fn report(&mut self, within: Duration) -> Option<Value> {
        let until = Instant::now() + within;
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return Some(serde_json::from_slice(&line).unwrap_or_else(|error| panic!("a worker's report: {error}")));
            }
            if !readable(&self.control, until.saturating_duration_since(Instant::now())) {
                return None;
            }
            let mut bytes = [0; 16 << 10];
            match self.control.read(&mut bytes) {
                Ok(0) => return None,
                Ok(read) => self.buffer.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("a worker's control connection: {error}"),
            }
        }
    }
}
