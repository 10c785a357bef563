//! Fake agents from the test's side: tasks that run `fake-agent`, and agents that do step by step what the test says.

mod actor;

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::PATIENCE;
use super::command::{either_is_readable, readable};
use super::home::Home;
use super::process::Watched;
use super::tree::Tree;
use super::wire::Wire;

pub use actor::main as fake_agent;

/// Where agents report that obey the test.
pub struct Agents<'h> {
    home: &'h Home,
    listener: UnixListener,
    socket: PathBuf,
    /// Those that have begun and that nobody has asked for.
    begun: Vec<Agent>,
}

impl<'h> Agents<'h> {
    /// A desk for them.
    pub fn new(home: &'h Home) -> Self {
        let socket = home.file("agents.sock");
        let listener = UnixListener::bind(&socket).unwrap_or_else(|error| panic!("{}: {error}", socket.display()));
        Self { home, listener, socket, begun: Vec::new() }
    }

    /// A task whose agent obeys.
    pub fn task(&self, name: &str) -> Value {
        scripted(self.home, name, &json!([{"obey": self.socket}]))
    }

    /// Launches one whose agent obeys, with a budget for children.
    #[track_caller]
    pub fn launch(&mut self, tree: &Tree<'_>, name: &str, descendants: u64) -> Agent {
        tree.launch(json!([with_children(self.task(name), descendants)]));
        self.begins(name)
    }

    /// The same, up to the task that was taken in.
    #[track_caller]
    pub fn start(&mut self, tree: &Tree<'_>, name: &str, descendants: u64) -> Agent {
        let mut agent = self.launch(tree, name, descendants);
        agent.begin();
        agent
    }

    /// The next process of any agent, or nothing once the tree stands like this. Looks again at every change of the tree.
    #[track_caller]
    pub fn begins_unless(&mut self, tree: &Tree<'_>, is_over: impl Fn(&Value) -> bool) -> Option<Agent> {
        let until = Instant::now() + PATIENCE;
        let (mut watcher, mut looker) = tree.watch();
        loop {
            while self.begun.is_empty() && self.take_in(Duration::ZERO) {}
            if !self.begun.is_empty() {
                return Some(self.begun.remove(0));
            }
            let status = looker.call("status", &json!({})).expect("the root may look");
            if is_over(&status) {
                return None;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(either_is_readable(&self.listener, &watcher, left), "nobody begins, and the tree goes on: {status}");
            while watcher.has_line() || readable(&watcher, Duration::ZERO) {
                assert!(watcher.answer(PATIENCE).is_some(), "the watch ends");
            }
        }
    }

    /// The next process of the agent of this name.
    #[track_caller]
    pub fn begins(&mut self, name: &str) -> Agent {
        self.begins_within(name, PATIENCE).unwrap_or_else(|| panic!("{name} does not begin"))
    }

    /// The same, if it comes in this time.
    pub fn begins_within(&mut self, name: &str, within: Duration) -> Option<Agent> {
        let until = Instant::now() + within;
        loop {
            if let Some(at) = self.begun.iter().position(|agent| agent.name == name) {
                return Some(self.begun.remove(at));
            }
            if !self.take_in(until.saturating_duration_since(Instant::now())) {
                return None;
            }
        }
    }

    /// Takes in one that reports in this time.
    fn take_in(&mut self, within: Duration) -> bool {
        if !readable(&self.listener, within) {
            return false;
        }
        let mut control = Wire::over(self.listener.accept().expect("an agent").0);
        // One that is killed as it begins says nothing.
        if let Some(first) = control.answer(PATIENCE) {
            let pid = u32::try_from(first["pid"].as_u64().expect("a pid")).expect("a pid");
            let name = first["name"].as_str().expect("a name").to_owned();
            self.begun.push(Agent { name, pid, env: first["env"].clone(), control });
        }
        true
    }
}

/// A task that runs this script.
pub fn scripted(home: &Home, name: &str, script: &Value) -> Value {
    let program = home.program("examples/fake-agent");
    json!({"name": name, "runner": "worker", "task": "go", "argv": [program, name, script.to_string()]})
}

/// With a budget for children.
pub fn with_children(mut task: Value, descendants: u64) -> Value {
    task["max_subagents_allowed"] = json!(descendants);
    task
}

/// One that passes over TERM.
pub fn deaf(mut task: Value) -> Value {
    let argv = [json!("sh"), json!("-c"), json!("trap '' TERM; exec \"$@\""), json!("sh")];
    task["argv"] = argv.into_iter().chain(task["argv"].as_array().expect("arguments").clone()).collect();
    task
}

/// One process of an agent that obeys.
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its process.
    pub pid: u32,
    /// Its `ROOST_` variables.
    pub env: Value,
    control: Wire,
}

