//! Hello: who a connection speaks for. A worker's token works for the processes of that worker's living incarnation alone.

use crate::calls::{Calls, Pending, Want};
use crate::command::{CallId, Caller, Claim};
use crate::effect::{Effect, Reply};
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::worker::Phase;
use crate::step::{Step, delivery_of};

/// Answers a hello, now or when the supervisor has reported the caller's process.
pub fn hello(step: &mut Step<'_>, calls: &mut Calls, call: CallId, claim: Option<Claim>) -> Result<(), Rejection> {
    let Some(claim) = claim else {
        step.reply(call, Reply::Welcome { caller: Caller::Operator, tree: None, budget_remaining: None, generation: None });
        return Ok(());
    };
    match identify(step.state, &claim)? {
        Some(caller) => greet(step, call, &claim, caller),
        // The process was quicker than the supervisor's word of it.
        None => {
            let want = Want::Welcome(Box::new(claim));
            calls.add(call, Pending { asker: None, want, awaited: Default::default(), deadline: None, over: None });
        }
    }
    Ok(())
}

fn greet(step: &mut Step<'_>, call: CallId, claim: &Claim, caller: Caller) {
    let remaining = match claim.worker {
        None => step.state.trees.get(&claim.tree).map(|tree| tree.ledger.remaining()),
        Some(worker) => step.state.workers.get(&worker).map(|worker| worker.ledger.remaining()),
    };
    let generation = step.state.trees.get(&claim.tree).map(|tree| tree.generation);
    step.reply(call, Reply::Welcome { caller, tree: Some(claim.tree), budget_remaining: remaining, generation });
    // What it was told may have gone down with its last connection.
    let open = claim.worker.and_then(|worker| delivery_of(step.state, worker));
    step.effects.extend(open);
    // So may the request to park, which without a deadline would never be made again.
    let worker = claim.worker.and_then(|worker| step.state.workers.get(&worker));
    let asked = worker.filter(|worker| worker.stop.is_none() && matches!(worker.phase, Phase::ParkAsked { .. }));
    step.effects.extend(asked.map(|worker| Effect::AskPark { incarnation: worker.incarnation() }));
}

/// Whom a claim stands for; `None` while its process is not known yet. Every mismatch gets the same answer.
fn identify(state: &State, claim: &Claim) -> Result<Option<Caller>, Rejection> {
    let tree = state.trees.get(&claim.tree).ok_or(Rejection::UnknownIdentity)?;
    let Some(worker) = claim.worker else {
        return if tree.token == claim.token { Ok(Some(Caller::Root(tree.id))) } else { Err(Rejection::UnknownIdentity) };
    };
    let worker = state.workers.get(&worker).filter(|w| w.tree == tree.id && w.token == claim.token).ok_or(Rejection::UnknownIdentity)?;
    let epoch = claim.epoch.ok_or(Rejection::UnknownIdentity)?;
    if epoch != worker.epoch || !worker.can_speak() {
        return Err(Rejection::StaleEpoch { epoch });
    }
    match worker.process {
        None => Ok(None),
        Some(process) if claim.lineage.contains(&process.pid) => Ok(Some(Caller::Worker { worker: worker.id, epoch })),
        Some(_) => Err(Rejection::UnknownIdentity),
    }
}
