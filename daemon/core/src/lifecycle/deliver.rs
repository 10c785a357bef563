//! Handing over what is owed: contract section 10. It stays owed until its receiver says that it has taken it in.

use roost_proto::id::{ExecutionId, TreeId, WorkerId};

use crate::command::{CallId, Caller};
use crate::effect::{Delivery, Effect, Holder, Owed, Reply};
use crate::event::{Event, Owner, Spoken};
use crate::hand_over::owed;
use crate::holders::Holders;
use crate::lifecycle::{authority, bounds};
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::outbox::Item;
use crate::state::taker::Taker;
use crate::state::worker::{Phase, Worker};
use crate::step::Step;
use roost_proto::limits::INBOX_ITEMS_MAX;

/// A settled worker goes on with what it is owed, or with the news that nothing below it is active any more.
pub fn rouse(step: &mut Step<'_>, worker: WorkerId) {
    let Some(record) = step.state.workers.get(&worker) else { return };
    let completions_wake = step.state.trees.get(&record.tree).is_some_and(|tree| tree.settings.delivery.wakes());
    if record.is_settled() && record.stop.is_none() && (record.outbox.wakes(completions_wake) || record.active_children == 0) {
        step.record(Event::Resumed { worker });
    }
}

/// Hands the holder of a lease what it was not handed yet.
pub fn push(step: &mut Step<'_>, holders: &mut Holders, tree: TreeId, owner: Owner) {
    let Some(holding) = holders.get_mut(tree, owner) else { return };
    let is_new = !std::mem::replace(&mut holding.knows_turn, true);
    let Some((record, lead)) = step.state.trees.get(&tree).zip(step.state.lead(tree, owner)) else { return };
    let mode = record.settings.delivery;
    let turn = match owner {
        Owner::Root => false,
        Owner::Worker(worker) => match step.state.workers.get(&worker) {
            Some(worker) if reads_now(worker, is_new) => worker.owed_turn && is_new,
            Some(_) | None => return,
        },
    };
    let new = |(seq, item): &(u64, &Item)| {
        let pushed = mode.pushes() || turn || !matches!(item, Item::Completion { .. });
        pushed && !holding.handed.contains(seq)
    };
    let items: Vec<(u64, &Item)> = lead.outbox.ready().filter(new).collect();
    if items.is_empty() && !turn {
        return;
    }
    let wake = turn || items.iter().any(|(_, item)| wakes(item, mode.wakes()));
    let handed: Vec<u64> = items.iter().map(|(seq, _)| *seq).collect();
    let items = items.into_iter().filter_map(|(seq, item)| owed(step.state, owner, seq, item)).collect();
    let to = Holder { tree, owner, lease: holding.lease };
    let delivery = Delivery { to, wake, active_children: lead.active_children, items };
    holding.handed.extend(handed);
    step.effects.push(Effect::Deliver(Box::new(delivery)));
}

/// Whether a worker takes items in where it stands. Without the capability to be steered that is at the start of a turn only, or of
/// a connection: nobody knows what has come of the one before.
fn reads_now(worker: &Worker, is_new: bool) -> bool {
    let steers = worker.speech.as_ref().is_some_and(|speech| speech.steers);
    match worker.phase {
        Phase::Running => steers || worker.owed_turn || is_new,
        Phase::Blocked { .. } | Phase::ParkAsked { blocked: true, .. } => steers,
        Phase::Queued
        | Phase::Starting(_)
        | Phase::Waiting { .. }
        | Phase::ParkAsked { .. }
        | Phase::Leaving { .. }
        | Phase::Parked { .. }
        | Phase::Closing { .. }
        | Phase::Emptying { .. }
        | Phase::Gone { .. }
        | Phase::Finishing { .. }
        | Phase::Ended { .. } => false,
    }
}

fn wakes(item: &Item, completions_wake: bool) -> bool {
    match item {
        Item::Task | Item::LeadMessage { .. } | Item::ChildMessage { .. } => true,
        Item::Completion { wakes, .. } => *wakes && completions_wake,
        Item::Notice { .. } | Item::Undelivered { .. } => false,
    }
}

