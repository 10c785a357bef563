//! What each worker was doing when, drawn from the numbered events of its tree. Pure: events come in, spans go out.

use std::collections::BTreeMap;

use roost::proto::id::WorkerId;
use roost::proto::message::events::{NumberedEvent, Subject, TreeEvent};
use roost::proto::outcome::Outcome;
use serde::Serialize;

use crate::outline;
use crate::values;

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Queued,
    Starting,
    Running,
    Waiting,
    Blocked,
    Parked,
    Stopping,
    Finishing,
}

impl State {
    pub const ALL: [Self; 8] =
        [Self::Queued, Self::Starting, Self::Running, Self::Waiting, Self::Blocked, Self::Parked, Self::Stopping, Self::Finishing];

    /// The word for it, as in the JSON.
    pub fn word(self) -> String {
        values::wire_word(&self)
    }
}

/// A worker was in a state from one time up to, and without, another. None is empty, and those of one worker do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    pub state: State,
    pub from_ms: u64,
    pub until_ms: u64,
    /// Whether it had a slot.
    pub live: bool,
}

/// One worker. Its spans leave nothing out from the acceptance of each of its executions to the end of that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerSpans {
    pub name: String,
    pub worker: WorkerId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<WorkerId>,
    /// 1 for a worker of the root.
    pub depth: u32,
    pub executions: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    pub spans: Vec<Span>,
}

impl WorkerSpans {
    /// Which worker it is, and which is its lead.
    pub fn place(&self) -> (WorkerId, Option<WorkerId>) {
        (self.worker, self.lead)
    }
}

/// From this time on it was so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Step {
    pub at_ms: u64,
    pub count: u32,
}

/// A whole tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Timeline {
    pub from_ms: u64,
    pub until_ms: u64,
    /// The stream does not say what the cap was before it was set for the first time.
    pub cap: Vec<Step>,
    pub live: Vec<Step>,
    /// The most that were live at once, in the order of the events and not of the clock.
    pub live_max: u32,
    pub workers: Vec<WorkerSpans>,
}

/// Draws it. `cap` is that of now; what has not ended lasts until `now_ms`.
pub fn timeline(events: &[NumberedEvent], cap: Option<u32>, now_ms: u64) -> Timeline {
    let mut drawing = Drawing::default();
    for event in events {
        drawing.take(event);
    }
    drawing.finish(cap, now_ms)
}

#[derive(Default)]
struct Drawing {
    /// The latest time so far: a wall clock may be set back, and the order is that of the numbers.
    clock: u64,
    from_ms: Option<u64>,
    places: BTreeMap<WorkerId, usize>,
    workers: Vec<WorkerSpans>,
    /// What each does now, by the same index.
    open: Vec<Option<Span>>,
    live_now: u32,
    live_max: u32,
    live: Vec<Step>,
    cap: Vec<Step>,
}

impl Drawing {
    fn take(&mut self, event: &NumberedEvent) {
        self.clock = self.clock.max(event.at_ms);
        self.from_ms.get_or_insert(self.clock);
        if let TreeEvent::CapSet { cap } = event.event {
            step(&mut self.cap, self.clock, cap);
        }
        let Some(of) = event.event.subject() else { return };
        let place = self.place(of);
        let now = self.open[place].map(|span| (span.state, span.live));
        let worker = &mut self.workers[place];
        worker.executions += u32::from(worker.executions == 0 || matches!(event.event, TreeEvent::Created { .. }));
        worker.outcome = if let TreeEvent::Ended { outcome, .. } = &event.event { Some(outcome.clone()) } else { None };
        if let TreeEvent::Created { lead, .. } | TreeEvent::Reowned { lead, .. } = &event.event {
            worker.lead = *lead;
        }
        self.change(place, next(&event.event, now));
    }

    /// Where the worker stands. The first events of an old tree may be gone: then it begins with what is there.
    fn place(&mut self, of: &Subject) -> usize {
        if let Some(place) = self.places.get(&of.worker) {
            return *place;
        }
        let (name, worker) = (of.name.clone(), of.worker);
        self.workers.push(WorkerSpans { name, worker, lead: None, depth: 1, executions: 0, outcome: None, spans: Vec::new() });
        self.open.push(None);
        self.places.insert(worker, self.workers.len() - 1);
        self.workers.len() - 1
    }

    fn change(&mut self, place: usize, to: Option<(State, bool)>) {
        let before = self.open[place];
        if before.map(|span| (span.state, span.live)) == to {
            return;
        }
        self.close(place);
        self.open[place] = to.map(|(state, live)| Span { state, from_ms: self.clock, until_ms: self.clock, live });
        let (was, is) = (before.is_some_and(|span| span.live), to.is_some_and(|(_, live)| live));
        self.live_now = self.live_now + u32::from(is) - u32::from(was);
        self.live_max = self.live_max.max(self.live_now);
        step(&mut self.live, self.clock, self.live_now);
    }

