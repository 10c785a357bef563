//! Faults that were found once and that no scenario table can show: what is told again, and what follows after a restart.

mod bench;

use bench::*;
use roost_core::broker::Outcome as Stepped;
use roost_core::command::{Allowance, CallId, Caller, Command, Launch, Role, Speak, Target, Task};
use roost_core::effect::{Effect, Reply};
use roost_core::event::{Delivery, Digest, Join, Owner, Runner, Settings, Timing};
use roost_core::rejection::Rejection;
use roost_core::state::speech::Next;
use roost_core::state::worker::Phase;
use roost_core::time::Mono;
use roost_proto::id::{Epoch, ExecutionId, Incarnation, Token};
use roost_proto::limits::{PARK_DECLINE_MS_MAX, REATTACH_MS, START_RETRY_MS, WORDS_OWED_MAX};
use roost_proto::link::{ExitStatus, Signal};
use roost_proto::message::events::TreeEvent;
use roost_proto::outcome::{Failure, Outcome};
use roost_proto::usage::{Usage, UsageReport};

#[test]
fn an_adopted_process_gets_the_signal_that_its_state_asks_for() {
    let mut bench = Bench::new(2);
    let one = bench.launch(ROOT, "one");
    let names = vec!["one".to_owned()];
    let stepped = bench.ask(|call| Command::Stop { call, caller: ROOT, request_id: None, names, no_wait: false });
    assert_eq!(signals(&stepped), [Signal::Term]);
    // The signal goes down with broker and supervisor; the next supervisor knows of no child.
    bench.restart();
    let stepped = bench.step(Command::Reconcile { children: Vec::new() });
    assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::Adopt { incarnation, .. } if *incarnation == one)));
    let stepped = bench.step(Command::Spawned { incarnation: one, process: process(one) });
    assert_eq!(signals(&stepped), [Signal::Term]);
    bench.now += 10_000;
    let stepped = bench.step(Command::Tick);
    assert_eq!(signals(&stepped), [Signal::Kill]);
    bench.restart();
    bench.step(Command::Reconcile { children: Vec::new() });
    let stepped = bench.step(Command::Spawned { incarnation: one, process: process(one) });
    assert_eq!(signals(&stepped), [Signal::Kill], "and again after the KILL");
}

#[test]
fn a_wake_that_is_tried_again_hands_over_what_has_come_in_between() {
    let mut bench = Bench::new(3);
    let parent = bench.launch(ROOT, "parent");
    let caller = bench.caller(parent);
    let (a, b) = (bench.launch(caller, "a"), bench.launch(caller, "b"));
    bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    bench.exits(parent);
    bench.exits(a);
    bench.now += 1_000;
    let stepped = bench.step(Command::Tick);
    let (first, wake) = spawned(&stepped).expect("an early wake");
    assert_eq!((names(wake), wake.map(|wake| wake.settled)), (vec!["a".to_owned()], Some(false)));
    bench.step(Command::SpawnFailed { incarnation: first, reason: "EAGAIN".into(), transient: true });
    bench.exits(b);
    bench.now += START_RETRY_MS;
    let stepped = bench.step(Command::Tick);
    let (second, wake) = spawned(&stepped).expect("a further try");
    assert_eq!((names(wake), wake.map(|wake| wake.settled)), (vec!["a".to_owned(), "b".to_owned()], Some(true)));
    assert_eq!(second.epoch, Epoch(first.epoch.0 + 1));
}

#[test]
fn a_start_that_is_repeated_after_a_crash_does_not_take_its_subtree_for_settled() {
    let mut bench = Bench::new(3);
    let parent = bench.launch(ROOT, "parent");
    let caller = bench.caller(parent);
    let (a, b) = (bench.launch(caller, "a"), bench.launch(caller, "b"));
    bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    bench.exits(parent);
    bench.exits(a);
    bench.now += 1_000;
    let (first, _) = spawned(&bench.step(Command::Tick)).map(|(of, _)| (of, ())).expect("an early wake");
    bench.exits(b);
    let stepped = bench.step(Command::NeverStarted { incarnation: first });
    let (again, wake) = spawned(&stepped).expect("the same start");
    assert_eq!(again, first);
    assert_eq!((names(wake), wake.map(|wake| (wake.settled, wake.active_children))), (vec!["a".to_owned()], Some((false, 1))));
}

