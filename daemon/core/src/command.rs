//! What may be asked of the broker: the in-memory vocabulary. Commands are checked, and refused whole or recorded whole.
//!
//! They are not the wire's requests (`session/translate.rs` makes them) and not the journal's events.

mod call;
mod parts;
mod speak;

use roost_proto::id::{Epoch, Incarnation, TreeId, WorkerId};
use roost_proto::link::{ChildReport, ExitStatus, ProcessIdentity};

use crate::event::{Context, Owner};

pub use call::{Call, Nature};
pub use parts::{Allowance, Claim, Launch, Open, Role, Sweep, Target, Task};
pub use speak::{Activity, Settle, Speak};

/// A call that waits for its answer. The driver hands the numbers out and knows which connection each belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// Who is calling, as its `hello` showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Caller {
    /// The user, outside of any tree.
    Operator,
    /// The root of a tree.
    Root(TreeId),
    /// A process of a worker.
    Worker {
        /// The worker.
        worker: WorkerId,
        /// The incarnation that the process belongs to.
        epoch: Epoch,
    },
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A connection says who it is.
    Hello {
        /// The call.
        call: CallId,
        /// What it claims; without a claim it is an operator.
        claim: Option<Claim>,
    },
    /// Open a tree, or find the open one of the same key or request.
    Open {
        /// The call.
        call: CallId,
        /// The tree, with a fresh id and token.
        open: Box<Open>,
    },
    /// Speak as the root of this tree from now on.
    Attach {
        /// The call.
        call: CallId,
        /// Which tree.
        tree: TreeId,
    },
    /// Launch tasks.
    Launch {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// What.
        launch: Box<Launch>,
    },
    /// Wait for children.
    Wait {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// Repeating it after a lost connection gets the same answer.
        request_id: String,
        /// Which children; empty for all whose end the caller was not told yet.
        names: Vec<String>,
        /// At the first end.
        any: bool,
        /// Nothing counts as told before the caller has said so.
        tell_later: bool,
        /// Milliseconds.
        timeout_ms: Option<u64>,
    },
    /// Read a result.
    Result {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// The tree, for an operator.
        tree: Option<TreeId>,
        /// Whose result.
        of: Target,
        /// Until it has ended.
        wait: bool,
        /// The caller's name for a call that waits: the process after a park repeats it.
        request_id: Option<String>,
        /// Milliseconds.
        timeout_ms: Option<u64>,
    },
    /// Look at trees and workers.
    Status {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// The tree, for an operator.
        tree: Option<TreeId>,
        /// Only this worker and what descends from it.
        name: Option<String>,
        /// Only what was launched after this worker.
        after: Option<WorkerId>,
    },
    /// Count a tree.
    Count {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
    },
    /// Stop children with their subtrees.
    Stop {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// Repeating it gets the same answer, and stops nobody who was resumed since.
        request_id: Option<String>,
        /// Which children.
        names: Vec<String>,
        /// Answer at once.
        no_wait: bool,
    },
    /// Stop everything of a tree.
    Interrupt {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// Repeating it gets the same answer, and stops nothing that came later.
        request_id: Option<String>,
        /// Answer at once.
        no_wait: bool,
    },
    /// Read or set the cap.
    Cap {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// The new cap.
        cap: Option<u32>,
    },
    /// Hold or release admissions.
    Pause {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// Held?
        paused: bool,
    },
    /// Close a tree.
    Close {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// Stop what is active.
        now: bool,
    },
    /// A plain command saves its context and is about to exit.
    Park {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// What it saved.
        context: Context,
    },
    /// What a lead says, or a worker that speaks.
    Speak {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// The lease that the connection holds.
        lease: Option<u64>,
        /// What.
        speak: Box<Speak>,
    },
    /// Look at what was used.
    Usage {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// The tree, for an operator.
        tree: Option<TreeId>,
        /// Only this worker and what is below it.
        name: Option<String>,
        /// A line for each worker.
        each: bool,
        /// Only workers after this one.
        after: Option<WorkerId>,
    },
    /// The connection that held a lease is gone.
    LeaseGone {
        /// The tree.
        tree: TreeId,
        /// Whose.
        owner: Owner,
        /// Its number.
        lease: u64,
    },
    /// The connection of these calls is gone: what they waited for does not matter any more.
    Abandon {
        /// The calls.
        calls: Vec<CallId>,
    },
    /// A root connection is gone or there; an ephemeral tree lives by them.
    RootPresence {
        /// Which tree.
        tree: TreeId,
        /// How many connections speak as its root now.
        connections: u32,
    },
    /// The supervisor's word of what it holds; first command after a start of the broker.
    Reconcile {
        /// All its children.
        children: Vec<ChildReport>,
    },
    /// A process runs.
    Spawned {
        /// Which.
        incarnation: Incarnation,
        /// The process.
        process: ProcessIdentity,
    },
    /// A process could not be started.
    SpawnFailed {
        /// Which.
        incarnation: Incarnation,
        /// Why.
        reason: String,
        /// Whether trying again may help.
        transient: bool,
    },
    /// The saved context that the process needs is damaged.
    ContextCorrupt {
        /// Which.
        incarnation: Incarnation,
        /// What is wrong.
        reason: String,
    },
    /// A main process has ended.
    Exited {
        /// Which.
        incarnation: Incarnation,
        /// How.
        status: ExitStatus,
        /// Processes of it that are left alive.
        leftovers: Vec<u32>,
    },
    /// What a main process left behind is gone.
    Emptied {
        /// Which.
        incarnation: Incarnation,
    },
    /// A start that the journal decided and no supervisor carried out.
    NeverStarted {
        /// Which.
        incarnation: Incarnation,
    },
    /// Forget closed trees.
    Gc {
        /// The call.
        call: CallId,
        /// Which.
        sweep: Box<Sweep>,
    },
    /// A deadline may have passed.
    Tick,
    /// Take no new work, and say when no process is live any more.
    Drain {
        /// The call; `None` when the supervisor was told to end.
        call: Option<CallId>,
        /// End live workers instead of waiting.
        now: bool,
        /// Milliseconds, after which it is called off.
        timeout_ms: Option<u64>,
    },
}
