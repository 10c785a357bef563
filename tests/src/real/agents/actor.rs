//! What a fake agent's process does: the steps of its script, one after the other, well-behaved or not.
//!
//! A script is a list of steps: a word (`"hello"`), or an object of one word and what it takes (`{"settle": {"answer": "X"}}`). It does
//! not know which order of steps makes sense. Its saved context is the number of the next step, so that a woken or resumed process goes
//! on where the one before it stopped.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};

use super::super::PATIENCE;
use super::super::wire::Wire;

mod talk;

/// The process.
pub struct Actor {
    name: String,
    wire: Option<Wire>,
    /// Connections that were left open.
    others: Vec<Wire>,
    /// What the last hello said, for the next connection.
    hello: Option<Value>,
    notes: VecDeque<Value>,
    /// Answers that came while that of another call was awaited.
    early: BTreeMap<u64, Value>,
    seen: BTreeSet<u64>,
    calls: u64,
    /// How often it has had to say hello.
    greetings: u64,
    next_step: usize,
    park: String,
    deaf: bool,
    directory: PathBuf,
}

/// Runs `fake-agent NAME SCRIPT`; returns its exit code.
pub fn main() -> i32 {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(script)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: fake-agent NAME SCRIPT");
        return 2;
    };
    let script: Vec<Value> = serde_json::from_str(&script).expect("a script is a list of steps");
    let saved = std::env::var_os("ROOST_CONTEXT").map(|path| std::fs::read_to_string(path).expect("a context"));
    let mut actor = Actor {
        name,
        wire: None,
        others: Vec::new(),
        hello: None,
        notes: VecDeque::new(),
        early: BTreeMap::new(),
        seen: BTreeSet::new(),
        calls: 0,
        greetings: 0,
        next_step: saved.map_or(0, |text| text.parse().expect("the number of a step")),
        park: "ready".into(),
        deaf: false,
        directory: std::env::var_os("F").map_or_else(|| "/tmp".into(), PathBuf::from),
    };
    // Whoever goes on from a context has said hello in another process.
    if actor.next_step > 0 {
        actor.greet(&Value::Null).expect("welcome again");
    }
    while let Some(step) = script.get(actor.next_step) {
        actor.next_step += 1;
        let (Ok(said) | Err(said)) = actor.step(step);
        actor.log(&json!({"step": step, "said": said}));
        if step.get("settle").is_some() && said["next"] == "wait" {
            actor.idle();
        }
    }
    0
}

impl Actor {
    fn step(&mut self, step: &Value) -> Result<Value, Value> {
        let (word, with) = match step.as_object().and_then(|object| object.iter().next()) {
            Some((word, with)) => (word.as_str(), with.clone()),
            None => (step.as_str().expect("a step is a word or an object"), Value::Null),
        };
        let text = || with.as_str().expect("a text").to_owned();
        let number = || i32::try_from(with.as_i64().expect("a number")).expect("a small number");
        match word {
            "hello" => return self.greet(&with),
            "take" => return self.take(&with),
            "note" => return Ok(self.note()),
            "heard" => return self.heard(),
            "settle" => return self.settle(with),
            "launch" => return self.launch(with),
            "serve" => return self.serve(&with),
            "relay" => return self.relay(&with),
            "call" => return self.call(with[0].as_str().expect("a method"), with[1].clone()),
            "send" => return Ok(json!(self.send(with[0].as_str().expect("a method"), with[1].clone()))),
            "answer" => return self.answer(with.as_u64().expect("the id of a call"), PATIENCE).expect("an answer"),
            "obey" => self.obey(Path::new(&text())),
            "raw" => self.raw(text().as_bytes()),
            "long" => self.raw(&vec![b'a'; usize::try_from(number()).expect("a length")]),
            "close" => drop(self.wire.take()),
            "say" => self.open("events", true).write_all(format!("{} {}\n", self.name, text()).as_bytes()).expect("a pipe with room"),
            "await" => self.open(&text(), false).read_exact(&mut [0]).expect("a line"),
            "print" => print!("{}", text()),
            "park" => self.park = text(),
            "deaf" => self.deaf = true,
            "hang" => loop {
                std::thread::park();
            },
            "kill" => kill_process(getpid(), Signal::from_named_raw(number()).expect("a signal")).expect("ourselves"),
            "exit" => std::process::exit(number()),
            other => panic!("no step is called {other}"),
        }
        Ok(Value::Null)
    }

    /// A named pipe of the test's.
    fn open(&self, pipe: &str, writes: bool) -> File {
        OpenOptions::new().read(!writes).write(writes).open(self.directory.join(pipe)).expect("a pipe")
    }

    fn log(&self, what: &Value) {
        let path = self.directory.join(format!("{}.log", self.name));
        let mut file = OpenOptions::new().create(true).append(true).open(path).expect("a log");
        file.write_all(format!("{what}\n").as_bytes()).expect("a log");
    }

