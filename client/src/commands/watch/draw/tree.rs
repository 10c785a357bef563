//! The workers below their leads, those that are in sight.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use roost::proto::message::status::WorkerState;
use roost::proto::outcome::Outcome;
use roost::rows::Row;

use super::super::state::View;
use super::super::text::{fit, pad, safe};
use super::super::words;
use super::{Paint, put};
use crate::commands::status::elapsed;

const STATE: usize = 13;
const TIME: usize = 8;
const TOKENS: usize = 7;
const COST: usize = 10;
/// With less than this left for it, there is no reason.
const REASON_MIN: usize = 10;

/// How wide each column is.
struct Columns {
    name: usize,
    reason: usize,
    cost: bool,
}

impl Columns {
    fn of(width: usize) -> Self {
        let cost = width >= 76;
        let right = TIME + if cost { TOKENS + COST } else { 0 };
        let left = width.saturating_sub(right + STATE + 2);
        let name = if left < 2 * REASON_MIN { left } else { (left * 2 / 5).clamp(REASON_MIN, 44) };
        let reason = left.saturating_sub(name);
        Self { name, reason: if reason < REASON_MIN { 0 } else { reason }, cost }
    }

    fn line(&self, mark: &str, name: &str, state: &str, reason: &str, right: [&str; 3]) -> String {
        let mut line = format!("{mark}{}{}", pad(&fit(name, self.name.saturating_sub(1)), self.name), pad(state, STATE));
        if self.reason > 0 {
            line.push_str(&pad(&fit(reason, self.reason - 1), self.reason));
        }
        line.push_str(&format!("{:>TIME$}", right[0]));
        if self.cost {
            line.push_str(&format!("{:>TOKENS$}{:>COST$}", right[1], right[2]));
        }
        line
    }
}

/// Draws them; says how many.
pub fn draw(view: &View, paint: Paint, buffer: &mut Buffer, area: Rect) -> usize {
    if area.height == 0 {
        return 0;
    }
    let columns = Columns::of(usize::from(area.width));
    let which = if view.active_only { "ACTIVE WORKERS" } else { "WORKER" };
    put(buffer, area, 0, &columns.line("  ", which, "STATE", "WHY", ["TIME", "TOKENS", "COST"]), paint.dim());
    if view.shown.is_empty() {
        let text = if view.rows.is_empty() { "  no worker yet" } else { "  none is active" };
        put(buffer, area, 1, text, Style::new());
    }
    let in_sight = view.shown.iter().skip(view.first).take(usize::from(area.height) - 1);
    let mut drawn = 0;
    for ((worker, depth), line) in in_sight.zip(1..) {
        let Some(row) = view.rows.get(*worker) else { continue };
        let selected = view.selected == Some(*worker);
        let style = if selected { style(row, paint).patch(paint.with(Modifier::REVERSED)) } else { style(row, paint) };
        put(buffer, area, line, &text(view, row, *depth, selected, &columns), style);
        drawn += 1;
    }
    drawn
}

fn text(view: &View, row: &Row, depth: usize, selected: bool, columns: &Columns) -> String {
    // The deepest names stay readable.
    let indent = " ".repeat((2 * depth).min(columns.name / 2));
    let state = match view.rows.place(row.worker) {
        Some(place) => format!("{} {place}", words::state(row)),
        None => words::state(row).to_owned(),
    };
    let time = row.started_at_ms.map(|since| elapsed(row.ended_at_ms.unwrap_or(view.now_ms).saturating_sub(since))).unwrap_or_default();
    let used = &row.usage.total;
    let (tokens, cost) = if used.is_zero() { (String::new(), String::new()) } else { (words::short(used.tokens()), words::price(used)) };
    let mark = if selected { "> " } else { "  " };
    columns.line(mark, &format!("{indent}{}", safe(&row.name)), &state, &words::reason(&view.rows, row), [&time, &tokens, &cost])
}

fn style(row: &Row, paint: Paint) -> Style {
    match (&row.outcome, row.state()) {
        (Some(Outcome::Completed | Outcome::WrappedUp | Outcome::Stopped), _) => paint.dim(),
        (Some(Outcome::Failed(_) | Outcome::Aborted { .. }), _) => paint.of(Color::Red),
        (None, WorkerState::Running | WorkerState::Starting | WorkerState::Waking) => paint.of(Color::Green),
        (None, WorkerState::Queued | WorkerState::Parked | WorkerState::WakeReady) => Style::new(),
        (
            None,
            WorkerState::Waiting
            | WorkerState::Blocked
            | WorkerState::Parking
            | WorkerState::Stopping
            | WorkerState::Finishing
            | WorkerState::Ended,
        ) => paint.of(Color::Yellow),
    }
}
