//! What must hold after every step and every action, seen from outside of the core.

use std::collections::{BTreeMap, BTreeSet};

use roost_core::broker::Outcome as Stepped;
use roost_core::command::{CallId, Caller, Command, Speak};
use roost_core::effect::{Delivery, Effect, End, Owed, OwedKind, Reply};
use roost_core::event::{Delivery as Mode, Event, Grant, Owner, Spoken, StopCause};
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::state::outbox::Item;
use roost_core::state::tree::Tree;
use roost_core::state::worker::{Phase, Worker};
use roost_core::time::Mono;
use roost_core::{invariants, recover};
use roost_proto::id::{TreeId, WorkerId};
use roost_proto::link::Signal;
use roost_proto::outcome::{Failure, Outcome};

use super::model::Model;
use super::script::{Ask, Call, Who};
use super::world::World;
use super::{Checked, kernel::Proc};

/// After every step of the broker, before the commit.
pub(crate) fn step(world: &World, outcome: &Stepped, before: &BTreeMap<TreeId, u32>, same_moment: bool) -> Checked {
    let state = world.state();
    invariants::check(state)?;
    invariants::check_due(state, Mono(world.now))?;
    for tree in state.open_trees() {
        slots(state, tree, outcome, before)?;
        work_conservation(state, tree, world.broker.cap_of_all(), world.broker.is_draining())?;
    }
    let starts = |event: &Event| matches!(event, Event::SlotTaken { grant, .. } if *grant != Grant::Return);
    if world.broker.is_draining() && outcome.records.iter().any(|record| starts(&record.event)) {
        return Err("a daemon that is about to leave starts something".into());
    }
    if let Some(at) = world.broker.next_deadline()
        && at.0 <= world.now
    {
        return Err(format!("the next deadline {} is not in the future: the driver would spin", at.0));
    }
    for effect in &outcome.effects {
        let Effect::Refuse { call, rejection } = effect else { continue };
        // In a moment in which everything due was done before, a refusal is all that a refused command comes to.
        let of_others = matches!(rejection, Rejection::Deadlock | Rejection::Draining | Rejection::StillRunning { .. });
        let own = !of_others && !matches!(rejection, Rejection::StaleEpoch { .. } | Rejection::Parked | Rejection::UnknownIdentity);
        if own && same_moment && !outcome.records.is_empty() {
            return Err(format!("a command was refused ({rejection}) and recorded {:?}", outcome.records));
        }
        if *rejection == Rejection::Deadlock {
            deadlock(world, *call)?;
        }
    }
    Ok(())
}

/// What a step's answers say of ends is news to their lead or is not, as the second book-keeping has it. Brings that up to this step.
pub(crate) fn told_before(world: &mut World, outcome: &Stepped) -> Checked {
    let ends = |effect: &Effect| match effect {
        Effect::Reply { reply: Reply::Ends { ends, .. } | Reply::Receipt { ends, .. }, .. } => ends.clone(),
        Effect::Reply { reply: Reply::Result(end), .. } => vec![End::clone(end)],
        _ => Vec::new(),
    };
    let ends: Vec<End> = outcome.effects.iter().flat_map(ends).collect();
    let before: Vec<bool> = ends.iter().map(|end| world.live.is_told(end.execution)).collect();
    outcome.records.iter().try_for_each(|record| world.live.observe(record))?;
    for (end, before) in ends.iter().zip(before) {
        let after = world.live.is_told(end.execution);
        // One that is told in this very step may be in two of its answers.
        if (before && !end.told_before) || (!after && end.told_before) {
            return Err(format!("{}: told before {}, and it was {before}, is {after} (I10)", end.name, end.told_before));
        }
    }
    Ok(())
}

