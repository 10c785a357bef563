//! The way out: the core's replies, refusals and wakes as messages.
//!
//! Answers of workers lie in files that this wing does not know; whoever does hands them in by [`Files`]. Whatever they hold, a
//! message fits on its line.

use roost_core::command::Caller;
use roost_core::effect::{self, End, Placed, Reply};
use roost_core::event::TextId;
use roost_core::rejection::Rejection;
use roost_core::view::{TreeCounts, TreeView, WorkerView};
use roost_proto::id::{Epoch, ExecutionId, WorkerId};
use roost_proto::limits::{ANSWERS_BYTES_MAX, BACKLOG_MAX, STATUS_PAGE_BYTES_MAX, WAKE_BYTES_MAX};
use roost_proto::message::PROTOCOL_VERSION;
use roost_proto::message::daemon::DaemonStopReply;
use roost_proto::message::launch::{Placement, Receipt, TaskReceipt};
use roost_proto::message::park::{ParkReply, Wake, WakeReason};
use roost_proto::message::result::{ResultReply, WaitReply, WorkerEnd, WorkerResult};
use roost_proto::message::session::{Role, Welcome, WorkerWelcome};
use roost_proto::message::status::{StatusReply, TreeStatus, WorkerStatus};
use roost_proto::message::stop::{InterruptReply, StopReply, StopResult, Stopped};
use roost_proto::message::tree::{CapReply, Closed, Opened, PauseReply, Progress};
use roost_proto::rpc::ErrorObject;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::pages::fitting;
use super::{delivery_out, items, settings_out};
use crate::session::Standing;

