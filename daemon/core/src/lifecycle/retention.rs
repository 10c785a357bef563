//! What is kept of closed trees, and for how long. A timer never drops a tree with a result that nobody has read.

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::{ExecutionId, TreeId};
use roost_proto::limits::{GC_TREES_MAX, GC_WORKERS_MAX};

use crate::command::{CallId, Sweep};
use crate::effect::{Effect, Reply, Swept, SweptTree};
use crate::event::Event;
use crate::schedule::Rules;
use crate::state::State;
use crate::state::tree::Tree;
use crate::state::worker::Worker;
use crate::step::Step;
use crate::time::Mono;

/// So many of the oldest trees are looked at for one whose results were read, before one goes whose results were not.
const LOOKED_AT: usize = 1_000;

/// Drops what retention does not keep any longer: closed trees by age, then by the number of workers that they hold. `since` is when it
/// was last asked; `overdue` are trees whose time has run out while something of them was still ending.
pub fn forget_old(step: &mut Step<'_>, rules: Rules, since: Mono, overdue: &mut BTreeSet<TreeId>) {
    if let Some(to) = step.now.mono.0.checked_sub(rules.retention_ms).filter(|_| rules.retention_ms > 0) {
        // What was overdue at an earlier look and has not gone was not read.
        let from = (since.0 + 1).saturating_sub(rules.retention_ms);
        let due = step.state.closed.range((Mono(from), TreeId(0))..=(Mono(to.max(from)), TreeId(u64::MAX)));
        overdue.extend(due.filter(|(closed, _)| closed.0 <= to).map(|(_, tree)| *tree));
        let settled: Vec<TreeId> = overdue.iter().filter(|tree| is_settled(step.state, **tree)).copied().collect();
        for tree in settled {
            overdue.remove(&tree);
            if step.state.trees.get(&tree).is_some_and(|tree| !has_unread(tree)) {
                forget(step, tree);
            }
        }
    }
    while step.state.closed_workers > rules.closed_workers_max && step.fault.is_none() {
        let oldest = || step.state.closed.iter().take(LOOKED_AT).map(|(_, tree)| *tree).filter(|tree| is_settled(step.state, *tree));
        let read = |tree: &TreeId| step.state.trees.get(tree).is_some_and(|tree| !has_unread(tree));
        // The number is a bound, not a time: in the end unread ones go too.
        let Some(tree) = oldest().find(read).or_else(|| oldest().next()) else { return };
        forget(step, tree);
    }
}

/// Forgets closed trees now, or says which would go.
pub fn gc(step: &mut Step<'_>, call: CallId, rules: Rules, sweep: &Sweep) {
    let (going, unread) = plan(step, rules, sweep);
    let swept = |step: &Step<'_>, id: &TreeId| {
        let tree = step.state.trees.get(id)?;
        let closed_at_ms = tree.closed_at.map_or(0, |at| at.wall_ms);
        Some(SweptTree {
            tree: *id,
            key: tree.key.clone(),
            closed_at_ms,
            workers: tree.workers.len(),
            bytes: bytes_of(step.state, tree, &sweep.sizes),
        })
    };
    let all: Vec<SweptTree> = going.iter().filter_map(|tree| swept(step, tree)).collect();
    let (workers, bytes) = all.iter().fold((0, 0), |(workers, bytes), tree| (workers + tree.workers, bytes + tree.bytes));
    let total = all.len();
    let mut held = 0;
    let fits = |tree: &SweptTree| {
        held += tree.workers;
        sweep.dry_run || held <= GC_WORKERS_MAX || held == tree.workers
    };
    let trees: Vec<SweptTree> = all.into_iter().take(GC_TREES_MAX).take_while(fits).collect();
    if !sweep.dry_run {
        trees.iter().for_each(|swept| forget(step, swept.tree));
    }
    let (dry_run, more) = (sweep.dry_run, trees.len() < total);
    step.reply(call, Reply::Swept(Box::new(Swept { trees, total, workers, bytes, unread, more, dry_run })));
}

/// Which trees go, the oldest first, and how many stay that would go if their results were read.
fn plan(step: &Step<'_>, rules: Rules, sweep: &Sweep) -> (Vec<TreeId>, usize) {
    let older_than = sweep.older_than_ms.or_else(|| Some(rules.retention_ms).filter(|ms| *ms > 0 && sweep.bytes_max.is_none()));
    let is_old = |closed: Mono| older_than.is_some_and(|ms| closed.0.saturating_add(ms) <= step.now.mono.0);
    let closed = || step.state.closed.iter().filter_map(|(at, id)| Some((*at, step.state.trees.get(id)?)));
    let mut left: u64 = closed().map(|(_, tree)| bytes_of(step.state, tree, &sweep.sizes)).sum();
    let (mut going, mut unread) = (Vec::new(), 0);
    for (at, tree) in closed().filter(|(_, tree)| !tree.is_active()) {
        if !is_old(at) && sweep.bytes_max.is_none_or(|most| left <= most) {
            continue;
        }
        if has_unread(tree) {
            unread += 1;
            continue;
        }
        left = left.saturating_sub(bytes_of(step.state, tree, &sweep.sizes));
        going.push(tree.id);
    }
    (going, unread)
}

fn is_settled(state: &State, tree: TreeId) -> bool {
    // One that is gone has nothing to wait for.
    state.trees.get(&tree).is_none_or(|tree| !tree.is_active())
}

/// Whether its root is owed a result.
fn has_unread(tree: &Tree) -> bool {
    tree.outbox.ended_children().next().is_some()
}

fn bytes_of(state: &State, tree: &Tree, sizes: &BTreeMap<ExecutionId, u64>) -> u64 {
    let workers = tree.workers.iter().filter_map(|worker| state.workers.get(worker));
    workers.flat_map(Worker::executions).filter_map(|(execution, _)| sizes.get(&execution)).sum()
}

fn forget(step: &mut Step<'_>, tree: TreeId) {
    let Some(record) = step.state.trees.get(&tree) else { return };
    let workers: Vec<_> = record.workers.iter().copied().collect();
    let executions = workers.iter().filter_map(|worker| step.state.workers.get(worker)).flat_map(Worker::executions).collect();
    let unread = has_unread(record);
    step.record(Event::TreeForgotten { tree });
    step.effects.push(Effect::RemoveFiles { tree, executions, workers, unread });
}
