//! The thread that writes transcripts. What it cannot write it counts, says so in the transcript as soon as it can, and marks the
//! execution as lossy. Nobody waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use roost_proto::id::{Epoch, ExecutionId};
use roost_proto::limits::NO_SPACE_RETRY;

use super::file::{Tail, Transcript};
use super::line::{Line, What, Why};
use super::queue::{Entry, Queue};
use super::{Bounds, LAST_LINE_BYTES, Places};

/// So many failed tries end a round of them.
const FAILED_MAX: usize = 16;

/// The thread's own.
#[derive(Debug)]
pub struct Writer {
    pub(super) queue: Arc<Queue>,
    pub(super) places: Places,
    pub(super) bounds: Bounds,
    /// Ends of files that are still written to.
    pub(super) tails: BTreeMap<ExecutionId, Tail>,
    /// What could not be written and is not told in its transcript yet.
    pub(super) losses: BTreeMap<ExecutionId, Loss>,
    /// Executions that are marked as lossy, and those that are to be.
    pub(super) marked: BTreeSet<ExecutionId>,
    pub(super) unmarked: BTreeSet<ExecutionId>,
    pub(super) retry_at: Option<Instant>,
    pub(super) is_failing: bool,
}

/// Lines that are lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    /// Of the first of them.
    at_ms: u64,
    epoch: Epoch,
    /// How many; 0 is unknown.
    lost: u64,
    why: Why,
}

impl Loss {
    fn line(self) -> Line {
        let lost = (self.lost > 0).then_some(self.lost);
        Line { at_ms: self.at_ms, epoch: self.epoch, what: What::Gap { lost, why: self.why } }
    }
}

impl Writer {
    /// Until nothing more comes. What cannot be written by then is not waited for.
    pub fn run(mut self) {
        loop {
            let patience = self.retry_at.map(|at| at.saturating_duration_since(Instant::now()));
            let Some(entries) = self.queue.take(patience) else { break };
            self.write(entries);
            if self.retry_at.is_some_and(|at| at <= Instant::now()) {
                self.try_again();
            }
        }
        self.try_again();
        self.queue.end();
    }

    /// One append for each execution that has something.
    fn write(&mut self, entries: Vec<Entry>) {
        let mut waiting: BTreeMap<ExecutionId, Vec<Line>> = BTreeMap::new();
        for entry in entries {
            match entry {
                Entry::Line(execution, line) => waiting.entry(execution).or_default().push(*line),
                Entry::Remove(execution) => {
                    waiting.remove(&execution);
                    self.remove(execution);
                }
            }
        }
        let has_room = waiting.is_empty() || self.has_room();
        for (execution, lines) in waiting {
            self.add(execution, &lines, has_room);
        }
    }

    fn add(&mut self, execution: ExecutionId, lines: &[Line], has_room: bool) {
        let overflowed = lines.iter().any(|line| matches!(line.what, What::Gap { .. }));
        let appended = if has_room { self.append(execution, lines) } else { Err(io::ErrorKind::StorageFull.into()) };
        match appended {
            Ok(()) => {
                let told = self.losses.remove(&execution).is_some();
                if overflowed || told {
                    self.mark(execution);
                }
                // After its end there is seldom more; then the file is looked at again.
                if lines.iter().any(|line| matches!(line.what, What::Outcome { .. })) {
                    self.tails.remove(&execution);
                }
                if self.is_failing && self.losses.is_empty() {
                    self.is_failing = false;
                    tracing::info!("transcripts are written again; their gaps are told in them");
                }
            }
            Err(error) => self.lose(execution, lines, &error),
        }
    }

