//! Waiting for children and reading their results: contract section 10. A wait by a worker is a point where its slot can go to
//! others; that is the business of `broker.rs`, which blocks and unblocks the askers of waiting calls.

use std::collections::BTreeSet;

use roost_proto::id::{TreeId, WorkerId};
use roost_proto::limits::WAITS_PER_CALLER_MAX;

use crate::calls::{Calls, Pending, Want};
use crate::command::{CallId, Caller};
use crate::effect::Reply;
use crate::event::{Event, Owner};
use crate::lifecycle::authority;
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::worker::Worker;
use crate::step::{Step, end_of};
use crate::time::Mono;
use crate::view;

/// What a wait asks for.
pub struct Wait {
    /// The call's id.
    pub request_id: String,
    /// The children; empty for all whose end the caller was not told.
    pub names: Vec<String>,
    /// At the first end.
    pub any: bool,
    /// Milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Waits for children of the caller.
pub fn wait(step: &mut Step<'_>, calls: &mut Calls, call: CallId, caller: Caller, wait: Wait) -> Result<(), Rejection> {
    let (tree, owner) = authority::asker(step.state, caller)?;
    crate::lifecycle::bounds::label("the request id", &wait.request_id)?;
    room(calls, tree, owner)?;
    let mut workers = targets(step.state, tree, owner, &wait)?;
    let lead = step.state.lead(tree, owner).ok_or(Rejection::UnknownIdentity)?;
    let told = lead.answered.iter().find(|(request, _)| *request == wait.request_id).map(|(_, told)| told.clone());
    let mut awaited: BTreeSet<WorkerId> = still_active(step.state, &workers);
    // Without a time limit the first answer left nobody out, so whoever is there now came later.
    if let Some(told) = told.as_ref().filter(|_| !wait.any && wait.timeout_ms.is_none()) {
        workers.clone_from(told);
    }
    if told.is_some() || (wait.any && awaited.len() < workers.len()) {
        awaited.clear();
    }
    let want = Want::Ends { request_id: wait.request_id, workers, any: wait.any, told };
    calls.add(call, Pending { asker: Some((tree, owner)), want, awaited, deadline: deadline(step, wait.timeout_ms), over: None });
    Ok(())
}

fn targets(state: &State, tree: TreeId, owner: Owner, wait: &Wait) -> Result<Vec<WorkerId>, Rejection> {
    let lead = state.lead(tree, owner).ok_or(Rejection::UnknownIdentity)?;
    if wait.names.is_empty() {
        let untold = lead.outbox.items_to(u64::MAX).map(|(_, child)| child);
        return Ok(untold.chain(state.active_children(tree, owner)).collect());
    }
    let found: Vec<Option<&Worker>> = wait.names.iter().map(|name| state.child_of(tree, owner, name)).collect();
    let unknown: Vec<String> = wait.names.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(name, _)| name.clone()).collect();
    if unknown.is_empty() {
        Ok(found.into_iter().flatten().map(|worker| worker.id).collect())
    } else {
        Err(Rejection::UnknownWorker { names: unknown })
    }
}

/// Reads a result; the lead's reading consumes it, and only the lead may wait for it.
pub fn result(step: &mut Step<'_>, calls: &mut Calls, call: CallId, caller: Caller, read: Read) -> Result<(), Rejection> {
    let unknown = || Rejection::UnknownWorker { names: vec![read.name.clone()] };
    let (tree, owner, is_lead) = match (caller, read.tree) {
        (Caller::Operator, Some(tree)) => (tree, Owner::Root, false),
        (Caller::Operator, None) => return Err(Rejection::NoTree),
        (Caller::Root(_) | Caller::Worker { .. }, _) => {
            let (tree, owner) = authority::asker(step.state, caller)?;
            (tree, owner, step.state.child_of(tree, owner, &read.name).is_some())
        }
    };
    step.state.tree(tree)?;
    let worker = step.state.visible_to(tree, owner, &read.name).ok_or_else(unknown)?;
    let id = worker.id;
    if read.wait && is_lead {
        room(calls, tree, owner)?;
        let awaited = still_active(step.state, &[id]);
        let pending =
            Pending { asker: Some((tree, owner)), want: Want::Result(id), awaited, deadline: deadline(step, read.timeout_ms), over: None };
        calls.add(call, pending);
        return Ok(());
    }
    if read.wait {
        return Err(unknown());
    }
    answer_result(step, call, id, if is_lead { Some((tree, owner)) } else { None }, false);
    Ok(())
}

/// What a reading asks for.
pub struct Read {
    /// The tree, for an operator.
    pub tree: Option<TreeId>,
    /// Whose result.
    pub name: String,
    /// Until it has ended.
    pub wait: bool,
    /// Milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Answers with a result, or with how the worker stands.
pub fn answer_result(step: &mut Step<'_>, call: CallId, worker: WorkerId, lead: Option<(TreeId, Owner)>, timed_out: bool) {
    if let Some(end) = end_of(step.state, worker) {
        if let Some((tree, owner)) = lead {
            consume(step, tree, owner, None, &[worker]);
        }
        step.reply(call, Reply::Result(end));
    } else if let Some(record) = step.state.workers.get(&worker) {
        let view = Box::new(view::worker(step.state, record));
        step.reply(call, Reply::StillActive { view, timed_out });
    }
}

/// The lead knows these ends from its own call: they are not announced any more.
pub fn consume(step: &mut Step<'_>, tree: TreeId, owner: Owner, request_id: Option<String>, workers: &[WorkerId]) {
    let Some(lead) = step.state.lead(tree, owner) else { return };
    let repeat = request_id.as_ref().is_some_and(|id| lead.answered.iter().any(|(known, _)| known == id));
    let owed = workers.iter().any(|worker| lead.outbox.owes(*worker));
    // A stopped child is owed to nobody, but a repeat of the call that told of it must tell of it again.
    let told = request_id.is_some() && !workers.is_empty();
    if repeat || !(owed || told) {
        return;
    }
    step.record(Event::Consumed { tree, owner, request_id, workers: workers.to_vec() });
}

/// Those of these workers that have not ended.
pub fn still_active(state: &State, workers: &[WorkerId]) -> BTreeSet<WorkerId> {
    workers.iter().filter(|worker| state.workers.get(worker).is_some_and(|worker| !worker.has_ended())).copied().collect()
}

fn deadline(step: &Step<'_>, timeout_ms: Option<u64>) -> Option<Mono> {
    timeout_ms.map(|timeout| step.now.mono + timeout)
}

fn room(calls: &Calls, tree: TreeId, owner: Owner) -> Result<(), Rejection> {
    if calls.count((tree, owner)) >= WAITS_PER_CALLER_MAX {
        return Err(Rejection::Limit { what: "calls of one caller that wait", limit: WAITS_PER_CALLER_MAX });
    }
    Ok(())
}
