//! What is due: further tries of a start, the KILL after the grace, parks that were not answered, wall times.

use roost_proto::id::{Epoch, WorkerId};
use roost_proto::link::Signal;

use crate::effect::Effect;
use crate::event::{Event, Spoken, StopCause};
use crate::lifecycle::close_out;
use crate::state::worker::{Phase, Starting, Worker};
use crate::step::Step;
use crate::time::Mono;

/// Does what has become due since the last step, and what becomes due by that (the KILL of a stop without any grace). Every branch
/// moves or removes its own timer, so that nothing is due twice; a worker that may be asked to park again is due and has nothing to
/// be done. Such timers stay, which is why those before the last step are not looked at: they were.
pub fn fire(step: &mut Step<'_>, since: Mono) {
    loop {
        let due = step.state.timers.range((since, WorkerId(0))..).take_while(|(at, _)| *at <= step.now.mono);
        let due: Vec<WorkerId> = due.map(|(_, worker)| *worker).collect();
        let recorded = step.records.len();
        for worker in due {
            fire_worker(step, worker);
        }
        if step.records.len() == recorded {
            return;
        }
    }
}

/// What is due for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Its time to leave is over.
    Kill,
    /// Its wall time is.
    Timeout,
    /// Its process has not said hello.
    HelloLate,
    /// The call in which it parked gives up.
    CallOver,
    /// Its start is tried again.
    Retry,
    /// It has not answered a request to park.
    ParkOver,
}

/// The first thing that is due for a worker.
pub fn due(worker: &Worker, now: Mono) -> Option<Due> {
    let past = |at: Option<Mono>| at.is_some_and(|at| at <= now);
    if let Some(stop) = worker.stop {
        return (worker.has_process() && !stop.killed && stop.kill_at <= now).then_some(Due::Kill);
    }
    if let Phase::Leaving { kill_at, killed: false } | Phase::Closing { kill_at, killed: false, .. } = worker.phase
        && past(kill_at)
    {
        return Some(Due::Kill);
    }
    if past(worker.timeout_at) && !worker.has_ended() && !matches!(worker.phase, Phase::Finishing { .. }) {
        return Some(Due::Timeout);
    }
    if worker.held.as_ref().is_some_and(|held| !held.over && past(held.deadline)) && worker.has_parked() {
        return Some(Due::CallOver);
    }
    let hello_by = worker.speech.as_ref().and_then(|speech| speech.hello_by);
    match worker.phase {
        Phase::Running | Phase::Blocked { .. } if past(hello_by) => Some(Due::HelloLate),
        Phase::Starting(Starting { again_at, .. }) if past(again_at) => Some(Due::Retry),
        Phase::ParkAsked { deadline, .. } if past(deadline) => Some(Due::ParkOver),
        Phase::Queued
        | Phase::Starting(_)
        | Phase::Running
        | Phase::Blocked { .. }
        | Phase::Waiting { .. }
        | Phase::ParkAsked { .. }
        | Phase::Leaving { .. }
        | Phase::Parked { .. }
        | Phase::Closing { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. }
        | Phase::Finishing { .. }
        | Phase::Ended { .. } => None,
    }
}

fn fire_worker(step: &mut Step<'_>, id: WorkerId) {
    let Some(worker) = step.state.workers.get(&id) else { return };
    let (incarnation, now) = (worker.incarnation(), step.now.mono);
    match due(worker, now) {
        Some(Due::Kill) => {
            step.record(Event::KillSent { worker: id });
            step.effects.push(Effect::Signal { incarnation, signal: Signal::Kill });
        }
        Some(Due::Timeout) => close_out::end_subtree(step, id, StopCause::Timeout),
        Some(Due::HelloLate) => {
            step.record(Event::Spoken(Box::new(Spoken::StartupOver { worker: id })));
            step.effects.push(Effect::Signal { incarnation, signal: Signal::Kill });
        }
        Some(Due::CallOver) => step.record(Event::Spoken(Box::new(Spoken::HoldOver { worker: id }))),
        Some(Due::Retry) => {
            step.record(Event::StartRetried { worker: id, epoch: Epoch(incarnation.epoch.0 + 1) });
            step.spawn(id);
        }
        Some(Due::ParkOver) => {
            let park_again_ms = step.state.timing_of(id).map_or(0, |timing| timing.park_again_ms);
            step.record(Event::ParkCancelled { worker: id, not_before: now + park_again_ms });
        }
        None => {}
    }
}
