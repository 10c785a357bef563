//! What the world must be told: values that only the driver may carry out, and only after the commit of their own events.

mod reply;

use roost_proto::id::{Epoch, ExecutionId, Incarnation, JobId, MessageId, Token, TreeId, WorkerId};
use roost_proto::link::{ProcessIdentity, Signal};
use roost_proto::outcome::Outcome;
use roost_proto::usage::UsageTotals;

use crate::command::CallId;
use crate::event::{Context, Owner, TextId};
use crate::rejection::Rejection;
use crate::state::speech::Said;

pub use crate::state::speech::Next;
pub use reply::{Placed, Reply, Standing, Swept, SweptTree};

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer a call.
    Reply {
        /// Which.
        call: CallId,
        /// With what.
        reply: Reply,
    },
    /// Refuse a call.
    Refuse {
        /// Which.
        call: CallId,
        /// Why.
        rejection: Rejection,
    },
    /// Start a process.
    Spawn(Box<Spawn>),
    /// Signal a process and all that descends from it.
    Signal {
        /// Which.
        incarnation: Incarnation,
        /// With what.
        signal: Signal,
    },
    /// Hand the holder of a lease what it is owed; it stays owed until it is acknowledged.
    Deliver(Box<Delivery>),
    /// What was handed over to the holder of this lease is not owed any more: it was read by another way.
    Withdraw {
        /// To whom.
        to: Holder,
        /// Their numbers.
        items: Vec<u64>,
    },
    /// Another connection has taken this lease.
    LeaseLost {
        /// From whom.
        from: Holder,
    },
    /// Ask a worker that waits to park.
    AskPark {
        /// Whom.
        to: Holder,
        /// Within so many milliseconds; `None`: whenever.
        deadline_ms: Option<u64>,
    },
    /// A text that nobody will ask for again.
    ForgetText(TextId),
    /// The end of this incarnation is recorded.
    Forget {
        /// Which.
        incarnation: Incarnation,
    },
    /// Find a process that an earlier supervisor started, or may have started.
    Adopt {
        /// Which.
        incarnation: Incarnation,
        /// What is known of it.
        process: Option<ProcessIdentity>,
        /// Milliseconds between TERM and KILL of what it leaves behind; `None` where that is left alone.
        leftovers_grace_ms: Option<u64>,
    },
    /// Nothing of this tree is needed any more: remove its files.
    RemoveFiles {
        /// Which tree.
        tree: TreeId,
        /// Its executions and how many incarnations each had.
        executions: Vec<(ExecutionId, Epoch)>,
        /// Its workers.
        workers: Vec<WorkerId>,
        /// Whether its root was owed a result.
        unread: bool,
    },
    /// Drained: nothing is live, the daemon may leave.
    Leave,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spawn {
    /// Which.
    pub incarnation: Incarnation,
    /// The worker.
    pub worker: WorkerId,
    /// The tree.
    pub tree: TreeId,
    /// Its token.
    pub token: Token,
    /// Milliseconds between TERM and KILL of what it leaves behind; `None` where that is left alone.
    pub leftovers_grace_ms: Option<u64>,
    /// Whether it speaks the worker protocol: then its items are handed over by its connection.
    pub speaks: bool,
    /// For a wake: what is handed over.
    pub wake: Option<Wake>,
}

/// What a woken worker is handed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// Whether its subtree has settled.
    pub settled: bool,
    /// Direct children that have not ended.
    pub active_children: u32,
    /// The saved context to verify and hand over.
    pub context: Context,
    /// The items, in order.
    pub items: Vec<Owed>,
}

/// Who holds a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The tree.
    pub tree: TreeId,
    /// The lead or worker.
    pub owner: Owner,
    /// The lease.
    pub lease: u64,
}

/// Items for the holder of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// To whom.
    pub to: Holder,
    /// Whether it should start a turn.
    pub wake: bool,
    /// Direct children that have not ended.
    pub active_children: u32,
    /// The items, in order.
    pub items: Vec<Owed>,
}

/// One item, with what its receiver needs to know; texts are looked up by whoever carries it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owed {
    /// Its number.
    pub seq: u64,
    /// What.
    pub what: OwedKind,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwedKind {
    /// What this worker was launched with.
    Task(WorkerId),
    /// An end.
    Completion(Box<End>),
    /// Words of the lead.
    LeadMessage(MessageId),
    /// Words of a child.
    ChildMessage {
        /// The message.
        message: MessageId,
        /// The child's name.
        from: String,
        /// The child.
        worker: WorkerId,
    },
    /// A child waits for children of its own.
    Notice {
        /// The child's name.
        from: String,
        /// The child.
        worker: WorkerId,
        /// Its execution.
        execution: ExecutionId,
        /// What its turn answered.
        text: Option<TextId>,
    },
    /// A message that was never read.
    Undelivered {
        /// The message.
        message: MessageId,
        /// Whom it was for.
        to: String,
    },
}

/// How one worker ended, with all its identities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// The execution.
    pub execution: ExecutionId,
    /// The job that launched it.
    pub job: JobId,
    /// Its index in the job.
    pub task_index: u32,
    /// Its last incarnation; 0 when it never had one.
    pub epoch: Epoch,
    /// How.
    pub outcome: Outcome,
    /// What it said, where it speaks; otherwise its answer is in a file.
    pub said: Option<Said>,
    /// Whether it speaks.
    pub speaks: bool,
    /// Its lead was told before.
    pub told_before: bool,
    /// What it has used, where something was reported.
    pub usage: Option<UsageTotals>,
    /// What its processes left behind, where that is kept.
    pub leftovers: Vec<u32>,
}
