//! Why a command was refused. A refused command records nothing. Each says what, why, and what to do next.

use roost_proto::id::{Epoch, TreeId};
use roost_proto::rpc::ErrorKind;

use roost_proto::limits;

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Wrong tree, worker, token or epoch: which of them is not told.
    #[error("this tree, worker and token do not belong together")]
    UnknownIdentity,
    /// An older incarnation.
    #[error("this process belongs to incarnation {epoch} of its worker, which is over")]
    StaleEpoch {
        /// The caller's.
        epoch: Epoch,
    },
    /// An operator called what needs a tree.
    #[error("this needs a tree")]
    NoTree,
    /// No such tree.
    #[error("there is no tree {tree}")]
    UnknownTree {
        /// Which.
        tree: TreeId,
    },
    /// The tree is closed.
    #[error("tree {tree} is closed")]
    TreeClosed {
        /// Which.
        tree: TreeId,
    },
    /// A worker called what only the root may.
    #[error("only the root of the tree may {what}")]
    NotRoot {
        /// What.
        what: &'static str,
    },
    /// Somebody else called what only a worker may.
    #[error("only a worker may {what}")]
    NotWorker {
        /// What.
        what: &'static str,
    },
    /// No direct child of this name; the same words whether the name exists elsewhere or not.
    #[error("no worker of yours has the name `{}`", shown(names))]
    UnknownWorker {
        /// The names.
        names: Vec<String>,
    },
    /// A name breaks the rule.
    #[error("the name `{}` {why}", .name.escape_debug())]
    BadName {
        /// Which.
        name: String,
        /// The rule.
        why: &'static str,
    },
    /// Names are unique in a tree and never used again.
    #[error("the name `{name}` is taken in this tree")]
    NameTaken {
        /// Which.
        name: String,
    },
    /// A number or setting out of its range.
    #[error("{what} must be {range}, and {value} is not")]
    BadValue {
        /// Which.
        what: &'static str,
        /// The range, in words.
        range: String,
        /// What was given.
        value: String,
    },
    /// None, or too many.
    #[error("a launch takes 1 to {} tasks, and this one has {tasks}", limits::TASKS_PER_LAUNCH_MAX)]
    TaskCount {
        /// How many.
        tasks: usize,
    },
    /// No process can be started there.
    #[error("{what}")]
    BadCwd {
        /// Which task and directory, and why.
        what: String,
    },
    /// The same: its file system does not say.
    #[error("a working directory did not answer within {seconds} s")]
    SilentCwd {
        /// How long it had.
        seconds: u64,
    },
    /// Nothing can be written.
    #[error("the disk of {directory} is full")]
    NoSpace {
        /// The state directory.
        directory: String,
    },
    /// Not enough left.
    #[error("the launch needs {needed} budget slots and {remaining} are left")]
    Budget {
        /// How many it needs.
        needed: u64,
        /// How many there are.
        remaining: u64,
    },
    /// Too deep.
    #[error("the tree may be {depth_max} deep, and this worker would be deeper")]
    Depth {
        /// The limit.
        depth_max: u32,
    },
    /// Same id, other content.
    #[error("the request id `{}` was used before with other content", .request_id.escape_debug())]
    RequestIdReused {
        /// Which.
        request_id: String,
    },
    /// Latched.
    #[error("this worker is being stopped")]
    Stopping,
    /// An older generation.
    #[error("the tree was interrupted")]
    Interrupted,
    /// The worker has given its context away.
    #[error("this worker is parked")]
    Parked,
    /// The target of a message is parked.
    #[error("the worker `{}` is parked and reads nothing now", .name.escape_debug())]
    TargetParked {
        /// Which.
        name: String,
    },
    /// The target of a message is being ended.
    #[error("the worker `{}` is being stopped", .name.escape_debug())]
    TargetStopping {
        /// Which.
        name: String,
    },
    /// The target of a message reads nothing.
    #[error("the worker `{}` cannot be told anything: {why}", .name.escape_debug())]
    NotSteerable {
        /// Which.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// The target of a message has ended for good.
    #[error("the worker `{}` has ended and cannot go on: {why}", .name.escape_debug())]
    NotResumable {
        /// Which.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// The caller's lead is parked.
    #[error("your lead is parked and reads nothing now")]
    LeadParked,
    /// The caller's lead has answered.
    #[error("your lead has ended its work and reads nothing any more")]
    LeadGone,
    /// Another connection speaks for the caller.
    #[error("this connection does not hold the lease of what is owed here")]
    StaleLease,
    /// Another process speaks for the worker.
    #[error("another process speaks for this worker")]
    AlreadyConnected,
    /// The caller does not take in what it asked for.
    #[error("{owed} results wait to be taken in by you, and the limit is {}", limits::BACKLOG_MAX)]
    Backpressure {
        /// How many.
        owed: usize,
    },
    /// A turn has ended with descendants active, and nothing was saved.
    #[error("a turn that ends with descendants active must save its context")]
    NoContext,
    /// Nothing can move.
    #[error("every slot is held by a worker that waits, and nothing else can move")]
    Deadlock,
    /// Still work.
    #[error("{active} workers of the tree are active")]
    Active {
        /// How many.
        active: u32,
    },
    /// On the way out.
    #[error("the daemon is about to stop and takes no new work")]
    Draining,
    /// A drain ran out of time.
    #[error("{live} workers are still running: {}", shown(names))]
    StillRunning {
        /// How many.
        live: u32,
        /// Some of their names.
        names: Vec<String>,
    },
    /// A bound of `limits.rs`.
    #[error("{what}: the limit is {limit}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// How many.
        limit: usize,
    },
}

