//! What was used, as it is read: contract section 11.

use roost_proto::id::{TreeId, WorkerId};
use roost_proto::usage::UsageTotals;

use crate::command::{CallId, Caller};
use crate::effect::Reply;
use crate::event::Owner;
use crate::lifecycle::authority;
use crate::rejection::Rejection;
use crate::state::tree::Tree;
use crate::state::worker::Worker;
use crate::step::Step;
use crate::view;

/// What was used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageView {
    /// The tree.
    pub tree: TreeId,
    /// Of the whole that was asked for.
    pub totals: UsageTotals,
    /// Of each worker: it, its lead, its executions so far.
    pub workers: Vec<WorkerUsage>,
    /// There are more after this one.
    pub next: Option<WorkerId>,
}

/// What one worker has used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerUsage {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its lead; `None` for the root.
    pub lead: Option<WorkerId>,
    /// Executions so far.
    pub executions: u32,
    /// What it used.
    pub totals: UsageTotals,
}

/// What to read.
pub struct Read<'a> {
    /// The tree, for an operator.
    pub tree: Option<TreeId>,
    /// Only this worker.
    pub name: Option<&'a str>,
    /// A line for each.
    pub each: bool,
    /// Only workers after this one.
    pub after: Option<WorkerId>,
}

/// Answers a look at what was used.
pub fn read(step: &mut Step<'_>, call: CallId, caller: Caller, read: Read<'_>) -> Result<(), Rejection> {
    let state = &*step.state;
    let (id, owner) = match (caller, read.tree) {
        (Caller::Operator, None) => return Err(Rejection::NoTree),
        (Caller::Operator, Some(tree)) => (tree, Owner::Root),
        (Caller::Root(_) | Caller::Worker { .. }, _) => authority::asker(state, caller)?,
    };
    let tree = state.tree(id)?;
    let unknown = |name: &str| Rejection::UnknownWorker { names: vec![name.to_owned()] };
    let top = match (read.name, owner) {
        (Some(name), _) => Some(state.visible_to(id, owner, name).ok_or_else(|| unknown(name))?),
        (None, Owner::Worker(worker)) => state.workers.get(&worker),
        (None, Owner::Root) => None,
    };
    let totals = top.map_or_else(|| of_tree(tree), of_worker);
    let (found, next) = if read.each { view::page(state, tree, top.map(|top| top.id), read.after) } else { (Vec::new(), None) };
    let workers = found.into_iter().map(usage_of).collect();
    step.reply(call, Reply::Usage(Box::new(UsageView { tree: id, totals, workers, next })));
    Ok(())
}

/// Of a worker with all below it.
pub fn of_worker(worker: &Worker) -> UsageTotals {
    let workers = worker.descendants + 1;
    let Some(accounts) = &worker.accounts else { return UsageTotals { workers, ..UsageTotals::default() } };
    UsageTotals {
        own: accounts.own(),
        total: accounts.total(),
        workers,
        partial: accounts.partial || accounts.partial_below,
        context_tokens: accounts.context_tokens,
    }
}

fn of_tree(tree: &Tree) -> UsageTotals {
    UsageTotals {
        own: tree.accounts.own(),
        total: tree.accounts.total(),
        workers: tree.workers.len() as u64,
        partial: tree.accounts.partial || tree.accounts.partial_below,
        context_tokens: tree.accounts.context_tokens,
    }
}

fn usage_of(worker: &Worker) -> WorkerUsage {
    WorkerUsage {
        name: worker.name.to_string(),
        worker: worker.id,
        lead: if let Owner::Worker(lead) = worker.owner { Some(lead) } else { None },
        executions: u32::try_from(worker.past.len() + 1).unwrap_or(u32::MAX),
        totals: of_worker(worker),
    }
}
