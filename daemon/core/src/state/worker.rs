//! One worker: its identity, its one execution, and where that stands.

use std::collections::BTreeSet;

use roost_proto::id::{Epoch, ExecutionId, Incarnation, JobId, Token, TreeId, WorkerId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_proto::outcome::{Failure, Outcome};
use serde::{Deserialize, Serialize};

use crate::event::{Context, Owner, StopCause};
use crate::state::budget::Ledger;
use crate::state::outbox::Outbox;
use crate::time::{Mono, Now};

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
    pub children: BTreeSet<WorkerId>,
    /// How many they are.
    pub active_children: u32,
    /// What it is owed.
    pub outbox: Outbox,
    /// The last waits that were answered, for repeats after a lost connection.
    pub answered: Answered,
    /// Where its execution stands.
    pub phase: Phase,
    /// Whether it holds a slot.
    pub slot: bool,
    /// Its current or last incarnation; 0 before the first.
    pub epoch: Epoch,
    /// The process of that incarnation, from its start until it and its descendants are gone.
    pub process: Option<ProcessIdentity>,
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

/// The answers that a lead got to its last waits: request id and children.
pub type Answered = std::collections::VecDeque<(String, Vec<WorkerId>)>;

/// How a worker is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Why.
    pub cause: StopCause,
    /// When TERM becomes KILL.
    pub kill_at: Mono,
    /// KILL was sent.
    pub killed: bool,
}

/// Where an execution stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// In the queue.
    Queued,
    /// Has a slot; its process is to be started, or was and said nothing yet.
    Starting(Starting),
    /// Its process runs.
    Running,
    /// Its process waits inside a call.
    Blocked {
        /// Since when.
        since: Mono,
        /// Since when what it waited for is there, and the tree's count of admissions then: the call returns as soon as there is
        /// a slot.
        over: Option<(Mono, u64)>,
    },
    /// Its turn has ended, its context is saved, its process is alive.
    Waiting {
        /// Since when.
        since: Mono,
        /// It is not asked to park before.
        not_before: Mono,
    },
    /// It was asked to park.
    ParkAsked {
        /// Since when it waits.
        since: Mono,
        /// When the request is called off; `None` is never.
        deadline: Option<Mono>,
    },
    /// Its context is saved and its park recorded; its process is on the way out.
    Leaving {
        /// When it is killed if it has not left; `None` is never.
        kill_at: Option<Mono>,
        /// That was done.
        killed: bool,
    },
    /// No process, no slot, context saved.
    Parked {
        /// Since when.
        since: Mono,
        /// Since when there is something to wake for, and the tree's count of admissions then.
        ready: Option<(Mono, u64)>,
    },
    /// Its main process has ended; what that left behind has not.
    Emptying {
        /// How it ended.
        status: ExitStatus,
        /// It had its context saved and recorded before.
        parked: bool,
    },
    /// No process and no slot, and not yet judged; only inside of a step.
    Gone {
        /// How its process ended; `None` when it had none.
        status: Option<ExitStatus>,
    },
    /// Its outcome is known and waits for the subtree.
    Finishing {
        /// How it will end.
        outcome: Outcome,
    },
    /// It has ended.
    Ended {
        /// How.
        outcome: Outcome,
    },
}

/// The first moments of an incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starting {
    /// For a wake: the outbox items up to this number are handed over.
    pub wake: Option<u64>,
    /// The start failed and is tried again then.
    pub again_at: Option<Mono>,
    /// Tries that failed.
    pub tries: u32,
}

/// In which index of its tree a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub enum Seat {
    /// In none.
    #[default]
    None,
    /// In the queue.
    Queue,
    /// Can give its slot away.
    Victim(Mono),
    /// Waits, and may not give its slot away.
    Stuck(Mono),
    /// Wants a slot back; its subtree has settled, or its call is over.
    FinalWake(Mono),
    /// May have a slot back if one is to spare.
    EarlyWake(Mono),
}

impl Worker {
    /// The current incarnation.
    pub fn incarnation(&self) -> Incarnation {
        Incarnation { execution: self.execution, epoch: self.epoch }
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
            | Phase::Emptying { .. } => true,
            Phase::Queued | Phase::Parked { .. } | Phase::Gone { .. } | Phase::Finishing { .. } | Phase::Ended { .. } => false,
        }
    }

    /// Whether its main process may still speak for it.
    pub fn can_speak(&self) -> bool {
        self.has_process() && !matches!(self.phase, Phase::Emptying { .. })
    }

    /// Its slot is lent: the process is alive and holds none.
    pub fn is_lent(&self) -> bool {
        matches!(self.phase, Phase::Blocked { .. }) && !self.slot
    }

    /// How it ends, from how its process did: contract section 9.
    pub fn verdict(&self, status: Option<ExitStatus>) -> Outcome {
        if let Some(stop) = self.stop {
            return match stop.cause {
                StopCause::Stop | StopCause::Operator => Outcome::Stopped,
                StopCause::Timeout => Outcome::Failed(Failure::Timeout),
                StopCause::ParentFailed => Outcome::Failed(Failure::ParentFailed),
            };
        }
        match status {
            Some(ExitStatus::Code(0)) => Outcome::Completed,
            Some(ExitStatus::Code(code)) => Outcome::Failed(Failure::Exit { code }),
            Some(ExitStatus::Signal(signal)) => Outcome::Failed(Failure::Crash { signal }),
            Some(ExitStatus::Unknown) | None => Outcome::Failed(Failure::Lost),
        }
    }

    /// The moments at which something must be done for it: for where it stands, and for its end. One never hides the other, for
    /// a moment that is past stays until the worker moves on.
    pub fn timers(&self) -> [Option<Mono>; 2] {
        let of_phase = match &self.phase {
            Phase::Starting(starting) => starting.again_at,
            Phase::ParkAsked { deadline, .. } => *deadline,
            Phase::Leaving { kill_at, killed: false } => *kill_at,
            Phase::Waiting { not_before, .. } => Some(*not_before),
            Phase::Queued
            | Phase::Running
            | Phase::Blocked { .. }
            | Phase::Leaving { .. }
            | Phase::Parked { .. }
            | Phase::Emptying { .. }
            | Phase::Gone { .. }
            | Phase::Finishing { .. }
            | Phase::Ended { .. } => None,
        };
        let of_stop = match self.stop {
            Some(stop) if self.has_process() && !stop.killed => Some(stop.kill_at),
            Some(_) => None,
            None if self.has_ended() || matches!(self.phase, Phase::Finishing { .. }) => None,
            None => self.timeout_at,
        };
        [of_phase, of_stop.filter(|at| of_phase != Some(*at))]
    }
}
