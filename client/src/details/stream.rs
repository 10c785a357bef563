//! One lead's stream of results as one list, each execution once, and what that list has cost, each worker once.

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::details::SingleResult;
use roost_proto::id::{ExecutionId, JobId, TreeId, WorkerId};
use roost_proto::usage::Usage;

use super::usage_of;

/// What one lead's stream of results has cost, with all below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// The sum of the recursive totals, each worker once.
    pub total: Usage,
    /// How many workers that is: identities, not executions.
    pub workers: u64,
    /// Whether some of it is known to be too low.
    pub partial: bool,
}

/// One list of all that a lead launched: a completion takes the place of its placeholder by (job, task index), and each execution is
/// there once, however often and in whatever shape it was told. In the order in which the places were first seen.
///
/// Give it the results of all details of one lead, in order; the totals in them contain what its children's streams say.
pub fn reconcile<'a>(stream: impl IntoIterator<Item = &'a SingleResult>) -> Vec<SingleResult> {
    let mut list: Vec<SingleResult> = Vec::new();
    let mut by_execution: BTreeMap<(TreeId, ExecutionId), usize> = BTreeMap::new();
    let mut by_slot: BTreeMap<(TreeId, JobId, u32), usize> = BTreeMap::new();
    for result in stream {
        let told = &result.direct;
        let (execution, slot) = ((told.tree, told.execution), (told.tree, told.job, told.task_index));
        let known = by_execution.get(&execution).or_else(|| by_slot.get(&slot)).copied();
        let Some(at) = known else {
            by_execution.insert(execution, list.len());
            by_slot.insert(slot, list.len());
            list.push(result.clone());
            continue;
        };
        by_execution.insert(execution, at);
        // The first word on an end is the last: a repeat, or a placeholder that comes late, changes nothing.
        if list[at].direct.outcome.is_none() && told.outcome.is_some() {
            let task = std::mem::take(&mut list[at].direct.task);
            list[at] = result.clone();
            if list[at].direct.task.is_empty() {
                list[at].direct.task = task;
            }
        }
    }
    list
}

/// What these have cost. A worker's totals are over all its executions: of a worker that was resumed only the newest count.
pub fn spent(results: &[SingleResult]) -> Spent {
    let identity = |result: &SingleResult| (result.direct.tree, result.direct.worker);
    let mut newest: BTreeMap<(TreeId, WorkerId), &SingleResult> = BTreeMap::new();
    let identities: BTreeSet<(TreeId, WorkerId)> = results.iter().map(identity).collect();
    for result in results.iter().filter(|result| result.direct.outcome.is_some()) {
        let kept = newest.entry(identity(result)).or_insert(result);
        if result.direct.execution > kept.direct.execution {
            *kept = result;
        }
    }
    // A worker that has not ended yet is one, and what it used is not known here.
    let waiting = identities.len() - newest.len();
    let mut all = Spent { workers: u64::try_from(waiting).unwrap_or(u64::MAX), ..Spent::default() };
    for result in newest.values() {
        all.total = all.total.with(usage_of(result.subtree, result.subtree_tool_calls));
        all.workers = all.workers.saturating_add(result.subtree_workers);
        all.partial |= result.partial_usage;
    }
    all
}
