//! The timeline as Chrome trace events, which <https://ui.perfetto.dev> opens: one track per worker, counters of the cap and the live.

use serde_json::{Value, json};

use super::rows::in_order;
use super::spans::{Timeline, WorkerSpans};

/// All workers are threads of this one process.
const PROCESS: u32 = 1;

/// The document. Its times are microseconds from the beginning of the tree.
pub fn document(timeline: &Timeline, tree: &str) -> Value {
    let us = |at_ms: u64| at_ms.saturating_sub(timeline.from_ms) * 1_000;
    let mut events = vec![json!({"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": format!("tree {tree}")}})];
    for (name, steps) in [("cap", &timeline.cap), ("live", &timeline.live)] {
        let count =
            |step: &super::spans::Step| json!({"ph": "C", "pid": PROCESS, "name": name, "ts": us(step.at_ms), "args": {name: step.count}});
        events.extend(steps.iter().map(count));
    }
    for (place, worker) in in_order(timeline).enumerate() {
        events.extend(track(place, worker, us));
    }
    json!({"displayTimeUnit": "ms", "otherData": {"tree": tree, "from_ms": timeline.from_ms}, "traceEvents": events})
}

fn track(place: usize, worker: &WorkerSpans, us: impl Fn(u64) -> u64) -> Vec<Value> {
    let thread = worker.worker.0;
    let about = |name: &str, args: Value| json!({"ph": "M", "pid": PROCESS, "tid": thread, "name": name, "args": args});
    let mut events = vec![about("thread_name", json!({"name": worker.name})), about("thread_sort_index", json!({"sort_index": place}))];
    events.extend(worker.spans.iter().map(|span| {
        let (from, length) = (us(span.from_ms), us(span.until_ms) - us(span.from_ms));
        json!({"ph": "X", "pid": PROCESS, "tid": thread, "name": span.state.word(), "cat": "worker", "ts": from, "dur": length,
            "args": {"live": span.live}})
    }));
    events
}

#[cfg(test)]
mod tests {
    use super::super::spans::stream;
    use super::super::spans::timeline;
    use super::*;

    #[test]
    fn each_worker_is_a_track_and_the_live_are_a_counter() {
        let lines = [(5, "created", 1), (7, "started", 1), (9, "parked", 1), (12, "ended", 1)];
        let document = document(&timeline(&stream(&lines), Some(2), 0), "t1");
        let events = document["traceEvents"].as_array().unwrap();
        let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).cloned().collect::<Vec<_>>();
        let spans: Vec<_> = of("X").iter().map(|event| (event["name"].clone(), event["ts"].clone(), event["dur"].clone())).collect();
        assert_eq!(
            spans,
            [
                (json!("queued"), json!(0), json!(2_000)),
                (json!("starting"), json!(2_000), json!(2_000)),
                (json!("parked"), json!(4_000), json!(3_000)),
            ]
        );
        let counters: Vec<_> = of("C").iter().map(|event| (event["ts"].clone(), event["args"].clone())).collect();
        let live = |at: u64, count: u32| (json!(at), json!({"live": count}));
        assert_eq!(counters, [(json!(0), json!({"cap": 2})), live(0, 0), live(2_000, 1), live(4_000, 0)]);
        assert_eq!(of("M")[1]["args"]["name"], "n1");
    }
}
