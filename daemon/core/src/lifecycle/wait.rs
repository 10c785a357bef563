//! Waiting for children and reading their results: contract section 10. A wait by a worker is a point where its slot can go to
//! others; that is the business of `broker.rs`, which blocks and unblocks the askers of waiting calls.

use std::collections::BTreeSet;

use roost_proto::id::{ExecutionId, TreeId, WorkerId};
use roost_proto::limits::WAITS_PER_CALLER_MAX;

use crate::calls::{Calls, Pending, Want};
use crate::command::{CallId, Caller, Target};
use crate::effect::Reply;
use crate::event::{Event, Owner, Spoken};
use crate::hand_over::end_of_execution;
use crate::lifecycle::authority;
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::worker::Worker;
use crate::step::Step;
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
    /// Nothing counts as told before the caller has said so.
    pub tell_later: bool,
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
        workers = told.iter().filter_map(|execution| step.state.executions.get(execution).copied()).collect();
    }
    let is_there = awaited.len() < workers.len() || !earlier_ends(step.state, tree, owner, &workers).is_empty();
    if told.is_some() || (wait.any && is_there) {
        awaited.clear();
    }
    let deadline = deadline(step, owner, Some(&wait.request_id), wait.timeout_ms);
    let want = Want::Ends { request_id: wait.request_id, workers, any: wait.any, told, tell_later: wait.tell_later };
    calls.add(call, Pending { asker: Some((tree, owner)), want, awaited, deadline, over: None });
    Ok(())
}

