//! The whole state, and [`State::apply`]: the one mutator, live and in replay.
//!
//! The indexes of a tree are not kept by hand: after every event the workers that it touched are seated anew (`state/seat.rs`).

pub mod accounts;
pub mod budget;
pub mod given_names;
pub mod joins;
pub mod names;
pub mod outbox;
pub mod seat;
pub mod seldom;
pub mod speech;
pub mod taker;
pub mod tree;
pub mod worker;
pub mod workers;

mod apply;
mod ends;
mod lead;
mod spoken;
mod transitions;
mod trees;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::{ExecutionId, JobId, TreeId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::event::{Digest, Owner, Timing};
use crate::rejection::Rejection;
use crate::state::budget::Ledger;
use crate::state::outbox::Outbox;
use crate::state::tree::Tree;
use crate::state::worker::{Answered, SentLog, StopLog, Worker};
use crate::state::workers::Workers;
use crate::time::Mono;

pub use apply::IllegalEvent;

/// Everything that the broker knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct State {
    /// The number of the last event.
    pub seq: u64,
    /// The number of the last worker.
    pub last_worker: u64,
    /// The number of the last execution.
    pub last_execution: u64,
    /// The number of the last job.
    pub last_job: u64,
    /// Slots held over all trees.
    pub live: u32,
    /// Counts grants over all trees.
    pub grants: u64,
    /// When each tree was granted a slot last, for fairness under a cap over all trees.
    pub last_grant: BTreeMap<TreeId, u64>,
    /// The trees, closed ones included until they are forgotten.
    pub trees: BTreeMap<TreeId, Tree>,
    /// The open ones of them.
    pub open: BTreeSet<TreeId>,
    /// The closed ones, in the order in which they were closed.
    pub closed: BTreeSet<(Mono, TreeId)>,
    /// How many workers closed trees hold.
    pub closed_workers: usize,
    /// The workers.
    pub workers: Workers,
    /// Whose each execution is.
    pub executions: BTreeMap<ExecutionId, WorkerId>,
    /// The jobs.
    pub jobs: BTreeMap<JobId, Job>,
    /// Launches by launcher and request id.
    pub requests: BTreeMap<Box<str>, JobId>,
    /// Who needs attention when.
    pub timers: BTreeSet<(Mono, WorkerId)>,
    /// Which groups of launches are told when.
    #[serde(default)]
    pub join_timers: BTreeSet<(Mono, TreeId, Owner, u64)>,
}

/// A launch call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The tree.
    pub tree: TreeId,
    /// Digest of the request.
    pub digest: Digest,
    /// Its key in [`State::requests`].
    pub request: Box<str>,
    /// Its workers, by task index.
    pub workers: Box<[WorkerId]>,
}

/// The part of a lead that owns children, whether it is the root or a worker.
pub struct Lead<'a> {
    /// What it may launch.
    pub ledger: Ledger,
    /// What it is owed.
    pub outbox: &'a Outbox,
    /// Its last waits.
    pub answered: &'a Answered,
    /// Its last words.
    pub sent: &'a SentLog,
    /// Its last stops.
    pub stops: &'a StopLog,
    /// Whether it was ever one to which items are handed: then it is to take them in.
    pub is_told: bool,
    /// The connection that speaks for it.
    pub lease: u64,
    /// Its children that have not ended.
    pub children: &'a BTreeSet<WorkerId>,
    /// How many they are.
    pub active_children: u32,
    /// How deep its children are.
    pub child_depth: u32,
}

impl State {
    /// The key of a launch in [`State::requests`].
    pub fn request_key(tree: TreeId, owner: Owner, request_id: &str) -> Box<str> {
        match owner {
            Owner::Root => format!("{tree}/{request_id}").into(),
            Owner::Worker(worker) => format!("{worker}/{request_id}").into(),
        }
    }

    /// A tree that must be there.
    pub fn tree(&self, tree: TreeId) -> Result<&Tree, Rejection> {
        self.trees.get(&tree).ok_or(Rejection::UnknownTree { tree })
    }

    /// The times and tries that hold for a worker.
    pub fn timing_of(&self, worker: WorkerId) -> Option<Timing> {
        let tree = self.workers.get(&worker)?.tree;
        self.trees.get(&tree).map(|tree| tree.settings.timing)
    }

