//! The numbered stream of a tree: what happened, as everybody may see it. Contract section 11.
//!
//! It is drawn from the events of the journal and nothing else, so that a replay numbers it alike; what it says is written with them.

use roost_proto::id::{JobId, MessageId, TreeId, WorkerId};
use roost_proto::message::events::{NumberedEvent, Subject, TreeEvent};

use crate::event::{Event, Grant, JobAccepted, Owner, Record, Spoken};
use crate::state::State;
use crate::state::worker::Worker;
use crate::step::tree_of;
use crate::usage_view;
use roost_proto::limits::BACKLOG_WARN;

/// How many events of the stream this one is. The state is the one after it.
pub fn count(state: &State, event: &Event) -> u64 {
    match event {
        Event::JobAccepted(job) => 2 * job.tasks.len() as u64,
        Event::Ended { worker, .. } => 1 + u64::from(backlog(state, *worker).is_some()),
        // There was nothing to interrupt.
        Event::Interrupted { asked: Some((_, 0)), .. } => 0,
        Event::TreeOpened(_)
        | Event::SlotTaken { .. }
        | Event::ProcessStarted { .. }
        | Event::StartDeferred { .. }
        | Event::Blocked { .. }
        | Event::SlotLent { .. }
        | Event::WaitOver { .. }
        | Event::SlotRetaken { .. }
        | Event::Resumed { .. }
        | Event::ParkAsked { .. }
        | Event::ParkCancelled { .. }
        | Event::Parked { .. }
        | Event::StopAsked { .. }
        | Event::Reowned { .. }
        | Event::Finishing { .. }
        | Event::Consumed { .. }
        | Event::CapSet { .. }
        | Event::PauseSet { .. }
        | Event::Interrupted { .. }
        | Event::TreeClosed { .. } => 1,
        Event::StartRetried { .. }
        | Event::MainExited { .. }
        | Event::SlotFreed { .. }
        | Event::KillSent { .. }
        | Event::TreeForgotten { .. } => 0,
        Event::Spoken(spoken) => match &**spoken {
            Spoken::ResumeAccepted { .. } => 2,
            Spoken::Settled { .. } | Spoken::Busy { .. } | Spoken::WordsSent { .. } | Spoken::WordsReturned { .. } => 1,
            Spoken::Read { .. } => 1,
            Spoken::Acked { items, .. } => u64::from(!items.is_empty()),
            Spoken::LeaseTaken { .. }
            | Spoken::StopTaken { .. }
            | Spoken::Said { .. }
            | Spoken::UsageReported { .. }
            | Spoken::Answered { .. }
            | Spoken::StartupOver { .. }
            | Spoken::HoldOver { .. }
            | Spoken::AllowanceSet { .. }
            | Spoken::GroupReleased { .. } => 0,
        },
    }
}

/// What a record is in the stream of its tree. The state is the one after it.
pub fn numbered(state: &State, record: &Record) -> Vec<(TreeId, NumberedEvent)> {
    let events = project(state, record);
    let Some(tree) = tree_of(state, &record.event).filter(|_| !events.is_empty()) else { return Vec::new() };
    let Some(end) = state.trees.get(&tree).map(|tree| tree.events) else { return Vec::new() };
    debug_assert_eq!(events.len() as u64, count(state, &record.event), "the stream is numbered by `count`: {:?}", record.event);
    let first = end + 1 - events.len() as u64;
    let at_ms = record.at.wall_ms;
    (first..).zip(events).map(|(number, event)| (tree, NumberedEvent { number, at_ms, event })).collect()
}

fn project(state: &State, record: &Record) -> Vec<TreeEvent> {
    let of = |worker: &WorkerId| subject(state, *worker);
    vec![match &record.event {
        Event::TreeOpened(_) => TreeEvent::Opened {},
        Event::JobAccepted(job) => return created(state, job),
        Event::SlotTaken { worker, grant, .. } => match grant {
            Grant::Start => TreeEvent::Started { of: of(worker) },
            Grant::FinalWake => TreeEvent::Woken { of: of(worker), settled: true },
            Grant::EarlyWake => TreeEvent::Woken { of: of(worker), settled: false },
            Grant::Return => TreeEvent::Unblocked { of: of(worker) },
        },
        Event::ProcessStarted { worker, .. } => {
            let epoch = state.workers.get(worker).map(|worker| worker.epoch).unwrap_or_default();
            TreeEvent::Running { of: of(worker), epoch }
        }
        Event::StartDeferred { worker, .. } => TreeEvent::StartRetried { of: of(worker) },
        Event::Blocked { worker } => TreeEvent::Blocked { of: of(worker) },
        Event::SlotLent { worker } => TreeEvent::SlotLent { of: of(worker) },
        Event::WaitOver { worker } => TreeEvent::WaitOver { of: of(worker) },
        Event::SlotRetaken { worker } => TreeEvent::Unblocked { of: of(worker) },
        Event::Resumed { worker } => TreeEvent::Resumed { of: of(worker) },
        Event::ParkAsked { worker, .. } => TreeEvent::ParkAsked { of: of(worker) },
        Event::ParkCancelled { worker, .. } => TreeEvent::ParkCancelled { of: of(worker) },
        Event::Parked { worker, .. } => TreeEvent::Parked { of: of(worker) },
        Event::StopAsked { worker, .. } => TreeEvent::Stopping { of: of(worker) },
        Event::Reowned { worker, owner } => TreeEvent::Reowned { of: of(worker), lead: worker_of(*owner) },
        Event::Finishing { worker, .. } => TreeEvent::Finishing { of: of(worker) },
        Event::Ended { worker, outcome } => {
            let usage = state.workers.get(worker).filter(|worker| worker.accounts.is_some()).map(usage_view::of_worker);
            let ended = TreeEvent::Ended { of: of(worker), outcome: outcome.clone(), usage };
            return std::iter::once(ended).chain(backlog(state, *worker)).collect();
        }
        Event::Consumed { workers, .. } => TreeEvent::Consumed { workers: workers.clone() },
        Event::CapSet { cap, .. } => TreeEvent::CapSet { cap: *cap },
        Event::PauseSet { paused, .. } => TreeEvent::PauseSet { paused: *paused },
        Event::Interrupted { asked: Some((_, 0)), .. } => return Vec::new(),
        Event::Interrupted { .. } => TreeEvent::Interrupted {},
        Event::TreeClosed { .. } => TreeEvent::Closed {},
        Event::Spoken(spoken) => return spoken_of(state, spoken, record.seq),
        Event::StartRetried { .. }
        | Event::MainExited { .. }
        | Event::SlotFreed { .. }
        | Event::KillSent { .. }
        | Event::TreeForgotten { .. } => return Vec::new(),
    }]
}

