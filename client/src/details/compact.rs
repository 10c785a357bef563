//! Compact results, schema version 3: what a saved session keeps. No transcripts and no recursive breakdown; the sums stand in the
//! summaries, and each worker is a durable reference with what a recovery needs.

use std::collections::BTreeSet;

use roost_proto::details::{CompactDetails, CompactResult, SchemaVersion, SingleResult, SubagentDetails, UsageRecord, UsageSummary};

use super::spent;

/// The compact form of these details.
pub fn compact(details: &SubagentDetails) -> CompactDetails {
    CompactDetails {
        schema_version: SchemaVersion,
        mode: details.mode,
        delegation_mode: details.delegation_mode,
        async_job_id: details.async_job_id,
        async_task_index: details.async_task_index,
        usage_summary: summary(&details.results),
        results: details.results.iter().map(compact_result).collect(),
        roost: details.roost.clone(),
    }
}

fn compact_result(result: &SingleResult) -> CompactResult {
    CompactResult {
        direct: result.direct.clone(),
        completed_turns: result.direct.usage.turns,
        usage_summary: summary(std::slice::from_ref(result)),
    }
}

fn summary(results: &[SingleResult]) -> UsageSummary {
    let spent = spent(results);
    let known: BTreeSet<_> = results.iter().map(|result| (result.direct.tree, result.direct.worker)).collect();
    let all_known = u64::try_from(known.len()).ok() == Some(spent.workers);
    UsageSummary {
        subagent_count: spent.workers,
        subagent_ids: if all_known { known.into_iter().map(|(_, worker)| worker).collect() } else { Vec::new() },
        input_tokens: spent.total.input,
        output_tokens: spent.total.output,
        cache_read_tokens: spent.total.cache_read,
        cache_write_tokens: spent.total.cache_write,
        cost_usd: spent.total.cost,
        cost_unknown: spent.total.cost_unknown,
        turns: spent.total.turns,
        tool_calls: spent.total.tool_calls,
        partial_usage: spent.partial,
    }
}

/// A saved result as live ones are, to be counted among them.
pub fn expanded(result: &CompactResult) -> SingleResult {
    let sums = &result.usage_summary;
    SingleResult {
        direct: result.direct.clone(),
        subtree: UsageRecord {
            input: sums.input_tokens,
            output: sums.output_tokens,
            cache_read: sums.cache_read_tokens,
            cache_write: sums.cache_write_tokens,
            cost: sums.cost_usd,
            cost_unknown: sums.cost_unknown,
            context_tokens: 0,
            turns: sums.turns,
        },
        subtree_tool_calls: sums.tool_calls,
        subtree_workers: if result.direct.outcome.is_some() { sums.subagent_count } else { 0 },
        partial_usage: sums.partial_usage,
    }
}
