//! Who has used what, along the line of leads: totals are kept as reports come, so that reading one costs the same in every tree.

use roost_proto::id::{TreeId, WorkerId};
use roost_proto::usage::{Usage, UsageReport};

use crate::event::Owner;
use crate::state::State;
use crate::state::apply::Applied;

impl State {
    pub(super) fn usage_reported(&mut self, tree: TreeId, owner: Owner, report: &UsageReport) -> Applied {
        let record = self.trees.get_mut(&tree).ok_or("there is no such tree")?;
        let worker = match owner {
            Owner::Root => {
                record.accounts.take(report);
                return Ok(());
            }
            Owner::Worker(worker) => worker,
        };
        let accounts = self.workers.get_mut(&worker).ok_or("there is no such worker")?.accounts.get_or_insert_default();
        let added = accounts.added(report).map_err(|_| "the counters do not fit")?.unwrap_or_default();
        accounts.take(report);
        self.add_above(worker, added);
        Ok(())
    }

    /// All above a worker have used more through it.
    fn add_above(&mut self, worker: WorkerId, added: Usage) {
        let Some(tree) = self.workers.get(&worker).map(|worker| worker.tree) else { return };
        let above: Vec<WorkerId> = self.line(worker).skip(1).collect();
        for lead in above {
            if let Some(lead) = self.workers.get_mut(&lead) {
                lead.accounts.get_or_insert_default().add_below(added);
            }
        }
        if let Some(tree) = self.trees.get_mut(&tree) {
            tree.accounts.add_below(added);
        }
    }

    /// A process was cut off before it could say the last of what it had used.
    pub(super) fn note_partial(&mut self, worker: WorkerId) {
        let Some(record) = self.workers.get_mut(&worker) else { return };
        record.accounts.get_or_insert_default().partial = true;
        let tree = record.tree;
        let above: Vec<WorkerId> = self.line(worker).skip(1).collect();
        for lead in above {
            if let Some(lead) = self.workers.get_mut(&lead) {
                lead.accounts.get_or_insert_default().partial_below = true;
            }
        }
        if let Some(tree) = self.trees.get_mut(&tree) {
            tree.accounts.partial_below = true;
        }
    }

    /// So many workers more are below this lead and all above it.
    pub(super) fn count_above(&mut self, lead: Owner, count: i64) {
        let Owner::Worker(lead) = lead else { return };
        let line: Vec<WorkerId> = self.line(lead).collect();
        for lead in line {
            if let Some(lead) = self.workers.get_mut(&lead) {
                lead.descendants = lead.descendants.saturating_add_signed(count);
            }
        }
    }

    /// A worker with all below it belongs to somebody further up: those in between have not used it.
    pub(super) fn move_usage(&mut self, worker: WorkerId, from: Owner, to: Owner) {
        let moved = self.workers.get(&worker).map_or(0, |worker| worker.descendants + 1);
        let moved = i64::try_from(moved).unwrap_or(i64::MAX);
        self.count_above(from, -moved);
        self.count_above(to, moved);
        let total = self.workers.get(&worker).and_then(|worker| worker.accounts.as_ref()).map(|accounts| accounts.total());
        let (Some(total), Owner::Worker(from)) = (total, from) else { return };
        let between: Vec<WorkerId> = self.line(from).take_while(|lead| Owner::Worker(*lead) != to).collect();
        for lead in between {
            if let Some(accounts) = self.workers.get_mut(&lead).and_then(|lead| lead.accounts.as_mut()) {
                accounts.take_below(total);
            }
        }
    }
}
