//! Handing over what is owed to a lead that is alive and has settled: it goes on, without having exited.

use roost_proto::id::{Incarnation, WorkerId};

use crate::event::{Event, Owner};
use crate::state::worker::Phase;
use crate::step::{Step, delivery_of};

/// A child of a settled worker has ended: see [`rouse`].
pub fn rouse_lead(step: &mut Step<'_>, child: WorkerId) {
    if let Some(Owner::Worker(lead)) = step.state.workers.get(&child).map(|child| child.owner) {
        rouse(step, lead);
    }
}

/// A settled worker goes on with what it is owed, or with the news that nothing below it is active any more.
pub fn rouse(step: &mut Step<'_>, worker: WorkerId) {
    let Some(record) = step.state.workers.get(&worker) else { return };
    let settled = matches!(record.phase, Phase::Waiting { .. } | Phase::ParkAsked { .. });
    if !settled || record.stop.is_some() || (record.outbox.is_empty() && record.active_children > 0) {
        return;
    }
    step.record(Event::Resumed { worker });
    step.effects.extend(delivery_of(step.state, worker));
}

/// The worker has taken in what it was owed.
pub fn ack(step: &mut Step<'_>, incarnation: Incarnation, last: u64) {
    let worker = step.state.executions.get(&incarnation.execution).and_then(|worker| step.state.workers.get(worker));
    let Some(worker) = worker.filter(|worker| worker.epoch == incarnation.epoch && worker.can_speak()) else { return };
    if worker.owed_turn || worker.outbox.items_to(last).next().is_some() {
        let worker = worker.id;
        step.record(Event::Delivered { worker, last });
    }
}
