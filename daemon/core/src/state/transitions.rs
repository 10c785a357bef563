//! How one worker passes from phase to phase. It knows nobody else: what an event means beyond its worker is in `apply.rs`.

use std::collections::BTreeSet;

use roost_proto::id::Epoch;
use roost_proto::link::ProcessIdentity;

use crate::event::{AcceptedTask, Grant, JobAccepted};
use crate::state::apply::Applied;
use crate::state::budget::Ledger;
use crate::state::outbox::Outbox;
use crate::state::worker::{Answered, Phase, Seat, Starting, Stop, Worker};
use crate::time::Now;

/// A worker as a job makes it.
pub(super) fn new_worker(job: &JobAccepted, index: u32, task: &AcceptedTask, depth: u32, at: Now) -> Worker {
    Worker {
        id: task.worker,
        tree: job.tree,
        owner: job.owner,
        name: task.name.as_str().into(),
        token: task.token,
        job: job.job,
        task_index: index,
        execution: task.execution,
        foreground: job.foreground,
        depth,
        group: task.group,
        ledger: Ledger::new(task.allowance),
        children: BTreeSet::new(),
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

    pub(super) fn wait_over(&mut self, at: Now, admissions: u64) -> Applied {
        let Phase::Blocked { since, over: None } = self.phase else { return Err("it does not wait") };
        self.phase = if self.slot { Phase::Running } else { Phase::Blocked { since, over: Some((at.mono, admissions)) } };
        Ok(())
    }

    pub(super) fn process_started(&mut self, process: ProcessIdentity, at: Now) -> Applied {
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
            self.phase = Phase::Gone { status: None };
            self.slot = false;
        }
        Ok(())
    }

    pub(super) fn kill_sent(&mut self) -> Applied {
        match (&mut self.stop, &mut self.phase) {
            (Some(stop), _) if !stop.killed => stop.killed = true,
            (_, Phase::Leaving { killed, .. }) if !*killed => *killed = true,
            _ => return Err("it is not being ended"),
        }
        Ok(())
    }

    /// A parked worker becomes ready to wake by state alone: something is owed to it, or nothing below it is active.
    pub(super) fn note_ready(&mut self, at: Now, admissions: u64) {
        let settled = self.active_children == 0;
        let owed = !self.outbox.is_empty();
        if let Phase::Parked { ready, .. } = &mut self.phase
            && (settled || (owed && ready.is_none()))
        {
            *ready = Some((at.mono, admissions));
        }
    }
}
