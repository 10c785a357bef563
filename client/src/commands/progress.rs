//! The line of progress of `run` and `wait` on a terminal: how many are where, who is slow, and for how long it may go on.

mod pace;

use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use roost::proto::id::TreeId;
use roost::rows::Rows;
use roost::{Config, Connection, EventReader};

use crate::commands::status::elapsed;
use crate::commands::watch::begin;
use crate::failure::Failure;
use crate::output::{escape_line, is_dumb};
use crate::values;
use pace::Pace;

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(250);
/// Whoever has run for longer than this is named.
const SLOW_MS: u64 = 10_000;

/// The line; nothing when nobody looks.
pub struct Line {
    bar: Option<ProgressBar>,
}

/// How a tree stands, in what the line says of it.
struct Standing {
    counts: String,
    /// Who runs longest, and since when.
    slow: Option<(String, u64)>,
    /// When it may be over.
    over_at_ms: Option<u64>,
}

impl Line {
    /// One, where somebody looks and wants it.
    pub fn new(wanted: bool) -> Self {
        if !wanted || is_dumb() || !io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        // The clock in the line goes on between two changes of the tree.
        bar.enable_steady_tick(TICK);
        Self { bar: Some(bar) }
    }

    /// Shows how a tree stands from now on. Progress is decoration: when it cannot be had, there is none.
    pub fn follow(&self, config: Config, tree: TreeId) {
        let Some(bar) = self.bar.clone() else { return };
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || watch(config, tree, &tell));
        std::thread::spawn(move || show(&bar, &told));
    }

    /// It goes away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The tree by its events. A root looks at it as an operator may.
fn watch(config: Config, tree: TreeId, tell: &Sender<Standing>) -> Option<()> {
    let mut connection = Connection::dial(config.without_identity()).ok()?;
    connection.start_no_more();
    let begun: Result<_, Failure> = begin(&mut connection, tree);
    let (mut rows, mut pace, next) = begun.map(|begun| (begun.rows, Pace::default(), begun.next)).ok()?;
    let mut reader = EventReader::new(connection, Some(tree), next, true);
    loop {
        if !reader.has_read() {
            tell.send(standing(&rows, &pace, values::now_ms())).ok()?;
        }
        let event = reader.next_event().ok()??;
        pace.take(&event);
        rows.take(&event);
    }
}

fn standing(rows: &Rows, pace: &Pace, now_ms: u64) -> Standing {
    let (counts, progress) = (rows.counts(), &rows.tree().progress);
    let mut text = format!("live {}/{}  queued {}  done {}", counts.live, progress.cap, counts.queued, counts.completed);
    for (word, count) in [
        ("parked", counts.parked),
        ("blocked", counts.blocked),
        ("finishing", counts.finishing),
        ("failed", counts.failed),
        ("stopped", counts.stopped),
    ] {
        if count > 0 {
            text.push_str(&format!("  {word} {count}"));
        }
    }
    if progress.paused {
        text.push_str("  PAUSED");
    }
    let slow = rows.longest_running().and_then(|row| Some((escape_line(&row.name), row.started_at_ms?)));
    let is_plain = counts.parked == 0 && !progress.paused;
    let left_ms = pace.left_ms(counts.live, counts.queued, progress.cap).filter(|_| is_plain);
    Standing { counts: text, slow, over_at_ms: left_ms.map(|left| now_ms + left) }
}

fn show(bar: &ProgressBar, told: &Receiver<Standing>) {
    let mut last = None;
    loop {
        match told.recv_timeout(SECOND) {
            Ok(standing) => last = Some(told.try_iter().last().unwrap_or(standing)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if bar.is_finished() {
            return;
        }
        if let Some(standing) = &last {
            bar.set_message(text(standing, values::now_ms()));
        }
    }
}

fn text(standing: &Standing, now_ms: u64) -> String {
    let mut text = standing.counts.clone();
    if let Some((name, since)) = &standing.slow
        && now_ms.saturating_sub(*since) >= SLOW_MS
    {
        text.push_str(&format!("  longest {name} {}", elapsed(now_ms - since)));
    }
    if let Some(left) = standing.over_at_ms.and_then(|at| at.checked_sub(now_ms)).filter(|left| *left >= 1_000) {
        text.push_str(&format!("  about {} left", elapsed(left / 1_000 * 1_000).replace(".0s", "s")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_many_who_is_slow_and_how_long() {
        let mut standing = Standing { counts: "live 1/2".into(), slow: Some(("w".into(), 1_000)), over_at_ms: None };
        assert_eq!(text(&standing, 5_000), "live 1/2");
        assert_eq!(text(&standing, 63_000), "live 1/2  longest w 1m02s");
        standing.over_at_ms = Some(75_400);
        assert_eq!(text(&standing, 63_000), "live 1/2  longest w 1m02s  about 12s left");
        // What should be over is not over: nothing is said of it any more.
        assert_eq!(text(&standing, 75_000), "live 1/2  longest w 1m14s");
    }
}
