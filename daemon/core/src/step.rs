//! One step in the making: events are applied as they are recorded, effects are collected. Verbs write here and nowhere else.

use std::collections::BTreeSet;

use roost_proto::id::{JobId, TreeId, WorkerId};
use roost_proto::outcome::Outcome;

use crate::command::CallId;
use crate::effect::{Effect, End, Reply, Spawn, Wake};
use crate::event::{Event, Record};
use crate::rejection::Rejection;
use crate::state::worker::Phase;
use crate::state::{IllegalEvent, State};
use crate::time::Now;

/// What a step is written into.
pub struct Step<'a> {
    /// The moment.
    pub now: Now,
    /// The state, up to date with every event recorded so far.
    pub state: &'a mut State,
    /// What happened.
    pub records: Vec<Record>,
    /// What is to be done about it, once it is on disk.
    pub effects: Vec<Effect>,
    /// The trees that an event touched and the scheduler has not seen since.
    pub touched: BTreeSet<TreeId>,
    /// Executions that ended and whose waiters have not been told.
    pub ended: Vec<WorkerId>,
    /// Workers whose process has parked or ended, and what their waiting calls are refused with.
    pub left: Vec<(WorkerId, Rejection)>,
    /// Workers that may have been blocked and are not: their calls that are over may be answered.
    pub unblocked: Vec<WorkerId>,
    /// Workers that settled and may be owed something.
    pub settled: Vec<WorkerId>,
    /// Workers whose process started and whose early callers have not been told.
    pub started: Vec<WorkerId>,
    /// The last job before this step.
    last_job: u64,
    /// The first event that did not fit: a fault of ours, and the end of this broker.
    pub fault: Option<IllegalEvent>,
}

impl<'a> Step<'a> {
    /// An empty step.
    pub fn new(now: Now, state: &'a mut State) -> Self {
        Self {
            now,
            last_job: state.last_job,
            state,
            records: Vec::new(),
            effects: Vec::new(),
            touched: BTreeSet::new(),
            ended: Vec::new(),
            left: Vec::new(),
            unblocked: Vec::new(),
            settled: Vec::new(),
            started: Vec::new(),
            fault: None,
        }
    }

    /// Records an event: from here on it has happened.
    pub fn record(&mut self, event: Event) {
        if self.fault.is_some() {
            return;
        }
        let record = Record { seq: self.state.seq + 1, at: self.now, event };
        if let Err(fault) = self.state.apply(&record) {
            self.fault = Some(fault);
            return;
        }
        self.note(&record.event);
        self.records.push(record);
    }

    fn note(&mut self, event: &Event) {
        self.touched.extend(tree_of(self.state, event));
        if let Event::Ended { worker, .. } = event {
            self.ended.push(*worker);
        } else if let Event::ProcessStarted { worker, .. } = event {
            self.started.push(*worker);
        } else if let Event::Settled { worker, .. } = event {
            self.settled.push(*worker);
        } else if let Event::SlotTaken { worker, .. } | Event::SlotRetaken { worker } | Event::WaitOver { worker } = event {
            self.unblocked.push(*worker);
        } else if let Event::Parked { worker, .. } = event {
            self.left.push((*worker, Rejection::Parked));
        } else if let Event::MainExited { worker, .. } | Event::SlotFreed { worker, .. } = event
            && let Some(epoch) = self.state.workers.get(worker).map(|worker| worker.epoch)
        {
            self.left.push((*worker, Rejection::StaleEpoch { epoch }));
        }
    }

    /// Whether this step accepted the job.
    pub fn accepted_here(&self, job: JobId) -> bool {
        job.0 > self.last_job
    }

    /// Answers a call.
    pub fn reply(&mut self, call: CallId, reply: Reply) {
        self.effects.push(Effect::Reply { call, reply });
    }

    /// Refuses a call.
    pub fn refuse(&mut self, call: CallId, rejection: Rejection) {
        self.effects.push(Effect::Refuse { call, rejection });
    }

