//! Where a worker stands in the indexes of its tree: a pure function of the worker, applied after every event that touched it.
//!
//! This is the only writer of `Worker::seat`, of the lanes, sets and counts of a tree, and of the timers.

use roost_proto::id::WorkerId;
use roost_proto::outcome::Outcome;

use crate::event::Settings;
use crate::state::State;
use crate::state::tree::{Counts, Lane, Tree};
use crate::state::worker::{Phase, Seat, Worker};
use crate::time::Mono;

/// The seat that a worker should have.
fn seat_of(worker: &Worker, settings: &Settings) -> Seat {
    let stopping = worker.stop.is_some();
    match &worker.phase {
        Phase::Queued => Seat::Queue,
        Phase::Blocked { over: Some((over, _)), .. } if !worker.slot => Seat::FinalWake(*over),
        Phase::Blocked { since, over: None, .. } if worker.slot && !stopping => {
            let gives = settings.lend_slots || worker.parks_in_calls();
            if gives { Seat::Victim(*since) } else { Seat::Stuck(*since) }
        }
        Phase::Waiting { since, .. } if !stopping => Seat::Victim(*since),
        Phase::Parked { ready: Some((since, _)), .. }
            if worker.active_children == 0 || worker.held.as_ref().is_some_and(|held| held.over) =>
        {
            Seat::FinalWake(*since)
        }
        Phase::Parked { ready: Some((since, _)), .. } => Seat::EarlyWake(*since),
        Phase::Starting(_)
        | Phase::Running
        | Phase::Blocked { .. }
        | Phase::Waiting { .. }
        | Phase::ParkAsked { .. }
        | Phase::Leaving { .. }
        | Phase::Closing { .. }
        | Phase::Parked { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. }
        | Phase::Finishing { .. }
        | Phase::Ended { .. } => Seat::None,
    }
}

/// What one worker adds to the counts of its tree.
fn counts_of(worker: &Worker) -> Counts {
    let mut counts = Counts { live: u32::from(worker.slot), lent: u32::from(worker.is_lent()), ..Counts::default() };
    match &worker.phase {
        Phase::ParkAsked { .. } | Phase::Leaving { .. } => counts.parking = 1,
        Phase::Parked { .. } => counts.parked = 1,
        Phase::Finishing { .. } => counts.finishing = 1,
        Phase::Ended { outcome: Outcome::Completed | Outcome::WrappedUp } => counts.completed = 1,
        Phase::Ended { outcome: Outcome::Failed(_) | Outcome::Aborted { .. } } => counts.failed = 1,
        Phase::Ended { outcome: Outcome::Stopped } => counts.stopped = 1,
        Phase::Queued
        | Phase::Starting(_)
        | Phase::Running
        | Phase::Blocked { .. }
        | Phase::Waiting { .. }
        | Phase::Closing { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. } => {}
    }
    counts
}

impl Counts {
    fn each(&mut self) -> [&mut u32; 8] {
        let Self { live, parking, parked, lent, finishing, completed, failed, stopped } = self;
        [live, parking, parked, lent, finishing, completed, failed, stopped]
    }

    fn change(&mut self, mut before: Self, mut after: Self) {
        for ((total, before), after) in self.each().into_iter().zip(before.each()).zip(after.each()) {
            *total = *total + *after - *before;
        }
    }
}

/// What a worker took part in before an event touched it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    counts: Counts,
    timers: [Option<Mono>; 3],
}

impl Standing {
    /// As the worker stands now; of a worker that is not there yet: nothing.
    pub(super) fn of(worker: Option<&Worker>) -> Self {
        worker.map_or_else(Self::default, |worker| Self { counts: counts_of(worker), timers: worker.timers() })
    }
}

impl State {
    /// Seats a worker anew after an event; `before` is how it stood.
    pub(super) fn reseat(&mut self, id: WorkerId, before: Standing) {
        let Some(worker) = self.workers.get_mut(&id) else { return };
        let Some(tree) = self.trees.get_mut(&worker.tree) else { return };
        let seat = seat_of(worker, &tree.settings);
        if seat != worker.seat {
            let lane = &mut tree.lanes[Tree::lane_of(worker.group)];
            match worker.seat {
                Seat::None => true,
                Seat::Queue => lane.queue.remove(&(worker.execution, id)),
                Seat::Victim(since) => tree.victims.remove(&(since, id)),
                Seat::Stuck(since) => tree.stuck.remove(&(since, id)),
                Seat::FinalWake(since) => tree.final_wakes.remove(&(since, id)),
                Seat::EarlyWake(since) => tree.early_wakes.remove(&(since, id)),
            };
            match seat {
                Seat::None => true,
                Seat::Queue => lane.queue.insert((worker.execution, id)),
                Seat::Victim(since) => tree.victims.insert((since, id)),
                Seat::Stuck(since) => tree.stuck.insert((since, id)),
                Seat::FinalWake(since) => tree.final_wakes.insert((since, id)),
                Seat::EarlyWake(since) => tree.early_wakes.insert((since, id)),
            };
            lane.final_wakes += usize::from(matches!(seat, Seat::FinalWake(_)));
            lane.final_wakes -= usize::from(matches!(worker.seat, Seat::FinalWake(_)));
            worker.seat = seat;
        }
        let after = Standing { counts: counts_of(worker), timers: worker.timers() };
        tree.counts.change(before.counts, after.counts);
        self.live = self.live + after.counts.live - before.counts.live;
        let lane: &mut Lane = &mut tree.lanes[Tree::lane_of(worker.group)];
        lane.live = lane.live + after.counts.live - before.counts.live;
        lane.parking = lane.parking + after.counts.parking - before.counts.parking;
        if after.timers != before.timers {
            for at in before.timers.into_iter().flatten() {
                self.timers.remove(&(at, id));
            }
            self.timers.extend(after.timers.into_iter().flatten().map(|at| (at, id)));
        }
    }
}

impl Tree {
    /// Notes since when a slot is to spare: early wakes need it to have been so for a while.
    pub(super) fn note_spare(&mut self, at: Mono) {
        let spare = self.has_free_slot() && self.head().is_none();
        self.spare_since = if spare { self.spare_since.or(Some(at)) } else { None };
    }
}
