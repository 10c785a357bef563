//! How fast workers end, and what that says of those that are left: nothing, as a rule. Pure.

use std::collections::HashMap;

use roost::proto::id::ExecutionId;
use roost::proto::message::events::{NumberedEvent, TreeEvent};

/// So many ends must have been seen.
const ENDS_MIN: u64 = 8;
/// Of all that is known of, at least this part must have ended (one in so many).
const PART: u64 = 5;
/// So many ends in a row without a launch: what is left is known then.
const QUIET_ENDS: u64 = 4;

/// The ends so far.
#[derive(Default)]
pub struct Pace {
    began: HashMap<ExecutionId, u64>,
    ends: u64,
    took_ms: u64,
    ends_since_launch: u64,
}

impl Pace {
    /// Counts an event.
    pub fn take(&mut self, event: &NumberedEvent) {
        if let TreeEvent::Created { .. } = event.event {
            self.ends_since_launch = 0;
        } else if let TreeEvent::Started { of } = &event.event {
            self.began.insert(of.execution, event.at_ms);
        } else if let TreeEvent::Parked { of } = &event.event {
            // How long it was away says nothing of others.
            self.began.remove(&of.execution);
        } else if let TreeEvent::Ended { of, .. } = &event.event {
            self.ends_since_launch += 1;
            if let Some(began) = self.began.remove(&of.execution) {
                self.ends += 1;
                self.took_ms += event.at_ms.saturating_sub(began);
            }
        }
    }

    /// How long those that are left may take, where enough have ended, most of the work is known, and there is more of it than one
    /// round.
    pub fn left_ms(&self, live: u32, queued: u32, cap: u32) -> Option<u64> {
        let left = u64::from(live) + u64::from(queued);
        let is_known = self.ends_since_launch >= QUIET_ENDS && self.ends >= ENDS_MIN && self.ends * PART >= left;
        if !is_known || queued == 0 {
            return None;
        }
        // Those that run have done half of it, on the average.
        let work = self.took_ms / self.ends * (2 * u64::from(queued) + u64::from(live)) / 2;
        Some(work / u64::from(cap.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn take(pace: &mut Pace, at_ms: u64, event: &str, id: u64) {
        let event = json!({"number": 1, "at_ms": at_ms, "event": event, "name": "n", "worker": format!("w{id}"), "execution": format!("x{id}"),
            "job": "j1", "task_index": 0, "resume": false, "outcome": {"status": "completed"}});
        pace.take(&serde_json::from_value(event).unwrap());
    }

    #[test]
    fn an_estimate_is_made_only_when_it_means_something() {
        let mut pace = Pace::default();
        for id in 0..8 {
            assert_eq!(pace.left_ms(2, 10, 2), None, "after {id} ends");
            take(&mut pace, 1_000, "started", id);
            take(&mut pace, 3_000, "ended", id);
        }
        assert_eq!(pace.left_ms(2, 10, 2), Some(11_000));
        // The last round takes as long as it takes, and of much more than has ended nothing is known.
        assert_eq!((pace.left_ms(2, 0, 2), pace.left_ms(2, 100, 2)), (None, None));
        // While more is launched, what is left is not known.
        take(&mut pace, 4_000, "created", 20);
        assert_eq!(pace.left_ms(2, 10, 2), None);
        (30..34).for_each(|id| take(&mut pace, 5_000, "ended", id));
        assert_eq!(pace.left_ms(2, 10, 2), Some(11_000));
    }
}
