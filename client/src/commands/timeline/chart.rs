//! The timeline as lines of text. Pure.

use super::rows::{self, Columns, ROWS_MAX, Row};
use super::spans::{State, Timeline};
use crate::output::escape_line;

/// Of a terminal's width the names take no more.
const NAMES_MAX: usize = 28;

/// All lines. `width` in characters.
pub fn lines(timeline: &Timeline, tree: &str, width: usize) -> Vec<String> {
    let rows = rows::rows(timeline, ROWS_MAX);
    let labels: Vec<String> = rows.iter().map(label).collect();
    let names = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0).clamp(4, NAMES_MAX.min(width / 3).max(4));
    let columns = Columns::new(timeline, width.saturating_sub(names + 2).max(10));
    let line = |label: &str, cells: String| format!("{:<names$}  {}", rows::shortened(label, names), cells.trim_end());
    let mut lines = vec![rows::headline(timeline, tree), line("", axis(timeline, columns))];
    for (label, steps) in [("cap", &timeline.cap), ("live", &timeline.live)] {
        lines.push(line(label, columns.most(steps).into_iter().map(digit).collect()));
    }
    for (row, label) in rows.iter().zip(&labels) {
        let cells = match row {
            Row::Worker(worker) => columns.states(&worker.spans).into_iter().map(|state| state.map_or(' ', sign)).collect(),
            Row::Folded { workers, .. } => columns.live(workers).into_iter().map(|live| digit(live.round() as u32)).collect(),
        };
        lines.push(line(label, cells));
    }
    let legend: Vec<String> = State::ALL.into_iter().map(|state| format!("{} {}", sign(state), state.word())).collect();
    lines.push(legend.join("  "));
    if rows.iter().any(|row| matches!(row, Row::Folded { .. })) {
        lines.push("Deep workers are folded, a line for each depth: how many of them are live on the average.".into());
    }
    lines
}

fn sign(state: State) -> char {
    match state {
        State::Queued => '.',
        State::Starting => '▒',
        State::Running => '█',
        State::Waiting => '▄',
        State::Blocked => '░',
        State::Parked => '─',
        State::Stopping => 'x',
        State::Finishing => '~',
    }
}

fn digit(count: u32) -> char {
    match char::from_digit(count, 10) {
        Some('0') => ' ',
        Some(digit) => digit,
        None => '+',
    }
}

fn label(row: &Row<'_>) -> String {
    match row {
        Row::Worker(worker) => {
            let indent = usize::try_from(worker.depth.saturating_sub(1)).unwrap_or(0).min(8);
            format!("{}{}", " ".repeat(indent), escape_line(&worker.name))
        }
        Row::Folded { depths, workers } => rows::folded(*depths, workers.len()),
    }
}

/// Times at their columns, as many as fit.
fn axis(timeline: &Timeline, columns: Columns) -> String {
    let mut axis = String::new();
    let room = u64::try_from(columns.count / 12).unwrap_or(1);
    for tick in rows::ticks(timeline.until_ms - timeline.from_ms, room) {
        let at = columns.at(timeline.from_ms + tick) as usize;
        let text = format!("|{}", rows::length(tick));
        if axis.chars().count() <= at && at + text.len() <= columns.count {
            axis = format!("{axis:<at$}{text}");
        }
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::super::rows::forest;
    use super::super::spans::stream;
    use super::super::spans::timeline;
    use super::*;

    #[test]
    fn it_fits_into_its_width_and_shows_what_parking_does() {
        let events = [
            (0, "created", 1),
            (0, "started", 1),
            (10, "running", 1),
            (20, "created", 2),
            (30, "parked", 1),
            (30, "started", 2),
            (40, "running", 2),
            (70, "ended", 2),
            (70, "woken", 1),
            (80, "running", 1),
            (100, "ended", 1),
        ];
        let shown = lines(&timeline(&stream(&events), Some(1), 0), "t7", 26);
        let expected = [
            "tree t7: 2 workers in 100 ms, at most 1 live at once, cap 1",
            "      |0 ms",
            "cap   11111111111111111111",
            "live  11111111111111111111",
            "n1    ▒▒████────────▒▒████",
            " n2       ..▒▒██████",
        ];
        assert_eq!(shown[..6], expected, "{}", shown.join("\n"));
        for width in [1, 40, 80, 300] {
            let shown = lines(&forest(&[2, 30, 10_000]), "t7", width);
            assert!(shown.len() <= ROWS_MAX + 6);
            let drawn = &shown[1..shown.len() - 2];
            assert!(drawn.iter().all(|line| line.chars().count() <= width.max(16)), "{}", drawn.join("\n"));
        }
    }
}
