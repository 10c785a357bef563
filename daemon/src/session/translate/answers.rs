//! The way out: the core's replies, refusals and wakes as messages.
//!
//! Answers of workers lie in files that this wing does not know; whoever does hands them in by [`Files`]. Whatever they hold, a
//! message fits on its line.

use roost_core::command::Caller;
use roost_core::effect::{self, End, Placed, Reply};
use roost_core::rejection::Rejection;
use roost_core::view::{TreeCounts, TreeView, WorkerView};
use roost_proto::id::{Epoch, ExecutionId, WorkerId};
use roost_proto::message::PROTOCOL_VERSION;
use roost_proto::message::daemon::DaemonStopReply;
use roost_proto::message::launch::{Placement, Receipt, TaskReceipt};
use roost_proto::message::park::{ParkReply, Wake, WakeItem, WakeReason};
use roost_proto::message::result::{ResultReply, WaitReply, WorkerEnd, WorkerResult};
use roost_proto::message::session::{Role, Welcome};
use roost_proto::message::status::{StatusReply, TreeStatus, WorkerStatus};
use roost_proto::message::stop::{InterruptReply, StopReply, StopResult, Stopped};
use roost_proto::message::tree::{CapReply, Closed, Opened, PauseReply, Progress};
use roost_proto::rpc::ErrorObject;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::settings_out;

/// Most bytes that the answers in one reply take on its line, which has room for a little more.
const ANSWERS_BYTES_MAX: usize = 6 << 20;
/// Most bytes that the answers handed over by one wake take in its file.
const WAKE_BYTES_MAX: usize = 64 << 20;
/// Most bytes of a page of a status, as far as paths and names can be large.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// The files of executions, as far as replies show them.
pub trait Files {
    /// What an execution has answered.
    fn answer(&self, end: &End) -> Answer;
    /// The output files of an execution, up to this incarnation.
    fn outputs(&self, execution: ExecutionId, epoch: Epoch) -> Outputs;
}

/// An answer, or its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// As text.
    pub text: String,
    /// How many bytes the whole answer has.
    pub bytes: u64,
    /// Whether the text is only its start.
    pub truncated: bool,
    /// The file that holds it.
    pub path: Option<String>,
}

/// Output files, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Standard output.
    pub stdout: Vec<String>,
    /// Standard error.
    pub stderr: Vec<String>,
}

/// A reply as a message, and as whom its connection speaks from now on.
pub fn reply(reply: Reply, files: &dyn Files) -> (Box<RawValue>, Option<Caller>) {
    let message = match reply {
        Reply::Welcome { caller, tree: _, budget_remaining, generation } => {
            let daemon = env!("CARGO_PKG_VERSION").to_owned();
            let welcome = Welcome { protocol: PROTOCOL_VERSION, daemon, role: role(caller), budget_remaining, generation };
            return (raw(&welcome), Some(caller));
        }
        Reply::Opened { tree, token, created, settings } => {
            let opened = Opened { tree, token, created, settings: settings_out(settings) };
            return (raw(&opened), Some(Caller::Root(tree)));
        }
        Reply::Receipt { job, tasks, ends } => {
            let results = results(&ends, ANSWERS_BYTES_MAX, files).collect();
            raw(&Receipt { job, tasks: tasks.into_iter().map(task_receipt).collect(), results })
        }
        Reply::Ends { ends, pending, timed_out } => {
            raw(&WaitReply { ended: ends.into_iter().map(worker_end).collect(), pending, timed_out })
        }
        Reply::Result(end) => raw(&ResultReply::Ended(result(&end, ANSWERS_BYTES_MAX, files))),
        Reply::StillActive { view, timed_out } => {
            let WorkerView { name, state, .. } = *view;
            raw(&ResultReply::Active { name, state, timed_out })
        }
        Reply::Status { trees, workers, next } => raw(&status(trees, workers, next, files)),
        Reply::Counts(counts) => raw(&progress(&counts)),
        Reply::Stopped(workers) => raw(&StopReply { workers: workers.into_iter().map(stopped).collect() }),
        Reply::Interrupted { stopped, generation } => raw(&InterruptReply { stopped, generation }),
        Reply::Cap(counts) => raw(&CapReply { cap: counts.cap, live: counts.counts.live, queued: counts.queued }),
        Reply::Paused(paused) => raw(&PauseReply { paused }),
        Reply::Closed { stopped } => raw(&Closed { stopped }),
        Reply::Parked => raw(&ParkReply {}),
        Reply::Drained { stopped } => raw(&DaemonStopReply { stopped }),
    };
    (message, None)
}

/// A refusal as an error.
pub fn refusal(rejection: &Rejection) -> ErrorObject {
    ErrorObject::new(rejection.kind(), rejection.to_string(), rejection.hint().map(Into::into))
}