#[test]
fn a_settled_worker_is_told_again_after_a_lost_connection_until_it_shows_that_it_knows() {
    let mut bench = Bench::new(2);
    let parent = bench.speaker(ROOT, "speaker");
    let caller = bench.caller(parent);
    let child = bench.launch(caller, "child");
    bench.settles(parent);
    assert_eq!(delivered(&bench.exits(child)), Some(vec!["child".to_owned()]));
    bench.restart();
    bench.step(Command::Reconcile { children: Vec::new() });
    bench.step(Command::Spawned { incarnation: parent, process: process(parent) });
    assert_eq!(delivered(&bench.hello(parent)), Some(vec!["child".to_owned()]));
    // It settles without having read that: it is told once more, and has not settled.
    assert_eq!(delivered(&bench.settles(parent)), Some(vec!["child".to_owned()]));
    bench.speaks(parent, ack(&[2]));
    assert_eq!(delivered(&bench.hello(parent)), None);
    let stepped = bench.settles(parent);
    assert_eq!(signals(&stepped), [Signal::CloseStdin], "nothing below it and nothing owed: that was its last turn");
}

#[test]
fn whoever_declines_to_park_is_asked_again_within_the_bound() {
    let mut bench = Bench::new(1);
    let parent = bench.speaker(ROOT, "speaker");
    let caller = bench.caller(parent);
    bench.queue(caller, "child");
    bench.settles(parent);
    for not_before_ms in [u64::MAX, PARK_DECLINE_MS_MAX + 1] {
        bench.speaks(parent, Speak::ParkDecline { not_before_ms });
        let deadline = bench.broker.next_deadline().expect("it is asked again");
        assert!(deadline <= Mono(bench.now + PARK_DECLINE_MS_MAX), "{deadline:?}");
        bench.now = deadline.0;
        let stepped = bench.step(Command::Tick);
        assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::AskPark { .. })));
    }
}

#[test]
fn two_clients_of_one_blocked_worker_are_answered_when_it_has_its_slot() {
    let mut bench = Bench::new(1);
    let parent = bench.launch(ROOT, "parent");
    let caller = bench.caller(parent);
    let launch = Launch {
        request_id: "two".into(),
        digest: Digest(0),
        tasks: vec![task(caller, "a"), task(caller, "b")],
        foreground: false,
        attended: false,
        generation: None,
        unusable: None,
    };
    bench.ask(|call| Command::Launch { call, caller, launch: Box::new(launch) });
    let wait = |name: &str| {
        let names = vec![name.to_owned()];
        move |call| Command::Wait { call, caller, request_id: names.concat(), names, any: false, tell_later: false, timeout_ms: None }
    };
    let (a, _) = spawned(&bench.ask(wait("a"))).map(|(of, _)| (of, ())).expect("the slot is lent");
    bench.step(Command::Spawned { incarnation: a, process: process(a) });
    bench.ask(wait("b"));
    let stepped = bench.exits(a);
    let (b, _) = spawned(&stepped).expect("the queue goes first");
    assert!(!stepped.effects.iter().any(|effect| matches!(effect, Effect::Reply { .. })), "it has no slot to go on with");
    bench.step(Command::Spawned { incarnation: b, process: process(b) });
    let stepped = bench.exits(b);
    let replies: Vec<_> =
        stepped.effects.iter().filter(|effect| matches!(effect, Effect::Reply { reply: Reply::Ends { .. }, .. })).collect();
    assert_eq!(replies.len(), 2, "{:?}", stepped.effects);
    let Caller::Worker { worker, .. } = caller else { panic!("a worker") };
    assert_eq!(bench.broker.state().workers[&worker].phase, Phase::Running);
}

#[test]
fn an_acknowledgement_takes_what_there_is_and_says_what_is_gone() {
    let mut bench = Bench::new(2);
    let parent = bench.launch(ROOT, "parent");
    let caller = bench.caller(parent);
    let child = bench.launch(caller, "child");
    bench.exits(child);
    let stepped = bench.ask(|call| Command::Speak { call, caller, lease: None, speak: Box::new(ack(&[u64::MAX, 1, 1])) });
    let acked = Reply::Acked { accepted: vec![1], gone: vec![u64::MAX] };
    assert!(stepped.effects.contains(&Effect::Reply { call: CallId(bench.call), reply: acked }), "{:?}", stepped.effects);
    let Caller::Worker { worker, .. } = caller else { panic!("a worker") };
    assert!(bench.broker.state().workers[&worker].outbox.is_empty());
}

