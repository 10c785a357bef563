//! What goes into the journal and what comes back out of it. Values only: nothing here knows SQLite.

use std::collections::BTreeMap;
use std::sync::Arc;

use roost_core::event::{Context, Digest, Place};
use roost_proto::bytes::Bytes;
use roost_proto::id::{TreeId, WorkerId};
use roost_proto::message::events::NumberedEvent;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

pub use roost_core::event::Record;

use super::error::LoadError;

/// Names and values, in the order in which the submitter had them. Shared: many workers come from one shell.
pub type Environment = Arc<Vec<(Bytes, Bytes)>>;

/// What is to be written together, or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Records; the first continues the journal without a gap.
    pub records: Vec<Record>,
    /// How new workers are started. One that is there already is replaced.
    pub specs: Vec<(WorkerId, Spec)>,
    /// Saved contexts. The newest of a worker and the one before are kept.
    pub contexts: Vec<(WorkerId, Vec<u8>)>,
    /// Texts, by the number of the event that they lie beside.
    pub texts: Vec<(u64, TreeId, Vec<u8>)>,
    /// Texts that nobody will ask for again.
    pub forget_texts: Vec<u64>,
    /// What trees' streams go on with.
    pub stream: Vec<(TreeId, NumberedEvent)>,
    /// Trees whose texts and streams are no longer needed.
    pub forget_trees: Vec<TreeId>,
    /// Workers whose spec and contexts are no longer needed.
    pub forget: Vec<WorkerId>,
    /// The state after all records so far, or after an earlier one of them. The newest and the one before are kept.
    pub snapshot: Option<Snapshot>,
    /// Where the clock is. It is never set back.
    pub clock: Option<ClockMark>,
    /// Records up to this number are history that nobody will ask for again. Only what lies before the older of two
    /// snapshots really goes, and only so much at a time; the next batch that says so takes more.
    pub forget_records_to: Option<u64>,
    /// Give the room of what is gone back to the file system, before the answer.
    pub shrink: bool,
    /// Whose spec and context to hand back after the commit, those of this very batch included.
    pub load: Vec<WorkerId>,
    /// The texts to hand back.
    pub load_texts: Vec<u64>,
    /// Whose tasks to hand back.
    pub load_tasks: Vec<WorkerId>,
    /// Parts of streams to hand back: tree, first number, and how many at most.
    pub load_stream: Vec<(TreeId, u64, u32)>,
}

impl Batch {
    /// Whether the batch changes nothing; then it costs no transaction and no sync.
    pub fn writes_nothing(&self) -> bool {
        self.records.is_empty()
            && self.specs.is_empty()
            && self.contexts.is_empty()
            && self.texts.is_empty()
            && self.forget_texts.is_empty()
            && self.stream.is_empty()
            && self.forget_trees.is_empty()
            && self.forget.is_empty()
            && self.snapshot.is_none()
            && self.clock.is_none()
            && self.forget_records_to.is_none()
            && !self.shrink
    }

    /// About how many bytes it adds, without what its records and specs say.
    pub(super) fn bulk(&self) -> usize {
        let texts = self.texts.iter().map(|(_, _, bytes)| bytes.len()).sum::<usize>();
        texts + self.contexts.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() + self.snapshot.as_ref().map_or(0, |it| it.bytes.len())
    }
}

/// What a committed batch hands back.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct Committed {
    /// What was asked for, in the order asked.
    pub loaded: Vec<(WorkerId, Result<Loaded, LoadError>)>,
    /// The texts asked for; one that cannot be read is missing, and told in the log.
    pub texts: BTreeMap<u64, Vec<u8>>,
    /// The tasks asked for, likewise.
    pub tasks: BTreeMap<WorkerId, String>,
    /// The parts of streams asked for, in the order asked, events as JSON.
    pub stream: Vec<Vec<String>>,
}

/// What a worker is started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// How.
    pub spec: Spec,
    /// The newest saved context, verified.
    pub context: Option<Vec<u8>>,
}

/// How a worker is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Program and arguments.
    pub argv: Vec<Bytes>,
    /// The submitter's environment.
    pub env: Environment,
    /// What is set on top of it.
    pub env_extra: Vec<(Bytes, Bytes)>,
    /// The working directory.
    pub cwd: Bytes,
    /// The file mode creation mask.
    pub umask: u32,
    /// The task.
    pub task: String,
}

/// The whole state as the core wrote it.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record that it contains.
    pub seq: u64,
    /// The state, opaque here.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({}, {} bytes)", self.seq, self.bytes.len())
    }
}

/// Where the daemon's clock was, so that the next broker continues it and never goes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMark {
    /// The boot in which `offset_ms` holds.
    pub boot_id: String,
    /// The highest logical time written, that of records included.
    pub mono_ms: u64,
    /// What is added to the system's monotonic clock.
    pub offset_ms: i64,
}

/// What was in the journal when it was opened.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The newest snapshot that is sound.
    pub snapshot: Option<Snapshot>,
    /// The records after it, without a gap, up to the last one committed.
    pub records: Vec<Record>,
    /// Where the clock was.
    pub clock: Option<ClockMark>,
    /// What there is to say about it, for the log.
    pub notes: Vec<String>,
}

/// What an event says about a context of these bytes.
pub fn context_of(bytes: &[u8]) -> Context {
    let mut half = [0; 16];
    half.copy_from_slice(&sha256(bytes)[..16]);
    Context { digest: Digest(u128::from_be_bytes(half)), bytes: bytes.len() as u64, place: Place::Journal }
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
