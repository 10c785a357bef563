//! What happened: the on-disk vocabulary. [`crate::state::State::apply`] is its only meaning, live and in replay.
//!
//! Events age slowest of the three enums: a field is added with a default, a variant is never reused for another meaning.
//! They carry no text of a task, no argument and no environment: those lie beside them in the journal.

use serde::{Deserialize, Serialize};

use roost_proto::id::{Epoch, ExecutionId, JobId, Token, TreeId, WorkerId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_proto::outcome::Outcome;

use crate::time::{Mono, Now};

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
    /// A live worker ended its turn with descendants active; its context is saved. (Runner `worker`.)
    Settled {
        /// Who.
        worker: WorkerId,
        /// The saved context.
        context: Context,
    },
    /// A settled worker goes on without having exited. (Runner `worker`.)
    Resumed {
        /// Who.
        worker: WorkerId,
    },
    /// A live worker has taken in what it was owed up to this number. (Runner `worker`.)
    Delivered {
        /// Who.
        worker: WorkerId,
        /// The last item.
        last: u64,
    },
    /// A settled worker was asked to park.
    ParkAsked {
        /// Who.
        worker: WorkerId,
        /// When the request is called off.
        deadline: Mono,
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
    },
    /// The main process has ended, and processes that it left behind are alive.
    MainExited {
        /// Whose.
        worker: WorkerId,
        /// How.
        status: ExitStatus,
    },
    /// The process and all that descended from it are gone; the slot is free.
    SlotFreed {
        /// Whose.
        worker: WorkerId,
        /// How the main process ended (again, where `MainExited` was recorded).
        status: ExitStatus,
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
    },
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

/// A tree as it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeOpened {
    /// Its id.
    pub tree: TreeId,
    /// The root's token.
    pub token: Token,
    /// The request that opened it.
    pub request_id: String,
    /// The name under which its root finds it again.
    pub key: Option<String>,
    /// Closed by itself when its root is gone and its work done.
    pub ephemeral: bool,
    /// What holds for it.
    pub settings: Settings,
}

/// What holds for a whole tree; see the message of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Most slots.
    pub cap: u32,
    /// Budget slots.
    pub budget: u64,
    /// Whether blocked waits lend their slot; otherwise they keep it and the newest may fail with `deadlock`.
    pub lend_slots: bool,
    /// Whether processes that a worker leaves behind are ended.
    pub end_leftovers: bool,
    /// Whether descendants of a worker that fails are adopted instead of stopped.
    pub adopt_orphans: bool,
    /// Milliseconds between TERM and KILL.
    pub stop_grace_ms: u64,
    /// Deepest nesting.
    pub depth_max: u32,
    /// What an interrupt reaches.
    #[serde(default)]
    pub interrupt_scope: InterruptScope,
    /// Groups with a cap, in the order of their names.
    pub group_caps: Vec<(String, u32)>,
}

/// What an interrupt reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptScope {
    /// Everything of the tree.
    #[default]
    All,
    /// What was launched in the foreground, and all below it.
    Foreground,
    /// Nothing.
    None,
}

/// An accepted launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobAccepted {
    /// Its id.
    pub job: JobId,
    /// The tree.
    pub tree: TreeId,
    /// Who launched it.
    pub owner: Owner,
    /// The launcher's id for the request.
    pub request_id: String,
    /// Digest of the request's content.
    pub digest: Digest,
    /// Its launcher waits for the results in the launch call itself.
    #[serde(default)]
    pub foreground: bool,
    /// The tasks.
    pub tasks: Vec<AcceptedTask>,
}

/// One task of an accepted launch. Its worker, execution and place follow from its index: ids are consecutive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedTask {
    /// The worker.
    pub worker: WorkerId,
    /// Its execution.
    pub execution: ExecutionId,
    /// Its name.
    pub name: String,
    /// Its token.
    pub token: Token,
    /// Descendants that it may launch.
    pub allowance: u64,
    /// Index into the tree's `group_caps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
    /// Wall time from the first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Who owns a worker: its lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The root of the tree.
    Root,
    /// A worker of it.
    Worker(WorkerId),
}

/// Why a slot was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// Head of the queue.
    Start,
    /// A parked worker whose subtree has settled.
    FinalWake,
    /// A parked worker with something in its outbox.
    EarlyWake,
    /// A live worker whose slot was lent and whose wait is over.
    Return,
}

/// Why a worker is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// Its lead, or an interrupt: nobody has to be told.
    Stop,
    /// Somebody else than its lead, for instance the end of the daemon: its lead is told.
    Operator,
    /// Its wall time is over.
    Timeout,
    /// Its lead failed.
    ParentFailed,
}

/// A saved context; its bytes lie beside the event in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// SHA-256 of the bytes, shortened: what is verified at the wake.
    pub digest: Digest,
    /// How many bytes.
    pub bytes: u64,
}

/// The first half of a SHA-256; in text 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub u128);

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{:032x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}
