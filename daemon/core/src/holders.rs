//! Who holds a lease right now, what was handed to it, and when a worker showed a sign of life last. Not in the journal: connections do
//! not outlive the broker, and whoever comes back is handed everything again.

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::{TreeId, WorkerId};
use roost_proto::link::ProcessIdentity;

use crate::effect::Holder;
use crate::event::Owner;
use crate::time::Mono;

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Holders {
    of: BTreeMap<(TreeId, Owner), Holding>,
    pulses: BTreeMap<WorkerId, Pulse>,
    idle: BTreeSet<(Mono, WorkerId)>,
}

/// One live holder.
#[derive(Debug, Clone)]
pub struct Holding {
    /// Its lease.
    pub lease: u64,
    /// The process behind it, where that is known.
    pub process: Option<ProcessIdentity>,
    /// The items that it was handed and has not acknowledged.
    pub handed: BTreeSet<u64>,
    /// It was handed what it begins its turn with, or goes on with on this connection.
    pub knows_turn: bool,
}

#[derive(Debug, Clone, Copy)]
struct Pulse {
    idle_at: Option<Mono>,
    in_tool: bool,
}

impl Holders {
    /// A lease was taken. Gives who held it until now.
    pub fn take(&mut self, holder: Holder, process: Option<ProcessIdentity>) -> Option<Holder> {
        let holding = Holding { lease: holder.lease, process, handed: BTreeSet::new(), knows_turn: false };
        let before = self.of.insert((holder.tree, holder.owner), holding)?;
        Some(Holder { lease: before.lease, ..holder })
    }

    /// The connection of a lease is gone.
    pub fn gone(&mut self, holder: Holder) {
        if self.get(holder.tree, holder.owner).is_some_and(|held| held.lease == holder.lease) {
            self.of.remove(&(holder.tree, holder.owner));
        }
    }

    /// The process behind a lease is gone, and with it the tool that it was inside of.
    pub fn leave(&mut self, tree: TreeId, owner: Owner) {
        if let Owner::Worker(worker) = owner {
            self.rest(worker);
        }
        self.of.remove(&(tree, owner));
    }

    /// Who holds the lease of this lead.
    pub fn get(&self, tree: TreeId, owner: Owner) -> Option<&Holding> {
        self.of.get(&(tree, owner))
    }

    /// The same, to note what it is handed.
    pub fn get_mut(&mut self, tree: TreeId, owner: Owner) -> Option<&mut Holding> {
        self.of.get_mut(&(tree, owner))
    }

    /// A sign of life. `tool`: whether it is inside of a tool from now on, where that was said.
    pub fn beat(&mut self, worker: WorkerId, now: Mono, idle_ms: u64, tool: Option<bool>) {
        let before = self.pulses.get(&worker).copied();
        if let Some(at) = before.and_then(|pulse| pulse.idle_at) {
            self.idle.remove(&(at, worker));
        }
        let in_tool = tool.or(before.map(|pulse| pulse.in_tool)).unwrap_or(false);
        let idle_at = (idle_ms > 0 && !in_tool).then(|| now + idle_ms);
        self.idle.extend(idle_at.map(|at| (at, worker)));
        self.pulses.insert(worker, Pulse { idle_at, in_tool });
    }

    /// A worker needs no watching any more.
    pub fn rest(&mut self, worker: WorkerId) {
        if let Some(at) = self.pulses.remove(&worker).and_then(|pulse| pulse.idle_at) {
            self.idle.remove(&(at, worker));
        }
    }

    /// Workers without a sign of life for too long; they are not watched any more.
    pub fn silent(&mut self, now: Mono) -> Vec<WorkerId> {
        let mut silent = Vec::new();
        while let Some((at, worker)) = self.idle.first().copied()
            && at <= now
        {
            self.idle.remove(&(at, worker));
            self.pulses.remove(&worker);
            silent.push(worker);
        }
        silent
    }

    /// When the next one will have been silent for too long.
    pub fn next_deadline(&self) -> Option<Mono> {
        self.idle.first().map(|(at, _)| *at)
    }
}