    /// Appends lines, what was lost before them first. Beyond the size of one the last line says so.
    fn append(&mut self, execution: ExecutionId, lines: &[Line]) -> io::Result<()> {
        let first = lines.first().map(|line| (line.at_ms, line.epoch));
        let Some((at_ms, epoch)) = first.or_else(|| self.losses.get(&execution).map(|loss| (loss.at_ms, loss.epoch))) else {
            return Ok(());
        };
        let mut transcript = self.open(execution)?;
        if transcript.was_torn {
            self.losses.entry(execution).or_insert(Loss { at_ms, epoch, lost: 0, why: Why::Torn });
            self.mark(execution);
        }
        let lost = self.losses.get(&execution).map(|loss| loss.line());
        let full = Loss { at_ms, epoch, lost: 0, why: Why::Size }.line();
        let (mut bytes, mut is_full) = (Vec::new(), transcript.tail.is_full);
        for line in lost.iter().chain(lines) {
            if is_full {
                break;
            }
            let line = line.json();
            let len = transcript.tail.len + (bytes.len() + line.len()) as u64;
            is_full = len + LAST_LINE_BYTES > self.bounds.bytes_max;
            bytes.extend(if is_full { full.json() } else { line });
        }
        let appended = if bytes.is_empty() { Ok(()) } else { transcript.append(&bytes) };
        if appended.is_ok() {
            transcript.tail.is_full = is_full;
            self.tails.insert(execution, transcript.tail);
        } else {
            self.tails.remove(&execution);
        }
        if is_full {
            self.mark(execution);
        }
        appended
    }

    fn open(&self, execution: ExecutionId) -> io::Result<Transcript> {
        let path = self.places.transcript(execution);
        let known = self.tails.get(&execution).copied();
        match Transcript::open(&path, known) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().mode(0o700).create(&self.places.directory)?;
                Transcript::open(&path, None)
            }
            opened => opened,
        }
    }

    fn lose(&mut self, execution: ExecutionId, lines: &[Line], error: &io::Error) {
        let is_full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
        let why = if is_full { Why::NoSpace } else { Why::Io };
        if !std::mem::replace(&mut self.is_failing, true) {
            tracing::warn!(%execution, %error, "a transcript could not be written; what is missing will be told in it");
        }
        // A gap stands for what it counts, and nothing new for what is told again.
        let worth = |line: &Line| if let What::Gap { lost, .. } = line.what { lost.unwrap_or(0) } else { 1 };
        if let Some(first) = lines.first() {
            let loss = self.losses.entry(execution).or_insert(Loss { at_ms: first.at_ms, epoch: first.epoch, lost: 0, why });
            loss.lost += lines.iter().map(worth).sum::<u64>();
        }
        self.mark(execution);
        self.retry_at.get_or_insert(Instant::now() + NO_SPACE_RETRY);
    }

    /// Tells gaps of executions that may have nothing else to say any more.
    fn try_again(&mut self) {
        self.retry_at = None;
        for execution in std::mem::take(&mut self.unmarked) {
            self.mark(execution);
        }
        let executions: Vec<ExecutionId> = self.losses.keys().copied().collect();
        let has_room = executions.is_empty() || self.has_room();
        let mut failed = 0;
        for execution in executions.into_iter().filter(|_| has_room) {
            // Where many cannot be written the others wait as well: each would cost a try.
            if failed == FAILED_MAX {
                break;
            }
            self.add(execution, &[], true);
            failed += usize::from(self.losses.contains_key(&execution));
        }
        if !self.losses.is_empty() || !self.unmarked.is_empty() {
            self.retry_at = Some(Instant::now() + NO_SPACE_RETRY);
        }
    }

    /// An execution is lossy, for this broker and, by a file beside its others, for those after it.
    fn mark(&mut self, execution: ExecutionId) {
        self.queue.lossy(execution);
        if self.marked.contains(&execution) {
            return;
        }
        match OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.places.mark(execution)) {
            Ok(_) => drop(self.marked.insert(execution)),
            Err(error) => {
                tracing::debug!(%execution, %error, "that a transcript is lossy could not be written down");
                self.unmarked.insert(execution);
                self.retry_at.get_or_insert(Instant::now() + NO_SPACE_RETRY);
            }
        }
    }

    fn remove(&mut self, execution: ExecutionId) {
        self.tails.remove(&execution);
        self.losses.remove(&execution);
        self.marked.remove(&execution);
        self.unmarked.remove(&execution);
        self.queue.forget(execution);
        let paths: [PathBuf; 2] = [self.places.transcript(execution), self.places.mark(execution)];
        for path in paths {
            if let Err(error) = std::fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(path = %path.display(), %error, "a file that is not needed any more stays");
            }
        }
    }

    /// What is left of a full disk is for the journal. A file system that does not say how full it is counts as roomy.
    fn has_room(&self) -> bool {
        fs2::available_space(&self.places.directory).map_or(true, |free| free >= self.bounds.kept_free)
    }
}