fn spoken_of(state: &State, spoken: &Spoken, seq: u64) -> Vec<TreeEvent> {
    let of = |worker: &WorkerId| subject(state, *worker);
    vec![match spoken {
        Spoken::Settled { worker, .. } => TreeEvent::Waiting { of: of(worker) },
        Spoken::Busy { worker } => TreeEvent::Resumed { of: of(worker) },
        Spoken::WordsSent { from, to, .. } => TreeEvent::Message { to: worker_of(*to), from: worker_of(*from), message: MessageId(seq) },
        Spoken::WordsReturned { messages, .. } => TreeEvent::Undelivered { messages: messages.clone() },
        Spoken::Acked { owner, items, .. } if !items.is_empty() => TreeEvent::Delivered { to: worker_of(*owner), items: items.clone() },
        Spoken::Read { executions, .. } => {
            let worker = |execution| state.executions.get(execution).copied();
            TreeEvent::Consumed { workers: executions.iter().filter_map(worker).collect() }
        }
        Spoken::ResumeAccepted { worker, job, .. } => return resumed(state, *worker, *job),
        Spoken::Acked { .. }
        | Spoken::LeaseTaken { .. }
        | Spoken::StopTaken { .. }
        | Spoken::Said { .. }
        | Spoken::UsageReported { .. }
        | Spoken::Answered { .. }
        | Spoken::StartupOver { .. }
        | Spoken::HoldOver { .. }
        | Spoken::AllowanceSet { .. }
        | Spoken::GroupReleased { .. } => return Vec::new(),
    }]
}

fn subject(state: &State, worker: WorkerId) -> Subject {
    let record = state.workers.get(&worker);
    let name = record.map_or_else(String::new, |record| record.name.to_string());
    Subject { name, worker, execution: record.map_or(roost_proto::id::ExecutionId(0), |record| record.execution) }
}

fn worker_of(owner: Owner) -> Option<WorkerId> {
    match owner {
        Owner::Root => None,
        Owner::Worker(worker) => Some(worker),
    }
}

fn group_of(state: &State, worker: WorkerId) -> Option<String> {
    let worker = state.workers.get(&worker)?;
    state.trees.get(&worker.tree)?.group_name(worker.group)
}

fn created(state: &State, job: &JobAccepted) -> Vec<TreeEvent> {
    let lead = worker_of(job.owner);
    let one = |(task_index, task): (u32, &crate::event::AcceptedTask)| {
        let of = subject(state, task.worker);
        let queued = TreeEvent::Queued { of: of.clone() };
        [TreeEvent::Created { of, lead, job: job.job, task_index, resume: false, group: group_of(state, task.worker) }, queued]
    };
    (0..).zip(&job.tasks).flat_map(one).collect()
}

fn resumed(state: &State, worker: WorkerId, job: JobId) -> Vec<TreeEvent> {
    let of = subject(state, worker);
    let lead = state.workers.get(&worker).and_then(|worker| worker_of(worker.owner));
    let queued = TreeEvent::Queued { of: of.clone() };
    vec![TreeEvent::Created { of, lead, job, task_index: 0, resume: true, group: group_of(state, worker) }, queued]
}

/// With this end its lead, which is handed such things, has many that it has not taken in.
fn backlog(state: &State, worker: WorkerId) -> Option<TreeEvent> {
    let worker: &Worker = state.workers.get(&worker)?;
    let lead = state.lead(worker.tree, worker.owner)?;
    let crossed = lead.is_told && lead.outbox.ends() == BACKLOG_WARN && lead.outbox.owes(worker.execution);
    crossed.then(|| TreeEvent::Backlog { of: worker_of(worker.owner), items: u32::try_from(BACKLOG_WARN).unwrap_or(u32::MAX) })
}
