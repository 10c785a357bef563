//! What events are made of.

use roost_proto::id::{ExecutionId, JobId, Token, TreeId, WorkerId};
use roost_proto::limits;
use serde::{Deserialize, Serialize};



/// A tree as it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeOpened {
    /// Its id.
    pub tree: TreeId,
    /// The root's token.
    pub token: Token,
    /// The request that opened it.
    pub request_id: String,
    /// The name under which its root finds it again.
    pub key: Option<String>,
    /// Closed by itself when its root is gone and its work done.
    pub ephemeral: bool,
    /// What holds for it.
    pub settings: Settings,
}

/// What holds for a whole tree; see the message of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Most slots.
    pub cap: u32,
    /// Budget slots.
    pub budget: u64,
    /// Whether blocked waits lend their slot; otherwise they keep it and the newest may fail with `deadlock`.
    pub lend_slots: bool,
    /// Whether processes that a worker leaves behind are ended.
    pub end_leftovers: bool,
    /// Whether descendants of a worker that fails are adopted instead of stopped.
    pub adopt_orphans: bool,
    /// Milliseconds between TERM and KILL.
    pub stop_grace_ms: u64,
    /// Deepest nesting.
    pub depth_max: u32,
    /// What an interrupt reaches.
    #[serde(default)]
    pub interrupt_scope: InterruptScope,
    /// Groups with a cap, in the order of their names.
    pub group_caps: Vec<(String, u32)>,
    /// How completions reach a lead's model.
    #[serde(default)]
    pub delivery: Delivery,
    /// Which completions are told together.
    #[serde(default)]
    pub join: Join,
    /// Times and tries; the defaults in journals that are older than it.
    #[serde(default)]
    pub timing: Timing,
}

impl Settings {
    /// Milliseconds between TERM and KILL of what a main process leaves behind; `None` where that is left alone.
    pub fn leftovers_grace_ms(&self) -> Option<u64> {
        self.end_leftovers.then_some(self.timing.leftovers_grace_ms)
    }
}

/// Times and tries that hold for a whole tree; see the message of the same name. 0 is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// How long a process that has parked may take to exit.
    pub settle_to_exit_ms: u64,
    /// Milliseconds between TERM and KILL of what a main process leaves behind.
    pub leftovers_grace_ms: u64,
    /// Further tries of a start.
    pub start_retries: u32,
    /// Pause before the first of them; the n-th is n times as long.
    pub start_retry_ms: u64,
    /// How long a slot must have been to spare before an early wake takes it.
    pub early_wake_dwell_ms: u64,
    /// Admissions that may pass over a ready final wake.
    pub wake_bypass: u64,
    /// How long a worker may take to answer a park request.
    pub park_deadline_ms: u64,
    /// How long a worker that did not park in time is left alone.
    pub park_again_ms: u64,
    /// How long a process that speaks the protocol may take to say hello.
    pub startup_ms: u64,
    /// How long such a worker may show no sign of life outside of a tool.
    pub idle_ms: u64,
    /// How long a completion is held back before its lead takes it in.
    pub hold_ms: u64,
    /// Launches without a longer pause between them are told of together.
    pub join_window_ms: u64,
    /// How long the first completion of a group waits for the others.
    pub join_hold_ms: u64,
    /// How long the first straggler waits for the others.
    pub join_straggler_ms: u64,
}

impl Default for Timing {
    /// What a tree that was opened before there were such settings was opened with. Whoever changes one of these numbers for new trees
    /// must leave the old one here: replay depends on it.
    fn default() -> Self {
        Self {
            settle_to_exit_ms: limits::SETTLE_TO_EXIT_MS,
            leftovers_grace_ms: limits::LEFTOVERS_GRACE_MS,
            start_retries: limits::START_RETRIES,
            start_retry_ms: limits::START_RETRY_MS,
            early_wake_dwell_ms: limits::EARLY_WAKE_DWELL_MS,
            wake_bypass: limits::WAKE_BYPASS,
            park_deadline_ms: limits::PARK_DEADLINE_MS,
            park_again_ms: limits::PARK_AGAIN_MS,
            startup_ms: limits::STARTUP_MS,
            idle_ms: limits::IDLE_MS,
            hold_ms: limits::HOLD_MS,
            join_window_ms: limits::JOIN_WINDOW_MS,
            join_hold_ms: limits::JOIN_HOLD_MS,
            join_straggler_ms: limits::JOIN_STRAGGLER_MS,
        }
    }
}