#[test]
fn what_the_world_has_against_a_launch_holds_for_a_new_one_alone() {
    let mut bench = Bench::new(2);
    let cwd = Rejection::BadCwd { what: "task 0: the working directory `/x` cannot be used: it is gone".into() };
    let launch = |request_id: &str, digest, unusable| {
        let task = Task {
            name: None,
            stem: "w".into(),
            token: Token::new(TOKEN),
            allowance: Allowance::Exactly(0),
            runner: Runner::Command,
            group: None,
            timeout_ms: None,
        };
        let request_id = request_id.to_owned();
        let tasks = vec![task];
        Box::new(Launch { request_id, digest: Digest(digest), tasks, foreground: false, attended: false, generation: None, unusable })
    };
    let mut ask = |launch| bench.ask(|call| Command::Launch { call, caller: ROOT, launch });
    let receipt = |stepped: &Stepped| {
        stepped.effects.iter().find_map(|effect| {
            if let Effect::Reply { reply: reply @ Reply::Receipt { .. }, .. } = effect { Some(reply.clone()) } else { None }
        })
    };
    // A new one is refused and records nothing.
    let refused = ask(launch("r", 1, Some(cwd.clone())));
    assert_eq!((refusal(&refused), refused.records.len()), (Some(cwd.clone()), 0));
    // It took nothing: the same request is accepted once the directory is there.
    let first = receipt(&ask(launch("r", 1, None)));
    assert!(first.is_some());
    // A repeat is answered as the first time, and records nothing.
    let again = ask(launch("r", 1, Some(cwd.clone())));
    assert_eq!((receipt(&again), again.records.len()), (first, 0));
    // With other content it is an error, as ever.
    let other = refusal(&ask(launch("r", 2, Some(cwd))));
    assert_eq!(other, Some(Rejection::RequestIdReused { request_id: "r".into() }));
}

#[test]
fn a_process_that_parks_before_its_hello_as_a_voice_has_parked() {
    let mut bench = Bench::new(1);
    let first = bench.launch(ROOT, "speaker");
    bench.hello_as(first, None);
    let caller = bench.caller(first);
    bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    let stepped = bench.exits(first);
    let second = bench.starts(&stepped);
    assert_eq!((second.epoch, bench.phase(second)), (Epoch(2), &Phase::Running));
}

#[test]
fn a_process_that_waits_before_its_hello_as_a_voice_and_ends_is_not_started_again() {
    let mut bench = Bench::new(2);
    let first = bench.speaker(ROOT, "speaker");
    bench.launch(bench.caller(first), "child");
    bench.settles(first);
    // It is woken from its context, and its slot is not lent: there is another one.
    bench.exits(first);
    bench.exits(Incarnation { execution: roost_proto::id::ExecutionId(2), epoch: Epoch(1) });
    let second = Incarnation { epoch: Epoch(2), ..first };
    bench.step(Command::Spawned { incarnation: second, process: process(second) });
    bench.hello_as(second, None);
    bench.launch(bench.caller(second), "other");
    bench.waits(bench.caller(second), "other", None);
    assert!(matches!(bench.phase(second), Phase::Blocked { .. }));
    bench.exits(second);
    assert!(!matches!(bench.phase(second), Phase::Starting(_)), "{:?}", bench.phase(second));
}

#[test]
fn a_process_that_waits_and_whose_hello_does_not_come_is_not_started_again() {
    let mut bench = Bench::new(2);
    let parent = bench.launch(ROOT, "speaker");
    bench.hello_as(parent, None);
    let caller = bench.caller(parent);
    bench.launch(caller, "child");
    bench.waits(caller, "child", None);
    assert_eq!(signals(&bench.pass(Timing::default().startup_ms)), [Signal::Kill]);
    bench.exits(parent);
    assert!(!matches!(bench.phase(parent), Phase::Starting(_)), "{:?}", bench.phase(parent));
}

#[test]
fn nobody_parks_after_the_last_word() {
    let mut bench = Bench::new(1);
    let parent = bench.speaker(ROOT, "speaker");
    bench.settles(parent);
    let caller = bench.caller(parent);
    let stepped = bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    assert_eq!((refusal(&stepped), stepped.records.len()), (Some(Rejection::Stopping), 0));
}

/// One that speaks was asked to park inside of its call, with one child in the queue behind it. Gives the call too.
fn asked_in_a_call(bench: &mut Bench, timeout_ms: Option<u64>) -> (Incarnation, CallId) {
    let parent = bench.speaker(ROOT, "speaker");
    bench.queue(bench.caller(parent), "child");
    let stepped = bench.waits(bench.caller(parent), "child", timeout_ms);
    assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::AskPark { .. })), "{:?}", stepped.effects);
    (parent, CallId(bench.call))
}

#[test]
fn whoever_was_asked_to_park_in_a_call_that_is_abandoned_goes_on() {
    let mut bench = Bench::new(1);
    let (parent, call) = asked_in_a_call(&mut bench, None);
    bench.step(Command::Abandon { calls: vec![call] });
    assert_eq!(bench.phase(parent), &Phase::Running);
    let stepped = bench.speaks(parent, Speak::ParkReady { context: Some(CONTEXT) });
    assert!(stepped.effects.contains(&Effect::Reply { call: CallId(bench.call), reply: Reply::ParkReady(false) }));
}

