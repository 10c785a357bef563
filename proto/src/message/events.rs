//! The numbered stream of a tree: contract section 11. Events are observations; nothing is decided by who reads them.

use serde::{Deserialize, Serialize};

use crate::id::{Epoch, ExecutionId, JobId, MessageId, TreeId, WorkerId};
use crate::outcome::Outcome;
use crate::usage::UsageTotals;

/// The method of the notification that carries an [`EventsReply`] to a follower.
pub const EVENTS: &str = "events";

/// Reads events of the caller's tree, and with `follow` goes on as notifications. Who reads too slowly is cut off, and goes on by number.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadEvents {
    /// The tree, for an operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional = nullable))]
    pub tree: Option<TreeId>,
    /// The first number wanted, from 1.
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub from: u64,
    /// Go on with what comes.
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub follow: bool,
}

/// Answer to [`ReadEvents`], as many as fit; `next` is where to go on.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsReply {
    /// The tree.
    pub tree: TreeId,
    /// The events, without a gap.
    pub events: Vec<NumberedEvent>,
    /// The number after the last one here.
    pub next: u64,
    /// The number of the tree's next event: when it equals `next`, this is all.
    pub end: u64,
}

/// One event.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedEvent {
    /// Its number in its tree, from 1, without gaps.
    pub number: u64,
    /// When, in Unix milliseconds; for display, never for order.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: TreeEvent,
}

/// What happened, as everybody may see it, without texts.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TreeEvent {
    /// The tree was opened.
    Opened {},
    /// An execution was accepted: of a new worker, or a resume.
    Created {
        /// Who, and in which execution.
        #[serde(flatten)]
        of: Subject,
        /// The worker's lead; absent for the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lead: Option<WorkerId>,
        /// The job.
        job: JobId,
        /// Its index in the job.
        task_index: u32,
        /// Whether its worker is there already.
        resume: bool,
        /// Its group, where the tree caps that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
    },
    /// It is in the queue.
    Queued {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// Its first process has a slot.
    Started {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// A process of it runs.
    Running {
        /// Who.
        #[serde(flatten)]
        of: Subject,
        /// Which process.
        epoch: Epoch,
    },
    /// A process could not be started and is tried again.
    StartRetried {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// It waits inside of a call.
    Blocked {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// Its slot is lent.
    SlotLent {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// What it waited for is there.
    WaitOver {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// It goes on after a wait, with a slot.
    Unblocked {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// Its turn has ended with descendants active.
    Waiting {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// It goes on after a settled turn.
    Resumed {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// It was asked to park.
    ParkAsked {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// That was called off.
    ParkCancelled {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// Its context is saved; its process leaves.
    Parked {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// It got a slot to be woken with.
    Woken {
        /// Who.
        #[serde(flatten)]
        of: Subject,
        /// Whether its subtree has settled.
        settled: bool,
    },
    /// Words to or from a worker were accepted (`subagents:steered`).
    Message {
        /// To whom; absent: to the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<WorkerId>,
        /// From whom; absent: from the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<WorkerId>,
        /// The message.
        message: MessageId,
    },
    /// A receiver has taken items in.
    Delivered {
        /// Who; absent: the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<WorkerId>,
        /// The numbers of the items.
        items: Vec<u64>,
    },
    /// Messages that were never read went back to their senders.
    Undelivered {
        /// Which.
        messages: Vec<MessageId>,
    },
    /// Results were read by their lead.
    Consumed {
        /// Whose.
        workers: Vec<WorkerId>,
    },
    /// It is being ended.
    Stopping {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// It belongs to another lead.
    Reowned {
        /// Who.
        #[serde(flatten)]
        of: Subject,
        /// Its new lead; absent: the root.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lead: Option<WorkerId>,
    },
    /// Its outcome is known and waits for its subtree.
    Finishing {
        /// Who.
        #[serde(flatten)]
        of: Subject,
    },
    /// The execution has ended (`subagents:completed`, `subagents:failed`).
    Ended {
        /// Who.
        #[serde(flatten)]
        of: Subject,
        /// How.
        outcome: Outcome,
        /// What it has used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<UsageTotals>,
    },
    /// The cap was set.
    CapSet {
        /// To what.
        cap: u32,
    },
    /// Admissions were held or released.
    PauseSet {
        /// Held?
        paused: bool,
    },
    /// Everything is being stopped.
    Interrupted {},
    /// A lead has many items that it does not take in.
    Backlog {
        /// Whose; absent: the root's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<WorkerId>,
        /// How many.
        items: u32,
    },
    /// The tree takes no launches any more.
    Closed {},
}

/// Whom an event is about.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The worker's name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its execution.
    pub execution: ExecutionId,
}
