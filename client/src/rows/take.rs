//! What one numbered event changes.

use roost_proto::id::{Epoch, WorkerId};
use roost_proto::message::events::{NumberedEvent, Subject, TreeEvent};
use roost_proto::message::status::WorkerState;
use roost_proto::outcome::Outcome;
use roost_proto::usage::UsageTotals;

use super::{Row, Rows};

impl Rows {
    /// Lets one event happen.
    pub fn take(&mut self, event: &NumberedEvent) {
        let at_ms = event.at_ms;
        match &event.event {
            TreeEvent::Created { of, lead, resume, group, .. } => self.created(of, *lead, *resume, group.as_deref(), at_ms),
            TreeEvent::Queued { .. } => {}
            TreeEvent::Started { of } => self.change(of, |row| {
                row.said = if row.wakes { WorkerState::Waking } else { WorkerState::Starting };
                row.slot = true;
            }),
            TreeEvent::Woken { of, .. } => self.change(of, |row| {
                (row.said, row.slot, row.wakes) = (WorkerState::Waking, true, true);
            }),
            TreeEvent::StartRetried { of } => {
                self.change(of, |row| row.said = if row.wakes { WorkerState::Waking } else { WorkerState::Starting });
            }
            TreeEvent::Running { of, epoch } => self.running(of, *epoch, at_ms),
            TreeEvent::Blocked { of } | TreeEvent::Waiting { of } | TreeEvent::ParkCancelled { of } => {
                self.change(of, |row| (row.said, row.wait_is_over) = (WorkerState::Waiting, false));
            }
            TreeEvent::SlotLent { of } => self.change(of, |row| (row.said, row.slot) = (WorkerState::Blocked, false)),
            TreeEvent::WaitOver { of } => self.change(of, |row| {
                if row.said == WorkerState::Blocked {
                    row.wait_is_over = true;
                } else {
                    row.said = WorkerState::Running;
                }
            }),
            TreeEvent::Unblocked { of } => {
                self.change(of, |row| (row.said, row.slot, row.wait_is_over) = (WorkerState::Running, true, false));
            }
            TreeEvent::Resumed { of } => self.change(of, |row| row.said = WorkerState::Running),
            TreeEvent::ParkAsked { of } => self.change(of, |row| row.said = WorkerState::Parking),
            TreeEvent::Parked { of } => {
                self.change(of, |row| (row.said, row.slot, row.wakes) = (WorkerState::Parked, false, true));
            }
            TreeEvent::Stopping { of } => self.change(of, |row| row.said = WorkerState::Stopping),
            TreeEvent::Finishing { of } => self.change(of, |row| (row.said, row.slot) = (WorkerState::Finishing, false)),
            TreeEvent::Ended { of, outcome, usage } => self.ended(of, outcome, usage.as_ref(), at_ms),
            TreeEvent::Reowned { of, lead } => self.reowned(of.worker, *lead),
            TreeEvent::CapSet { cap } => self.tree.progress.cap = *cap,
            TreeEvent::PauseSet { paused } => self.tree.progress.paused = *paused,
            TreeEvent::Closed {} => self.tree.closed_at_ms = Some(at_ms),
            TreeEvent::Opened {}
            | TreeEvent::Message { .. }
            | TreeEvent::Delivered { .. }
            | TreeEvent::Undelivered { .. }
            | TreeEvent::Consumed { .. }
            | TreeEvent::Interrupted {}
            | TreeEvent::Backlog { .. } => {}
        }
    }

    fn created(&mut self, of: &Subject, lead: Option<WorkerId>, resume: bool, group: Option<&str>, at_ms: u64) {
        if self.rows.get(&of.worker).is_some_and(|row| row.execution >= of.execution) {
            return;
        }
        self.touched += 1;
        let fresh = |old: Option<&Row>| Row {
            name: of.name.clone(),
            worker: of.worker,
            lead,
            execution: of.execution,
            group: group.map(str::to_owned),
            outcome: None,
            epoch: old.map_or(Epoch(0), |old| old.epoch),
            pid: None,
            accepted_at_ms: at_ms,
            started_at_ms: None,
            ended_at_ms: None,
            active_children: old.map_or(0, |old| old.active_children),
            usage: old.map_or(UsageTotals { workers: 1, ..UsageTotals::default() }, |old| old.usage),
            slot: false,
            wait_is_over: false,
            children: old.map_or_else(Vec::new, |old| old.children.clone()),
            said: WorkerState::Queued,
            wakes: resume,
        };
        let row = fresh(self.rows.get(&of.worker));
        self.leave(of.worker);
        self.insert(row);
    }