#[test]
fn whoever_was_asked_to_park_in_a_call_that_does_not_come_back_goes_on() {
    let mut bench = Bench::of(Settings { cap: 1, timing: Timing { park_deadline_ms: 0, ..Timing::default() }, ..settings() });
    let (parent, _) = asked_in_a_call(&mut bench, None);
    bench.restart();
    bench.step(Command::Reconcile { children: Vec::new() });
    bench.step(Command::Spawned { incarnation: parent, process: process(parent) });
    bench.pass(REATTACH_MS + 1);
    assert_eq!(bench.phase(parent), &Phase::Running);
}

#[test]
fn whoever_cannot_park_in_its_call_waits_on_and_is_asked_later() {
    let mut bench = Bench::of(Settings { cap: 1, timing: Timing { park_deadline_ms: 0, ..Timing::default() }, ..settings() });
    let parent = bench.speaker(ROOT, "speaker");
    let caller = bench.caller(parent);
    bench.queue(caller, "child");
    // A call without a name cannot go on in another process.
    let of = Target::Name("child".into());
    let stepped = bench.ask(|call| Command::Result { call, caller, tree: None, of, wait: true, request_id: None, timeout_ms: None });
    assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::AskPark { .. })));
    let stepped = bench.speaks(parent, Speak::ParkReady { context: Some(CONTEXT) });
    assert!(stepped.effects.contains(&Effect::Reply { call: CallId(bench.call), reply: Reply::ParkReady(false) }));
    // It is not asked again at once; its slot can be lent meanwhile.
    assert!(!stepped.effects.iter().any(|effect| matches!(effect, Effect::AskPark { .. })));
    assert!(spawned(&stepped).is_some(), "{:?}", bench.phase(parent));
}

#[test]
fn the_time_of_a_call_that_runs_out_while_its_worker_leaves_is_over() {
    let mut bench = Bench::new(1);
    let (parent, _) = asked_in_a_call(&mut bench, Some(100));
    let stepped = bench.speaks(parent, Speak::ParkReady { context: Some(CONTEXT) });
    assert!(stepped.effects.contains(&Effect::Reply { call: CallId(bench.call), reply: Reply::ParkReady(true) }));
    bench.pass(1_000);
    let stepped = bench.exits(parent);
    let child = bench.starts(&stepped);
    bench.step(Command::Cap { call: CallId(1_000), caller: ROOT, cap: Some(2) });
    let stepped = bench.pass(1_000);
    assert_eq!(bench.phase(child), &Phase::Running);
    assert!(matches!(bench.phase(parent), Phase::Starting(_)), "{:?} {:?}", bench.phase(parent), stepped.effects);
}

#[test]
fn a_hello_after_its_time_is_refused_and_the_process_started_again() {
    let mut bench = Bench::new(2);
    let first = bench.launch(ROOT, "speaker");
    assert_eq!(signals(&bench.pass(Timing::default().startup_ms)), [Signal::Kill]);
    for stepped in [bench.hello(first), bench.hello_as(first, None)] {
        assert_eq!((refusal(&stepped), stepped.records.len()), (Some(Rejection::StaleEpoch { epoch: first.epoch }), 0));
    }
    let caller = bench.caller(first);
    let stepped = bench.asks_for(caller, "child");
    assert_eq!(refusal(&stepped), Some(Rejection::StaleEpoch { epoch: first.epoch }));
    bench.exits(first);
    let stepped = bench.pass(START_RETRY_MS + 1);
    assert_eq!(bench.starts(&stepped).epoch, Epoch(2));
}

#[test]
fn before_its_hello_nobody_is_idle() {
    let mut bench = Bench::of(Settings { timing: Timing { idle_ms: 100, ..Timing::default() }, ..settings() });
    let parent = bench.launch(ROOT, "speaker");
    bench.pass(1_000);
    assert!(bench.record(parent).stop.is_none());
    bench.hello(parent);
    bench.pass(1_000);
    assert!(bench.record(parent).stop.is_some(), "from there on it is watched");
}

#[test]
fn nothing_that_is_said_after_the_last_word_replaces_it() {
    let mut bench = Bench::new(1);
    let parent = bench.speaker(ROOT, "speaker");
    bench.settles(parent);
    let said = bench.record(parent).speech.as_ref().and_then(|speech| speech.said);
    let stepped = bench.speaks(parent, Speak::Report { activity: None, usage: None, says: true });
    assert_eq!(refusal(&stepped), None);
    assert_eq!(bench.record(parent).speech.as_ref().and_then(|speech| speech.said), said);
    assert!(!stepped.effects.iter().any(|effect| matches!(effect, Effect::ForgetText(_))), "{:?}", stepped.effects);
}