    /// The open trees.
    pub fn open_trees(&self) -> impl Iterator<Item = &Tree> + '_ {
        self.open.iter().filter_map(|tree| self.trees.get(tree))
    }

    /// The lead behind an owner.
    pub fn lead(&self, tree: TreeId, owner: Owner) -> Option<Lead<'_>> {
        match owner {
            Owner::Root => self.trees.get(&tree).map(|tree| Lead {
                ledger: tree.ledger,
                outbox: &tree.outbox,
                answered: &tree.answered,
                sent: &tree.sent,
                stops: &tree.stops,
                is_told: tree.lease > 0,
                lease: tree.lease,
                children: &tree.children,
                active_children: tree.active_children,
                child_depth: 1,
            }),
            Owner::Worker(worker) => self.workers.get(&worker).map(|worker| Lead {
                ledger: worker.ledger,
                outbox: &worker.outbox,
                answered: &worker.answered,
                sent: &worker.sent,
                stops: &worker.stops,
                is_told: worker.speaks(),
                lease: worker.speech.as_ref().map_or(0, |speech| speech.lease),
                children: &worker.children,
                active_children: worker.active_children,
                child_depth: worker.depth + 1,
            }),
        }
    }

    /// Whether an end is news to this lead: it is owed to it, or it is of a child of its own that it stopped, which is owed to
    /// nobody, and it has not read it.
    pub fn is_news(&self, tree: TreeId, owner: Owner, execution: ExecutionId) -> bool {
        let owed = self.lead(tree, owner).is_some_and(|lead| lead.outbox.owes(execution));
        let worker = self.executions.get(&execution).and_then(|worker| self.workers.get(worker));
        let unread = worker.filter(|worker| (worker.tree, worker.owner) == (tree, owner)).is_some_and(|worker| {
            if worker.execution == execution {
                worker.has_ended() && !worker.told
            } else {
                worker.past.iter().any(|past| past.execution == execution && !past.told)
            }
        });
        owed || unread
    }

    /// The one door for a client's verb: a direct child of the caller, by name. For everybody else the name is unknown.
    pub fn child_of(&self, tree: TreeId, owner: Owner, name: &str) -> Option<&Worker> {
        let worker = self.trees.get(&tree)?.names.get(&names::folded(name))?;
        self.workers.get(worker).filter(|worker| worker.owner == owner)
    }

    /// A worker that the caller may look at: any of its tree for the root, its own subtree (itself included) for a worker.
    pub fn visible_to(&self, tree: TreeId, owner: Owner, name: &str) -> Option<&Worker> {
        let id = self.trees.get(&tree)?.names.get(&names::folded(name))?;
        let worker = self.workers.get(id)?;
        let reader = match owner {
            Owner::Root => return Some(worker),
            Owner::Worker(reader) => reader,
        };
        self.line(*id).any(|ancestor| ancestor == reader).then_some(worker)
    }

    /// A worker and its leads, upwards.
    pub fn line(&self, from: WorkerId) -> impl Iterator<Item = WorkerId> + '_ {
        std::iter::successors(Some(from), |worker| match self.workers.get(worker)?.owner {
            Owner::Root => None,
            Owner::Worker(lead) => Some(lead),
        })
    }

    /// A worker's active descendants, itself excluded, parents before children.
    pub fn active_below(&self, worker: WorkerId) -> Vec<WorkerId> {
        let mut found = Vec::new();
        let mut open: Vec<WorkerId> = vec![worker];
        while let Some(at) = open.pop() {
            let Some(lead) = self.workers.get(&at) else { continue };
            if lead.active_children == 0 {
                continue;
            }
            for child in lead.children.iter() {
                if self.workers.get(child).is_some_and(|child| !child.has_ended()) {
                    found.push(*child);
                    open.push(*child);
                }
            }
        }
        found
    }

    /// The active children of a lead, in the order of their launch.
    pub fn active_children(&self, tree: TreeId, owner: Owner) -> Vec<WorkerId> {
        let Some(lead) = self.lead(tree, owner) else { return Vec::new() };
        if lead.active_children == 0 {
            return Vec::new();
        }
        lead.children.iter().filter(|child| self.workers.get(child).is_some_and(|child| !child.has_ended())).copied().collect()
    }
}
