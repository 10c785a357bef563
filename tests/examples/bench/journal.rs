//! A journal as months of work leave it, made by the core and the journal's own writer without any process: trees that were closed after
//! their workers had ended, and one open tree with a queue.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use roost_core::broker::Broker;
use roost_core::command::{Allowance, CallId, Caller, Command, Launch, Open, Task};
use roost_core::effect::Effect;
use roost_core::event::{Digest, Event, Runner, Settings};
use roost_core::state::State;
use roost_core::time::{Mono, Now};
use roost_proto::bytes::Bytes;
use roost_proto::id::{Incarnation, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_tests::block_on::block_on;
use roost_tests::sim::table::settings;
use roostd::journal::{Batch, Environment, Journal, Snapshot, Spec};

/// Ended workers of one closed tree.
const TREE_WORKERS: usize = 10_000;
const TASKS: usize = 20;
/// Records of one commit, and between two snapshots at least: as the daemon writes under load.
const COMMIT_RECORDS: usize = 2_000;
const SNAPSHOT_RECORDS_MIN: u64 = 10_000;
const SNAPSHOT_RECORDS_PER_WORKER: u64 = 4;

/// Makes the journal of this state directory.
pub fn generate(state_dir: &Path, queued: usize, ended: usize) {
    std::fs::create_dir(state_dir).expect("a fresh directory");
    std::fs::set_permissions(state_dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("our own directory");
    let mut history = History::new(state_dir);
    let mut left = ended;
    for number in 1.. {
        if left == 0 {
            break;
        }
        let tree = TreeId(number);
        history.open(tree, false);
        let count = left.min(TREE_WORKERS);
        history.launch(tree, count);
        left -= count;
        history.ask(|call| Command::Close { call, caller: Caller::Root(tree), now: false });
    }
    let open = TreeId(1_000_000);
    history.open(open, true);
    history.launch(open, queued);
    history.commit();
}

struct History {
    journal: Journal,
    broker: Broker,
    batch: Batch,
    environment: Environment,
    calls: u64,
    now: u64,
    running: VecDeque<Incarnation>,
    since_snapshot: u64,
}

impl History {
    fn new(state_dir: &Path) -> Self {
        let (journal, _) = Journal::open(state_dir).expect("a fresh journal");
        let environment = Arc::new(vec![(Bytes::from("PATH"), Bytes::from("/usr/bin:/bin"))]);
        let (broker, batch, running) = (Broker::restore(State::default(), None), Batch::default(), VecDeque::new());
        Self { journal, broker, batch, environment, calls: 0, now: 0, running, since_snapshot: 0 }
    }

    fn open(&mut self, tree: TreeId, paused: bool) {
        let settings = Settings { budget: 10_000_000, ..settings() };
        let open = Open { tree, token: Token::new([1; 16]), request_id: tree.to_string(), key: None, ephemeral: false, settings };
        self.ask(|call| Command::Open { call, open: Box::new(open) });
        if paused {
            self.ask(|call| Command::Pause { call, caller: Caller::Root(tree), paused });
        }
    }

    /// So many workers; those that are started end as they would.
    fn launch(&mut self, tree: TreeId, count: usize) {
        for at in (0..count).step_by(TASKS) {
            let task = || Task {
                name: None,
                stem: "true".into(),
                token: Token::new([2; 16]),
                allowance: Allowance::Exactly(0),
                runner: Runner::Command,
                group: None,
                timeout_ms: None,
            };
            let tasks = (0..TASKS.min(count - at)).map(|_| task()).collect();
            let request_id = format!("{tree}-{at}");
            let launch =
                Launch { request_id, digest: Digest(0), tasks, foreground: false, attended: false, generation: None, unusable: None };
            self.ask(|call| Command::Launch { call, caller: Caller::Root(tree), launch: Box::new(launch) });
            while let Some(incarnation) = self.running.pop_front() {
                self.step(Command::Exited { incarnation, status: ExitStatus::Code(0), leftovers: Vec::new() });
            }
        }
    }

    fn ask(&mut self, command: impl FnOnce(CallId) -> Command) {
        self.calls += 1;
        let call = CallId(self.calls);
        self.step(command(call));
    }

    fn step(&mut self, command: Command) {
        self.now += 1;
        let at = Now { mono: Mono(self.now), wall_ms: 1_700_000_000_000 + self.now };
        let stepped = self.broker.step(at, command).expect("no fault of the core");
        for record in &stepped.records {
            let Event::JobAccepted(job) = &record.event else { continue };
            let spec = Spec {
                argv: vec![Bytes::from("true")],
                env: Arc::clone(&self.environment),
                env_extra: Vec::new(),
                cwd: Bytes::from("/"),
                umask: 0o22,
                task: String::new(),
            };
            self.batch.specs.extend(job.tasks.iter().map(|task| (task.worker, spec.clone())));
        }
        self.since_snapshot += stepped.records.len() as u64;
        self.batch.records.extend(stepped.records);
        self.batch.stream.extend(stepped.stream);
        for effect in stepped.effects {
            match effect {
                Effect::Spawn(spawn) => {
                    let incarnation = spawn.incarnation;
                    self.running.push_back(incarnation);
                    let process = ProcessIdentity { pid: 100, start_ticks: 1 };
                    self.step(Command::Spawned { incarnation, process });
                }
                Effect::RemoveFiles { tree, workers, .. } => {
                    self.batch.forget.extend(workers);
                    self.batch.forget_trees.push(tree);
                }
                _ => {}
            }
        }
        if self.batch.records.len() >= COMMIT_RECORDS {
            self.commit();
        }
    }

    /// As the daemon does at the end of a turn.
    fn commit(&mut self) {
        let state = self.broker.state();
        let mut batch = std::mem::take(&mut self.batch);
        if self.since_snapshot >= SNAPSHOT_RECORDS_MIN.max(state.workers.len() as u64 * SNAPSHOT_RECORDS_PER_WORKER) {
            self.since_snapshot = 0;
            batch.snapshot = Some(Snapshot { seq: state.seq, bytes: serde_json::to_vec(state).expect("JSON") });
        }
        batch.forget_records_to = Some(state.seq);
        block_on(self.journal.commit(batch)).expect("room");
    }
}
