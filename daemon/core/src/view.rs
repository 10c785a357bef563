//! Read-only answers: how trees and workers stand. Reading is wider than acting (contract section 7).

use roost_proto::id::{Epoch, ExecutionId, JobId, TreeId, WorkerId};
use roost_proto::limits::STATUS_PAGE_WORKERS_MAX;
use roost_proto::message::status::{WorkerState, WorkerStatus};
use roost_proto::outcome::Outcome;

use crate::command::{CallId, Caller};
use crate::effect::Reply;
use crate::event::Owner;
use crate::lifecycle::{authority, launch::reason};
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::tree::{Counts, Tree};
use crate::state::worker::{Phase, Worker};
use crate::step::Step;

/// How a tree stands, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeCounts {
    /// Which.
    pub tree: TreeId,
    /// Its cap.
    pub cap: u32,
    /// Its queue.
    pub queued: u32,
    /// The rest.
    pub counts: Counts,
    /// Whether admissions are held.
    pub paused: bool,
}

/// One tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeView {
    /// Its numbers.
    pub counts: TreeCounts,
    /// Its key.
    pub key: Option<String>,
    /// Most live workers per group.
    pub group_caps: Vec<(String, u32)>,
    /// The root's budget.
    pub budget: u64,
    /// What is left of it.
    pub budget_remaining: u64,
    /// Unix milliseconds.
    pub opened_at_ms: u64,
    /// Unix milliseconds.
    pub closed_at_ms: Option<u64>,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// Its name.
    pub name: String,
    /// Its id.
    pub worker: WorkerId,
    /// Its lead; `None` for the root.
    pub lead: Option<WorkerId>,
    /// Its execution.
    pub execution: ExecutionId,
    /// Its job.
    pub job: JobId,
    /// Its index in it.
    pub task_index: u32,
    /// From 1.
    pub depth: u32,
    /// Its group, where its tree caps that.
    pub group: Option<String>,
    /// Its state.
    pub state: WorkerState,
    /// Its place in the queue, from 1.
    pub place: Option<u32>,
    /// Why it waits.
    pub reason: Option<String>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Incarnations so far.
    pub epoch: Epoch,
    /// Its process.
    pub pid: Option<u32>,
    /// What its processes left behind, where that is kept.
    pub leftovers: Vec<u32>,
    /// Children that have not ended.
    pub active_children: u32,
    /// What it may still launch.
    pub budget_remaining: u64,
    /// Unix milliseconds.
    pub accepted_at_ms: u64,
    /// Unix milliseconds.
    pub started_at_ms: Option<u64>,
    /// Unix milliseconds.
    pub ended_at_ms: Option<u64>,
}

/// Counts a tree.
pub fn counts(tree: &Tree) -> TreeCounts {
    let queued = u32::try_from(tree.queued()).unwrap_or(u32::MAX);
    TreeCounts { tree: tree.id, cap: tree.settings.cap, queued, counts: tree.counts, paused: tree.paused }
}

/// Looks at a tree.
pub fn tree(tree: &Tree) -> TreeView {
    TreeView {
        counts: counts(tree),
        key: tree.key.clone(),
        group_caps: tree.settings.group_caps.clone(),
        budget: tree.ledger.limit(),
        budget_remaining: tree.ledger.remaining(),
        opened_at_ms: tree.opened_at.wall_ms,
        closed_at_ms: tree.closed_at.map(|at| at.wall_ms),
    }
}

/// Looks at a worker, without its place in the queue.
pub fn worker(state: &State, worker: &Worker) -> WorkerView {
    WorkerView {
        name: worker.name.to_string(),
        worker: worker.id,
        lead: match worker.owner {
            Owner::Root => None,
            Owner::Worker(lead) => Some(lead),
        },
        execution: worker.execution,
        job: worker.job,
        task_index: worker.task_index,
        depth: worker.depth,
        group: state.trees.get(&worker.tree).and_then(|tree| tree.group_name(worker.group)),
        state: state_of(worker),
        place: None,
        reason: reason_of(state, worker),
        outcome: if let Phase::Ended { outcome } = &worker.phase { Some(outcome.clone()) } else { None },
        epoch: worker.epoch,
        pid: worker.process.map(|process| process.pid),
        leftovers: worker.leftovers.to_vec(),
        active_children: worker.active_children,
        budget_remaining: worker.ledger.remaining(),
        accepted_at_ms: worker.accepted_at.wall_ms,
        started_at_ms: worker.started_at.map(|at| at.wall_ms),
        ended_at_ms: worker.ended_at.map(|at| at.wall_ms),
    }
}

