//! What the events of workers that speak mean, and those of words, deliveries and usage.

use roost_proto::id::{ExecutionId, JobId, MessageId, TreeId, WorkerId};

use crate::event::{Owner, Sent, Spoken, TextId};
use crate::state::apply::Applied;
use crate::state::outbox::Item;
use crate::state::speech::{Next, Said};
use crate::state::taker::Taker;
use crate::state::worker::{Past, Phase, SentEntry, Worker};
use crate::state::{Job, State};
use crate::time::{Mono, Now};
use roost_proto::limits::{SENT_MAX, STOPS_REMEMBERED_MAX};

impl State {
    /// One of these events.
    pub(super) fn spoken(&mut self, event: &Spoken, seq: u64, at: Now) -> Applied {
        match event {
            Spoken::LeaseTaken { tree, owner, lease, can_park, steers, process } => match owner {
                Owner::Root => self.on_tree(*tree, at, |tree| {
                    tree.lease = *lease;
                    process.iter().for_each(|process| tree.accounts.spoken_for_by(*process));
                }),
                Owner::Worker(worker) => self.on_worker(*worker, at, |w| {
                    let speech = w.speech.as_mut().ok_or("it does not speak")?;
                    (speech.greeted, speech.hello_by, speech.lease) = (true, None, *lease);
                    (speech.can_park, speech.steers) = (*can_park, *steers);
                    Ok(())
                }),
            },
            Spoken::Busy { worker } => self.on_worker(*worker, at, |w| {
                w.new_turn();
                w.owed_turn = false;
                w.goes_on()
            }),
            Spoken::HoldOver { worker } => {
                let tree = self.workers.get(worker).and_then(|w| self.trees.get(&w.tree));
                let (admissions, wakes) = tree.map_or((0, true), |tree| (tree.admissions, tree.settings.delivery.wakes()));
                self.on_worker(*worker, at, |w| {
                    w.held.as_mut().ok_or("it was not parked inside of a call")?.over = true;
                    w.note_ready(at, admissions, wakes);
                    Ok(())
                })
            }
            Spoken::Said { worker } => self.on_worker(*worker, at, |w| w.says(seq, false)),
            Spoken::UsageReported { tree, owner, report } => self.usage_reported(*tree, *owner, report),
            Spoken::Settled { worker, context, request_id, answered } => self.settled(*worker, seq, at, |w| {
                w.context = *context;
                w.owed_turn = false;
                if *answered {
                    w.says(seq, false)?;
                }
                w.has_settled(request_id, Next::Wait);
                w.pass(Phase::Waiting { since: at.mono, not_before: at.mono }, |phase, slot| slot && *phase == Phase::Running)
            }),
            Spoken::Answered { worker, outcome, context, request_id, answered, length_limited, kill_at } => {
                self.on_worker(*worker, at, |w| {
                    w.context = *context;
                    if *answered {
                        w.says(seq, *length_limited)?;
                    }
                    w.has_settled(request_id, Next::Exit);
                    w.owed_turn = false;
                    let closing = Phase::Closing { outcome: outcome.clone(), kill_at: *kill_at, killed: false };
                    w.pass(closing, |phase, slot| slot && *phase == Phase::Running)
                })
            }
            Spoken::StartupOver { worker } => self.on_worker(*worker, at, |w| {
                let speech = w.speech.as_mut().ok_or("it does not speak")?;
                (speech.hello_by, speech.late) = (None, true);
                Ok(())
            }),
            Spoken::Acked { tree, owner, items, process, request_id } => {
                self.acked(*tree, *owner, items, Taker { process: *process, request_id: request_id.clone() }, at)
            }
            Spoken::StopTaken { tree, owner, request_id, stopped } => self.on_lead(*tree, *owner, at, |lead| {
                if lead.stops.len() == STOPS_REMEMBERED_MAX {
                    lead.stops.pop_front();
                }
                lead.stops.push_back((request_id.clone(), stopped.clone()));
                Ok(())
            }),
            Spoken::Read { tree, owner, executions } => self.consumed(*tree, *owner, None, executions.clone(), at),
            Spoken::WordsSent { tree, from, to, request_id, digest, sent } => {
                let entry = SentEntry { request_id: request_id.clone(), digest: *digest, message: MessageId(seq), sent: *sent };
                self.note_act(*from);
                self.words_sent(*tree, *from, *to, entry, at)
            }
            Spoken::WordsReturned { worker, .. } => self.words_returned(*worker, at),
            Spoken::ResumeAccepted { worker, job, execution } => self.resume_accepted(*worker, *job, *execution, at),
            Spoken::AllowanceSet { worker, allowance } => self.allowance_set(*worker, *allowance, at),
            Spoken::GroupReleased { tree, owner, group } => self.group_released(*tree, *owner, *group, at),
        }
    }