#[test]
fn an_end_that_is_held_back_for_others_is_no_reason_for_a_turn() {
    let mut bench = Bench::of(Settings { delivery: Delivery::FollowUp, join: Join::Group, ..settings() });
    let parent = bench.speaker(ROOT, "speaker");
    let caller = bench.caller(parent);
    let (a, _) = (bench.launch(caller, "a"), bench.launch(caller, "b"));
    bench.exits(a);
    let stepped = bench.settles(parent);
    assert!(stepped.effects.contains(&Effect::Reply { call: CallId(bench.call), reply: Reply::Settled(Next::Wait) }), "{stepped:?}");
}

#[test]
fn whoever_is_woken_for_what_is_then_read_by_another_way_gets_its_turn() {
    let mut bench = Bench::new(3);
    let parent = bench.speaker(ROOT, "speaker");
    let caller = bench.caller(parent);
    let (a, _) = (bench.launch(caller, "a"), bench.launch(caller, "b"));
    bench.settles(parent);
    assert_eq!(delivered(&bench.exits(a)), Some(vec!["a".to_owned()]));
    let of = Target::Name("a".into());
    let stepped = bench.ask(|call| Command::Result { call, caller, tree: None, of, wait: false, request_id: None, timeout_ms: None });
    assert!(stepped.effects.iter().any(|effect| matches!(effect, Effect::Withdraw { .. })));
    let bare: Vec<_> = deliveries(&stepped).into_iter().map(|delivery| (delivery.wake, delivery.items.len())).collect();
    assert_eq!(bare, [(true, 0)]);
    bench.speaks(parent, ack(&[]));
    assert!(!bench.record(parent).owed_turn);
}

#[test]
fn whoever_is_not_steered_is_handed_nothing_in_the_middle_of_a_turn() {
    let mut bench = Bench::new(3);
    let parent = bench.launch(ROOT, "speaker");
    let stepped = bench.hello_as(parent, Some(Role::Voice { can_park: true, steers: false }));
    assert_eq!(deliveries(&stepped).len(), 1, "its task");
    bench.speaks(parent, ack(&[1]));
    let a = bench.launch(bench.caller(parent), "a");
    assert_eq!(delivered(&bench.exits(a)), None);
    // At the end of its turn it is handed that, and nothing more until the next end.
    assert_eq!(delivered(&bench.settles(parent)), Some(vec!["a".to_owned()]));
    bench.speaks(parent, ack(&[2]));
    let b = bench.launch(bench.caller(parent), "b");
    assert_eq!(delivered(&bench.exits(b)), None);
    assert_eq!(delivered(&bench.settles(parent)), Some(vec!["b".to_owned()]));
}

#[test]
fn an_interrupt_of_nothing_that_is_repeated_stops_nothing() {
    let mut bench = Bench::new(3);
    let interrupt = |bench: &mut Bench, request_id: &str| {
        let request_id = Some(request_id.to_owned());
        bench.ask(|call| Command::Interrupt { call, caller: ROOT, request_id, no_wait: true })
    };
    let first = interrupt(&mut bench, "i");
    assert!(first.stream.is_empty(), "nothing was interrupted: {:?}", first.stream);
    let a = bench.launch(ROOT, "a");
    let stepped = interrupt(&mut bench, "i");
    assert_eq!((signals(&stepped).len(), bench.record(a).stop.is_some()), (0, false));
    let stepped = interrupt(&mut bench, "j");
    assert_eq!((signals(&stepped).len(), stepped.stream.len()), (1, 2));
}

#[test]
fn what_a_plain_command_does_not_report_is_not_missing() {
    let mut bench = Bench::new(3);
    let parent = bench.launch(ROOT, "parent");
    let child = bench.speaker(bench.caller(parent), "speaker");
    let usage = Usage { input: 5, ..Usage::default() };
    let report = Some(UsageReport { sequence: 1, usage, context_tokens: None });
    bench.speaks(child, Speak::Report { activity: None, usage: report, says: false });
    bench.settles(child);
    bench.exits(child);
    bench.exits(parent);
    let accounts = bench.record(parent).accounts.as_ref().expect("its child has reported");
    assert_eq!((accounts.total().input, accounts.partial, accounts.partial_below), (5, false, false));
}