/// The caller has taken items in.
pub fn ack(
    step: &mut Step<'_>,
    holders: &mut Holders,
    call: CallId,
    caller: Caller,
    lease: Option<u64>,
    request_id: Option<String>,
    items: &[u64],
) -> Result<(), Rejection> {
    request_id.as_ref().map_or(Ok(()), |request_id| bounds::label("the request id", request_id))?;
    let (tree, owner) = authority::asker(step.state, caller)?;
    let lead = step.state.lead(tree, owner).ok_or(Rejection::UnknownIdentity)?;
    // Whoever only makes calls may take items in where nobody holds the lease.
    let may = match lease {
        Some(lease) => lease == lead.lease,
        None => holders.get(tree, owner).is_none(),
    };
    if !may {
        return Err(Rejection::StaleLease);
    }
    let mut seen = std::collections::BTreeSet::new();
    let items: Vec<u64> = items.iter().copied().filter(|seq| seen.insert(*seq)).collect();
    let (owed, known): (Vec<u64>, Vec<u64>) = items.into_iter().partition(|seq| lead.outbox.get(*seq).is_some());
    // The answer to an acknowledgement may have been lost: a repeat gets the same one. Somebody else's does not.
    let process = lease.and_then(|_| holders.get(tree, owner)).and_then(|holding| holding.process);
    let by = Taker { process, request_id };
    let taken = lead.outbox.taken_in(&by);
    let (before, gone): (Vec<u64>, Vec<u64>) = known.into_iter().partition(|seq| taken.contains(seq));
    let owed_turn = matches!(owner, Owner::Worker(worker) if step.state.workers.get(&worker).is_some_and(|worker| worker.owed_turn));
    if !owed.is_empty() || owed_turn {
        let Taker { process, request_id } = by;
        step.record(Event::Spoken(Box::new(Spoken::Acked { tree, owner, items: owed.clone(), process, request_id })));
    }
    if let Some(holding) = holders.get_mut(tree, owner) {
        holding.handed.retain(|seq| !owed.contains(seq) && !gone.contains(seq));
    }
    let accepted = owed.into_iter().chain(before).collect();
    step.reply(call, Reply::Acked { accepted, gone });
    Ok(())
}

/// The caller has the ends that a wait has answered with.
pub fn told(step: &mut Step<'_>, call: CallId, caller: Caller, executions: &[ExecutionId]) -> Result<(), Rejection> {
    let (tree, owner) = authority::asker(step.state, caller)?;
    let executions: Vec<ExecutionId> = executions.iter().copied().filter(|execution| step.state.is_news(tree, owner, *execution)).collect();
    if !executions.is_empty() {
        step.record(Event::Spoken(Box::new(Spoken::Read { tree, owner, executions })));
    }
    step.reply(call, Reply::Done);
    Ok(())
}

/// What the caller is owed, to look at.
pub fn inbox(step: &mut Step<'_>, call: CallId, caller: Caller) -> Result<(), Rejection> {
    let (tree, owner) = authority::asker(step.state, caller)?;
    let lead = step.state.lead(tree, owner).ok_or(Rejection::UnknownIdentity)?;
    let all = lead.outbox.items_to(u64::MAX);
    let items: Vec<Owed> = all.take(INBOX_ITEMS_MAX).filter_map(|(seq, item)| owed(step.state, owner, seq, item)).collect();
    let more = lead.outbox.len().saturating_sub(items.len());
    step.reply(call, Reply::Inbox { items, more });
    Ok(())
}

/// What was handed over and is not owed any more must be dropped by who has it.
pub fn withdraw(step: &mut Step<'_>, holders: &mut Holders, tree: TreeId, owner: Owner) {
    let Some(holding) = holders.get_mut(tree, owner) else { return };
    let Some(lead) = step.state.lead(tree, owner) else { return };
    let items: Vec<u64> = holding.handed.iter().copied().filter(|seq| lead.outbox.get(*seq).is_none()).collect();
    if items.is_empty() {
        return;
    }
    holding.handed.retain(|seq| !items.contains(seq));
    // All of it may have been held back to begin a turn with: that begins without it.
    if holding.handed.is_empty()
        && matches!(owner, Owner::Worker(worker) if step.state.workers.get(&worker).is_some_and(|worker| worker.owed_turn))
    {
        holding.knows_turn = false;
    }
    let to = Holder { tree, owner, lease: holding.lease };
    step.effects.push(Effect::Withdraw { to, items });
}

/// Groups of launches whose time is over.
pub fn release_groups(step: &mut Step<'_>) {
    while let Some((at, tree, owner, group)) = step.state.join_timers.first().copied()
        && at <= step.now.mono
        && step.fault.is_none()
    {
        step.record(Event::Spoken(Box::new(Spoken::GroupReleased { tree, owner, group })));
    }
}

/// When the next of them is.
pub fn next_group(state: &State) -> Option<crate::time::Mono> {
    state.join_timers.first().map(|(at, ..)| *at)
}
