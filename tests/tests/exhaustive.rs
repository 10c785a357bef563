//! All orders of small cases over the real core, and that from every state some way leads to the end of everything.

use roost_tests::sim::explore::{Case, Faults, explore};

const NONE: Faults =
    Faults { broker: 0, supervisor: 0, deaths: 0, abandons: 0, refusals: 1, unheard: 0, cuts: 0, drains: 0, impostors: false };
const CRASH: Faults = Faults { broker: 1, ..NONE };

/// Most states of one case: beyond it the case is too large for every run of the tests.
const STATES_MAX: usize = 40_000;

/// Most states of all cases: a search that runs away must end before it has eaten the machine.
const ALL_STATES_MAX: usize = 300_000;

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
    // Everything is read when it parks: it wakes although nothing is owed to it.
    let late_park = "r0: open, launch 1, gather-wait
        r0.20: launch 1, gather-wait, park
        r0.20.0: wait-all";
    let mut all = vec![
        of("a park with nothing below", 1, late_park, CRASH),
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

/// One lead and one child: a stop, an interrupt and a change of the cap, with each kind of crash at every point.
fn cut_short() -> Vec<Case> {
    let stopped = "r0: open, launch 1, stop 0, gather-wait
        r0.20: launch 1, gather-settle
        r0.20.0: gather-settle";
    let interrupted = "r0: open, launch 1, interrupt, gather-wait
        r0.20: launch 1, gather-settle
        r0.20.0: gather-settle";
    let capped = "r0: open, launch 1, cap 2, cap 1, cap 2, gather-wait
        r0.20: launch 1, gather-settle
        r0.20.0: gather-settle";
    let plans = [("a stop of two", stopped), ("an interrupt of two", interrupted), ("the cap of two goes down and up", capped)];
    let mut all = Vec::new();
    for (cap, (name, plans)) in [1, 2].into_iter().flat_map(|cap| plans.map(|plan| (cap, plan))) {
        for faults in [CRASH, Faults { unheard: 1, ..NONE }, Faults { deaths: 1, ..NONE }] {
            all.push(Case { name, cap, lend: true, plans, faults });
        }
    }
    all
}

/// Cases of workers that speak: words, items, leases, resumes, waits in which they park.
fn spoken() -> Vec<Case> {
    let of = |name, cap, plans, faults| Case { name, cap, lend: true, plans, faults };
    let unheard = Faults { unheard: 1, ..NONE };
    let words = "r0: open, lease, launch 1, message 0, gather-wait
        r0.40: tell, gather-settle";
    let words_below = "r0: open, lease, launch 1, message 0, gather-wait
        r0.40: launch 1, gather-settle
        r0.40.0: tell, gather-settle";
    // Without words of the root: at cap 2 both together are too many orders for every run.
    let told_below = "r0: open, lease, launch 1, gather-wait
        r0.40: launch 1, gather-settle
        r0.40.0: tell, gather-settle";
    let resumed = "r0: open, lease, launch 1, wait-any, message 0, gather-wait
        r0.40: gather-settle";
    let resumed_below = "r0: open, launch 1, gather-wait
        r0.20: launch 1, wait-any, message 0, gather-settle
        r0.20.0: gather-settle";
    let resumed_and_stopped = "r0: open, launch 1, wait-any, message 0, stop 0, gather-wait
        r0.20: launch 1, gather-settle
        r0.20.0: gather-settle";
    let blocked = "r0: open, launch 1, gather-wait
        r0.20: launch 1, wait-all, gather-settle
        r0.20.0: launch 1, wait-all, gather-settle
        r0.20.0.0: gather-settle";
    let foreground = "r0: open, launch 1, gather-wait
        r0.20: run 1, gather-settle
        r0.20.0: gather-settle";
    let pushed = "r0: open, lease, launch 1, wait 0, gather-wait
        r0.40: gather-settle";
    let raised = "r0: open, launch 1, message 0 2, message 0 1, gather-wait
        r0.20: launch 1, gather-settle
        r0.20.0: gather-settle";
    vec![
        of("words to a worker and back", 1, words, CRASH),
        of("words to a worker and back, unheard", 1, words, unheard),
        of("words to a worker and back, cut off", 1, words, Faults { cuts: 1, ..NONE }),
        of("words to who waits and parks", 1, words_below, CRASH),
        of("words to who waits and parks, unheard", 1, words_below, unheard),
        of("words to who waits", 2, told_below, CRASH),
        of("words to who waits, unheard", 2, told_below, unheard),
        of("a resume", 1, resumed, CRASH),
        of("a resume, unheard", 1, resumed, unheard),
        of("a resume, cut off", 1, resumed, Faults { cuts: 1, ..NONE }),
        of("a resume below a worker", 1, resumed_below, CRASH),
        of("a resume below a worker, one dies", 1, resumed_below, Faults { deaths: 1, ..NONE }),
        of("a resume and a stop", 1, resumed_and_stopped, NONE),
        of("a resume and a stop", 2, resumed_and_stopped, NONE),
        of("parks in waits", 1, blocked, CRASH),
        of("parks in waits, unheard", 1, blocked, unheard),
        of("parks in waits, a supervisor dies", 1, blocked, Faults { supervisor: 1, ..NONE }),
        of("a park in the foreground", 1, foreground, Faults { cuts: 1, ..CRASH }),
        of("a result and its item", 2, pushed, Faults { cuts: 1, ..NONE }),
        of("a result and its item, unheard", 2, pushed, unheard),
        of("allowances", 1, raised, CRASH),
        of("a daemon that leaves", 1, words_below, Faults { drains: 1, ..NONE }),
        of("impostors", 1, words_below, Faults { impostors: true, ..NONE }),
    ]
}

#[test]
fn every_order_of_small_cases_holds_and_can_end() {
    let begun = std::time::Instant::now();
    let (mut states, mut transitions) = (0, 0);
    let mut failed = Vec::new();
    for case in cases().into_iter().chain(cut_short()).chain(spoken()) {
        let start = std::time::Instant::now();
        match explore(&case, STATES_MAX.min(ALL_STATES_MAX - states)) {
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
