//! What is handed over, drawn from the state alone: ends, items, and the orders that start processes.

use roost_proto::id::{ExecutionId, WorkerId};
use roost_proto::outcome::Outcome;

use crate::effect::{End, Owed, OwedKind, Spawn, Wake};
use crate::event::Owner;
use crate::state::State;
use crate::state::outbox::Item;
use crate::state::worker::Phase;
use crate::usage_view;

/// How a worker ended, if it has.
pub fn end_of(state: &State, worker: WorkerId) -> Option<End> {
    let worker = state.workers.get(&worker)?;
    let Phase::Ended { outcome } = &worker.phase else { return None };
    Some(End {
        name: worker.name.to_string(),
        worker: worker.id,
        execution: worker.execution,
        job: worker.job,
        task_index: worker.task_index,
        epoch: worker.epoch,
        outcome: Outcome::clone(outcome),
        said: worker.speech.as_ref().and_then(|speech| speech.said),
        speaks: worker.speaks(),
        told_before: worker.told,
        usage: worker.accounts.as_ref().map(|_| usage_view::of_worker(worker)),
        leftovers: worker.leftovers.to_vec(),
    })
}

/// How an execution ended, the last one of its worker or one before it.
pub fn end_of_execution(state: &State, execution: ExecutionId) -> Option<End> {
    let worker = state.executions.get(&execution).and_then(|worker| state.workers.get(worker))?;
    if worker.execution == execution {
        return end_of(state, worker.id);
    }
    let past = worker.past.iter().find(|past| past.execution == execution)?;
    Some(End {
        name: worker.name.to_string(),
        worker: worker.id,
        execution,
        job: past.job,
        task_index: past.task_index,
        epoch: past.epoch,
        outcome: past.outcome.clone(),
        said: past.said,
        speaks: true,
        told_before: past.told,
        usage: worker.accounts.as_ref().map(|_| usage_view::of_worker(worker)),
        leftovers: past.leftovers.clone(),
    })
}

/// An item, with what its receiver needs to know.
pub fn owed(state: &State, owner: Owner, seq: u64, item: &Item) -> Option<Owed> {
    let name = |worker: &WorkerId| state.workers.get(worker).map(|worker| worker.name.to_string());
    let what = match item {
        Item::Task => match owner {
            Owner::Root => return None,
            Owner::Worker(worker) => OwedKind::Task(worker),
        },
        Item::Completion { execution, .. } => OwedKind::Completion(Box::new(end_of_execution(state, *execution)?)),
        Item::LeadMessage { message, .. } => OwedKind::LeadMessage(*message),
        Item::ChildMessage { message, from } => OwedKind::ChildMessage { message: *message, from: name(from)?, worker: *from },
        Item::Notice { from, execution, text } => OwedKind::Notice { from: name(from)?, worker: *from, execution: *execution, text: *text },
        Item::Undelivered { message, to } => OwedKind::Undelivered { message: *message, to: name(to)? },
    };
    Some(Owed { seq, what })
}

/// The order to start the process that a `Starting` worker waits for.
pub fn spawn_of(state: &State, worker: WorkerId) -> Option<Spawn> {
    let worker = state.workers.get(&worker)?;
    let Phase::Starting(starting) = &worker.phase else { return None };
    let tree = state.trees.get(&worker.tree)?;
    let wake = starting.wake.and_then(|last| {
        // The start may be tried again when more has ended. What is not handed over has not ended yet for this process: it must
        // not take its subtree for settled.
        let later = u32::try_from(worker.outbox.ends_after(last)).unwrap_or(u32::MAX);
        let active_children = worker.active_children.saturating_add(later);
        Some(Wake {
            settled: active_children == 0,
            active_children,
            context: worker.context?,
            items: worker.outbox.items_to(last).filter_map(|(seq, item)| owed(state, Owner::Worker(worker.id), seq, item)).collect(),
        })
    });
    Some(Spawn {
        incarnation: worker.incarnation(),
        worker: worker.id,
        tree: worker.tree,
        token: worker.token,
        leftovers_grace_ms: tree.settings.leftovers_grace_ms(),
        speaks: worker.speaks(),
        wake,
    })
}
