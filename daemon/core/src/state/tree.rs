//! One tree: its settings, its names, its counts, and the indexes by which the scheduler decides without searching.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use roost_proto::id::{ExecutionId, Token, TreeId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::event::Settings;
use crate::older;
use crate::state::accounts::Accounts;
use crate::state::budget::Ledger;
use crate::state::joins::Joins;
use crate::state::outbox::Outbox;
use crate::state::seldom::Rare;
use crate::state::worker::{Answered, SentLog, StopLog};
use crate::time::{Mono, Now};

/// A tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tree {
    /// Its id.
    pub id: TreeId,
    /// The root's capability.
    pub token: Token,
    /// The request that opened it.
    pub request_id: String,
    /// The name under which its root finds it again.
    pub key: Option<String>,
    /// Lives by its root's connections.
    pub ephemeral: bool,
    /// What holds for it; `settings.cap` is the cap as it is now.
    pub settings: Settings,
    /// Admissions are held.
    pub paused: bool,
    /// Counts interrupts.
    pub generation: u64,
    /// The last interrupts that had a name: it, and how many were active.
    #[serde(default, skip_serializing_if = "VecDeque::is_empty", deserialize_with = "older::interrupts")]
    pub interrupted: VecDeque<(String, u32)>,
    /// When it was opened.
    pub opened_at: Now,
    /// When it was closed.
    pub closed_at: Option<Now>,
    /// What the root may launch.
    pub ledger: Ledger,
    /// What the root is owed.
    pub outbox: Rare<Outbox>,
    /// The root's last waits.
    pub answered: Rare<Answered>,
    /// The root's last words.
    #[serde(default, skip_serializing_if = "Rare::is_unused")]
    pub sent: Rare<SentLog>,
    /// The root's last stops.
    #[serde(default, skip_serializing_if = "Rare::is_unused")]
    pub stops: Rare<StopLog>,
    /// Numbers the connections that held the root's lease; 0: none ever did.
    #[serde(default)]
    pub lease: u64,
    /// What the root and all below it have used.
    #[serde(default)]
    pub accounts: Accounts,
    /// Groups of the root's launches.
    #[serde(default)]
    pub joins: Joins,
    /// How many events the tree's stream has.
    #[serde(default)]
    pub events: u64,
    /// The root's children that have not ended, in the order of their launch.
    pub children: Rare<BTreeSet<WorkerId>>,
    /// How many they are.
    pub active_children: u32,
    /// All names that were ever taken, folded.
    pub names: BTreeMap<Box<str>, WorkerId>,
    /// All its workers, in the order of their launch.
    pub workers: BTreeSet<WorkerId>,
    /// Counts made-up names.
    pub made_up: u64,
    /// How many of its workers are where.
    pub counts: Counts,
    /// Slots granted to heads of the queue and to wakes.
    pub admissions: u64,
    /// Since when a slot is to spare and nobody is queued for it.
    pub spare_since: Option<Mono>,
    /// The lanes of the queue: one for workers without a capped group, then one for each capped group.
    pub lanes: Vec<Lane>,
    /// Workers that can give their slot away, longest waiting first.
    pub victims: BTreeSet<(Mono, WorkerId)>,
    /// Workers whose wait keeps its slot because the tree says so, longest waiting first.
    pub stuck: BTreeSet<(Mono, WorkerId)>,
    /// Workers that want a slot back for good reason, in the order in which they became ready.
    pub final_wakes: BTreeSet<(Mono, WorkerId)>,
    /// Workers that may have a slot back if one is to spare.
    pub early_wakes: BTreeSet<(Mono, WorkerId)>,
}

/// Numbers that people look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Workers that hold a slot.
    pub live: u32,
    /// Of those, on their way to give it back: asked to park, or parked and leaving.
    pub parking: u32,
    /// Parked, with nothing of a process left.
    pub parked: u32,
    /// Alive with their slot lent.
    pub lent: u32,
    /// Answered, descendants active.
    pub finishing: u32,
    /// Ended well.
    pub completed: u32,
    /// Ended badly.
    pub failed: u32,
    /// Stopped.
    pub stopped: u32,
}

/// One lane of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lane {
    /// Most slots of its workers; `None` for the lane without a group.
    pub cap: Option<u32>,
    /// How many they hold.
    pub live: u32,
    /// Of those, on their way to give it back.
    pub parking: u32,
    /// Who waits, in acceptance order.
    pub queue: BTreeSet<(ExecutionId, WorkerId)>,
    /// How many of its workers want a slot back for good reason.
    pub final_wakes: usize,
}

impl Lane {
    /// Whether its group's cap is reached.
    pub fn is_full(&self) -> bool {
        self.cap.is_some_and(|cap| self.live >= cap)
    }

    /// How many want a slot of it.
    pub fn wanting(&self) -> usize {
        self.queue.len() + self.final_wakes
    }
}

impl Tree {
    /// The lane of a group.
    pub fn lane_of(group: Option<u16>) -> usize {
        group.map_or(0, |index| usize::from(index) + 1)
    }

    /// The name of a group that has a cap.
    pub fn group_name(&self, group: Option<u16>) -> Option<String> {
        self.settings.group_caps.get(usize::from(group?)).map(|(name, _)| name.clone())
    }

    /// How many workers are queued.
    pub fn queued(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queue.len()).sum()
    }

    /// The first of the queue whose group is not full.
    pub fn head(&self) -> Option<WorkerId> {
        self.lanes.iter().filter(|lane| !lane.is_full()).filter_map(|lane| lane.queue.first()).min().map(|(_, worker)| *worker)
    }

    /// The queue in acceptance order.
    pub fn queue(&self) -> Vec<WorkerId> {
        let mut all: Vec<_> = self.lanes.iter().flat_map(|lane| lane.queue.iter().copied()).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, worker)| worker).collect()
    }

    /// Whether the cap leaves a slot.
    pub fn has_free_slot(&self) -> bool {
        self.counts.live < self.settings.cap
    }

    /// Whether anything of it is active.
    pub fn is_active(&self) -> bool {
        self.active_children > 0
    }
}