fn targets(state: &State, tree: TreeId, owner: Owner, wait: &Wait) -> Result<Vec<WorkerId>, Rejection> {
    let lead = state.lead(tree, owner).ok_or(Rejection::UnknownIdentity)?;
    if wait.names.is_empty() {
        let mut found: Vec<WorkerId> = lead.outbox.ended_children().map(|(child, _)| child).collect();
        found.extend(state.active_children(tree, owner));
        // A child that was resumed may be owed for an earlier execution too.
        let mut seen = BTreeSet::new();
        found.retain(|worker| seen.insert(*worker));
        return Ok(found);
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
    let (tree, owner) = match (caller, read.tree) {
        (Caller::Operator, Some(tree)) => (tree, Owner::Root),
        (Caller::Operator, None) => return Err(Rejection::NoTree),
        (Caller::Root(_) | Caller::Worker { .. }, _) => authority::asker(step.state, caller)?,
    };
    step.state.tree(tree)?;
    let (id, execution) = found(step.state, tree, owner, &read.of)?;
    let is_lead = caller != Caller::Operator && step.state.workers.get(&id).is_some_and(|worker| worker.owner == owner);
    let asker = (tree, owner);
    let runs = step.state.workers.get(&id).is_some_and(|worker| worker.execution == execution && !worker.has_ended());
    if read.wait && !is_lead {
        return Err(unknown(&read.of));
    }
    if !read.wait {
        answer_result(step, call, execution, if is_lead { Some(asker) } else { None }, false);
        return Ok(());
    }
    room(calls, tree, owner)?;
    let awaited = if runs { BTreeSet::from([id]) } else { BTreeSet::new() };
    let deadline = deadline(step, owner, read.request_id.as_deref(), read.timeout_ms);
    let want = Want::Result { execution, request_id: read.request_id };
    calls.add(call, Pending { asker: Some(asker), want, awaited, deadline, over: None });
    Ok(())
}

fn unknown(of: &Target) -> Rejection {
    let name = match of {
        Target::Name(name) => name.clone(),
        Target::Execution(execution) => execution.to_string(),
        Target::Job(job, index) => format!("{job}, task {index}"),
    };
    Rejection::UnknownWorker { names: vec![name] }
}

/// Whose result is meant, if the reader may look at it.
fn found(state: &State, tree: TreeId, owner: Owner, of: &Target) -> Result<(WorkerId, ExecutionId), Rejection> {
    let sees = |worker: &WorkerId| {
        let same_tree = state.workers.get(worker).is_some_and(|worker| worker.tree == tree);
        let below = match owner {
            Owner::Root => true,
            Owner::Worker(reader) => state.line(*worker).any(|ancestor| ancestor == reader),
        };
        same_tree && below
    };
    let found = match of {
        Target::Name(name) => state.visible_to(tree, owner, name).map(|worker| (worker.id, worker.execution)),
        Target::Execution(execution) => state.executions.get(execution).map(|worker| (*worker, *execution)),
        Target::Job(job, index) => state.jobs.get(job).and_then(|record| {
            let worker = state.workers.get(record.workers.get(*index as usize)?)?;
            let past = worker.past.iter().find(|past| past.job == *job).map(|past| past.execution);
            Some((worker.id, past.unwrap_or(worker.execution)))
        }),
    };
    found.filter(|(worker, _)| sees(worker)).ok_or_else(|| unknown(of))
}

/// What a reading asks for.
pub struct Read {
    /// The tree, for an operator.
    pub tree: Option<TreeId>,
    /// Whose result.
    pub of: Target,
    /// Until it has ended.
    pub wait: bool,
    /// The caller's name for a call that waits.
    pub request_id: Option<String>,
    /// Milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Answers with a result, or with how the worker stands.
pub fn answer_result(step: &mut Step<'_>, call: CallId, execution: ExecutionId, lead: Option<(TreeId, Owner)>, timed_out: bool) {
    let Some(worker) = step.state.executions.get(&execution).copied() else { return };
    if let Some(end) = end_of_execution(step.state, execution) {
        if let Some((tree, owner)) = lead {
            consume_execution(step, tree, owner, worker, execution);
        }
        step.reply(call, Reply::Result(Box::new(end)));
    } else if let Some(record) = step.state.workers.get(&worker) {
        let view = Box::new(view::worker(step.state, record));
        step.reply(call, Reply::StillActive { view, timed_out });
    }
}

/// The same for an execution that may be an earlier one of its worker.
fn consume_execution(step: &mut Step<'_>, tree: TreeId, owner: Owner, worker: WorkerId, execution: ExecutionId) {
    if !step.state.is_news(tree, owner, execution) {
        return;
    }
    if step.state.workers.get(&worker).is_some_and(|worker| worker.execution == execution) {
        consume(step, tree, owner, None, &[worker], &[]);
    } else {
        step.record(Event::Spoken(Box::new(Spoken::Read { tree, owner, executions: vec![execution] })));
    }
}

/// The lead knows these ends from its own call: they are not announced any more.
pub fn consume(step: &mut Step<'_>, tree: TreeId, owner: Owner, request_id: Option<String>, workers: &[WorkerId], earlier: &[ExecutionId]) {
    let Some(lead) = step.state.lead(tree, owner) else { return };
    let repeat = request_id.as_ref().is_some_and(|id| lead.answered.iter().any(|(known, _)| known == id));
    let execution = |worker: &WorkerId| step.state.workers.get(worker).map(|worker| worker.execution);
    let mut executions = workers.iter().filter_map(execution).chain(earlier.iter().copied());
    let news = executions.any(|execution| step.state.is_news(tree, owner, execution));
    // A repeat of the call must tell of the same ones again.
    let told = request_id.is_some() && !(workers.is_empty() && earlier.is_empty());
    if repeat || !(news || told) {
        return;
    }
    step.record(Event::Consumed { tree, owner, request_id, workers: workers.to_vec(), earlier: earlier.to_vec() });
}

/// The ends that this lead is owed of earlier executions of these children, which went on since.
pub fn earlier_ends(state: &State, tree: TreeId, owner: Owner, workers: &[WorkerId]) -> Vec<ExecutionId> {
    let Some(lead) = state.lead(tree, owner) else { return Vec::new() };
    let went_on = |(child, execution): &(WorkerId, ExecutionId)| {
        workers.contains(child) && state.workers.get(child).is_some_and(|worker| worker.execution != *execution)
    };
    lead.outbox.ended_children().filter(went_on).map(|(_, execution)| execution).collect()
}

/// Those of these workers that have not ended.
pub fn still_active(state: &State, workers: &[WorkerId]) -> BTreeSet<WorkerId> {
    workers.iter().filter(|worker| state.workers.get(worker).is_some_and(|worker| !worker.has_ended())).copied().collect()
}

/// When a call gives up. One in which its worker was parked goes on, and its time with it.
fn deadline(step: &Step<'_>, owner: Owner, request_id: Option<&str>, timeout_ms: Option<u64>) -> Option<Mono> {
    if let Owner::Worker(worker) = owner
        && let Some(held) = step.state.workers.get(&worker).and_then(|worker| worker.held.as_ref())
        && Some(held.request_id.as_str()) == request_id
    {
        return held.deadline;
    }
    timeout_ms.map(|timeout| step.now.mono + timeout)
}

fn room(calls: &Calls, tree: TreeId, owner: Owner) -> Result<(), Rejection> {
    if calls.count((tree, owner)) >= WAITS_PER_CALLER_MAX {
        return Err(Rejection::Limit { what: "calls of one caller that wait", limit: WAITS_PER_CALLER_MAX });
    }
    Ok(())
}
