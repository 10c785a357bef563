//! What a crash must not lose: the effects that follow from the state alone. Those that were released and are not yet
//! acknowledged by an event are exactly these, a tested property.

use roost_proto::link::Signal;

use crate::effect::Effect;
use crate::hand_over::spawn_of;
use crate::state::State;
use crate::state::worker::Phase;

/// The effects on processes that are open in this state.
pub fn open_effects(state: &State) -> Vec<Effect> {
    let mut open = Vec::new();
    for worker in state.workers.values().filter(|worker| worker.has_process()) {
        let incarnation = worker.incarnation();
        if matches!(worker.phase, Phase::Starting(_)) {
            open.extend(spawn_of(state, worker.id).map(|spawn| Effect::Spawn(Box::new(spawn))));
        }
        let signal = match (&worker.phase, worker.stop) {
            (Phase::Leaving { killed: true, .. } | Phase::Closing { killed: true, .. }, None) => Some(Signal::Kill),
            (Phase::Running, None) if worker.speech.as_ref().is_some_and(|speech| speech.late) => Some(Signal::Kill),
            (_, Some(stop)) if stop.killed => Some(Signal::Kill),
            (_, Some(_)) => Some(Signal::Term),
            (_, None) => None,
        };
        open.extend(signal.map(|signal| Effect::Signal { incarnation, signal }));
        if worker.speaks() && worker.stop.is_none() && matches!(worker.phase, Phase::Leaving { .. } | Phase::Closing { .. }) {
            open.push(Effect::Signal { incarnation, signal: Signal::CloseStdin });
        }
    }
    open
}
