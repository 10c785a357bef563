//! A second book-keeping, from the committed events alone: who owns whom, what was reserved, who queued before whom, who ended.
//!
//! It shares no code with the core's state, so that a fault of the one shows against the other.

mod queue;
mod spoken;
mod stream;

use std::collections::{BTreeMap, BTreeSet};

use roost_core::event::{Event, Grant, Owner, Record, Runner, Spoken as Said};
use roost_core::state::State;
use roost_proto::id::{Epoch, ExecutionId, MessageId, TreeId, WorkerId};
use roost_proto::outcome::{Failure, Outcome};

use super::Checked;
use spoken::{Item, Spoken};

#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) tree: TreeId,
    pub(crate) owner: Owner,
    /// Who launched it: its budget stays there, whoever adopts it.
    launcher: Owner,
    group: Option<u16>,
    /// The highest allowance that it ever had.
    high: u64,
    epoch: Epoch,
    started: bool,
    parked: bool,
    /// It holds a slot.
    slot: bool,
    /// Its start failed and is tried again: there is no process.
    deferred: bool,
    /// It is being ended.
    stopping: bool,
    pub(crate) outcome: Option<Outcome>,
    /// What its last turn has come to.
    answered: Option<Outcome>,
    execution: ExecutionId,
    /// Its executions before that, and how they ended.
    past: Vec<(ExecutionId, Outcome)>,
    /// The process that is being started is handed the items up to this one.
    wakes: Option<u64>,
    /// It is ready to have a slot back; how many starts went before it while its group had room.
    ready: Option<u64>,
    /// Its place in the queue when it was accepted.
    place: usize,
    /// It got its slot in the step that accepted it.
    at_once: bool,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) workers: BTreeMap<WorkerId, Known>,
    /// Limit and what was reserved from it.
    ledgers: BTreeMap<(TreeId, Owner), (u64, u64)>,
    /// The caps of the groups of each tree.
    groups: BTreeMap<TreeId, Vec<u32>>,
    /// How many starts may pass over who is ready, in each tree.
    bypasses: BTreeMap<TreeId, u64>,
    /// Trees in which orphans are adopted.
    adopting: BTreeSet<TreeId>,
    spoken: Spoken,
}

impl Model {
    pub(crate) fn children_of(&self, owner: Owner, tree: Option<TreeId>) -> BTreeSet<WorkerId> {
        self.workers.iter().filter(|(_, known)| Some(known.tree) == tree && known.owner == owner).map(|(worker, _)| *worker).collect()
    }

    /// The budget of a worker, and what it reserved of it.
    pub(crate) fn ledger(&self, worker: WorkerId) -> (u64, u64) {
        let tree = self.workers.get(&worker).map(|known| known.tree);
        tree.and_then(|tree| self.ledgers.get(&(tree, Owner::Worker(worker)))).copied().unwrap_or_default()
    }

