//! One worker of [`Rows`](super::Rows).

use roost_proto::id::{Epoch, ExecutionId, WorkerId};
use roost_proto::message::status::{WorkerState, WorkerStatus};
use roost_proto::outcome::Outcome;
use roost_proto::usage::UsageTotals;

/// One worker.
///
/// Its state is that of `status`, but for what events do not tell: it is `Parked` from the record of that on, while its process still
/// leaves, and `WakeReady` only when all below it has ended.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its lead; `None` for the root.
    pub lead: Option<WorkerId>,
    /// Its execution.
    pub execution: ExecutionId,
    /// Its group, where the tree caps that.
    pub group: Option<String>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Processes so far.
    pub epoch: Epoch,
    /// Its process, as far as somebody has asked.
    pub pid: Option<u32>,
    /// When it was accepted, Unix milliseconds.
    pub accepted_at_ms: u64,
    /// When it first started.
    pub started_at_ms: Option<u64>,
    /// When it ended.
    pub ended_at_ms: Option<u64>,
    /// Children that have not ended.
    pub active_children: u32,
    /// What it has used, as of its last end or the last question.
    pub usage: UsageTotals,
    /// Whether it has a slot.
    pub slot: bool,
    /// What its call waited for is there: it waits for a slot to go on.
    pub wait_is_over: bool,
    /// All that were launched by it, or came to it.
    pub(super) children: Vec<WorkerId>,
    /// As events say; [`Row::state`] is what it comes to.
    pub(super) said: WorkerState,
    /// Its next process goes on from a saved context.
    pub(super) wakes: bool,
}

impl Row {
    pub(super) fn of(status: &WorkerStatus) -> Self {
        // What is asked to park has nothing to say of it; what is saved and leaves has.
        let has_parked = status.state == WorkerState::WakeReady || (status.state == WorkerState::Parking && status.reason.is_some());
        let said = if has_parked { WorkerState::Parked } else { status.state };
        // One that is being stopped has a slot for as long as there is a process.
        let slot = match said {
            WorkerState::Starting | WorkerState::Running | WorkerState::Waiting | WorkerState::Parking | WorkerState::Waking => true,
            WorkerState::Stopping => status.pid.is_some(),
            WorkerState::Queued
            | WorkerState::Blocked
            | WorkerState::Parked
            | WorkerState::WakeReady
            | WorkerState::Finishing
            | WorkerState::Ended => false,
        };
        Self {
            name: status.name.clone(),
            worker: status.worker,
            lead: status.lead,
            execution: status.execution,
            group: status.group.clone(),
            outcome: status.outcome.clone(),
            epoch: status.epoch,
            pid: status.pid,
            accepted_at_ms: status.accepted_at_ms,
            started_at_ms: status.started_at_ms,
            ended_at_ms: status.ended_at_ms,
            active_children: 0,
            usage: UsageTotals { workers: 1, ..UsageTotals::default() },
            slot,
            wait_is_over: status.state == WorkerState::Blocked && status.reason.as_deref() == Some(WorkerStatus::WAITS_FOR_SLOT),
            children: Vec::new(),
            said,
            // Who is queued and had a process before is a resume.
            wakes: status.state == WorkerState::Waking || (status.state == WorkerState::Queued && status.epoch.0 > 0),
        }
    }

    /// Where it stands.
    pub fn state(&self) -> WorkerState {
        if self.said == WorkerState::Parked && self.active_children == 0 { WorkerState::WakeReady } else { self.said }
    }

    /// Whether its execution has ended.
    pub fn has_ended(&self) -> bool {
        self.said == WorkerState::Ended
    }

    /// All that were launched by it, or came to it, in the order of their launch.
    pub fn children(&self) -> &[WorkerId] {
        &self.children
    }
}
