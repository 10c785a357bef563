//! What is said of a worker: its state, why it waits, what it has cost. Pure.

use roost::proto::id::WorkerId;
use roost::proto::message::events::{NumberedEvent, TreeEvent};
use roost::proto::message::status::WorkerState;
use roost::proto::outcome::Outcome;
use roost::proto::usage::Usage;
use roost::rows::{Held, Row, Rows};

use super::text::safe;
use crate::commands::events;
use crate::values;

/// How many names a line bears.
const NAMES_MAX: usize = 3;

/// The word for where a worker stands.
pub fn state(row: &Row) -> String {
    let word = match &row.outcome {
        Some(Outcome::Completed | Outcome::WrappedUp) => "completed",
        Some(Outcome::Aborted { .. }) => "aborted",
        Some(Outcome::Failed(_)) => "failed",
        Some(Outcome::Stopped) => "stopped",
        // What it waits for says the rest.
        None if row.state() == WorkerState::WakeReady => return values::wire_word(&WorkerState::Parked),
        None => return values::wire_word(&row.state()),
    };
    word.to_owned()
}

/// Why it waits, or how it ended; nothing where there is nothing to say.
pub fn reason(rows: &Rows, row: &Row) -> String {
    match (&row.outcome, row.state()) {
        (Some(Outcome::Completed | Outcome::Stopped), _) => String::new(),
        (Some(Outcome::WrappedUp), _) => "it was told to come to an end".into(),
        (Some(Outcome::Aborted { reason }), _) => safe(reason),
        (Some(Outcome::Failed(failure)), _) => safe(&failure.to_string()),
        (None, WorkerState::Queued) => match rows.held(row) {
            Held::Paused => "the tree is paused".into(),
            Held::Cap(cap) => format!("all {cap} slots are taken"),
            Held::Group(group, cap) => format!("all {cap} slots of group {} are taken", safe(&group)),
            Held::Daemon => "its turn, or the daemon's own cap is reached".into(),
        },
        (None, WorkerState::WakeReady) => "waits for a slot to wake".into(),
        (None, WorkerState::Blocked) if row.wait_is_over => "waits for a slot to go on".into(),
        (None, WorkerState::Parked | WorkerState::Blocked | WorkerState::Waiting | WorkerState::Finishing) => children(rows, row),
        (None, WorkerState::Parking) => "asked to save its context".into(),
        (None, WorkerState::Starting | WorkerState::Running | WorkerState::Waking | WorkerState::Stopping | WorkerState::Ended) => {
            String::new()
        }
    }
}

fn children(rows: &Rows, row: &Row) -> String {
    let names: Vec<String> = rows.active_children(row, NAMES_MAX).into_iter().map(|child| safe(&child.name)).collect();
    let more = (row.active_children as usize).saturating_sub(names.len());
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!("waits for {}", names.join(", ")),
        (false, _) => format!("waits for {} and {more} more", names.join(", ")),
    }
}

/// A number for a column.
pub fn short(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{}k", number / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

/// A price for a column, to the hundredth of a cent where it is small; an unknown one is no price.
pub fn price(usage: &Usage) -> String {
    const CENT: u64 = 10_000_000;
    let exact = if usage.cost < 100 * CENT {
        format!("${}.{:04}", usage.cost / 1_000_000_000, usage.cost % 1_000_000_000 / 100_000)
    } else {
        format!("${}.{:02}", usage.cost / 1_000_000_000, usage.cost % 1_000_000_000 / CENT)
    };
    match (usage.cost_unknown, usage.cost) {
        (true, 0) => "$?".into(),
        (true, _) => format!(">{exact}"),
        (false, 0) => "$0".into(),
        (false, _) => exact,
    }
}

/// Tokens and price together.
pub fn used(usage: &Usage) -> String {
    format!("{} tokens {}", short(usage.tokens()), price(usage))
}

/// Whose list of events an event belongs in.
pub fn subject(event: &TreeEvent) -> Option<WorkerId> {
    if let TreeEvent::Message { to, from, .. } = event {
        to.or(*from)
    } else if let TreeEvent::Delivered { to: worker, .. } | TreeEvent::Backlog { of: worker, .. } = event {
        *worker
    } else if let TreeEvent::Consumed { workers } = event {
        workers.first().copied()
    } else {
        event.subject().map(|of| of.worker)
    }
}

/// One event as a line, as `roost events` prints it.
pub fn event(event: &NumberedEvent) -> String {
    safe(&events::line(event).unwrap_or_else(|_| format!("{} (it cannot be shown)", event.number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_prices_fit_columns() {
        assert_eq!([0, 9_999, 12_345, 12_345_678, 12_345_678_901].map(short), ["0", "9999", "12k", "12M", "12G"]);
        let of = |cost, cost_unknown| price(&Usage { cost, cost_unknown, ..Usage::default() });
        assert_eq!([of(0, false), of(1_234_567, false), of(12_345_678_901, false)], ["$0", "$0.0012", "$12.34"]);
        assert_eq!([of(0, true), of(2_500_000_000, true)], ["$?", ">$2.50"]);
    }
}