    /// Whether this end is told to nobody.
    pub(crate) fn is_silent(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Stopped | Outcome::Failed(Failure::ParentFailed))
    }

    /// Whether the end of this execution was told.
    pub(crate) fn is_told(&self, execution: ExecutionId) -> bool {
        self.spoken.told.contains(&execution)
    }

    /// The numbers of what is owed to this one.
    pub(crate) fn owed(&self, tree: TreeId, owner: Owner) -> Vec<u64> {
        self.spoken.boxes.get(&(tree, owner)).map(|of| of.items.keys().copied().collect()).unwrap_or_default()
    }

    /// The children that this owner launched itself, that are still its own, and whose end must have been told.
    pub(crate) fn tellable(&self, owner: Owner, tree: Option<TreeId>) -> Vec<(ExecutionId, Option<&Outcome>)> {
        let own = |known: &&Known| Some(known.tree) == tree && known.owner == owner && known.launcher == owner;
        let of = self.workers.iter().filter(|(_, known)| own(known));
        let current = of.clone().map(|(_, known)| (known.execution, known.outcome.as_ref()));
        let past = of.flat_map(|(_, known)| known.past.iter().map(|(execution, outcome)| (*execution, Some(outcome))));
        current.chain(past).filter(|(_, outcome)| !outcome.is_some_and(Self::is_silent)).collect()
    }

    /// The executions of a worker, oldest first.
    pub(crate) fn executions(&self, worker: WorkerId) -> Vec<ExecutionId> {
        let known = self.workers.get(&worker);
        let past = known.into_iter().flat_map(|known| known.past.iter().map(|(execution, _)| *execution));
        past.chain(known.map(|known| known.execution)).collect()
    }

    fn worker(&mut self, worker: WorkerId) -> Checked<&mut Known> {
        self.workers.get_mut(&worker).ok_or_else(|| format!("an event of {worker}, whom nobody launched"))
    }

    pub(crate) fn observe(&mut self, record: &Record) -> Checked {
        match &record.event {
            Event::TreeOpened(opened) => {
                self.ledgers.insert((opened.tree, Owner::Root), (opened.settings.budget, 0));
                if opened.settings.adopt_orphans {
                    self.adopting.insert(opened.tree);
                }
                self.bypasses.insert(opened.tree, opened.settings.timing.wake_bypass);
                self.groups.insert(opened.tree, opened.settings.group_caps.iter().map(|(_, cap)| *cap).collect());
            }
            Event::JobAccepted(job) => {
                if let Owner::Worker(lead) = job.owner
                    && self.worker(lead)?.stopping
                {
                    return Err(format!("{lead} launches while it is being stopped (I13)"));
                }
                let cost: u64 = job.tasks.iter().map(|task| 1 + task.allowance).sum();
                let (limit, reserved) = self.ledgers.entry((job.tree, job.owner)).or_default();
                *reserved += cost;
                if reserved > limit {
                    return Err(format!("{:?} has reserved more than its budget (I11)", job.owner));
                }
                let waits = |known: &&Known| known.tree == job.tree && !known.started && known.outcome.is_none();
                let queued = self.workers.values().filter(waits).count();
                for (place, task) in (queued + 1..).zip(&job.tasks) {
                    self.ledgers.insert((job.tree, Owner::Worker(task.worker)), (task.allowance, 0));
                    let known = Known {
                        name: task.name.clone(),
                        tree: job.tree,
                        owner: job.owner,
                        launcher: job.owner,
                        group: task.group,
                        high: task.allowance,
                        epoch: Epoch(0),
                        started: false,
                        parked: false,
                        slot: false,
                        deferred: false,
                        stopping: false,
                        outcome: None,
                        answered: None,
                        execution: task.execution,
                        past: Vec::new(),
                        wakes: None,
                        ready: None,
                        place,
                        at_once: false,
                    };
                    self.workers.insert(task.worker, known);
                    if task.runner == Runner::Worker {
                        self.push(job.tree, Owner::Worker(task.worker), Item::Task);
                    } else {
                        self.spoken.plain.insert(task.worker);
                    }
                }
            }
            Event::SlotTaken { worker, epoch, grant, at_once } => {
                self.granted(*worker, *epoch, *grant)?;
                if matches!(grant, Grant::FinalWake | Grant::EarlyWake) {
                    self.hands_over(*worker);
                }
                self.worker(*worker)?.at_once |= *at_once;
            }
            Event::WaitOver { worker } => {
                let known = self.worker(*worker)?;
                known.ready = (!known.slot).then_some(0);
            }
            Event::StartDeferred { worker, .. } => self.worker(*worker)?.deferred = true,
            Event::StartRetried { worker, epoch } => {
                let known = self.worker(*worker)?;
                known.epoch = *epoch;
                known.deferred = false;
                if known.wakes.is_some() {
                    self.hands_over(*worker);
                }
            }
            Event::SlotLent { worker } => self.worker(*worker)?.slot = false,
            Event::SlotRetaken { worker } => {
                let known = self.worker(*worker)?;
                known.slot = true;
                known.ready = None;
            }
            Event::StopAsked { worker, .. } => self.stop_asked(*worker)?,
            Event::Parked { worker, .. } => {
                let known = self.worker(*worker)?;
                if known.stopping {
                    return Err(format!("{worker} parks after it was stopped (I13)"));
                }
                known.parked = true;
            }
            Event::SlotFreed { worker, .. } => {
                let known = self.worker(*worker)?;
                known.slot = false;
                known.ready = None;
                self.note_ready(Owner::Worker(*worker));
            }
            Event::Spoken(spoken) => {
                if let Said::WordsSent { tree, from, to, sent, .. } = &**spoken {
                    self.words_sent(*tree, *from, *to, *sent, MessageId(record.seq))?;
                }
                self.spoken(spoken)?;
            }
            Event::Reowned { worker, owner } => self.reowned(*worker, *owner)?,
            Event::Ended { worker, outcome } => self.ended(*worker, outcome)?,
            Event::ProcessStarted { worker, .. } => self.handed_over(*worker)?,
            Event::Consumed { tree, owner, workers, earlier, .. } => self.consumed(*tree, *owner, workers, earlier),
            Event::Blocked { .. }
            | Event::Resumed { .. }
            | Event::ParkAsked { .. }
            | Event::ParkCancelled { .. }
            | Event::MainExited { .. }
            | Event::KillSent { .. }
            | Event::Finishing { .. }
            | Event::CapSet { .. }
            | Event::PauseSet { .. }
            | Event::Interrupted { .. }
            | Event::TreeClosed { .. }
            | Event::TreeForgotten { .. } => {}
        }
        Ok(())
    }

    fn granted(&mut self, worker: WorkerId, epoch: Epoch, grant: Grant) -> Checked {
        if grant == Grant::Start {
            self.passes_over(worker)?;
        }
        let known = self.worker(worker)?;
        let (tree, group) = (known.tree, known.group);
        if known.outcome.is_some() || (known.stopping && grant != Grant::Return) {
            return Err(format!("{worker} has ended, or is being stopped, and is granted a slot (I6, I13)"));
        }
        known.slot = true;
        known.deferred = false;
        if grant != Grant::Return && epoch.0 != known.epoch.0 + 1 {
            return Err(format!("{worker}: incarnation {epoch} follows on {} (I5)", known.epoch));
        }
        known.epoch = epoch;
        known.parked = false;
        known.ready = None;
        match grant {
            Grant::Start => {
                known.started = true;
                let execution = known.execution;
                let earlier = |(_, other): &(&WorkerId, &Known)| {
                    other.execution < execution && other.tree == tree && other.group == group && !other.started && other.outcome.is_none()
                };
                if let Some((first, _)) = self.workers.iter().find(earlier) {
                    return Err(format!("{worker} starts before {first}, who queued earlier (I4)"));
                }
            }
            Grant::FinalWake | Grant::EarlyWake | Grant::Return => {}
        }
        Ok(())
    }

    fn ended(&mut self, worker: WorkerId, outcome: &Outcome) -> Checked {
        let active = self.workers.iter().find(|(_, other)| other.owner == Owner::Worker(worker) && other.outcome.is_none());
        if let Some((child, _)) = active {
            return Err(format!("{worker} ends while its child {child} is active (I7)"));
        }
        let known = self.worker(worker)?;
        if known.outcome.is_some() {
            return Err(format!("{worker} ends twice (I6)"));
        }
        if let Some(answered) = known.answered.as_ref().filter(|answered| *answered != outcome) {
            return Err(format!("{worker} came to {answered:?} by its last turn, and ends as {outcome:?}"));
        }
        known.outcome = Some(outcome.clone());
        let (owner, tree, execution) = (known.owner, known.tree, known.execution);
        self.unread(worker, tree, owner)?;
        if !Self::is_silent(outcome) {
            self.push(tree, owner, Item::End(execution));
        }
        self.note_ready(owner);
        Ok(())
    }

    /// A worker is being ended. That everything below it is as well is looked at in [`Model::compare`], when the step is whole.
    fn stop_asked(&mut self, worker: WorkerId) -> Checked {
        let known = self.worker(worker)?;
        known.stopping = true;
        if known.parked {
            // It does not wake any more. Whoever is alive and waits for its slot still goes on.
            known.ready = None;
        }
        if known.deferred {
            known.slot = false;
        }
        Ok(())
    }

    /// A parked worker without active children has been ready since now.
    fn note_ready(&mut self, owner: Owner) {
        let Owner::Worker(lead) = owner else { return };
        let active = self.workers.values().any(|other| other.owner == owner && other.outcome.is_none());
        if let Some(known) = self.workers.get_mut(&lead).filter(|known| known.parked && !known.slot && !known.stopping && !active) {
            known.ready = Some(0);
        }
    }

    /// The core's state agrees with this one.
    pub(crate) fn compare(&self, state: &State) -> Checked {
        self.compare_spoken(state)?;
        for ((tree, owner), (limit, reserved)) in &self.ledgers {
            let Some(lead) = state.lead(*tree, *owner) else { continue };
            let ledger = (lead.ledger.limit(), lead.ledger.remaining());
            if ledger != (*limit, limit - reserved) {
                return Err(format!("{owner:?}: budget {ledger:?}, reserved {reserved} of {limit} (I11)"));
            }
        }
        for (id, known) in &self.workers {
            let Some(worker) = state.workers.get(id) else { continue };
            if worker.slot != known.slot {
                return Err(format!("{id} holds a slot otherwise than recorded (I2): {:?}", worker.phase));
            }
            if let Owner::Worker(lead) = known.owner
                && known.outcome.is_none()
                && !known.stopping
                && self.workers.get(&lead).is_some_and(|lead| lead.stopping && lead.outcome.is_none())
                && !self.adopting.contains(&known.tree)
            {
                return Err(format!("{id} goes on while its lead {lead} is being stopped (I13)"));
            }
            if worker.owner != known.owner || worker.has_ended() != known.outcome.is_some() {
                return Err(format!("{id} is owned or ended otherwise than recorded (I6, I12)"));
            }
        }
        Ok(())
    }
}
