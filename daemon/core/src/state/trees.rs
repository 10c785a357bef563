//! Trees as they come, take launches, close and go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use roost_proto::id::{TreeId, WorkerId};

use crate::event::{Delivery, JobAccepted, Join, TreeOpened};
use crate::state::accounts::Accounts;
use crate::state::apply::Applied;
use crate::state::budget::Ledger;
use crate::state::joins::Joins;
use crate::state::seat::Standing;
use crate::state::seldom::Rare;
use crate::state::transitions::new_worker;
use crate::state::tree::{Counts, Lane, Tree};
use crate::state::{Job, State, names};
use crate::time::Now;

impl State {
    pub(super) fn tree_opened(&mut self, opened: &TreeOpened, at: Now) -> Applied {
        let lane = |cap| Lane { cap, ..Lane::default() };
        let groups = opened.settings.group_caps.iter().map(|(_, cap)| lane(Some(*cap)));
        let tree = Tree {
            id: opened.tree,
            token: opened.token,
            request_id: opened.request_id.clone(),
            key: opened.key.clone(),
            ephemeral: opened.ephemeral,
            ledger: Ledger::new(opened.settings.budget),
            lanes: std::iter::once(lane(None)).chain(groups).collect(),
            settings: opened.settings.clone(),
            paused: false,
            generation: 0,
            interrupted: VecDeque::new(),
            opened_at: at,
            closed_at: None,
            outbox: Rare::default(),
            answered: Rare::default(),
            sent: Rare::default(),
            stops: Rare::default(),
            lease: 0,
            accounts: Accounts::default(),
            joins: Joins::default(),
            events: 0,
            children: Rare::default(),
            active_children: 0,
            names: BTreeMap::new(),
            workers: BTreeSet::new(),
            made_up: 0,
            counts: Counts::default(),
            admissions: 0,
            spare_since: Some(at.mono),
            victims: BTreeSet::new(),
            stuck: BTreeSet::new(),
            final_wakes: BTreeSet::new(),
            early_wakes: BTreeSet::new(),
        };
        self.open.insert(opened.tree);
        match self.trees.insert(opened.tree, tree) {
            None => Ok(()),
            Some(_) => Err("the tree is there already"),
        }
    }

    pub(super) fn tree_closed(&mut self, id: TreeId, at: Now) -> Applied {
        if !self.open.remove(&id) {
            return Err("the tree is not open");
        }
        self.closed.insert((at.mono, id));
        self.on_tree(id, at, |tree| tree.closed_at = Some(at))?;
        self.closed_workers += self.trees.get(&id).map_or(0, |tree| tree.workers.len());
        Ok(())
    }

    pub(super) fn tree_forgotten(&mut self, id: TreeId) -> Applied {
        let tree = self.trees.remove(&id).ok_or("there is no such tree")?;
        let closed = tree.closed_at.ok_or("the tree is open")?;
        self.closed.remove(&(closed.mono, id));
        self.closed_workers -= tree.workers.len();
        self.last_grant.remove(&id);
        for worker in tree.workers.iter().filter_map(|worker| self.workers.remove(worker)) {
            if !worker.has_ended() {
                return Err("it has active workers");
            }
            let past = worker.past.iter().map(|past| (past.execution, past.job));
            for (execution, job) in past.chain([(worker.execution, worker.job)]) {
                self.executions.remove(&execution);
                if let Some(job) = self.jobs.remove(&job) {
                    self.requests.remove(&job.request);
                }
            }
        }
        Ok(())
    }

    pub(super) fn job_accepted(&mut self, job: &JobAccepted, at: Now) -> Applied {
        let lead = self.lead(job.tree, job.owner).ok_or("its owner is not there")?;
        let depth = lead.child_depth;
        let cost = Ledger::cost(job.tasks.iter().map(|task| task.allowance)).ok_or("its allowances overflow")?;
        let queued = self.trees.get(&job.tree).map_or(0, Tree::queued);
        let place = u32::try_from(queued).unwrap_or(u32::MAX);
        if job.job.0 != self.last_job + 1 {
            return Err("its job is out of order");
        }
        self.last_job = job.job.0;
        for (index, task) in (0_u32..).zip(&job.tasks) {
            if task.worker.0 != self.last_worker + 1 || task.execution.0 != self.last_execution + 1 {
                return Err("its workers are out of order");
            }
            self.last_worker = task.worker.0;
            self.last_execution = task.execution.0;
            let mut worker = new_worker(job, index, task, depth, at);
            worker.place = place.saturating_add(index + 1);
            let tree = self.trees.get_mut(&job.tree).ok_or("there is no such tree")?;
            if tree.names.insert(names::folded(&task.name), task.worker).is_some() {
                return Err("a name is taken");
            }
            tree.workers.insert(task.worker);
            self.executions.insert(task.execution, task.worker);
            self.workers.insert(worker);
            self.reseat(task.worker, Standing::of(None));
        }
        let workers: Vec<WorkerId> = job.tasks.iter().map(|task| task.worker).collect();
        // What steers a lead comes to it one by one.
        let joins = |tree: &Tree| tree.settings.join == Join::Group && tree.settings.delivery != Delivery::Steer;
        let joins = self.trees.get(&job.tree).is_some_and(joins);
        let timing = self.trees.get(&job.tree).map(|tree| tree.settings.timing).unwrap_or_default();
        let mut group = None;
        self.on_lead(job.tree, job.owner, at, |lead| {
            lead.children.extend(&workers);
            if joins {
                let count = u32::try_from(workers.len()).unwrap_or(u32::MAX);
                group = Some(lead.joins().launched(count, at.mono, &timing));
            }
            *lead.active_children += u32::try_from(workers.len()).unwrap_or(u32::MAX);
            if lead.ledger.reserve(cost) { Ok(()) } else { Err("the budget does not cover it") }
        })?;
        if group.is_some() {
            for worker in &workers {
                if let Some(worker) = self.workers.get_mut(worker) {
                    worker.joined = group;
                }
            }
        }
        if let Some(tree) = self.trees.get_mut(&job.tree) {
            tree.made_up += workers.len() as u64;
        }
        self.note_act(job.owner);
        self.count_above(job.owner, i64::try_from(workers.len()).unwrap_or(i64::MAX));
        let request = Self::request_key(job.tree, job.owner, &job.request_id);
        self.requests.insert(request.clone(), job.job);
        self.jobs.insert(job.job, Job { tree: job.tree, digest: job.digest, request, workers: workers.into() });
        Ok(())
    }
}
