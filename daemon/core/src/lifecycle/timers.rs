//! What is due: further tries of a start, the KILL after the grace, parks that were not answered, wall times.

use roost_proto::id::{Epoch, WorkerId};
use roost_proto::link::Signal;

use crate::effect::Effect;
use crate::event::{Event, Spoken, StopCause};
use crate::lifecycle::close_out;
use crate::state::worker::{Phase, Starting};
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

fn fire_worker(step: &mut Step<'_>, id: WorkerId) {
    let now = step.now.mono;
    let Some(worker) = step.state.workers.get(&id) else { return };
    let incarnation = worker.incarnation();
    let kill = match (&worker.phase, worker.stop) {
        (_, Some(stop)) => worker.has_process() && !stop.killed && stop.kill_at <= now,
        (Phase::Leaving { kill_at: Some(at), killed: false }, None) => *at <= now,
        (Phase::Closing { kill_at, killed: false, .. }, None) => kill_at.is_some_and(|at| at <= now),
        _ => false,
    };
    if kill {
        step.record(Event::KillSent { worker: id });
        step.effects.push(Effect::Signal { incarnation, signal: Signal::Kill });
        return;
    }
    if worker.stop.is_some() {
        return;
    }
    if worker.timeout_at.is_some_and(|at| at <= now) && !worker.has_ended() && !matches!(worker.phase, Phase::Finishing { .. }) {
        close_out::end_subtree(step, id, StopCause::Timeout);
        return;
    }
    let hello_late = worker.speech.as_ref().and_then(|speech| speech.hello_by).is_some_and(|at| at <= now);
    if hello_late && worker.phase == Phase::Running {
        step.record(Event::Spoken(Box::new(Spoken::StartupOver { worker: id })));
        step.effects.push(Effect::Signal { incarnation, signal: Signal::Kill });
        return;
    }
    if matches!(worker.phase, Phase::Parked { .. })
        && worker.held.as_ref().is_some_and(|held| !held.over && held.deadline.is_some_and(|at| at <= now))
    {
        step.record(Event::Spoken(Box::new(Spoken::HoldOver { worker: id })));
        return;
    }
    if let Phase::Starting(Starting { again_at: Some(at), .. }) = worker.phase
        && at <= now
    {
        let epoch = Epoch(worker.epoch.0 + 1);
        step.record(Event::StartRetried { worker: id, epoch });
        step.spawn(id);
    } else if let Phase::ParkAsked { deadline: Some(at), .. } = worker.phase
        && at <= now
        && let Some(timing) = step.state.timing_of(id)
    {
        let not_before = now + timing.park_again_ms;
        step.record(Event::ParkCancelled { worker: id, not_before });
    }
}
