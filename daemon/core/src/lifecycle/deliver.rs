//! Handing over what is owed to a lead that is alive and has settled: it goes on, without having exited.

use roost_proto::id::{Incarnation, WorkerId};

use crate::effect::Effect;
use crate::event::{Event, Owner};
use crate::state::worker::Phase;
use crate::step::{Step, end_of};

/// A child of a settled worker has ended: the worker goes on with what it is owed, or with the news that nothing is active.
pub fn rouse_lead(step: &mut Step<'_>, child: WorkerId) {
    let Some(Owner::Worker(lead)) = step.state.workers.get(&child).map(|child| child.owner) else { return };
    let Some(worker) = step.state.workers.get(&lead) else { return };
    let settled = matches!(worker.phase, Phase::Waiting { .. } | Phase::ParkAsked { .. });
    if !settled || worker.stop.is_some() || (worker.outbox.is_empty() && worker.active_children > 0) {
        return;
    }
    let incarnation = worker.incarnation();
    let items = worker.outbox.items_to(u64::MAX).filter_map(|(seq, child)| Some((seq, end_of(step.state, child)?))).collect();
    step.record(Event::Resumed { worker: lead });
    step.effects.push(Effect::Deliver { incarnation, items });
}

/// The worker has taken in what it was owed.
pub fn ack(step: &mut Step<'_>, incarnation: Incarnation, last: u64) {
    let worker = step.state.executions.get(&incarnation.execution).and_then(|worker| step.state.workers.get(worker));
    let Some(worker) = worker.filter(|worker| worker.epoch == incarnation.epoch && worker.can_speak()) else { return };
    if worker.outbox.items_to(last).next().is_some() {
        let worker = worker.id;
        step.record(Event::Delivered { worker, last });
    }
}