    fn close(&mut self, place: usize) {
        if let Some(span) = self.open[place].take().filter(|span| span.from_ms < self.clock) {
            self.workers[place].spans.push(Span { until_ms: self.clock, ..span });
        }
    }

    fn finish(mut self, cap: Option<u32>, now_ms: u64) -> Timeline {
        if self.open.iter().any(Option::is_some) {
            self.clock = self.clock.max(now_ms);
        }
        (0..self.open.len()).for_each(|place| self.close(place));
        let depths: Vec<_> =
            outline::walk(&self.workers, WorkerSpans::place).iter().map(|(depth, worker)| (*depth, worker.worker)).collect();
        for (depth, worker) in depths {
            self.workers[self.places[&worker]].depth = depth;
        }
        let (from_ms, until_ms) = (self.from_ms.unwrap_or(self.clock), self.clock);
        if self.cap.is_empty() {
            self.cap.extend(cap.map(|count| Step { at_ms: from_ms, count }));
        }
        Timeline { from_ms, until_ms, cap: self.cap, live: self.live, live_max: self.live_max, workers: self.workers }
    }
}

/// Of one moment the last word counts.
fn step(steps: &mut Vec<Step>, at_ms: u64, count: u32) {
    steps.pop_if(|last| last.at_ms == at_ms);
    if steps.last().is_none_or(|last| last.count != count) {
        steps.push(Step { at_ms, count });
    }
}

/// What the worker does after the event, and whether with a slot. Who is being stopped does nothing else until the end.
fn next(event: &TreeEvent, now: Option<(State, bool)>) -> Option<(State, bool)> {
    if matches!(now, Some((State::Stopping, _))) && !matches!(event, TreeEvent::Ended { .. }) {
        return now;
    }
    match event {
        TreeEvent::Created { .. } | TreeEvent::Queued { .. } => Some((State::Queued, false)),
        TreeEvent::Started { .. } | TreeEvent::Woken { .. } | TreeEvent::StartRetried { .. } => Some((State::Starting, true)),
        TreeEvent::Running { .. } | TreeEvent::Unblocked { .. } | TreeEvent::Resumed { .. } => Some((State::Running, true)),
        // Inside of a call it waits like at the end of a turn, for as long as its slot is its own.
        TreeEvent::Blocked { .. } | TreeEvent::Waiting { .. } => Some((State::Waiting, true)),
        TreeEvent::SlotLent { .. } => Some((State::Blocked, false)),
        TreeEvent::WaitOver { .. } if now == Some((State::Waiting, true)) => Some((State::Running, true)),
        TreeEvent::Parked { .. } => Some((State::Parked, false)),
        TreeEvent::Stopping { .. } => Some((State::Stopping, now.is_some_and(|(_, live)| live))),
        TreeEvent::Finishing { .. } => Some((State::Finishing, false)),
        TreeEvent::Ended { .. } => None,
        TreeEvent::WaitOver { .. }
        | TreeEvent::ParkAsked { .. }
        | TreeEvent::ParkCancelled { .. }
        | TreeEvent::Opened {}
        | TreeEvent::Message { .. }
        | TreeEvent::Delivered { .. }
        | TreeEvent::Undelivered { .. }
        | TreeEvent::Consumed { .. }
        | TreeEvent::Reowned { .. }
        | TreeEvent::CapSet { .. }
        | TreeEvent::PauseSet { .. }
        | TreeEvent::Interrupted {}
        | TreeEvent::Backlog { .. }
        | TreeEvent::Closed {} => now,
    }
}

