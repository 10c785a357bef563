//! The journal of the simulated world: what is on disk, and what a crash would lose.

use std::collections::VecDeque;

use roost_core::event::Record;
use roost_core::state::State;
use roost_proto::id::TreeId;
use roost_proto::message::events::NumberedEvent;

use super::{Broken, Checked};

/// One event of the stream of a tree.
type Told = (TreeId, NumberedEvent);

/// Records with a durable mark, and the state that a replay of the durable ones gives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    records: Vec<Record>,
    durable: usize,
    /// How many records there were after each step since the last commit.
    steps: Vec<usize>,
    /// What each of these steps tells everybody.
    streams: VecDeque<Vec<Told>>,
    /// Kept by applying each record as it becomes durable: the replay of every committed prefix.
    replica: State,
}

impl Journal {
    pub(crate) fn append(&mut self, records: Vec<Record>, stream: Vec<Told>) {
        self.records.extend(records);
        self.streams.push_back(stream);
        self.steps.push(self.records.len());
    }

    /// Steps since the last commit: one commit is for all of them.
    pub(crate) fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Records up to this step of them.
    pub(crate) fn up_to(&self, step: usize) -> usize {
        let last = step.min(self.steps.len()).checked_sub(1);
        last.and_then(|last| self.steps.get(last)).copied().unwrap_or(self.durable)
    }

    /// What these steps, which are durable now, tell everybody.
    pub(crate) fn told(&mut self, steps: usize) -> Vec<Told> {
        let steps = steps.min(self.streams.len());
        self.streams.drain(..steps).flatten().collect()
    }

    pub(crate) fn durable(&self) -> &[Record] {
        &self.records[..self.durable]
    }

    /// Whether a crash would lose something.
    pub(crate) fn is_ahead(&self) -> bool {
        self.durable < self.records.len()
    }

    pub(crate) fn replica(&self) -> &State {
        &self.replica
    }

    /// Makes one more record durable.
    pub(crate) fn commit_next(&mut self) -> Checked<Option<Record>> {
        let Some(record) = self.records.get(self.durable).cloned() else {
            self.steps.clear();
            return Ok(None);
        };
        self.replica.apply(&record).map_err(|error| format!("the replay of a committed prefix fails: {error}"))?;
        self.durable += 1;
        Ok(Some(record))
    }

    /// A crash: what was not durable never was.
    pub(crate) fn lose(&mut self) {
        self.records.truncate(self.durable);
        self.streams.clear();
        self.steps.clear();
    }

    /// Replays everything that is durable from nothing, through its text form, and compares (I15).
    pub(crate) fn replay(&self) -> Checked {
        let mut state = State::default();
        for record in self.durable() {
            let text = serde_json::to_string(record).map_err(|error| error.to_string())?;
            let read: Record = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
            state.apply(&read).map_err(|error| error.to_string())?;
        }
        if state != self.replica {
            return Err("the journal read back gives another state (I15)".into());
        }
        let snapshot = serde_json::to_string(&state).map_err(|error| error.to_string())?;
        let back: State = serde_json::from_str(&snapshot).map_err(|error: serde_json::Error| -> Broken { error.to_string() })?;
        if back == state { Ok(()) } else { Err("a snapshot read back is another state (I15)".into()) }
    }
}
