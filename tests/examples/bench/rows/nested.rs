//! A binary tree of workers in which every parent parks: each is started twice.

use roost_tests::real::Home;
use serde_json::json;

use crate::daemon::{self, Client, lead};
use crate::figure::{Figure, Target};
use crate::limits::{raw_seconds, seconds};
use crate::plan::Plan;
use crate::played::{now, own};

const CAPS: [usize; 3] = [1, 2, 8];

/// The tree in which living processes are counted is this much smaller: whoever counts takes time from whoever is counted.
const COUNTED_PART: usize = 20;

pub fn nested(plan: &Plan) -> Vec<Figure> {
    let count = plan.counts.nested;
    let own = own();
    CAPS.into_iter()
        .map(|cap| {
            stays_below(plan, (count / COUNTED_PART).max(count.min(15)), cap);
            let round = |_| {
                let limit = raw_seconds(2 * count, cap, &[&own, "play-node", "1"]);
                (grow(&daemon::daemon(plan), count, cap), limit)
            };
            let rounds: Vec<_> = (0..plan.few_rounds()).map(round).collect();
            let what = format!("nested binary tree of {count} workers at cap {cap}, every parent parks");
            Figure::ratio(what, &rounds, format!("twice as many raw processes of the same program, {cap} at a time"), Target::AtMost(2.0))
        })
        .collect()
}

/// No more processes than the cap, ever.
fn stays_below(plan: &Plan, count: usize, cap: usize) {
    let home = daemon::daemon(plan);
    let sampler = home.sample();
    grow(&home, count, cap);
    let most = sampler.stop().most;
    assert!(most <= cap, "{most} living workers at cap {cap}");
}

/// Seconds of one tree.
fn grow(home: &Home, count: usize, cap: usize) -> f64 {
    let tree = daemon::tree(home, cap);
    let mut client = Client::new(&tree);
    let begun = now();
    client.launch(&[lead(&[&own(), "play-node", &count.to_string()], count - 1)]);
    assert_eq!(client.wait(&[]), 1, "{}", tree.status());
    let took = seconds(begun, now());
    let result = client.wire.call("result", &json!({"execution": "x1"})).expect("the root may read it");
    assert_eq!(result["ended"]["answer"], json!(format!("{count}\n")));
    took
}