/// Whoever looks at what it is owed sees what the second book-keeping has.
pub(crate) fn looked(world: &World, outcome: &Stepped) -> Checked {
    for effect in &outcome.effects {
        let Effect::Reply { call, reply: Reply::Inbox { items, more } } = effect else { continue };
        let Some(who) = world.calling.get(&call.0) else { continue };
        let Some(tree) = world.script(*who).and_then(|script| script.tree) else { continue };
        let (seen, owed): (Vec<u64>, _) = (items.iter().map(|owed| owed.seq).collect(), world.live.owed(tree, world.owner(*who)));
        if !owed.starts_with(&seen) || seen.len() + more != owed.len() {
            return Err(format!("{:?} is owed {owed:?}, and sees {seen:?} and {more} more (I10)", world.owner(*who)));
        }
    }
    Ok(())
}

/// The outcome of a last turn is the one of contract section 9.
pub(crate) fn turns(command: &Command, outcome: &Stepped) -> Checked {
    let Command::Speak { speak, .. } = command else { return Ok(()) };
    let Speak::Settle { settle } = &**speak else { return Ok(()) };
    for record in &outcome.records {
        let Event::Spoken(spoken) = &record.event else { continue };
        let Spoken::Answered { worker, outcome, .. } = &**spoken else { continue };
        let right = match outcome {
            Outcome::Aborted { .. } => settle.aborted,
            _ if settle.aborted => false,
            Outcome::Failed(failure) if settle.error.is_some() => Some(failure) == settle.error.as_ref(),
            _ if settle.error.is_some() => false,
            Outcome::Failed(Failure::Truncated) => settle.truncated && !settle.answered,
            Outcome::Failed(Failure::NoAnswer) => !settle.truncated && !settle.answered,
            Outcome::WrappedUp => settle.answered && settle.wrapped_up,
            Outcome::Completed => settle.answered && !settle.wrapped_up,
            _ => false,
        };
        if !right {
            return Err(format!("{worker} has ended a turn as {settle:?}, and comes to {outcome:?}"));
        }
    }
    Ok(())
}

/// I1: the slots of a tree grow to its cap and no further, except by a process that went on by itself.
fn slots(state: &State, tree: &Tree, outcome: &Stepped, before: &BTreeMap<TreeId, u32>) -> Checked {
    let retaken = |event: &Event| {
        let Event::SlotRetaken { worker } = event else { return false };
        state.workers.get(worker).is_some_and(|worker| worker.tree == tree.id)
    };
    let retaken = u32::try_from(outcome.records.iter().filter(|record| retaken(&record.event)).count()).unwrap_or(0);
    let grown = before.get(&tree.id).copied().unwrap_or(0) + retaken;
    if tree.counts.live > tree.settings.cap.max(grown) {
        return Err(format!("{}: {} slots under a cap of {}, {grown} before (I1)", tree.id, tree.counts.live, tree.settings.cap));
    }
    Ok(())
}

/// I3: no free slot beside somebody who may have it. A daemon that is about to leave starts nobody, and lets whoever lives go on.
fn work_conservation(state: &State, tree: &Tree, cap_of_all: Option<u32>, draining: bool) -> Checked {
    let all_live = state.workers.values().filter(|worker| worker.slot).count();
    let of_tree = || tree.workers.iter().filter_map(|id| state.workers.get(id));
    let live = of_tree().filter(|worker| worker.slot).count();
    if live >= tree.settings.cap as usize || cap_of_all.is_some_and(|cap| all_live >= cap as usize) {
        return Ok(());
    }
    let group_is_full = |worker: &Worker| {
        let Some(group) = worker.group else { return false };
        let used = of_tree().filter(|other| other.slot && other.group == Some(group)).count();
        tree.settings.group_caps.get(usize::from(group)).is_some_and(|(_, cap)| used >= *cap as usize)
    };
    let wants = |worker: &Worker| match &worker.phase {
        Phase::Queued => !tree.paused && !draining,
        Phase::Parked { .. } => !tree.paused && !draining && worker.active_children == 0,
        Phase::Blocked { over: Some(_), .. } => true,
        Phase::Blocked { over: None, .. }
        | Phase::Starting(_)
        | Phase::Running
        | Phase::Waiting { .. }
        | Phase::ParkAsked { .. }
        | Phase::Leaving { .. }
        | Phase::Closing { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. }
        | Phase::Finishing { .. }
        | Phase::Ended { .. } => false,
    };
    match of_tree().find(|worker| wants(worker) && !group_is_full(worker)) {
        Some(worker) => Err(format!("{} waits beside a free slot (I3): {:?}", worker.name, worker.phase)),
        None => Ok(()),
    }
}

