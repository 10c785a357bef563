//! What happened: the on-disk vocabulary. [`crate::state::State::apply`] is its only meaning, live and in replay.
//!
//! Events age slowest of the three enums: a field is added with a default, a variant is never reused for another meaning.
//! They carry no text of a task, no argument and no environment: those lie beside them in the journal.

mod parts;
mod settings;
mod spoken;

use serde::{Deserialize, Serialize};

use roost_proto::id::{Epoch, ExecutionId, TreeId, WorkerId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_proto::outcome::Outcome;

use crate::state::speech::Held;
use crate::time::{Mono, Now};

pub use spoken::Spoken;

pub use parts::{AcceptedTask, Context, Digest, Grant, JobAccepted, Owner, Place, Runner, Sent, StopCause, TextId, TreeOpened};
pub use settings::{Delivery, InterruptScope, Join, Settings, Timing};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number, without gaps, from 1.
    pub seq: u64,
    /// When it happened.
    pub at: Now,
    /// What happened.
    pub event: Event,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A tree was opened.
    TreeOpened(Box<TreeOpened>),
    /// A launch was accepted: budget, names and places are taken.
    JobAccepted(Box<JobAccepted>),
    /// A worker took a slot; its process may be started from now on.
    SlotTaken {
        /// Who.
        worker: WorkerId,
        /// The incarnation that the slot is for; unchanged when a live process takes its lent slot back.
        epoch: Epoch,
        /// Why it was its turn.
        grant: Grant,
        /// The job was accepted in the same step: its receipt says `started`.
        #[serde(default)]
        at_once: bool,
    },
    /// Its process runs.
    ProcessStarted {
        /// Whose.
        worker: WorkerId,
        /// The process.
        process: ProcessIdentity,
    },
    /// Its process could not be started, and is tried again later. The slot is kept.
    StartDeferred {
        /// Whose.
        worker: WorkerId,
        /// When.
        again_at: Mono,
        /// What was wrong.
        reason: String,
        /// What its process left behind, where that is kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        leftovers: Vec<u32>,
    },
    /// The further try, as a new incarnation.
    StartRetried {
        /// Whose.
        worker: WorkerId,
        /// The new incarnation.
        epoch: Epoch,
    },
    /// A live worker waits for descendants inside a call.
    Blocked {
        /// Who.
        worker: WorkerId,
    },
    /// A blocked worker's slot goes to somebody else; its process stays.
    SlotLent {
        /// Whose.
        worker: WorkerId,
    },
    /// What a blocked worker waited for is there (or its time is over). With its slot lent it needs one before its call returns.
    WaitOver {
        /// Who.
        worker: WorkerId,
    },
    /// A worker whose slot is lent went on without its call having returned: it counts as live again at once.
    SlotRetaken {
        /// Who.
        worker: WorkerId,
    },
    /// A settled worker goes on without having exited. (Runner `worker`.)
    Resumed {
        /// Who.
        worker: WorkerId,
    },
    /// A settled worker was asked to park.
    ParkAsked {
        /// Who.
        worker: WorkerId,
        /// When the request is called off; `None` is never.
        deadline: Option<Mono>,
    },
    /// The request was declined, ran out of time, or something arrived before the context was saved.
    ParkCancelled {
        /// Who.
        worker: WorkerId,
        /// It is not asked again before.
        not_before: Mono,
    },
    /// The context is saved: **the** linearization point of parking. The process is on its way out and still has the slot.
    Parked {
        /// Who.
        worker: WorkerId,
        /// The saved context.
        context: Context,
        /// The call in which it was parked; it makes it again when it is woken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<Box<Held>>,
    },
    /// The main process has ended, and processes that it left behind are alive.
    MainExited {
        /// Whose.
        worker: WorkerId,
        /// How.
        status: ExitStatus,
    },
    /// The process and all that descended from it are gone, but for what is kept; the slot is free.
    SlotFreed {
        /// Whose.
        worker: WorkerId,
        /// How the main process ended (again, where `MainExited` was recorded).
        status: ExitStatus,
        /// What it left behind, where that is kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        leftovers: Vec<u32>,
    },
    /// A worker and no new work of it: it is being ended. What had no process has none from here on.
    StopAsked {
        /// Who.
        worker: WorkerId,
        /// Why.
        cause: StopCause,
        /// When TERM becomes KILL.
        kill_at: Mono,
    },
    /// The grace was over.
    KillSent {
        /// Whose.
        worker: WorkerId,
    },
    /// A worker's owner failed; an ancestor owns it from here on.
    Reowned {
        /// Who.
        worker: WorkerId,
        /// The new owner.
        owner: Owner,
    },
    /// The outcome is known and waits for the subtree.
    Finishing {
        /// Whose.
        worker: WorkerId,
        /// How it will end.
        outcome: Outcome,
    },
    /// The execution has ended: its one terminal record. Its lead is owed a completion, unless it was stopped.
    Ended {
        /// Whose.
        worker: WorkerId,
        /// How.
        outcome: Outcome,
    },
    /// A lead was told these ends by its own call: they are not announced any more.
    Consumed {
        /// The tree.
        tree: TreeId,
        /// The lead.
        owner: Owner,
        /// The call, where a repeat of it must be answered alike.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        /// Whose ends.
        workers: Vec<WorkerId>,
        /// Ends of earlier executions of children that went on since.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        earlier: Vec<ExecutionId>,
    },
    /// Something of workers that speak, of words, deliveries or usage.
    Spoken(Box<Spoken>),
    /// The cap was set.
    CapSet {
        /// Of which tree.
        tree: TreeId,
        /// To what.
        cap: u32,
    },
    /// Admissions were held or released.
    PauseSet {
        /// Of which tree.
        tree: TreeId,
        /// Held?
        paused: bool,
    },
    /// Everything in the tree is being stopped; launches that were sent before it are refused.
    Interrupted {
        /// Which tree.
        tree: TreeId,
        /// The new generation.
        generation: u64,
        /// The call, and how many were active, for a repeat of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<(String, u32)>,
    },
    /// The tree takes no launches any more.
    TreeClosed {
        /// Which one.
        tree: TreeId,
    },
    /// Retention is over: the tree and its results are gone.
    TreeForgotten {
        /// Which one.
        tree: TreeId,
    },
}
