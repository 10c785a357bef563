//! What a crash must not lose: the effects that follow from the state alone. Those that were released and are not yet
//! acknowledged by an event are exactly these, a tested property.

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
        open.extend(worker.open_signal().map(|signal| Effect::Signal { incarnation, signal }));
    }
    open
}