/// A wait fails with `deadlock` only in trees that keep slots, and only when nothing else could move.
fn deadlock(world: &World, call: CallId) -> Checked {
    let state = world.state();
    let asker = world.calling.get(&call.0).and_then(|who| if let Who::Proc(of) = who { world.supervisor.procs.get(of) } else { None });
    let Some(failed) = asker.and_then(|proc| state.workers.get(&proc.worker)) else { return Ok(()) };
    let Some(tree) = state.trees.get(&failed.tree) else { return Ok(()) };
    if tree.settings.lend_slots {
        return Err(format!("{} is told of a deadlock in a tree that lends slots", failed.name));
    }
    let waits = |phase: &Phase| matches!(phase, Phase::Blocked { over: None, .. } | Phase::Waiting { .. });
    let moves = |worker: &&Worker| worker.tree == tree.id && worker.id != failed.id && worker.has_process() && !waits(&worker.phase);
    match state.workers.values().find(moves) {
        Some(other) => Err(format!("{} is told of a deadlock while {} moves: {:?}", failed.name, other.name, other.phase)),
        None => Ok(()),
    }
}

/// After every action: kernel and broker.
pub(crate) fn world(world: &World) -> Checked {
    let state = world.state();
    for (incarnation, proc) in world.procs().filter(|(_, proc)| proc.counts()) {
        let Some(worker) = state.workers.get(&proc.worker) else { return Err(format!("{incarnation} runs for nobody (I2)")) };
        if worker.incarnation() != incarnation || !worker.has_process() {
            return Err(format!("{incarnation} of {} runs and the broker does not know: {:?} (I2, I8)", worker.name, worker.phase));
        }
        // A call that a dead client has left, and what a lent worker leaves behind, are lent as before.
        let lent = matches!(worker.phase, Phase::Blocked { .. } | Phase::Emptying { .. });
        if !worker.slot && !lent {
            return Err(format!("{incarnation} runs without a slot (I2)"));
        }
    }
    if !world.link_is_silent() {
        return Ok(());
    }
    roots_are_handed(world)?;
    open_effects(world)
}

/// Whoever holds the lease of a root was handed all that the root is owed (I10), in whichever window it is by now.
fn roots_are_handed(world: &World) -> Checked {
    let holders = world.roots.iter().filter(|root| root.life == world.life);
    for (root, tree) in holders.filter_map(|root| Some((root, world.state().trees.get(&root.tree?)?))) {
        let (owner, pushes) = (Owner::Root, tree.settings.delivery.pushes());
        let Some(lead) = world.state().lead(tree.id, owner).filter(|_| root.lease == Some(tree.lease) && tree.closed_at.is_none()) else {
            continue;
        };
        for (seq, item) in lead.outbox.items_to(u64::MAX) {
            let waits = matches!(item, Item::Completion { held, .. } if held.is_some() || !pushes);
            if !waits && !root.handed.contains(&seq) {
                return Err(format!("{} holds the lease and was not handed {item:?} (I10)", root.name));
            }
        }
    }
    Ok(())
}

