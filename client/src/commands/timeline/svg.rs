//! The timeline as a picture: SVG by itself, or in a page. Pure.

use std::fmt::Write as _;

use super::rows::{self, Columns, ROWS_MAX, Row};
use super::spans::{Span, State, Step, Timeline, WorkerSpans};
use crate::output::escape_line;

/// A line of more spans than this shows what took the most of each column.
const SPANS_MAX: usize = 100;
const COLUMNS: usize = 400;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 800.0;
const GAUGE: f64 = 60.0;
const TOP: f64 = 58.0;
const ROW: f64 = 14.0;

const STYLE: &str = "
text{font:11px system-ui,sans-serif;fill:#1f2328}.dim{fill:#656d76}.end{text-anchor:end}.back{fill:#fff}.grid{stroke:#d0d7de;stroke-width:.5}
.queued{fill:#afb8c1}.starting{fill:#d4a72c}.running{fill:#2da44e}.waiting{fill:#54aeff}.blocked{fill:#8250df}.parked{fill:#0969da}
.stopping{fill:#cf222e}.finishing{fill:#6e7781}.live{fill:#2da44e;fill-opacity:.45}.cap{stroke:#cf222e;stroke-width:1.5;fill:none;stroke-dasharray:5 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.dim{fill:#9198a1}.back{fill:#0d1117}.grid{stroke:#3d444d}.queued{fill:#656c76}
.starting{fill:#e3b341}.running{fill:#3fb950}.waiting{fill:#388bfd}.blocked{fill:#bc8cff}.parked{fill:#58a6ff}.stopping{fill:#f85149}
.finishing{fill:#9198a1}.live{fill:#3fb950}.cap{stroke:#f85149}}
";

/// A page with the picture in it.
pub fn html(timeline: &Timeline, tree: &str) -> String {
    let title = escape(&rows::headline(timeline, tree));
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title>\n\
         <body>\n{}</body></html>\n",
        svg(timeline, tree)
    )
}

/// The picture.
pub fn svg(timeline: &Timeline, tree: &str) -> String {
    let rows = rows::rows(timeline, ROWS_MAX);
    let is_folded = rows.iter().any(|row| matches!(row, Row::Folded { .. }));
    let first = TOP + GAUGE + 20.0;
    let (width, height) = (LEFT + WIDTH + 20.0, first + ROW * rows.len() as f64 + 26.0);
    let mut picture = Picture { timeline, text: String::new() };
    picture
        .add(&format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">"));
    picture.add(&format!("<style>{STYLE}</style>\n<rect class=\"back\" width=\"{width}\" height=\"{height}\"/>"));
    picture.words(10.0, 18.0, "", &rows::headline(timeline, tree));
    picture.legend();
    picture.axis(height - 22.0);
    picture.gauge();
    for (index, row) in rows.iter().enumerate() {
        let y = first + ROW * index as f64;
        match row {
            Row::Worker(worker) => picture.worker(worker, y),
            Row::Folded { depths, workers } => picture.folded(*depths, workers, y),
        }
    }
    let note = if is_folded { "Deep workers are folded, a line for each depth: how many of them are live." } else { "" };
    picture.words(10.0, height - 8.0, "dim", note);
    picture.add("</svg>");
    picture.text
}

struct Picture<'a> {
    timeline: &'a Timeline,
    text: String,
}

impl Picture<'_> {
    fn add(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }

    fn words(&mut self, x: f64, y: f64, class: &str, words: &str) {
        self.add(&format!("<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>", escape(words)));
    }

    /// From and to in parts of the width.
    fn bar(&mut self, (from, to): (f64, f64), (y, height): (f64, f64), class: &str, about: &str) {
        let (x, width) = (LEFT + WIDTH * from, (WIDTH * (to - from)).max(0.4));
        let title = if about.is_empty() { String::new() } else { format!("<title>{}</title>", escape(about)) };
        self.add(&format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"{class}\">{title}</rect>"));
    }

    fn legend(&mut self) {
        for (index, state) in State::ALL.into_iter().enumerate() {
            let x = 10.0 + 88.0 * index as f64;
            let (top, height) = thickness(state, is_usually_live(state));
            self.add(&format!("<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"{height}\" class=\"{}\"/>", 26.0 + top, state.word()));
            self.words(x + 18.0, 35.0, "dim", &state.word());
        }
        self.words(10.0 + 88.0 * State::ALL.len() as f64, 35.0, "dim", "(thick: has a slot)");
    }

    fn axis(&mut self, bottom: f64) {
        let all_ms = self.timeline.until_ms - self.timeline.from_ms;
        for tick in rows::ticks(all_ms, 8) {
            let x = LEFT + WIDTH * tick as f64 / all_ms.max(1) as f64;
            self.add(&format!("<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" class=\"grid\"/>"));
            self.words(x + 2.0, TOP - 4.0, "dim", &rows::length(tick));
        }
    }

    /// How many are live, and the cap.
    fn gauge(&mut self) {
        let caps = self.timeline.cap.iter().map(|step| step.count);
        let most = caps.chain([self.timeline.live_max, 1]).max().unwrap_or(1);
        // Room above the cap shows that nothing stands out of it.
        let y = |count: u32| TOP + GAUGE * (1.0 - f64::from(count) / (f64::from(most) * 1.15));
        let columns = Columns::new(self.timeline, 800);
        let live: Vec<(f64, u32)> = runs(&columns.most(&self.timeline.live)).map(|(from, _, count)| (from as f64 / 800.0, count)).collect();
        self.line("live", &live, y, true);
        let cap: Vec<(f64, u32)> = if self.timeline.cap.len() > COLUMNS {
            runs(&columns.most(&self.timeline.cap)).map(|(from, _, count)| (from as f64 / 800.0, count)).collect()
        } else {
            self.timeline.cap.iter().map(|step: &Step| (columns.at(step.at_ms) / 800.0, step.count)).collect()
        };
        self.line("cap", &cap, y, false);
        if let Some(last) = self.timeline.cap.last() {
            self.words(10.0, y(last.count) + 4.0, "", &format!("cap {}", last.count));
        }
        self.words(10.0, TOP + GAUGE, "", "live processes");
    }

    /// Steps as a line, or as an area.
    fn line(&mut self, class: &str, steps: &[(f64, u32)], y: impl Fn(u32) -> f64, is_area: bool) {
        let Some(first) = steps.first() else { return };
        let mut path = format!("M{:.1} {:.1}", LEFT + WIDTH * first.0, if is_area { y(0) } else { y(first.1) });
        for (index, (from, count)) in steps.iter().enumerate() {
            let to = steps.get(index + 1).map_or(1.0, |next| next.0);
            let (from, to) = (LEFT + WIDTH * from, LEFT + WIDTH * to);
            // Writing to a String cannot fail.
            write!(path, "L{from:.1} {0:.1}H{to:.1}", y(*count)).ok();
        }
        let end = if is_area { format!("V{:.1}Z", y(0)) } else { String::new() };
        self.add(&format!("<path d=\"{path}{end}\" class=\"{class}\"/>"));
    }

    fn worker(&mut self, worker: &WorkerSpans, y: f64) {
        let indent = f64::from(worker.depth.saturating_sub(1).min(8)) * 8.0;
        self.words(10.0 + indent, y + 10.0, "", &rows::shortened(&worker.name, 24 - (indent / 6.0) as usize));
        let columns = Columns::new(self.timeline, COLUMNS);
        let part = |column: f64| column / COLUMNS as f64;
        if worker.spans.len() > SPANS_MAX {
            let states = columns.states(&worker.spans);
            for (from, to, state) in runs(&states).filter_map(|(from, to, state)| Some((from, to, state?))) {
                let (top, height) = thickness(state, is_usually_live(state));
                self.bar((part(from as f64), part(to as f64)), (y + top, height), &state.word(), "");
            }
            return;
        }
        for span in &worker.spans {
            let Span { state, from_ms, until_ms, live } = *span;
            let (top, height) = thickness(state, live);
            let about = format!("{}: {} {}", worker.name, state.word(), rows::length(until_ms - from_ms));
            self.bar((part(columns.at(from_ms)), part(columns.at(until_ms))), (y + top, height), &state.word(), &about);
        }
    }

    fn folded(&mut self, depths: (u32, u32), workers: &[&WorkerSpans], y: f64) {
        self.words(10.0, y + 10.0, "dim", &rows::folded(depths, workers.len()));
        let live = Columns::new(self.timeline, COLUMNS).live(workers);
        let most = live.iter().copied().fold(1.0, f64::max);
        let heights: Vec<u32> = live.into_iter().map(|live| (live / most * 10.0).ceil() as u32).collect();
        for (from, to, height) in runs(&heights).filter(|(_, _, height)| *height > 0) {
            let (from, to) = (from as f64 / COLUMNS as f64, to as f64 / COLUMNS as f64);
            self.bar((from, to), (y + 11.0 - f64::from(height), f64::from(height)), "running", "");
        }
    }
}