#[cfg(test)]
pub use tests::stream;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A stream: time, event, number of the worker.
    pub fn stream(lines: &[(u64, &str, u64)]) -> Vec<NumberedEvent> {
        (1..)
            .zip(lines)
            .map(|(number, (at_ms, event, worker))| {
                let mut line = json!({"number": number, "at_ms": at_ms, "event": event, "name": format!("n{worker}"),
                    "worker": format!("w{worker}"), "execution": "x1", "job": "j1", "task_index": 0, "resume": false, "epoch": 1,
                    "settled": true, "outcome": {"status": "completed"}, "cap": worker});
                if *event == "created" && *worker > 1 {
                    line["lead"] = json!(format!("w{}", worker - 1));
                }
                serde_json::from_value(line).unwrap()
            })
            .collect()
    }

    fn of(lines: &[(u64, &str, u64)], now_ms: u64) -> Timeline {
        timeline(&stream(lines), Some(2), now_ms)
    }

    fn shown(worker: &WorkerSpans) -> Vec<(State, u64, u64, bool)> {
        worker.spans.iter().map(|span| (span.state, span.from_ms, span.until_ms, span.live)).collect()
    }

    #[test]
    fn a_worker_that_parks_has_no_slot_until_it_is_woken() {
        let lines = [
            (10, "opened", 0),
            (20, "created", 1),
            (20, "queued", 1),
            (25, "started", 1),
            (30, "running", 1),
            (40, "waiting", 1),
            (45, "park_asked", 1),
            (50, "parked", 1),
            (70, "woken", 1),
            (75, "running", 1),
            (90, "ended", 1),
            (95, "closed", 0),
        ];
        let drawn = of(&lines, 1_000);
        let expected = [
            (State::Queued, 20, 25, false),
            (State::Starting, 25, 30, true),
            (State::Running, 30, 40, true),
            (State::Waiting, 40, 50, true),
            (State::Parked, 50, 70, false),
            (State::Starting, 70, 75, true),
            (State::Running, 75, 90, true),
        ];
        assert_eq!(shown(&drawn.workers[0]), expected);
        assert_eq!((drawn.from_ms, drawn.until_ms, drawn.live_max), (10, 95, 1));
        let steps: Vec<_> = drawn.live.iter().map(|step| (step.at_ms, step.count)).collect();
        assert_eq!(steps, [(20, 0), (25, 1), (50, 0), (70, 1), (90, 0)]);
        assert_eq!(drawn.cap, [Step { at_ms: 10, count: 2 }]);
    }

    #[test]
    fn a_lent_slot_is_nobodys_until_the_call_returns() {
        let begin = [(0, "created", 1), (0, "started", 1), (1, "running", 1), (2, "blocked", 1)];
        let lent = [(3, "slot_lent", 1), (5, "wait_over", 1), (7, "unblocked", 1), (9, "ended", 1)];
        let kept = [(5, "wait_over", 1), (9, "ended", 1)];
        let all = |rest: &[_]| shown(&of(&[&begin[..], rest].concat(), 0).workers[0]);
        let first = [(State::Starting, 0, 1, true), (State::Running, 1, 2, true)];
        let expected = [(State::Waiting, 2, 3, true), (State::Blocked, 3, 7, false), (State::Running, 7, 9, true)];
        assert_eq!(all(&lent), [&first[..], &expected].concat());
        assert_eq!(all(&kept), [&first[..], &[(State::Waiting, 2, 5, true), (State::Running, 5, 9, true)]].concat());
    }

    #[test]
    fn what_has_not_ended_lasts_until_now_and_a_clock_set_back_turns_nothing_around() {
        let drawn = of(&[(100, "created", 1), (60, "started", 1), (110, "running", 1), (105, "stopping", 1)], 120);
        assert_eq!(shown(&drawn.workers[0]), [(State::Starting, 100, 110, true), (State::Stopping, 110, 120, true)]);
        // Nothing new is known of who is being stopped, and its slot is what it was.
        let drawn = of(&[(0, "created", 1), (5, "stopping", 1), (6, "running", 1), (9, "ended", 1)], 20);
        assert_eq!(shown(&drawn.workers[0]), [(State::Queued, 0, 5, false), (State::Stopping, 5, 9, false)]);
        assert_eq!(drawn.until_ms, 9);
    }

    #[test]
    fn a_resumed_worker_is_one_line_with_a_gap_and_one_whose_beginning_is_gone_begins_late() {
        let drawn = of(&[(0, "created", 1), (1, "running", 1), (3, "ended", 1), (8, "created", 1), (9, "running", 1), (12, "ended", 1)], 0);
        let expected =
            [(State::Queued, 0, 1, false), (State::Running, 1, 3, true), (State::Queued, 8, 9, false), (State::Running, 9, 12, true)];
        assert_eq!((shown(&drawn.workers[0]), drawn.workers[0].executions), (expected.to_vec(), 2));
        let drawn = of(&[(4, "parked", 7), (5, "woken", 7), (5, "cap_set", 3), (9, "ended", 7)], 0);
        assert_eq!(shown(&drawn.workers[0]), [(State::Parked, 4, 5, false), (State::Starting, 5, 9, true)]);
        assert_eq!(drawn.cap, [Step { at_ms: 5, count: 3 }]);
    }

    #[test]
    fn depth_is_that_of_the_lead_and_one_more() {
        let drawn = of(&[(0, "created", 1), (1, "created", 2), (2, "created", 3)], 9);
        assert_eq!(drawn.workers.iter().map(|worker| worker.depth).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn who_is_adopted_stands_below_the_new_lead_with_all_below_it() {
        let mut events = stream(&[(0, "created", 1), (1, "created", 2), (2, "created", 3), (3, "created", 4), (4, "reowned", 3)]);
        let TreeEvent::Reowned { lead, .. } = &mut events[4].event else { unreachable!() };
        *lead = Some(WorkerId(1));
        let drawn = timeline(&events, None, 9);
        let places: Vec<_> = drawn.workers.iter().map(|worker| (worker.worker.0, worker.lead.map(|lead| lead.0), worker.depth)).collect();
        assert_eq!(places, [(1, None, 1), (2, Some(1), 2), (3, Some(1), 2), (4, Some(3), 3)]);
        // And it does what it did.
        assert_eq!(shown(&drawn.workers[2]), [(State::Queued, 2, 9, false)]);
    }
}
