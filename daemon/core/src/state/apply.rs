//! The meaning of every event. An event that does not fit the state is an error: the journal is checked while it is read.

use roost_proto::id::{Epoch, ExecutionId, TreeId, WorkerId};
use roost_proto::limits::{INTERRUPTS_REMEMBERED_MAX, WAITS_REMEMBERED_MAX};
use roost_proto::link::{ExitStatus, ProcessIdentity};

use crate::event::{Context, Event, Grant, Owner, Record};
use crate::state::State;
use crate::state::seat::Standing;
use crate::state::speech::Held;
use crate::state::tree::Tree;
use crate::state::worker::{Phase, Stop, Worker};
use crate::step::tree_of;
use crate::stream;
use crate::time::Now;

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

/// What letting something happen comes to.
pub(super) type Applied = Result<(), &'static str>;

impl State {
    /// Lets one event happen.
    pub fn apply(&mut self, record: &Record) -> Result<(), IllegalEvent> {
        let done =
            if record.seq == self.seq + 1 { self.happen(&record.event, record.seq, record.at) } else { Err("its number is out of order") };
        done.map_err(|why| IllegalEvent { seq: record.seq, why, event: Box::new(record.event.clone()) })?;
        self.seq = record.seq;
        let told = stream::count(self, &record.event);
        if told > 0
            && let Some(tree) = tree_of(self, &record.event).and_then(|tree| self.trees.get_mut(&tree))
        {
            tree.events += told;
        }
        Ok(())
    }

