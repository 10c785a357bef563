//! What a tree has cost: contract section 11.

use serde::{Deserialize, Serialize};

use crate::id::{TreeId, WorkerId};
use crate::usage::UsageTotals;

/// Asks for the usage of the caller's tree: the root sees all of it, a worker itself and what is below it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadUsage {
    /// The tree, for an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional = nullable))]
    pub tree: Option<TreeId>,
    /// Only this worker and what is below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional = nullable))]
    pub name: Option<String>,
    /// With a line for each worker.
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub each: bool,
    /// Only workers after this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional = nullable))]
    pub after: Option<WorkerId>,
}

/// Answer to [`ReadUsage`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageReply {
    /// Which tree.
    pub tree: TreeId,
    /// Of the whole that was asked for. `own` is the root's own, or that of the named worker.
    pub totals: UsageTotals,
    /// Each worker, in the order of launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerUsage>,
    /// There are more after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<WorkerId>,
}

/// The usage of one worker.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerUsage {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its lead; absent for a child of the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<WorkerId>,
    /// How many executions it had.
    pub executions: u32,
    /// What it used.
    #[serde(flatten)]
    pub totals: UsageTotals,
}
