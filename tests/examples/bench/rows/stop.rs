//! The end of many living workers at once.

use roost_tests::real::find;
use serde_json::json;

use crate::daemon::{self, Client, task};
use crate::figure::{Figure, Target};
use crate::limits::{raw_stop_seconds, seconds};
use crate::plan::Plan;
use crate::played::now;

const SLEEP: [&str; 2] = ["/bin/sleep", "100000"];

pub fn stop(plan: &Plan) -> Vec<Figure> {
    let count = plan.counts.live;
    let rounds: Vec<_> = (0..plan.rounds).map(|_| (one(plan, count), raw(count))).collect();
    let what = format!("stop of a tree with {count} living workers");
    vec![Figure::ratio(what, &rounds, "raw TERM and reap of as many", Target::AtMost(1.5))]
}

fn one(plan: &Plan, count: usize) -> f64 {
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, count);
    let mut client = Client::new(&tree);
    client.storm(count, &task(&SLEEP));
    Client::new(&tree).until("live", count);
    all_started(home.daemon().supervisor, count);
    let begun = now();
    let answer = client.wire.call("interrupt", &json!({})).expect("the root may");
    let took = seconds(begun, now());
    assert_eq!(answer["stopped"], json!(count));
    took
}

fn raw(count: usize) -> f64 {
    raw_stop_seconds(count, &SLEEP, |parent| all_started(parent, count))
}

/// Waits until so many children of this process have become what they are to be: no descriptor tells of an exec.
fn all_started(parent: u32, count: usize) {
    let is_sleep = |pid: &u32| find(*pid).is_some_and(|process| process.arguments().first().is_some_and(|name| name == b"/bin/sleep"));
    roost_tests::real::until("all of them run", || {
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(is_sleep).count() >= count
    });
}
