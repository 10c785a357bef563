//! What a waiting call is: who asks, for what, and why it is answered.

use std::collections::BTreeSet;

use roost_proto::id::{ExecutionId, JobId, MessageId, TreeId, WorkerId};

use super::Asker;
use crate::command::Claim;
use crate::event::Sent;
use crate::rejection::Rejection;
use crate::time::Mono;

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Who asks; `None` for an operator.
    pub asker: Option<Asker>,
    /// What it is answered with.
    pub want: Want,
    /// Workers whose end it still waits for.
    pub awaited: BTreeSet<WorkerId>,
    /// When it gives up.
    pub deadline: Option<Mono>,
    /// Set once it is to be answered.
    pub over: Option<Over>,
}

/// What a waiting call is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Who the caller is, once its process is known.
    Welcome(Box<Claim>),
    /// A receipt, as soon as the step has placed the job.
    Receipt(JobId),
    /// A receipt and the results.
    Results {
        /// The job.
        job: JobId,
        /// The call's id.
        request_id: String,
    },
    /// The ends of these workers.
    Ends {
        /// The call's id, for a repeat.
        request_id: String,
        /// The workers, in the order asked.
        workers: Vec<WorkerId>,
        /// At the first.
        any: bool,
        /// For a repeat: whose ends its first answer told. The others were still active then.
        told: Option<Vec<ExecutionId>>,
        /// Nothing counts as told before the caller has said so.
        tell_later: bool,
    },
    /// The result of this execution.
    Result {
        /// Which.
        execution: ExecutionId,
        /// The call's id, where it has one.
        request_id: Option<String>,
    },
    /// What became of words.
    Sent {
        /// The message.
        message: MessageId,
        /// At once.
        sent: Sent,
    },
    /// What a stop did: name, and whether it had ended before.
    Stopped(Vec<(String, bool)>),
    /// What an interrupt did.
    Interrupted {
        /// How many were active.
        stopped: u32,
        /// New generation.
        generation: u64,
    },
    /// A tree is closed.
    Closed {
        /// Which.
        tree: TreeId,
        /// How many were stopped.
        stopped: u32,
    },
    /// No process is live.
    Drained {
        /// How many were ended for it.
        stopped: u32,
    },
}

/// Why a waiting call is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Over {
    /// What it waited for is there.
    Done,
    /// Its time is over.
    TimedOut,
    /// It cannot be.
    Refused(Rejection),
}

impl Want {
    /// Whether the asking worker waits for descendants: then its slot may be needed elsewhere.
    pub fn blocks(&self) -> bool {
        match self {
            Self::Results { .. } | Self::Ends { .. } | Self::Result { .. } => true,
            Self::Welcome(_)
            | Self::Receipt(_)
            | Self::Sent { .. }
            | Self::Stopped(_)
            | Self::Interrupted { .. }
            | Self::Closed { .. }
            | Self::Drained { .. } => false,
        }
    }

    /// The caller's own name for a call that waits for descendants.
    pub(super) fn request_id(&self) -> Option<&str> {
        match self {
            Self::Results { request_id, .. } | Self::Ends { request_id, .. } => Some(request_id),
            Self::Result { request_id, .. } => request_id.as_deref(),
            Self::Welcome(_)
            | Self::Receipt(_)
            | Self::Sent { .. }
            | Self::Stopped(_)
            | Self::Interrupted { .. }
            | Self::Closed { .. }
            | Self::Drained { .. } => None,
        }
    }

    pub(super) fn at_first(&self) -> bool {
        matches!(self, Self::Ends { any: true, .. })
    }
}
