//! Hello: who a connection speaks for. A worker's token works for the processes of that worker's living incarnation alone.

use crate::calls::{Calls, Pending, Want};
use crate::command::{CallId, Caller, Claim, Role};
use crate::effect::{Effect, Holder, Reply, Standing};
use crate::event::{Event, Owner, Spoken};
use crate::holders::Holders;
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::worker::Phase;
use crate::step::Step;

/// Answers a hello, now or when the supervisor has reported the caller's process.
pub fn hello(step: &mut Step<'_>, calls: &mut Calls, holders: &mut Holders, call: CallId, claim: Option<Claim>) -> Result<(), Rejection> {
    let Some(claim) = claim else {
        step.reply(call, Reply::Welcome { caller: Caller::Operator, tree: None, budget_remaining: None, generation: None, standing: None });
        return Ok(());
    };
    match identify(step.state, &claim)? {
        Some(caller) => return greet(step, holders, call, &claim, caller),
        // The process was quicker than the supervisor's word of it.
        None => {
            let want = Want::Welcome(Box::new(claim));
            calls.add(call, Pending { asker: None, want, awaited: Default::default(), deadline: None, over: None });
        }
    }
    Ok(())
}

fn greet(step: &mut Step<'_>, holders: &mut Holders, call: CallId, claim: &Claim, caller: Caller) -> Result<(), Rejection> {
    let standing: Option<Box<Standing>> = match claim.role {
        Some(role) => Some(Box::new(stand(step, holders, claim, role)?)),
        None => None,
    };
    let remaining = match claim.worker {
        None => step.state.trees.get(&claim.tree).map(|tree| tree.ledger.remaining()),
        Some(worker) => step.state.workers.get(&worker).map(|worker| worker.ledger.remaining()),
    };
    let generation = step.state.trees.get(&claim.tree).map(|tree| tree.generation);
    let holder = standing.as_ref().map(|standing| standing.holder);
    step.reply(call, Reply::Welcome { caller, tree: Some(claim.tree), budget_remaining: remaining, generation, standing });
    // A request to park may have gone down with the last connection; without a deadline it would never be made again. It follows the
    // welcome: before that nobody holds the lease whom it could be told.
    let asked = claim.worker.and_then(|worker| step.state.workers.get(&worker)).filter(|worker| worker.stop.is_none());
    if let (Some(to), Some(Phase::ParkAsked { deadline, .. })) = (holder, asked.map(|worker| &worker.phase)) {
        let deadline_ms = deadline.map(|deadline| deadline.0.saturating_sub(step.now.mono.0));
        step.effects.push(Effect::AskPark { to, deadline_ms });
    }
    Ok(())
}

/// The caller takes the lease of what it is owed.
fn stand(step: &mut Step<'_>, holders: &mut Holders, claim: &Claim, role: Role) -> Result<Standing, Rejection> {
    let process = claim.lineage.first().copied();
    let (owner, can_park, steers) = match (role, claim.worker) {
        (Role::Root, None) => (Owner::Root, false, true),
        (Role::Root, Some(_)) => return Err(Rejection::NotRoot { what: "hold the root's lease" }),
        (Role::Voice { .. }, None) => return Err(Rejection::NotWorker { what: "speak the worker protocol" }),
        (Role::Voice { can_park, steers }, Some(worker)) => {
            let record = step.state.workers.get(&worker).filter(|record| record.speaks());
            record.ok_or(Rejection::NotWorker { what: "speak the worker protocol: this one was launched as a plain command, so it" })?;
            let owner = Owner::Worker(worker);
            // What a worker's tools start has its token too; only one process speaks for it.
            if holders.get(claim.tree, owner).is_some_and(|holding| holding.process != process) {
                return Err(Rejection::AlreadyConnected);
            }
            (owner, can_park, steers)
        }
    };
    let tree = step.state.tree(claim.tree)?;
    let (delivery, hold_ms) = (tree.settings.delivery, tree.settings.timing.hold_ms);
    let lease = step.state.lead(claim.tree, owner).ok_or(Rejection::UnknownIdentity)?.lease + 1;
    let holder = Holder { tree: claim.tree, owner, lease };
    step.record(Event::Spoken(Box::new(Spoken::LeaseTaken {
        tree: claim.tree,
        owner,
        lease,
        can_park,
        steers,
        process: process.filter(|_| owner == Owner::Root),
    })));
    if let Some(from) = holders.take(holder, process) {
        step.effects.push(Effect::LeaseLost { from });
    }
    let worker = claim.worker.and_then(|worker| step.state.workers.get(&worker));
    let worker = worker.map(|worker| {
        let continues = worker.held.as_ref().map(|held| held.request_id.clone());
        (worker.name.to_string(), worker.execution, worker.context.is_some(), continues)
    });
    Ok(Standing { holder, delivery, hold_ms, worker })
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
        Some(process) if claim.lineage.contains(&process) => Ok(Some(Caller::Worker { worker: worker.id, epoch })),
        Some(_) => Err(Rejection::UnknownIdentity),
    }
}