    /// The next delivery with something new, taken in unless `ack` is false.
    fn take(&mut self, with: &Value) -> Result<Value, Value> {
        loop {
            let note = self.note();
            if note["method"] != "deliver" {
                self.log(&note);
                continue;
            }
            let mut delivery = note["params"].clone();
            let items = delivery["items"].as_array_mut().expect("items");
            let is_turn = items.is_empty();
            items.retain(|item| with["ack"] == false || self.seen.insert(item["seq"].as_u64().expect("a number")));
            let numbers: Vec<Value> = items.iter().map(|item| item["seq"].clone()).collect();
            if numbers.is_empty() && !is_turn {
                continue;
            }
            if with["ack"] != false {
                delivery["acked"] = self.call("ack", json!({"items": numbers}))?;
            }
            return Ok(delivery);
        }
    }

    fn settle(&mut self, mut with: Value) -> Result<Value, Value> {
        if with.get("context").is_none() {
            with["context"] = json!({"bytes": self.next_step.to_string()});
        }
        self.call("settle", with)
    }

    /// Launches tasks with our own surroundings.
    fn launch(&mut self, with: Value) -> Result<Value, Value> {
        let mut launch = if with.is_array() { json!({"tasks": with}) } else { with };
        let bytes = |text: &std::ffi::OsStr| json!(String::from_utf8_lossy(text.as_bytes()));
        let env: Vec<Value> = std::env::vars_os().map(|(name, value)| json!([bytes(&name), bytes(&value)])).collect();
        let cwd = std::env::current_dir().expect("a directory");
        launch["submitter"] = json!({"env": env, "cwd": bytes(cwd.as_os_str()), "umask": 18});
        self.call("launch", launch)
    }

    /// Turn after turn: takes in what comes, answers with this text, until there is nothing left. A resumed process does the same.
    fn serve(&mut self, answer: &Value) -> Result<Value, Value> {
        self.next_step -= 1;
        loop {
            let taken = self.take(&Value::Null)?;
            self.log(&json!({"served": taken}));
            let next = self.settle(json!({"answer": answer}))?["next"].take();
            if next == "exit" {
                std::process::exit(0);
            }
            if next == "wait" {
                self.idle();
            }
        }
    }

    /// Waits for a child's result in a call, and settles with it. Parked in the call, the next process makes it again.
    fn relay(&mut self, child: &Value) -> Result<Value, Value> {
        let context = json!({"bytes": (self.next_step - 1).to_string()});
        let call = json!({"name": child, "wait": true, "request_id": format!("relay-{}", self.next_step)});
        let mut id = self.send("result", call.clone());
        let mut greetings = self.greetings;
        loop {
            // A call that broke off has made another connection, which knows nothing of this one.
            if std::mem::replace(&mut greetings, self.greetings) != self.greetings {
                id = self.send("result", call.clone());
            }
            let asked = self.notes.pop_front().is_some_and(|note| note["method"] == "park");
            // The answer of the call may come first: it is read below all the same.
            if asked && self.call("park_ready", json!({"context": context}))?["parked"] == true {
                std::process::exit(0);
            }
            let early = self.early.remove(&id);
            match early.or_else(|| self.wire.as_mut().expect("a connection").answer(PATIENCE)) {
                Some(line) if line["id"] == json!(id) => {
                    self.log(&json!({"relayed": line}));
                    return self.settle(json!({"answer": line["result"]["ended"]["answer"]}));
                }
                Some(line) => self.keep(line),
                None => drop(self.connect()?),
            }
        }
    }

    /// Waits between two turns: for a delivery, or for others to need the slot.
    fn idle(&mut self) {
        loop {
            let note = self.note();
            if note["method"] == "deliver" {
                return self.notes.push_front(note);
            }
            self.log(&note);
            if note["method"] == "park" {
                match self.park.as_str() {
                    "ready" => {
                        let context = json!({"bytes": self.next_step.to_string()});
                        if self.call("park_ready", json!({"context": context})).is_ok_and(|reply| reply["parked"] == true) {
                            std::process::exit(0);
                        }
                    }
                    "decline" => drop(self.call("park_decline", json!({"not_before_ms": 1}))),
                    other => assert_eq!(other, "ignore"),
                }
            }
        }
    }

    /// Does what the test says, step by step, until that is gone.
    fn obey(&mut self, socket: &Path) {
        self.next_step = 0;
        // The test decides when it exits.
        self.deaf = true;
        let mut control = UnixStream::connect(socket).expect("the test");
        let orders = BufReader::new(control.try_clone().expect("a connection"));
        let env: serde_json::Map<String, Value> =
            std::env::vars().filter(|(name, _)| name.starts_with("ROOST_")).map(|(name, value)| (name, json!(value))).collect();
        let mut tell = |what: &Value| control.write_all(format!("{what}\n").as_bytes()).is_ok();
        tell(&json!({"name": self.name, "pid": std::process::id(), "env": env}));
        for order in orders.lines() {
            let order: Value = serde_json::from_str(&order.expect("an order")).expect("an order");
            let said = match self.step(&order) {
                Ok(said) => json!({"ok": said}),
                Err(error) => json!({"error": error}),
            };
            if !tell(&said) {
                break;
            }
        }
        std::process::exit(1);
    }
}
