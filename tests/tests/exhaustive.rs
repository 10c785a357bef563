//! All orders of small cases over the real core, and that from every state some way leads to the end of everything.

use roost_tests::sim::explore::{Case, Faults, explore};

const NONE: Faults = Faults { broker: 0, supervisor: 0, deaths: 0, abandons: 0, refusals: 1 };
const CRASH: Faults = Faults { broker: 1, ..NONE };

/// Most states of one case: beyond it the case is too large for every run of the tests.
const STATES_MAX: usize = 40_000;

const CHAIN_WAIT: &str = "r0: open, launch 1, gather-wait
    r0.20: launch 1, gather-wait
    r0.20.0: launch 1, gather-wait
    r0.20.0.0: wait-all";

fn cases() -> Vec<Case> {
    let of = |name, cap, plans, faults| Case { name, cap, lend: true, plans, faults };
    let leaf_chain = "r0: open, launch 1, gather-wait
        r0.20: launch 1, gather-park
        r0.20.0: launch 1, gather-park
        r0.20.0.0: wait-all";
    let settle_chain = "r0: open, launch 1, gather-wait
        r0.20: launch 1, gather-settle
        r0.20.0: launch 1, gather-settle
        r0.20.0.0: wait-all";
    let wide = "r0: open, launch 2, gather-wait
        r0.20: launch 2, gather-wait
        r0.21: launch 1, gather-park
        r0.20.0: wait-all
        r0.20.1: wait-all
        r0.21.0: wait-all";
    let mixed = "r0: open, launch 1, gather-wait
        r0.20: launch 2, gather-wait
        r0.20.0: launch 1, gather-park
        r0.20.1: wait-all
        r0.20.0.0: wait-all";
    let settle_wide = "r0: open, launch 1, gather-wait
        r0.20: launch 2, gather-settle
        r0.20.0: wait-all
        r0.20.1: launch 1, gather-settle
        r0.20.1.0: wait-all";
    let stopped = "r0: open, launch 2, stop 0, gather-wait
        r0.20: launch 2, gather-park
        r0.21: launch 1, gather-settle
        r0.20.0: wait-all
        r0.20.1: wait-all
        r0.21.0: wait-all";
    let interrupted = "r0: open, launch 1, launch 1, interrupt, gather-wait
        r0.20: launch 1, gather-wait
        r0.40: launch 1, gather-park
        r0.20.0: wait-all
        r0.40.0: wait-all";
    let capped = "r0: open, launch 2, cap 1, cap 2, gather-wait
        r0.20: launch 1, gather-settle
        r0.21: launch 1, gather-wait
        r0.20.0: wait-all
        r0.21.0: wait-all";
    let foreground = "r0: open, run 1
        r0.20: run 2
        r0.20.0: run 1
        r0.20.1: wait-all
        r0.20.0.0: wait-all";
    let aside = "r0: open, launch 1, gather-wait
        r0.20: launch 2, background 0, gather-wait
        r0.20.0: wait-all
        r0.20.1: wait-all";
    // The case of docs/adr/0003: back from its first wait, r0.20 holds the only slot and waits for r0.20.0, which is parked and ready.
    let press = "r0: open, launch 1, gather-wait
        r0.20: launch 2, wait-any, gather-wait
        r0.20.0: launch 1, gather-park
        r0.20.1: wait-all
        r0.20.0.0: wait-all";
    let mut all = vec![
        of("a wait for any above a park", 1, press, CRASH),
        of("a chain of waits", 1, CHAIN_WAIT, CRASH),
        of("a chain of parks", 1, leaf_chain, CRASH),
        of("a chain of settles", 1, settle_chain, CRASH),
        of("a client in the background", 1, aside, Faults { abandons: 1, ..CRASH }),
        of("a chain of settles, a supervisor dies", 1, settle_chain, Faults { supervisor: 1, ..NONE }),
        of("a chain of parks, a worker dies", 1, leaf_chain, Faults { deaths: 1, ..NONE }),
        of("a chain of settles, a worker dies", 1, settle_chain, Faults { deaths: 1, ..NONE }),
    ];
    for cap in [1, 2] {
        all.push(of("waits above parks", cap, mixed, NONE));
        all.push(of("two wide", cap, wide, NONE));
        all.push(of("two wide, settling", cap, settle_wide, NONE));
        all.push(of("a stop", cap, stopped, NONE));
        all.push(of("an interrupt", cap, interrupted, NONE));
        all.push(of("the cap goes down and up", cap, capped, NONE));
        all.push(of("in the foreground", cap, foreground, CRASH));
        all.push(Case { lend: false, ..of("slots are kept", cap, mixed, NONE) });
        all.push(Case { lend: false, ..of("slots are kept, a chain", cap, CHAIN_WAIT, CRASH) });
    }
    all
}

#[test]
fn every_order_of_small_cases_holds_and_can_end() {
    let begun = std::time::Instant::now();
    let (mut states, mut transitions) = (0, 0);
    let mut failed = Vec::new();
    for case in cases() {
        let start = std::time::Instant::now();
        match explore(&case, STATES_MAX) {
            Ok(explored) => {
                println!("cap {} {:<40} {explored:?} {:?}", case.cap, case.name, start.elapsed());
                states += explored.states;
                transitions += explored.transitions;
            }
            Err(why) => failed.push(format!("cap {} {why}", case.cap)),
        }
    }
    println!("{states} states, {transitions} transitions in {:?}", begun.elapsed());
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}
