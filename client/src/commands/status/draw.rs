//! How trees and workers look as lines of text. Pure: the clock comes in, strings go out.

use roost::proto::message::status::{TreeStatus, WorkerState, WorkerStatus};
use roost::proto::outcome::Outcome;

use crate::outline;
use crate::output::escape_line;
use crate::values;

/// How to draw.
pub(super) struct Paint {
    /// Whether to use colour.
    pub(super) colour: bool,
    /// The time, Unix milliseconds.
    pub(super) now_ms: u64,
}

#[derive(Clone, Copy)]
enum Colour {
    Green,
    Red,
    Yellow,
    Dim,
}

impl Paint {
    /// One line for a tree.
    pub(super) fn header(&self, tree: &TreeStatus) -> String {
        let p = &tree.progress;
        let mut line = format!("tree {}", p.tree);
        if let Some(key) = &tree.key {
            line.push_str(&format!(" ({})", escape_line(key)));
        }
        let used = tree.budget.saturating_sub(tree.budget_remaining);
        line.push_str(&format!(
            "  cap {}  live {}  queued {}  parked {}  blocked {}  budget {used}/{}",
            p.cap, p.live, p.queued, p.parked, p.blocked, tree.budget
        ));
        line.push_str(&format!("  completed {}  failed {}  stopped {}", p.completed, p.failed, p.stopped));
        line.push_str(&format!("  opened {}", values::time_of_day(tree.opened_at_ms)));
        if p.paused {
            line.push_str(&self.painted("  paused", Colour::Yellow));
        }
        if tree.closed_at_ms.is_some() {
            line.push_str(&self.painted("  closed", Colour::Dim));
        }
        line
    }

    /// One line per worker, each below its lead.
    pub(super) fn workers(&self, workers: &[WorkerStatus]) -> Vec<String> {
        outline::lines(workers, |worker| (worker.worker, worker.lead), |worker| self.worker(worker))
    }

    fn worker(&self, worker: &WorkerStatus) -> String {
        let mut line = format!("{}  {}", escape_line(&worker.name), self.state(worker));
        if let Some(place) = worker.place {
            line.push_str(&format!(" {place}"));
        }
        if let Some(reason) = &worker.reason {
            line.push_str(&format!(" ({})", escape_line(reason)));
        }
        if let Some(started) = worker.started_at_ms {
            let until = worker.ended_at_ms.unwrap_or(self.now_ms);
            line.push_str(&format!("  {}", elapsed(until.saturating_sub(started))));
        }
        if let Some(pid) = worker.pid {
            line.push_str(&format!("  pid {pid}"));
        }
        if !worker.leftovers.is_empty() {
            line.push_str(&format!("  left behind: {}", values::pids(&worker.leftovers)));
        }
        line
    }

    fn state(&self, worker: &WorkerStatus) -> String {
        match (&worker.outcome, worker.state) {
            (Some(Outcome::Completed | Outcome::WrappedUp), _) => self.painted("completed", Colour::Green),
            (Some(outcome @ (Outcome::Failed(_) | Outcome::Aborted { .. })), _) => {
                self.painted(&escape_line(&outcome.to_string()), Colour::Red)
            }
            (Some(Outcome::Stopped), _) => self.painted("stopped", Colour::Dim),
            (None, WorkerState::Running | WorkerState::Starting | WorkerState::Waking) => {
                self.painted(&values::wire_word(&worker.state), Colour::Green)
            }
            (None, WorkerState::Queued | WorkerState::Parked | WorkerState::WakeReady) => {
                self.painted(&values::wire_word(&worker.state), Colour::Dim)
            }
            (
                None,
                WorkerState::Waiting
                | WorkerState::Blocked
                | WorkerState::Parking
                | WorkerState::Stopping
                | WorkerState::Finishing
                | WorkerState::Ended,
            ) => self.painted(&values::wire_word(&worker.state), Colour::Yellow),
        }
    }

    fn painted(&self, text: &str, colour: Colour) -> String {
        let code = match colour {
            Colour::Green => 32,
            Colour::Red => 31,
            Colour::Yellow => 33,
            Colour::Dim => 2,
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// How long something has taken.
pub fn elapsed(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        0..60 => format!("{seconds}.{}s", ms % 1_000 / 100),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(id: u64, lead: Option<u64>, name: &str) -> WorkerStatus {
        serde_json::from_value(serde_json::json!({
            "name": name, "worker": format!("w{id}"), "lead": lead.map(|id| format!("w{id}")), "execution": "x1", "job": "j1",
            "task_index": 0, "depth": 1, "state": "running", "epoch": 1, "active_children": 0, "budget_remaining": 0,
            "accepted_at_ms": 0, "started_at_ms": 1_000, "pid": 7, "stdout_paths": [], "stderr_paths": [],
        }))
        .unwrap()
    }

    #[test]
    fn workers_stand_below_their_leads_and_their_names_are_harmless() {
        let paint = Paint { colour: false, now_ms: 62_500 };
        let lines = paint.workers(&[worker(2, Some(1), "top"), worker(3, None, "other\x1b[2J"), worker(4, Some(2), "below")]);
        assert_eq!(lines, ["  top  running  1m01s  pid 7", "    below  running  1m01s  pid 7", "  other\\x1b[2J  running  1m01s  pid 7"]);
    }

    #[test]
    fn what_is_left_behind_is_listed() {
        let paint = Paint { colour: false, now_ms: 2_000 };
        let one = WorkerStatus { leftovers: vec![8, 9], ..worker(2, None, "w") };
        let many = WorkerStatus { leftovers: (1..=10).collect(), ..one.clone() };
        let lines = paint.workers(&[one, many]);
        let ten = "  w  running  1.0s  pid 7  left behind: 1, 2, 3, 4, 5, 6, 7, 8 and 2 more";
        assert_eq!(lines, ["  w  running  1.0s  pid 7  left behind: 8, 9", ten]);
    }

    #[test]
    fn a_chain_of_ten_thousand_is_drawn() {
        let chain: Vec<_> = (1..10_000).map(|id| worker(id, (id > 1).then(|| id - 1), "w")).collect();
        assert_eq!(Paint { colour: false, now_ms: 0 }.workers(&chain).len(), 9_999);
    }
}
