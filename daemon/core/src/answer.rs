//! What a waiting call is answered with once it is over.

use roost_proto::id::{JobId, TreeId, WorkerId};

use crate::calls::{Over, Pending, Want};
use crate::command::CallId;
use crate::effect::{Effect, Reply};
use crate::event::{Owner, Sent};
use crate::hand_over::end_of;
use crate::lifecycle::launch::placed;
use crate::lifecycle::open::active_workers;
use crate::lifecycle::wait::{answer_result, consume};
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
        Want::Ends { request_id, workers, any: _, told: None, tell_later } => {
            let asker = pending.asker.filter(|_| !tell_later);
            ends(step, call, asker, request_id, &workers, timed_out);
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
    if let Some((tree, owner)) = asker {
        consume(step, tree, owner, None, &workers);
    }
    let tasks = placed(step.state, job);
    let ends = workers.iter().filter_map(|worker| end_of(step.state, *worker)).collect();
    step.reply(call, Reply::Receipt { job, tasks, ends, backlog: None });
}

fn ends(step: &mut Step<'_>, call: CallId, asker: Option<(TreeId, Owner)>, request_id: String, workers: &[WorkerId], timed_out: bool) {
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
    if let Some((tree, owner)) = asker {
        consume(step, tree, owner, Some(request_id), &ended);
    }
    let ends = ended.iter().filter_map(|worker| end_of(step.state, *worker)).collect();
    step.reply(call, Reply::Ends { ends, pending, timed_out });
}

/// The first answer once more: whoever has ended since then is told of by another call, or by its announcement.
fn told_again(step: &mut Step<'_>, call: CallId, workers: &[WorkerId], told: &[WorkerId], any: bool) {
    let others = workers.iter().filter(|worker| !told.contains(worker)).filter_map(|worker| step.state.workers.get(worker));
    let pending: Vec<String> = others.map(|worker| worker.name.to_string()).collect();
    let ends = told.iter().filter_map(|worker| end_of(step.state, *worker)).collect();
    let timed_out = !any && !pending.is_empty();
    step.reply(call, Reply::Ends { ends, pending, timed_out });
}

/// How many ends a launcher that is handed them has not taken in, where that is worth a warning.
fn backlog(step: &Step<'_>, asker: Option<(TreeId, Owner)>) -> Option<usize> {
    let (tree, owner) = asker?;
    let lead = step.state.lead(tree, owner)?;
    Some(lead.outbox.ends()).filter(|ends| lead.is_told && *ends >= BACKLOG_WARN)
}
