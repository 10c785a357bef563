//! One step in the making: events are applied as they are recorded, effects are collected. Verbs write here and nowhere else.

use std::collections::BTreeSet;

use roost_proto::id::{JobId, TreeId, WorkerId};
use roost_proto::message::events::NumberedEvent;

use crate::command::CallId;
use crate::effect::{Effect, Reply};
use crate::event::{Event, Owner, Record, Spoken};
use crate::hand_over::spawn_of;
use crate::rejection::Rejection;
use crate::state::{IllegalEvent, State};
use crate::stream;
use crate::time::Now;

/// What a step is written into.
pub struct Step<'a> {
    /// The moment.
    pub now: Now,
    /// The state, up to date with every event recorded so far.
    pub state: &'a mut State,
    /// What happened.
    pub records: Vec<Record>,
    /// The same as everybody may see it, numbered within its tree.
    pub stream: Vec<(TreeId, NumberedEvent)>,
    /// What is to be done about it, once it is on disk.
    pub effects: Vec<Effect>,
    /// The trees that an event touched and the scheduler has not seen since.
    pub touched: BTreeSet<TreeId>,
    /// Executions that ended and whose waiters have not been told.
    pub ended: Vec<WorkerId>,
    /// Workers whose process has parked or ended, and what their waiting calls are refused with.
    pub left: Vec<(WorkerId, Rejection)>,
    /// Workers that may have been blocked and are not: their calls that are over may be answered.
    pub unblocked: Vec<WorkerId>,
    /// Leads whose mail may have changed.
    pub mail: BTreeSet<(TreeId, Owner)>,
    /// Workers that speak and that go on with a turn: from here on they are to show signs of life.
    pub turns: Vec<WorkerId>,
    /// Workers whose process started and whose early callers have not been told.
    pub started: Vec<WorkerId>,
    /// Wakes that went before the head of the queue.
    pub promoted: u64,
    /// The last job before this step.
    last_job: u64,
    /// The first event that did not fit: a fault of ours, and the end of this broker.
    pub fault: Option<IllegalEvent>,
}

impl<'a> Step<'a> {
    /// An empty step.
    pub fn new(now: Now, state: &'a mut State) -> Self {
        Self {
            now,
            last_job: state.last_job,
            state,
            records: Vec::new(),
            stream: Vec::new(),
            effects: Vec::new(),
            touched: BTreeSet::new(),
            ended: Vec::new(),
            left: Vec::new(),
            unblocked: Vec::new(),
            mail: BTreeSet::new(),
            turns: Vec::new(),
            started: Vec::new(),
            promoted: 0,
            fault: None,
        }
    }

    /// Records an event: from here on it has happened.
    pub fn record(&mut self, event: Event) {
        if self.fault.is_some() {
            return;
        }
        let record = Record { seq: self.state.seq + 1, at: self.now, event };
        if let Err(fault) = self.state.apply(&record) {
            self.fault = Some(fault);
            return;
        }
        self.note(&record.event);
        self.stream.extend(stream::numbered(self.state, &record));
        self.records.push(record);
    }

    fn note(&mut self, event: &Event) {
        self.touched.extend(tree_of(self.state, event));
        self.note_mail(event);
        if let Event::Ended { worker, .. } = event {
            self.ended.push(*worker);
        } else if let Event::ProcessStarted { worker, .. } = event {
            self.started.push(*worker);
        } else if let Event::SlotTaken { worker, .. } | Event::SlotRetaken { worker } | Event::WaitOver { worker } = event {
            self.unblocked.push(*worker);
            self.turns.push(*worker);
        } else if let Event::Parked { worker, .. } = event {
            self.left.push((*worker, Rejection::Parked));
        } else if let Event::MainExited { worker, .. } | Event::SlotFreed { worker, .. } | Event::StartDeferred { worker, .. } = event
            && let Some(epoch) = self.state.workers.get(worker).map(|worker| worker.epoch)
        {
            self.left.push((*worker, Rejection::StaleEpoch { epoch }));
        }
    }

