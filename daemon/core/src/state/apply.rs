//! The meaning of every event. An event that does not fit the state is an error: the journal is checked while it is read.

use std::collections::BTreeSet;

use roost_proto::id::{Epoch, TreeId, WorkerId};
use roost_proto::limits::WAITS_REMEMBERED_MAX;
use roost_proto::link::ExitStatus;
use roost_proto::outcome::{Failure, Outcome};

use crate::event::{Context, Event, Grant, Owner, Record, StopCause};
use crate::state::State;
use crate::state::budget::Ledger;
use crate::state::outbox::Outbox;
use crate::state::seat::Standing;
use crate::state::tree::Tree;
use crate::state::worker::{Answered, Phase, Starting, Stop, Worker};
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
            Event::Parked { worker, context } => self.parked(*worker, *context, at),
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

    fn parked(&mut self, id: WorkerId, context: Context, at: Now) -> Applied {
        let timing = self.timing_of(id).ok_or("there is no such worker")?;
        let kill_at = (timing.settle_to_exit_ms > 0).then(|| at.mono + timing.settle_to_exit_ms);
        self.on_worker(id, at, |w| {
            w.context = Some(context);
            w.pass(Phase::Leaving { kill_at, killed: false }, |phase, _| {
                matches!(phase, Phase::Running | Phase::Blocked { .. } | Phase::Waiting { .. } | Phase::ParkAsked { .. })
            })
        })
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
            lead = Some((w.tree, w.owner, w.stop.is_some_and(|stop| stop.cause == StopCause::Operator)));
            w.ended_at = Some(at);
            w.outbox = Outbox::default();
            w.answered = Answered::default();
            let alone = w.active_children == 0;
            w.pass(Phase::Ended { outcome: outcome.clone() }, |phase, _| {
                alone && matches!(phase, Phase::Gone { .. } | Phase::Finishing { .. })
            })
        })?;
        let (tree, owner, by_operator) = lead.ok_or("it has no lead")?;
        // A lead that stopped its child, or ends with it, needs no word of it.
        let silent = matches!(outcome, Outcome::Stopped | Outcome::Failed(Failure::ParentFailed)) && !by_operator;
        self.on_lead(tree, owner, at, |lead| {
            lead.children.remove(&id);
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
            lead.children.remove(&id);
            *lead.active_children = lead.active_children.checked_sub(1).ok_or("its lead has no active child")?;
            Ok(())
        })?;
        self.on_worker(id, at, |w| {
            w.owner = owner;
            Ok(())
        })?;
        self.on_lead(tree, owner, at, |lead| {
            lead.children.insert(id);
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
            if answered.len() == WAITS_REMEMBERED_MAX {
                answered.pop_front();
            }
            answered.push_back((request.to_owned(), workers.to_vec()));
        }
        Ok(())
    }

    /// Changes what a lead owns, whether it is the root or a worker; a parked one may have become ready to wake.
    pub(super) fn on_lead(&mut self, tree: TreeId, owner: Owner, at: Now, change: impl FnOnce(&mut Owned<'_>) -> Applied) -> Applied {
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
pub(super) struct Owned<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) outbox: &'a mut Outbox,
    pub(super) children: &'a mut BTreeSet<WorkerId>,
    pub(super) active_children: &'a mut u32,
}
