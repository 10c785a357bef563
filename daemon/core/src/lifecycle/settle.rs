//! The end of a turn of a worker that speaks: it waits for what is below it, goes on with what it is owed, or has its outcome.
//! Contract sections 6 and 9.

use roost_proto::id::WorkerId;
use roost_proto::link::Signal;
use roost_proto::outcome::{Failure, Outcome};

use crate::command::{CallId, Caller, Settle};
use crate::effect::{Effect, Reply};
use crate::event::{Event, Spoken};
use crate::holders::Holders;
use crate::lifecycle::{authority, bounds, unblock};
use crate::rejection::Rejection;
use crate::state::speech::Next;
use crate::state::tree::Tree;
use crate::state::worker::{Phase, Worker};
use crate::step::Step;

/// It has ended its turn.
pub fn settle(
    step: &mut Step<'_>,
    holders: &mut Holders,
    call: CallId,
    caller: Caller,
    lease: Option<u64>,
    settle: Settle,
) -> Result<(), Rejection> {
    bounds::label("the request id", &settle.request_id)?;
    let worker = authority::voice(step.state, caller, lease)?;
    let id = worker.id;
    if let Some((_, next)) = worker.speech.as_ref().and_then(|speech| speech.settled.as_ref()).filter(|it| it.0 == settle.request_id) {
        let next = *next;
        step.reply(call, Reply::Settled(next));
        return Ok(());
    }
    let waits = worker.active_children > 0;
    if waits && settle.context.is_none() && worker.stop.is_none() {
        return Err(Rejection::NoContext);
    }
    if let Some(usage) = &settle.usage {
        authority::usage(worker.accounts.as_deref(), usage)?;
    }
    // The end of a turn is a sign of life, and the end of every tool.
    let idle_ms = step.state.timing_of(id).map_or(0, |timing| timing.idle_ms);
    holders.beat(id, step.now.mono, idle_ms, Some(false));
    take_usage(step, id, &settle);
    let Some(worker) = step.state.workers.get(&id) else { return Ok(()) };
    if worker.stop.is_some() || !worker.can_speak() || matches!(worker.phase, Phase::Leaving { .. } | Phase::Closing { .. }) {
        // What it said before it is gone is kept, as a part of an answer.
        if settle.answered && worker.stop.is_some() && !worker.has_answered() {
            forget_said(step, id);
            step.record(Event::Spoken(Box::new(Spoken::Said { worker: id })));
        }
        step.reply(call, Reply::Settled(Next::Exit));
        return Ok(());
    }
    comes_to_rest(step, id);
    let Some((worker, tree)) = with_tree(step, id) else { return Ok(()) };
    if worker.owed_turn || owes_turn(worker, tree) {
        if let Some(holding) = holders.get_mut(worker.tree, crate::event::Owner::Worker(id)) {
            holding.handed.clear();
            holding.knows_turn = false;
        }
        let to = (worker.tree, crate::event::Owner::Worker(id));
        step.mail.insert(to);
        step.reply(call, Reply::Settled(Next::GoOn));
        return Ok(());
    }
    if settle.answered {
        forget_said(step, id);
    }
    let (request_id, answered, context) = (settle.request_id.clone(), settle.answered, settle.context);
    if waits {
        step.record(Event::Spoken(Box::new(Spoken::Settled { worker: id, context, request_id, answered })));
        step.reply(call, Reply::Settled(Next::Wait));
        return Ok(());
    }
    let Some((worker, tree)) = with_tree(step, id) else { return Ok(()) };
    let exit_ms = tree.settings.timing.settle_to_exit_ms;
    let kill_at = (exit_ms > 0).then(|| step.now.mono + exit_ms);
    let (incarnation, outcome) = (worker.incarnation(), outcome_of(settle));
    let length_limited = outcome.1;
    let answer = Spoken::Answered { worker: id, outcome: outcome.0, context, request_id, answered, length_limited, kill_at };
    step.record(Event::Spoken(Box::new(answer)));
    step.effects.push(Effect::Signal { incarnation, signal: Signal::CloseStdin });
    step.reply(call, Reply::Settled(Next::Exit));
    Ok(())
}

fn with_tree<'s>(step: &'s Step<'_>, id: WorkerId) -> Option<(&'s Worker, &'s Tree)> {
    let worker = step.state.workers.get(&id)?;
    Some((worker, step.state.trees.get(&worker.tree)?))
}

fn take_usage(step: &mut Step<'_>, id: WorkerId, settle: &Settle) {
    let Some(worker) = step.state.workers.get(&id) else { return };
    let (tree, owner) = (worker.tree, crate::event::Owner::Worker(id));
    if let Some(report) = settle.usage.filter(|usage| authority::usage(worker.accounts.as_deref(), usage) == Ok(true)) {
        step.record(Event::Spoken(Box::new(Spoken::UsageReported { tree, owner, report })));
    }
}

/// A client in the background may still wait; the worker itself does not, whatever that client made it look like.
fn comes_to_rest(step: &mut Step<'_>, id: WorkerId) {
    let Some(worker) = step.state.workers.get(&id) else { return };
    match worker.phase {
        Phase::Blocked { .. } | Phase::ParkAsked { blocked: true, .. } => unblock::stop_waiting(step, id),
        // It had a turn of its own, and this is the end of it.
        Phase::Waiting { .. } | Phase::ParkAsked { blocked: false, .. } => {
            step.record(Event::Spoken(Box::new(Spoken::Busy { worker: id })));
        }
        Phase::Queued
        | Phase::Starting(_)
        | Phase::Running
        | Phase::Leaving { .. }
        | Phase::Parked { .. }
        | Phase::Closing { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. }
        | Phase::Finishing { .. }
        | Phase::Ended { .. } => {}
    }
}

/// Whether it would miss something by ending or waiting now.
fn owes_turn(worker: &Worker, tree: &Tree) -> bool {
    let mode = tree.settings.delivery;
    let ends = mode.pushes() && (mode.wakes() || worker.active_children == 0) && worker.outbox.has_ready_ends();
    worker.outbox.wakes(false) || ends
}

/// What the turn has said so far is replaced.
fn forget_said(step: &mut Step<'_>, id: WorkerId) {
    let said = step.state.workers.get(&id).and_then(|worker| worker.speech.as_ref()).and_then(|speech| speech.said);
    step.effects.extend(said.map(|said| Effect::ForgetText(said.text)));
}

/// The order of contract section 9, as far as a worker's own word goes; and whether its answer was cut by the model.
fn outcome_of(settle: Settle) -> (Outcome, bool) {
    let Settle { answered, aborted, error, wrapped_up, truncated, .. } = settle;
    let outcome = match (aborted, error) {
        (true, Some(Failure::TurnLimit { message } | Failure::Provider { message })) => Outcome::Aborted { reason: message },
        (true, Some(other)) => Outcome::Aborted { reason: other.to_string() },
        (true, None) => Outcome::Aborted { reason: "it was cut off".into() },
        (false, Some(failure)) => Outcome::Failed(failure),
        (false, None) if truncated && !answered => Outcome::Failed(Failure::Truncated),
        (false, None) if !answered => Outcome::Failed(Failure::NoAnswer),
        (false, None) if wrapped_up => Outcome::WrappedUp,
        (false, None) => Outcome::Completed,
    };
    (outcome, truncated)
}
