//! The answers to calls: values that become messages outside of the core.

use roost_proto::id::{ExecutionId, JobId, MessageId, Token, TreeId, WorkerId};

use super::{End, Holder, Owed};
use crate::command::Caller;
use crate::event::{Delivery, Sent, Settings};
use crate::state::speech::Next;
use crate::usage_view::UsageView;
use crate::view::{TreeCounts, TreeView, WorkerView};

/// What a connection is beyond a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The lease that it holds.
    pub holder: Holder,
    /// How completions are to be taken in.
    pub delivery: Delivery,
    /// Milliseconds.
    pub hold_ms: u64,
    /// For a worker: name, execution, whether it goes on from a context, and the call that it goes on in.
    pub worker: Option<(String, ExecutionId, bool, Option<String>)>,
}

/// The answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To `Hello`.
    Welcome {
        /// As whom.
        caller: Caller,
        /// The tree.
        tree: Option<TreeId>,
        /// Budget slots left.
        budget_remaining: Option<u64>,
        /// Interrupt generation.
        generation: Option<u64>,
        /// What the connection is beyond that.
        standing: Option<Box<Standing>>,
    },
    /// To `Open` and `Attach`.
    Opened {
        /// The tree.
        tree: TreeId,
        /// The root's token.
        token: Token,
        /// Whether it is new.
        created: bool,
        /// Its settings, the cap as it is now.
        settings: Settings,
    },
    /// To `Launch`.
    Receipt {
        /// The job.
        job: JobId,
        /// Its tasks.
        tasks: Vec<Placed>,
        /// In the foreground: how they ended.
        ends: Vec<End>,
        /// How many ends the launcher has not taken in, where that is worth a warning.
        backlog: Option<usize>,
    },
    /// To `Wait`.
    Ends {
        /// In the order of their ends.
        ends: Vec<End>,
        /// Names of those that have not.
        pending: Vec<String>,
        /// The time was over.
        timed_out: bool,
    },
    /// To `Result`: it has ended.
    Result(Box<End>),
    /// To `Result`: it has not.
    StillActive {
        /// Who.
        view: Box<WorkerView>,
        /// The time was over.
        timed_out: bool,
    },
    /// To `Status`.
    Status {
        /// Trees.
        trees: Vec<TreeView>,
        /// Workers of the one tree.
        workers: Vec<WorkerView>,
        /// There are more after this one.
        next: Option<WorkerId>,
    },
    /// To `Count`.
    Counts(TreeCounts),
    /// To `Stop`: name, and whether it was active and is stopped now.
    Stopped(Vec<(String, bool)>),
    /// To `Interrupt`.
    Interrupted {
        /// How many were active.
        stopped: u32,
        /// New generation.
        generation: u64,
    },
    /// To `Cap`.
    Cap(TreeCounts),
    /// To `Pause`.
    Paused(bool),
    /// To `Close`.
    Closed {
        /// How many were stopped for it.
        stopped: u32,
    },
    /// To `Park`.
    Parked,
    /// To `Settle`.
    Settled(Next),
    /// To `ParkReady`: whether it is parked.
    ParkReady(bool),
    /// To what needs no more than that: `Report`, `ParkDecline`, `Told`.
    Done,
    /// To `Ack`.
    Acked {
        /// Taken in now.
        accepted: Vec<u64>,
        /// Not owed any more.
        gone: Vec<u64>,
    },
    /// To `Inbox`.
    Inbox {
        /// As many as fit.
        items: Vec<Owed>,
        /// How many more there are.
        more: usize,
    },
    /// To `Message` and `TellLead`.
    Sent {
        /// The message.
        message: MessageId,
        /// What became of it.
        sent: Sent,
        /// Where a resume went.
        placed: Option<(JobId, Placed)>,
    },
    /// To `Usage`.
    Usage(Box<UsageView>),
    /// To `Gc`.
    Swept(Box<Swept>),
    /// To `Drain`.
    Drained {
        /// How many were ended for it.
        stopped: u32,
    },
}

/// What a sweep has forgotten, or would.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The trees; of very many the first.
    pub trees: Vec<SweptTree>,
    /// How many there are in all.
    pub total: usize,
    /// How many workers those have.
    pub workers: usize,
    /// What their files take.
    pub bytes: u64,
    /// How many trees stay for results that nobody has read.
    pub unread: usize,
    /// Whether there are more than are listed; those are forgotten by the next call.
    pub more: bool,
    /// Nothing was done.
    pub dry_run: bool,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweptTree {
    /// Which.
    pub tree: TreeId,
    /// Its key.
    pub key: Option<String>,
    /// When it was closed, Unix milliseconds.
    pub closed_at_ms: u64,
    /// How many workers it has.
    pub workers: usize,
    /// What their files take.
    pub bytes: u64,
}

/// Where a task went at acceptance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// The execution.
    pub execution: ExecutionId,
    /// `None`: started at once; else its place from 1.
    pub place: Option<u32>,
    /// Why it waits, as of the answer: a repeat of the launch has its first place and the reason of its own moment.
    pub reason: Option<String>,
}