impl Agent {
    /// Does a step; the error is what the daemon refused it with.
    #[track_caller]
    pub fn tries(&mut self, step: &Value) -> Result<Value, Value> {
        self.order(step);
        self.said()
    }

    /// Does a step that nothing refuses.
    #[track_caller]
    pub fn does(&mut self, step: &Value) -> Value {
        self.tries(step).unwrap_or_else(|error| panic!("{}: {step} is refused: {error}", self.name))
    }

    /// Begins a step.
    #[track_caller]
    pub fn order(&mut self, step: &Value) {
        self.control.bytes(format!("{step}\n").as_bytes()).unwrap_or_else(|error| panic!("{} is gone: {error}", self.name));
    }

    /// What came of the step that was begun.
    #[track_caller]
    pub fn said(&mut self) -> Result<Value, Value> {
        let mut said = self.control.answer(PATIENCE).unwrap_or_else(|| panic!("{} says nothing", self.name));
        if said["error"].is_null() { Ok(said["ok"].take()) } else { Err(said["error"].take()) }
    }

    /// Says hello and takes its task in.
    #[track_caller]
    pub fn begin(&mut self) {
        self.does(&json!("hello"));
        let taken = self.take();
        assert_eq!(taken["items"][0]["type"], "task", "{taken}");
    }

    /// The next delivery, taken in.
    #[track_caller]
    pub fn take(&mut self) -> Value {
        self.does(&json!("take"))
    }

    /// The texts of a delivery that is taken in.
    #[track_caller]
    pub fn texts(&mut self) -> Vec<String> {
        let taken = self.take();
        let items = taken["items"].as_array().expect("items");
        items.iter().map(|item| item["text"].as_str().or(item["answer"].as_str()).expect("a text").to_owned()).collect()
    }

    /// A call, and what comes of it.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.tries(&json!({"call": [method, params]}))
    }

    /// Launches children of its own.
    #[track_caller]
    pub fn launch(&mut self, tasks: &Value) -> Value {
        self.does(&json!({"launch": tasks}))
    }

    /// Ends its turn with this answer; says what is next.
    #[track_caller]
    pub fn settle(&mut self, answer: &str) -> String {
        self.does(&json!({"settle": {"answer": answer}}))["next"].as_str().expect("a word").to_owned()
    }

    /// Settles with this answer, has nothing left to do, and exits.
    #[track_caller]
    pub fn finish(mut self, answer: &str) {
        assert_eq!(self.settle(answer), "exit");
        self.exit(0);
    }

    /// Waits for a request to park and says yes to it.
    #[track_caller]
    pub fn park(mut self) {
        self.await_note("park");
        assert_eq!(self.does(&json!({"call": ["park_ready", {"context": {"bytes": "0"}}]}))["parked"], true);
        self.exit(0);
    }

    /// The next notification of this kind; others are passed over.
    #[track_caller]
    pub fn await_note(&mut self, method: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let mut note = self.does(&json!("note"));
            if note["method"] == method {
                return note["params"].take();
            }
        }
        panic!("{} is told much, and no {method}", self.name);
    }

    /// Exits.
    #[track_caller]
    pub fn exit(mut self, code: i32) {
        let watched = Watched::try_new(self.pid);
        self.order(&json!({"exit": code}));
        if let Some(watched) = watched {
            watched.await_end();
        }
    }
}
