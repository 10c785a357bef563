//! Every event there is, through the file and back.

use super::*;
use roost_core::event::{
    AcceptedTask, Context, Digest, Grant, JobAccepted, Owner, Place, Runner, Sent, Settings, Spoken, StopCause, Timing, TreeOpened,
};
use roost_core::state::speech::Held;
use roost_proto::id::{Epoch, ExecutionId, JobId, MessageId, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_proto::outcome::{Failure, Outcome};
use roost_proto::usage::{Usage, UsageReport};

const VARIANTS: usize = 43;

/// No wildcard: a new event does not compile until it is named here, and then does not pass until it is in `every_event`.
fn number(event: &Event) -> usize {
    match event {
        Event::TreeOpened(_) => 0,
        Event::JobAccepted(_) => 1,
        Event::SlotTaken { .. } => 2,
        Event::ProcessStarted { .. } => 3,
        Event::StartDeferred { .. } => 4,
        Event::StartRetried { .. } => 5,
        Event::Blocked { .. } => 6,
        Event::SlotLent { .. } => 7,
        Event::WaitOver { .. } => 8,
        Event::SlotRetaken { .. } => 9,
        Event::Resumed { .. } => 10,
        Event::ParkAsked { .. } => 11,
        Event::ParkCancelled { .. } => 12,
        Event::Parked { .. } => 13,
        Event::MainExited { .. } => 14,
        Event::SlotFreed { .. } => 15,
        Event::StopAsked { .. } => 16,
        Event::KillSent { .. } => 17,
        Event::Reowned { .. } => 18,
        Event::Finishing { .. } => 19,
        Event::Ended { .. } => 20,
        Event::Consumed { .. } => 21,
        Event::CapSet { .. } => 22,
        Event::PauseSet { .. } => 23,
        Event::Interrupted { .. } => 24,
        Event::TreeClosed { .. } => 25,
        Event::TreeForgotten { .. } => 26,
        Event::Spoken(spoken) => 27 + spoken_number(spoken),
    }
}

fn spoken_number(spoken: &Spoken) -> usize {
    match spoken {
        Spoken::LeaseTaken { .. } => 0,
        Spoken::Busy { .. } => 1,
        Spoken::HoldOver { .. } => 2,
        Spoken::Said { .. } => 3,
        Spoken::UsageReported { .. } => 4,
        Spoken::Settled { .. } => 5,
        Spoken::Answered { .. } => 6,
        Spoken::StartupOver { .. } => 7,
        Spoken::Acked { .. } => 8,
        Spoken::WordsSent { .. } => 9,
        Spoken::WordsReturned { .. } => 10,
        Spoken::ResumeAccepted { .. } => 11,
        Spoken::AllowanceSet { .. } => 12,
        Spoken::GroupReleased { .. } => 13,
        Spoken::Read { .. } => 14,
        Spoken::StopTaken { .. } => 15,
    }
}

fn every_spoken() -> Vec<Spoken> {
    let (worker, tree, owner) = (WorkerId(u64::MAX), TreeId(5), Owner::Root);
    let context = Some(Context { digest: Digest(1), bytes: 0, place: Place::Path });
    let report =
        UsageReport { sequence: u64::MAX, usage: Usage { cost_unknown: true, cost: 7, ..Usage::default() }, context_tokens: Some(9) };
    let answered = |outcome| Spoken::Answered {
        worker,
        outcome,
        context,
        request_id: "r".into(),
        answered: true,
        length_limited: true,
        kill_at: Some(Mono(1)),
    };
    let words =
        |sent| Spoken::WordsSent { tree, from: owner, to: Owner::Worker(worker), request_id: "\u{2028}".into(), digest: Digest(3), sent };
    vec![
        Spoken::LeaseTaken { tree, owner, lease: u64::MAX, can_park: true, steers: false, process: None },
        Spoken::LeaseTaken {
            tree,
            owner,
            lease: 1,
            can_park: false,
            steers: true,
            process: Some(ProcessIdentity { pid: u32::MAX, start_ticks: u64::MAX }),
        },
        Spoken::Busy { worker },
        Spoken::HoldOver { worker },
        Spoken::Said { worker },
        Spoken::UsageReported { tree, owner, report },
        Spoken::Settled { worker, context, request_id: String::new(), answered: false },
        answered(Outcome::WrappedUp),
        answered(Outcome::Aborted { reason: "cut".into() }),
        Spoken::StartupOver { worker },
        Spoken::Acked { tree, owner, items: vec![1, u64::MAX], process: None, request_id: None },
        Spoken::Acked {
            tree,
            owner,
            items: Vec::new(),
            process: Some(ProcessIdentity { pid: u32::MAX, start_ticks: u64::MAX }),
            request_id: Some("r".to_owned()),
        },
        words(Sent::Steering(ExecutionId(1))),
        words(Sent::AfterEnd(ExecutionId(1))),
        words(Sent::Resumes(JobId(2))),
        words(Sent::ToLead),
        Spoken::WordsReturned { worker, messages: vec![MessageId(u64::MAX)] },
        Spoken::WordsReturned { worker, messages: Vec::new() },
        Spoken::ResumeAccepted { worker, job: JobId(1), execution: ExecutionId(2) },
        Spoken::AllowanceSet { worker, allowance: u64::MAX },
        Spoken::StopTaken { tree, owner, request_id: "\u{2028}".into(), stopped: vec![("a".into(), true, ExecutionId(u64::MAX))] },
        Spoken::GroupReleased { tree, owner, group: 4 },
        Spoken::Read { tree, owner, executions: vec![ExecutionId(u64::MAX)] },
    ]
}

fn opened() -> Event {
    Event::TreeOpened(Box::new(TreeOpened {
        tree: TreeId(u64::MAX),
        token: Token::new([0xa5; 16]),
        request_id: "r\u{0}\"\\\n\u{1F426}".to_owned(),
        key: Some(String::new()),
        ephemeral: true,
        settings: Settings {
            cap: 8,
            budget: (1 << 53) - 1,
            lend_slots: true,
            end_leftovers: false,
            adopt_orphans: true,
            stop_grace_ms: u64::MAX,
            depth_max: 3,
            interrupt_scope: roost_core::event::InterruptScope::Foreground,
            group_caps: vec![("writers".to_owned(), 1), ("ü".to_owned(), 2)],
            delivery: roost_core::event::Delivery::Passive,
            join: roost_core::event::Join::Group,
            timing: Timing::default(),
        },
    }))
}

fn accepted() -> Event {
    let task = |number, group, timeout_ms| AcceptedTask {
        worker: WorkerId(number),
        execution: ExecutionId(number),
        name: "n'; DROP TABLE events; --".to_owned(),
        token: Token::new([number as u8; 16]),
        allowance: number,
        runner: if number == 1 { Runner::Command } else { Runner::Worker },
        group,
        timeout_ms,
    };
    Event::JobAccepted(Box::new(JobAccepted {
        foreground: true,
        job: JobId(3),
        tree: TreeId(1),
        owner: Owner::Worker(WorkerId(9)),
        request_id: "r".to_owned(),
        digest: Digest(u128::MAX - 1),
        tasks: vec![task(1, None, None), task(2, Some(u16::MAX), Some(0))],
    }))
}

fn outcomes() -> Vec<Outcome> {
    let reason = || "no such file: \u{7f}\u{85}".to_owned();
    let failures = [
        Failure::Spawn { reason: reason() },
        Failure::Startup { reason: reason() },
        Failure::Exit { code: i32::MIN },
        Failure::Crash { signal: 9 },
        Failure::Timeout,
        Failure::Lost,
        Failure::ContextCorrupt { reason: String::new() },
        Failure::ContextCorrupt { reason: "gone".into() },
        Failure::ParentFailed,
        Failure::Protocol { reason: reason() },
        Failure::Provider { message: reason() },
        Failure::Truncated,
        Failure::TurnLimit { message: String::new() },
        Failure::IdleTimeout,
        Failure::NoAnswer,
    ];
    [Outcome::Completed, Outcome::Stopped].into_iter().chain(failures.into_iter().map(Outcome::Failed)).collect()
}

fn every_event() -> Vec<Event> {
    let (worker, tree, epoch) = (WorkerId(u64::MAX), TreeId(5), Epoch(u32::MAX));
    let context = Context { digest: Digest(1), bytes: u64::MAX, place: Place::Journal };
    let mut events = vec![
        opened(),
        accepted(),
        Event::ProcessStarted { worker, process: ProcessIdentity { pid: u32::MAX, start_ticks: u64::MAX } },
        Event::StartDeferred { worker, again_at: Mono(u64::MAX), reason: String::new(), leftovers: vec![9] },
        Event::StartRetried { worker, epoch },
        Event::Blocked { worker },
        Event::SlotLent { worker },
        Event::WaitOver { worker },
        Event::SlotRetaken { worker },
        Event::Resumed { worker },
        Event::ParkAsked { worker, deadline: Some(Mono(1)) },
        Event::ParkCancelled { worker, not_before: Mono(2) },
        Event::Parked { worker, context, held: None },
        Event::Parked {
            worker,
            context,
            held: Some(Box::new(Held {
                request_id: "r".into(),
                awaited: [worker].into(),
                any: true,
                deadline: Some(Mono(3)),
                over: false,
            })),
        },
        Event::KillSent { worker },
        Event::Reowned { worker, owner: Owner::Root },
        Event::Consumed {
            tree,
            owner: Owner::Root,
            request_id: Some("r".to_owned()),
            workers: vec![worker, WorkerId(0)],
            earlier: vec![ExecutionId(3)],
        },
        Event::Consumed { tree, owner: Owner::Worker(worker), request_id: None, workers: Vec::new(), earlier: Vec::new() },
        Event::CapSet { tree, cap: 1 },
        Event::PauseSet { tree, paused: true },
        Event::Interrupted { tree, generation: u64::MAX, asked: None },
        Event::Interrupted { tree, generation: 1, asked: Some(("r".to_owned(), 2)) },
        Event::TreeClosed { tree },
        Event::TreeForgotten { tree },
    ];
    events.extend(every_spoken().into_iter().map(|spoken| Event::Spoken(Box::new(spoken))));
    for grant in [Grant::Start, Grant::FinalWake, Grant::EarlyWake, Grant::Return] {
        events.push(Event::SlotTaken { worker, epoch, grant, at_once: grant == Grant::Start });
    }
    for status in [ExitStatus::Code(-1), ExitStatus::Signal(9), ExitStatus::Unknown] {
        events.push(Event::MainExited { worker, status });
        events.push(Event::SlotFreed { worker, status, leftovers: vec![4, u32::MAX] });
    }
    for cause in [StopCause::Stop, StopCause::Timeout, StopCause::ParentFailed, StopCause::Idle] {
        events.push(Event::StopAsked { worker, cause, kill_at: Mono(0) });
    }
    for outcome in outcomes() {
        events.push(Event::Finishing { worker, outcome: outcome.clone() });
        events.push(Event::Ended { worker, outcome });
    }
    events
}

#[test]
fn every_event_comes_back_as_it_was() {
    let mut seen = [false; VARIANTS];
    for event in every_event() {
        seen[number(&event)] = true;
    }
    assert!(seen.iter().all(|seen| *seen), "{seen:?}");

    // Times at the ends of their range too.
    let at = |seq: u64| Now { mono: Mono(u64::MAX - seq), wall_ms: if seq.is_multiple_of(2) { 0 } else { u64::MAX } };
    let written: Vec<_> = (1..).zip(every_event()).map(|(seq, event)| Record { seq, at: at(seq), event }).collect();
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, Batch { records: written.clone(), ..Batch::default() });
    drop(journal);
    assert_eq!(open(dir.path()).1.records, written);
}
