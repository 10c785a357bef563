//! Every event there is, through the file and back.

use super::*;
use roost_core::event::{AcceptedTask, Context, Digest, Grant, JobAccepted, Owner, Place, Settings, StopCause, Timing, TreeOpened};
use roost_proto::id::{Epoch, ExecutionId, JobId, Token, TreeId};
use roost_proto::link::{ExitStatus, ProcessIdentity};
use roost_proto::outcome::{Failure, Outcome};

const VARIANTS: usize = 29;

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
        Event::Settled { .. } => 10,
        Event::Resumed { .. } => 11,
        Event::ParkAsked { .. } => 12,
        Event::ParkCancelled { .. } => 13,
        Event::Parked { .. } => 14,
        Event::MainExited { .. } => 15,
        Event::SlotFreed { .. } => 16,
        Event::StopAsked { .. } => 17,
        Event::KillSent { .. } => 18,
        Event::Reowned { .. } => 19,
        Event::Finishing { .. } => 20,
        Event::Ended { .. } => 21,
        Event::Consumed { .. } => 22,
        Event::CapSet { .. } => 23,
        Event::PauseSet { .. } => 24,
        Event::Interrupted { .. } => 25,
        Event::TreeClosed { .. } => 26,
        Event::TreeForgotten { .. } => 27,
        Event::Delivered { .. } => 28,
    }
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
        Event::StartDeferred { worker, again_at: Mono(u64::MAX), reason: String::new() },
        Event::StartRetried { worker, epoch },
        Event::Blocked { worker },
        Event::SlotLent { worker },
        Event::WaitOver { worker },
        Event::SlotRetaken { worker },
        Event::Settled { worker, context },
        Event::Resumed { worker },
        Event::ParkAsked { worker, deadline: Some(Mono(1)) },
        Event::ParkCancelled { worker, not_before: Mono(2) },
        Event::Parked { worker, context },
        Event::KillSent { worker },
        Event::Reowned { worker, owner: Owner::Root },
        Event::Consumed { tree, owner: Owner::Root, request_id: Some("r".to_owned()), workers: vec![worker, WorkerId(0)] },
        Event::Consumed { tree, owner: Owner::Worker(worker), request_id: None, workers: Vec::new() },
        Event::Delivered { worker, last: u64::MAX },
        Event::CapSet { tree, cap: 1 },
        Event::PauseSet { tree, paused: true },
        Event::Interrupted { tree, generation: u64::MAX },
        Event::TreeClosed { tree },
        Event::TreeForgotten { tree },
    ];
    for grant in [Grant::Start, Grant::FinalWake, Grant::EarlyWake, Grant::Return] {
        events.push(Event::SlotTaken { worker, epoch, grant, at_once: grant == Grant::Start });
    }
    for status in [ExitStatus::Code(-1), ExitStatus::Signal(9), ExitStatus::Unknown] {
        events.push(Event::MainExited { worker, status });
        events.push(Event::SlotFreed { worker, status });
    }
    for cause in [StopCause::Stop, StopCause::Timeout, StopCause::ParentFailed] {
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
