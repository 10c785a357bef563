//! At cap 1, parents that park over a child: how soon the slot of a parked one is used, and how soon a woken one is welcome.

use crate::daemon::{self, Client, lead, outputs, stamps};
use crate::figure::{Figure, Target, quantile};
use crate::limits::{BareCall, CallSizes, raw_gaps, seconds};
use crate::plan::Plan;
use crate::played::own;

pub fn parking(plan: &Plan) -> Vec<Figure> {
    let mut bare = BareCall::new(&plan.below, &CallSizes::measure(plan));
    let (mut reuses, mut wakes) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let raw = quantile(&raw_gaps(plan.counts.slots), 0.5);
        let commits: Vec<f64> = (0..plan.counts.slots).map(|_| bare.commit()).collect();
        let commit = quantile(&commits, 0.5);
        let (reuse, wake) = one(plan);
        reuses.push((reuse, raw, commit));
        wakes.push((wake, raw, commit));
    }
    vec![
        figure("last word of a parked process to the first of the next in its slot, p50", &reuses),
        figure("end of a process to the welcome of the worker that is woken in its slot, p50", &wakes),
    ]
}

/// What is left without the commit is held against the raw exit and spawn.
fn figure(what: &str, rounds: &[(f64, f64, f64)]) -> Figure {
    let pairs: Vec<_> = rounds.iter().map(|(measured, raw, _)| (*measured, *raw)).collect();
    let figure = Figure::ratio(what, &pairs, "raw exit and spawn; one synced write is taken off", Target::AtMost(1.5));
    let quotients = rounds.iter().map(|(measured, raw, commit)| (measured - commit) / raw).collect();
    Figure { quotients, ..figure }
}

/// Both medians over one tree in which all processes follow each other in one slot.
fn one(plan: &Plan) -> (f64, f64) {
    let count = plan.counts.parents;
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 1);
    let mut client = Client::new(&tree);
    let own = own();
    client.pause(true);
    client.storm(count, &lead(&[&own, "play-parent", &own, "play-stamp"], 1));
    client.pause(false);
    assert_eq!(client.wait(&[]), count);
    // The first processes of the parents, their second ones, and the children.
    let texts = outputs(&home);
    let all: Vec<(u64, u64)> = texts.iter().map(|text| stamps(text)).collect();
    assert_eq!(all.len(), 3 * count);
    // Executions are numbered as they were launched: the parents first, each with two processes.
    let parents: Vec<((u64, u64), (u64, u64))> = all[..2 * count].chunks(2).map(|pair| (pair[0], pair[1])).collect();
    let mut begins: Vec<u64> = all.iter().map(|(began, _)| *began).collect();
    begins.sort_unstable();
    let mut ends: Vec<u64> = all.iter().map(|(_, ended)| *ended).collect();
    ends.sort_unstable();
    let next = |moment: u64| begins.get(begins.partition_point(|began| *began <= moment)).copied();
    let before = |moment: u64| ends.partition_point(|ended| *ended < moment).checked_sub(1).map(|at| ends[at]);
    // A woken one's first number is its welcome, which comes later than a begin.
    let is_welcome = |moment: u64| parents.iter().any(|(_, woken)| woken.0 == moment);
    let reuses: Vec<f64> = parents
        .iter()
        .filter_map(|(first, _)| next(first.1).filter(|began| !is_welcome(*began)).map(|began| seconds(first.1, began)))
        .collect();
    let wakes: Vec<f64> = parents.iter().filter_map(|(_, woken)| before(woken.0).map(|ended| seconds(ended, woken.0))).collect();
    (quantile(&reuses, 0.5), quantile(&wakes, 0.5))
}
