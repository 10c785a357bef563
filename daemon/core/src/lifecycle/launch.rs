//! Launching: everything is checked first, then budget, names and places are taken with one record (contract sections 4 and 5).

use std::collections::BTreeSet;

use roost_proto::id::{ExecutionId, JobId, TreeId, WorkerId};
use roost_proto::limits::{BACKLOG_MAX, BUDGET_MAX, LABEL_BYTES_MAX, TASKS_PER_LAUNCH_MAX};

use crate::command::{Allowance, Caller, Launch, Task};
use crate::effect::Placed;
use crate::event::{AcceptedTask, Event, JobAccepted, Owner, Runner};
use crate::lifecycle::authority;
use crate::rejection::Rejection;
use crate::state::budget::Ledger;
use crate::state::tree::Tree;
use crate::state::{State, given_names, names};
use crate::step::Step;

/// Accepts a launch, or finds the one of the same request. Returns its job; the receipt is written when the step has placed it.
pub fn launch(step: &mut Step<'_>, caller: Caller, launch: &Launch, draining: bool) -> Result<(TreeId, Owner, JobId), Rejection> {
    let (tree, owner) = authority::asker(step.state, caller)?;
    let key = State::request_key(tree, owner, &launch.request_id);
    if let Some(job) = step.state.requests.get(&key) {
        let same = step.state.jobs.get(job).is_some_and(|known| known.digest == launch.digest);
        let reused = || Rejection::RequestIdReused { request_id: launch.request_id.clone() };
        return if same { Ok((tree, owner, *job)) } else { Err(reused()) };
    }
    // Only now: what was accepted stays accepted, whatever became of the world since.
    if draining {
        return Err(Rejection::Draining);
    }
    if let Some(rejection) = &launch.unusable {
        return Err(rejection.clone());
    }
    authority::may_launch(step.state, caller)?;
    let accepted = check(step.state, tree, owner, launch)?;
    let job = accepted.job;
    step.record(Event::JobAccepted(Box::new(accepted)));
    Ok((tree, owner, job))
}

/// All checks of a launch, in the order in which their answers help most.
fn check(state: &State, tree: TreeId, owner: Owner, launch: &Launch) -> Result<JobAccepted, Rejection> {
    let record = state.tree(tree)?;
    let lead = state.lead(tree, owner).ok_or(Rejection::UnknownIdentity)?;
    if launch.request_id.is_empty() || launch.request_id.len() > LABEL_BYTES_MAX {
        let range = format!("1 to {LABEL_BYTES_MAX} bytes long");
        return Err(Rejection::BadValue { what: "the request id", range, value: format!("{} bytes", launch.request_id.len()) });
    }
    if launch.generation.is_some_and(|generation| generation < record.generation) {
        return Err(Rejection::Interrupted);
    }
    if launch.tasks.is_empty() || launch.tasks.len() > TASKS_PER_LAUNCH_MAX {
        return Err(Rejection::TaskCount { tasks: launch.tasks.len() });
    }
    if lead.child_depth > record.settings.depth_max {
        return Err(Rejection::Depth { depth_max: record.settings.depth_max });
    }
    if lead.is_told && lead.outbox.ends() >= BACKLOG_MAX {
        return Err(Rejection::Backpressure { owed: lead.outbox.ends() });
    }
    let named = names_of(record, &launch.tasks)?;
    let remaining = lead.ledger.remaining();
    let allowances = allowances(&launch.tasks, owner, remaining)?;
    let needed = Ledger::cost(allowances.iter().copied()).unwrap_or(u64::MAX);
    if needed > remaining {
        return Err(Rejection::Budget { needed, remaining, owner });
    }
    let mut tasks = Vec::with_capacity(launch.tasks.len());
    for (((index, task), name), allowance) in (1..).zip(&launch.tasks).zip(named).zip(allowances) {
        tasks.push(AcceptedTask {
            worker: WorkerId(state.last_worker + index),
            execution: ExecutionId(state.last_execution + index),
            name,
            token: task.token,
            allowance,
            runner: task.runner,
            group: group_of(record, task)?,
            timeout_ms: task.timeout_ms.filter(|timeout| *timeout > 0),
        });
    }
    let job = JobId(state.last_job + 1);
    Ok(JobAccepted {
        job,
        tree,
        owner,
        request_id: launch.request_id.clone(),
        digest: launch.digest,
        foreground: launch.foreground || launch.attended,
        tasks,
    })
}

