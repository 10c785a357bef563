//! Which lines a picture has, and what stands in their columns. Pure; it knows no kind of picture.

use std::collections::BTreeMap;

use super::spans::{Span, State, Step, Timeline, WorkerSpans};
use crate::outline;
use crate::values;

/// More lines than this nobody scrolls through; with more workers the deeper ones are folded.
pub const ROWS_MAX: usize = 200;

/// One line of a picture.
pub enum Row<'a> {
    /// A worker of its own.
    Worker(&'a WorkerSpans),
    /// All of these depths, from and to.
    Folded { depths: (u32, u32), workers: Vec<&'a WorkerSpans> },
}

/// At most so many lines: workers below their leads, depth by depth as long as they fit; then a line for each depth, and the last
/// one is for all that are deeper still.
pub fn rows(timeline: &Timeline, rows_max: usize) -> Vec<Row<'_>> {
    let mut by_depth: BTreeMap<u32, Vec<&WorkerSpans>> = BTreeMap::new();
    for worker in &timeline.workers {
        by_depth.entry(worker.depth).or_default().push(worker);
    }
    let (mut own, mut kept) = (0, 0);
    for (depth, workers) in &by_depth {
        // While something is left over, one line stays for that.
        if own + workers.len() > rows_max.saturating_sub(usize::from(own + workers.len() < timeline.workers.len())) {
            break;
        }
        own += workers.len();
        kept = *depth;
    }
    let mut rows: Vec<Row<'_>> = in_order(timeline).filter(|worker| worker.depth <= kept).map(Row::Worker).collect();
    let room = rows_max.saturating_sub(own);
    for (index, (depth, mut folded)) in by_depth.into_iter().filter(|(depth, _)| *depth > kept).enumerate() {
        match rows.last_mut() {
            Some(Row::Folded { depths, workers }) if index >= room => {
                depths.1 = depth;
                workers.append(&mut folded);
            }
            _ => rows.push(Row::Folded { depths: (depth, depth), workers: folded }),
        }
    }
    rows
}

/// Each below its lead.
pub fn in_order(timeline: &Timeline) -> impl Iterator<Item = &WorkerSpans> {
    outline::walk(&timeline.workers, WorkerSpans::place).into_iter().map(|(_, worker)| worker)
}

/// The time of a picture, cut into columns of the same width.
#[derive(Clone, Copy)]
pub struct Columns {
    from_ms: u64,
    width_ms: f64,
    pub count: usize,
}

impl Columns {
    pub fn new(timeline: &Timeline, count: usize) -> Self {
        let all_ms = (timeline.until_ms - timeline.from_ms).max(1) as f64;
        Self { from_ms: timeline.from_ms, width_ms: all_ms / count as f64, count }
    }

    /// Where a time is, in columns.
    pub fn at(&self, at_ms: u64) -> f64 {
        at_ms.saturating_sub(self.from_ms) as f64 / self.width_ms
    }

    /// What a worker did for the most of each column.
    pub fn states(&self, spans: &[Span]) -> Vec<Option<State>> {
        let mut shares = vec![[0.0; State::ALL.len()]; self.count];
        for span in spans {
            self.share(span, |column, share| shares[column][span.state as usize] += share);
        }
        let most = |shares: &[f64; State::ALL.len()]| {
            let (state, share) = State::ALL.into_iter().zip(shares).max_by(|a, b| a.1.total_cmp(b.1))?;
            (*share > 0.0).then_some(state)
        };
        shares.iter().map(most).collect()
    }

    /// How many of these workers had a slot, on the average of each column.
    pub fn live(&self, workers: &[&WorkerSpans]) -> Vec<f64> {
        let mut live = vec![0.0; self.count];
        for span in workers.iter().flat_map(|worker| &worker.spans).filter(|span| span.live) {
            self.share(span, |column, share| live[column] += share);
        }
        live
    }

    /// The most that it was in each column.
    pub fn most(&self, steps: &[Step]) -> Vec<u32> {
        let mut most = vec![0; self.count];
        for (index, step) in steps.iter().enumerate() {
            let from = self.at(step.at_ms);
            let until = steps.get(index + 1).map_or(self.count as f64, |next| self.at(next.at_ms));
            let columns = from.floor() as usize..(until.ceil() as usize).min(self.count);
            most[columns.start.min(columns.end)..columns.end].iter_mut().for_each(|most| *most = step.count.max(*most));
        }
        most
    }

    fn share(&self, span: &Span, mut each: impl FnMut(usize, f64)) {
        let (from, until) = (self.at(span.from_ms), self.at(span.until_ms).min(self.count as f64));
        for column in from.floor() as usize..until.ceil() as usize {
            each(column, until.min(column as f64 + 1.0) - from.max(column as f64));
        }
    }
}

/// A length of time for people.
pub fn length(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => {
            let digits = format!("{}.{:03}", ms / 1_000, ms % 1_000);
            format!("{} s", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        120_000..7_200_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000).replace(" 0 s", ""),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000).replace(" 0 min", ""),
    }
}