    fn happen(&mut self, event: &Event, seq: u64, at: Now) -> Applied {
        match event {
            Event::TreeOpened(opened) => self.tree_opened(opened, at),
            Event::JobAccepted(job) => self.job_accepted(job, at),
            Event::CapSet { tree, cap } => self.on_tree(*tree, at, |tree| tree.settings.cap = *cap),
            Event::PauseSet { tree, paused } => self.on_tree(*tree, at, |tree| tree.paused = *paused),
            Event::Interrupted { tree, generation, asked } => self.on_tree(*tree, at, |tree| {
                tree.generation = *generation;
                if asked.is_some() && tree.interrupted.len() == INTERRUPTS_REMEMBERED_MAX {
                    tree.interrupted.pop_front();
                }
                tree.interrupted.extend(asked.clone());
            }),
            Event::TreeClosed { tree } => self.tree_closed(*tree, at),
            Event::TreeForgotten { tree } => self.tree_forgotten(*tree),
            Event::Consumed { tree, owner, request_id, workers, earlier } => {
                let current = workers.iter().filter_map(|worker| Some(self.workers.get(worker)?.execution));
                let executions: Vec<ExecutionId> = earlier.iter().copied().chain(current).collect();
                self.consumed(*tree, *owner, request_id.as_deref(), executions, at)
            }
            Event::Spoken(spoken) => self.spoken(spoken, seq, at),
            Event::Reowned { worker, owner } => self.reowned(*worker, *owner, at),
            Event::Ended { worker, outcome } => self.ended(*worker, outcome, at),
            Event::SlotTaken { worker, epoch, grant, at_once } => self.slot_taken(*worker, *epoch, *grant, *at_once, at),
            Event::ProcessStarted { worker, process } => self.process_started(*worker, *process, at),
            Event::StartDeferred { worker, again_at, reason: _, leftovers } => self.on_worker(*worker, at, |w| {
                w.leaves(leftovers);
                w.start_deferred(*again_at)
            }),
            Event::StartRetried { worker, epoch } => self.on_worker(*worker, at, |w| w.start_retried(*epoch)),
            Event::Blocked { worker } => {
                self.note_act(Owner::Worker(*worker));
                self.on_worker(*worker, at, |w| {
                    w.pass(Phase::Blocked { since: at.mono, over: None, not_before: None }, |phase, slot| slot && *phase == Phase::Running)
                })
            }
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
            Event::Resumed { worker } => self.on_worker(*worker, at, |w| {
                w.owed_turn = true;
                w.new_turn();
                w.goes_on()
            }),
            Event::ParkAsked { worker, deadline } => self.on_worker(*worker, at, |w| {
                let (since, blocked) = match w.phase {
                    Phase::Waiting { since, .. } => (since, false),
                    Phase::Blocked { since, over: None, .. } => (since, true),
                    Phase::Queued
                    | Phase::Starting(_)
                    | Phase::Running
                    | Phase::Blocked { .. }
                    | Phase::ParkAsked { .. }
                    | Phase::Leaving { .. }
                    | Phase::Parked { .. }
                    | Phase::Closing { .. }
                    | Phase::Emptying { .. }
                    | Phase::Gone { .. }
                    | Phase::Finishing { .. }
                    | Phase::Ended { .. } => return Err("it does not wait"),
                };
                w.pass(Phase::ParkAsked { since, deadline: *deadline, blocked }, |_, slot| slot)
            }),
            Event::ParkCancelled { worker, not_before } => self.on_worker(*worker, at, |w| {
                let Phase::ParkAsked { since, blocked, .. } = w.phase else { return Err("it was not asked to park") };
                let again = Some(*not_before).filter(|_| blocked);
                let waits = Phase::Waiting { since, not_before: *not_before };
                w.pass(if blocked { Phase::Blocked { since, over: None, not_before: again } } else { waits }, |_, slot| slot)
            }),
            Event::Parked { worker, context, held } => self.parked(*worker, *context, held.as_deref(), at),
            Event::MainExited { worker, status } => self.on_worker(*worker, at, |w| {
                let parked = matches!(w.phase, Phase::Leaving { .. });
                let outcome = if let Phase::Closing { outcome, .. } = &w.phase { Some(outcome.clone()) } else { None };
                let lives = w.has_process() && !matches!(w.phase, Phase::Emptying { .. });
                w.pass(Phase::Emptying { status: *status, parked, outcome }, |_, _| lives)
            }),
            Event::SlotFreed { worker, status, leftovers } => self.slot_freed(*worker, *status, leftovers, at),
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
    pub(super) fn on_worker(&mut self, id: WorkerId, at: Now, change: impl FnOnce(&mut Worker) -> Applied) -> Applied {
        let worker = self.workers.get_mut(&id).ok_or("there is no such worker")?;
        let before = Standing::of(Some(worker));
        change(worker)?;
        let tree = worker.tree;
        self.reseat(id, before);
        self.on_tree(tree, at, |_| {})
    }

    pub(super) fn on_tree(&mut self, id: TreeId, at: Now, change: impl FnOnce(&mut Tree)) -> Applied {
        let tree = self.trees.get_mut(&id).ok_or("there is no such tree")?;
        change(tree);
        tree.note_spare(at.mono);
        Ok(())
    }

    fn slot_taken(&mut self, id: WorkerId, epoch: Epoch, grant: Grant, at_once: bool, at: Now) -> Applied {
        let tree = self.workers.get(&id).ok_or("there is no such worker")?.tree;
        self.on_worker(id, at, |w| w.slot_taken(epoch, grant, at_once))?;
        self.grants += 1;
        self.last_grant.insert(tree, self.grants);
        self.on_tree(tree, at, |tree| tree.admissions += 1)
    }

    fn process_started(&mut self, id: WorkerId, process: ProcessIdentity, at: Now) -> Applied {
        let worker = self.workers.get(&id).ok_or("there is no such worker")?;
        let startup_ms = self.trees.get(&worker.tree).map_or(0, |tree| tree.settings.timing.startup_ms);
        let mut told = Vec::new();
        self.on_worker(id, at, |w| {
            told = w.process_started(process, startup_ms, at)?;
            Ok(())
        })?;
        self.note_told(&told);
        Ok(())
    }

    fn parked(&mut self, id: WorkerId, context: Context, held: Option<&Held>, at: Now) -> Applied {
        let timing = self.timing_of(id).ok_or("there is no such worker")?;
        let kill_at = (timing.settle_to_exit_ms > 0).then(|| at.mono + timing.settle_to_exit_ms);
        self.on_worker(id, at, |w| {
            w.context = Some(context);
            w.held = held.cloned().map(Box::new);
            w.pass(Phase::Leaving { kill_at, killed: false }, |phase, _| {
                matches!(phase, Phase::Running | Phase::Blocked { .. } | Phase::Waiting { .. } | Phase::ParkAsked { .. })
            })
        })
    }

    fn slot_freed(&mut self, id: WorkerId, status: ExitStatus, leftovers: &[u32], at: Now) -> Applied {
        let worker = self.workers.get(&id).ok_or("there is no such worker")?;
        let (admissions, wakes) = self.trees.get(&worker.tree).map_or((0, true), |tree| (tree.admissions, tree.settings.delivery.wakes()));
        let mut cut_off = false;
        self.on_worker(id, at, |w| {
            let parked = matches!(w.phase, Phase::Leaving { .. } | Phase::Emptying { parked: true, .. });
            let outcome = match &w.phase {
                Phase::Closing { outcome, .. } => Some(outcome.clone()),
                Phase::Emptying { outcome, .. } => outcome.clone(),
                Phase::Queued
                | Phase::Starting(_)
                | Phase::Running
                | Phase::Blocked { .. }
                | Phase::Waiting { .. }
                | Phase::ParkAsked { .. }
                | Phase::Leaving { .. }
                | Phase::Parked { .. }
                | Phase::Gone { .. }
                | Phase::Finishing { .. }
                | Phase::Ended { .. } => None,
            };
            if !w.has_process() {
                return Err("it has no process");
            }
            cut_off = !parked && outcome.is_none() && w.speech.as_ref().is_some_and(|speech| speech.greeted);
            w.slot = false;
            w.process = None;
            w.owed_turn = false;
            w.leaves(leftovers);
            w.phase = if parked && w.stop.is_none() {
                Phase::Parked { since: at.mono, ready: None }
            } else {
                Phase::Gone { status: Some(status), outcome }
            };
            w.note_ready(at, admissions, wakes);
            Ok(())
        })?;
        if cut_off {
            self.note_partial(id);
        }
        Ok(())
    }

    pub(super) fn consumed(&mut self, tree: TreeId, owner: Owner, request: Option<&str>, executions: Vec<ExecutionId>, at: Now) -> Applied {
        self.note_act(owner);
        self.on_lead(tree, owner, at, |lead| {
            for execution in &executions {
                lead.outbox.take(*execution);
            }
            if let Some(request) = request {
                if lead.answered.len() == WAITS_REMEMBERED_MAX {
                    lead.answered.pop_front();
                }
                lead.answered.push_back((request.to_owned(), executions.clone()));
            }
            Ok(())
        })?;
        self.note_told(&executions);
        Ok(())
    }
}
