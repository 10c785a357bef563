//! What waits to be written: bounded in lines and bytes. Who puts in never waits; what finds no room is counted where it would stand.
//!
//! The lock is held for moving values and never over a look at a disk.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roost_proto::id::ExecutionId;

use super::Bounds;
use super::line::{Line, What, Why};

/// The most entries that are taken out at once.
const TAKEN_MAX: usize = 512;
/// And about the most bytes.
const TAKEN_BYTES_MAX: usize = 4 << 20;

/// One of them.
#[derive(Debug)]
pub(super) enum Entry {
    /// A line of this execution; a gap stands for what found no room.
    Line(ExecutionId, Box<Line>),
    /// Nothing of this execution is needed any more.
    Remove(ExecutionId),
}

/// The queue, and what is known to be lossy.
#[derive(Debug)]
pub(super) struct Queue {
    bounds: Bounds,
    inner: Mutex<Inner>,
    arrived: Condvar,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    /// How many were taken out so far: an entry's number less this is its index.
    taken: u64,
    bytes: usize,
    /// Numbers of gaps that grow while their execution's lines find no room.
    gaps: BTreeMap<ExecutionId, u64>,
    lossy: BTreeSet<ExecutionId>,
    is_closed: bool,
    has_ended: bool,
}

impl Queue {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, inner: Mutex::default(), arrived: Condvar::new(), ended: Condvar::new() }
    }

    /// Puts lines in, or counts them as lost.
    pub(super) fn put(&self, lines: impl IntoIterator<Item = (ExecutionId, Line)>) {
        let mut inner = self.inner();
        for (execution, line) in lines {
            let size = line.size();
            // One that is larger than the whole room is taken when there is nothing else.
            let fits = inner.entries.len() < self.bounds.lines_waiting_max
                && (inner.bytes == 0 || inner.bytes + size <= self.bounds.bytes_waiting_max);
            if fits {
                inner.gaps.remove(&execution);
                inner.bytes += size;
                inner.entries.push_back(Entry::Line(execution, Box::new(line)));
            } else {
                inner.lose(execution, &line);
            }
        }
        self.arrived.notify_one();
    }

    /// After everything of this execution: its files go.
    pub(super) fn remove(&self, execution: ExecutionId) {
        let mut inner = self.inner();
        inner.gaps.remove(&execution);
        inner.entries.push_back(Entry::Remove(execution));
        self.arrived.notify_one();
    }

    /// Takes out the next ones; waits for them, if need be, for at most so long. `None`: there will be no more.
    pub(super) fn take(&self, patience: Option<Duration>) -> Option<Vec<Entry>> {
        let is_idle = |inner: &mut Inner| inner.entries.is_empty() && !inner.is_closed;
        let inner = self.inner();
        let mut inner = match patience {
            None => self.arrived.wait_while(inner, is_idle).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => self.arrived.wait_timeout_while(inner, patience, is_idle).unwrap_or_else(PoisonError::into_inner).0,
        };
        if inner.entries.is_empty() && inner.is_closed {
            return None;
        }
        Some(inner.take())
    }

    /// Notes that a part of this execution's transcript is missing.
    pub(super) fn lossy(&self, execution: ExecutionId) {
        self.inner().lossy.insert(execution);
    }

    /// Its transcript is gone, and with it what was missing.
    pub(super) fn forget(&self, execution: ExecutionId) {
        self.inner().lossy.remove(&execution);
    }

    /// Whether a part of it is known to be missing.
    pub(super) fn is_lossy(&self, execution: ExecutionId) -> bool {
        self.inner().lossy.contains(&execution)
    }

    /// Nothing more is put in. Waits for at most so long until all of it is written; says whether it is.
    pub(super) fn close(&self, patience: Duration) -> bool {
        let mut inner = self.inner();
        inner.is_closed = true;
        self.arrived.notify_one();
        self.ended.wait_timeout_while(inner, patience, |inner| !inner.has_ended).unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// The writer is through, or was never there.
    pub(super) fn end(&self) {
        self.inner().has_ended = true;
        self.ended.notify_all();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can be left half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn lose(&mut self, execution: ExecutionId, line: &Line) {
        self.lossy.insert(execution);
        let index = self.gaps.get(&execution).and_then(|number| usize::try_from(number.checked_sub(self.taken)?).ok());
        if let Some(Entry::Line(_, gap)) = index.and_then(|index| self.entries.get_mut(index))
            && let What::Gap { lost: Some(lost), .. } = &mut gap.what
        {
            *lost += 1;
            return;
        }
        self.gaps.insert(execution, self.taken + self.entries.len() as u64);
        let gap = Line { at_ms: line.at_ms, epoch: line.epoch, what: What::Gap { lost: Some(1), why: Why::Overflow } };
        self.entries.push_back(Entry::Line(execution, Box::new(gap)));
    }

    fn take(&mut self) -> Vec<Entry> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        while taken.len() < TAKEN_MAX
            && bytes < TAKEN_BYTES_MAX
            && let Some(entry) = self.entries.pop_front()
        {
            if let Entry::Line(_, line) = &entry
                && !matches!(line.what, What::Gap { .. })
            {
                bytes += line.size();
            }
            taken.push(entry);
        }
        self.taken += taken.len() as u64;
        self.bytes -= bytes;
        if self.entries.is_empty() {
            self.gaps.clear();
        }
        taken
    }
}
