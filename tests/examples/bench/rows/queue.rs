//! What a worker costs does not grow with the queue: processor time of supervisor and broker, which other load changes little.

use crate::daemon::{self, Client, NO_OP, processor_seconds, task};
use crate::figure::{Figure, Target};
use crate::plan::Plan;

/// Seconds for each worker that is taken in, and for each that then runs out of the queue.
struct Cost {
    take_in: f64,
    run: f64,
}

pub fn flat(plan: &Plan) -> Vec<Figure> {
    let queues = plan.counts.queues;
    let rounds: Vec<[Cost; 3]> = (0..plan.few_rounds()).map(|_| queues.map(|queued| one(plan, queued))).collect();
    let mut figures = Vec::new();
    for (what, pick) in [("take in", (|cost| cost.take_in) as fn(&Cost) -> f64), ("run", |cost| cost.run)] {
        for at in [1, 2] {
            let pairs: Vec<_> = rounds.iter().map(|of| (pick(&of[at]), pick(&of[0]))).collect();
            let what = format!("processor time to {what} a worker, {} queued", queues[at]);
            figures.push(Figure::ratio(what, &pairs, format!("at {}", queues[0]), Target::AtMost(1.2)));
        }
    }
    figures
}

fn one(plan: &Plan, queued: usize) -> Cost {
    let out_of_it = plan.counts.out_of_the_queue.min(queued);
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    let mut client = Client::new(&tree);
    client.pause(true);
    // All names that are waited for.
    let names: Vec<String> = (0..out_of_it).map(|number| format!("first-{number}")).collect();
    let pids = home.daemon();
    let before = processor_seconds(pids);
    for name in &names {
        let mut named = task(&[NO_OP]);
        named["name"] = name.as_str().into();
        client.launch(&[named]);
    }
    let named = processor_seconds(pids);
    client.storm(queued - out_of_it, &task(&[NO_OP]));
    let taken_in = processor_seconds(pids);
    client.pause(false);
    assert_eq!(client.wait(&names), out_of_it);
    let run = processor_seconds(pids) - taken_in;
    // Those that are launched one by one are not compared: there are more calls to a worker.
    let others = queued - out_of_it;
    let take_in = if others == 0 { (named - before) / out_of_it as f64 } else { (taken_in - named) / others as f64 };
    Cost { take_in, run: run / out_of_it as f64 }
}
