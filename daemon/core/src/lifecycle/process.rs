//! What the supervisor says of processes. A report of an older incarnation has no effect.

use std::collections::BTreeSet;

use roost_proto::id::Incarnation;
use roost_proto::link::{ChildReport, ExitStatus, ProcessIdentity, Signal};
use roost_proto::outcome::{Failure, Outcome};

use crate::effect::Effect;
use crate::event::Event;
use crate::lifecycle::close_out;
use crate::state::State;
use crate::state::worker::{Phase, Starting, Worker};
use crate::step::Step;

/// The worker of a living incarnation.
fn living(state: &State, incarnation: Incarnation) -> Option<&Worker> {
    let worker = state.executions.get(&incarnation.execution)?;
    state.workers.get(worker).filter(|worker| worker.epoch == incarnation.epoch && worker.has_process())
}

/// The process runs: it was started, or a new supervisor has found it.
pub fn spawned(step: &mut Step<'_>, incarnation: Incarnation, process: ProcessIdentity) {
    let Some(worker) = living(step.state, incarnation) else { return };
    if matches!(worker.phase, Phase::Starting(_)) {
        let worker = worker.id;
        step.record(Event::ProcessStarted { worker, process });
    }
    signal_again(step, incarnation);
}

/// It could not be started. What may come back, and every wake, is tried again; the slot is kept meanwhile.
pub fn spawn_failed(step: &mut Step<'_>, incarnation: Incarnation, reason: String, transient: bool) {
    let Some(worker) = living(step.state, incarnation) else { return };
    let Phase::Starting(Starting { wake, tries, .. }) = worker.phase else { return };
    let (id, stopping) = (worker.id, worker.stop.is_some());
    let Some(timing) = step.state.timing_of(id) else { return };
    if !stopping && (transient || wake.is_some()) && tries < timing.start_retries {
        let again_at = step.now.mono + timing.start_retry_ms * u64::from(tries + 1);
        step.record(Event::StartDeferred { worker: id, again_at, reason, leftovers: Vec::new() });
        return;
    }
    let failure = if wake.is_some() { Failure::Startup { reason } } else { Failure::Spawn { reason } };
    end_start(step, incarnation, failure);
}

/// What it needs to wake with is damaged. A fresh start instead would run its work twice.
pub fn context_corrupt(step: &mut Step<'_>, incarnation: Incarnation, reason: String) {
    if living(step.state, incarnation).is_some_and(|worker| matches!(worker.phase, Phase::Starting(_))) {
        end_start(step, incarnation, Failure::ContextCorrupt { reason });
    }
}

fn end_start(step: &mut Step<'_>, incarnation: Incarnation, failure: Failure) {
    let Some(worker) = living(step.state, incarnation) else { return };
    let (id, stopped) = (worker.id, worker.stop.map(|_| worker.verdict(None)));
    step.record(Event::SlotFreed { worker: id, status: ExitStatus::Unknown, leftovers: Vec::new() });
    close_out::conclude(step, id, stopped.unwrap_or(Outcome::Failed(failure)));
}

/// Whether what an incarnation left behind is to be ended before its slot is free. In a tree that keeps such processes they are
/// the user's own affair.
fn ends_leftovers(state: &State, incarnation: Incarnation) -> bool {
    let worker = state.executions.get(&incarnation.execution).and_then(|worker| state.workers.get(worker));
    worker.and_then(|worker| state.trees.get(&worker.tree)).is_none_or(|tree| tree.settings.end_leftovers)
}

/// What a main process left behind.
enum Left {
    Nothing,
    /// It is being ended.
    Ending,
    /// It lives on.
    Kept(Vec<u32>),
}

/// Its main process has ended; what it left behind may be alive.
pub fn exited(step: &mut Step<'_>, incarnation: Incarnation, status: ExitStatus, leftovers: Vec<u32>) {
    let left = match (leftovers.is_empty(), ends_leftovers(step.state, incarnation)) {
        (true, _) => Left::Nothing,
        (false, true) => Left::Ending,
        (false, false) => Left::Kept(leftovers),
    };
    main_exited(step, incarnation, status, left);
}

fn main_exited(step: &mut Step<'_>, incarnation: Incarnation, status: ExitStatus, left: Left) {
    let Some(worker) = living(step.state, incarnation) else {
        // Of an end that is long known, or of an incarnation that is over: nobody needs the record of it.
        if !matches!(left, Left::Ending) {
            step.effects.push(Effect::Forget { incarnation });
        }
        return;
    };
    let id = worker.id;
    match &worker.phase {
        Phase::Emptying { .. } => {
            if !matches!(left, Left::Ending) {
                emptied(step, incarnation);
            }
            return;
        }
        // A settled worker that dies was merely parked by accident: its context is saved.
        Phase::Waiting { .. } | Phase::ParkAsked { blocked: false, .. } if worker.stop.is_none() => {
            if let Some(context) = worker.context {
                step.record(Event::Parked { worker: id, context, held: None });
            }
        }
        Phase::Starting(_)
        | Phase::Running
        | Phase::Blocked { .. }
        | Phase::Waiting { .. }
        | Phase::ParkAsked { .. }
        | Phase::Leaving { .. }
        | Phase::Closing { .. }
        | Phase::Queued
        | Phase::Parked { .. }
        | Phase::Gone { .. }
        | Phase::Finishing { .. }
        | Phase::Ended { .. } => {}
    }
    match left {
        Left::Nothing => freed(step, incarnation, status, Vec::new()),
        Left::Ending => step.record(Event::MainExited { worker: id, status }),
        Left::Kept(leftovers) => freed(step, incarnation, status, leftovers),
    }
}