#[test]
fn whoever_dies_without_a_report_has_used_what_nobody_knows() {
    let mut bench = Bench::new(3);
    let parent = bench.speaker(ROOT, "speaker");
    bench.step(Command::Exited { incarnation: parent, status: ExitStatus::Signal(9), leftovers: Vec::new() });
    assert!(bench.record(parent).accounts.as_ref().is_some_and(|accounts| accounts.partial));
    assert!(bench.broker.state().trees[&TREE].accounts.partial_below);
}

#[test]
fn words_that_come_back_are_announced_once() {
    let mut bench = Bench::new(2);
    let parent = bench.speaker(ROOT, "speaker");
    let tell = |bench: &mut Bench, request_id: &str| {
        let (request_id, name) = (request_id.to_owned(), "speaker".to_owned());
        let speak = Box::new(Speak::Message { request_id, digest: Digest(1), name, allowance: None });
        bench.ask(|call| Command::Speak { call, caller: ROOT, lease: None, speak })
    };
    let stop = |bench: &mut Bench| {
        let names = vec!["speaker".to_owned()];
        let stepped = bench.ask(|call| Command::Stop { call, caller: ROOT, request_id: None, names, no_wait: true });
        let back = |event: &TreeEvent| if let TreeEvent::Undelivered { messages } = event { Some(messages.len()) } else { None };
        stepped.stream.iter().filter_map(|(_, event)| back(&event.event)).collect::<Vec<_>>()
    };
    bench.settles(parent);
    tell(&mut bench, "a");
    assert_eq!(stop(&mut bench), [1]);
    bench.exits(parent);
    let stepped = tell(&mut bench, "on");
    let again = bench.starts(&stepped);
    bench.hello(again);
    bench.speaks(again, ack(&[1, 2, 3]));
    bench.settles(again);
    tell(&mut bench, "b");
    assert_eq!(stop(&mut bench), [1]);
}

#[test]
fn words_that_nobody_reads_have_a_bound() {
    let mut bench = Bench::new(2);
    let parent = bench.launch(ROOT, "speaker");
    let tell = |bench: &mut Bench, number: usize| {
        let (request_id, name) = (format!("m{number}"), "speaker".to_owned());
        let speak = Box::new(Speak::Message { request_id, digest: Digest(1), name, allowance: None });
        bench.ask(|call| Command::Speak { call, caller: ROOT, lease: None, speak })
    };
    // Its task is the first of them.
    for number in 1..WORDS_OWED_MAX {
        assert_eq!(refusal(&tell(&mut bench, number)), None);
    }
    let refused = tell(&mut bench, WORDS_OWED_MAX);
    assert!(matches!(refusal(&refused), Some(Rejection::Limit { limit: WORDS_OWED_MAX, .. })), "{refused:?}");
    assert!(refused.records.is_empty());
    bench.hello(parent);
    bench.speaks(parent, ack(&[1]));
    assert_eq!(refusal(&tell(&mut bench, WORDS_OWED_MAX)), None);
    for number in 0..WORDS_OWED_MAX {
        let speak = Speak::TellLead { request_id: format!("l{number}"), digest: Digest(1) };
        assert_eq!(refusal(&bench.speaks(parent, speak)), None);
    }
    let speak = Speak::TellLead { request_id: "one more".into(), digest: Digest(1) };
    assert!(matches!(refusal(&bench.speaks(parent, speak)), Some(Rejection::Limit { .. })));
}

#[test]
fn what_one_lead_has_taken_in_is_gone_for_another() {
    let mut bench = Bench::new(2);
    let child = bench.launch(ROOT, "child");
    bench.exits(child);
    let acks = |bench: &mut Bench, lease, request_id: Option<&str>| {
        let speak = Box::new(Speak::Ack { request_id: request_id.map(str::to_owned), items: vec![1] });
        let stepped = bench.ask(|call| Command::Speak { call, caller: ROOT, lease, speak });
        let accepted = |effect: &Effect| {
            if let Effect::Reply { reply: Reply::Acked { accepted, gone }, .. } = effect {
                Some((accepted.len(), gone.len()))
            } else {
                None
            }
        };
        stepped.effects.iter().find_map(accepted).expect("an answer")
    };
    let (taken, gone) = ((1, 0), (0, 1));
    bench.ask(|call| Command::Hello { call, claim: Some(root_claim(7)) });
    assert_eq!(acks(&mut bench, Some(1), Some("a")), taken);
    // The same process once more, also over a new connection and after a restart.
    bench.restart();
    bench.ask(|call| Command::Hello { call, claim: Some(root_claim(7)) });
    assert_eq!(acks(&mut bench, Some(2), None), taken);
    // Another one, unless it repeats the very call.
    bench.ask(|call| Command::Hello { call, claim: Some(root_claim(8)) });
    assert_eq!((acks(&mut bench, Some(3), Some("b")), acks(&mut bench, Some(3), None)), (gone, gone));
    assert_eq!(acks(&mut bench, Some(3), Some("a")), taken);
    // The first one still knows.
    bench.ask(|call| Command::Hello { call, claim: Some(root_claim(7)) });
    assert_eq!(acks(&mut bench, Some(4), None), taken);
    // Callers without a lease are no process that is known.
    bench.step(Command::LeaseGone { tree: TREE, owner: Owner::Root, lease: 4 });
    assert_eq!((acks(&mut bench, None, None), acks(&mut bench, None, Some("a"))), (gone, taken));
}

