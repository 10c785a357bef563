//! Transcripts: of each execution what went in and what came out, as a file of JSON lines. An observer that decides nothing.
//!
//! The driver hands over values after the commit of what they tell, and never waits: a thread of its own writes them. What cannot be
//! written is lost to the transcript, told in it as a gap, and changes nothing else. It knows no journal, no session and no process.

mod draft;
mod file;
mod line;
mod queue;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use roost_core::effect::Spawn;
use roost_core::event::{Owner, Record};
use roost_core::state::State;
use roost_proto::id::{Epoch, ExecutionId, Incarnation, TreeId, WorkerId};
use roost_proto::limits::{SPACE_LOW_BYTES, TRANSCRIPT_BYTES_MAX, TRANSCRIPT_BYTES_WAITING_MAX, TRANSCRIPT_LINES_WAITING_MAX};
use roost_proto::message::deliver::{DELIVER, PARK, WITHDRAW};
use roost_proto::paths::Paths;
use roost_proto::usage::UsageReport;
use serde_json::value::RawValue;

pub use line::{Direction, Line, What, Why};
pub use writer::Writer;

use crate::clock::wall_ms;
use queue::Queue;

/// Room that is kept in each transcript for the line that says that it is full.
const LAST_LINE_BYTES: u64 = 256;
/// How long the end of a broker waits for what is to be written yet.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// How much there may be.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of one transcript.
    pub bytes_max: u64,
    /// Lines that wait to be written.
    pub lines_waiting_max: usize,
    /// Their bytes.
    pub bytes_waiting_max: usize,
    /// With less free on the file system nothing is written.
    pub kept_free: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes_max: TRANSCRIPT_BYTES_MAX,
            lines_waiting_max: TRANSCRIPT_LINES_WAITING_MAX,
            bytes_waiting_max: TRANSCRIPT_BYTES_WAITING_MAX,
            kept_free: SPACE_LOW_BYTES,
        }
    }
}

/// Where they are.
#[derive(Debug, Clone)]
pub struct Places {
    /// The transcripts: `x12.jsonl`.
    pub directory: PathBuf,
    /// What else there is of executions. An empty `x12.lossy` there says that a part of the transcript is missing: the transcripts may
    /// be where nothing can be written.
    pub executions: PathBuf,
}

impl Places {
    /// Those of a daemon.
    pub fn of(paths: &Paths) -> Self {
        Self { directory: paths.state_dir.join("transcripts"), executions: paths.executions() }
    }

    fn transcript(&self, execution: ExecutionId) -> PathBuf {
        self.directory.join(format!("{execution}.jsonl"))
    }

    fn mark(&self, execution: ExecutionId) -> PathBuf {
        self.executions.join(format!("{execution}.lossy"))
    }

    fn output(&self, incarnation: Incarnation) -> PathBuf {
        self.executions.join(format!("{incarnation}.out"))
    }
}

/// The observer's end in the driver.
#[derive(Debug)]
pub struct Transcripts {
    queue: Arc<Queue>,
    places: Places,
    /// Executions that have not ended, by their worker.
    seats: BTreeMap<WorkerId, Seat>,
}

/// What must be known of an execution to tell of it.
#[derive(Debug)]
struct Seat {
    execution: ExecutionId,
    epoch: Epoch,
    speaks: bool,
    /// It was there before this broker, which has said nothing of it yet.
    is_inherited: bool,
    /// The newest report, until it is told.
    usage: Option<UsageReport>,
}

impl Seat {
    fn new(execution: ExecutionId, speaks: bool) -> Self {
        Self { execution, epoch: Epoch(0), speaks, is_inherited: false, usage: None }
    }
}

/// Lines whose events are not committed yet.
#[derive(Debug, Default)]
pub struct Drafts {
    records: usize,
    lines: Vec<(ExecutionId, Line)>,
}

impl Transcripts {
    /// Both ends, the writer not running yet.
    pub fn new(places: Places, bounds: Bounds) -> (Self, Writer) {
        let queue = Arc::new(Queue::new(bounds));
        let writer = Writer {
            queue: Arc::clone(&queue),
            places: places.clone(),
            bounds,
            tails: BTreeMap::new(),
            losses: BTreeMap::new(),
            marked: BTreeSet::new(),
            unmarked: BTreeSet::new(),
            retry_at: None,
            is_failing: false,
        };
        (Self { queue, places, seats: BTreeMap::new() }, writer)
    }

