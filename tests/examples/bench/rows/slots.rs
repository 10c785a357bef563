//! One slot: how soon it is used again, and how soon a lead's client has the completion.

use roost_tests::real::Lead;
use serde_json::json;

use crate::daemon::{self, Client, outputs, stamps, task};
use crate::figure::{Figure, Target, quantile};
use crate::limits::{BareCall, CallSizes, gaps, raw_gaps, seconds};
use crate::plan::Plan;
use crate::played::{now, own};

pub fn reused(plan: &Plan) -> Vec<Figure> {
    let count = plan.counts.slots;
    let round = |_| {
        let limit = quantile(&raw_gaps(count), 0.5);
        let home = daemon::daemon(plan);
        let tree = daemon::tree(&home, 1);
        let mut client = Client::new(&tree);
        client.pause(true);
        client.storm(count, &task(&[&own(), "play-stamp"]));
        client.pause(false);
        assert_eq!(client.wait(&[]), count);
        let outputs = outputs(&home);
        (quantile(&gaps(outputs.iter().map(|text| stamps(text))), 0.5), limit)
    };
    let rounds: Vec<_> = (0..plan.rounds).map(round).collect();
    let what = "last word of a process to the first of the next in its slot, p50";
    vec![Figure::ratio(what, &rounds, "the same, raw exit and spawn", Target::AtMost(1.5))]
}

pub fn told(plan: &Plan) -> Vec<Figure> {
    let mut bare = BareCall::new(&plan.below, &CallSizes::measure(plan));
    let home = daemon::daemon(plan);
    let tree = daemon::tree(&home, 1);
    let mut client = Client::new(&tree);
    let mut lead = Lead::new(&home, &tree);
    let own = own();
    let mut one = || {
        let params = client.launching(&[task(&[&own, "play-stamp"])]);
        lead.call("launch", params).expect("a receipt");
        let delivery = lead.delivery();
        let heard = now();
        lead.ack(&delivery);
        let answer = delivery["items"][0]["answer"].as_str().expect("an answer").to_owned();
        assert_eq!(delivery["items"][0]["type"], json!("completion"));
        seconds(stamps(&answer).1, heard)
    };
    one();
    let round = |_| {
        let (mut waits, mut limits) = (Vec::new(), Vec::new());
        for _ in 0..plan.counts.completions {
            waits.push(one());
            limits.push(bare.call());
        }
        (quantile(&waits, 0.5), quantile(&limits, 0.5))
    };
    let rounds: Vec<_> = (0..plan.rounds).map(round).collect();
    let what = "last word of a child to the completion at its lead's client, p50";
    vec![Figure::ratio(what, &rounds, "a synced write and a round trip", Target::AtMost(2.0))]
}
