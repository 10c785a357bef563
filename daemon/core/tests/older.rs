//! What an older build has written is read: a journal that is refused is a daemon that does not start.

mod bench;

use bench::*;
use roost_core::command::{Command, Speak};
use roost_core::event::{Delivery, Digest, Event, Grant, Record, Settings};
use roost_core::state::worker::Phase;
use roost_core::time::{Mono, Now};
use roost_proto::id::Epoch;

#[test]
fn a_wake_of_one_that_was_not_ready_any_more() {
    let mut bench = Bench::of(Settings { delivery: Delivery::NextTurn, ..settings() });
    let parent = bench.launch(ROOT, "parent");
    let caller = bench.caller(parent);
    let child = bench.speaker(caller, "speaker");
    bench.settles(child);
    let speak = Box::new(Speak::Message { request_id: "on".into(), digest: Digest(1), name: "speaker".into(), allowance: None });
    bench.ask(|call| Command::Speak { call, caller, lease: None, speak });
    bench.ask(|call| Command::Park { call, caller, context: CONTEXT });
    bench.exits(parent);
    bench.exits(child);
    assert!(matches!(bench.phase(parent), Phase::Parked { ready: None, .. }), "its last child goes on: {:?}", bench.phase(parent));
    // Once it was woken all the same.
    for grant in [Grant::EarlyWake, Grant::FinalWake] {
        let mut state = bench.broker.state().clone();
        let event = Event::SlotTaken { worker: bench.record(parent).id, epoch: Epoch(2), grant, at_once: false };
        let at = Now { mono: Mono(bench.now), wall_ms: 0 };
        state.apply(&Record { seq: state.seq + 1, at, event }).expect("it is read");
    }
}
