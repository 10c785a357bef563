//! The side of Roost: a private daemon on a real file system, a client that keeps it busy, and what the kernel says of both processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use roost_tests::real::{DaemonPids, Home, Tree, Wire};
use serde_json::{Value, json};

use crate::plan::Plan;

/// The most tasks of one launch.
const TASKS_MAX: usize = 20;
/// Launches that one client has on their way.
const LAUNCHES_MAX: usize = 32;
/// How long anything may take: it only ends a row that hangs.
pub const PATIENCE: Duration = Duration::from_secs(3_600);

/// A program that does nothing.
pub const NO_OP: &str = "/bin/true";

/// A daemon that runs, in a directory of its own.
pub fn daemon(plan: &Plan) -> Home {
    let home = Home::within(&plan.below);
    home.start_daemon(&["--idle-exit", "0"]);
    home
}

/// A tree with a budget for anything.
pub fn tree<'a>(home: &'a Home, cap: usize) -> Tree<'a> {
    Tree::open(home, &["--cap", &cap.to_string(), "--budget", "10000000"])
}

/// A connection that speaks as the root of a tree.
pub struct Client {
    pub wire: Wire,
    submitter: Value,
    /// What its request ids begin with, and how many it has made.
    name: String,
    requests: u64,
}

impl Client {
    pub fn new(tree: &Tree<'_>) -> Self {
        let submitter = serde_json::to_value(roost::submitter().expect("surroundings")).expect("JSON");
        Self { wire: tree.wire(), submitter, name: roost::request_id().expect("randomness"), requests: 0 }
    }

    /// The parameters of a launch, as of a request that was never made.
    pub fn launching(&mut self, tasks: &[Value]) -> Value {
        self.requests += 1;
        json!({"request_id": format!("{}-{}", self.name, self.requests), "tasks": tasks, "submitter": self.submitter})
    }

    /// Launches this, and waits for the receipt.
    pub fn launch(&mut self, tasks: &[Value]) -> Value {
        let params = self.launching(tasks);
        self.wire.call("launch", &params).unwrap_or_else(|error| panic!("no receipt: {error}"))
    }

    /// Launches the same task so often, the calls one after the other without waiting for each receipt.
    pub fn storm(&mut self, count: usize, task: &Value) {
        let mut on_their_way = 0;
        let mut left = count;
        while left > 0 || on_their_way > 0 {
            if left > 0 && on_their_way < LAUNCHES_MAX {
                let tasks = vec![task.clone(); left.min(TASKS_MAX)];
                left -= tasks.len();
                let params = self.launching(&tasks);
                self.wire.send("launch", &params);
                on_their_way += 1;
                continue;
            }
            let answer = self.wire.answer(PATIENCE).expect("a receipt");
            assert!(answer["error"].is_null(), "no receipt: {answer}");
            on_their_way -= 1;
        }
    }

    /// Waits until these have ended, or all for no name. Says how many completed.
    pub fn wait(&mut self, names: &[String]) -> usize {
        self.requests += 1;
        self.wire.send("wait", &json!({"request_id": format!("{}-{}", self.name, self.requests), "names": names}));
        let mut answer = self.wire.answer(PATIENCE).expect("an answer");
        while answer["method"].is_string() {
            answer = self.wire.answer(PATIENCE).expect("an answer");
        }
        let ended = answer["result"]["ended"].as_array().unwrap_or_else(|| panic!("no ends: {answer}"));
        ended.iter().filter(|end| end["outcome"]["status"] == "completed").count()
    }

    /// Holds or releases admissions.
    pub fn pause(&mut self, paused: bool) {
        self.wire.call("pause", &json!({"paused": paused})).expect("the root may");
    }

    /// One of the tree's counts. Waits for notifications until it is there.
    pub fn until(&mut self, what: &str, count: usize) {
        let stands = self.wire.call("watch", &json!({})).expect("the root may watch");
        let is_there = |progress: &Value| progress[what].as_u64().is_some_and(|found| found >= count as u64);
        let mut is_over = is_there(&stands);
        while !is_over {
            let note = self.wire.note(PATIENCE).expect("a notification");
            is_over = is_there(&note["params"]);
        }
    }
}

/// A task of these words.
pub fn task(argv: &[&str]) -> Value {
    json!({"argv": argv})
}

/// One that may have descendants.
pub fn lead(argv: &[&str], descendants: usize) -> Value {
    json!({"argv": argv, "max_subagents_allowed": descendants})
}

/// What each process has written, in the order of executions and incarnations.
pub fn outputs(home: &Home) -> Vec<String> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(home.state_dir().join("executions")).expect("its directory").flatten() {
        let path = entry.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| path.extension().is_some_and(|kind| kind == "out"))
        else {
            continue;
        };
        let (execution, epoch) = stem[1..].split_once('-').expect("an incarnation");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        found.insert((number(execution), number(epoch)), fs::read_to_string(&path).expect("an output"));
    }
    found.into_values().collect()
}

/// Two numbers, the first and the last moment of a process that says them.
pub fn stamps(text: &str) -> (u64, u64) {
    let (began, ended) = text.trim().split_once(' ').unwrap_or_else(|| panic!("no stamps: {text:?}"));
    (began.parse().expect("a number"), ended.parse().expect("a number"))
}

/// Seconds of processor time that both have used, all threads.
pub fn processor_seconds(pids: DaemonPids) -> f64 {
    let of = |pid: u32| {
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("a process").flatten();
        let time = |path: &Path| fs::read_to_string(path.join("schedstat")).ok()?.split(' ').next()?.parse::<f64>().ok();
        threads.filter_map(|thread| time(&thread.path())).sum::<f64>() / 1e9
    };
    of(pids.supervisor) + of(pids.broker)
}

/// Bytes of memory that both have for themselves, and their share of what they have together with others.
pub fn memory(pids: DaemonPids) -> f64 {
    let of = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("a process");
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).expect("its share");
        line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).expect("a number") * 1024.0
    };
    of(pids.supervisor) + of(pids.broker)
}

/// How long the write-ahead log of the journal is.
pub fn log_bytes(home: &Home) -> u64 {
    fs::metadata(home.state_dir().join("roost.db-wal")).map_or(0, |found| found.len())
}
