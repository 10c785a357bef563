//! What commands are made of.

use std::collections::BTreeMap;

use roost_proto::id::{Epoch, ExecutionId, JobId, Token, TreeId, WorkerId};
use roost_proto::link::ProcessIdentity;

use crate::event::{Digest, Runner, Settings};
use crate::rejection::Rejection;

/// What a `hello` claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The tree.
    pub tree: TreeId,
    /// The worker; `None` for the root.
    pub worker: Option<WorkerId>,
    /// The capability.
    pub token: Token,
    /// The incarnation.
    pub epoch: Option<Epoch>,
    /// What the calling process descends from, itself first, and its session's leader: a worker's token works for the processes of
    /// that worker alone.
    pub lineage: Vec<ProcessIdentity>,
    /// What the connection wants to be beyond making calls.
    pub role: Option<Role>,
}

/// What a connection wants to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Holder of the root's lease.
    Root,
    /// The voice of a worker's process.
    Voice {
        /// It can save its context when asked.
        can_park: bool,
        /// It takes items in while a turn is on.
        steers: bool,
    },
}

/// Whose result is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The last execution of this worker.
    Name(String),
    /// This execution.
    Execution(ExecutionId),
    /// A task of this job.
    Job(JobId, u32),
}

/// A tree to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open {
    /// A fresh random id.
    pub tree: TreeId,
    /// A fresh random token.
    pub token: Token,
    /// Repeating it finds the same tree.
    pub request_id: String,
    /// Name for later sessions of the same root.
    pub key: Option<String>,
    /// Lives by its root's connections.
    pub ephemeral: bool,
    /// What holds for it.
    pub settings: Settings,
}

/// A launch. Texts, arguments and environments stay with the driver, by task index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Repeating it returns the same receipt.
    pub request_id: String,
    /// Digest of the whole request.
    pub digest: Digest,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Answer with the results.
    pub foreground: bool,
    /// Answer at once, and yet its launcher waits for it: an interrupt of what is in the foreground reaches it.
    pub attended: bool,
    /// The interrupt generation that the caller knows.
    pub generation: Option<u64>,
    /// What the world had against it when it arrived: it is refused with this, unless it is a repeat.
    pub unusable: Option<Rejection>,
}

/// What the core needs to know of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The name that was asked for.
    pub name: Option<String>,
    /// What a made-up name starts with.
    pub stem: String,
    /// A fresh random token.
    pub token: Token,
    /// How it speaks.
    pub runner: Runner,
    /// Descendants.
    pub allowance: Allowance,
    /// The group that it counts against.
    pub group: Option<String>,
    /// Wall time.
    pub timeout_ms: Option<u64>,
}

/// How many descendants a task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// This many.
    Exactly(u64),
    /// All that its launcher has left.
    Rest,
}

/// Which closed trees are to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sweep {
    /// Those that were closed so many milliseconds ago; `None` without a size is what retention says.
    pub older_than_ms: Option<u64>,
    /// The oldest, until the files of those that are left take no more than this.
    pub bytes_max: Option<u64>,
    /// Only say which.
    pub dry_run: bool,
    /// What the files of executions take, for those that have any.
    pub sizes: BTreeMap<ExecutionId, u64>,
}
