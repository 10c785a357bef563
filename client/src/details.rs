//! Result data as hosts of subagents keep it: how details are made from receipts and results, how launch placeholders and completions
//! become one list, what that list has cost, and the compact form of saved sessions.
//!
//! Pure views of results and receipts: nothing here is a record of ours. The types are those of [`roost_proto::details`]; the Pi
//! extension does the same in `client/pi/details.ts`, and `tests/data/details/` holds both to it.

use roost_proto::id::TreeId;
use roost_proto::message::launch::{Receipt, Task, TaskReceipt};
use roost_proto::message::result::WorkerResult;
use roost_proto::usage::{Usage, UsageTotals};

mod compact;
mod stream;
mod tree;

pub use compact::{compact, expanded};
pub use roost_proto::details::*;
pub use stream::{Spent, reconcile, spent};
pub use tree::usage_tree;

/// Details of a launch in this tree that was only accepted.
pub fn launched(tree: TreeId, receipt: &Receipt, tasks: &[Task]) -> SubagentDetails {
    SubagentDetails { async_job_id: Some(receipt.job), ..details_of(placeholders(tree, receipt, tasks)) }
}

/// Details of one completion in this tree.
pub fn completed(tree: TreeId, result: &WorkerResult) -> SubagentDetails {
    let (job, task_index) = (result.end.job, result.end.task_index);
    SubagentDetails { async_job_id: Some(job), async_task_index: Some(task_index), ..details_of(vec![single_result(tree, result)]) }
}

/// Details of these results: what a foreground launch answers with.
pub fn details_of(results: Vec<SingleResult>) -> SubagentDetails {
    let spent = spent(&results);
    SubagentDetails {
        mode: if results.len() == 1 { Mode::Single } else { Mode::Parallel },
        delegation_mode: DelegationMode::Spawn,
        async_job_id: None,
        async_task_index: None,
        aggregated_usage: record_of(spent.total, None),
        aggregated_tool_calls: spent.total.tool_calls,
        usage_tree: Vec::new(),
        results,
        roost: None,
    }
}

/// The places of tasks that have been accepted and have not ended.
pub fn placeholders(tree: TreeId, receipt: &Receipt, tasks: &[Task]) -> Vec<SingleResult> {
    let one = |(at, task): (usize, &TaskReceipt)| SingleResult {
        direct: DirectWorker {
            name: task.name.clone(),
            tree,
            worker: task.worker,
            execution: task.execution,
            job: receipt.job,
            task_index: u32::try_from(at).unwrap_or(u32::MAX),
            task: tasks.get(at).map(|task| task.task.clone()).unwrap_or_default(),
            outcome: None,
            exit_code: -1,
            final_output: String::new(),
            error_message: None,
            usage: UsageRecord::default(),
            tool_calls: 0,
        },
        subtree: UsageRecord::default(),
        subtree_tool_calls: 0,
        subtree_workers: 0,
        partial_usage: false,
    };
    receipt.tasks.iter().enumerate().map(one).collect()
}

/// The result of a direct worker in this tree.
pub fn single_result(tree: TreeId, result: &WorkerResult) -> SingleResult {
    let UsageTotals { own, total, workers, partial, context_tokens } = result.usage.unwrap_or_default();
    let end = &result.end;
    SingleResult {
        direct: DirectWorker {
            name: end.name.clone(),
            tree,
            worker: end.worker,
            execution: end.execution,
            job: end.job,
            task_index: end.task_index,
            task: String::new(),
            exit_code: i32::from(end.outcome.exit_code()),
            final_output: result.answer.clone(),
            error_message: (!end.outcome.is_success()).then(|| end.outcome.to_string()),
            outcome: Some(end.outcome.clone()),
            usage: record_of(own, context_tokens),
            tool_calls: own.tool_calls,
        },
        subtree: record_of(total, None),
        subtree_tool_calls: total.tool_calls,
        // Nothing was ever reported: it is a worker all the same.
        subtree_workers: workers.max(1),
        partial_usage: partial,
    }
}

fn record_of(usage: Usage, context_tokens: Option<u64>) -> UsageRecord {
    let Usage { input, output, cache_read, cache_write, cost, cost_unknown, turns, tool_calls: _ } = usage;
    UsageRecord { input, output, cache_read, cache_write, cost, cost_unknown, context_tokens: context_tokens.unwrap_or(0), turns }
}

fn usage_of(record: UsageRecord, tool_calls: u64) -> Usage {
    let UsageRecord { input, output, cache_read, cache_write, cost, cost_unknown, context_tokens: _, turns } = record;
    Usage { input, output, cache_read, cache_write, cost, cost_unknown, turns, tool_calls }
}

#[cfg(test)]
mod tests;
