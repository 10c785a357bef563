//! Waiting for workers and reading what they answered: contract section 10.

use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, JobId, WorkerId};
use crate::outcome::Outcome;
use crate::usage::UsageTotals;

/// Blocks until direct children have ended. Aborting it aborts only the wait.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Repeating it after a lost connection gets the same answer.
    pub request_id: String,
    /// Which children; empty for all that the caller has launched and whose end it was not told yet.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub names: Vec<String>,
    /// Answer at the first end instead of the last.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub any: bool,
    /// The caller says with [`Told`] when it has taken the answer in; until then nothing of it counts as told, whatever dies in between.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tell_later: bool,
    /// Milliseconds after which the call answers with `timed_out`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The caller has the ends that a [`Wait`] with `tell_later` answered with: they are not announced any more.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Their executions.
    pub executions: Vec<ExecutionId>,
}

/// Answer to [`Told`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldReply {}

/// Answer to [`Wait`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReply {
    /// The children that have ended, in the order of their ends.
    pub ended: Vec<WorkerEnd>,
    /// The ones that have not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Whether the time was over first.
    #[serde(default)]
    pub timed_out: bool,
}

/// How one worker ended.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEnd {
    /// The worker's name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its execution: the key for de-duplication.
    pub execution: ExecutionId,
    /// The job that launched it.
    pub job: JobId,
    /// Its index in that job, from 0.
    pub task_index: u32,
    /// How it ended.
    pub outcome: Outcome,
}

/// Reads a worker's result. For its lead, a result that is read counts as consumed and is not announced afterwards.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadResult {
    /// The worker's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Instead of a name: this execution, also an earlier one of its worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<ExecutionId>,
    /// Instead of a name: the task of this job that `task_index` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// The task of the job, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_index: Option<u32>,
    /// Block until it has ended (the lead only).
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub wait: bool,
    /// With `wait`: the caller's name for this call. A worker that is parked inside of it makes it again with the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Milliseconds after which a `wait` answers with the state as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The tree, for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<crate::id::TreeId>,
}

/// Answer to [`ReadResult`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[expect(clippy::large_enum_variant, reason = "there is one per answer")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultReply {
    /// It has ended.
    Ended(WorkerResult),
    /// It has not; nothing was consumed.
    Active {
        /// The worker's name.
        name: String,
        /// Its state, as in `status`.
        state: crate::message::status::WorkerState,
        /// Whether a `wait` ran out of time.
        #[serde(default)]
        timed_out: bool,
    },
}

/// The whole result of an execution.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerResult {
    /// Who, and how it ended.
    #[serde(flatten)]
    pub end: WorkerEnd,
    /// The answer as text; bytes that are not UTF-8 are replaced here and kept in the file.
    pub answer: String,
    /// How many bytes the whole answer has.
    pub answer_bytes: u64,
    /// Whether `answer` is only the first part of it.
    #[serde(default)]
    pub answer_truncated: bool,
    /// Whether the answer is what a failed or stopped worker had written so far.
    #[serde(default)]
    pub partial: bool,
    /// Whether its last message was cut at a length limit of the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub length_limited: bool,
    /// Whether its lead was told this before: read, or announced and taken in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_before: bool,
    /// What it used, alone and with all below it; absent where nothing was ever reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotals>,
    /// Whether a part of its transcript could not be written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lossy: bool,
    /// The file that holds the answer byte by byte; absent when the worker never had a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_path: Option<String>,
    /// Processes that its own left behind, in a tree that keeps those: as they were when each of its processes ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<u32>,
}