/// How a tree stands.
pub fn progress(counts: &TreeCounts) -> Progress {
    let TreeCounts { tree, cap, queued, counts, paused } = *counts;
    Progress {
        tree,
        cap,
        live: counts.live,
        queued,
        parked: counts.parked,
        blocked: counts.lent,
        finishing: counts.finishing,
        completed: counts.completed,
        failed: counts.failed,
        stopped: counts.stopped,
        paused,
    }
}

/// What a woken command finds on its standard input.
pub fn wake(wake: &effect::Wake, files: &dyn Files) -> Wake {
    let reason = if wake.settled { WakeReason::Settled } else { WakeReason::Completion };
    let share = WAKE_BYTES_MAX / wake.items.len().max(1);
    let item = |(seq, end): &(u64, End)| WakeItem::Completion { seq: *seq, result: result(end, share, files) };
    Wake { reason, active_children: wake.active_children, items: wake.items.iter().map(item).collect() }
}

fn role(caller: Caller) -> Role {
    match caller {
        Caller::Operator => Role::Operator,
        Caller::Root(_) => Role::Root,
        Caller::Worker { .. } => Role::Worker,
    }
}

fn task_receipt(placed: Placed) -> TaskReceipt {
    let Placed { name, worker, execution, place, reason } = placed;
    let status = if place.is_some() { Placement::Queued } else { Placement::Started };
    TaskReceipt { name, worker, execution, status, place, reason }
}

fn stopped((name, stopped): (String, bool)) -> Stopped {
    Stopped { name, result: if stopped { StopResult::Stopped } else { StopResult::AlreadySettled } }
}

fn worker_end(end: End) -> WorkerEnd {
    let End { name, worker, execution, job, task_index, epoch: _, outcome } = end;
    WorkerEnd { name, worker, execution, job, task_index, outcome }
}

fn results(ends: &[End], bytes_max: usize, files: &dyn Files) -> impl Iterator<Item = WorkerResult> {
    let share = bytes_max / ends.len().max(1);
    ends.iter().map(move |end| result(end, share, files))
}

fn result(end: &End, bytes_max: usize, files: &dyn Files) -> WorkerResult {
    let Answer { mut text, bytes, truncated, path } = files.answer(end);
    let fitting = fitting(&text, bytes_max);
    let cut = fitting < text.len();
    text.truncate(fitting);
    WorkerResult {
        partial: end.outcome.is_partial(),
        end: worker_end(end.clone()),
        answer: text,
        answer_bytes: bytes,
        answer_truncated: truncated || cut,
        answer_path: path,
    }
}

/// How many bytes of a text take at most so many in JSON, where control characters take six.
fn fitting(text: &str, bytes_max: usize) -> usize {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        if taken > bytes_max {
            return at;
        }
    }
    text.len()
}

fn status(trees: Vec<TreeView>, workers: Vec<WorkerView>, next: Option<WorkerId>, files: &dyn Files) -> StatusReply {
    let mut page = StatusReply { trees: trees.into_iter().map(tree_status).collect(), workers: Vec::new(), next };
    let mut bytes = 0;
    for view in workers {
        if bytes > PAGE_BYTES_MAX {
            page.next = page.workers.last().map(|last: &WorkerStatus| last.worker);
            break;
        }
        let outputs = files.outputs(view.execution, view.epoch);
        let paths = outputs.stdout.iter().chain(&outputs.stderr);
        bytes += paths.map(|path| path.len() + 3).sum::<usize>() + 2 * view.name.len() + 512;
        page.workers.push(worker_status(view, outputs));
    }
    page
}

fn tree_status(view: TreeView) -> TreeStatus {
    let TreeView { counts, key, budget, budget_remaining, opened_at_ms, closed_at_ms } = view;
    TreeStatus { progress: progress(&counts), key, budget_remaining, budget, opened_at_ms, closed_at_ms }
}

fn worker_status(view: WorkerView, outputs: Outputs) -> WorkerStatus {
    WorkerStatus {
        name: view.name,
        worker: view.worker,
        lead: view.lead,
        execution: view.execution,
        job: view.job,
        task_index: view.task_index,
        depth: view.depth,
        state: view.state,
        place: view.place,
        reason: view.reason,
        outcome: view.outcome,
        epoch: view.epoch,
        pid: view.pid,
        active_children: view.active_children,
        budget_remaining: view.budget_remaining,
        accepted_at_ms: view.accepted_at_ms,
        started_at_ms: view.started_at_ms,
        ended_at_ms: view.ended_at_ms,
        stdout_paths: outputs.stdout,
        stderr_paths: outputs.stderr,
    }
}

fn raw(message: &impl Serialize) -> Box<RawValue> {
    to_raw_value(message).unwrap_or_else(|error| {
        // Our messages are made of texts, numbers and lists, which always can be written.
        tracing::error!(%error, "a reply could not be written");
        RawValue::NULL.to_owned()
    })
}
