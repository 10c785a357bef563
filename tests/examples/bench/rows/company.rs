//! A storm with idle connections and followers of events beside it, and the same without them.

use std::thread;

use roost_tests::real::Wire;
use serde_json::json;

use crate::daemon::{self, Client, NO_OP, PATIENCE, task};
use crate::figure::{Figure, Target};
use crate::limits::seconds;
use crate::plan::Plan;
use crate::played::now;

pub fn company(plan: &Plan) -> Vec<Figure> {
    let (idle, followers, count) = (plan.counts.idle, plan.counts.followers, plan.counts.storm_in_company);
    let rounds: Vec<_> = (0..plan.rounds).map(|_| (storm(plan, idle, followers), storm(plan, 0, 0))).collect();
    let what = format!("{count} no-op workers beside {idle} idle connections and {followers} followers of events");
    vec![Figure::ratio(what, &rounds, "without them", Target::AtMost(1.1))]
}

fn storm(plan: &Plan, idle: usize, followers: usize) -> f64 {
    let count = plan.counts.storm_in_company;
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 8);
    let mut client = Client::new(&tree);
    let idle: Vec<Wire> = (0..idle).map(|_| tree.wire()).collect();
    let mut following = Vec::new();
    for _ in 0..followers {
        let mut wire = tree.wire();
        wire.call("events", &json!({"from": 1, "follow": true})).expect("the root may follow");
        // It reads what comes, until the daemon goes.
        following.push(thread::spawn(move || while wire.answer(PATIENCE).is_some() {}));
    }
    let begun = now();
    client.storm(count, &task(&[NO_OP]));
    assert_eq!(client.wait(&[]), count);
    let took = seconds(begun, now());
    drop((idle, client));
    drop(home);
    following.into_iter().for_each(|follower| follower.join().expect("a follower"));
    took
}
