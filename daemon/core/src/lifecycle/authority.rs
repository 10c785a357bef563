//! Who may: what a caller stands for in this very moment. Every verb of a client asks here first.

use roost_proto::id::{Epoch, TreeId, WorkerId};
use roost_proto::usage::{USAGE_MAX, UsageReport};

use crate::command::Caller;
use crate::event::Owner;
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::accounts::{Accounts, Refused};
use crate::state::worker::{Phase, Worker};

/// What the caller may own: its tree and itself as an owner.
pub fn asker(state: &State, caller: Caller) -> Result<(TreeId, Owner), Rejection> {
    match caller {
        Caller::Operator => Err(Rejection::NoTree),
        Caller::Root(tree) => state.tree(tree).map(|tree| (tree.id, Owner::Root)),
        Caller::Worker { worker, epoch } => {
            let worker = current(state, worker, epoch)?;
            if matches!(worker.phase, Phase::Leaving { .. }) {
                return Err(Rejection::Parked);
            }
            Ok((worker.tree, Owner::Worker(worker.id)))
        }
    }
}

/// The same for a verb that makes new work: neither a closed tree nor a worker that is being ended may.
pub fn may_launch(state: &State, caller: Caller) -> Result<(TreeId, Owner), Rejection> {
    let (tree, owner) = asker(state, caller)?;
    if state.tree(tree)?.closed_at.is_some() {
        return Err(Rejection::TreeClosed { tree });
    }
    let stopping = match owner {
        Owner::Root => false,
        // A stop latches the whole subtree, so the caller's own record tells; and nothing follows on a last word.
        Owner::Worker(worker) => state.workers.get(&worker).is_some_and(|worker| worker.stop.is_some() || worker.has_answered()),
    };
    if stopping { Err(Rejection::Stopping) } else { Ok((tree, owner)) }
}

/// The tree of a caller that must be its root.
pub fn root(state: &State, caller: Caller, what: &'static str) -> Result<TreeId, Rejection> {
    match asker(state, caller)? {
        (tree, Owner::Root) => Ok(tree),
        (_, Owner::Worker(_)) => Err(Rejection::NotRoot { what }),
    }
}

/// A caller that must be a worker.
pub fn worker(state: &State, caller: Caller, what: &'static str) -> Result<WorkerId, Rejection> {
    match caller {
        Caller::Operator | Caller::Root(_) => Err(Rejection::NotWorker { what }),
        Caller::Worker { .. } => match asker(state, caller)? {
            (_, Owner::Worker(worker)) => Ok(worker),
            (_, Owner::Root) => Err(Rejection::NotWorker { what }),
        },
    }
}

/// A worker whose living incarnation this is.
pub fn current(state: &State, worker: WorkerId, epoch: Epoch) -> Result<&Worker, Rejection> {
    state.workers.get(&worker).filter(|worker| worker.epoch == epoch && worker.can_speak()).ok_or(Rejection::StaleEpoch { epoch })
}

/// The worker for which a connection speaks: the one that holds its lease, of its living incarnation.
pub fn voice(state: &State, caller: Caller, lease: Option<u64>) -> Result<&Worker, Rejection> {
    let what = "speak the worker protocol";
    let Caller::Worker { worker, epoch } = caller else { return Err(Rejection::NotWorker { what }) };
    let worker = current(state, worker, epoch)?;
    let speech = worker.speech.as_ref().ok_or(Rejection::NotWorker { what })?;
    if lease == Some(speech.lease) { Ok(worker) } else { Err(Rejection::StaleLease) }
}

/// Whether a report is news for these books; refused where it cannot be true.
pub fn usage(accounts: Option<&Accounts>, report: &UsageReport) -> Result<bool, Rejection> {
    let none = Accounts::default();
    match accounts.unwrap_or(&none).added(report) {
        Ok(added) => Ok(added.is_some()),
        Err(refused) => {
            let range = match refused {
                Refused::Shrunk => "no less than the report before it: reports are cumulative".to_owned(),
                Refused::TooLarge => format!("at most {USAGE_MAX}, alone and in sum"),
            };
            Err(Rejection::BadValue { what: "every counter of a usage report", range, value: format!("report {}", report.sequence) })
        }
    }
}
