//! The use of a tree, worker by worker, as a nested value.

use std::collections::BTreeMap;

use roost_proto::details::{USAGE_TREE_DEPTH_MAX, UsageNode};
use roost_proto::id::WorkerId;
use roost_proto::message::usage::WorkerUsage;

use super::record_of;

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
fn below(lead: Option<WorkerId>, children: &BTreeMap<Option<WorkerId>, Vec<&WorkerUsage>>, depth: u32) -> Vec<UsageNode> {
    let own = children.get(&lead).map(Vec::as_slice).unwrap_or_default();
    let node = |worker: &&WorkerUsage| {
        let totals = worker.totals;
        let shown = depth < USAGE_TREE_DEPTH_MAX;
        let hidden = if shown { 0 } else { children.get(&Some(worker.worker)).map_or(0, Vec::len) };
        UsageNode {
            name: worker.name.clone(),
            worker: worker.worker,
            usage: record_of(totals.own, totals.context_tokens),
            tool_calls: totals.own.tool_calls,
            subtree: record_of(totals.total, None),
            subtree_tool_calls: totals.total.tool_calls,
            partial: totals.partial,
            children: if shown { below(Some(worker.worker), children, depth + 1) } else { Vec::new() },
            children_not_shown: u64::try_from(hidden).unwrap_or(u64::MAX),
        }
    };
    own.iter().map(node).collect()
}