/// A process that speaks by plain calls alone, and whose hello does not come in time.
fn silent_one_that(acts: impl FnOnce(&mut Bench, Caller) -> Stepped) -> (Bench, Incarnation) {
    let mut bench = Bench::new(3);
    let silent = bench.launch(ROOT, "speaker");
    let caller = bench.caller(silent);
    assert_eq!(refusal(&acts(&mut bench, caller)), None);
    assert_eq!(signals(&bench.pass(Timing::default().startup_ms)), [Signal::Kill]);
    bench.step(Command::Exited { incarnation: silent, status: ExitStatus::Signal(9), leftovers: Vec::new() });
    (bench, silent)
}

#[test]
fn what_has_launched_or_said_something_without_a_hello_is_not_started_again() {
    let ended = |bench: &Bench, of| matches!(bench.phase(of), Phase::Ended { outcome: Outcome::Failed(Failure::Startup { .. }) });
    let (mut bench, launches) = silent_one_that(|bench, caller| bench.asks_for(caller, "child"));
    assert!(matches!(bench.phase(launches), Phase::Finishing { .. }), "{:?}", bench.phase(launches));
    let child = Incarnation { execution: ExecutionId(launches.execution.0 + 1), epoch: Epoch(1) };
    bench.step(Command::Spawned { incarnation: child, process: process(child) });
    bench.exits(child);
    assert!(ended(&bench, launches));
    let tells = |bench: &mut Bench, caller| {
        let speak = Box::new(Speak::TellLead { request_id: "l".into(), digest: Digest(1) });
        bench.ask(|call| Command::Speak { call, caller, lease: None, speak })
    };
    let (bench, tells) = silent_one_that(tells);
    assert!(ended(&bench, tells), "{:?}", bench.phase(tells));
    // Whoever only looked around is.
    let looks = |bench: &mut Bench, caller| bench.ask(|call| Command::Count { call, caller });
    let (bench, looks) = silent_one_that(looks);
    assert!(matches!(bench.phase(looks), Phase::Starting(_)));
}

/// A lead is woken from its context for the end of its child, and dies before its hello as a voice.
fn woken_one_that(acts: impl FnOnce(&mut Bench, Caller, ExecutionId) -> Stepped) -> Phase {
    let mut bench = Bench::new(2);
    let parent = bench.speaker(ROOT, "speaker");
    let child = bench.launch(bench.caller(parent), "child");
    bench.settles(parent);
    bench.exits(parent);
    let stepped = bench.exits(child);
    let woken = bench.starts(&stepped);
    bench.hello_as(woken, None);
    let caller = bench.caller(woken);
    assert_eq!(refusal(&acts(&mut bench, caller, child.execution)), None);
    bench.exits(woken);
    bench.phase(woken).clone()
}

#[test]
fn what_has_read_an_end_without_a_hello_is_not_started_again_without_it() {
    let reads = |bench: &mut Bench, caller, _| {
        let of = Target::Name("child".into());
        bench.ask(|call| Command::Result { call, caller, tree: None, of, wait: false, request_id: None, timeout_ms: None })
    };
    let waits = |bench: &mut Bench, caller, _| bench.waits(caller, "child", None);
    let speaks = |bench: &mut Bench, caller, speak| bench.ask(|call| Command::Speak { call, caller, lease: None, speak: Box::new(speak) });
    let told = |bench: &mut Bench, caller, child| speaks(bench, caller, Speak::Told { executions: vec![child] });
    let acks = |bench: &mut Bench, caller, _| speaks(bench, caller, ack(&[2]));
    let looks = |bench: &mut Bench, caller, _| speaks(bench, caller, Speak::Inbox);
    for (how, phase) in
        [("result", woken_one_that(reads)), ("wait", woken_one_that(waits)), ("told", woken_one_that(told)), ("ack", woken_one_that(acks))]
    {
        assert!(matches!(phase, Phase::Ended { outcome: Outcome::Failed(Failure::Startup { .. }) }), "{how}: {phase:?}");
    }
    // Whoever only looked around is.
    assert!(matches!(woken_one_that(looks), Phase::Starting(_)));
}

