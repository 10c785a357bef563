//! What a worker leaves behind when it goes on: executions that are over, and the words that it sent.

use roost_proto::id::{Epoch, ExecutionId, JobId, MessageId};
use roost_proto::outcome::Outcome;
use serde::{Deserialize, Serialize};

use crate::event::{Digest, Sent};
use crate::state::speech::Said;

/// An execution that is over, of a worker that went on with another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// Which.
    pub execution: ExecutionId,
    /// The job that launched or resumed it.
    pub job: JobId,
    /// Its index in it.
    pub task_index: u32,
    /// Its last incarnation.
    pub epoch: Epoch,
    /// How it ended.
    pub outcome: Outcome,
    /// What it answered.
    pub said: Option<Said>,
    /// Its lead was told.
    pub told: bool,
    /// What its processes left behind, where that is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<u32>,
    /// Its place when it was accepted.
    #[serde(default)]
    pub place: u32,
    /// It got its slot in the step that accepted it.
    #[serde(default)]
    pub at_once: bool,
}

/// The last words of one sender.
pub type SentLog = std::collections::VecDeque<SentEntry>;

/// One of them, for a repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentEntry {
    /// The call.
    pub request_id: String,
    /// What it said.
    pub digest: Digest,
    /// The message.
    pub message: MessageId,
    /// What became of it at once.
    pub sent: Sent,
}
