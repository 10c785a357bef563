//! Result data as hosts of subagents keep it: live details, and the compact form (schema version 3) of saved sessions.
//!
//! No end of the socket says them; they are here so that every language's types are drawn from one place. How they are made from
//! results, put into one list and summed is the client library's business. Field names are those of the hosts. Money is nano-dollars in
//! memory and US dollars in JSON.

use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, JobId, TreeId, WorkerId};
use crate::outcome::Outcome;

mod usd;
mod version;

pub use version::{COMPACT_SCHEMA_VERSION, SchemaVersion};

/// The `customType` of a message that has results of subagents in it.
pub const SUBAGENT_COMPLETION_TYPE: &str = "subagent_completion";

/// The `customType` of words to or from a subagent that are no result.
pub const SUBAGENT_MESSAGE_TYPE: &str = "subagent_message";

/// The `customType` of an entry of a session that keeps the compact details of one execution that has ended.
pub const SUBAGENT_RECORD_TYPE: &str = "subagents:record";

/// The deepest worker that a usage tree shows: readers of JSON bound their nesting, usually at 128, and a level takes two.
pub const USAGE_TREE_DEPTH_MAX: u32 = 40;

/// Live details of a launch, or of completions.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubagentDetails {
    /// One task or several.
    pub mode: Mode,
    /// Always `spawn`.
    pub delegation_mode: DelegationMode,
    /// The job, for what was launched without waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub async_job_id: Option<JobId>,
    /// For a single completion: which task of the job it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub async_task_index: Option<u32>,
    /// Direct workers.
    pub results: Vec<SingleResult>,
    /// Own and descendant use of all of them.
    pub aggregated_usage: UsageRecord,
    /// Own and descendant tool calls.
    pub aggregated_tool_calls: u64,
    /// The same for each worker.
    pub usage_tree: Vec<UsageNode>,
    /// In a message of the Pi extension: what it knows it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub roost: Option<RoostMark>,
}

/// Results as a saved session keeps them.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactDetails {
    /// Always 3.
    pub schema_version: SchemaVersion,
    /// One task or several.
    pub mode: Mode,
    /// Always `spawn`.
    pub delegation_mode: DelegationMode,
    /// The job, for what was launched without waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub async_job_id: Option<JobId>,
    /// For a single completion: which task of the job it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub async_task_index: Option<u32>,
    /// Recursive totals of all results.
    pub usage_summary: UsageSummary,
    /// Direct workers.
    pub results: Vec<CompactResult>,
    /// In an entry of the Pi extension: what it knows it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub roost: Option<RoostMark>,
}

/// One task or several.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One.
    Single,
    /// Several.
    Parallel,
}

/// How work is delegated.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationMode {
    /// To a worker that gets its task and nothing else.
    Spawn,
}

/// What the Pi extension knows a message of its own by.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoostMark {
    /// The message or entry.
    pub id: String,
    /// Executions and messages that it brought, each after its tree and a slash.
    pub keys: Vec<String>,
}

/// A direct worker: a placeholder until its outcome is there. What the live and the compact form have in common.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectWorker {
    /// Its name.
    pub name: String,
    /// Its tree: the other ids are counted anew in each state directory, trees are not.
    pub tree: TreeId,
    /// The worker.
    pub worker: WorkerId,
    /// Its execution.
    pub execution: ExecutionId,
    /// The job that launched it.
    pub job: JobId,
    /// Its index in the job.
    pub task_index: u32,
    /// What it was told to do; empty where that is not known.
    pub task: String,
    /// How it ended; absent in a placeholder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub outcome: Option<Outcome>,
    /// As a process would say it; -1 in a placeholder.
    pub exit_code: i32,
    /// What it answered.
    pub final_output: String,
    /// Why it did not complete, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub error_message: Option<String>,
    /// Its own use alone.
    pub usage: UsageRecord,
    /// Its own tool calls alone, delegation included.
    pub tool_calls: u64,
}

/// A direct worker in live details.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SingleResult {
    /// Who, how it ended, and its own use.
    #[serde(flatten)]
    pub direct: DirectWorker,
    /// Its own use and that of all below it.
    pub subtree: UsageRecord,
    /// Tool calls of the same.
    pub subtree_tool_calls: u64,
    /// How many workers the subtree has, itself included; 0 in a placeholder.
    pub subtree_workers: u64,
    /// Whether some of it was ended before it could report the last of its use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub partial_usage: bool,
}

/// A direct worker in compact details: a durable reference, with its outcome.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactResult {
    /// Who, how it ended, and its own use.
    #[serde(flatten)]
    pub direct: DirectWorker,
    /// Its own turns alone.
    pub completed_turns: u64,
    /// Recursive totals of this worker.
    pub usage_summary: UsageSummary,
}

/// Tokens and money.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageRecord {
    /// Input tokens that no cache served.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// US dollars in JSON.
    #[serde(with = "usd")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"), ts(type = "number"))]
    pub cost: u64,
    /// Whether some of it has no known price: then `cost` is too low, and 0 is not "free".
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub cost_unknown: bool,
    /// The last context size: a snapshot, 0 in sums.
    pub context_tokens: u64,
    /// Model turns.
    pub turns: u64,
}

/// Recursive totals.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSummary {
    /// How many workers: identities.
    pub subagent_count: u64,
    /// Which, where all of them are known, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub subagent_ids: Vec<WorkerId>,
    /// Input tokens that no cache served.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to a cache.
    pub cache_write_tokens: u64,
    /// US dollars in JSON.
    #[serde(with = "usd")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"), ts(type = "number"))]
    pub cost_usd: u64,
    /// Whether some of it has no known price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub cost_unknown: bool,
    /// Model turns.
    pub turns: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Whether some of it was ended before it could report the last of its use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub partial_usage: bool,
}

/// One worker of a usage tree.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageNode {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its own use.
    pub usage: UsageRecord,
    /// Its own tool calls.
    pub tool_calls: u64,
    /// Its own use and that of all below it.
    pub subtree: UsageRecord,
    /// Tool calls of the same.
    pub subtree_tool_calls: u64,
    /// Whether some of it is known to be too low.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub partial: bool,
    /// Its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub children: Vec<UsageNode>,
    /// Children that are too deep to be shown; they are in `subtree`.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub children_not_shown: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
