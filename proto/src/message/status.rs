//! Looking at trees and workers. Reading is wider than acting: contract section 7.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, ExecutionId, JobId, TreeId, WorkerId};
use crate::message::tree::Progress;
use crate::outcome::Outcome;

/// Looks at a tree (root, worker) or at all trees (operator).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Which tree, for an operator; without it the reply lists the trees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// Only this worker and what descends from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Continue after this worker: `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<WorkerId>,
}

/// Answer to [`Status`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReply {
    /// The trees that were asked for.
    pub trees: Vec<TreeStatus>,
    /// The workers of the one tree, in the order of their launch; an operator who named no tree gets none.
    #[serde(default)]
    pub workers: Vec<WorkerStatus>,
    /// There are more: ask again with `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<WorkerId>,
}

/// One tree.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeStatus {
    /// Its counts.
    #[serde(flatten)]
    pub progress: Progress,
    /// Its key, if it was opened with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Most live workers per group, where it caps groups.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub group_caps: BTreeMap<String, u32>,
    /// Budget slots that the root may still reserve.
    pub budget_remaining: u64,
    /// The budget.
    pub budget: u64,
    /// When it was opened, Unix milliseconds.
    pub opened_at_ms: u64,
    /// When it was closed, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at_ms: Option<u64>,
}

/// One worker.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its lead; absent when that is the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<WorkerId>,
    /// Its execution.
    pub execution: ExecutionId,
    /// The job that launched it.
    pub job: JobId,
    /// Its index in that job, from 0.
    pub task_index: u32,
    /// How deep it is: 1 for a worker of the root.
    pub depth: u32,
    /// Its group, where its tree caps that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its state.
    pub state: WorkerState,
    /// Its place in the queue, from 1, when queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Why it waits, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Processes so far.
    pub epoch: Epoch,
    /// The live process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Processes that its own left behind, in a tree that keeps those: as they were when each of its processes ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<u32>,
    /// Direct children that have not ended.
    pub active_children: u32,
    /// Budget slots that it may still reserve.
    pub budget_remaining: u64,
    /// When it was accepted, Unix milliseconds.
    pub accepted_at_ms: u64,
    /// When it first started, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at_ms: Option<u64>,
    /// When it ended, Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at_ms: Option<u64>,
    /// Its standard output files, one per process, oldest first.
    pub stdout_paths: Vec<String>,
    /// Its standard error files, one per process, oldest first.
    pub stderr_paths: Vec<String>,
}

/// The states of a worker.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerState {
    /// Waits for its first slot.
    Queued,
    /// Has a slot; its process is being started.
    Starting,
    /// Its process runs.
    Running,
    /// Its process waits for descendants and keeps its slot.
    Waiting,
    /// Its process waits for descendants; its slot is lent.
    Blocked,
    /// Its context is being saved, or is saved and its process is on its way out.
    Parking,
    /// Its context is saved, it has no process and no slot.
    Parked,
    /// Parked, and something to wake for is there: it waits for a slot.
    WakeReady,
    /// It has a slot again; its next process is being started.
    Waking,
    /// It is being stopped.
    Stopping,
    /// It has answered; its descendants have not ended yet.
    Finishing,
    /// It has ended; `outcome` says how.
    Ended,
}

impl WorkerStatus {
    /// The reason of one that has what it waited for and needs a slot to go on.
    pub const WAITS_FOR_SLOT: &'static str = "waiting for a slot";
}
