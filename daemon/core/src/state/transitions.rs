//! How one worker passes from phase to phase. It knows nobody else: what an event means beyond its worker is in `apply.rs`.

use roost_proto::id::{Epoch, ExecutionId};
use roost_proto::limits::LEFTOVERS_LISTED_MAX;
use roost_proto::link::ProcessIdentity;

use crate::event::{AcceptedTask, Grant, JobAccepted, Runner};
use crate::state::apply::Applied;
use crate::state::budget::Ledger;
use crate::state::outbox::{Item, Outbox};
use crate::state::seldom::Rare;
use crate::state::speech::Speech;
use crate::state::worker::{Phase, Seat, Starting, Stop, Worker};
use crate::time::{Mono, Now};

/// A worker as a job makes it.
pub(super) fn new_worker(job: &JobAccepted, index: u32, task: &AcceptedTask, depth: u32, at: Now) -> Worker {
    let speaks = task.runner == Runner::Worker;
    let mut outbox: Rare<Outbox> = Rare::default();
    if speaks {
        outbox.push(Item::Task);
    }
    Worker {
        id: task.worker,
        tree: job.tree,
        owner: job.owner,
        name: task.name.as_str().into(),
        token: task.token,
        job: job.job,
        task_index: index,
        execution: task.execution,
        launcher: job.owner,
        foreground: job.foreground,
        depth,
        group: task.group,
        ledger: Ledger::new(task.allowance),
        children: Rare::default(),
        active_children: 0,
        descendants: 0,
        outbox,
        answered: Rare::default(),
        sent: Rare::default(),
        stops: Rare::default(),
        speech: speaks.then(Box::default),
        accounts: None,
        joins: None,
        joined: None,
        held: None,
        told: false,
        past: Rare::default(),
        epoch_before: Epoch(0),
        phase: Phase::Queued,
        slot: false,
        epoch: Epoch(0),
        process: None,
        leftovers: Rare::default(),
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
    pub(super) fn pass(&mut self, to: Phase, legal: impl FnOnce(&Phase, bool) -> bool) -> Applied {
        if !legal(&self.phase, self.slot) {
            return Err("its worker is in another phase");
        }
        self.phase = to;
        Ok(())
    }

    pub(super) fn slot_taken(&mut self, epoch: Epoch, grant: Grant, at_once: bool) -> Applied {
        let next = Epoch(self.epoch.0 + 1);
        let wake = Starting { wake: Some(self.outbox.last_seq()), again_at: None, tries: 0 };
        match (grant, &self.phase) {
            (Grant::Start, Phase::Queued) if epoch == next => {
                self.at_once = at_once;
                let resumes = !self.past.is_empty();
                self.phase = Phase::Starting(Starting { wake: wake.wake.filter(|_| resumes), ..wake });
            }
            // The scheduler wakes only who is ready. Whether one is was not always taken back, and a journal of that time is read too.
            (Grant::FinalWake | Grant::EarlyWake, Phase::Parked { .. }) if epoch == next => {
                self.phase = Phase::Starting(wake);
            }
            (Grant::Return, Phase::Blocked { over: Some(_), .. }) if epoch == self.epoch && !self.slot => self.phase = Phase::Running,
            _ => return Err("the grant does not fit its worker"),
        }
        if grant != Grant::Return {
            self.new_process();
        }
        self.epoch = epoch;
        self.slot = true;
        Ok(())
    }

    /// Another process will speak for it: it has said and used nothing yet.
    fn new_process(&mut self) {
        if let Some(speech) = &mut self.speech {
            let tries = speech.tries;
            **speech = Speech { lease: speech.lease, tries, ..Speech::default() };
        }
        if let Some(accounts) = &mut self.accounts {
            accounts.turn_over();
        }
    }

    pub(super) fn wait_over(&mut self, at: Now, admissions: u64) -> Applied {
        let Phase::Blocked { since, over: None, .. } = self.phase else { return Err("it does not wait") };
        let over = Phase::Blocked { since, over: Some((at.mono, admissions)), not_before: None };
        self.phase = if self.slot { Phase::Running } else { over };
        Ok(())
    }

    /// Gives the executions whose ends its process was told of by that.
    pub(super) fn process_started(&mut self, process: ProcessIdentity, startup_ms: u64, at: Now) -> Result<Vec<ExecutionId>, &'static str> {
        let Phase::Starting(Starting { wake, again_at: None, .. }) = self.phase else { return Err("it is not being started") };
        // The items were on the standard input of this very process: it has taken them in. One that speaks is handed them, and says so.
        let told = wake.filter(|_| self.speech.is_none()).map(|last| self.outbox.take_to(last)).unwrap_or_default();
        self.process = Some(process);
        self.phase = Phase::Running;
        if let Some(speech) = &mut self.speech {
            speech.hello_by = (startup_ms > 0).then(|| at.mono + startup_ms);
        }
        if self.started_at.is_none() {
            self.started_at = Some(at);
            self.timeout_at = self.timeout_ms.map(|timeout| at.mono + timeout);
        }
        Ok(told)
    }

    /// A start that came to nothing is tried again: one that failed, or one whose process said nothing.
    pub(super) fn start_deferred(&mut self, again_at: Mono) -> Applied {
        let starting = match (&self.phase, &mut self.speech) {
            (Phase::Starting(Starting { wake, again_at: None, tries }), _) => Starting { wake: *wake, again_at: None, tries: tries + 1 },
            (Phase::Running | Phase::Emptying { .. }, Some(speech)) if !speech.greeted => {
                speech.tries += 1;
                speech.hello_by = None;
                let wake = self.context.map(|_| self.outbox.last_seq());
                Starting { wake, again_at: None, tries: speech.tries }
            }
            _ => return Err("it is not being started"),
        };
        self.process = None;
        self.pass(Phase::Starting(Starting { again_at: Some(again_at), ..starting }), |_, slot| slot)
    }

    /// Its process has left these behind.
    pub(super) fn leaves(&mut self, leftovers: &[u32]) {
        let room = LEFTOVERS_LISTED_MAX.saturating_sub(self.leftovers.len());
        self.leftovers.extend(leftovers.iter().take(room));
    }

    /// A settled worker has a turn again.
    pub(super) fn goes_on(&mut self) -> Applied {
        if !self.is_settled() {
            return Err("it has not settled");
        }
        self.phase = Phase::Running;
        Ok(())
    }

    /// What it says from here on is new.
    pub(super) fn new_turn(&mut self) {
        if let Some(speech) = &mut self.speech {
            speech.said = None;
            speech.settled = None;
        }
    }

    pub(super) fn start_retried(&mut self, epoch: Epoch) -> Applied {
        let newest = self.outbox.last_seq();
        let Phase::Starting(Starting { wake, again_at: again @ Some(_), .. }) = &mut self.phase else {
            return Err("no further try is due");
        };
        if epoch.0 != self.epoch.0 + 1 {
            return Err("its incarnations are out of order");
        }
        *again = None;
        *wake = wake.map(|_| newest);
        self.new_process();
        self.epoch = epoch;
        Ok(())
    }

    pub(super) fn stop_asked(&mut self, stop: Stop) -> Applied {
        if self.has_ended() || self.stop.is_some() {
            return Err("it is being ended already");
        }
        if self.has_process() {
            self.stop = Some(stop);
        } else {
            // Where there is no process the stop is done with this very record, so that nothing can be admitted in between.
            self.stop = Some(Stop { killed: true, ..stop });
            self.phase = Phase::Gone { status: None, outcome: None };
            self.slot = false;
        }
        Ok(())
    }

    pub(super) fn kill_sent(&mut self) -> Applied {
        match (&mut self.stop, &mut self.phase) {
            (Some(stop), _) if !stop.killed => stop.killed = true,
            (_, Phase::Leaving { killed, .. } | Phase::Closing { killed, .. }) if !*killed => *killed = true,
            _ => return Err("it is not being ended"),
        }
        Ok(())
    }

    /// A parked worker is ready to wake by state alone: something is owed to it, or nothing below it is active. It is not any more
    /// when its last child goes on before it was woken.
    pub(super) fn note_ready(&mut self, at: Now, admissions: u64, completions_wake: bool) {
        let settled = self.active_children == 0;
        let owed = match &self.held {
            Some(held) => held.over,
            None => self.outbox.wakes(completions_wake),
        };
        if let Phase::Parked { ready, .. } = &mut self.phase {
            if settled || (owed && ready.is_none()) {
                *ready = Some((at.mono, admissions));
            } else if !owed {
                *ready = None;
            }
        }
    }
}