    /// A settle, and the notice of it to the lead.
    fn settled(&mut self, id: WorkerId, seq: u64, at: Now, change: impl FnOnce(&mut Worker) -> Applied) -> Applied {
        self.on_worker(id, at, change)?;
        let worker = self.workers.get(&id).ok_or("there is no such worker")?;
        let text = worker.speech.as_ref().and_then(|speech| speech.said).map(|said| said.text).filter(|text| text.0 == seq);
        let notice = Item::Notice { from: id, execution: worker.execution, text };
        self.on_lead(worker.tree, worker.owner, at, |lead| {
            lead.outbox.push(notice);
            Ok(())
        })
    }

    /// What a worker's process did cannot be done by another one again.
    pub(super) fn note_act(&mut self, owner: Owner) {
        let Owner::Worker(id) = owner else { return };
        if let Some(speech) = self.workers.get_mut(&id).and_then(|worker| worker.speech.as_mut()) {
            speech.acted = true;
        }
    }

    /// Leads were told of these ends.
    pub(super) fn note_told(&mut self, executions: &[ExecutionId]) {
        for execution in executions {
            let Some(worker) = self.executions.get(execution).and_then(|worker| self.workers.get_mut(worker)) else { continue };
            if worker.execution == *execution {
                worker.told = worker.has_ended();
            } else if let Some(past) = worker.past.iter_mut().find(|past| past.execution == *execution) {
                past.told = true;
            }
        }
    }

    fn acked(&mut self, tree: TreeId, owner: Owner, items: &[u64], by: Taker, at: Now) -> Applied {
        self.note_act(owner);
        let mut told = Vec::new();
        self.on_lead(tree, owner, at, |lead| {
            told = lead.outbox.acknowledge(items, by);
            Ok(())
        })?;
        if let Owner::Worker(worker) = owner {
            self.on_worker(worker, at, |w| {
                w.owed_turn = false;
                Ok(())
            })?;
        }
        self.note_told(&told);
        Ok(())
    }

    fn words_sent(&mut self, tree: TreeId, from: Owner, to: Owner, entry: SentEntry, at: Now) -> Applied {
        let (message, sent) = (entry.message, entry.sent);
        self.on_lead(tree, from, at, |lead| {
            if lead.sent.len() == SENT_MAX {
                lead.sent.pop_front();
            }
            lead.sent.push_back(entry);
            Ok(())
        })?;
        let item = match (sent, from) {
            (Sent::ToLead, Owner::Worker(from)) => Item::ChildMessage { message, from },
            (Sent::ToLead, Owner::Root) => return Err("the root has no lead"),
            (Sent::AfterEnd(_), _) => Item::LeadMessage { message, after_end: true },
            (Sent::Steering(_) | Sent::Resumes(_), _) => Item::LeadMessage { message, after_end: false },
        };
        self.on_lead(tree, to, at, |receiver| {
            receiver.outbox.push(item);
            Ok(())
        })
    }

    /// At the end of an execution: what came after its outcome is kept for the next one. Gives its lead's other messages that nobody
    /// has read.
    pub(super) fn keep_what_came_late(&mut self, id: WorkerId, left: Vec<Item>) -> Vec<MessageId> {
        let mut unread = Vec::new();
        let Some(worker) = self.workers.get_mut(&id) else { return unread };
        for item in left {
            match item {
                Item::LeadMessage { after_end: true, .. } => worker.outbox.push(item),
                Item::LeadMessage { message, after_end: false } => unread.push(message),
                Item::Task | Item::Completion { .. } | Item::ChildMessage { .. } | Item::Notice { .. } | Item::Undelivered { .. } => {}
            }
        }
        unread
    }

