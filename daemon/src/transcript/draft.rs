//! From records to lines: what an event says of what went in or out of an execution.

use roost_core::event::{Event, Grant, Owner, Record, Runner, Spoken};
use roost_proto::id::{ExecutionId, Incarnation, MessageId, TreeId, WorkerId};
use roost_proto::outcome::Outcome;

use super::line::{Direction, Line, What};
use super::{Seat, Transcripts};

/// Texts beside records, in the order of their numbers.
type Texts = [(u64, TreeId, Vec<u8>)];
type Lines = Vec<(ExecutionId, Line)>;

impl Transcripts {
    /// One record.
    pub(super) fn record(&mut self, lines: &mut Lines, record: &Record, texts: &Texts) {
        let at_ms = record.at.wall_ms;
        match &record.event {
            Event::JobAccepted(job) => {
                let seats = job.tasks.iter().map(|task| (task.worker, Seat::new(task.execution, task.runner == Runner::Worker)));
                self.seats.extend(seats);
            }
            Event::SlotTaken { worker, epoch, grant, .. } => {
                self.enter(*worker, *epoch);
                match grant {
                    Grant::FinalWake => self.push(lines, *worker, at_ms, What::Wake { settled: true }),
                    Grant::EarlyWake => self.push(lines, *worker, at_ms, What::Wake { settled: false }),
                    Grant::Start | Grant::Return => {}
                }
            }
            Event::StartRetried { worker, epoch } => self.enter(*worker, *epoch),
            Event::Parked { worker, context, .. } => {
                self.usage(lines, *worker, at_ms);
                self.push(lines, *worker, at_ms, What::Parked { context_bytes: context.bytes });
            }
            Event::StopAsked { worker, cause, .. } => self.push(lines, *worker, at_ms, What::Stop { cause: *cause }),
            Event::Consumed { owner: Owner::Worker(worker), workers, .. } => {
                self.push(lines, *worker, at_ms, What::Read { workers: workers.clone() });
            }
            Event::Ended { worker, outcome } => self.ended(lines, *worker, at_ms, outcome),
            Event::Spoken(spoken) => self.spoken(lines, record, spoken, texts),
            Event::Consumed { owner: Owner::Root, .. }
            | Event::TreeOpened(_)
            | Event::ProcessStarted { .. }
            | Event::StartDeferred { .. }
            | Event::Blocked { .. }
            | Event::SlotLent { .. }
            | Event::WaitOver { .. }
            | Event::SlotRetaken { .. }
            | Event::Resumed { .. }
            | Event::ParkAsked { .. }
            | Event::ParkCancelled { .. }
            | Event::MainExited { .. }
            | Event::SlotFreed { .. }
            | Event::KillSent { .. }
            | Event::Reowned { .. }
            | Event::Finishing { .. }
            | Event::CapSet { .. }
            | Event::PauseSet { .. }
            | Event::Interrupted { .. }
            | Event::TreeClosed { .. }
            | Event::TreeForgotten { .. } => {}
        }
    }

    fn spoken(&mut self, lines: &mut Lines, record: &Record, spoken: &Spoken, texts: &Texts) {
        let at_ms = record.at.wall_ms;
        match spoken {
            Spoken::Said { worker } => {
                let text = text(texts, record.seq).unwrap_or_default();
                self.push(lines, *worker, at_ms, What::Report { text });
            }
            Spoken::UsageReported { owner: Owner::Worker(worker), report, .. } => {
                if let Some(seat) = self.seats.get_mut(worker) {
                    seat.usage = Some(*report);
                }
            }
            Spoken::Settled { worker, context, answered, .. } => {
                let answer = answered.then(|| text(texts, record.seq)).flatten();
                let context_bytes = context.map(|context| context.bytes);
                self.usage(lines, *worker, at_ms);
                self.push(lines, *worker, at_ms, What::Settle { answer, context_bytes, outcome: None, length_limited: false });
            }
            Spoken::Answered { worker, outcome, context, answered, length_limited, .. } => {
                let answer = answered.then(|| text(texts, record.seq)).flatten();
                let (context_bytes, outcome) = (context.map(|context| context.bytes), Some(outcome.clone()));
                self.usage(lines, *worker, at_ms);
                self.push(lines, *worker, at_ms, What::Settle { answer, context_bytes, outcome, length_limited: *length_limited });
            }
            Spoken::Acked { owner: Owner::Worker(worker), items, .. } => {
                self.push(lines, *worker, at_ms, What::Ack { items: items.clone() });
            }
            Spoken::WordsSent { from, to, .. } => {
                let text = text(texts, record.seq).unwrap_or_default();
                let message = MessageId(record.seq);
                for (end, peer, direction) in [(*from, *to, Direction::Out), (*to, *from, Direction::In)] {
                    let Owner::Worker(worker) = end else { continue };
                    let what = What::Message { message, direction, peer: worker_of(peer), text: text.clone() };
                    self.push(lines, worker, at_ms, what);
                }
            }
            Spoken::ResumeAccepted { worker, execution, .. } => drop(self.seats.insert(*worker, Seat::new(*execution, true))),
            Spoken::UsageReported { owner: Owner::Root, .. }
            | Spoken::Acked { owner: Owner::Root, .. }
            | Spoken::Read { .. }
            | Spoken::LeaseTaken { .. }
            | Spoken::Busy { .. }
            | Spoken::HoldOver { .. }
            | Spoken::StartupOver { .. }
            | Spoken::StopTaken { .. }
            | Spoken::WordsReturned { .. }
            | Spoken::AllowanceSet { .. }
            | Spoken::GroupReleased { .. } => {}
        }
    }

    fn enter(&mut self, worker: WorkerId, epoch: roost_proto::id::Epoch) {
        if let Some(seat) = self.seats.get_mut(&worker) {
            seat.epoch = epoch;
        }
    }

    /// The newest report, if it is not told yet.
    fn usage(&mut self, lines: &mut Lines, worker: WorkerId, at_ms: u64) {
        if let Some(report) = self.seats.get_mut(&worker).and_then(|seat| seat.usage.take()) {
            self.push(lines, worker, at_ms, What::Usage { report });
        }
    }

    fn ended(&mut self, lines: &mut Lines, worker: WorkerId, at_ms: u64, outcome: &Outcome) {
        self.usage(lines, worker, at_ms);
        let Some(seat) = self.seats.get(&worker) else { return };
        let incarnation = Incarnation { execution: seat.execution, epoch: seat.epoch };
        let ran = !seat.speaks && seat.epoch.0 > 0;
        let output = ran.then(|| self.places.output(incarnation).to_string_lossy().into_owned());
        self.push(lines, worker, at_ms, What::Outcome { outcome: outcome.clone(), output });
        self.seats.remove(&worker);
    }
}

fn worker_of(owner: Owner) -> Option<WorkerId> {
    match owner {
        Owner::Root => None,
        Owner::Worker(worker) => Some(worker),
    }
}

fn text(texts: &Texts, seq: u64) -> Option<String> {
    let at = texts.binary_search_by_key(&seq, |(seq, _, _)| *seq).ok()?;
    Some(String::from_utf8_lossy(&texts[at].2).into_owned())
}
