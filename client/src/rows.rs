//! A tree as rows that follow its events: one snapshot of `status`, then the numbered events. Pure.
//!
//! An event costs what it is about, never a walk over all workers: places in the queue and the order of the rows are found when
//! somebody looks. Events may be applied again, as happens to those between the number that was asked for and the snapshot.

mod row;
mod take;

use std::collections::{BTreeMap, HashMap};

use roost_proto::id::{ExecutionId, WorkerId};
use roost_proto::message::status::{StatusReply, TreeStatus, WorkerState, WorkerStatus};
use roost_proto::message::usage::UsageReply;
use roost_proto::outcome::Outcome;
use roost_proto::usage::UsageTotals;

pub use row::Row;

/// How many workers of a tree are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowCounts {
    /// Have not ended.
    pub active: u32,
    /// Hold a slot.
    pub live: u32,
    /// In the queue.
    pub queued: u32,
    /// Parked.
    pub parked: u32,
    /// Alive with their slot lent.
    pub blocked: u32,
    /// Have answered while descendants are active.
    pub finishing: u32,
    /// Whose last execution ended well.
    pub completed: u32,
    /// Whose last execution failed.
    pub failed: u32,
    /// Whose last execution was stopped.
    pub stopped: u32,
}

/// Why somebody in the queue waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// Admissions are held.
    Paused,
    /// The cap is reached.
    Cap(u32),
    /// The cap of its group is reached.
    Group(String, u32),
    /// None of these: it starts at once, or the daemon as a whole has no slot.
    Daemon,
}

/// A tree.
pub struct Rows {
    tree: TreeStatus,
    rows: HashMap<WorkerId, Row>,
    /// Workers whose lead is none of the rows, in the order of their launch.
    top: Vec<WorkerId>,
    /// Who is queued, in the order of acceptance, which is that of the numbers of executions.
    queue: Vec<(ExecutionId, WorkerId)>,
    counts: RowCounts,
    group_live: BTreeMap<String, u32>,
    /// The rows below each other, with their depth; empty while it is not known.
    order: Vec<(WorkerId, usize)>,
    order_is_known: bool,
    touched: u64,
}

impl Rows {
    /// From a snapshot. `None` when it is of no tree.
    pub fn new(status: StatusReply) -> Option<Self> {
        let tree = status.trees.into_iter().next()?;
        let counts = RowCounts::default();
        let (top, queue, order) = (Vec::new(), Vec::new(), Vec::new());
        let (rows, group_live) = (HashMap::new(), BTreeMap::new());
        let mut all = Self { tree, rows, top, queue, counts, group_live, order, order_is_known: false, touched: 0 };
        for worker in &status.workers {
            all.insert(Row::of(worker));
        }
        Some(all)
    }

    /// What was known of use by then.
    pub fn set_usage(&mut self, usage: &UsageReply) {
        for worker in &usage.workers {
            self.set_usage_of(worker.worker, worker.totals);
        }
    }

    /// What one worker has used, as the daemon says.
    pub fn set_usage_of(&mut self, worker: WorkerId, totals: UsageTotals) {
        if let Some(row) = self.rows.get_mut(&worker) {
            row.usage = totals;
        }
    }

    /// What the daemon says of one worker that events do not tell: its process.
    pub fn set_process_of(&mut self, worker: &WorkerStatus) {
        if let Some(row) = self.rows.get_mut(&worker.worker).filter(|row| row.execution == worker.execution) {
            row.pid = worker.pid;
        }
    }

    /// The tree: its settings and times. Its counts are [`Rows::counts`].
    pub fn tree(&self) -> &TreeStatus {
        &self.tree
    }

