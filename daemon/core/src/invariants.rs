//! What must be true between two steps: I1-I17 of the behaviour notes as far as one state shows them.
//!
//! [`check`] looks at everything and is for tests; [`check_tree`] looks at the numbers of one tree and runs in production.

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::{TreeId, WorkerId};

use crate::event::Owner;
use crate::lifecycle::timers;
use crate::state::State;
use crate::state::tree::{Counts, Tree};
use crate::state::worker::{Phase, Seat, Worker};
use crate::time::Mono;

/// The first invariant that does not hold, in words.
pub type Broken = String;

/// Cheap checks of one tree, after every step that touched it.
pub fn check_tree(tree: &Tree) -> Result<(), Broken> {
    let lanes: u32 = tree.lanes.iter().map(|lane| lane.live).sum();
    if lanes != tree.counts.live {
        return Err(format!("{}: lanes hold {lanes} slots and the tree {}", tree.id, tree.counts.live));
    }
    let final_wakes: usize = tree.lanes.iter().map(|lane| lane.final_wakes).sum();
    if final_wakes != tree.final_wakes.len() {
        return Err(format!("{}: lanes have {final_wakes} final wakes and the tree {}", tree.id, tree.final_wakes.len()));
    }
    if tree.counts.parking > tree.counts.live {
        return Err(format!("{}: more workers are parking than are live", tree.id));
    }
    if tree.ledger.remaining() > tree.ledger.limit() {
        return Err(format!("{}: budget was minted", tree.id));
    }
    Ok(())
}

/// Everything.
pub fn check(state: &State) -> Result<(), Broken> {
    let mut counts: BTreeMap<TreeId, Counts> = BTreeMap::new();
    let mut active: BTreeMap<(TreeId, Owner), u32> = BTreeMap::new();
    let mut reserved: BTreeMap<(TreeId, Owner), u64> = BTreeMap::new();
    let mut timers = BTreeSet::new();
    for worker in state.workers.values() {
        check_worker(state, worker)?;
        let of = counts.entry(worker.tree).or_default();
        of.live += u32::from(worker.slot);
        of.parked += u32::from(matches!(worker.phase, Phase::Parked { .. }));
        of.lent += u32::from(worker.is_lent());
        *active.entry((worker.tree, worker.owner)).or_default() += u32::from(!worker.has_ended());
        // Adoption moves a worker, never its budget: that is its launcher's.
        *reserved.entry((worker.tree, worker.launcher)).or_default() += 1 + worker.ledger.high();
        timers.extend(worker.timers().into_iter().flatten().map(|at| (at, worker.id)));
    }
    if timers != state.timers {
        return Err("the timers are not those of the workers".into());
    }
    for tree in state.trees.values() {
        check_tree(tree)?;
        let of = counts.get(&tree.id).copied().unwrap_or_default();
        if (of.live, of.parked, of.lent) != (tree.counts.live, tree.counts.parked, tree.counts.lent) {
            return Err(format!("{}: the counts {:?} are not those of its workers {of:?}", tree.id, tree.counts));
        }
        if active.get(&(tree.id, Owner::Root)).copied().unwrap_or(0) != tree.active_children {
            return Err(format!("{}: the root's active children are miscounted", tree.id));
        }
        if tree.children.len() != tree.active_children as usize {
            return Err(format!("{}: the root has other children than are counted", tree.id));
        }
        let taken = reserved.get(&(tree.id, Owner::Root)).copied().unwrap_or(0);
        if tree.ledger.limit() != tree.ledger.remaining() + taken {
            return Err(format!("{}: limit is not remaining + reserved (I11)", tree.id));
        }
    }
    for worker in state.workers.values() {
        let key = (worker.tree, Owner::Worker(worker.id));
        if active.get(&key).copied().unwrap_or(0) != worker.active_children {
            return Err(format!("{}: its active children are miscounted", worker.id));
        }
        if worker.children.len() != worker.active_children as usize {
            return Err(format!("{}: it has other children than are counted", worker.id));
        }
        let taken = reserved.get(&key).copied().unwrap_or(0);
        if worker.ledger.limit() != worker.ledger.remaining() + taken {
            return Err(format!("{}: limit is not remaining + reserved (I11)", worker.id));
        }
    }
    Ok(())
}

/// After a step at this moment nothing that was due is left: no timer came in when it was past already.
pub fn check_due(state: &State, now: Mono) -> Result<(), Broken> {
    let late = state.workers.values().find_map(|worker| Some((worker, timers::due(worker, now)?)));
    late.map_or(Ok(()), |(worker, due)| Err(format!("{} ({:?}): {due:?} is due and was not done", worker.id, worker.phase)))
}

fn check_worker(state: &State, worker: &Worker) -> Result<(), Broken> {
    let fail = |what: &str| Err(format!("{} ({:?}): {what}", worker.id, worker.phase));
    if matches!(worker.phase, Phase::Gone { .. }) {
        return fail("it was not judged in the step in which its process went");
    }
    if worker.slot && !worker.has_process() && !matches!(worker.phase, Phase::Starting(_)) {
        return fail("it holds a slot without a process (I2)");
    }
    let may_lack_slot = matches!(worker.phase, Phase::Blocked { .. } | Phase::Emptying { .. });
    if worker.has_process() && !worker.slot && !may_lack_slot {
        return fail("it has a process without a slot (I2)");
    }
    if worker.has_ended() && worker.active_children > 0 {
        return fail("it has ended before its descendants (I7)");
    }
    if matches!(worker.phase, Phase::Parked { .. }) && (worker.context.is_none() || worker.process.is_some()) {
        return fail("it is parked without a context, or with a process (I8)");
    }
    let wakes = state.trees.get(&worker.tree).is_none_or(|tree| tree.settings.delivery.wakes());
    let owed = worker.held.as_ref().map_or_else(|| worker.outbox.wakes(wakes), |held| held.over);
    if let Phase::Parked { ready: None, .. } = worker.phase
        && (worker.active_children == 0 || owed)
    {
        return fail("it is parked with something to wake for and nobody knows (I9)");
    }
    if let Phase::Parked { ready: Some(_), .. } = worker.phase
        && worker.active_children > 0
        && !owed
    {
        return fail("it is to be woken for nothing: somebody else was told what it is owed (I10)");
    }
    if matches!(worker.phase, Phase::Finishing { .. }) && worker.active_children == 0 {
        return fail("it waits for descendants that it does not have");
    }
    let Some(tree) = state.trees.get(&worker.tree) else { return fail("its tree is not there") };
    check_seat(tree, worker)
}

fn check_seat(tree: &Tree, worker: &Worker) -> Result<(), Broken> {
    let id: WorkerId = worker.id;
    let seated = match worker.seat {
        Seat::None => true,
        Seat::Queue => tree.lanes[Tree::lane_of(worker.group)].queue.contains(&(worker.execution, id)),
        Seat::Victim(at) => tree.victims.contains(&(at, id)),
        Seat::Stuck(at) => tree.stuck.contains(&(at, id)),
        Seat::FinalWake(at) => tree.final_wakes.contains(&(at, id)),
        Seat::EarlyWake(at) => tree.early_wakes.contains(&(at, id)),
    };
    if !seated {
        return Err(format!("{id}: it is not where its seat says: {:?}", worker.seat));
    }
    if matches!(worker.phase, Phase::Queued) != (worker.seat == Seat::Queue) {
        return Err(format!("{id}: queued and not in the queue, or the other way round"));
    }
    Ok(())
}