fn allowances(tasks: &[Task], owner: Owner, remaining: u64) -> Result<Vec<u64>, Rejection> {
    let one = |task: &Task| match task.allowance {
        Allowance::Exactly(allowance) if allowance > BUDGET_MAX => {
            let range = format!("at most {BUDGET_MAX}");
            Err(Rejection::BadValue { what: "max_subagents_allowed", range, value: allowance.to_string() })
        }
        Allowance::Exactly(allowance) => Ok(allowance),
        Allowance::Rest if tasks.len() == 1 => remaining.checked_sub(1).ok_or(Rejection::Budget { needed: 1, remaining, owner }),
        Allowance::Rest => {
            let range = "a number in a launch of several tasks".to_owned();
            Err(Rejection::BadValue { what: "max_subagents_allowed", range, value: "rest".into() })
        }
    };
    tasks.iter().map(one).collect()
}

/// The names of a launch: asked for, or made up. Refused launches take none.
fn names_of(tree: &Tree, tasks: &[Task]) -> Result<Vec<String>, Rejection> {
    let mut taken = BTreeSet::new();
    for name in tasks.iter().filter_map(|task| task.name.as_ref()) {
        if let Some(why) = names::defect(name) {
            return Err(Rejection::BadName { name: name.chars().take(60).collect(), why });
        }
        let folded = names::folded(name);
        if tree.names.contains_key(&folded) || !taken.insert(folded) {
            return Err(Rejection::NameTaken { name: name.clone() });
        }
    }
    let mut number = tree.made_up;
    let mut made_up = |task: &Task| {
        loop {
            number += 1;
            let name = match task.runner {
                Runner::Command => format!("{}-{number}", names::stem(&task.stem)),
                Runner::Worker => given_names::nth(number),
            };
            if !tree.names.contains_key(&names::folded(&name)) && taken.insert(names::folded(&name)) {
                return name;
            }
        }
    };
    Ok(tasks.iter().map(|task| task.name.clone().unwrap_or_else(|| made_up(task))).collect())
}

/// In a tree that caps no group its name is no more than a remark; in one that does, an unknown one is a slip of the pen that would
/// let its worker run uncapped.
fn group_of(tree: &Tree, task: &Task) -> Result<Option<u16>, Rejection> {
    let Some(group) = &task.group else { return Ok(None) };
    crate::lifecycle::bounds::label("the name of a group", group)?;
    let caps = &tree.settings.group_caps;
    let index = caps.iter().position(|(name, _)| name == group).and_then(|index| u16::try_from(index).ok());
    if index.is_none() && !caps.is_empty() {
        let names: Vec<_> = caps.iter().map(|(name, _)| format!("`{}`", name.escape_debug())).collect();
        let range = format!("one of {}, which the tree caps", names.join(", "));
        return Err(Rejection::BadValue { what: "the group", range, value: format!("`{}`", group.escape_debug()) });
    }
    Ok(index)
}

/// Where the tasks of a job went when it was accepted.
pub fn placed(state: &State, job: JobId) -> Vec<Placed> {
    let workers = || state.jobs.get(&job).into_iter().flat_map(|job| &job.workers).filter_map(|worker| state.workers.get(worker));
    let mut started = 0;
    let mut placed = Vec::new();
    for worker in workers() {
        // A repeat of a launch tells of what it launched, whatever its workers went on with since.
        let past = worker.past.iter().find(|past| past.job == job);
        let (execution, place, at_once) =
            past.map_or((worker.execution, worker.place, worker.at_once), |past| (past.execution, past.place, past.at_once));
        let waits = !at_once;
        placed.push(Placed {
            name: worker.name.to_string(),
            worker: worker.id,
            execution,
            place: waits.then(|| place.saturating_sub(started)),
            reason: if waits { state.trees.get(&worker.tree).map(|tree| reason(state, tree, worker.group)) } else { None },
        });
        started += u32::from(at_once);
    }
    placed
}

/// Why somebody in the queue waits, in words.
pub fn reason(state: &State, tree: &Tree, group: Option<u16>) -> String {
    let lane = &tree.lanes[Tree::lane_of(group)];
    if tree.paused {
        "the tree is paused".into()
    } else if tree.counts.live >= tree.settings.cap {
        format!("all {} slots are taken", tree.settings.cap)
    } else if lane.is_full() {
        format!("all {} slots of its group are taken", lane.cap.unwrap_or(0))
    } else if state.live > tree.counts.live {
        "the slots of the daemon are taken".into()
    } else {
        "it is about to start".into()
    }
}
