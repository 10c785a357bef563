//! Result data as hosts of subagents keep it: live details, and the compact form (schema version 3) of saved sessions; how launch
//! placeholders and completions become one list, and what that list has cost.
//!
//! Pure views of results and receipts: nothing here is a record of ours. Field names are those of the hosts. Money is nano-dollars in
//! memory and US dollars in JSON.

use serde::{Deserialize, Serialize};

use roost_proto::id::{ExecutionId, JobId, WorkerId};
use roost_proto::message::launch::{Receipt, Task};
use roost_proto::message::result::WorkerResult;
use roost_proto::outcome::Outcome;
use roost_proto::usage::{Usage, UsageTotals};

mod compact;
mod stream;
mod tree;
mod usd;

pub use compact::{COMPACT_SCHEMA_VERSION, CompactDetails, CompactResult, SchemaVersion, UsageSummary};
pub use stream::{Spent, reconcile, spent};
pub use tree::{USAGE_TREE_DEPTH_MAX, UsageNode, usage_tree};

/// The `customType` of a completion that a host hands to its model.
pub const SUBAGENT_COMPLETION_TYPE: &str = "subagent_completion";

/// Live details of a launch, or of one completion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// One task or several.
    pub mode: Mode,
    /// Always `spawn`.
    pub delegation_mode: DelegationMode,
    /// The job, for what was launched without waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub async_job_id: Option<JobId>,
    /// For a single completion: which task of the job it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub async_task_index: Option<u32>,
    /// Direct workers.
    pub results: Vec<SingleResult>,
    /// Own and descendant use of all of them.
    pub aggregated_usage: UsageRecord,
    /// Own and descendant tool calls.
    pub aggregated_tool_calls: u64,
    /// The same for each worker.
    #[serde(default)]
    pub usage_tree: Vec<UsageNode>,
}

/// One task or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One.
    Single,
    /// Several.
    Parallel,
}

/// How work is delegated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegationMode {
    /// To a worker that gets its task and nothing else.
    #[default]
    Spawn,
}

/// A direct worker: a placeholder until its outcome is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SingleResult {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its execution.
    pub execution: ExecutionId,
    /// What it was told to do, where that is known.
    #[serde(default)]
    pub task: String,
    /// How it ended; absent in a placeholder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// As a process would say it; -1 in a placeholder.
    pub exit_code: i32,
    /// What it answered.
    #[serde(default)]
    pub final_output: String,
    /// Why it did not complete, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Its own use alone.
    pub usage: UsageRecord,
    /// Its own tool calls alone, delegation included.
    pub tool_calls: u64,
    /// Its own use and that of all below it.
    #[serde(default)]
    pub subtree: UsageRecord,
    /// Tool calls of the same.
    #[serde(default)]
    pub subtree_tool_calls: u64,
    /// How many workers the subtree has, itself included.
    #[serde(default)]
    pub subtree_workers: u64,
    /// Whether some of it was ended before it could report the last of its use.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial_usage: bool,
    /// The job that launched it.
    pub job: JobId,
    /// Its index in the job.
    pub task_index: u32,
}

/// Tokens and money, as hosts keep them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageRecord {
    /// Input tokens that no cache served.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Nano-dollars here, US dollars in JSON.
    #[serde(with = "usd")]
    pub cost: u64,
    /// Whether some of it has no known price: then `cost` is too low, and 0 is not "free".
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
    /// The last context size: a snapshot, 0 in sums.
    pub context_tokens: u64,
    /// Model turns.
    pub turns: u64,
}

impl UsageRecord {
    fn of(usage: Usage, context_tokens: Option<u64>) -> Self {
        let Usage { input, output, cache_read, cache_write, cost, cost_unknown, turns, tool_calls: _ } = usage;
        Self { input, output, cache_read, cache_write, cost, cost_unknown, context_tokens: context_tokens.unwrap_or(0), turns }
    }

    fn usage(self, tool_calls: u64) -> Usage {
        let Self { input, output, cache_read, cache_write, cost, cost_unknown, context_tokens: _, turns } = self;
        Usage { input, output, cache_read, cache_write, cost, cost_unknown, turns, tool_calls }
    }
}

impl SingleResult {
    /// The place of a task that has been accepted and has not ended.
    pub fn placeholders(receipt: &Receipt, tasks: &[Task]) -> Vec<Self> {
        let one = |(at, task): (usize, &roost_proto::message::launch::TaskReceipt)| Self {
            name: task.name.clone(),
            worker: task.worker,
            execution: task.execution,
            task: tasks.get(at).map(|task| task.task.clone()).unwrap_or_default(),
            outcome: None,
            exit_code: -1,
            final_output: String::new(),
            error_message: None,
            usage: UsageRecord::default(),
            tool_calls: 0,
            subtree: UsageRecord::default(),
            subtree_tool_calls: 0,
            subtree_workers: 0,
            partial_usage: false,
            job: receipt.job,
            task_index: u32::try_from(at).unwrap_or(u32::MAX),
        };
        receipt.tasks.iter().enumerate().map(one).collect()
    }

    /// Whether its outcome is not there yet.
    pub fn is_placeholder(&self) -> bool {
        self.outcome.is_none()
    }
}

impl From<&WorkerResult> for SingleResult {
    fn from(result: &WorkerResult) -> Self {
        let totals = result.usage.unwrap_or_default();
        let UsageTotals { own, total, workers, partial, context_tokens } = totals;
        let end = &result.end;
        Self {
            name: end.name.clone(),
            worker: end.worker,
            execution: end.execution,
            task: String::new(),
            exit_code: i32::from(end.outcome.exit_code()),
            final_output: result.answer.clone(),
            error_message: (!end.outcome.is_success()).then(|| end.outcome.to_string()),
            outcome: Some(end.outcome.clone()),
            usage: UsageRecord::of(own, context_tokens),
            tool_calls: own.tool_calls,
            subtree: UsageRecord::of(total, None),
            subtree_tool_calls: total.tool_calls,
            // Nothing was ever reported: it is a worker all the same.
            subtree_workers: workers.max(1),
            partial_usage: partial,
            job: end.job,
            task_index: end.task_index,
        }
    }
}

impl Details {
    /// Details of a launch that was only accepted.
    pub fn launched(receipt: &Receipt, tasks: &[Task]) -> Self {
        Self { async_job_id: Some(receipt.job), ..Self::of(SingleResult::placeholders(receipt, tasks)) }
    }

    /// Details of one completion.
    pub fn completed(result: &WorkerResult) -> Self {
        let (job, task_index) = (result.end.job, result.end.task_index);
        Self { async_job_id: Some(job), async_task_index: Some(task_index), ..Self::of(vec![result.into()]) }
    }

    /// Details of these results: what a foreground launch answers with.
    pub fn of(results: Vec<SingleResult>) -> Self {
        let spent = spent(&results);
        Self {
            mode: if results.len() == 1 { Mode::Single } else { Mode::Parallel },
            delegation_mode: DelegationMode::Spawn,
            async_job_id: None,
            async_task_index: None,
            aggregated_usage: UsageRecord::of(spent.total, None),
            aggregated_tool_calls: spent.total.tool_calls,
            usage_tree: Vec::new(),
            results,
        }
    }
}

#[cfg(test)]
mod tests;
