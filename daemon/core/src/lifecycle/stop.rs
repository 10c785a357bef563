//! Stop and interrupt: contract section 8. All names are checked before any worker is touched.

use roost_proto::id::{ExecutionId, TreeId, WorkerId};

use crate::command::Caller;
use crate::event::{Event, InterruptScope, Owner, Spoken, StopCause};
use crate::lifecycle::{authority, bounds, close_out};
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::worker::Worker;
use crate::step::Step;

/// What a stop touched.
pub struct Stopping {
    /// Who asked.
    pub asker: (TreeId, Owner),
    /// Per name: whether it had ended before.
    pub names: Vec<(String, bool)>,
    /// Workers that are still to go.
    pub awaited: Vec<WorkerId>,
}

/// Stops direct children of the caller with everything below them.
pub fn stop(step: &mut Step<'_>, caller: Caller, request_id: Option<String>, names: &[String]) -> Result<Stopping, Rejection> {
    let asker = authority::asker(step.state, caller)?;
    if let Some(request_id) = &request_id {
        bounds::label("the request id", request_id)?;
        if let Some(before) = repeated(step.state, asker, request_id, names)? {
            return Ok(before);
        }
    }
    if names.is_empty() {
        return Err(Rejection::BadValue { what: "the list of names", range: "at least one name".into(), value: "none".into() });
    }
    let found: Vec<Option<WorkerId>> =
        names.iter().map(|name| step.state.child_of(asker.0, asker.1, name).map(|worker| worker.id)).collect();
    let unknown: Vec<String> = names.iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(name, _)| name.clone()).collect();
    if !unknown.is_empty() {
        return Err(Rejection::UnknownWorker { names: unknown });
    }
    let mut stopping = Stopping { asker, names: Vec::new(), awaited: Vec::new() };
    let children: Vec<&Worker> = found.iter().flatten().filter_map(|id| step.state.workers.get(id)).collect();
    let stopped: Vec<(String, bool, ExecutionId)> = names
        .iter()
        .zip(children)
        .map(|(name, child)| (name.clone(), child.has_ended() || child.has_answered(), child.execution))
        .collect();
    if let Some(request_id) = request_id {
        let (tree, owner) = asker;
        step.record(Event::Spoken(Box::new(Spoken::StopTaken { tree, owner, request_id, stopped: stopped.clone() })));
    }
    for ((name, ended, _), worker) in stopped.into_iter().zip(found.into_iter().flatten()) {
        stopping.names.push((name, ended));
        // Its outcome stands; what it was to go on with does not.
        if ended {
            close_out::give_back(step, worker);
        }
        if step.state.workers.get(&worker).is_some_and(|worker| !worker.has_ended()) {
            stopping.awaited.push(worker);
            close_out::end_subtree(step, worker, StopCause::Stop);
        }
    }
    stopping.awaited = remaining(step.state, stopping.awaited);
    Ok(stopping)
}

/// The answer to a stop that was made before, if this is a repeat of it.
fn repeated(state: &State, asker: (TreeId, Owner), request_id: &str, names: &[String]) -> Result<Option<Stopping>, Rejection> {
    let Some((_, stopped)) = state.lead(asker.0, asker.1).and_then(|lead| lead.stops.iter().find(|(known, _)| known == request_id)) else {
        return Ok(None);
    };
    if !stopped.iter().map(|(name, ..)| name).eq(names) {
        return Err(Rejection::RequestIdReused { request_id: request_id.to_owned() });
    }
    let worker = |execution: &ExecutionId| state.executions.get(execution).and_then(|worker| state.workers.get(worker));
    // What it has stopped may be on the way out still; an execution that came later is none of it.
    let leaving = |execution: &ExecutionId| worker(execution).filter(|worker| worker.execution == *execution && !worker.has_ended());
    let awaited = stopped.iter().filter_map(|(.., execution)| leaving(execution)).map(|worker| worker.id).collect();
    Ok(Some(Stopping { asker, names: stopped.iter().map(|(name, ended, _)| (name.clone(), *ended)).collect(), awaited }))
}

/// Stops everything of the caller's tree. Returns who asked, how many were active, and who is still to go.
pub fn interrupt(step: &mut Step<'_>, caller: Caller, request_id: Option<String>) -> Result<(TreeId, u32, Vec<WorkerId>), Rejection> {
    let tree = authority::root(step.state, caller, "interrupt the tree")?;
    if let Some(request_id) = &request_id {
        bounds::label("the request id", request_id)?;
        let repeated = step.state.tree(tree)?.interrupted.iter().find(|(known, _)| known == request_id);
        if let Some((_, active)) = repeated {
            let active = *active;
            // What it has stopped may be on the way out still.
            let of_tree = |worker: &&Worker| worker.tree == tree && worker.stop.is_some() && !worker.has_ended();
            return Ok((tree, active, step.state.workers.values().filter(of_tree).map(|worker| worker.id).collect()));
        }
    }
    let scope = step.state.tree(tree)?.settings.interrupt_scope;
    let reaches = |child: &WorkerId| match scope {
        InterruptScope::All => true,
        InterruptScope::Foreground => step.state.workers.get(child).is_some_and(|child| child.foreground),
        InterruptScope::None => false,
    };
    let children: Vec<WorkerId> = step.state.active_children(tree, Owner::Root).into_iter().filter(reaches).collect();
    let active: Vec<WorkerId> = children.iter().flat_map(|child| std::iter::once(*child).chain(step.state.active_below(*child))).collect();
    if active.is_empty() {
        // A repeat of it must not stop what is launched meanwhile.
        if let Some(request_id) = request_id {
            let generation = step.state.tree(tree)?.generation;
            step.record(Event::Interrupted { tree, generation, asked: Some((request_id, 0)) });
        }
        return Ok((tree, 0, Vec::new()));
    }
    let generation = step.state.tree(tree)?.generation + 1;
    let count = u32::try_from(active.len()).unwrap_or(u32::MAX);
    let asked = request_id.map(|request_id| (request_id, count));
    step.record(Event::Interrupted { tree, generation, asked });
    for child in children {
        close_out::end_subtree(step, child, StopCause::Stop);
    }
    Ok((tree, count, remaining(step.state, active)))
}

/// Ends every live worker of the daemon, which is about to leave; what is queued or parked elsewhere stays for the next start.
pub fn end_live(step: &mut Step<'_>) -> u32 {
    let live: Vec<WorkerId> = step.state.workers.values().filter(|worker| worker.has_process()).map(|worker| worker.id).collect();
    let mut ended = 0;
    for worker in live {
        if step.state.workers.get(&worker).is_some_and(|worker| worker.stop.is_none() && worker.has_process()) {
            ended += 1;
            close_out::end_subtree(step, worker, StopCause::Operator);
        }
    }
    ended
}

fn remaining(state: &State, workers: Vec<WorkerId>) -> Vec<WorkerId> {
    workers.into_iter().filter(|worker| state.workers.get(worker).is_some_and(|worker| !worker.has_ended())).collect()
}
