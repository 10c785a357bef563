//! What is owed: items on their way to a lead or a worker, and their acknowledgement. Contract section 10.
//!
//! Items are pushed as `deliver` notifications to the connection that holds the lease, again after every new hello, until they are
//! acknowledged. A client drops what it has seen by `seq`; across processes by the execution or message id.

use serde::{Deserialize, Serialize};

use crate::id::{ExecutionId, MessageId, WorkerId};
use crate::message::result::WorkerResult;

/// The method of the notification that carries a [`Delivery`].
pub const DELIVER: &str = "deliver";
/// The method of the notification that carries a [`Withdrawal`].
pub const WITHDRAW: &str = "withdraw";
/// The method of the notification that carries a [`ParkAsk`].
pub const PARK: &str = "park";
/// The method of the notification that tells that another connection has taken the lease.
pub const LEASE_LOST: &str = "lease_lost";

/// Items, in order. All that stand in one delivery are one prompt.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Whether this alone should start a turn when the receiver is idle.
    pub wake: bool,
    /// Direct children that have not ended.
    pub active_children: u32,
    /// What is owed.
    pub items: Vec<Item>,
}

/// These items were read by another way; who has not taken them in must drop them.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// Their numbers.
    pub items: Vec<u64>,
}

/// Save your context and say `park_ready`, or `park_decline`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkAsk {
    /// Milliseconds after which the request is called off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

/// Another connection has taken the lease: nothing is pushed here any more, and an `ack` is refused with `stale_lease`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseLost {}

/// One thing owed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its number in this mailbox.
    pub seq: u64,
    /// What it is.
    #[serde(flatten)]
    pub what: ItemKind,
}

/// The kinds of items. Only completions are results.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemKind {
    /// What a worker was launched with.
    Task {
        /// The text.
        text: String,
    },
    /// A child has ended.
    Completion {
        /// How it ended and what it answered.
        #[serde(flatten)]
        result: Box<WorkerResult>,
    },
    /// Words of the receiver's lead.
    LeadMessage {
        /// The message.
        message: MessageId,
        /// The text.
        text: String,
    },
    /// Words of a child.
    ChildMessage {
        /// The message.
        message: MessageId,
        /// The child's name.
        from: String,
        /// The child.
        worker: WorkerId,
        /// The text.
        text: String,
    },
    /// `Idle, waiting for children.`: a child has ended its turn with descendants active. No result.
    Notice {
        /// The child's name.
        from: String,
        /// The child.
        worker: WorkerId,
        /// Its execution.
        execution: ExecutionId,
        /// What that turn answered.
        text: String,
    },
    /// A message of the receiver's that its target never read.
    Undelivered {
        /// The message.
        message: MessageId,
        /// Whom it was for.
        to: String,
        /// Why it was not read.
        reason: String,
        /// The message's text.
        text: String,
    },
}

/// Takes items in: they have entered the caller's input and are not owed any more. Only the lease holder may.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ack {
    /// Repeating an acknowledgement gets the same answer: by this id, or by the process that holds the lease. Somebody else is told
    /// `gone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Their numbers.
    pub items: Vec<u64>,
}

/// Answer to [`Ack`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckReply {
    /// Taken in, now or by an earlier `ack` whose answer may have been lost: the caller's to use, once.
    pub accepted: Vec<u64>,
    /// Not owed any more, and never taken in: read by another way. To be dropped.
    pub gone: Vec<u64>,
}

/// Reads what the caller is owed. Nothing is taken in by that.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {}

/// Answer to [`Inbox`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxReply {
    /// The items, in order, as many as fit a line.
    pub items: Vec<Item>,
    /// How many more there are.
    #[serde(default)]
    pub more: u32,
}
