//! Workers that stop waiting before their call has returned: it was abandoned, or their turn has ended.

use roost_proto::id::WorkerId;

use crate::event::Event;
use crate::state::worker::Phase;
use crate::step::Step;

/// A worker goes on without its call having returned, wherever it stands in it. A process that runs has a slot, whatever the cap says.
pub fn stop_waiting(step: &mut Step<'_>, worker: WorkerId) {
    if step.state.workers.get(&worker).is_some_and(|record| matches!(record.phase, Phase::ParkAsked { blocked: true, .. })) {
        step.record(Event::ParkCancelled { worker, not_before: step.now.mono });
    }
    let Some(record) = step.state.workers.get(&worker) else { return };
    if record.is_lent() {
        step.record(Event::SlotRetaken { worker });
    } else if matches!(record.phase, Phase::Blocked { .. }) {
        step.record(Event::WaitOver { worker });
    }
}