impl Rejection {
    /// The wire's word for it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::UnknownIdentity => ErrorKind::UnknownIdentity,
            Self::StaleEpoch { .. } => ErrorKind::StaleEpoch,
            Self::NoTree | Self::UnknownTree { .. } => ErrorKind::NoTree,
            Self::TreeClosed { .. } => ErrorKind::TreeClosed,
            Self::NotRoot { .. } => ErrorKind::NotRoot,
            Self::NotWorker { .. } => ErrorKind::NotWorker,
            Self::UnknownWorker { .. } => ErrorKind::UnknownWorker,
            Self::BadName { .. } => ErrorKind::BadName,
            Self::NameTaken { .. } => ErrorKind::NameTaken,
            Self::BadValue { .. } => ErrorKind::BadValue,
            Self::TaskCount { .. } => ErrorKind::TaskCount,
            Self::BadCwd { .. } | Self::SilentCwd { .. } => ErrorKind::BadCwd,
            Self::NoSpace { .. } => ErrorKind::NoSpace,
            Self::Budget { .. } => ErrorKind::Budget,
            Self::Depth { .. } => ErrorKind::Depth,
            Self::RequestIdReused { .. } => ErrorKind::RequestIdReused,
            Self::Stopping => ErrorKind::Stopping,
            Self::Interrupted => ErrorKind::Interrupted,
            Self::Parked | Self::TargetParked { .. } => ErrorKind::Parked,
            Self::TargetStopping { .. } => ErrorKind::Stopping,
            Self::NotSteerable { .. } => ErrorKind::NotSteerable,
            Self::NotResumable { .. } => ErrorKind::NotResumable,
            Self::LeadParked => ErrorKind::LeadParked,
            Self::LeadGone => ErrorKind::LeadGone,
            Self::StaleLease => ErrorKind::StaleLease,
            Self::AlreadyConnected => ErrorKind::AlreadyConnected,
            Self::Backpressure { .. } => ErrorKind::Backpressure,
            Self::NoContext => ErrorKind::BadValue,
            Self::Deadlock => ErrorKind::Deadlock,
            Self::Active { .. } => ErrorKind::Active,
            Self::Draining | Self::StillRunning { .. } => ErrorKind::Draining,
            Self::Limit { .. } => ErrorKind::Limit,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::UnknownIdentity => "check ROOST_TREE, ROOST_WORKER and ROOST_TOKEN: they belong to one process and cannot be passed on",
            Self::StaleEpoch { .. } => "a newer process of this worker took over; end this one",
            Self::NoTree => "open one with: eval \"$(roost open)\", or name one with --tree",
            Self::UnknownTree { .. } => "`roost status` outside of a tree lists them",
            Self::TreeClosed { .. } => "open another one with: eval \"$(roost open)\"",
            Self::NotRoot { .. } => "ask your lead to do it",
            Self::NotWorker { .. } => "run it inside of a command that Roost has started",
            Self::UnknownWorker { .. } => "`roost status` shows the names; only direct children can be addressed",
            Self::BadName { .. } => "use 1 to 128 bytes without control characters and `/`",
            Self::NameTaken { .. } => "choose another one, or leave it out and one is made up",
            Self::BadValue { .. } => return None,
            Self::TaskCount { .. } => "split it into several launches",
            Self::BadCwd { .. } => "create it, or name another one",
            Self::SilentCwd { .. } => "look at its file system, or launch from elsewhere",
            Self::NoSpace { .. } => "free some space there and try again; what runs goes on",
            Self::Budget { .. } => "trying again is useless, budget never comes back; open the tree with a larger --budget",
            Self::Depth { .. } => "trying again is useless; open the tree with a larger --depth",
            Self::RequestIdReused { .. } => "use a new request id for new work",
            Self::Stopping => "end your work",
            Self::Interrupted => "look at the tree again before you launch",
            Self::Parked => "exit now; the same command is started again when there is something to wake for",
            Self::TargetParked { .. } => "wait until it is awake: it goes on by itself when its children have ended",
            Self::TargetStopping { .. } => "wait for its end",
            Self::NotSteerable { .. } => "launch a new worker for new work",
            Self::NotResumable { .. } => "launch a new worker, and tell it what this one answered",
            Self::LeadParked => "end your work: your answer reaches it when it is woken",
            Self::LeadGone => return None,
            Self::StaleLease => "say hello with the role of the lead, which takes the lease over",
            Self::AlreadyConnected => "only one process speaks for a worker; leave out the role to make calls only",
            Self::Backpressure { .. } => "take in the results that are owed to you (`ack`, `result` or `wait`) before you launch more",
            Self::NoContext => "send `context` along with `settle`",
            Self::Deadlock => "park instead of waiting, raise the cap, or open the tree with --blocked-wait lend",
            Self::Active { .. } => "wait for them, or use `roost close --now` to stop them",
            Self::Draining => "start the daemon again when it has gone",
            Self::StillRunning { .. } => "wait for them, or use `roost daemon stop --now` to stop them",
            Self::Limit { .. } => "wait until there are fewer of them",
        })
    }
}

fn shown(names: &[String]) -> String {
    let escaped: Vec<String> = names.iter().take(10).map(|name| name.escape_debug().to_string()).collect();
    escaped.join("`, `")
}
