//! Parking: contract section 6. `Event::Parked` is the one linearization point, for a command that parks itself and for a
//! worker that was asked to.

use roost_proto::limits::PARK_DECLINE_MS_MAX;
use roost_proto::link::Signal;

use crate::calls::Calls;
use crate::command::{CallId, Caller};
use crate::effect::{Effect, Reply};
use crate::event::{Context, Event, Owner};
use crate::lifecycle::authority;
use crate::rejection::Rejection;
use crate::state::worker::{Phase, Worker};
use crate::step::Step;

/// A plain command parks itself. Its process must exit once it is told.
pub fn park(step: &mut Step<'_>, call: CallId, caller: Caller, context: Context) -> Result<(), Rejection> {
    let worker = authority::worker(step.state, caller, "park")?;
    // Nothing follows on a last word.
    if step.state.workers.get(&worker).is_some_and(|worker| worker.stop.is_some() || worker.has_answered()) {
        return Err(Rejection::Stopping);
    }
    // A lent slot is taken back first: whoever is on the way out counts until it is gone.
    let lent = step.state.workers.get(&worker).is_some_and(Worker::is_lent);
    if lent {
        step.record(Event::SlotRetaken { worker });
    }
    step.record(Event::Parked { worker, context, held: None });
    if let Some(record) = step.state.workers.get(&worker).filter(|record| record.speaks()) {
        step.effects.push(Effect::Signal { incarnation: record.incarnation(), signal: Signal::CloseStdin });
    }
    step.reply(call, Reply::Parked);
    Ok(())
}

/// A worker was asked to park and has saved its context. Says whether it is parked: a late answer, or one that something overtook, is
/// no park, and the worker goes on.
pub fn ready(
    step: &mut Step<'_>,
    calls: &Calls,
    call: CallId,
    caller: Caller,
    lease: Option<u64>,
    context: Option<Context>,
) -> Result<(), Rejection> {
    let worker = authority::voice(step.state, caller, lease)?;
    let id = worker.id;
    let Phase::ParkAsked { blocked, .. } = worker.phase else {
        let parked = matches!(worker.phase, Phase::Leaving { .. });
        step.reply(call, Reply::ParkReady(parked));
        return Ok(());
    };
    let asker = (worker.tree, Owner::Worker(id));
    let held = if blocked { calls.held(asker).map(Box::new) } else { None };
    // In the middle of a turn the last settle's context is not where it stands.
    let context = context.or(worker.context.filter(|_| !blocked)).ok_or(Rejection::NoContext)?;
    let possible = worker.stop.is_none() && (!blocked || held.is_some());
    if possible {
        let incarnation = worker.incarnation();
        step.record(Event::Parked { worker: id, context, held });
        step.effects.push(Effect::Signal { incarnation, signal: Signal::CloseStdin });
    } else if worker.stop.is_none()
        && let Some(timing) = step.state.timing_of(id)
    {
        // Its call cannot go on in another process: it keeps on waiting, and another one is asked.
        step.record(Event::ParkCancelled { worker: id, not_before: step.now.mono + timing.park_again_ms });
    }
    step.reply(call, Reply::ParkReady(possible));
    Ok(())
}

/// It was asked to park and cannot.
pub fn decline(step: &mut Step<'_>, call: CallId, caller: Caller, lease: Option<u64>, not_before_ms: u64) -> Result<(), Rejection> {
    let worker = authority::voice(step.state, caller, lease)?;
    let id = worker.id;
    if matches!(worker.phase, Phase::ParkAsked { .. }) {
        let not_before = step.now.mono + not_before_ms.min(PARK_DECLINE_MS_MAX);
        step.record(Event::ParkCancelled { worker: id, not_before });
        step.mail.insert((step.state.workers.get(&id).map_or(Err(Rejection::UnknownIdentity), |w| Ok(w.tree))?, Owner::Worker(id)));
    }
    step.reply(call, Reply::Done);
    Ok(())
}