/// How completions reach a lead's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Into its turn; an idle one is woken.
    #[default]
    Steer,
    /// After its turn; an idle one is woken.
    FollowUp,
    /// With the next turn that something else starts.
    NextTurn,
    /// Not at all.
    Passive,
}

impl Delivery {
    /// Whether a completion is a reason for a turn.
    pub fn wakes(self) -> bool {
        match self {
            Self::Steer | Self::FollowUp => true,
            Self::NextTurn | Self::Passive => false,
        }
    }

    /// Whether completions are pushed.
    pub fn pushes(self) -> bool {
        match self {
            Self::Steer | Self::FollowUp | Self::NextTurn => true,
            Self::Passive => false,
        }
    }
}

/// Which completions are told together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Each alone.
    #[default]
    Async,
    /// Those of launches that came together.
    Group,
}

/// How a worker speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// By its standard output and its exit code.
    #[default]
    Command,
    /// By the worker protocol.
    Worker,
}

impl Runner {
    fn is_command(&self) -> bool {
        *self == Self::Command
    }
}

/// A text that lies beside the event of this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextId(pub u64);

/// What an interrupt reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptScope {
    /// Everything of the tree.
    #[default]
    All,
    /// What was launched in the foreground, and all below it.
    Foreground,
    /// Nothing.
    None,
}

/// An accepted launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAccepted {
    /// Its id.
    pub job: JobId,
    /// The tree.
    pub tree: TreeId,
    /// Who launched it.
    pub owner: Owner,
    /// The launcher's id for the request.
    pub request_id: String,
    /// Digest of the request's content.
    pub digest: Digest,
    /// Its launcher waits for the results in the launch call itself.
    #[serde(default)]
    pub foreground: bool,
    /// The tasks.
    pub tasks: Vec<AcceptedTask>,
}

/// One task of an accepted launch. Its worker, execution and place follow from its index: ids are consecutive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedTask {
    /// The worker.
    pub worker: WorkerId,
    /// Its execution.
    pub execution: ExecutionId,
    /// Its name.
    pub name: String,
    /// Its token.
    pub token: Token,
    /// Descendants that it may launch.
    pub allowance: u64,
    /// How it speaks.
    #[serde(default, skip_serializing_if = "Runner::is_command")]
    pub runner: Runner,
    /// Index into the tree's `group_caps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
    /// Wall time from the first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Who owns a worker: its lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The root of the tree.
    Root,
    /// A worker of it.
    Worker(WorkerId),
}

/// Why a slot was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Head of the queue.
    Start,
    /// A parked worker whose subtree has settled.
    FinalWake,
    /// A parked worker with something in its outbox.
    EarlyWake,
    /// A live worker whose slot was lent and whose wait is over.
    Return,
}

/// Why a worker is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// Its lead, or an interrupt: nobody has to be told.
    Stop,
    /// Somebody else than its lead, for instance the end of the daemon: its lead is told.
    Operator,
    /// Its wall time is over.
    Timeout,
    /// Its lead failed.
    ParentFailed,
    /// It showed no sign of life.
    Idle,
}

/// A saved context; its bytes, or its path, lie beside the event in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// SHA-256 of the bytes, shortened: what is verified at the wake.
    pub digest: Digest,
    /// How many bytes.
    pub bytes: u64,
    /// Where they are.
    #[serde(default, skip_serializing_if = "Place::is_journal")]
    pub place: Place,
}

/// Where the bytes of a context are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the journal, beside the event.
    #[default]
    Journal,
    /// In a file of the worker's own, whose path is in the journal in their stead.
    Path,
}

impl Place {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    fn is_journal(&self) -> bool {
        *self == Self::Journal
    }
}

/// The first half of a SHA-256; in text 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub u128);

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// What became of words at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// They are owed to a worker that is active, or to a lead.
    Steering(ExecutionId),
    /// Its outcome is known; it is resumed with them as soon as it has ended.
    AfterEnd(ExecutionId),
    /// They resume a worker that had ended, with this job.
    Resumes(JobId),
    /// They are owed to a lead.
    ToLead,
}
