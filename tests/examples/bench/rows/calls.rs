//! Launch calls: one client, and many at once. Admissions are held, so that it is the call that is measured and no start.

use std::sync::Barrier;
use std::thread;

use roost_tests::real::Tree;

use crate::daemon::{self, Client, NO_OP, task};
use crate::figure::{Figure, Target, Unit, quantile};
use crate::limits::{BareCall, CallSizes, seconds};
use crate::plan::Plan;
use crate::played::now;

/// Both sides take turns so often in a round.
const BLOCKS: usize = 5;

pub fn one_client(plan: &Plan) -> Vec<Figure> {
    let sizes = CallSizes::measure(plan);
    let mut bare = BareCall::new(&plan.below, &sizes);
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    let mut client = Client::new(&tree);
    client.pause(true);
    client.launch(&[task(&[NO_OP])]);
    let (mut median, mut tail) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        let (mut calls, mut limits) = (Vec::new(), Vec::new());
        for _ in 0..BLOCKS {
            let block = plan.counts.calls / BLOCKS;
            calls.extend((0..block).map(|_| timed(&mut client)));
            limits.extend((0..block).map(|_| bare.call()));
        }
        median.push((quantile(&calls, 0.5), quantile(&limits, 0.5)));
        tail.push((quantile(&calls, 0.99), quantile(&limits, 0.99)));
    }
    let against = |part| format!("{part} of a round trip and a synced write of {} bytes", sizes.commit);
    vec![
        Figure::ratio("launch call of one client, p50", &median, against("p50"), Target::AtMost(2.0)),
        Figure::ratio("launch call of one client, p99", &tail, against("p99"), Target::AtMost(4.0)),
    ]
}

pub fn many_clients(plan: &Plan) -> Vec<Figure> {
    let (clients, each) = (plan.counts.clients, plan.counts.calls_each);
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    let mut alone = Client::new(&tree);
    alone.pause(true);
    let round = |_| {
        let seconds: f64 = (0..plan.counts.calls).map(|_| timed(&mut alone)).sum();
        (at_once(&tree, clients, each), plan.counts.calls as f64 / seconds)
    };
    let rounds: Vec<_> = (0..plan.rounds).map(round).collect();
    let what = format!("launch calls of {clients} clients at once");
    vec![Figure::ratio(what, &rounds, "one client", Target::AtLeast(10.0)).counted_in(Unit::PerSecond)]
}

/// Calls in a second of so many clients that begin together.
fn at_once(tree: &Tree<'_>, clients: usize, each: usize) -> f64 {
    let together = Barrier::new(clients + 1);
    let begun = thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = Client::new(tree);
                together.wait();
                (0..each).for_each(|_| drop(client.launch(&[task(&[NO_OP])])));
            });
        }
        together.wait();
        now()
    });
    (clients * each) as f64 / seconds(begun, now())
}

fn timed(client: &mut Client) -> f64 {
    let begun = now();
    client.launch(&[task(&[NO_OP])]);
    seconds(begun, now())
}
