//! A tree whose root is the test: its commands, its state, and waiting for that state.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::PATIENCE;
use super::command::Cmd;
use super::home::Home;
use super::wire::Wire;

/// An open tree.
pub struct Tree<'a> {
    home: &'a Home,
    /// Its id.
    pub id: String,
    /// The root's token.
    pub token: String,
}

impl<'a> Tree<'a> {
    /// Opens one with these flags; starts the daemon when there is none.
    #[track_caller]
    pub fn open(home: &'a Home, flags: &[&str]) -> Self {
        let opened = home.roost(["open", "--json"]).args(flags).run().ok().json();
        let text = |name: &str| opened[name].as_str().expect("a text").to_owned();
        Self { home, id: text("tree"), token: text("token") }
    }

    /// Gives any command the root's identity.
    pub fn as_root(&self, command: Cmd) -> Cmd {
        command.env("ROOST_TREE", &self.id).env("ROOST_TOKEN", &self.token)
    }

    /// `roost` as the root.
    pub fn roost<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Cmd {
        self.as_root(self.home.roost(args))
    }

    /// Launches a shell script as a worker. Returns its entry of the receipt.
    #[track_caller]
    pub fn spawn(&self, name: &str, script: &str) -> Value {
        self.spawn_with(name, &[], script)
    }

    /// The same with more flags.
    #[track_caller]
    pub fn spawn_with(&self, name: &str, flags: &[&str], script: &str) -> Value {
        let mut receipt = self.roost(["spawn", "--json", "--name", name]).args(flags).args(["--", "sh", "-c", script]).run().ok().json();
        receipt["tasks"][0].take()
    }

    /// Launches tasks as they are. Returns the receipt.
    #[track_caller]
    pub fn launch(&self, tasks: Value) -> Value {
        self.roost(["spawn", "--json", "--tasks", "-"]).stdin(tasks.to_string()).run().ok().json()
    }

    /// Waits for a worker's end. Returns its whole result, whatever it is.
    #[track_caller]
    pub fn result(&self, name: &str) -> Value {
        self.roost(["result", name, "--wait", "--json"]).run().json()
    }

    /// The answer of a worker that completes.
    #[track_caller]
    pub fn answer(&self, name: &str) -> String {
        let result = self.result(name);
        assert_eq!(result["outcome"], json!({"status": "completed"}), "{result}");
        result["answer"].as_str().expect("an answer").to_owned()
    }

    /// What `roost status --json` says.
    #[track_caller]
    pub fn status(&self) -> Value {
        self.roost(["status", "--json"]).run().ok().json()
    }

    /// One worker of it.
    #[track_caller]
    pub fn worker(&self, name: &str) -> Value {
        by_name(&self.status(), name).clone()
    }

    /// A worker's process. The worker itself may be faster than the daemon's word of its start.
    #[track_caller]
    pub fn pid(&self, name: &str) -> u32 {
        let status = self.until(&format!("a process of {name}"), |status| by_name(status, name)["pid"].is_u64());
        let worker = by_name(&status, name);
        u32::try_from(worker["pid"].as_u64().unwrap_or_else(|| panic!("no process: {worker}"))).expect("a pid")
    }

    /// A connection that speaks as the root.
    #[track_caller]
    pub fn wire(&self) -> Wire {
        let mut wire = Wire::connect(&self.home.socket());
        wire.hello(Some(json!({"tree": self.id, "token": self.token}))).expect("the root is welcome");
        wire
    }

    /// A connection that is told of every change from now on, and one to look with: no change falls between the two.
    #[track_caller]
    pub(super) fn watch(&self) -> (Wire, Wire) {
        let mut watcher = self.wire();
        watcher.call("watch", &json!({})).expect("the root may watch");
        (watcher, self.wire())
    }

    /// Waits until the tree stands like this. Looks again whenever the daemon tells of a change.
    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let (mut watcher, mut looker) = self.watch();
            loop {
                let status = looker.call("status", &json!({})).expect("the root may look");
                if holds(&status) {
                    return status;
                }
                assert!(Instant::now() < until, "{what} does not come; the tree: {status}");
                // Without a word the daemon may be gone or another one: look again over new connections.
                if watcher.answer(Duration::from_secs(2)).is_none() {
                    break;
                }
            }
        }
    }

    /// Waits until a worker is in this state.
    #[track_caller]
    pub fn until_state(&self, name: &str, state: &str) -> Value {
        let status = self.until(&format!("{name} {state}"), |status| by_name(status, name)["state"] == state);
        by_name(&status, name).clone()
    }
}

/// A worker of a status, or null.
pub fn by_name<'v>(status: &'v Value, name: &str) -> &'v Value {
    static NONE: Value = Value::Null;
    status["workers"].as_array().and_then(|workers| workers.iter().find(|worker| worker["name"] == name)).unwrap_or(&NONE)
}

/// Whether a worker is at work: a worker's first words may be here before the daemon's word of its start.
pub fn is_up(worker: &Value) -> bool {
    worker["state"] == "running" || worker["state"] == "starting"
}

/// A worker's outcome in one word: `completed`, `stopped`, or the kind of its failure.
pub fn outcome_of(worker: &Value) -> &str {
    let outcome = &worker["outcome"];
    outcome["kind"].as_str().or_else(|| outcome["status"].as_str()).unwrap_or("none")
}