/// The word for where a worker stands.
pub fn state_of(worker: &Worker) -> WorkerState {
    if worker.stop.is_some() && !worker.has_ended() {
        return WorkerState::Stopping;
    }
    match &worker.phase {
        Phase::Queued => WorkerState::Queued,
        Phase::Starting(starting) if starting.wake.is_some() => WorkerState::Waking,
        Phase::Starting(_) => WorkerState::Starting,
        Phase::Emptying { parked: true, .. } => WorkerState::Parking,
        Phase::Running | Phase::Emptying { .. } | Phase::Gone { .. } => WorkerState::Running,
        Phase::Blocked { .. } if worker.slot => WorkerState::Waiting,
        Phase::Blocked { .. } => WorkerState::Blocked,
        Phase::Waiting { .. } => WorkerState::Waiting,
        Phase::ParkAsked { .. } | Phase::Leaving { .. } => WorkerState::Parking,
        Phase::Closing { .. } => WorkerState::Running,
        Phase::Parked { ready: Some(_), .. } => WorkerState::WakeReady,
        Phase::Parked { ready: None, .. } => WorkerState::Parked,
        Phase::Finishing { .. } => WorkerState::Finishing,
        Phase::Ended { .. } => WorkerState::Ended,
    }
}

fn reason_of(state: &State, worker: &Worker) -> Option<String> {
    let tree = state.trees.get(&worker.tree)?;
    let children = |what: &str| match worker.active_children {
        1 => format!("{what} for 1 child"),
        active => format!("{what} for {active} children"),
    };
    match &worker.phase {
        Phase::Queued => Some(reason(state, tree, worker.group)),
        Phase::Parked { ready: None, .. } | Phase::Blocked { over: None, .. } | Phase::Waiting { .. } | Phase::Finishing { .. } => {
            Some(children("waiting"))
        }
        Phase::Parked { ready: Some(_), .. } | Phase::Blocked { over: Some(_), .. } => Some(WorkerStatus::WAITS_FOR_SLOT.into()),
        Phase::Leaving { .. } | Phase::Emptying { parked: true, .. } => Some("its context is saved, its process leaves".into()),
        Phase::Emptying { .. } => Some("its process has ended, what that left behind has not".into()),
        Phase::Starting(starting) if starting.again_at.is_some() => Some("its start failed and is tried again".into()),
        Phase::Starting(_)
        | Phase::Running
        | Phase::ParkAsked { .. }
        | Phase::Closing { .. }
        | Phase::Gone { .. }
        | Phase::Ended { .. } => None,
    }
}

/// Counts the caller's tree.
pub fn count(step: &mut Step<'_>, call: CallId, caller: Caller) -> Result<(), Rejection> {
    let (tree, _) = authority::asker(step.state, caller)?;
    let counts = counts(step.state.tree(tree)?);
    step.reply(call, Reply::Counts(counts));
    Ok(())
}

/// Answers a look at trees and workers.
pub fn status(
    step: &mut Step<'_>,
    call: CallId,
    caller: Caller,
    of: Option<TreeId>,
    name: Option<&str>,
    after: Option<WorkerId>,
) -> Result<(), Rejection> {
    let state = &*step.state;
    let (id, owner) = match (caller, of) {
        (Caller::Operator, None) if name.is_some() => return Err(Rejection::NoTree),
        (Caller::Operator, None) => {
            let trees = state.trees.values().map(tree).collect();
            step.reply(call, Reply::Status { trees, workers: Vec::new(), next: None });
            return Ok(());
        }
        (Caller::Operator, Some(tree)) => (tree, Owner::Root),
        (Caller::Root(_) | Caller::Worker { .. }, _) => authority::asker(state, caller)?,
    };
    let record = state.tree(id)?;
    let unknown = |name: &str| Rejection::UnknownWorker { names: vec![name.to_owned()] };
    let top = match (name, owner) {
        (Some(name), _) => Some(state.visible_to(id, owner, name).ok_or_else(|| unknown(name))?.id),
        (None, Owner::Worker(worker)) => Some(worker),
        (None, Owner::Root) => None,
    };
    let (found, next) = page(state, record, top, after);
    let reply = Reply::Status { trees: vec![tree(record)], workers: views(state, record, found), next };
    step.reply(call, reply);
    Ok(())
}

/// One page of a tree's workers in the order of their launch, below one of them or all, and after whom the next page goes on.
pub fn page<'a>(state: &'a State, tree: &Tree, top: Option<WorkerId>, after: Option<WorkerId>) -> (Vec<&'a Worker>, Option<WorkerId>) {
    let from = after.map_or(WorkerId(0), |after| WorkerId(after.0 + 1));
    let below = |id: &WorkerId| top.is_none_or(|top| state.line(*id).any(|ancestor| ancestor == top));
    let limit = STATUS_PAGE_WORKERS_MAX as usize;
    let mut found: Vec<&Worker> =
        tree.workers.range(from..).filter(|id| below(id)).take(limit + 1).filter_map(|id| state.workers.get(id)).collect();
    let more = found.len() > limit;
    found.truncate(limit);
    let next = if more { found.last().map(|worker| worker.id) } else { None };
    (found, next)
}

/// The views of a page, with their places in the queue.
fn views(state: &State, tree: &Tree, page: Vec<&Worker>) -> Vec<WorkerView> {
    let mut views: Vec<WorkerView> = page.into_iter().map(|record| worker(state, record)).collect();
    if views.iter().any(|view| view.state == WorkerState::Queued) {
        let places: std::collections::BTreeMap<WorkerId, u32> = tree.queue().into_iter().zip(1..).collect();
        for view in &mut views {
            view.place = places.get(&view.worker).copied();
        }
    }
    views
}
