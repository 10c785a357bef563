//! The scheduler of contract section 3: one pure function from the state to the next decision. Nobody else grants a slot.
//!
//! [`decide`] is asked again after each decision was recorded, until it has none. One decision costs no more than a few
//! look-ups: the indexes of the tree are kept by `state/seat.rs`.

use roost_proto::id::{TreeId, WorkerId};

use crate::event::Grant;
use crate::state::State;
use crate::state::tree::{Lane, Tree};
use crate::state::worker::{Phase, Worker};
use crate::time::Mono;

/// What should happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// This worker gets a slot.
    Grant(WorkerId, Grant),
    /// This blocked worker lends its slot.
    Lend(WorkerId),
    /// This settled worker is asked to park.
    AskPark(WorkerId),
    /// Nothing can move: this worker's newest wait fails.
    FailWait(WorkerId),
}

/// What the broker must know beside the state.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The cap over all trees.
    pub cap_of_all: Option<u32>,
    /// No new process is started: the daemon is about to stop.
    pub draining: bool,
    /// Most ended workers of closed trees that are kept.
    pub closed_workers_max: usize,
    /// How long a closed tree stays readable, in milliseconds; 0 is no end by age.
    pub retention_ms: u64,
}

/// The next decision for this tree.
pub fn decide(state: &State, rules: Rules, tree: &Tree, now: Mono) -> Option<Decision> {
    let room = rules.cap_of_all.is_none_or(|cap| state.live < cap);
    let held = tree.paused || rules.draining;
    if tree.has_free_slot()
        && room
        && let Some((worker, grant)) = next_grant(state, tree, held, now)
    {
        return Some(Decision::Grant(worker, grant));
    }
    let relief = relieve(state, tree, room, held, now);
    if held { relief } else { relief.or_else(|| deadlocked(state, tree, room)) }
}

/// Rules (b) and (d): the head of the queue; before it a final wake that was passed over too often; after it final wakes, then
/// early ones.
fn next_grant(state: &State, tree: &Tree, held: bool, now: Mono) -> Option<(WorkerId, Grant)> {
    // A process that is alive and waits to go on is no admission: a pause does not hold it.
    let wakes = tree.final_wakes.iter().filter_map(|(since, id)| Some((*since, state.workers.get(id)?)));
    let wakes = wakes.filter(|(_, worker)| (!held || worker.is_lent()) && fits(tree, worker));
    let grant = |worker: &Worker| (worker.id, if worker.is_lent() { Grant::Return } else { Grant::FinalWake });
    let first = longest_ready(tree, wakes);
    let head = if held { None } else { tree.head() };
    match (first, head) {
        (Some(worker), Some(head)) if passed_over(tree, worker) < tree.settings.timing.wake_bypass => Some((head, Grant::Start)),
        (Some(worker), _) => Some(grant(worker)),
        (None, Some(head)) => Some((head, Grant::Start)),
        (None, None) if held => None,
        (None, None) => {
            let (at, worker) = early_wake(state, tree)?;
            (at <= now).then_some((worker, Grant::EarlyWake))
        }
    }
}

/// The first of these. Of several that became ready within one millisecond it is the one that most admissions passed over: otherwise
/// the first by id would hide one whose turn has come.
fn longest_ready<'s>(tree: &Tree, mut wakes: impl Iterator<Item = (Mono, &'s Worker)>) -> Option<&'s Worker> {
    let (since, first) = wakes.next()?;
    let same = wakes.take_while(|(at, _)| *at == since).map(|(_, worker)| worker);
    Some(same.fold(first, |longest, worker| if passed_over(tree, worker) > passed_over(tree, longest) { worker } else { longest }))
}

/// How many admissions went before this ready worker.
fn passed_over(tree: &Tree, worker: &Worker) -> u64 {
    match &worker.phase {
        Phase::Parked { ready: Some((_, admissions)), .. } | Phase::Blocked { over: Some((_, admissions)), .. } => {
            tree.admissions - admissions
        }
        Phase::Queued
        | Phase::Starting(_)
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
        | Phase::Ended { .. } => 0,
    }
}

/// Rules (a) and (c): while more workers want a slot than slots are on their way back, one more waiting worker gives its own away.
///
/// A ready final wake wants a slot as much as a queued head does: with every slot held by workers that wait for what is
/// parked, nothing else would ever move (`docs/adr/0003-final-wakes-press.md`).
fn relieve(state: &State, tree: &Tree, room: bool, held: bool, now: Mono) -> Option<Decision> {
    if tree.victims.is_empty() {
        return None;
    }
    let over = tree.counts.live.saturating_sub(tree.settings.cap);
    // While admissions are held only processes that are alive and wait to go on want a slot.
    let wanting: usize = if held {
        tree.final_wakes.iter().filter(|(_, id)| state.workers.get(id).is_some_and(Worker::is_lent)).count()
    } else {
        tree.lanes.iter().filter(|lane| !lane.is_full()).map(Lane::wanting).sum()
    };
    let full = !tree.has_free_slot() || !room;
    let wanted = if over > 0 {
        over as usize
    } else if full {
        wanting
    } else {
        0
    };
    if wanted > tree.counts.parking as usize {
        return victim(state, tree, tree.head(), now, |_| true);
    }
    if held {
        return None;
    }
    // A full group is relieved by its own members only.
    let tight = |(_, lane): &(usize, &Lane)| lane.is_full() && lane.wanting() > lane.parking as usize;
    tree.lanes.iter().enumerate().filter(tight).find_map(|(index, lane)| {
        let head = lane.queue.first().map(|(_, head)| *head);
        victim(state, tree, head, now, |worker| Tree::lane_of(worker.group) == index)
    })
}

