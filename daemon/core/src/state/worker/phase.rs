//! Where an execution stands, and in which index of its tree its worker is listed for it.

use roost_proto::link::ExitStatus;
use roost_proto::outcome::Outcome;
use serde::{Deserialize, Serialize};

use crate::event::StopCause;
use crate::time::Mono;

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
        /// It is not asked to park before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        not_before: Option<Mono>,
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
        /// It waits inside a call, not at the end of its turn.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        blocked: bool,
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
    /// Its outcome is known from its own last word; its process is on the way out.
    Closing {
        /// How it ends.
        outcome: Outcome,
        /// When its process is killed if it has not left; `None`: never.
        kill_at: Option<Mono>,
        /// That was done.
        killed: bool,
    },
    /// Its main process has ended; what that left behind has not.
    Emptying {
        /// How it ended.
        status: ExitStatus,
        /// It had its context saved and recorded before.
        parked: bool,
        /// Its outcome, where that was known before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
    },
    /// No process and no slot, and not yet judged; only inside of a step.
    Gone {
        /// How its process ended; `None` when it had none.
        status: Option<ExitStatus>,
        /// Its outcome, where that was known before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
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