    fn words_returned(&mut self, id: WorkerId, at: Now) -> Applied {
        let worker = self.workers.get_mut(&id).ok_or("there is no such worker")?;
        let (tree, owner) = (worker.tree, worker.owner);
        let returned: Vec<(u64, MessageId)> = worker.outbox.late_words().collect();
        for (seq, _) in &returned {
            worker.outbox.take_item(*seq);
        }
        self.on_lead(tree, owner, at, |lead| {
            returned.iter().for_each(|(_, message)| lead.outbox.push(Item::Undelivered { message: *message, to: id }));
            Ok(())
        })
    }

    fn resume_accepted(&mut self, id: WorkerId, job: JobId, execution: ExecutionId, at: Now) -> Applied {
        if job.0 != self.last_job + 1 || execution.0 != self.last_execution + 1 {
            return Err("its job is out of order");
        }
        (self.last_job, self.last_execution) = (job.0, execution.0);
        let queued = self.workers.get(&id).and_then(|worker| self.trees.get(&worker.tree)).map_or(0, |tree| tree.queued());
        let mut of = None;
        self.on_worker(id, at, |w| {
            let Phase::Ended { outcome } = &w.phase else { return Err("it has not ended") };
            let outcome = outcome.clone();
            let said = w.speech.as_mut().ok_or("it does not speak")?.said.take();
            of = Some((w.tree, w.owner));
            let (past, told) = (w.execution, w.told);
            w.past.push(Past {
                execution: past,
                job: w.job,
                task_index: w.task_index,
                epoch: w.epoch,
                outcome,
                said,
                told,
                leftovers: std::mem::take(&mut w.leftovers),
                place: w.place,
                at_once: w.at_once,
            });
            (w.execution, w.job, w.task_index, w.told, w.epoch_before) = (execution, job, 0, false, w.epoch);
            (w.stop, w.timeout_at, w.started_at, w.ended_at, w.accepted_at) = (None, None, None, None, at);
            (w.at_once, w.foreground, w.joined) = (false, false, None);
            w.place = u32::try_from(queued).unwrap_or(u32::MAX).saturating_add(1);
            if let Some(speech) = &mut w.speech {
                (speech.tries, speech.settled) = (0, None);
            }
            w.outbox.on_time();
            w.phase = Phase::Queued;
            Ok(())
        })?;
        let (tree, owner) = of.ok_or("it has no lead")?;
        self.executions.insert(execution, id);
        let request = format!("{id}/{job}").into();
        self.jobs.insert(job, Job { tree, digest: Default::default(), request, workers: [id].into() });
        self.on_lead(tree, owner, at, |lead| {
            lead.children.insert(id);
            *lead.active_children += 1;
            Ok(())
        })
    }

    fn allowance_set(&mut self, id: WorkerId, allowance: u64, at: Now) -> Applied {
        let worker = self.workers.get_mut(&id).ok_or("there is no such worker")?;
        let (tree, launcher) = (worker.tree, worker.launcher);
        let cost = worker.ledger.raise(allowance).ok_or("more than that is reserved from it")?;
        worker.ledger.set(allowance);
        self.on_lead(tree, launcher, at, |lead| if lead.ledger.reserve(cost) { Ok(()) } else { Err("the budget does not cover it") })
    }

    fn group_released(&mut self, tree: TreeId, owner: Owner, group: u64, at: Now) -> Applied {
        let mut timers = Vec::new();
        self.on_lead(tree, owner, at, |lead| {
            lead.joins().released(group);
            lead.outbox.release(group);
            timers = lead.joins_timers();
            Ok(())
        })?;
        self.reset_join_timers(tree, owner, &timers);
        Ok(())
    }

    pub(super) fn reset_join_timers(&mut self, tree: TreeId, owner: Owner, timers: &[(Mono, u64)]) {
        if self.join_timers.is_empty() && timers.is_empty() {
            return;
        }
        self.join_timers.retain(|(_, of, lead, _)| (*of, *lead) != (tree, owner));
        self.join_timers.extend(timers.iter().map(|(at, group)| (*at, tree, owner, *group)));
    }
}

impl Worker {
    fn says(&mut self, seq: u64, length_limited: bool) -> Applied {
        self.speech.as_mut().ok_or("it does not speak")?.said = Some(Said { text: TextId(seq), length_limited });
        Ok(())
    }

    fn has_settled(&mut self, request_id: &str, next: Next) {
        if let Some(speech) = &mut self.speech {
            speech.settled = Some((request_id.to_owned(), next));
        }
    }
}
