//! What a waiting call is answered with once it is over.

use roost_proto::id::{ExecutionId, JobId, TreeId, WorkerId};

use crate::calls::{Over, Pending, Want};
use crate::command::CallId;
use crate::effect::{Effect, Reply};
use crate::event::{Owner, Sent};
use crate::hand_over::{end_of, end_of_execution};
use crate::lifecycle::launch::placed;
use crate::lifecycle::open::active_workers;
use crate::lifecycle::wait::{answer_result, consume, earlier_ends};
use crate::rejection::Rejection;
use crate::state::worker::Worker;
use crate::step::Step;
use roost_proto::limits::BACKLOG_WARN;

/// Answers a call.
pub fn answer(step: &mut Step<'_>, call: CallId, pending: Pending) {
    let timed_out = match pending.over {
        Some(Over::Refused(rejection)) => return step.refuse(call, rejection),
        Some(Over::TimedOut) => true,
        Some(Over::Done) | None => false,
    };
    match pending.want {
        // Answered when the process is known, never by time.
        Want::Welcome(_) => step.refuse(call, Rejection::UnknownIdentity),
        Want::Receipt(job) => {
            let tasks = placed(step.state, job);
            let backlog = backlog(step, pending.asker);
            step.reply(call, Reply::Receipt { job, tasks, ends: Vec::new(), backlog });
        }
        Want::Results { job, .. } => results(step, call, job, pending.asker),
        Want::Ends { workers, any, told: Some(told), .. } => told_again(step, call, &workers, &told, any),
        Want::Ends { request_id, workers, any, told: None, tell_later } => {
            // The same request may have been answered meanwhile, on a connection that is lost.
            let known = pending.asker.and_then(|(tree, owner)| step.state.lead(tree, owner)).and_then(|lead| {
                let told = lead.answered.iter().find(|(known, _)| *known == request_id);
                told.map(|(_, told)| told.clone())
            });
            match known {
                Some(told) => told_again(step, call, &workers, &told, any),
                None => ends(step, call, pending.asker, Some(request_id).filter(|_| !tell_later), &workers, timed_out),
            }
        }
        Want::Result { execution, .. } => answer_result(step, call, execution, pending.asker, timed_out),
        Want::Sent { message, sent } => {
            let placed = match sent {
                Sent::Resumes(job) => placed(step.state, job).into_iter().next().map(|placed| (job, placed)),
                Sent::Steering(_) | Sent::AfterEnd(_) | Sent::ToLead => None,
            };
            step.reply(call, Reply::Sent { message, sent, placed });
        }
        Want::Stopped(names) => {
            // The call remembers who had ended before; the reply says whom the stop ended.
            let names = names.into_iter().map(|(name, had_ended)| (name, !had_ended)).collect();
            step.reply(call, Reply::Stopped(names));
        }
        Want::Interrupted { stopped, generation } => step.reply(call, Reply::Interrupted { stopped, generation }),
        Want::Closed { tree, stopped } => {
            debug_assert!(active_workers(step.state, tree).is_empty(), "a closed tree has nothing active");
            step.reply(call, Reply::Closed { stopped });
        }
        Want::Drained { stopped } if timed_out => {
            let live = || step.state.workers.values().filter(|worker| worker.has_process());
            let names = live().take(10).map(|worker: &Worker| worker.name.to_string()).collect();
            let live = u32::try_from(live().count()).unwrap_or(u32::MAX);
            debug_assert_eq!(stopped, 0, "a drain that ends workers has no deadline of its own");
            step.refuse(call, Rejection::StillRunning { live, names });
        }
        Want::Drained { stopped } => {
            step.reply(call, Reply::Drained { stopped });
            step.effects.push(Effect::Leave);
        }
    }
}

fn results(step: &mut Step<'_>, call: CallId, job: JobId, asker: Option<(TreeId, Owner)>) {
    let workers = step.state.jobs.get(&job).map(|job| job.workers.clone()).unwrap_or_default();
    let of = |worker: &WorkerId| step.state.workers.get(worker).map(|worker| worker.execution_of(job));
    let executions: Vec<ExecutionId> = workers.iter().filter_map(of).collect();
    // What was told before is seen before this telling.
    let ends = executions.iter().filter_map(|execution| end_of_execution(step.state, *execution)).collect();
    if let Some((tree, owner)) = asker {
        let current = |execution: &ExecutionId| {
            step.state
                .executions
                .get(execution)
                .copied()
                .filter(|worker| step.state.workers.get(worker).is_some_and(|worker| worker.execution == *execution))
        };
        let last: Vec<WorkerId> = executions.iter().filter_map(current).collect();
        let earlier: Vec<ExecutionId> = executions.iter().copied().filter(|execution| current(execution).is_none()).collect();
        consume(step, tree, owner, None, &last, &earlier);
    }
    let tasks = placed(step.state, job);
    step.reply(call, Reply::Receipt { job, tasks, ends, backlog: None });
}

/// The ends of these workers, and of what they did before they went on. Without a request id nothing counts as told yet.
fn ends(
    step: &mut Step<'_>,
    call: CallId,
    asker: Option<(TreeId, Owner)>,
    request_id: Option<String>,
    workers: &[WorkerId],
    timed_out: bool,
) {
    let mut ended: Vec<&Worker> =
        workers.iter().filter_map(|worker| step.state.workers.get(worker)).filter(|worker| worker.has_ended()).collect();
    // The sort is stable: those that ended in the same moment stay in the order asked.
    ended.sort_by_key(|worker| worker.ended_at.map(|at| at.mono));
    let ended: Vec<WorkerId> = ended.into_iter().map(|worker| worker.id).collect();
    let pending: Vec<String> = workers
        .iter()
        .filter_map(|worker| step.state.workers.get(worker))
        .filter(|worker| !worker.has_ended())
        .map(|worker| worker.name.to_string())
        .collect();
    let earlier = asker.map(|(tree, owner)| earlier_ends(step.state, tree, owner, workers)).unwrap_or_default();
    // What was told before is seen before this telling.
    let before = earlier.iter().filter_map(|execution| end_of_execution(step.state, *execution));
    let ends = before.chain(ended.iter().filter_map(|worker| end_of(step.state, *worker))).collect();
    if let (Some((tree, owner)), Some(_)) = (asker, &request_id) {
        consume(step, tree, owner, request_id, &ended, &earlier);
    }
    step.reply(call, Reply::Ends { ends, pending, timed_out });
}

/// The first answer once more: whoever has ended since then is told of by another call, or by its announcement.
fn told_again(step: &mut Step<'_>, call: CallId, workers: &[WorkerId], told: &[ExecutionId], any: bool) {
    let of: Vec<WorkerId> = told.iter().filter_map(|execution| step.state.executions.get(execution).copied()).collect();
    let others = workers.iter().filter(|worker| !of.contains(worker)).filter_map(|worker| step.state.workers.get(worker));
    let pending: Vec<String> = others.map(|worker| worker.name.to_string()).collect();
    let ends = told.iter().filter_map(|execution| end_of_execution(step.state, *execution)).collect();
    let timed_out = !any && !pending.is_empty();
    step.reply(call, Reply::Ends { ends, pending, timed_out });
}

/// How many ends a launcher that is handed them has not taken in, where that is worth a warning.
fn backlog(step: &Step<'_>, asker: Option<(TreeId, Owner)>) -> Option<usize> {
    let (tree, owner) = asker?;
    let lead = step.state.lead(tree, owner)?;
    Some(lead.outbox.ends()).filter(|ends| lead.is_told && *ends >= BACKLOG_WARN)
}