/// With nothing under way, what the state says is open has reached the kernel, and nothing else has.
fn open_effects(world: &World) -> Checked {
    for effect in recover::open_effects(world.state()) {
        match &effect {
            Effect::Spawn(spawn) => return Err(format!("the start of {} is lost", spawn.incarnation)),
            Effect::Signal { incarnation, signal } => {
                let Some(proc) = world.supervisor.procs.get(incarnation) else { continue };
                let done = match signal {
                    Signal::Term => proc.termed,
                    Signal::Kill => !proc.main,
                    Signal::CloseStdin => proc.closed || !proc.main,
                };
                if !done {
                    return Err(format!("{signal:?} to {incarnation} is lost"));
                }
            }
            Effect::Reply { .. }
            | Effect::Refuse { .. }
            | Effect::Deliver(_)
            | Effect::Withdraw { .. }
            | Effect::LeaseLost { .. }
            | Effect::AskPark { .. }
            | Effect::ForgetText(_)
            | Effect::Forget { .. }
            | Effect::Adopt { .. }
            | Effect::RemoveFiles { .. }
            | Effect::Leave => {}
        }
    }
    let unasked = |(_, proc): &(_, &Proc)| {
        proc.termed && proc.main && world.state().workers.get(&proc.worker).is_none_or(|worker| worker.stop.is_none())
    };
    match world.procs().find(unasked) {
        Some((incarnation, _)) => Err(format!("{incarnation} got a signal that no state asks for")),
        None => Ok(()),
    }
}

/// An end that is announced to its lead: never a silent one (S3).
pub(crate) fn announced(to: &str, owed: &Owed) -> Checked {
    match &owed.what {
        OwedKind::Completion(end) if Model::is_silent(&end.outcome) => Err(format!("{to} is told that {} was stopped (S3)", end.name)),
        _ => Ok(()),
    }
}

/// An item on its way to whom it is owed.
pub(crate) fn owed(world: &World, delivery: &Delivery, owed: &Owed) -> Checked {
    announced(&format!("{:?}", delivery.to.owner), owed)?;
    let state = world.state();
    let Some(lead) = state.lead(delivery.to.tree, delivery.to.owner) else { return Ok(()) };
    match lead.outbox.get(owed.seq) {
        Some(Item::Completion { held: Some(_), .. }) => Err(format!("{:?} is handed an end that is held back: {owed:?}", delivery.to)),
        Some(_) | None => Ok(()),
    }
}

/// A refusal of what must not be refused.
pub(crate) fn refusal(world: &World, who: Who, call: &Call, rejection: &Rejection) -> Checked {
    let Who::Proc(incarnation) = who else { return Ok(()) };
    let Some(worker) = world.supervisor.procs.get(&incarnation).and_then(|proc| world.state().workers.get(&proc.worker)) else {
        return Ok(());
    };
    if call.ask == Ask::Hello && worker.incarnation() == incarnation && worker.can_speak() {
        return Err(format!("{} is who it says and was refused: {rejection}", worker.name));
    }
    Ok(())
}

/// An answer on its way to its client: after a stop's no process of the subtree lives (I13).
pub(crate) fn reply(world: &World, call: CallId, reply: &Reply) -> Checked {
    if let Reply::Receipt { tasks, .. } = reply {
        world.model.places(tasks)?;
    }
    let Some(who) = world.calling.get(&call.0) else { return Ok(()) };
    let Some(tree) = world.script(*who).and_then(|script| script.tree) else { return Ok(()) };
    let state = world.journal.replica();
    let below = |top: Option<WorkerId>, worker: WorkerId| top.is_none_or(|top| state.line(worker).any(|up| up == top));
    let tops: Vec<Option<WorkerId>> = if let Reply::Stopped(names) = reply {
        let named = names.iter().filter_map(|(name, _)| state.child_of(tree, world.owner(*who), name));
        named.map(|worker| Some(worker.id)).collect()
    } else if matches!(reply, Reply::Interrupted { .. } | Reply::Closed { .. }) {
        vec![None]
    } else {
        Vec::new()
    };
    // New work may have been launched since an interrupt: only what it stopped has to be gone.
    let gone = |worker: WorkerId| state.workers.get(&worker).is_some_and(|worker| worker.stop.is_some() || worker.has_ended());
    for (incarnation, proc) in world.procs().filter(|(_, proc)| proc.counts()) {
        let of_tree = state.workers.get(&proc.worker).is_some_and(|worker| worker.tree == tree);
        if of_tree && gone(proc.worker) && tops.iter().any(|top| below(*top, proc.worker)) {
            return Err(format!("{incarnation} lives after the answer that it was stopped (I13)"));
        }
    }
    Ok(())
}

