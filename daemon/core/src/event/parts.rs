//! What events are made of.

use roost_proto::id::{ExecutionId, JobId, Token, TreeId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::limits;

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
    /// Milliseconds that a completion is held back before its lead takes it in.
    #[serde(default = "hold_ms")]
    pub hold_ms: u64,
    /// Milliseconds from the start of a process that speaks the protocol to its hello; 0: for ever.
    #[serde(default = "startup_ms")]
    pub startup_ms: u64,
    /// Milliseconds from a worker's last word to its exit, after which it is killed; 0: never.
    #[serde(default = "settle_to_exit_ms")]
    pub settle_to_exit_ms: u64,
    /// Milliseconds without a sign of life, outside of a tool, after which such a worker has failed; 0: for ever.
    #[serde(default = "idle_ms")]
    pub idle_ms: u64,
}

fn hold_ms() -> u64 {
    limits::HOLD_MS
}

fn settle_to_exit_ms() -> u64 {
    limits::SETTLE_TO_EXIT_MS
}

fn startup_ms() -> u64 {
    limits::STARTUP_MS
}

fn idle_ms() -> u64 {
    limits::IDLE_MS
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

/// A saved context; its bytes lie beside the event in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// SHA-256 of the bytes, shortened: what is verified at the wake.
    pub digest: Digest,
    /// How many bytes.
    pub bytes: u64,
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
