//! How executions end: the one place that records `Ended`, and that ends what must end along with it.
//!
//! An execution is over only when nothing below it is active, so ends travel upwards: the last child's end may be its lead's.

use roost_proto::id::{ExecutionId, JobId, MessageId, WorkerId};
use roost_proto::link::Signal;
use roost_proto::outcome::Outcome;

use crate::effect::Effect;
use crate::event::{Event, Owner, Spoken, StopCause};
use crate::state::State;
use crate::state::worker::Phase;
use crate::step::Step;

/// A worker has no process any more (phase `Gone`) and ends like this, at once or when its subtree has settled.
pub fn conclude(step: &mut Step<'_>, worker: WorkerId, outcome: Outcome) {
    if !outcome.is_success() {
        release_children(step, worker);
    }
    let Some(record) = step.state.workers.get(&worker) else { return };
    if record.active_children > 0 {
        step.record(Event::Finishing { worker, outcome });
    } else {
        end_upwards(step, worker, outcome);
    }
}

/// Records the end of a worker, and of every lead that has waited for nothing else.
fn end_upwards(step: &mut Step<'_>, worker: WorkerId, outcome: Outcome) {
    let mut next = Some((worker, outcome));
    while let Some((worker, outcome)) = next {
        step.record(Event::Ended { worker, outcome });
        go_on_with_late_words(step, worker);
        next = finished_lead(step.state, worker);
    }
}

/// What a lead said when the outcome was known starts the next execution, or goes back.
fn go_on_with_late_words(step: &mut Step<'_>, worker: WorkerId) {
    let Some(record) = step.state.workers.get(&worker).filter(|record| record.outbox.has_late_words()) else { return };
    let open = record.stop.is_none() && step.state.trees.get(&record.tree).is_some_and(|tree| tree.closed_at.is_none());
    if open && record.context.is_some() {
        let (job, execution) = (JobId(step.state.last_job + 1), ExecutionId(step.state.last_execution + 1));
        step.record(Event::Spoken(Box::new(Spoken::ResumeAccepted { worker, job, execution })));
    } else {
        give_back(step, worker);
    }
}

/// Words that nobody is to read any more go back to who has sent them.
pub fn give_back(step: &mut Step<'_>, worker: WorkerId) {
    let Some(record) = step.state.workers.get(&worker) else { return };
    let messages: Vec<MessageId> = record.outbox.late_words().map(|(_, message)| message).collect();
    if !messages.is_empty() {
        step.record(Event::Spoken(Box::new(Spoken::WordsReturned { worker, messages })));
    }
}

fn finished_lead(state: &State, worker: WorkerId) -> Option<(WorkerId, Outcome)> {
    let Owner::Worker(lead) = state.workers.get(&worker)?.owner else { return None };
    let lead = state.workers.get(&lead)?;
    match &lead.phase {
        Phase::Finishing { outcome } if lead.active_children == 0 => Some((lead.id, outcome.clone())),
        Phase::Finishing { .. }
        | Phase::Queued
        | Phase::Starting(_)
        | Phase::Running
        | Phase::Blocked { .. }
        | Phase::Waiting { .. }
        | Phase::ParkAsked { .. }
        | Phase::Leaving { .. }
        | Phase::Closing { .. }
        | Phase::Parked { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. }
        | Phase::Ended { .. } => None,
    }
}

/// What a worker that did not end well leaves below it: stopped, or adopted by its lead, as the tree says. A worker that was
/// stopped has had its subtree stopped with it.
fn release_children(step: &mut Step<'_>, worker: WorkerId) {
    let Some(record) = step.state.workers.get(&worker) else { return };
    let (tree, owner) = (record.tree, record.owner);
    let adopt = step.state.trees.get(&tree).is_some_and(|tree| tree.settings.adopt_orphans);
    let children = step.state.active_children(tree, Owner::Worker(worker));
    for child in children {
        let latched = step.state.workers.get(&child).is_none_or(|child| child.stop.is_some());
        if latched {
            continue;
        }
        if adopt {
            step.record(Event::Reowned { worker: child, owner });
        } else {
            end_subtree(step, child, StopCause::ParentFailed);
        }
    }
}

/// Ends a worker and everything below it: nothing of it can be admitted any more, what is queued or parked is gone with this
/// step (an outcome that is known stands), what is alive gets TERM now and KILL when the grace is over.
pub fn end_subtree(step: &mut Step<'_>, worker: WorkerId, cause: StopCause) {
    let Some(record) = step.state.workers.get(&worker) else { return };
    let Some(tree) = step.state.trees.get(&record.tree) else { return };
    let kill_at = step.now.mono + tree.settings.stop_grace_ms;
    // Under the adopt setting only a stop reaches below: what a timed-out worker leaves is adopted when it ends.
    let alone = matches!(cause, StopCause::Timeout | StopCause::Idle) && tree.settings.adopt_orphans;
    let below = if alone { Vec::new() } else { step.state.active_below(worker) };
    let below_cause = match cause {
        StopCause::Stop | StopCause::Operator => StopCause::Stop,
        StopCause::Timeout | StopCause::Idle | StopCause::ParentFailed => StopCause::ParentFailed,
    };
    let all: Vec<(WorkerId, StopCause)> =
        std::iter::once((worker, cause)).chain(below.into_iter().map(|worker| (worker, below_cause))).collect();
    let mut latched = Vec::new();
    for (worker, cause) in all {
        if step.state.workers.get(&worker).is_some_and(|worker| worker.stop.is_none() && !worker.has_ended()) {
            step.record(Event::StopAsked { worker, cause, kill_at });
            latched.push(worker);
        }
    }
    for worker in latched.into_iter().rev() {
        let Some(record) = step.state.workers.get(&worker) else { continue };
        if record.has_process() {
            step.effects.push(Effect::Signal { incarnation: record.incarnation(), signal: Signal::Term });
        } else if matches!(record.phase, Phase::Gone { .. }) {
            let outcome = record.verdict(None);
            conclude(step, worker, outcome);
        }
    }
}