    /// A resumed worker stands where it stood, as another execution.
    fn leave(&mut self, id: WorkerId) {
        let Some(row) = self.rows.get(&id) else { return };
        let (lead, active) = (row.lead, !row.has_ended());
        self.stand_out(id);
        self.get_up(id, lead);
        if let (Some(lead), true) = (lead, active) {
            self.one_less(lead);
        }
    }

    fn running(&mut self, of: &Subject, epoch: Epoch, at_ms: u64) {
        self.change(of, |row| {
            (row.said, row.slot, row.epoch, row.pid) = (WorkerState::Running, true, epoch, None);
            row.started_at_ms.get_or_insert(at_ms);
        });
    }

    fn ended(&mut self, of: &Subject, outcome: &Outcome, usage: Option<&UsageTotals>, at_ms: u64) {
        let Some(row) = self.rows.get(&of.worker).filter(|row| row.execution == of.execution && !row.has_ended()) else { return };
        let lead = row.lead;
        self.change(of, |row| {
            (row.said, row.slot, row.pid, row.wait_is_over) = (WorkerState::Ended, false, None, false);
            row.outcome = Some(outcome.clone());
            row.ended_at_ms = Some(at_ms);
        });
        if let Some(lead) = lead {
            self.one_less(lead);
        }
        if let Some(usage) = usage {
            self.used(of.worker, *usage);
        }
    }

    fn get_up(&mut self, id: WorkerId, lead: Option<WorkerId>) {
        let places = self.seats(lead);
        if let Ok(place) = places.binary_search(&id) {
            places.remove(place);
        }
    }

    /// A lead has one active child less.
    fn one_less(&mut self, lead: WorkerId) {
        if let Some(row) = self.rows.get_mut(&lead) {
            row.active_children = row.active_children.saturating_sub(1);
            self.touched += 1;
        }
    }

    /// What it has used is known anew; all above it have used what it did itself.
    fn used(&mut self, worker: WorkerId, usage: UsageTotals) {
        let Some(row) = self.rows.get_mut(&worker) else { return };
        let before = std::mem::replace(&mut row.usage, usage).own;
        let Some(added) = usage.own.minus(before) else { return };
        let mut above = row.lead;
        while let Some(lead) = above.and_then(|lead| self.rows.get_mut(&lead)) {
            lead.usage.total = lead.usage.total.with(added);
            above = lead.lead;
            self.touched += 1;
        }
    }

    fn reowned(&mut self, id: WorkerId, lead: Option<WorkerId>) {
        let Some(row) = self.rows.get(&id).filter(|row| row.lead != lead) else { return };
        let (old, active) = (row.lead, !row.has_ended());
        self.get_up(id, old);
        if let (Some(old), true) = (old, active) {
            self.one_less(old);
        }
        if let Some(row) = self.rows.get_mut(&id) {
            row.lead = lead;
        }
        self.sit(id, lead);
        self.order_is_known = false;
        self.touched += 1;
    }

    /// Changes the row of an execution. Who is being stopped does nothing else until its end, and after that there is nothing.
    fn change(&mut self, of: &Subject, change: impl FnOnce(&mut Row)) {
        let Some(row) = self.rows.get(&of.worker).filter(|row| row.execution == of.execution && !row.has_ended()) else { return };
        let before = row.said;
        self.touched += 1;
        self.stand_out(of.worker);
        if let Some(row) = self.rows.get_mut(&of.worker) {
            change(row);
            if before == WorkerState::Stopping && row.said != WorkerState::Ended {
                row.said = WorkerState::Stopping;
            }
        }
        self.stand_in(of.worker);
    }
}