/// A lead that has gone through its plan knows the end of every child (I10).
pub(crate) fn knows_all(world: &World, who: Who) -> Checked {
    let Some(script) = world.script(who) else { return Ok(()) };
    let gathers = script.ops.iter().any(|op| matches!(op, super::plan::Op::Gather(_)));
    if script.at.maimed || !gathers || !matches!(script.caller, Some(Caller::Worker { .. } | Caller::Root(_))) {
        return Ok(());
    }
    for (execution, outcome) in world.model.tellable(world.owner(who), script.tree) {
        if outcome.is_none() || !script.at.known.contains(&execution) {
            return Err(format!("{} goes without the end of {execution}: {outcome:?} (I10)", script.name));
        }
    }
    Ok(())
}

/// The worker that an event shows to be alive, where it speaks.
pub(crate) fn shows_life(event: &Event) -> Option<WorkerId> {
    match event {
        Event::Resumed { worker } | Event::WaitOver { worker } | Event::SlotRetaken { worker } | Event::SlotTaken { worker, .. } => {
            Some(*worker)
        }
        Event::Spoken(spoken) => match &**spoken {
            Spoken::LeaseTaken { owner: Owner::Worker(worker), .. } | Spoken::Busy { worker } => Some(*worker),
            _ => None,
        },
        _ => None,
    }
}

/// Of a step about workers that speak: who may acknowledge, what is handed over, and whom the watchdog bites.
pub(crate) fn spoken(world: &mut World, command: &Command, outcome: &Stepped) -> Checked {
    let acked = |event: &Event| matches!(event, Event::Spoken(spoken) if matches!(**spoken, Spoken::Acked { .. }));
    if let Command::Speak { caller, lease, speak, .. } = command {
        if let (Speak::Report { .. }, Caller::Worker { worker, .. }) = (&**speak, caller) {
            world.pulses.insert(*worker, world.now);
        }
        let held = match caller {
            Caller::Operator => None,
            Caller::Root(tree) => world.state().trees.get(tree).map(|tree| tree.lease),
            Caller::Worker { worker, .. } => {
                world.state().workers.get(worker).map(|worker| worker.speech.as_ref().map_or(0, |speech| speech.lease))
            }
        };
        if outcome.records.iter().any(|record| acked(&record.event)) && lease.is_some() && *lease != held {
            return Err(format!("{caller:?} acknowledges with the lease {lease:?}, and {held:?} is held (I12)"));
        }
    }
    for record in &outcome.records {
        if let Event::StopAsked { worker, cause: StopCause::Idle, .. } = &record.event {
            idle(world, *worker)?;
        }
    }
    let mut given: BTreeMap<(TreeId, Owner), BTreeSet<u64>> = BTreeMap::new();
    for effect in outcome.effects.iter().rev() {
        if let Effect::Withdraw { to, items } = effect {
            given.entry((to.tree, to.owner)).or_default().extend(items);
        } else if let Effect::Deliver(delivery) = effect {
            handed(world, delivery, given.get(&(delivery.to.tree, delivery.to.owner)))?;
            in_turn(world, delivery, command, outcome)?;
        }
    }
    held_back(world)
}

/// The watchdog bites whoever shows no sign of life for long enough, outside of a tool.
fn idle(world: &mut World, worker: WorkerId) -> Checked {
    world.note("silent workers end");
    let Some(record) = world.state().workers.get(&worker) else { return Ok(()) };
    let idle_ms = world.state().trees.get(&record.tree).map_or(0, |tree| tree.settings.timing.idle_ms);
    let last = world.pulses.get(&worker).copied().unwrap_or(0);
    let in_tool =
        world.procs().any(|(_, proc)| proc.worker == worker && proc.main && proc.script.life == world.life && proc.script.in_tool);
    if record.speech.as_ref().is_none_or(|speech| !speech.greeted) {
        return Err(format!("{} is ended as silent before its hello (T7)", record.name));
    }
    if idle_ms == 0 || in_tool || last + idle_ms > world.now {
        return Err(format!("{} is ended as silent: in a tool {in_tool}, last heard of at {last} (T7)", record.name));
    }
    Ok(())
}

