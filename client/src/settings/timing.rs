//! `--set KEY=VALUE`: the times and tries of a new tree.
//!
//! It does not know which values are allowed; the daemon does.

use roost::proto::message::tree::Timing;

use crate::values;

/// One `--set`.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    set: Set,
    value: u64,
}

/// How a value is written.
#[derive(Clone, Copy)]
enum Unit {
    Time,
    Count,
}

/// Puts a value where it belongs.
type Set = fn(&mut Timing, u64);

const KEYS: &[(&str, Unit, Set)] = &[
    ("settle_to_exit", Unit::Time, |timing, ms| timing.settle_to_exit_ms = ms),
    ("leftovers_grace", Unit::Time, |timing, ms| timing.leftovers_grace_ms = ms),
    // What is too much for the field is too much for the daemon, which says so.
    ("start_retries", Unit::Count, |timing, count| timing.start_retries = u32::try_from(count).unwrap_or(u32::MAX)),
    ("start_retry", Unit::Time, |timing, ms| timing.start_retry_ms = ms),
    ("early_wake_dwell", Unit::Time, |timing, ms| timing.early_wake_dwell_ms = ms),
    ("wake_bypass", Unit::Count, |timing, count| timing.wake_bypass = count),
    ("park_deadline", Unit::Time, |timing, ms| timing.park_deadline_ms = ms),
    ("park_again", Unit::Time, |timing, ms| timing.park_again_ms = ms),
    ("startup", Unit::Time, |timing, ms| timing.startup_ms = ms),
    ("idle", Unit::Time, |timing, ms| timing.idle_ms = ms),
    ("hold", Unit::Time, |timing, ms| timing.hold_ms = ms),
    ("join_window", Unit::Time, |timing, ms| timing.join_window_ms = ms),
    ("join_hold", Unit::Time, |timing, ms| timing.join_hold_ms = ms),
    ("join_straggler", Unit::Time, |timing, ms| timing.join_straggler_ms = ms),
];

/// Reads one.
pub fn change(text: &str) -> Result<Change, String> {
    let keys = || KEYS.iter().map(|(key, _, _)| *key).collect::<Vec<_>>().join(", ");
    let (key, value) = text.split_once('=').ok_or_else(|| format!("write KEY=VALUE; the keys are {}", keys()))?;
    let found = KEYS.iter().find(|(known, _, _)| *known == key);
    let (_, unit, set) = found.ok_or_else(|| format!("there is no setting `{}`; the keys are {}", key.escape_debug(), keys()))?;
    let value = match unit {
        Unit::Time => values::duration(value)?,
        Unit::Count => value.parse().map_err(|_| format!("`{}` is not a whole number", value.escape_debug()))?,
    };
    Ok(Change { set: *set, value })
}

/// The times with all of these changes; of two for one key the later holds.
pub fn changed(mut timing: Timing, changes: &[Change]) -> Timing {
    changes.iter().for_each(|change| (change.set)(&mut timing, change.value));
    timing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_and_number_can_be_set() {
        let asked = [
            "settle_to_exit=1ms",
            "leftovers_grace=2s",
            "start_retries=3",
            "start_retry=4ms",
            "early_wake_dwell=0",
            "wake_bypass=6",
            "park_deadline=7m",
            "park_again=8ms",
            "startup=9ms",
            "idle=10ms",
            "hold=11ms",
            "join_window=12ms",
            "join_hold=13ms",
            "join_straggler=14ms",
        ];
        let changes: Vec<Change> = asked.map(|text| change(text).unwrap()).into();
        let expected = Timing {
            settle_to_exit_ms: 1,
            leftovers_grace_ms: 2_000,
            start_retries: 3,
            start_retry_ms: 4,
            early_wake_dwell_ms: 0,
            wake_bypass: 6,
            park_deadline_ms: 420_000,
            park_again_ms: 8,
            startup_ms: 9,
            idle_ms: 10,
            hold_ms: 11,
            join_window_ms: 12,
            join_hold_ms: 13,
            join_straggler_ms: 14,
        };
        assert_eq!(changed(Timing::default(), &changes), expected);
        assert_eq!(KEYS.len(), asked.len());
    }

    #[test]
    fn what_cannot_be_set_names_what_can() {
        for bad in ["settle_to_exit", "settle-to-exit=1s", "=1", ""] {
            assert!(change(bad).is_err_and(|why| why.contains("settle_to_exit, leftovers_grace,")), "{bad}");
        }
        assert!(change("park_again=soon").is_err_and(|why| why.contains("500ms")));
        assert!(change("start_retries=2s").is_err_and(|why| why.contains("whole number")));
    }
}