/// What it left behind is gone as well.
pub fn emptied(step: &mut Step<'_>, incarnation: Incarnation) {
    let status = living(step.state, incarnation)
        .and_then(|worker| if let Phase::Emptying { status, .. } = worker.phase { Some(status) } else { None });
    match status {
        Some(status) => freed(step, incarnation, status, Vec::new()),
        None => step.effects.push(Effect::Forget { incarnation }),
    }
}

fn freed(step: &mut Step<'_>, incarnation: Incarnation, status: ExitStatus, leftovers: Vec<u32>) {
    let Some(worker) = living(step.state, incarnation) else { return };
    let id = worker.id;
    if let Some((again_at, reason)) = another_try(step, worker, status) {
        step.record(Event::StartDeferred { worker: id, again_at, reason, leftovers });
        step.effects.push(Effect::Forget { incarnation });
        return;
    }
    step.record(Event::SlotFreed { worker: id, status, leftovers });
    step.effects.push(Effect::Forget { incarnation });
    let gone = step.state.workers.get(&id).filter(|worker| matches!(worker.phase, Phase::Gone { .. }));
    if let Some(outcome) = gone.map(|worker| worker.verdict(Some(status))) {
        close_out::conclude(step, id, outcome);
    }
}

/// Whether a process that ended before its hello is started again, and when: one that said nothing in time, or one that was to go on from
/// a saved context. It has produced nothing, so nothing runs twice. One that had launched, said or taken in something, waited or parked
/// without a hello has done something: it ends as every process does.
fn another_try(step: &Step<'_>, worker: &Worker, status: ExitStatus) -> Option<(crate::time::Mono, String)> {
    let speech = worker.speech.as_ref()?;
    let at_start = matches!(worker.phase, Phase::Running | Phase::Emptying { parked: false, outcome: None, .. });
    if !worker.slot || !at_start {
        return None;
    }
    let again = speech.late || worker.context.is_some();
    let timing = step.state.timing_of(worker.id)?;
    if speech.greeted || speech.acted || !again || worker.stop.is_some() || speech.tries >= timing.start_retries {
        return None;
    }
    let reason = if speech.late { "no hello came in time".into() } else { format!("it ended before its hello ({status})") };
    Some((step.now.mono + timing.start_retry_ms * u64::from(speech.tries + 1), reason))
}

/// No supervisor ever carried out this start: it may be carried out now, as the same incarnation.
pub fn never_started(step: &mut Step<'_>, incarnation: Incarnation) {
    let Some(worker) = living(step.state, incarnation) else { return };
    if !matches!(worker.phase, Phase::Starting(_)) {
        return;
    }
    let (id, stopping) = (worker.id, worker.stop.is_some());
    if stopping {
        end_start(step, incarnation, Failure::Lost);
    } else {
        step.spawn(id);
    }
}

/// The supervisor's word of all that it holds, after a start of the broker: compares it with what the journal says.
pub fn reconcile(step: &mut Step<'_>, children: Vec<ChildReport>) {
    let mut held = BTreeSet::new();
    for child in children {
        let incarnation = child.incarnation;
        held.insert(incarnation);
        if living(step.state, incarnation).is_none() {
            let kept = child.exited.is_some() && !ends_leftovers(step.state, incarnation);
            if child.alive && !kept {
                step.effects.push(Effect::Signal { incarnation, signal: Signal::Kill });
            } else {
                step.effects.push(Effect::Forget { incarnation });
            }
            continue;
        }
        spawned(step, incarnation, child.process);
        let Some(status) = child.exited else { continue };
        match (child.alive, ends_leftovers(step.state, incarnation)) {
            (false, _) => main_exited(step, incarnation, status, Left::Nothing),
            (true, true) => main_exited(step, incarnation, status, Left::Ending),
            // Its report comes yet: that lists what is kept.
            (true, false) => {}
        }
    }
    let missing: Vec<_> = step
        .state
        .workers
        .values()
        .filter(|worker| worker.has_process() && !held.contains(&worker.incarnation()))
        .map(|worker| adopt(step.state, worker))
        .collect();
    step.effects.extend(missing);
}

fn adopt(state: &State, worker: &Worker) -> Effect {
    let incarnation = worker.incarnation();
    let leftovers_grace_ms = state.trees.get(&worker.tree).and_then(|tree| tree.settings.leftovers_grace_ms());
    Effect::Adopt { incarnation, process: worker.process, leftovers_grace_ms }
}

/// A signal may have been lost with the broker that had decided it, or with the supervisor that was to send it.
fn signal_again(step: &mut Step<'_>, incarnation: Incarnation) {
    let open = living(step.state, incarnation).and_then(Worker::open_signal);
    step.effects.extend(open.map(|signal| Effect::Signal { incarnation, signal }));
}
