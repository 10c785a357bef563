//! What a lead says of what it is owed, and a worker that speaks the protocol of its own work.

use roost_proto::id::ExecutionId;
use roost_proto::outcome::Failure;
use roost_proto::usage::UsageReport;

use crate::event::{Context, Digest};

/// One such saying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speak {
    /// The caller has the ends that a wait answered with.
    Told {
        /// Whose ends.
        executions: Vec<ExecutionId>,
    },
    /// How the caller's work stands: a worker's that speaks, or a root's.
    Report {
        /// What it does.
        activity: Option<Activity>,
        /// What it has used.
        usage: Option<UsageReport>,
        /// Whether its turn has said something new; the text stays with the driver.
        says: bool,
    },
    /// A worker that speaks the protocol ended its turn. Without active descendants that is its end.
    Settle {
        /// How.
        settle: Settle,
    },
    /// A worker that was asked to park has saved its context and may exit.
    ParkReady {
        /// What it saved; `None`: its last settle still holds.
        context: Option<Context>,
    },
    /// A worker that was asked to park cannot.
    ParkDecline {
        /// Do not ask again for so long; what is beyond the bound counts as the bound.
        not_before_ms: u64,
    },
    /// A lead or a worker has taken in items that it was owed.
    Ack {
        /// Repeating it gets the same answer, whoever repeats it.
        request_id: Option<String>,
        /// Their numbers.
        items: Vec<u64>,
    },
    /// Look at what the caller is owed.
    Inbox,
    /// Words to a direct child; the text stays with the driver.
    Message {
        /// Repeating it gets the same answer.
        request_id: String,
        /// Digest of the whole request.
        digest: Digest,
        /// Which child.
        name: String,
        /// Its new allowance.
        allowance: Option<u64>,
    },
    /// Words to the caller's lead.
    TellLead {
        /// Repeating it gets the same answer.
        request_id: String,
        /// Digest of the whole request.
        digest: Digest,
    },
}

/// How a turn ended, as its worker sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// Repeating it gets the same answer.
    pub request_id: String,
    /// Whether the turn has said something; the text stays with the driver.
    pub answered: bool,
    /// What it saved.
    pub context: Option<Context>,
    /// Cut off before it was through.
    pub aborted: bool,
    /// What was wrong with its last message.
    pub error: Option<Failure>,
    /// It came to an end because it was told to.
    pub wrapped_up: bool,
    /// Its last message was cut at a length limit.
    pub truncated: bool,
    /// The last word on what its process has used.
    pub usage: Option<UsageReport>,
}

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A turn.
    Busy,
    /// Inside of a tool.
    Tool,
    /// Between turns.
    Idle,
}