/// The files of executions, as far as replies show them.
pub trait Files {
    /// What an execution has answered.
    fn answer(&self, end: &End) -> Answer;
    /// The output files of an execution, up to this incarnation.
    fn outputs(&self, execution: ExecutionId, epoch: Epoch) -> Outputs;
    /// Whether a part of its transcript could not be written.
    fn is_lossy(&self, execution: ExecutionId) -> bool;
    /// A text of the journal.
    fn text(&self, text: TextId) -> String;
    /// What a worker was launched with.
    fn task(&self, worker: WorkerId) -> String;
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

/// A reply as a message, and as whom its connection speaks from now on. One that `observes` may only read.
pub fn reply_to(reply: Reply, observes: bool, files: &dyn Files) -> (Box<RawValue>, Option<Standing>) {
    let message = match reply {
        Reply::Welcome { caller, tree, budget_remaining, generation, standing } => {
            let lease = standing.as_ref().map(|standing| standing.holder.lease);
            let daemon = env!("CARGO_PKG_VERSION").to_owned();
            let welcome = Welcome {
                protocol: PROTOCOL_VERSION,
                daemon,
                role: if observes { Role::Observer } else { role(caller) },
                budget_remaining,
                generation,
                lease: lease.filter(|_| matches!(caller, Caller::Root(_))),
                delivery: standing.as_ref().map(|standing| delivery_out(standing.delivery)),
                hold_ms: standing.as_ref().map(|standing| standing.hold_ms),
                worker: standing.and_then(|standing| standing.worker).map(|(name, execution, wakes, continues)| WorkerWelcome {
                    name,
                    execution,
                    wakes,
                    continues,
                }),
            };
            return (raw(&welcome), Some(Standing { caller, lease, observes, tree }));
        }
        Reply::Opened { tree, token, created, settings } => {
            let opened = Opened { tree, token, created, settings: settings_out(settings) };
            return (raw(&opened), Some(Standing::of(Caller::Root(tree))));
        }
        Reply::Receipt { job, tasks, ends, backlog } => {
            let results = results(&ends, ANSWERS_BYTES_MAX, files).collect();
            raw(&Receipt {
                job,
                tasks: tasks.into_iter().map(task_receipt).collect(),
                warnings: backlog.map(backlog_warning).into_iter().collect(),
                results,
            })
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
        spoken @ (Reply::Settled(_)
        | Reply::ParkReady(_)
        | Reply::Done
        | Reply::Acked { .. }
        | Reply::Inbox { .. }
        | Reply::Sent { .. }
        | Reply::Usage(_)) => items::reply(spoken, files),
        Reply::Drained { stopped } => raw(&DaemonStopReply { stopped }),
        // Whoever knows the journal says more.
        Reply::Swept(swept) => raw(&super::swept(*swept, (0, 0))),
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
    let items = wake.items.iter().map(|owed| items::item(owed, share, files)).collect();
    Wake { reason, active_children: wake.active_children, items }
}

fn backlog_warning(owed: usize) -> String {
    format!("{owed} results wait to be taken in by you; with {BACKLOG_MAX} of them a launch is refused")
}

fn role(caller: Caller) -> Role {
    match caller {
        Caller::Operator => Role::Operator,
        Caller::Root(_) => Role::Root,
        Caller::Worker { .. } => Role::Worker,
    }
}

pub(super) fn task_receipt(placed: Placed) -> TaskReceipt {
    let Placed { name, worker, execution, place, reason } = placed;
    let status = if place.is_some() { Placement::Queued } else { Placement::Started };
    TaskReceipt { name, worker, execution, status, place, reason }
}

fn stopped((name, stopped): (String, bool)) -> Stopped {
    Stopped { name, result: if stopped { StopResult::Stopped } else { StopResult::AlreadySettled } }
}

fn worker_end(end: End) -> WorkerEnd {
    let End { name, worker, execution, job, task_index, outcome, .. } = end;
    WorkerEnd { name, worker, execution, job, task_index, outcome }
}

fn results(ends: &[End], bytes_max: usize, files: &dyn Files) -> impl Iterator<Item = WorkerResult> {
    let share = bytes_max / ends.len().max(1);
    ends.iter().map(move |end| result(end, share, files))
}

pub(super) fn result(end: &End, bytes_max: usize, files: &dyn Files) -> WorkerResult {
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
        length_limited: end.said.is_some_and(|said| said.length_limited),
        told_before: end.told_before,
        usage: end.usage,
        lossy: files.is_lossy(end.execution),
        answer_path: path,
        leftovers: end.leftovers.clone(),
    }
}

fn status(trees: Vec<TreeView>, workers: Vec<WorkerView>, next: Option<WorkerId>, files: &dyn Files) -> StatusReply {
    let mut page = StatusReply { trees: trees.into_iter().map(tree_status).collect(), workers: Vec::new(), next };
    let mut bytes = 0;
    for view in workers {
        if bytes > STATUS_PAGE_BYTES_MAX {
            page.next = page.workers.last().map(|last: &WorkerStatus| last.worker);
            break;
        }
        let outputs = files.outputs(view.execution, view.epoch);
        let paths = outputs.stdout.iter().chain(&outputs.stderr);
        bytes += paths.map(|path| path.len() + 3).sum::<usize>() + 2 * view.name.len() + 11 * view.leftovers.len() + 512;
        page.workers.push(worker_status(view, outputs));
    }
    page
}

/// A tree as a message.
pub fn tree_status(view: TreeView) -> TreeStatus {
    let TreeView { counts, key, group_caps, budget, budget_remaining, opened_at_ms, closed_at_ms } = view;
    let group_caps = group_caps.into_iter().collect();
    TreeStatus { progress: progress(&counts), key, group_caps, budget_remaining, budget, opened_at_ms, closed_at_ms }
}

/// A worker as a message, with its files.
pub fn worker_status(view: WorkerView, outputs: Outputs) -> WorkerStatus {
    WorkerStatus {
        name: view.name,
        worker: view.worker,
        lead: view.lead,
        execution: view.execution,
        job: view.job,
        task_index: view.task_index,
        depth: view.depth,
        group: view.group,
        state: view.state,
        place: view.place,
        reason: view.reason,
        outcome: view.outcome,
        epoch: view.epoch,
        pid: view.pid,
        leftovers: view.leftovers,
        active_children: view.active_children,
        budget_remaining: view.budget_remaining,
        accepted_at_ms: view.accepted_at_ms,
        started_at_ms: view.started_at_ms,
        ended_at_ms: view.ended_at_ms,
        stdout_paths: outputs.stdout,
        stderr_paths: outputs.stderr,
    }
}

pub(super) fn raw(message: &impl Serialize) -> Box<RawValue> {
    to_raw_value(message).unwrap_or_else(|error| {
        // Our messages are made of texts, numbers and lists, which always can be written.
        tracing::error!(%error, "a reply could not be written");
        RawValue::NULL.to_owned()
    })
}

#[cfg(test)]
mod tests {
    use roost_core::effect::Next;
    use roost_core::effect::{Owed, OwedKind};
    use roost_core::event::{self, Owner, Sent};
    use roost_core::usage_view::UsageView;
    use roost_proto::id::{JobId, MessageId, Token, TreeId};
    use roost_proto::message::worker as words_of;
    use roost_proto::message::{Request, daemon, deliver, launch, park, result, session, status, stop, tree, usage, words};
    use roost_proto::outcome::{Failure, Outcome};
    use roost_proto::rpc::ErrorKind;
    use roost_proto::usage::UsageTotals;
    use serde::de::DeserializeOwned;

    use super::super::settings_in;
    use super::*;

    fn reply(reply: Reply, files: &dyn Files) -> (Box<RawValue>, Option<Standing>) {
        reply_to(reply, false, files)
    }

    struct Fake(usize);

    impl Files for Fake {
        fn answer(&self, end: &End) -> Answer {
            Answer { text: "\u{1}é".repeat(self.0), bytes: 99, truncated: false, path: Some(format!("/{}", end.execution)) }
        }
        fn outputs(&self, execution: ExecutionId, epoch: Epoch) -> Outputs {
            let paths = |ending| (1..=epoch.0).map(|n| format!("/{execution}-{n}.{ending}")).collect();
            Outputs { stdout: paths("out"), stderr: paths("err") }
        }
        fn text(&self, text: TextId) -> String {
            format!("text {}", text.0)
        }
        fn task(&self, worker: WorkerId) -> String {
            format!("task of {worker}")
        }
        fn is_lossy(&self, _: ExecutionId) -> bool {
            false
        }
    }

    fn end(outcome: Outcome) -> End {
        let (worker, execution) = (WorkerId(2), ExecutionId(3));
        End {
            name: "n".into(),
            worker,
            execution,
            job: JobId(4),
            task_index: 1,
            epoch: Epoch(2),
            outcome,
            said: None,
            speaks: false,
            told_before: false,
            usage: None,
            leftovers: Vec::new(),
        }
    }

    fn failed() -> End {
        end(Outcome::Failed(Failure::Exit { code: 3 }))
    }

    fn counts() -> TreeCounts {
        let mut of = TreeCounts { tree: TreeId(1), cap: 8, queued: 10, counts: Default::default(), paused: true };
        (of.counts.live, of.counts.parking, of.counts.parked, of.counts.lent) = (1, 9, 2, 3);
        (of.counts.finishing, of.counts.completed, of.counts.failed, of.counts.stopped) = (4, 5, 6, 7);
        of
    }

    fn view() -> WorkerView {
        WorkerView {
            name: "n".into(),
            worker: WorkerId(2),
            lead: Some(WorkerId(1)),
            execution: ExecutionId(3),
            job: JobId(4),
            task_index: 1,
            depth: 2,
            group: None,
            state: status::WorkerState::Parked,
            place: None,
            reason: Some("waiting".into()),
            outcome: None,
            epoch: Epoch(2),
            pid: Some(5),
            leftovers: vec![6, 7],
            active_children: 1,
            budget_remaining: 6,
            accepted_at_ms: 7,
            started_at_ms: Some(8),
            ended_at_ms: None,
        }
    }

    fn settings() -> event::Settings {
        let caps = [("b".to_owned(), 2), ("a".to_owned(), 1)];
        settings_in(tree::Settings { cap: 3, group_caps: caps.into(), ..tree::Settings::default() })
    }

    fn placed(place: Option<u32>) -> Placed {
        let reason = place.map(|_| "full".into());
        Placed { name: "n".into(), worker: WorkerId(2), execution: ExecutionId(3), place, reason }
    }

    fn standing() -> effect::Standing {
        let holder = effect::Holder { tree: TreeId(1), owner: event::Owner::Worker(WorkerId(2)), lease: 9 };
        let worker = Some(("n".into(), ExecutionId(3), true, Some("w1".into())));
        effect::Standing { holder, delivery: event::Delivery::FollowUp, hold_ms: 200, worker }
    }

    /// One item of each kind.
    fn owed() -> Vec<Owed> {
        let (message, worker) = (MessageId(5), WorkerId(2));
        let kinds = [
            OwedKind::Task(worker),
            OwedKind::Completion(Box::new(failed())),
            OwedKind::LeadMessage(message),
            OwedKind::ChildMessage { message, from: "c".into(), worker },
            OwedKind::Notice { from: "c".into(), worker, execution: ExecutionId(3), text: Some(TextId(4)) },
            OwedKind::Undelivered { message, to: "c".into() },
        ];
        (1..).zip(kinds).map(|(seq, what)| Owed { seq, what }).collect()
    }

    fn all() -> Vec<Reply> {
        let view = view();
        let tree = TreeView {
            counts: counts(),
            key: None,
            group_caps: Vec::new(),
            budget: 50,
            budget_remaining: 49,
            opened_at_ms: 1,
            closed_at_ms: None,
        };
        let worker = Caller::Worker { worker: WorkerId(2), epoch: Epoch(1) };
        vec![
            Reply::Welcome {
                caller: worker,
                tree: Some(TreeId(1)),
                budget_remaining: Some(3),
                generation: Some(4),
                standing: Some(Box::new(standing())),
            },
            Reply::Welcome { caller: Caller::Operator, tree: None, budget_remaining: None, generation: None, standing: None },
            Reply::Opened { tree: TreeId(1), token: Token::new([1; 16]), created: true, settings: settings() },
            Reply::Receipt { job: JobId(4), tasks: vec![placed(None), placed(Some(2))], ends: vec![failed()], backlog: Some(25) },
            Reply::Ends { ends: vec![failed()], pending: vec!["p".into()], timed_out: true },
            Reply::Result(Box::new(failed())),
            Reply::StillActive { view: Box::new(view.clone()), timed_out: true },
            Reply::Status { trees: vec![tree], workers: vec![view], next: Some(WorkerId(2)) },
            Reply::Counts(counts()),
            Reply::Stopped(vec![("a".into(), true), ("b".into(), false)]),
            Reply::Interrupted { stopped: 1, generation: 2 },
            Reply::Cap(counts()),
            Reply::Paused(true),
            Reply::Closed { stopped: 1 },
            Reply::Parked,
            Reply::Settled(Next::GoOn),
            Reply::ParkReady(true),
            Reply::Done,
            Reply::Acked { accepted: vec![1], gone: vec![2] },
            Reply::Inbox { items: owed(), more: 3 },
            Reply::Sent { message: MessageId(6), sent: Sent::ToLead, placed: None },
            Reply::Sent { message: MessageId(7), sent: Sent::Resumes(JobId(8)), placed: Some((JobId(8), placed(Some(2)))) },
            Reply::Usage(Box::new(UsageView { tree: TreeId(1), totals: UsageTotals::default(), workers: Vec::new(), next: None })),
            Reply::Drained { stopped: 1 },
            Reply::Swept(Box::new(effect::Swept {
                trees: vec![effect::SweptTree { tree: TreeId(1), key: None, closed_at_ms: 2, workers: 3, bytes: 4 }],
                total: 1,
                workers: 3,
                bytes: 4,
                unread: 5,
                more: false,
                dry_run: true,
            })),
        ]
    }

    fn text_in(item: &deliver::ItemKind) -> Option<String> {
        match item {
            deliver::ItemKind::Task { text }
            | deliver::ItemKind::LeadMessage { text, .. }
            | deliver::ItemKind::ChildMessage { text, .. }
            | deliver::ItemKind::Notice { text, .. }
            | deliver::ItemKind::Undelivered { text, .. } => Some(text.clone()),
            deliver::ItemKind::Completion { .. } => None,
        }
    }

    /// The message of the request that this reply answers, read back.
    fn read<T: Request>(message: &RawValue) -> T::Reply
    where
        T::Reply: DeserializeOwned,
    {
        serde_json::from_str(message.get()).unwrap()
    }

    #[test]
    fn every_reply_reads_back_as_the_answer_to_its_request() {
        for given in all() {
            let (message, becomes) = reply(given.clone(), &Fake(1));
            let expected = if let Reply::Welcome { caller, tree, standing, .. } = &given {
                let lease = standing.as_ref().map(|standing| standing.holder.lease);
                Some(Standing { lease, tree: *tree, ..Standing::of(*caller) })
            } else if let Reply::Opened { tree, .. } = &given {
                Some(Standing::of(Caller::Root(*tree)))
            } else {
                None
            };
            assert_eq!(becomes, expected, "{given:?}");
            match given {
                Reply::Welcome { caller, budget_remaining, .. } => {
                    let welcome = read::<session::Hello>(&message);
                    assert_eq!((welcome.protocol, welcome.role, welcome.budget_remaining), (1, role(caller), budget_remaining));
                    let speaks = matches!(caller, Caller::Worker { .. });
                    assert_eq!(welcome.worker.and_then(|worker| worker.continues), speaks.then(|| "w1".to_owned()));
                }
                Reply::Opened { .. } => {
                    let opened = read::<tree::Open>(&message);
                    assert!(opened.created && opened.token == Token::new([1; 16]));
                    assert_eq!(settings_in(opened.settings), settings());
                }
                Reply::Receipt { .. } => {
                    let receipt = read::<launch::Launch>(&message);
                    let tasks: Vec<_> = receipt.tasks.iter().map(|t| (t.status, t.place, t.reason.as_deref())).collect();
                    assert_eq!(tasks, [(Placement::Started, None, None), (Placement::Queued, Some(2), Some("full"))]);
                    assert_eq!(receipt.warnings.len(), 1);
                    let result = &receipt.results[0];
                    assert!(result.partial && !result.answer_truncated && result.answer == "\u{1}é" && result.answer_bytes == 99);
                    assert_eq!(result.answer_path.as_deref(), Some("/x3"));
                }
                Reply::Ends { .. } => {
                    let ends = read::<result::Wait>(&message);
                    assert_eq!((ends.ended, ends.pending, ends.timed_out), (vec![worker_end(failed())], vec!["p".to_owned()], true));
                }
                Reply::Result(_) => assert!(matches!(read::<result::ReadResult>(&message), ResultReply::Ended(r) if r.partial)),
                Reply::StillActive { .. } => {
                    let active = read::<result::ReadResult>(&message);
                    let state = status::WorkerState::Parked;
                    assert_eq!(active, ResultReply::Active { name: "n".into(), state, timed_out: true });
                }
                Reply::Status { .. } => {
                    let status = read::<status::Status>(&message);
                    assert_eq!(status.workers[0].stdout_paths, ["/x3-1.out", "/x3-2.out"]);
                    assert_eq!(status.workers[0].stderr_paths, ["/x3-1.err", "/x3-2.err"]);
                    assert_eq!((status.trees[0].progress.clone(), status.next), (progress(&counts()), Some(WorkerId(2))));
                }
                Reply::Counts(_) => {
                    let p = read::<tree::Watch>(&message);
                    assert_eq!((p.live, p.parked, p.blocked, p.finishing, p.completed), (1, 2, 3, 4, 5));
                    assert_eq!((p.failed, p.stopped, p.queued, p.cap, p.paused), (6, 7, 10, 8, true));
                }
                Reply::Stopped(_) => {
                    let results: Vec<_> = read::<stop::Stop>(&message).workers.into_iter().map(|w| w.result).collect();
                    assert_eq!(results, [StopResult::Stopped, StopResult::AlreadySettled]);
                }
                Reply::Interrupted { .. } => assert_eq!(read::<stop::Interrupt>(&message).generation, 2),
                Reply::Cap(_) => assert_eq!(read::<tree::Cap>(&message), CapReply { cap: 8, live: 1, queued: 10 }),
                Reply::Paused(_) => assert!(read::<tree::Pause>(&message).paused),
                Reply::Closed { .. } => assert_eq!(read::<tree::Close>(&message).stopped, 1),
                Reply::Parked => assert_eq!(read::<park::Park>(&message), ParkReply {}),
                Reply::Settled(_) => assert_eq!(read::<words_of::Settle>(&message).next, words_of::Next::GoOn),
                Reply::ParkReady(_) => assert!(read::<words_of::ParkReady>(&message).parked),
                Reply::Done => drop(read::<words_of::Report>(&message)),
                Reply::Acked { .. } => {
                    let reply = read::<deliver::Ack>(&message);
                    assert_eq!((reply.accepted, reply.gone), (vec![1], vec![2]));
                }
                Reply::Inbox { .. } => {
                    let inbox = read::<deliver::Inbox>(&message);
                    let texts: Vec<Option<String>> = inbox.items.iter().map(|item| text_in(&item.what)).collect();
                    let text = |text: &str| Some(text.to_owned());
                    let five = text("text 5");
                    assert_eq!(texts, [text("task of w2"), None, five.clone(), five.clone(), text("text 4"), five]);
                    assert_eq!(inbox.more, 3);
                }
                Reply::Sent { sent: Sent::ToLead, .. } => assert_eq!(read::<words::TellLead>(&message).message, MessageId(6)),
                Reply::Sent { .. } => {
                    let resumed =
                        words::Sent::Resumed { job: JobId(8), execution: ExecutionId(3), placement: Placement::Queued, place: Some(2) };
                    assert_eq!(read::<words::Message>(&message).sent, resumed);
                }
                Reply::Usage(_) => assert_eq!(read::<usage::ReadUsage>(&message).tree, TreeId(1)),
                Reply::Drained { .. } => assert_eq!(read::<daemon::DaemonStop>(&message).stopped, 1),
                Reply::Swept(_) => {
                    let reply = read::<daemon::DaemonGc>(&message);
                    assert_eq!((reply.trees[0].workers, reply.total, reply.kept_unread, reply.more), (3, 1, 5, false));
                }
            }
        }
    }

    #[test]
    fn a_reply_fits_on_a_line_whatever_the_answers_hold() {
        let ends = vec![failed(); 20];
        let receipt = Reply::Receipt { job: JobId(4), tasks: Vec::new(), ends, backlog: None };
        let (message, _) = reply(receipt, &Fake(400_000));
        assert!(message.get().len() < roost_proto::limits::LINE_BYTES_MAX, "{}", message.get().len());
        for result in read::<launch::Launch>(&message).results {
            assert!(result.answer_truncated && result.answer.len() > 100_000 && result.answer.starts_with("\u{1}é"));
        }
    }

    #[test]
    fn a_page_that_is_too_long_goes_on_later() {
        let workers: Vec<_> = (1..=300).map(|n| WorkerView { worker: WorkerId(n), epoch: Epoch(1_000), ..view() }).collect();
        let (message, _) = reply(Reply::Status { trees: Vec::new(), workers, next: None }, &Fake(1));
        assert!(message.get().len() < roost_proto::limits::LINE_BYTES_MAX);
        let page = read::<status::Status>(&message);
        assert!(page.workers.len() > 50 && page.workers.len() < 300);
        assert_eq!(page.next, page.workers.last().map(|last| last.worker));
    }

    #[test]
    fn a_wake_says_why_and_hands_over_in_order() {
        let context = event::Context { digest: event::Digest(1), bytes: 1, place: event::Place::default() };
        let item = |seq, end| Owed { seq, what: OwedKind::Completion(Box::new(end)) };
        let items = vec![item(4, end(Outcome::Completed)), item(7, failed())];
        let made = wake(&effect::Wake { settled: false, active_children: 3, context, items }, &Fake(1));
        assert_eq!((made.reason, made.active_children), (WakeReason::Completion, 3));
        let line = serde_json::to_value(&made).unwrap();
        assert_eq!((&line["items"][0]["seq"], &line["items"][1]["seq"]), (&4.into(), &7.into()));
        assert_eq!((&line["items"][0]["type"], &line["items"][1]["outcome"]["code"]), (&"completion".into(), &3.into()));
        assert_eq!((&line["items"][0]["partial"], &line["items"][1]["partial"]), (&false.into(), &true.into()));
        assert_eq!(serde_json::from_value::<Wake>(line).unwrap(), made);
    }

    #[test]
    fn a_refusal_says_what_and_what_to_do() {
        let error = refusal(&Rejection::Budget { needed: 3, remaining: 2, owner: Owner::Root });
        assert_eq!((error.data.kind, error.code), (ErrorKind::Budget, -32_000));
        assert!(error.message.contains('3') && error.data.hint.is_some());
    }
}
