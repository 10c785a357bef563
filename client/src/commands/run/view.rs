//! What a person sees of `roost run` on standard error: progress while it runs, and why it failed.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use roost::proto::message::tree::Progress;

use super::session::Done;
use crate::output::{escape_line, note};

/// How much of a failed worker's standard error is passed on.
const STDERR_BYTES_MAX: u64 = 8 << 10;

const TICK: Duration = Duration::from_millis(250);

/// The line of progress; nothing when nobody looks.
pub(super) struct View {
    bar: Option<ProgressBar>,
}

impl View {
    pub(super) fn new(json: bool) -> Self {
        if json || !io::stderr().is_terminal() {
            return Self { bar: None };
        }
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style);
        // The clock in the line goes on between two changes of the tree.
        bar.enable_steady_tick(TICK);
        Self { bar: Some(bar) }
    }

    pub(super) fn is_visible(&self) -> bool {
        self.bar.is_some()
    }

    pub(super) fn show(&self, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        bar.set_message(text(progress));
        bar.tick();
    }

    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn text(progress: &Progress) -> String {
    let mut text = format!("live {}/{}  queued {}  done {}", progress.live, progress.cap, progress.queued, progress.completed);
    for (word, count) in [
        ("parked", progress.parked),
        ("blocked", progress.blocked),
        ("finishing", progress.finishing),
        ("failed", progress.failed),
        ("stopped", progress.stopped),
    ] {
        if count > 0 {
            text.push_str(&format!("  {word} {count}"));
        }
    }
    if progress.paused {
        text.push_str("  PAUSED");
    }
    text
}

/// Says why it did not complete: the end of its standard error, then one line.
pub(super) fn failure(done: &Done) {
    let end = &done.result.end;
    if end.outcome.is_success() {
        return;
    }
    if let Some(path) = &done.stderr_path
        && let Ok(tail) = tail(path)
        && !tail.is_empty()
    {
        note(&format!("roost: standard error of {} (its end; all of it is in {}):", escape_line(&end.name), escape_line(path)));
        let mut stderr = io::stderr();
        let written = stderr.write_all(&tail).and_then(|()| if tail.ends_with(b"\n") { Ok(()) } else { stderr.write_all(b"\n") });
        // Without standard error there is nobody to tell.
        written.ok();
    }
    note(&format!("roost: {} {}", escape_line(&end.name), escape_line(&end.outcome.to_string())));
}

fn tail(path: &str) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(STDERR_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_file_is_its_last_8_kib() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[b'a'; 10_000]).unwrap();
        file.write_all(b"end").unwrap();
        let tail = tail(file.path().to_str().unwrap()).unwrap();
        assert_eq!((tail.len(), tail.ends_with(b"aend")), (8 << 10, true));
    }
}
