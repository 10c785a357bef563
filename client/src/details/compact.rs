//! Compact results, schema version 3: what a saved session keeps. No transcripts and no recursive breakdown; the sums stand in the
//! summaries, and each worker is a durable reference with what a recovery needs.

use roost_proto::id::{ExecutionId, JobId, WorkerId};
use roost_proto::outcome::Outcome;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{DelegationMode, Details, Mode, SingleResult, UsageRecord, spent, usd};

/// The version of the compact form.
pub const COMPACT_SCHEMA_VERSION: u32 = 3;

/// Results as a saved session keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactDetails {
    /// Always 3.
    pub schema_version: SchemaVersion,
    /// One task or several.
    pub mode: Mode,
    /// Always `spawn`.
    #[serde(default)]
    pub delegation_mode: DelegationMode,
    /// The job, for what was launched without waiting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub async_job_id: Option<JobId>,
    /// For a single completion: which task of the job it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub async_task_index: Option<u32>,
    /// Recursive totals of all results.
    pub usage_summary: UsageSummary,
    /// Direct workers.
    pub results: Vec<CompactResult>,
}

/// The number 3 and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "u32")]
pub struct SchemaVersion;

impl From<SchemaVersion> for u32 {
    fn from(_: SchemaVersion) -> Self {
        COMPACT_SCHEMA_VERSION
    }
}

impl<'de> Deserialize<'de> for SchemaVersion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match u32::deserialize(from)? {
            COMPACT_SCHEMA_VERSION => Ok(Self),
            other => Err(de::Error::custom(format!("schema version {other}, and this reads version {COMPACT_SCHEMA_VERSION}"))),
        }
    }
}

/// Recursive totals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageSummary {
    /// How many workers: identities.
    pub subagent_count: u64,
    /// Which, where all of them are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subagent_ids: Vec<WorkerId>,
    /// Input tokens that no cache served.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from a cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to a cache.
    pub cache_write_tokens: u64,
    /// Nano-dollars here, US dollars in JSON.
    #[serde(with = "usd")]
    pub cost_usd: u64,
    /// Whether some of it has no known price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_unknown: bool,
    /// Model turns.
    pub turns: u64,
}

/// A durable reference to a worker, with its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactResult {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its execution.
    pub execution: ExecutionId,
    /// The job that launched it.
    pub job: JobId,
    /// Its index in the job.
    pub task_index: u32,
    /// What it was told to do.
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
    /// Its own tool calls alone.
    pub tool_calls: u64,
    /// Its own turns alone.
    pub completed_turns: u64,
    /// Recursive totals of this worker.
    pub usage_summary: UsageSummary,
}

impl From<&Details> for CompactDetails {
    fn from(details: &Details) -> Self {
        Self {
            schema_version: SchemaVersion,
            mode: details.mode,
            delegation_mode: details.delegation_mode,
            async_job_id: details.async_job_id,
            async_task_index: details.async_task_index,
            usage_summary: summary(&details.results),
            results: details.results.iter().map(CompactResult::from).collect(),
        }
    }
}

impl From<&SingleResult> for CompactResult {
    fn from(result: &SingleResult) -> Self {
        Self {
            name: result.name.clone(),
            worker: result.worker,
            execution: result.execution,
            job: result.job,
            task_index: result.task_index,
            task: result.task.clone(),
            outcome: result.outcome.clone(),
            exit_code: result.exit_code,
            final_output: result.final_output.clone(),
            error_message: result.error_message.clone(),
            usage: result.usage,
            tool_calls: result.tool_calls,
            completed_turns: result.usage.turns,
            usage_summary: summary(std::slice::from_ref(result)),
        }
    }
}

fn summary(results: &[SingleResult]) -> UsageSummary {
    let spent = spent(results);
    let mut known: Vec<WorkerId> = results.iter().map(|result| result.worker).collect();
    known.sort();
    known.dedup();
    let all_known = u64::try_from(known.len()).ok() == Some(spent.workers);
    UsageSummary {
        subagent_count: spent.workers,
        subagent_ids: if all_known { known } else { Vec::new() },
        input_tokens: spent.total.input,
        output_tokens: spent.total.output,
        cache_read_tokens: spent.total.cache_read,
        cache_write_tokens: spent.total.cache_write,
        cost_usd: spent.total.cost,
        cost_unknown: spent.total.cost_unknown,
        turns: spent.total.turns,
    }
}