    /// Starts the process of a worker that is `Starting`.
    pub fn spawn(&mut self, worker: WorkerId) {
        self.effects.extend(spawn_of(self.state, worker).map(|spawn| Effect::Spawn(Box::new(spawn))));
    }
}

/// How a worker ended, if it has.
pub fn end_of(state: &State, worker: WorkerId) -> Option<End> {
    let worker = state.workers.get(&worker)?;
    let Phase::Ended { outcome } = &worker.phase else { return None };
    Some(End {
        name: worker.name.to_string(),
        worker: worker.id,
        execution: worker.execution,
        job: worker.job,
        task_index: worker.task_index,
        epoch: worker.epoch,
        outcome: Outcome::clone(outcome),
    })
}

/// The order to start the process that a `Starting` worker waits for.
pub fn spawn_of(state: &State, worker: WorkerId) -> Option<Spawn> {
    let worker = state.workers.get(&worker)?;
    let Phase::Starting(starting) = &worker.phase else { return None };
    let tree = state.trees.get(&worker.tree)?;
    let wake = starting.wake.and_then(|last| {
        // The start may be tried again when more has ended. What is not handed over has not ended yet for this process: it must
        // not take its subtree for settled.
        let later = u32::try_from(worker.outbox.items_after(last)).unwrap_or(u32::MAX);
        let active_children = worker.active_children.saturating_add(later);
        Some(Wake {
            settled: active_children == 0,
            active_children,
            context: worker.context?,
            items: worker.outbox.items_to(last).filter_map(|(seq, child)| Some((seq, end_of(state, child)?))).collect(),
        })
    });
    Some(Spawn {
        incarnation: worker.incarnation(),
        worker: worker.id,
        tree: worker.tree,
        token: worker.token,
        leftovers_grace_ms: tree.settings.leftovers_grace_ms(),
        wake,
    })
}

/// What a worker that was told to go on has not shown to know: it is told again whenever it connects.
pub fn delivery_of(state: &State, worker: WorkerId) -> Option<Effect> {
    let worker = state.workers.get(&worker).filter(|worker| worker.owed_turn)?;
    let items = worker.outbox.items_to(u64::MAX).filter_map(|(seq, child)| Some((seq, end_of(state, child)?))).collect();
    Some(Effect::Deliver { incarnation: worker.incarnation(), items })
}

/// The tree that an event belongs to.
pub fn tree_of(state: &State, event: &Event) -> Option<TreeId> {
    let worker = match event {
        Event::SlotTaken { worker, .. }
        | Event::ProcessStarted { worker, .. }
        | Event::StartDeferred { worker, .. }
        | Event::StartRetried { worker, .. }
        | Event::Blocked { worker }
        | Event::SlotLent { worker }
        | Event::WaitOver { worker }
        | Event::SlotRetaken { worker }
        | Event::Settled { worker, .. }
        | Event::Resumed { worker }
        | Event::Delivered { worker, .. }
        | Event::ParkAsked { worker, .. }
        | Event::ParkCancelled { worker, .. }
        | Event::Parked { worker, .. }
        | Event::MainExited { worker, .. }
        | Event::SlotFreed { worker, .. }
        | Event::StopAsked { worker, .. }
        | Event::KillSent { worker }
        | Event::Reowned { worker, .. }
        | Event::Finishing { worker, .. }
        | Event::Ended { worker, .. } => worker,
        Event::TreeOpened(opened) => return Some(opened.tree),
        Event::JobAccepted(job) => return Some(job.tree),
        Event::Consumed { tree, .. }
        | Event::CapSet { tree, .. }
        | Event::PauseSet { tree, .. }
        | Event::Interrupted { tree, .. }
        | Event::TreeClosed { tree }
        | Event::TreeForgotten { tree } => return Some(*tree),
    };
    state.workers.get(worker).map(|worker| worker.tree)
}