/// An ancestor of the head, else whoever waits longest.
fn victim(state: &State, tree: &Tree, head: Option<WorkerId>, now: Mono, fits: impl Fn(&Worker) -> bool) -> Option<Decision> {
    let lends = tree.settings.lend_slots;
    let can = |worker: &&Worker| match &worker.phase {
        Phase::Waiting { not_before, .. } => *not_before <= now && fits(worker),
        Phase::Blocked { .. } => (lends || asked(worker, now)) && fits(worker),
        Phase::Queued
        | Phase::Starting(_)
        | Phase::Running
        | Phase::ParkAsked { .. }
        | Phase::Leaving { .. }
        | Phase::Closing { .. }
        | Phase::Parked { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. }
        | Phase::Finishing { .. }
        | Phase::Ended { .. } => false,
    };
    let seated = |id: &WorkerId| {
        let worker = state.workers.get(id)?;
        matches!(worker.seat, crate::state::worker::Seat::Victim(_)).then_some(worker)
    };
    let ancestor = head.and_then(|head| state.line(head).skip(1).find_map(|id| seated(&id).filter(can)));
    let worker = ancestor.or_else(|| tree.victims.iter().filter_map(|(_, id)| state.workers.get(id)).find(can))?;
    let blocked = matches!(worker.phase, Phase::Blocked { .. });
    Some(if blocked && !asked(worker, now) { Decision::Lend(worker.id) } else { Decision::AskPark(worker.id) })
}

/// Whether a worker that waits inside of a call may be asked to park now.
fn asked(worker: &Worker, now: Mono) -> bool {
    let free = |not_before: Option<Mono>| not_before.is_none_or(|at| at <= now);
    worker.parks_in_calls() && matches!(worker.phase, Phase::Blocked { not_before, .. } if free(not_before))
}

/// Rule (e), for trees whose blocked waits keep their slot: somebody wants a slot, and all that hold one wait.
fn deadlocked(state: &State, tree: &Tree, room: bool) -> Option<Decision> {
    // Settled workers give their slots away where that helps, and `relieve` had nothing for them to do.
    if tree.stuck.is_empty() || tree.counts.live as usize != tree.stuck.len() + tree.victims.len() {
        return None;
    }
    let fail = |worker: &(Mono, WorkerId)| Decision::FailWait(worker.1);
    let full = !tree.has_free_slot() || !room;
    let wanted = tree.lanes.iter().any(|lane| lane.wanting() > 0);
    if full && wanted && tree.victims.is_empty() {
        return tree.stuck.last().map(fail);
    }
    // The same inside of a full group.
    let of_lane = |id, index| state.workers.get(id).is_some_and(|worker: &Worker| Tree::lane_of(worker.group) == index);
    tree.lanes.iter().enumerate().filter(|(_, lane)| lane.is_full() && lane.wanting() > 0).find_map(|(index, lane)| {
        let mut stuck = tree.stuck.iter().filter(|(_, id)| of_lane(id, index));
        let held_by_waits = stuck.clone().count() == lane.live as usize;
        if held_by_waits { stuck.next_back().map(fail) } else { None }
    })
}

/// When an early wake becomes possible by the mere passing of time.
pub fn next_early_wake(state: &State, tree: &Tree) -> Option<Mono> {
    if tree.paused { None } else { early_wake(state, tree).map(|(at, _)| at) }
}

/// The next early wake, and when it has waited long enough: the first whose group has room.
fn early_wake(state: &State, tree: &Tree) -> Option<(Mono, WorkerId)> {
    let spare_since = tree.spare_since?;
    let (ready, worker) = tree.early_wakes.iter().find(|(_, id)| state.workers.get(id).is_some_and(|worker| fits(tree, worker)))?;
    Some((spare_since.max(*ready) + tree.settings.timing.early_wake_dwell_ms, *worker))
}

/// Whether its group has room for it.
fn fits(tree: &Tree, worker: &Worker) -> bool {
    !tree.lanes[Tree::lane_of(worker.group)].is_full()
}

/// The trees in the order in which they are asked under a cap over all trees: who waited longest for a grant first.
pub fn order(state: &State) -> Vec<TreeId> {
    let mut trees: Vec<_> = state
        .open_trees()
        .filter(|tree| tree.is_active())
        .map(|tree| (state.last_grant.get(&tree.id).copied().unwrap_or(0), tree.id))
        .collect();
    trees.sort_unstable();
    trees.into_iter().map(|(_, tree)| tree).collect()
}
