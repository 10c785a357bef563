//! One worker: its identity, its one execution, and where that stands.

mod past;
mod phase;

use std::collections::BTreeSet;

use roost_proto::id::{Epoch, ExecutionId, Incarnation, JobId, Token, TreeId, WorkerId};
use roost_proto::link::{ExitStatus, ProcessIdentity, Signal};
use roost_proto::outcome::{Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::event::{Context, Owner, StopCause};
use crate::state::accounts::Accounts;
use crate::state::budget::Ledger;
use crate::state::joins::Joins;
use crate::state::outbox::Outbox;
use crate::state::seldom::Rare;
use crate::state::speech::{Held, Speech};
use crate::time::{Mono, Now};

pub use past::{Past, SentEntry, SentLog};
pub use phase::{Phase, Seat, Starting, Stop};

/// A worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its id.
    pub id: WorkerId,
    /// Its tree.
    pub tree: TreeId,
    /// Its lead.
    pub owner: Owner,
    /// Its name.
    pub name: Box<str>,
    /// Its capability.
    pub token: Token,
    /// The job that launched it.
    pub job: JobId,
    /// Its index in the job.
    pub task_index: u32,
    /// Who launched it, whoever owns it now: its allowance is reserved there.
    pub launcher: Owner,
    /// Its execution. Executions are numbered in the order of their acceptance: this is the queue's order.
    pub execution: ExecutionId,
    /// It was launched in the foreground.
    pub foreground: bool,
    /// 1 for a worker of the root.
    pub depth: u32,
    /// Its group, where the tree has a cap for it.
    pub group: Option<u16>,
    /// What it may launch.
    pub ledger: Ledger,
    /// Its children that have not ended, in the order of their launch.
    pub children: Rare<BTreeSet<WorkerId>>,
    /// How many they are.
    pub active_children: u32,
    /// How many workers were launched below it, or came to be there.
    #[serde(default)]
    pub descendants: u64,
    /// What it is owed.
    pub outbox: Rare<Outbox>,
    /// The last waits that were answered, for repeats after a lost connection.
    pub answered: Rare<Answered>,
    /// The last words that it has sent, for the same.
    #[serde(default, skip_serializing_if = "Rare::is_unused")]
    pub sent: Rare<SentLog>,
    /// The last stops of its children, for the same.
    #[serde(default, skip_serializing_if = "Rare::is_unused")]
    pub stops: Rare<StopLog>,
    /// How it stands with the worker protocol; `None` for a plain command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<Box<Speech>>,
    /// What it has used; `None` while nothing was reported of it or of anybody below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounts: Option<Box<Accounts>>,
    /// Groups of its launches, where the tree joins completions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins: Option<Box<Joins>>,
    /// Its lead's group that it was launched in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<u64>,
    /// The call in which it was parked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Box<Held>>,
    /// Its lead was told of the end of its execution.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// Its executions before this one.
    #[serde(default, skip_serializing_if = "Rare::is_unused")]
    pub past: Rare<Vec<Past>>,
    /// The first incarnation of its execution was numbered after this one.
    #[serde(default)]
    pub epoch_before: Epoch,
    /// Where its execution stands.
    pub phase: Phase,
    /// Whether it holds a slot.
    pub slot: bool,
    /// Its current or last incarnation; 0 before the first.
    pub epoch: Epoch,
    /// The process of that incarnation, from its start until it and its descendants are gone.
    pub process: Option<ProcessIdentity>,
    /// What the processes of its execution left behind, where that is kept: as it was when each of them ended.
    #[serde(default, skip_serializing_if = "Rare::is_unused")]
    pub leftovers: Rare<Vec<u32>>,
    /// It is being ended.
    pub stop: Option<Stop>,
    /// Its saved context.
    pub context: Option<Context>,
    /// It was told to go on after it had settled, and has not shown since that it knows.
    pub owed_turn: bool,
    /// Wall time from the first start.
    pub timeout_ms: Option<u64>,
    /// When that is over.
    pub timeout_at: Option<Mono>,
    /// Its place when it was accepted: how many entries of the queue came before it, itself included.
    pub place: u32,
    /// It got its slot in the step that accepted it.
    pub at_once: bool,
    /// When it was accepted.
    pub accepted_at: Now,
    /// When its first process started.
    pub started_at: Option<Now>,
    /// When it ended.
    pub ended_at: Option<Now>,
    /// Where the tree's indexes list it; kept by `reseat` alone.
    pub seat: Seat,
}