/// Whoever cannot be steered is handed something at the start of a turn or of a connection only.
fn in_turn(world: &World, delivery: &Delivery, command: &Command, outcome: &Stepped) -> Checked {
    let Owner::Worker(to) = delivery.to.owner else { return Ok(()) };
    let Some(worker) = world.state().workers.get(&to) else { return Ok(()) };
    let settles = matches!(command, Command::Speak { caller: Caller::Worker { worker, .. }, speak, .. }
        if *worker == to && matches!(**speak, Speak::Settle { .. }));
    let begins = |event: &Event| match event {
        Event::Resumed { worker } => *worker == to,
        Event::Spoken(spoken) => matches!(**spoken, Spoken::LeaseTaken { owner, .. } if owner == delivery.to.owner),
        _ => false,
    };
    let steers = worker.speech.as_ref().is_none_or(|speech| speech.steers);
    if steers || settles || worker.owed_turn || outcome.records.iter().any(|record| begins(&record.event)) {
        return Ok(());
    }
    Err(format!("{} cannot be steered and is handed {:?} in the middle of a turn", worker.name, delivery.items))
}

/// What is handed over is owed, or is taken back in the same breath; and nothing older is left out.
fn handed(world: &World, delivery: &Delivery, withdrawn: Option<&BTreeSet<u64>>) -> Checked {
    let to = delivery.to;
    let Some(lead) = world.state().lead(to.tree, to.owner) else { return Err(format!("{to:?} is handed something and is not there")) };
    let fine = |seq: u64| lead.outbox.get(seq).is_some() || withdrawn.is_some_and(|items| items.contains(&seq));
    if let Some(owed) = delivery.items.iter().find(|owed| !fine(owed.seq)) {
        return Err(format!("{to:?} is handed what it is not owed (I17): {owed:?}"));
    }
    if delivery.items.windows(2).any(|two| two[0].seq >= two[1].seq) {
        return Err(format!("{to:?} is handed items out of order (K47)"));
    }
    let mode = world.state().trees.get(&to.tree).map(|tree| tree.settings.delivery);
    let owed_turn = |worker: WorkerId| world.state().workers.get(&worker).is_some_and(|worker| worker.owed_turn);
    let may_know = matches!(to.owner, Owner::Worker(worker) if owed_turn(worker));
    let ends = |owed: &Owed| matches!(owed.what, OwedKind::Completion(_));
    if mode == Some(Mode::Passive) && !may_know && delivery.items.iter().any(ends) {
        return Err(format!("{to:?} is handed ends in a tree where nobody is (I16)"));
    }
    Ok(())
}

/// An end is held back only while others of its launch are to come, and not for ever.
fn held_back(world: &World) -> Checked {
    let state = world.state();
    let leads = state.trees.keys().map(|tree| (*tree, Owner::Root));
    let leads =
        leads.chain(state.workers.values().filter(|worker| !worker.has_ended()).map(|worker| (worker.tree, Owner::Worker(worker.id))));
    for (tree, owner) in leads {
        let Some(lead) = state.lead(tree, owner) else { continue };
        for (_, item) in lead.outbox.items_to(u64::MAX) {
            let Item::Completion { execution, held: Some(group), .. } = item else { continue };
            let timer =
                state.join_timers.iter().any(|(at, of, lead, number)| (*of, *lead, *number) == (tree, owner, *group) && at.0 > world.now);
            let others = state.workers.values().any(|other| other.owner == owner && other.joined == Some(*group) && !other.has_ended());
            if !timer || !others {
                return Err(format!("the end of {execution} is held back: timer {timer}, others {others} (G8)"));
            }
        }
    }
    Ok(())
}
