//! Many workers that do nothing, from the first launch call to all outcomes known.

use crate::daemon::{self, Client, NO_OP, task};
use crate::figure::{Figure, Target};
use crate::limits::raw_seconds;
use crate::plan::Plan;
use crate::played::now;

const CAP: usize = 8;

pub fn storm(plan: &Plan) -> Vec<Figure> {
    let count = plan.counts.storm;
    let round = |_| {
        let limit = raw_seconds(count, CAP, &[NO_OP]);
        (one(plan, count), limit)
    };
    let rounds: Vec<_> = (0..plan.rounds).map(round).collect();
    let what = format!("{count} no-op workers at cap {CAP}, submit to all outcomes known");
    vec![Figure::ratio(what, &rounds, format!("raw spawn and wait, {CAP} at a time"), Target::AtMost(1.0 / 0.6))]
}

/// Seconds of one storm, over a journal that begins with it.
fn one(plan: &Plan, count: usize) -> f64 {
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, CAP);
    let mut client = Client::new(&tree);
    let begun = now();
    client.storm(count, &task(&[NO_OP]));
    let completed = client.wait(&[]);
    let took = crate::limits::seconds(begun, now());
    assert_eq!(completed, count);
    took
}
