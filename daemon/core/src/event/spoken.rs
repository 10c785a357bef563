//! What happened with workers that speak the protocol, and with words, deliveries and usage.

use roost_proto::id::{ExecutionId, JobId, MessageId, TreeId, WorkerId};
use roost_proto::link::ProcessIdentity;
use roost_proto::outcome::Outcome;
use roost_proto::usage::UsageReport;
use serde::{Deserialize, Serialize};

use super::{Context, Digest, Owner, Sent};
use crate::older;
use crate::time::Mono;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Spoken {
    /// A connection speaks for a lead from here on: the root's own, or a worker's process. (Runner `worker`.)
    LeaseTaken {
        /// The tree.
        tree: TreeId,
        /// Whom it speaks for.
        owner: Owner,
        /// Its number.
        lease: u64,
        /// The process can save its context and leave.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        can_park: bool,
        /// It takes items in while a turn is on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steers: bool,
        /// The root's process behind it: what another one has used comes on top.
        #[serde(default, skip_serializing_if = "Option::is_none", alias = "pid", deserialize_with = "older::some_process")]
        process: Option<ProcessIdentity>,
    },
    /// A settled worker has begun a turn of its own accord.
    Busy {
        /// Who.
        worker: WorkerId,
    },
    /// The time of the call in which a worker was parked is over.
    HoldOver {
        /// Whose.
        worker: WorkerId,
    },
    /// What a turn has said so far lies beside this event. (Runner `worker`.)
    Said {
        /// Who.
        worker: WorkerId,
    },
    /// What a process has used since it started, a worker's or a root's.
    UsageReported {
        /// The tree.
        tree: TreeId,
        /// Whose.
        owner: Owner,
        /// What.
        report: UsageReport,
    },
    /// A live worker ended its turn with descendants active. What the turn has answered lies beside this event. (Runner `worker`.)
    Settled {
        /// Who.
        worker: WorkerId,
        /// The saved context; without one it cannot be parked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
        /// The call, for a repeat of it.
        request_id: String,
        /// Whether the turn has said something.
        answered: bool,
    },
    /// A worker's last turn has ended: its outcome is known, and its process is on the way out. What it has answered lies beside this
    /// event. (Runner `worker`.)
    Answered {
        /// Who.
        worker: WorkerId,
        /// How it ends.
        outcome: Outcome,
        /// What it could be resumed from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<Context>,
        /// The call, for a repeat of it.
        request_id: String,
        /// Whether the turn has said something.
        answered: bool,
        /// Its last message was cut at a length limit of the model.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        length_limited: bool,
        /// When its process is killed, should it not leave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kill_at: Option<Mono>,
    },
    /// A process has not said hello in time and is being killed, to be started again. (Runner `worker`.)
    StartupOver {
        /// Whose.
        worker: WorkerId,
    },
    /// A lead stops children of its own: what a repeat of the call is answered with.
    StopTaken {
        /// The tree.
        tree: TreeId,
        /// Who.
        owner: Owner,
        /// The call.
        request_id: String,
        /// Whom, whether it had ended, and in which execution it was.
        stopped: Vec<(String, bool, ExecutionId)>,
    },
    /// A lead or a worker has taken in items that it was owed.
    Acked {
        /// The tree.
        tree: TreeId,
        /// Who.
        owner: Owner,
        /// Their numbers.
        items: Vec<u64>,
        /// The process that has, where it held the lease: its repeats get the same answer.
        #[serde(default, skip_serializing_if = "Option::is_none", alias = "pid", deserialize_with = "older::some_process")]
        process: Option<ProcessIdentity>,
        /// The call, for a repeat of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// A lead has read ends that it was owed by another way than an item.
    Read {
        /// The tree.
        tree: TreeId,
        /// The lead.
        owner: Owner,
        /// Whose ends.
        executions: Vec<ExecutionId>,
    },
    /// Words were accepted, from a lead to its child or the other way round. They lie beside this event, whose number is the message's.
    WordsSent {
        /// The tree.
        tree: TreeId,
        /// From whom.
        from: Owner,
        /// To whom.
        to: Owner,
        /// The call, for a repeat of it.
        request_id: String,
        /// What it said.
        digest: Digest,
        /// What became of it at once.
        sent: Sent,
    },
    /// Words that came when an execution had its outcome have nobody to read them: they go back.
    WordsReturned {
        /// The worker that does not read them.
        worker: WorkerId,
        /// Which, for whoever looks on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        messages: Vec<MessageId>,
    },
    /// An ended worker goes on with a new execution, in the queue.
    ResumeAccepted {
        /// Who.
        worker: WorkerId,
        /// The job.
        job: JobId,
        /// The execution.
        execution: ExecutionId,
    },
    /// What a worker may launch over its life was changed. What is above the highest so far is its launcher's loss.
    AllowanceSet {
        /// Whose.
        worker: WorkerId,
        /// To what.
        allowance: u64,
    },
    /// The time of a group of launches is over: what has ended of it is told.
    GroupReleased {
        /// The tree.
        tree: TreeId,
        /// The lead.
        owner: Owner,
        /// The group.
        group: u64,
    },
}

impl Spoken {
    /// The worker that it is about, or the tree.
    pub fn subject(&self) -> Result<WorkerId, TreeId> {
        match self {
            Self::Busy { worker }
            | Self::HoldOver { worker }
            | Self::Said { worker }
            | Self::Settled { worker, .. }
            | Self::Answered { worker, .. }
            | Self::StartupOver { worker }
            | Self::WordsReturned { worker, .. }
            | Self::ResumeAccepted { worker, .. }
            | Self::AllowanceSet { worker, .. } => Ok(*worker),
            Self::LeaseTaken { tree, .. }
            | Self::UsageReported { tree, .. }
            | Self::StopTaken { tree, .. }
            | Self::Acked { tree, .. }
            | Self::Read { tree, .. }
            | Self::WordsSent { tree, .. }
            | Self::GroupReleased { tree, .. } => Err(*tree),
        }
    }
}
