//! The use of a tree, worker by worker, as a nested value.

use std::collections::BTreeMap;

use roost_proto::id::WorkerId;
use roost_proto::message::usage::WorkerUsage;
use serde::{Deserialize, Serialize};

use super::UsageRecord;

/// The deepest worker that a usage tree shows: readers of JSON bound their nesting, usually at 128, and a level takes two.
pub const USAGE_TREE_DEPTH_MAX: usize = 40;

/// One worker of a usage tree.
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
    pub partial: bool,
    /// Its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<UsageNode>,
    /// Children that are too deep to be shown; they are in `subtree`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub children_not_shown: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Nests the workers of a usage reply below their leads. Who has a lead that is not among them stands at the top.
pub fn usage_tree(workers: &[WorkerUsage]) -> Vec<UsageNode> {
    let known: std::collections::BTreeSet<WorkerId> = workers.iter().map(|worker| worker.worker).collect();
    let mut children: BTreeMap<Option<WorkerId>, Vec<&WorkerUsage>> = BTreeMap::new();
    for worker in workers {
        children.entry(worker.lead.filter(|lead| known.contains(lead))).or_default().push(worker);
    }
    below(None, &children, 1)
}

/// The depth is bounded, and with it the recursion.
fn below(lead: Option<WorkerId>, children: &BTreeMap<Option<WorkerId>, Vec<&WorkerUsage>>, depth: usize) -> Vec<UsageNode> {
    let own = children.get(&lead).map(Vec::as_slice).unwrap_or_default();
    let node = |worker: &&WorkerUsage| {
        let totals = worker.totals;
        let shown = depth < USAGE_TREE_DEPTH_MAX;
        let hidden = if shown { 0 } else { children.get(&Some(worker.worker)).map_or(0, Vec::len) };
        UsageNode {
            name: worker.name.clone(),
            worker: worker.worker,
            usage: UsageRecord::of(totals.own, totals.context_tokens),
            tool_calls: totals.own.tool_calls,
            subtree: UsageRecord::of(totals.total, None),
            subtree_tool_calls: totals.total.tool_calls,
            partial: totals.partial,
            children: if shown { below(Some(worker.worker), children, depth + 1) } else { Vec::new() },
            children_not_shown: u64::try_from(hidden).unwrap_or(u64::MAX),
        }
    };
    own.iter().map(node).collect()
}
