//! What workers leave behind, in a tree that keeps it: it is listed where their executions are looked at.

mod bench;

use bench::*;
use roost_core::command::{Command, Speak, Target};
use roost_core::effect::{Effect, Reply};
use roost_core::event::{Digest, Event, Record, Settings};
use roost_core::state::State;
use roost_core::state::worker::Phase;
use roost_proto::id::Incarnation;
use roost_proto::limits::LEFTOVERS_LISTED_MAX;
use roost_proto::link::{ChildReport, ExitStatus};

fn keeping() -> Bench {
    Bench::of(Settings { end_leftovers: false, ..settings() })
}

fn leaves(bench: &mut Bench, incarnation: Incarnation, leftovers: &[u32]) {
    bench.step(Command::Exited { incarnation, status: ExitStatus::Code(0), leftovers: leftovers.to_vec() });
}

/// What `status` lists of the one worker.
fn listed(bench: &mut Bench) -> Vec<u32> {
    let stepped = bench.ask(|call| Command::Status { call, caller: ROOT, tree: None, name: None, after: None });
    let views = |effect: &Effect| {
        if let Effect::Reply { reply: Reply::Status { workers, .. }, .. } = effect { Some(workers.clone()) } else { None }
    };
    stepped.effects.iter().find_map(views).expect("an answer")[0].leftovers.clone()
}

/// What the result of an execution lists.
fn of_result(bench: &mut Bench, of: Incarnation) -> Vec<u32> {
    let of = Target::Execution(of.execution);
    let stepped = bench.ask(|call| Command::Result { call, caller: ROOT, tree: None, of, request_id: None, wait: false, timeout_ms: None });
    let ended =
        |effect: &Effect| if let Effect::Reply { reply: Reply::Result(end), .. } = effect { Some(end.leftovers.clone()) } else { None };
    stepped.effects.iter().find_map(ended).expect("an end")
}

#[test]
fn what_is_kept_is_listed_with_its_execution() {
    let mut bench = keeping();
    let first = bench.speaker(ROOT, "speaker");
    bench.settles(first);
    leaves(&mut bench, first, &[7, 8]);
    assert_eq!((listed(&mut bench), of_result(&mut bench, first)), (vec![7, 8], vec![7, 8]));
    // The next execution of the same worker has left nothing yet.
    let speak = Box::new(Speak::Message { request_id: "on".into(), digest: Digest(1), name: "speaker".into(), allowance: None });
    let stepped = bench.ask(|call| Command::Speak { call, caller: ROOT, lease: None, speak });
    let second = bench.starts(&stepped);
    assert!(listed(&mut bench).is_empty());
    bench.hello(second);
    bench.settles(second);
    leaves(&mut bench, second, &[9]);
    assert_eq!((of_result(&mut bench, first), of_result(&mut bench, second)), (vec![7, 8], vec![9]));
    bench.restart();
    assert_eq!((of_result(&mut bench, first), listed(&mut bench)), (vec![7, 8], vec![9]));
}

#[test]
fn what_is_ended_is_not_listed() {
    let mut bench = Bench::new(2);
    let one = bench.launch(ROOT, "one");
    leaves(&mut bench, one, &[7]);
    assert!(matches!(bench.phase(one), Phase::Emptying { .. }));
    bench.step(Command::Emptied { incarnation: one });
    assert!(listed(&mut bench).is_empty() && of_result(&mut bench, one).is_empty());
}

#[test]
fn all_processes_of_an_execution_count_and_the_list_is_bounded() {
    let mut bench = keeping();
    let parent = bench.launch(ROOT, "parent");
    let caller = bench.caller(parent);
    let child = bench.launch(caller, "child");
    bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    leaves(&mut bench, parent, &[7]);
    let stepped = bench.exits(child);
    let woken = bench.starts(&stepped);
    assert_eq!(listed(&mut bench), [7]);
    leaves(&mut bench, woken, &[8; LEFTOVERS_LISTED_MAX]);
    let all = of_result(&mut bench, parent);
    assert_eq!((all.len(), &all[..2]), (LEFTOVERS_LISTED_MAX, &[7, 8][..]));
}

#[test]
fn a_new_broker_waits_for_the_list() {
    let mut bench = keeping();
    let one = bench.launch(ROOT, "one");
    bench.restart();
    let report = ChildReport { incarnation: one, process: process(one), exited: Some(ExitStatus::Code(0)), alive: true };
    bench.step(Command::Reconcile { children: vec![report] });
    assert_eq!(*bench.phase(one), Phase::Running);
    leaves(&mut bench, one, &[7]);
    assert_eq!(of_result(&mut bench, one), [7]);
}

#[test]
fn what_never_said_hello_is_listed_too() {
    let mut bench = keeping();
    let silent = bench.launch(ROOT, "speaker");
    bench.pass(settings().timing.startup_ms);
    leaves(&mut bench, silent, &[7]);
    assert!(matches!(bench.phase(silent), Phase::Starting(_)));
    assert_eq!(listed(&mut bench), [7]);
}

#[test]
fn what_waited_and_left_something_behind_is_not_started_again() {
    let mut bench = Bench::new(2);
    let parent = bench.launch(ROOT, "speaker");
    let caller = bench.caller(parent);
    bench.launch(caller, "child");
    // Its wait and not the launch is what counts: that is of an older journal.
    bench.forget_acts(parent);
    bench.waits(caller, "child", None);
    bench.pass(settings().timing.startup_ms);
    leaves(&mut bench, parent, &[7]);
    assert!(matches!(bench.phase(parent), Phase::Emptying { .. }));
    bench.step(Command::Emptied { incarnation: parent });
    assert!(matches!(bench.phase(parent), Phase::Finishing { .. }), "{:?}", bench.phase(parent));
}

#[test]
fn a_record_of_an_older_build_lists_nothing() {
    let mut bench = Bench::new(2);
    bench.launch(ROOT, "one");
    let mut state: State = bench.broker.state().clone();
    let record = format!(
        r#"{{"seq":{},"at":{{"mono":99,"wall_ms":0}},"event":{{"event":"slot_freed","worker":"w1","status":{{"Code":0}}}}}}"#,
        state.seq + 1
    );
    let record: Record = serde_json::from_str(&record).expect("the older form");
    assert!(matches!(&record.event, Event::SlotFreed { leftovers, .. } if leftovers.is_empty()));
    state.apply(&record).expect("it fits");
    assert!(!serde_json::to_string(&record).expect("a line").contains("leftovers"));
}