/// Who has a slot is drawn thick: where in the line, and how high.
fn thickness(state: State, live: bool) -> (f64, f64) {
    match (live, state) {
        (true, _) => (1.0, 10.0),
        (false, State::Queued) => (5.0, 2.0),
        (false, _) => (4.5, 3.0),
    }
}

fn is_usually_live(state: State) -> bool {
    matches!(state, State::Starting | State::Running | State::Waiting | State::Stopping)
}

/// Neighbours that are equal, as one: from, to, what.
fn runs<T: Copy + PartialEq>(cells: &[T]) -> impl Iterator<Item = (usize, usize, T)> + '_ {
    let mut from = 0;
    cells.chunk_by(|a, b| a == b).map(move |run| {
        let begin = from;
        from += run.len();
        (begin, from, run[0])
    })
}

/// A text of somebody else, as text of XML.
fn escape(text: &str) -> String {
    escape_line(text).chars().fold(String::with_capacity(text.len()), |mut safe, c| {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // These are no characters of XML.
            '\u{fffe}' | '\u{ffff}' => safe.push('?'),
            c => safe.push(c),
        }
        safe
    })
}

#[cfg(test)]
mod tests {
    use super::super::rows::forest;
    use super::*;

    #[test]
    fn a_name_is_text_and_never_a_part_of_the_picture() {
        let mut timeline = forest(&[1]);
        timeline.workers[0].name = "<script>&\"'\u{1b}\u{ffff}".into();
        for text in [svg(&timeline, "t1"), html(&timeline, "t1")] {
            assert!(!text.contains("<script") && !text.contains('\u{1b}') && !text.contains('\u{ffff}'), "{text}");
            assert!(text.contains("&lt;script&gt;&amp;&quot;&#39;\\x1b?"), "{text}");
            assert!(text.contains("prefers-color-scheme:dark"));
        }
    }

    #[test]
    fn ten_thousand_workers_are_a_small_file_that_says_what_is_folded() {
        for widths in [&[1, 20, 400, 9_579][..], &[10_000], &[1; 10_000]] {
            let text = svg(&forest(widths), "t1");
            assert!(text.len() < 400_000, "{} bytes", text.len());
            assert!(text.contains("are folded"));
        }
        let mut busy = forest(&[200]);
        for worker in &mut busy.workers {
            worker.spans =
                (0..1_000).map(|at| Span { state: State::ALL[at as usize % 8], from_ms: at, until_ms: at + 1, live: false }).collect();
        }
        assert!(svg(&busy, "t1").len() < 8_000_000);
    }
}