#[test]
fn whoever_was_away_while_another_lead_took_its_items_in_does_not_get_them_once_more() {
    let mut bench = Bench::new(2);
    let child = bench.launch(ROOT, "child");
    bench.exits(child);
    let hello = |bench: &mut Bench, pid| bench.ask(|call| Command::Hello { call, claim: Some(root_claim(pid)) });
    let acks = |bench: &mut Bench, lease, request_id: &str| {
        let speak = Box::new(Speak::Ack { request_id: Some(request_id.to_owned()), items: vec![1] });
        let stepped = bench.ask(|call| Command::Speak { call, caller: ROOT, lease: Some(lease), speak });
        let acked = |effect: &Effect| {
            if let Effect::Reply { reply: Reply::Acked { accepted, gone }, .. } = effect {
                Some((accepted.clone(), gone.clone()))
            } else {
                None
            }
        };
        stepped.effects.iter().find_map(acked).expect("an answer")
    };
    let handed = hello(&mut bench, 7);
    assert_eq!(delivered(&handed), Some(vec!["child".to_owned()]));
    bench.step(Command::LeaseGone { tree: TREE, owner: Owner::Root, lease: 1 });
    hello(&mut bench, 8);
    assert_eq!(acks(&mut bench, 2, "theirs"), (vec![1], vec![]));
    bench.step(Command::LeaseGone { tree: TREE, owner: Owner::Root, lease: 2 });
    // The first one never heard that it had lost the lease; what it was handed is gone for it all the same.
    hello(&mut bench, 7);
    assert_eq!(acks(&mut bench, 3, "ours"), (vec![], vec![1]));
}

#[test]
fn an_interrupt_of_nothing_does_not_make_an_older_one_new() {
    let mut bench = Bench::new(2);
    let first = bench.launch(ROOT, "first");
    let interrupt = |bench: &mut Bench, request: &str| {
        let request_id = Some(request.to_owned());
        let stepped = bench.ask(|call| Command::Interrupt { call, caller: ROOT, request_id, no_wait: true });
        let stopped = |effect: &Effect| {
            if let Effect::Reply { reply: Reply::Interrupted { stopped, .. }, .. } = effect { Some(*stopped) } else { None }
        };
        stepped.effects.iter().find_map(stopped)
    };
    assert_eq!(interrupt(&mut bench, "one"), Some(1));
    bench.exits(first);
    assert_eq!(interrupt(&mut bench, "two"), Some(0));
    let later = bench.launch(ROOT, "later");
    assert_eq!((interrupt(&mut bench, "one"), interrupt(&mut bench, "two")), (Some(1), Some(0)));
    assert!(bench.record(later).stop.is_none(), "what was launched meanwhile goes on");
}

#[test]
fn a_repeated_stop_gets_its_answer_and_leaves_who_was_resumed_alone() {
    let mut bench = Bench::new(2);
    let child = bench.speaker(ROOT, "speaker");
    let stops = |bench: &mut Bench, request: Option<&str>, name: &str| {
        let (request_id, names) = (request.map(str::to_owned), vec![name.to_owned()]);
        bench.ask(|call| Command::Stop { call, caller: ROOT, request_id, names, no_wait: true })
    };
    let told = |stepped: &Stepped| {
        let stopped =
            |effect: &Effect| if let Effect::Reply { reply: Reply::Stopped(names), .. } = effect { Some(names.clone()) } else { None };
        stepped.effects.iter().find_map(stopped)
    };
    let answer = |stopped| Some(vec![("speaker".to_owned(), stopped)]);
    bench.settles(child);
    bench.exits(child);
    assert_eq!(told(&stops(&mut bench, Some("a"), "speaker")), answer(false));
    bench.restart();
    let speak = Box::new(Speak::Message { request_id: "on".into(), digest: Digest(1), name: "speaker".into(), allowance: None });
    let resumed = spawned(&bench.ask(|call| Command::Speak { call, caller: ROOT, lease: None, speak })).map(|(incarnation, _)| incarnation);
    let resumed = resumed.expect("it is resumed");
    assert_eq!(told(&stops(&mut bench, Some("a"), "speaker")), answer(false));
    assert!(bench.record(resumed).stop.is_none(), "what was resumed since goes on");
    assert!(matches!(refusal(&stops(&mut bench, Some("a"), "other")), Some(Rejection::RequestIdReused { .. })));
    assert_eq!(told(&stops(&mut bench, Some("b"), "speaker")), answer(true));
    // Once more while it is on its way out.
    assert_eq!(told(&stops(&mut bench, Some("b"), "speaker")), answer(true));
    assert!(bench.record(resumed).stop.is_some());
}