    /// Whose mail an event may have changed.
    fn note_mail(&mut self, event: &Event) {
        let state = &*self.state;
        let lead_of = |worker: &WorkerId| state.workers.get(worker).map(|worker| (worker.tree, worker.owner));
        let own = |worker: &WorkerId| state.workers.get(worker).map(|record| (record.tree, Owner::Worker(*worker)));
        let whose = match event {
            Event::Ended { worker, .. } => [lead_of(worker), None],
            Event::Reowned { worker, .. } => [own(worker), None],
            Event::Resumed { worker } => {
                self.turns.push(*worker);
                [own(worker), None]
            }
            Event::Consumed { tree, owner, .. } => [Some((*tree, *owner)), None],
            Event::Spoken(spoken) => match &**spoken {
                Spoken::LeaseTaken { tree, owner, .. } => {
                    if let Owner::Worker(worker) = owner {
                        self.turns.push(*worker);
                    }
                    [Some((*tree, *owner)), None]
                }
                Spoken::Acked { tree, owner, .. } | Spoken::Read { tree, owner, .. } | Spoken::GroupReleased { tree, owner, .. } => {
                    [Some((*tree, *owner)), None]
                }
                Spoken::Settled { worker, .. } => [own(worker), lead_of(worker)],
                Spoken::WordsReturned { worker, .. } => [lead_of(worker), None],
                Spoken::WordsSent { tree, to, .. } => [Some((*tree, *to)), None],
                Spoken::Busy { .. }
                | Spoken::HoldOver { .. }
                | Spoken::Said { .. }
                | Spoken::StopTaken { .. }
                | Spoken::UsageReported { .. }
                | Spoken::Answered { .. }
                | Spoken::StartupOver { .. }
                | Spoken::ResumeAccepted { .. }
                | Spoken::AllowanceSet { .. } => [None, None],
            },
            Event::TreeOpened(_)
            | Event::JobAccepted(_)
            | Event::SlotTaken { .. }
            | Event::ProcessStarted { .. }
            | Event::StartDeferred { .. }
            | Event::StartRetried { .. }
            | Event::Blocked { .. }
            | Event::SlotLent { .. }
            | Event::WaitOver { .. }
            | Event::SlotRetaken { .. }
            | Event::ParkAsked { .. }
            | Event::ParkCancelled { .. }
            | Event::Parked { .. }
            | Event::MainExited { .. }
            | Event::SlotFreed { .. }
            | Event::StopAsked { .. }
            | Event::KillSent { .. }
            | Event::Finishing { .. }
            | Event::CapSet { .. }
            | Event::PauseSet { .. }
            | Event::Interrupted { .. }
            | Event::TreeClosed { .. }
            | Event::TreeForgotten { .. } => [None, None],
        };
        self.mail.extend(whose.into_iter().flatten());
    }

    /// Whether this step accepted the job.
    pub fn accepted_here(&self, job: JobId) -> bool {
        job.0 > self.last_job
    }

    /// Answers a call.
    pub fn reply(&mut self, call: CallId, reply: Reply) {
        self.effects.push(Effect::Reply { call, reply });
    }

    /// Refuses a call.
    pub fn refuse(&mut self, call: CallId, rejection: Rejection) {
        self.effects.push(Effect::Refuse { call, rejection });
    }

    /// Starts the process of a worker that is `Starting`.
    pub fn spawn(&mut self, worker: WorkerId) {
        self.effects.extend(spawn_of(self.state, worker).map(|spawn| Effect::Spawn(Box::new(spawn))));
    }
}

/// The tree that an event belongs to.
pub fn tree_of(state: &State, event: &Event) -> Option<TreeId> {
    let worker = match event {
        Event::SlotTaken { worker, .. }
        | Event::ProcessStarted { worker, .. }
        | Event::StartDeferred { worker, .. }
        | Event::StartRetried { worker, .. }
        | Event::Blocked { worker }
        | Event::SlotLent { worker }
        | Event::WaitOver { worker }
        | Event::SlotRetaken { worker }
        | Event::Resumed { worker }
        | Event::ParkAsked { worker, .. }
        | Event::ParkCancelled { worker, .. }
        | Event::Parked { worker, .. }
        | Event::MainExited { worker, .. }
        | Event::SlotFreed { worker, .. }
        | Event::StopAsked { worker, .. }
        | Event::KillSent { worker }
        | Event::Reowned { worker, .. }
        | Event::Finishing { worker, .. }
        | Event::Ended { worker, .. } => worker,
        Event::Spoken(spoken) => match spoken.subject() {
            Ok(worker) => return state.workers.get(&worker).map(|worker| worker.tree),
            Err(tree) => return Some(tree),
        },
        Event::TreeOpened(opened) => return Some(opened.tree),
        Event::JobAccepted(job) => return Some(job.tree),
        Event::Consumed { tree, .. }
        | Event::CapSet { tree, .. }
        | Event::PauseSet { tree, .. }
        | Event::Interrupted { tree, .. }
        | Event::TreeClosed { tree }
        | Event::TreeForgotten { tree } => return Some(*tree),
    };
    state.workers.get(worker).map(|worker| worker.tree)
}
