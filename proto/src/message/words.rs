//! Messages between a lead and its direct children: contract section 7. They are not results.

use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, JobId, MessageId};
use crate::message::launch::Placement;

/// Sends words to a direct child, without waiting for it. A child that has ended and was saved is resumed by it: a new execution,
/// through the queue, with the settings that it was launched with.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The same id with the same content is one message, and gets the same answer.
    pub request_id: String,
    /// The child's name.
    pub name: String,
    /// The text.
    pub text: String,
    /// The child's new allowance. What is above the highest so far is drawn from its original launcher; nothing is refunded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_subagents_allowed: Option<u64>,
}

/// Answer to [`Message`]. It is on disk; whether it was read, the event stream tells, and a message that never was comes back as an
/// item `undelivered`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageReply {
    /// The message.
    pub message: MessageId,
    /// What became of it.
    pub sent: Sent,
}

/// What became of a message at once.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Sent {
    /// It is in the input of a worker that is active.
    Steering {
        /// Its execution.
        execution: ExecutionId,
    },
    /// The worker is just ending; it is resumed with this as soon as it has.
    AfterEnd {
        /// The execution that ends.
        execution: ExecutionId,
    },
    /// It resumes a worker that had ended.
    Resumed {
        /// The job of the resume.
        job: JobId,
        /// The new execution.
        execution: ExecutionId,
        /// Whether it has a slot.
        placement: Placement,
        /// Its place in the queue, from 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<u32>,
    },
}

/// Sends words to the caller's lead. Not a completion. Fails with `lead_parked` while the lead is parked.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TellLead {
    /// The same id with the same content is one message.
    pub request_id: String,
    /// The text.
    pub text: String,
}

/// Answer to [`TellLead`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TellLeadReply {
    /// The message.
    pub message: MessageId,
}
