//! What to do next, for each refusal. It does not know who reads it: a person or a program.

use crate::event::Owner;
use crate::rejection::Rejection;

impl Rejection {
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
            Self::BadName { .. } => {
                "a name has 1 to 128 bytes, no `/` and no control characters, is not `.` or `..`, and begins with neither a dash nor a space"
            }
            Self::NameTaken { .. } => "choose another one, or leave it out and one is made up",
            Self::BadValue { .. } => return None,
            Self::TaskCount { tasks: 0 } => "put a task into it: {\"argv\": [\"true\"]}",
            Self::TaskCount { .. } => "split it into several launches",
            Self::BadCwd { .. } => "create it, or name another one",
            Self::SilentCwd { .. } => "look at its file system, or launch from elsewhere",
            Self::NoSpace { .. } => "free some space there and try again; what runs goes on",
            Self::Budget { owner: Owner::Root, .. } => {
                "trying again is useless, budget never comes back; open the tree with a larger --budget"
            }
            Self::Budget { owner: Owner::Worker(_), .. } => {
                "trying again is useless, budget never comes back; your lead can launch you with more (`--descendants N`)"
            }
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
            Self::Limit { next, .. } => next,
        })
    }
}