    /// How many are where.
    pub fn counts(&self) -> RowCounts {
        self.counts
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One worker.
    pub fn get(&self, worker: WorkerId) -> Option<&Row> {
        self.rows.get(&worker)
    }

    /// Whether anything of it has not ended.
    pub fn is_active(&self) -> bool {
        self.counts.active > 0
    }

    /// All, each below its lead, with how many are above it.
    pub fn order(&mut self) -> &[(WorkerId, usize)] {
        if !self.order_is_known {
            let mut open: Vec<(WorkerId, usize)> = self.top.iter().rev().map(|id| (*id, 0)).collect();
            self.order.clear();
            while let Some((id, depth)) = open.pop() {
                self.order.push((id, depth));
                let below = self.rows.get(&id).map(|row| row.children.as_slice()).unwrap_or_default();
                open.extend(below.iter().rev().map(|child| (*child, depth + 1)));
            }
            self.order_is_known = true;
        }
        &self.order
    }

    /// The place in the queue, from 1.
    pub fn place(&self, worker: WorkerId) -> Option<usize> {
        let row = self.rows.get(&worker)?;
        self.queue.binary_search(&(row.execution, worker)).ok().map(|index| index + 1)
    }

    /// Why a worker in the queue waits.
    pub fn held(&self, row: &Row) -> Held {
        let progress = &self.tree.progress;
        if progress.paused {
            return Held::Paused;
        }
        if self.counts.live >= progress.cap {
            return Held::Cap(progress.cap);
        }
        let group = row.group.as_ref().and_then(|group| Some((group, *self.tree.group_caps.get(group)?)));
        match group {
            Some((group, cap)) if self.group_live.get(group).copied().unwrap_or(0) >= cap => Held::Group(group.clone(), cap),
            Some(_) | None => Held::Daemon,
        }
    }

    /// Children that have not ended, the first few of them.
    pub fn active_children(&self, row: &Row, most: usize) -> Vec<&Row> {
        row.children.iter().filter_map(|child| self.rows.get(child)).filter(|child| !child.has_ended()).take(most).collect()
    }

    /// How many below a worker have not ended.
    pub fn active_below(&self, worker: WorkerId) -> usize {
        let mut open = vec![worker];
        let mut found = 0;
        while let Some(row) = open.pop().and_then(|id| self.rows.get(&id)) {
            let active = row.children.iter().filter(|child| self.rows.get(child).is_some_and(|child| !child.has_ended()));
            let before = open.len();
            open.extend(active);
            found += open.len() - before;
        }
        found
    }

    /// Of those that run and wait for nobody, the one that began first.
    pub fn longest_running(&self) -> Option<&Row> {
        let runs = |row: &&Row| row.state() == WorkerState::Running && row.active_children == 0 && row.started_at_ms.is_some();
        self.rows.values().filter(runs).min_by_key(|row| (row.started_at_ms, row.worker))
    }

    /// How many rows all events so far have touched: the measure of what they cost.
    pub fn touched(&self) -> u64 {
        self.touched
    }

    fn insert(&mut self, row: Row) {
        let (id, lead) = (row.worker, row.lead);
        self.order_is_known = false;
        self.rows.insert(id, row);
        self.sit(id, lead);
        self.stand_in(id);
    }

    /// Below its lead, in the order of launch.
    fn sit(&mut self, id: WorkerId, lead: Option<WorkerId>) {
        let places = self.seats(lead);
        if let Err(place) = places.binary_search(&id) {
            places.insert(place, id);
        }
        let active = self.rows.get(&id).is_some_and(|row| !row.has_ended());
        if active && let Some(lead) = lead.and_then(|lead| self.rows.get_mut(&lead)) {
            lead.active_children += 1;
        }
    }

    fn seats(&mut self, lead: Option<WorkerId>) -> &mut Vec<WorkerId> {
        match lead.and_then(|lead| self.rows.get_mut(&lead)) {
            Some(lead) => &mut lead.children,
            None => &mut self.top,
        }
    }

    /// Counts a row as it stands.
    fn stand_in(&mut self, id: WorkerId) {
        self.count(id, 1);
    }

    /// Counts it no more.
    fn stand_out(&mut self, id: WorkerId) {
        self.count(id, -1);
    }

    fn count(&mut self, id: WorkerId, by: i32) {
        let Some(row) = self.rows.get(&id) else { return };
        let add = |count: &mut u32| *count = count.saturating_add_signed(by);
        if !row.has_ended() {
            add(&mut self.counts.active);
        }
        if row.slot {
            add(&mut self.counts.live);
            if let Some(group) = &row.group {
                add(self.group_live.entry(group.clone()).or_default());
            }
        }
        match &row.outcome {
            Some(Outcome::Completed | Outcome::WrappedUp) => add(&mut self.counts.completed),
            Some(Outcome::Failed(_) | Outcome::Aborted { .. }) => add(&mut self.counts.failed),
            Some(Outcome::Stopped) => add(&mut self.counts.stopped),
            None => {}
        }
        let entry = (row.execution, id);
        match (row.state(), self.queue.binary_search(&entry)) {
            (WorkerState::Queued, found) => {
                add(&mut self.counts.queued);
                match found {
                    Ok(place) if by < 0 => drop(self.queue.remove(place)),
                    Err(place) if by > 0 => self.queue.insert(place, entry),
                    Ok(_) | Err(_) => {}
                }
            }
            (WorkerState::Parked | WorkerState::WakeReady, _) => add(&mut self.counts.parked),
            (WorkerState::Blocked, _) => add(&mut self.counts.blocked),
            (WorkerState::Finishing, _) => add(&mut self.counts.finishing),
            (
                WorkerState::Starting
                | WorkerState::Running
                | WorkerState::Waiting
                | WorkerState::Parking
                | WorkerState::Waking
                | WorkerState::Stopping
                | WorkerState::Ended,
                _,
            ) => {}
        }
    }
}
