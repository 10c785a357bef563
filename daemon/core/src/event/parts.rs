//! What events are made of.

use roost_proto::id::{ExecutionId, JobId, Token, TreeId, WorkerId};
use serde::{Deserialize, Serialize};

use super::Settings;

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
