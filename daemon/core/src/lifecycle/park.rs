//! Parking: contract section 6. `Event::Parked` is the one linearization point, for a command that parks itself and for a
//! worker that was asked to.

use roost_proto::id::Incarnation;
use roost_proto::limits::PARK_DECLINE_MS_MAX;
use roost_proto::link::Signal;

use crate::command::{CallId, Caller};
use crate::effect::{Effect, Reply};
use crate::event::{Context, Event};
use crate::lifecycle::authority;
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::worker::{Phase, Worker};
use crate::step::{Step, delivery_of};

/// A plain command parks itself. Its process must exit once it is told.
pub fn park(step: &mut Step<'_>, call: CallId, caller: Caller, context: Context) -> Result<(), Rejection> {
    let worker = authority::worker(step.state, caller, "park")?;
    if step.state.workers.get(&worker).is_some_and(|worker| worker.stop.is_some()) {
        return Err(Rejection::Stopping);
    }
    // A lent slot is taken back first: whoever is on the way out counts until it is gone.
    let lent = step.state.workers.get(&worker).is_some_and(Worker::is_lent);
    if lent {
        step.record(Event::SlotRetaken { worker });
    }
    step.record(Event::Parked { worker, context });
    step.reply(call, Reply::Parked);
    Ok(())
}

/// A worker that speaks the protocol ended its turn: its context is saved and it waits, for what is owed to it or below it.
/// Where nothing is, that was its last turn and its input is closed.
pub fn settle(step: &mut Step<'_>, incarnation: Incarnation, context: Context) {
    let Some(worker) = speaking(step.state, incarnation) else { return };
    let id = worker.id;
    if worker.stop.is_some() {
        return;
    }
    // A client in the background may still wait; the worker itself does not, whatever that client made it look like.
    if worker.is_lent() {
        step.record(Event::SlotRetaken { worker: id });
    } else if matches!(worker.phase, Phase::Blocked { .. }) {
        step.record(Event::WaitOver { worker: id });
    }
    let Some(worker) = speaking(step.state, incarnation).filter(|worker| worker.phase == Phase::Running) else { return };
    if worker.owed_turn {
        // It cannot have read what it was told last: it settled before.
        step.effects.extend(delivery_of(step.state, id));
    } else if worker.active_children > 0 || !worker.outbox.is_empty() {
        step.record(Event::Settled { worker: id, context });
    } else {
        step.effects.push(Effect::Signal { incarnation, signal: Signal::CloseStdin });
    }
}

/// It was asked to park and has saved its context.
pub fn ready(step: &mut Step<'_>, incarnation: Incarnation, context: Context) {
    let Some(worker) = speaking(step.state, incarnation) else { return };
    // A late answer, or one that something overtook, is no park: the worker goes on.
    if matches!(worker.phase, Phase::ParkAsked { .. }) && worker.stop.is_none() {
        let worker = worker.id;
        step.record(Event::Parked { worker, context });
        step.effects.push(Effect::ParkOk { incarnation });
    }
}

/// It was asked to park and cannot.
pub fn decline(step: &mut Step<'_>, incarnation: Incarnation, not_before_ms: u64) {
    let Some(worker) = speaking(step.state, incarnation) else { return };
    if matches!(worker.phase, Phase::ParkAsked { .. }) {
        let worker = worker.id;
        let not_before = step.now.mono + not_before_ms.min(PARK_DECLINE_MS_MAX);
        step.record(Event::ParkCancelled { worker, not_before });
    }
}

fn speaking(state: &State, incarnation: Incarnation) -> Option<&Worker> {
    let worker = state.executions.get(&incarnation.execution)?;
    state.workers.get(worker).filter(|worker| worker.epoch == incarnation.epoch && worker.can_speak())
}
