//! The meaning of every event. An event that does not fit the state is an error: the journal is checked while it is read.

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::{Epoch, TreeId, WorkerId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_proto::outcome::{Failure, Outcome};

use crate::event::{AcceptedTask, Event, Grant, JobAccepted, Owner, Record, TreeOpened};
use crate::limits::SETTLE_TO_EXIT_MS;
use crate::state::budget::Ledger;
use crate::state::outbox::Outbox;
use crate::state::seat::Standing;
use crate::state::tree::{Counts, Lane, Tree};
use crate::state::worker::{Answered, Phase, Seat, Starting, Stop, Worker};
use crate::state::{Job, State, names};
use crate::time::Now;

/// How many answered waits of one lead are remembered.
const ANSWERED_MAX: usize = 8;

/// An event that cannot have happened in this state: a damaged journal, or a fault of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} cannot follow on what is before it: {why}: {event:?}")]
pub struct IllegalEvent {
    /// Its number.
    pub seq: u64,
    /// What is wrong.
    pub why: &'static str,
    /// The event.
    pub event: Box<Event>,
}

type Applied = Result<(), &'static str>;

impl State {
    /// Lets one event happen.
    pub fn apply(&mut self, record: &Record) -> Result<(), IllegalEvent> {
        let done = if record.seq == self.seq + 1 { self.happen(&record.event, record.at) } else { Err("its number is out of order") };
        done.map_err(|why| IllegalEvent { seq: record.seq, why, event: Box::new(record.event.clone()) })?;
        self.seq = record.seq;
        Ok(())
    }

    fn happen(&mut self, event: &Event, at: Now) -> Applied {
        match event {
            Event::TreeOpened(opened) => self.tree_opened(opened, at),
            Event::JobAccepted(job) => self.job_accepted(job, at),
            Event::CapSet { tree, cap } => self.on_tree(*tree, at, |tree| tree.settings.cap = *cap),
            Event::PauseSet { tree, paused } => self.on_tree(*tree, at, |tree| tree.paused = *paused),
            Event::Interrupted { tree, generation } => self.on_tree(*tree, at, |tree| tree.generation = *generation),
            Event::TreeClosed { tree } => self.tree_closed(*tree, at),
            Event::TreeForgotten { tree } => self.tree_forgotten(*tree),
            Event::Consumed { tree, owner, request_id, workers } => self.consumed(*tree, *owner, request_id.as_deref(), workers),
            Event::Reowned { worker, owner } => self.reowned(*worker, *owner, at),
            Event::Ended { worker, outcome } => self.ended(*worker, outcome, at),
            Event::SlotTaken { worker, epoch, grant, at_once } => self.slot_taken(*worker, *epoch, *grant, *at_once, at),
            Event::ProcessStarted { worker, process } => self.on_worker(*worker, at, |w| w.process_started(*process, at)),
            Event::StartDeferred { worker, again_at, reason: _ } => self.on_worker(*worker, at, |w| {
                let Phase::Starting(Starting { wake, again_at: None, tries }) = w.phase else { return Err("it is not being started") };
                w.pass(Phase::Starting(Starting { wake, again_at: Some(*again_at), tries: tries + 1 }), |_, slot| slot)
            }),
            Event::StartRetried { worker, epoch } => self.on_worker(*worker, at, |w| w.start_retried(*epoch)),
            Event::Blocked { worker } => self.on_worker(*worker, at, |w| {
                w.pass(Phase::Blocked { since: at.mono, over: None }, |phase, slot| slot && *phase == Phase::Running)
            }),
            Event::SlotLent { worker } => self.on_worker(*worker, at, |w| {
                if w.slot && matches!(w.phase, Phase::Blocked { over: None, .. }) {
                    w.slot = false;
                    Ok(())
                } else {
                    Err("it has no slot to lend")
                }
            }),
            Event::WaitOver { worker } => {
                let admissions = self.workers.get(worker).and_then(|w| self.trees.get(&w.tree)).map_or(0, |tree| tree.admissions);
                self.on_worker(*worker, at, |w| w.wait_over(at, admissions))
            }
            Event::SlotRetaken { worker } => self.on_worker(*worker, at, |w| {
                w.pass(Phase::Running, |phase, slot| !slot && matches!(phase, Phase::Blocked { .. }))?;
                w.slot = true;
                Ok(())
            }),
            Event::Settled { worker, context } => self.on_worker(*worker, at, |w| {
                w.context = Some(*context);
                w.owed_turn = false;
                w.pass(Phase::Waiting { since: at.mono, not_before: at.mono }, |phase, slot| slot && *phase == Phase::Running)
            }),
            Event::Resumed { worker } => self.on_worker(*worker, at, |w| {
                w.owed_turn = true;
                w.pass(Phase::Running, |phase, _| matches!(phase, Phase::Waiting { .. } | Phase::ParkAsked { .. }))
            }),
            Event::Delivered { worker, last } => self.on_worker(*worker, at, |w| {
                w.outbox.take_to(*last);
                w.owed_turn = false;
                Ok(())
            }),
            Event::ParkAsked { worker, deadline } => self.on_worker(*worker, at, |w| {
                let Phase::Waiting { since, .. } = w.phase else { return Err("it has not settled") };
                w.pass(Phase::ParkAsked { since, deadline: *deadline }, |_, slot| slot)
            }),
            Event::ParkCancelled { worker, not_before } => self.on_worker(*worker, at, |w| {
                let Phase::ParkAsked { since, .. } = w.phase else { return Err("it was not asked to park") };
                w.pass(Phase::Waiting { since, not_before: *not_before }, |_, slot| slot)
            }),
            Event::Parked { worker, context } => self.on_worker(*worker, at, |w| {
                w.context = Some(*context);
                w.pass(Phase::Leaving { kill_at: at.mono + SETTLE_TO_EXIT_MS, killed: false }, |phase, _| {
                    matches!(phase, Phase::Running | Phase::Blocked { .. } | Phase::Waiting { .. } | Phase::ParkAsked { .. })
                })
            }),
            Event::MainExited { worker, status } => self.on_worker(*worker, at, |w| {
                let parked = matches!(w.phase, Phase::Leaving { .. });
                let speaks = w.can_speak();
                w.pass(Phase::Emptying { status: *status, parked }, |_, _| speaks)
            }),
            Event::SlotFreed { worker, status } => self.slot_freed(*worker, *status, at),
            Event::StopAsked { worker, cause, kill_at } => {
                let stop = Stop { cause: *cause, kill_at: *kill_at, killed: false };
                self.on_worker(*worker, at, |w| w.stop_asked(stop))
            }
            Event::KillSent { worker } => self.on_worker(*worker, at, Worker::kill_sent),
            Event::Finishing { worker, outcome } => self.on_worker(*worker, at, |w| {
                let waits = w.active_children > 0;
                w.pass(Phase::Finishing { outcome: outcome.clone() }, |phase, _| waits && matches!(phase, Phase::Gone { .. }))
            }),
        }
    }

    /// Changes one worker and seats it anew.
    fn on_worker(&mut self, id: WorkerId, at: Now, change: impl FnOnce(&mut Worker) -> Applied) -> Applied {
        let worker = self.workers.get_mut(&id).ok_or("there is no such worker")?;
        let before = Standing::of(Some(worker));
        change(worker)?;
        let tree = worker.tree;
        self.reseat(id, before);
        self.on_tree(tree, at, |_| {})
    }

    fn on_tree(&mut self, id: TreeId, at: Now, change: impl FnOnce(&mut Tree)) -> Applied {
        let tree = self.trees.get_mut(&id).ok_or("there is no such tree")?;
        change(tree);
        tree.note_spare(at.mono);
        Ok(())
    }

    fn tree_opened(&mut self, opened: &TreeOpened, at: Now) -> Applied {
        let lane = |cap| Lane { cap, ..Lane::default() };
        let groups = opened.settings.group_caps.iter().map(|(_, cap)| lane(Some(*cap)));
        let tree = Tree {
            id: opened.tree,
            token: opened.token,
            request_id: opened.request_id.clone(),
            key: opened.key.clone(),
            ephemeral: opened.ephemeral,
            ledger: Ledger::new(opened.settings.budget),
            lanes: std::iter::once(lane(None)).chain(groups).collect(),
            settings: opened.settings.clone(),
            paused: false,
            generation: 0,
            opened_at: at,
            closed_at: None,
            outbox: Outbox::default(),
            answered: Answered::default(),
            children: Vec::new(),
            active_children: 0,
            names: BTreeMap::new(),
            workers: BTreeSet::new(),
            made_up: 0,
            counts: Counts::default(),
            admissions: 0,
            spare_since: Some(at.mono),
            victims: BTreeSet::new(),
            stuck: BTreeSet::new(),
            final_wakes: BTreeSet::new(),
            early_wakes: BTreeSet::new(),
        };
        self.open.insert(opened.tree);
        match self.trees.insert(opened.tree, tree) {
            None => Ok(()),
            Some(_) => Err("the tree is there already"),
        }
    }

    fn job_accepted(&mut self, job: &JobAccepted, at: Now) -> Applied {
        let lead = self.lead(job.tree, job.owner).ok_or("its owner is not there")?;
        let depth = lead.child_depth;
        let cost = Ledger::cost(job.tasks.iter().map(|task| task.allowance)).ok_or("its allowances overflow")?;
        let queued = self.trees.get(&job.tree).map_or(0, Tree::queued);
        let place = u32::try_from(queued).unwrap_or(u32::MAX);
        if job.job.0 != self.last_job + 1 {
            return Err("its job is out of order");
        }
        self.last_job = job.job.0;
        for (index, task) in (0_u32..).zip(&job.tasks) {
            if task.worker.0 != self.last_worker + 1 || task.execution.0 != self.last_execution + 1 {
                return Err("its workers are out of order");
            }
            self.last_worker = task.worker.0;
            self.last_execution = task.execution.0;
            let mut worker = new_worker(job, index, task, depth, at);
            worker.place = place.saturating_add(index + 1);
            let tree = self.trees.get_mut(&job.tree).ok_or("there is no such tree")?;
            if tree.names.insert(names::folded(&task.name), task.worker).is_some() {
                return Err("a name is taken");
            }
            tree.workers.insert(task.worker);
            self.executions.insert(task.execution, task.worker);
            self.workers.insert(task.worker, worker);
            self.reseat(task.worker, Standing::of(None));
        }
        let workers: Vec<WorkerId> = job.tasks.iter().map(|task| task.worker).collect();
        self.on_lead(job.tree, job.owner, at, |lead| {
            lead.children.extend(&workers);
            *lead.active_children += u32::try_from(workers.len()).unwrap_or(u32::MAX);
            if lead.ledger.reserve(cost) { Ok(()) } else { Err("the budget does not cover it") }
        })?;
        if let Some(tree) = self.trees.get_mut(&job.tree) {
            tree.made_up += workers.len() as u64;
        }
        let request = Self::request_key(job.tree, job.owner, &job.request_id);
        self.requests.insert(request.clone(), job.job);
        self.jobs.insert(job.job, Job { tree: job.tree, digest: job.digest, request, workers });
        Ok(())
    }

    fn slot_taken(&mut self, id: WorkerId, epoch: Epoch, grant: Grant, at_once: bool, at: Now) -> Applied {
        let tree = self.workers.get(&id).ok_or("there is no such worker")?.tree;
        self.on_worker(id, at, |w| w.slot_taken(epoch, grant, at_once))?;
        self.grants += 1;
        self.last_grant.insert(tree, self.grants);
        self.on_tree(tree, at, |tree| tree.admissions += 1)
    }

    fn slot_freed(&mut self, id: WorkerId, status: ExitStatus, at: Now) -> Applied {
        let worker = self.workers.get(&id).ok_or("there is no such worker")?;
        let admissions = self.trees.get(&worker.tree).map_or(0, |tree| tree.admissions);
        self.on_worker(id, at, |w| {
            let parked = matches!(w.phase, Phase::Leaving { .. } | Phase::Emptying { parked: true, .. });
            if !w.has_process() {
                return Err("it has no process");
            }
            w.slot = false;
            w.process = None;
            w.owed_turn = false;
            w.phase = if parked && w.stop.is_none() {
                Phase::Parked { since: at.mono, ready: None }
            } else {
                Phase::Gone { status: Some(status) }
            };
            w.note_ready(at, admissions);
            Ok(())
        })
    }

    fn ended(&mut self, id: WorkerId, outcome: &Outcome, at: Now) -> Applied {
        let mut lead = None;
        self.on_worker(id, at, |w| {
            lead = Some((w.tree, w.owner));
            w.ended_at = Some(at);
            w.outbox = Outbox::default();
            w.answered = Answered::default();
            let alone = w.active_children == 0;
            w.pass(Phase::Ended { outcome: outcome.clone() }, |phase, _| {
                alone && matches!(phase, Phase::Gone { .. } | Phase::Finishing { .. })
            })
        })?;
        let (tree, owner) = lead.ok_or("it has no lead")?;
        let silent = matches!(outcome, Outcome::Stopped | Outcome::Failed(Failure::ParentFailed));
        self.on_lead(tree, owner, at, |lead| {
            *lead.active_children = lead.active_children.checked_sub(1).ok_or("its lead has no active child")?;
            if !silent {
                lead.outbox.push(id);
            }
            Ok(())
        })
    }

    fn reowned(&mut self, id: WorkerId, owner: Owner, at: Now) -> Applied {
        let worker = self.workers.get(&id).ok_or("there is no such worker")?;
        let (tree, old) = (worker.tree, worker.owner);
        self.on_lead(tree, old, at, |lead| {
            lead.children.retain(|child| *child != id);
            *lead.active_children = lead.active_children.checked_sub(1).ok_or("its lead has no active child")?;
            Ok(())
        })?;
        self.on_worker(id, at, |w| {
            w.owner = owner;
            Ok(())
        })?;
        self.on_lead(tree, owner, at, |lead| {
            lead.children.push(id);
            *lead.active_children += 1;
            Ok(())
        })
    }

    fn consumed(&mut self, tree: TreeId, owner: Owner, request: Option<&str>, workers: &[WorkerId]) -> Applied {
        let (outbox, answered) = match owner {
            Owner::Root => self.trees.get_mut(&tree).map(|tree| (&mut tree.outbox, &mut tree.answered)),
            Owner::Worker(lead) => self.workers.get_mut(&lead).map(|lead| (&mut lead.outbox, &mut lead.answered)),
        }
        .ok_or("there is no such lead")?;
        for worker in workers {
            outbox.take(*worker);
        }
        if let Some(request) = request {
            if answered.len() == ANSWERED_MAX {
                answered.pop_front();
            }
            answered.push_back((request.to_owned(), workers.to_vec()));
        }
        Ok(())
    }

    fn tree_closed(&mut self, id: TreeId, at: Now) -> Applied {
        if !self.open.remove(&id) {
            return Err("the tree is not open");
        }
        self.closed.insert((at.mono, id));
        self.on_tree(id, at, |tree| tree.closed_at = Some(at))?;
        self.closed_workers += self.trees.get(&id).map_or(0, |tree| tree.workers.len());
        Ok(())
    }

    fn tree_forgotten(&mut self, id: TreeId) -> Applied {
        let tree = self.trees.remove(&id).ok_or("there is no such tree")?;
        let closed = tree.closed_at.ok_or("the tree is open")?;
        self.closed.remove(&(closed.mono, id));
        self.closed_workers -= tree.workers.len();
        self.last_grant.remove(&id);
        for worker in tree.workers.iter().filter_map(|worker| self.workers.remove(worker)) {
            if !worker.has_ended() {
                return Err("it has active workers");
            }
            self.executions.remove(&worker.execution);
            if let Some(job) = self.jobs.remove(&worker.job) {
                self.requests.remove(&job.request);
            }
        }
        Ok(())
    }

    /// Changes what a lead owns, whether it is the root or a worker; a parked one may have become ready to wake.
    fn on_lead(&mut self, tree: TreeId, owner: Owner, at: Now, change: impl FnOnce(&mut Owned<'_>) -> Applied) -> Applied {
        let tree = self.trees.get_mut(&tree).ok_or("there is no such tree")?;
        let lead = match owner {
            Owner::Root => {
                return change(&mut Owned {
                    ledger: &mut tree.ledger,
                    outbox: &mut tree.outbox,
                    children: &mut tree.children,
                    active_children: &mut tree.active_children,
                });
            }
            Owner::Worker(lead) => lead,
        };
        let admissions = tree.admissions;
        self.on_worker(lead, at, |w| {
            change(&mut Owned {
                ledger: &mut w.ledger,
                outbox: &mut w.outbox,
                children: &mut w.children,
                active_children: &mut w.active_children,
            })?;
            w.note_ready(at, admissions);
            Ok(())
        })
    }
}

/// What a lead owns, to change it.
struct Owned<'a> {
    ledger: &'a mut Ledger,
    outbox: &'a mut Outbox,
    children: &'a mut Vec<WorkerId>,
    active_children: &'a mut u32,
}

fn new_worker(job: &JobAccepted, index: u32, task: &AcceptedTask, depth: u32, at: Now) -> Worker {
    Worker {
        id: task.worker,
        tree: job.tree,
        owner: job.owner,
        name: task.name.as_str().into(),
        token: task.token,
        job: job.job,
        task_index: index,
        execution: task.execution,
        depth,
        group: task.group,
        ledger: Ledger::new(task.allowance),
        children: Vec::new(),
        active_children: 0,
        outbox: Outbox::default(),
        answered: Answered::default(),
        phase: Phase::Queued,
        slot: false,
        epoch: Epoch(0),
        process: None,
        stop: None,
        context: None,
        owed_turn: false,
        timeout_ms: task.timeout_ms,
        timeout_at: None,
        place: 0,
        at_once: false,
        accepted_at: at,
        started_at: None,
        ended_at: None,
        seat: Seat::None,
    }
}

impl Worker {
    /// Goes to another phase if that is legal from this one.
    fn pass(&mut self, to: Phase, legal: impl FnOnce(&Phase, bool) -> bool) -> Applied {
        if !legal(&self.phase, self.slot) {
            return Err("its worker is in another phase");
        }
        self.phase = to;
        Ok(())
    }

    fn slot_taken(&mut self, epoch: Epoch, grant: Grant, at_once: bool) -> Applied {
        let next = Epoch(self.epoch.0 + 1);
        let wake = Starting { wake: Some(self.outbox.last_seq()), again_at: None, tries: 0 };
        match (grant, &self.phase) {
            (Grant::Start, Phase::Queued) if epoch == next => {
                self.at_once = at_once;
                self.phase = Phase::Starting(Starting { wake: None, ..wake });
            }
            (Grant::FinalWake | Grant::EarlyWake, Phase::Parked { ready: Some(_), .. }) if epoch == next => {
                self.phase = Phase::Starting(wake);
            }
            (Grant::Return, Phase::Blocked { over: Some(_), .. }) if epoch == self.epoch && !self.slot => self.phase = Phase::Running,
            _ => return Err("the grant does not fit its worker"),
        }
        self.epoch = epoch;
        self.slot = true;
        Ok(())
    }

    fn wait_over(&mut self, at: Now, admissions: u64) -> Applied {
        let Phase::Blocked { since, over: None } = self.phase else { return Err("it does not wait") };
        self.phase = if self.slot { Phase::Running } else { Phase::Blocked { since, over: Some((at.mono, admissions)) } };
        Ok(())
    }

    fn process_started(&mut self, process: ProcessIdentity, at: Now) -> Applied {
        let Phase::Starting(Starting { wake, again_at: None, .. }) = self.phase else { return Err("it is not being started") };
        // The items were on the standard input of this very process: it has taken them in.
        if let Some(last) = wake {
            self.outbox.take_to(last);
        }
        self.process = Some(process);
        self.phase = Phase::Running;
        if self.started_at.is_none() {
            self.started_at = Some(at);
            self.timeout_at = self.timeout_ms.map(|timeout| at.mono + timeout);
        }
        Ok(())
    }

    fn start_retried(&mut self, epoch: Epoch) -> Applied {
        let newest = self.outbox.last_seq();
        let Phase::Starting(Starting { wake, again_at: again @ Some(_), .. }) = &mut self.phase else { return Err("no further try is due") };
        if epoch.0 != self.epoch.0 + 1 {
            return Err("its incarnations are out of order");
        }
        *again = None;
        *wake = wake.map(|_| newest);
        self.epoch = epoch;
        Ok(())
    }

    fn stop_asked(&mut self, stop: Stop) -> Applied {
        if self.has_ended() || self.stop.is_some() {
            return Err("it is being ended already");
        }
        if self.has_process() {
            self.stop = Some(stop);
        } else {
            // Where there is no process the stop is done with this very record, so that nothing can be admitted in between.
            self.stop = Some(Stop { killed: true, ..stop });
            self.phase = Phase::Gone { status: None };
            self.slot = false;
        }
        Ok(())
    }

    fn kill_sent(&mut self) -> Applied {
        match (&mut self.stop, &mut self.phase) {
            (Some(stop), _) if !stop.killed => stop.killed = true,
            (_, Phase::Leaving { killed, .. }) if !*killed => *killed = true,
            _ => return Err("it is not being ended"),
        }
        Ok(())
    }

    /// A parked worker becomes ready to wake by state alone: something is owed to it, or nothing below it is active.
    fn note_ready(&mut self, at: Now, admissions: u64) {
        let settled = self.active_children == 0;
        let owed = !self.outbox.is_empty();
        if let Phase::Parked { ready, .. } = &mut self.phase
            && (settled || (owed && ready.is_none()))
        {
            *ready = Some((at.mono, admissions));
        }
    }
}