/// Times to write at an axis: round ones, at most so many, as milliseconds from the beginning.
pub fn ticks(all_ms: u64, ticks_max: u64) -> Vec<u64> {
    const ROUND: [u64; 24] = [
        1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000,
        1_800_000, 3_600_000, 7_200_000, 21_600_000,
    ];
    let least = all_ms / ticks_max.max(1) + 1;
    let last = ROUND[ROUND.len() - 1];
    let step = ROUND.into_iter().find(|step| *step >= least).unwrap_or_else(|| least.div_ceil(last) * last);
    (0..=all_ms / step).map(|tick| tick * step).collect()
}

/// A label that may have so many characters.
pub fn shortened(label: &str, most: usize) -> String {
    if label.chars().count() <= most { label.to_owned() } else { format!("{}…", label.chars().take(most - 1).collect::<String>()) }
}

/// What a folded line is called.
pub fn folded((from, to): (u32, u32), workers: usize) -> String {
    let depths = if from == to { format!("depth {from}") } else { format!("depths {from}-{to}") };
    format!("{depths}: {}", values::counted(workers as u64, "worker"))
}

/// One line above a picture.
pub fn headline(timeline: &Timeline, tree: &str) -> String {
    let workers = values::counted(timeline.workers.len() as u64, "worker");
    let caps: Vec<String> = timeline.cap.iter().take(4).map(|step| step.count.to_string()).collect();
    let cap = match caps.len() {
        0 => String::new(),
        4.. => ", cap changing".into(),
        _ => format!(", cap {}", caps.join(" then ")),
    };
    format!("tree {tree}: {workers} in {}, at most {} live at once{cap}", length(timeline.until_ms - timeline.from_ms), timeline.live_max)
}

#[cfg(test)]
pub use tests::forest;

#[cfg(test)]
mod tests {
    use super::super::spans::stream;
    use roost::proto::id::WorkerId;

    use super::super::spans::timeline;
    use super::*;

    /// So many at each depth, the leads in turn.
    pub fn forest(widths: &[u64]) -> Timeline {
        let mut workers = Vec::new();
        let (mut id, mut leads) = (0, vec![None]);
        for (depth, width) in (1..).zip(widths) {
            let ids: Vec<u64> = (id + 1..=id + width).collect();
            for (place, id) in ids.iter().enumerate() {
                let span = Span { state: State::Running, from_ms: *id % 100, until_ms: 1_000, live: true };
                let (name, lead) = (format!("n<{id}>"), leads[place % leads.len()]);
                let worker = WorkerId(*id);
                workers.push(WorkerSpans { name, worker, lead, depth, executions: 1, outcome: None, spans: vec![span] });
            }
            id += width;
            leads = ids.into_iter().map(|id| Some(WorkerId(id))).collect();
        }
        let cap = vec![Step { at_ms: 0, count: 2 }];
        Timeline { from_ms: 0, until_ms: 1_000, cap, live: vec![Step { at_ms: 0, count: 1 }], live_max: 1, workers }
    }

    fn shape(timeline: &Timeline, rows_max: usize) -> (usize, Vec<(u32, u32, usize)>) {
        let rows = rows(timeline, rows_max);
        assert!(rows.len() <= rows_max, "{} of {rows_max}", rows.len());
        let folded = rows.iter().filter_map(|row| match row {
            Row::Worker(_) => None,
            Row::Folded { depths, workers } => Some((depths.0, depths.1, workers.len())),
        });
        let folded: Vec<_> = folded.collect();
        (rows.len() - folded.len(), folded)
    }

    #[test]
    fn what_does_not_fit_is_folded_by_depth_and_nobody_is_left_out() {
        assert_eq!(shape(&forest(&[1, 3, 5]), 9), (9, vec![]));
        assert_eq!(shape(&forest(&[1, 3, 6]), 9), (4, vec![(3, 3, 6)]));
        assert_eq!(shape(&forest(&[1, 3, 6, 2]), 6), (4, vec![(3, 3, 6), (4, 4, 2)]));
        assert_eq!(shape(&forest(&[1, 3, 6, 2, 2]), 6), (4, vec![(3, 3, 6), (4, 5, 4)]));
        assert_eq!(shape(&forest(&[10_000]), 50), (0, vec![(1, 1, 10_000)]));
        assert_eq!(shape(&forest(&[1; 10_000]), 50), (49, vec![(50, 10_000, 9_951)]));
    }

    #[test]
    fn a_column_shows_what_took_the_most_of_it() {
        let lines = [(0, "created", 1), (10, "started", 1), (12, "running", 1), (30, "parked", 1), (40, "ended", 1)];
        let drawn = timeline(&stream(&lines), Some(1), 0);
        let columns = Columns::new(&drawn, 4);
        let states = columns.states(&drawn.workers[0].spans);
        assert_eq!(states, [State::Queued, State::Running, State::Running, State::Parked].map(Some));
        assert_eq!(columns.most(&drawn.live), [0, 1, 1, 0]);
        assert_eq!(columns.live(&[&drawn.workers[0]]), [0.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn an_axis_has_round_times() {
        assert_eq!(ticks(190, 8), [0, 50, 100, 150]);
        assert_eq!(ticks(0, 8), [0]);
        assert!(ticks(u64::MAX / 2, 8).len() <= 9);
        assert_eq!([length(250), length(1_500), length(180_000), length(7_260_000)], ["250 ms", "1.5 s", "3 min", "2 h 1 min"]);
    }
}
