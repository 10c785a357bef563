//! What the world must be told: values that only the driver may carry out, and only after the commit of their own events.

use roost_proto::id::{Epoch, ExecutionId, Incarnation, JobId, Token, TreeId, WorkerId};
use roost_proto::link::{ProcessIdentity, Signal};
use roost_proto::outcome::Outcome;

use crate::command::{CallId, Caller};
use crate::event::{Context, Settings};
use crate::rejection::Rejection;
use crate::view::{TreeCounts, TreeView, WorkerView};

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
    /// Hand a live worker what it is owed; it stays owed until it is acknowledged.
    Deliver {
        /// Which.
        incarnation: Incarnation,
        /// The items, in order.
        items: Vec<(u64, End)>,
    },
    /// Ask a settled worker to park.
    AskPark {
        /// Which.
        incarnation: Incarnation,
    },
    /// Tell a worker that its park is recorded: it must exit.
    ParkOk {
        /// Which.
        incarnation: Incarnation,
    },
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
        /// Its executions and how many incarnations each had.
        executions: Vec<(ExecutionId, Epoch)>,
        /// Its workers.
        workers: Vec<WorkerId>,
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
    pub items: Vec<(u64, End)>,
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
    Result(End),
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
    /// To `Drain`.
    Drained {
        /// How many were ended for it.
        stopped: u32,
    },
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