    /// The observer of a daemon, which goes on with what there is.
    pub fn start(paths: &Paths, state: &State) -> Self {
        let (mut transcripts, writer) = Self::new(Places::of(paths), Bounds::default());
        for worker in state.workers.values().filter(|worker| !worker.has_ended()) {
            let seat =
                Seat { epoch: worker.epoch, is_inherited: worker.epoch > Epoch(0), ..Seat::new(worker.execution, worker.speech.is_some()) };
            transcripts.seats.insert(worker.id, seat);
        }
        let queue = Arc::clone(&transcripts.queue);
        if let Err(error) = std::thread::Builder::new().name("transcripts".into()).spawn(|| writer.run()) {
            tracing::error!(%error, "transcripts have no thread and are not written");
            queue.end();
        }
        transcripts
    }

    /// Drafts what is new in a batch that is about to be committed, with the texts that lie beside its records.
    pub fn draft(&mut self, drafts: &mut Drafts, records: &[Record], texts: &[(u64, TreeId, Vec<u8>)]) {
        for record in &records[drafts.records.min(records.len())..] {
            self.record(&mut drafts.lines, record, texts);
        }
        drafts.records = records.len();
    }

    /// They are committed.
    pub fn tell(&mut self, drafts: Drafts) {
        if !drafts.lines.is_empty() {
            self.queue.put(drafts.lines);
        }
    }

    /// Something was told to the holder of a lease.
    pub fn told(&mut self, owner: Owner, method: &str, params: &RawValue) {
        let Owner::Worker(worker) = owner else { return };
        let what = match method {
            DELIVER => What::Items { delivery: params.to_owned() },
            WITHDRAW => What::Withdrawn { withdrawal: params.to_owned() },
            PARK => What::ParkAsked { ask: params.to_owned() },
            _ => return,
        };
        self.say(worker, what);
    }

    /// A worker is started with this task. One that speaks is handed it as an item.
    pub fn started(&mut self, spawn: &Spawn, task: &str) {
        if !spawn.speaks {
            self.say(spawn.worker, What::Task { text: task.to_owned() });
        }
    }

    /// A plain command is woken with this line on its standard input.
    pub fn woken(&mut self, spawn: &Spawn, items: &[u8]) {
        match serde_json::from_slice(items) {
            Ok(delivery) => self.say(spawn.worker, What::Items { delivery }),
            Err(error) => tracing::error!(%error, "what a command is woken with is not JSON"),
        }
    }

    /// Nothing of an execution is needed any more.
    pub fn remove(&self, execution: ExecutionId) {
        self.queue.remove(execution);
    }

    /// Whether a part of its transcript is known to be missing.
    pub fn is_lossy(&self, execution: ExecutionId) -> bool {
        self.queue.is_lossy(execution) || self.places.mark(execution).exists()
    }

    /// Puts one line in.
    pub fn put(&self, execution: ExecutionId, line: Line) {
        self.queue.put([(execution, line)]);
    }

    fn say(&mut self, worker: WorkerId, what: What) {
        let mut lines = Vec::new();
        self.push(&mut lines, worker, wall_ms(), what);
        self.queue.put(lines);
    }

    fn push(&mut self, lines: &mut Vec<(ExecutionId, Line)>, worker: WorkerId, at_ms: u64, what: What) {
        let Some(seat) = self.seats.get_mut(&worker) else { return };
        if std::mem::take(&mut seat.is_inherited) {
            lines.push((seat.execution, Line { at_ms, epoch: seat.epoch, what: What::Restart }));
        }
        lines.push((seat.execution, Line { at_ms, epoch: seat.epoch, what }));
    }
}

impl Drop for Transcripts {
    fn drop(&mut self) {
        if !self.queue.close(CLOSE_WITHIN) {
            tracing::warn!("the last lines of some transcripts may be missing: they could not be written in {CLOSE_WITHIN:?}");
        }
    }
}
