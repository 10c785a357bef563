//! Memory of supervisor and broker: their proportional share, by the kernel.

use crate::daemon::{self, Client, NO_OP, lead, memory as share, task};
use crate::figure::{Figure, Target, Unit};
use crate::plan::Plan;
use crate::played::own;

const IDLE_MAX: f64 = 12.0 * 1024.0 * 1024.0;
const QUEUED_MAX: f64 = 512.0;
const PARKED_MAX: f64 = 1_024.0;

pub fn memory(plan: &Plan) -> Vec<Figure> {
    let [_, middle, large] = plan.counts.queues;
    let parked = plan.counts.parked;
    let idle = idle(plan);
    let of_middle = queued(plan, middle);
    let of_large = queued(plan, large);
    let alone = |what: String, bytes: f64, most| Figure::alone(what, Unit::Bytes, vec![bytes], Target::AtMost(most));
    vec![
        alone("memory of supervisor and broker, idle".into(), idle, IDLE_MAX),
        alone(format!("memory beyond that for each of {middle} queued"), of_middle, QUEUED_MAX),
        alone(format!("memory beyond that for each of {large} queued"), of_large, QUEUED_MAX),
        alone(format!("memory beyond that for each of {parked} parked"), parked_each(plan, parked, of_middle), PARKED_MAX),
    ]
}

fn idle(plan: &Plan) -> f64 {
    let home = daemon::daemon(plan);
    let _tree = daemon::tree(&home, 8);
    share(home.daemon())
}

/// Bytes for each of so many in the queue.
fn queued(plan: &Plan, count: usize) -> f64 {
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    let mut client = Client::new(&tree);
    client.pause(true);
    let before = share(home.daemon());
    client.storm(count, &task(&[NO_OP]));
    (share(home.daemon()) - before) / count as f64
}

/// Bytes for each of so many parked, without what their queued children take.
fn parked_each(plan: &Plan, count: usize, queued_each: f64) -> f64 {
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    let mut client = Client::new(&tree);
    client.pause(true);
    let before = share(home.daemon());
    // The children come after all parents and end never, so that nobody is woken.
    client.storm(count, &lead(&[&own(), "play-parent", "/bin/sleep", "100000"], 1));
    client.pause(false);
    Client::new(&tree).until("parked", count);
    (share(home.daemon()) - before) / count as f64 - queued_each
}