/// The last stops of a lead: request id, and for each name whether it had ended, and its execution.
pub type StopLog = std::collections::VecDeque<(String, Vec<(String, bool, ExecutionId)>)>;

/// The answers that a lead got to its last waits: request id, and the executions whose ends it told.
pub type Answered = std::collections::VecDeque<(String, Vec<ExecutionId>)>;

impl Worker {
    /// The current incarnation.
    pub fn incarnation(&self) -> Incarnation {
        Incarnation { execution: self.execution, epoch: self.epoch }
    }

    /// Its execution that this job launched or resumed.
    pub fn execution_of(&self, job: JobId) -> ExecutionId {
        self.past.iter().find(|past| past.job == job).map_or(self.execution, |past| past.execution)
    }

    /// All its executions, with their last incarnation each.
    pub fn executions(&self) -> impl Iterator<Item = (ExecutionId, Epoch)> + '_ {
        let past = self.past.iter().map(|past| (past.execution, past.epoch));
        past.chain([(self.execution, self.epoch)])
    }

    /// Whether its execution has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }

    /// Whether there is, or may be, a process of it.
    pub fn has_process(&self) -> bool {
        match &self.phase {
            Phase::Starting(starting) => starting.again_at.is_none(),
            Phase::Running
            | Phase::Blocked { .. }
            | Phase::Waiting { .. }
            | Phase::ParkAsked { .. }
            | Phase::Leaving { .. }
            | Phase::Closing { .. }
            | Phase::Emptying { .. } => true,
            Phase::Queued | Phase::Parked { .. } | Phase::Gone { .. } | Phase::Finishing { .. } | Phase::Ended { .. } => false,
        }
    }

    /// Whether its main process may still speak for it. One whose hello has not come in time may not: another one is started for it.
    pub fn can_speak(&self) -> bool {
        let late = self.speech.as_ref().is_some_and(|speech| speech.late);
        self.has_process() && !late && !matches!(self.phase, Phase::Emptying { .. })
    }

    /// Whether its park is recorded and it was not woken since.
    pub fn has_parked(&self) -> bool {
        matches!(self.phase, Phase::Leaving { .. } | Phase::Emptying { parked: true, .. } | Phase::Parked { .. })
    }

    /// Its slot is lent: the process is alive and holds none.
    pub fn is_lent(&self) -> bool {
        matches!(self.phase, Phase::Blocked { .. }) && !self.slot
    }

    /// Whether its process waits inside of a call, whatever is to become of its slot meanwhile.
    pub fn is_blocked(&self) -> bool {
        matches!(self.phase, Phase::Blocked { .. } | Phase::ParkAsked { blocked: true, .. })
    }

    /// Whether it has ended its turn and its process waits to be told something.
    pub fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Waiting { .. } | Phase::ParkAsked { blocked: false, .. })
    }

    /// Whether it can be parked while it waits inside of a call. At the end of a turn everybody can: the context is saved.
    pub fn parks_in_calls(&self) -> bool {
        self.speech.as_ref().is_some_and(|speech| speech.can_park)
    }

    /// Whether it reads what it is told while it runs.
    pub fn speaks(&self) -> bool {
        self.speech.is_some()
    }

    /// Whether its outcome is known from its own last word, while its process has not left altogether. Nothing changes it any more.
    pub fn has_answered(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. } | Phase::Emptying { outcome: Some(_), .. } | Phase::Gone { outcome: Some(_), .. })
    }

    /// How it ends, from how its process did: contract section 9. What it said itself came first.
    pub fn verdict(&self, status: Option<ExitStatus>) -> Outcome {
        if let Phase::Gone { outcome: Some(outcome), .. } = &self.phase {
            return outcome.clone();
        }
        if let Some(stop) = self.stop {
            return match stop.cause {
                StopCause::Stop | StopCause::Operator => Outcome::Stopped,
                StopCause::Timeout => Outcome::Failed(Failure::Timeout),
                StopCause::ParentFailed => Outcome::Failed(Failure::ParentFailed),
                StopCause::Idle => Outcome::Failed(Failure::IdleTimeout),
            };
        }
        if let Some(speech) = &self.speech {
            if !speech.greeted {
                let how = status.unwrap_or(ExitStatus::Unknown);
                let reason = if speech.late { "no hello came in time".into() } else { format!("it ended before its hello ({how})") };
                return Outcome::Failed(Failure::Startup { reason });
            }
            if status == Some(ExitStatus::Code(0)) {
                let reason = "it left without having settled".into();
                return Outcome::Failed(if speech.said.is_some() { Failure::Protocol { reason } } else { Failure::NoAnswer });
            }
        }
        match status {
            Some(ExitStatus::Code(0)) => Outcome::Completed,
            Some(ExitStatus::Code(code)) => Outcome::Failed(Failure::Exit { code }),
            Some(ExitStatus::Signal(signal)) => Outcome::Failed(Failure::Crash { signal }),
            Some(ExitStatus::Unknown) | None => Outcome::Failed(Failure::Lost),
        }
    }

    /// The signal that its process is to have got by now: it may have been lost with whoever was to send it.
    pub fn open_signal(&self) -> Option<Signal> {
        let late = self.speech.as_ref().is_some_and(|speech| speech.late);
        match (&self.phase, self.stop) {
            (_, Some(stop)) => Some(if stop.killed { Signal::Kill } else { Signal::Term }),
            (Phase::Leaving { killed: true, .. } | Phase::Closing { killed: true, .. }, None) => Some(Signal::Kill),
            (Phase::Leaving { .. } | Phase::Closing { .. }, None) => self.speaks().then_some(Signal::CloseStdin),
            (_, None) => late.then_some(Signal::Kill),
        }
    }

    /// The moments at which something must be done for it: for where it stands, for its call, and for its end. One never hides the
    /// other, for a moment that is past stays until the worker moves on. What is to happen at a moment must stand here from before it
    /// until it is done, in whatever phase: one that comes in when it is past is not seen any more.
    pub fn timers(&self) -> [Option<Mono>; 3] {
        let hello_by = self.speech.as_ref().and_then(|speech| speech.hello_by);
        let of_phase = match &self.phase {
            Phase::Starting(starting) => starting.again_at,
            Phase::ParkAsked { deadline, .. } => *deadline,
            Phase::Leaving { kill_at, killed: false } => *kill_at,
            Phase::Closing { kill_at, killed: false, .. } => *kill_at,
            Phase::Waiting { not_before, .. } => Some(*not_before),
            Phase::Running => hello_by,
            // Whoever can be asked to park has said hello.
            Phase::Blocked { not_before, .. } => not_before.or(hello_by),
            Phase::Queued
            | Phase::Leaving { .. }
            | Phase::Closing { .. }
            | Phase::Parked { .. }
            | Phase::Emptying { .. }
            | Phase::Gone { .. }
            | Phase::Finishing { .. }
            | Phase::Ended { .. } => None,
        };
        let of_call = self.held.as_ref().filter(|held| !held.over && self.has_parked()).and_then(|held| held.deadline);
        let of_stop = match self.stop {
            Some(stop) if self.has_process() && !stop.killed => Some(stop.kill_at),
            Some(_) => None,
            None if self.has_ended() || matches!(self.phase, Phase::Finishing { .. }) => None,
            None => self.timeout_at,
        };
        [of_phase, of_call, of_stop]
    }
}
