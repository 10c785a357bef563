//! The end of a turn: one commit, and then the effects.

use std::collections::VecDeque;

use roost_core::effect::Effect;
use tokio::sync::mpsc;

use super::{Driver, DriverError, Due, Turn};
use crate::journal::{CommitError, Committed, Snapshot};
use crate::session::FromSession;

/// Records between two snapshots, at least.
const SNAPSHOT_RECORDS_MIN: u64 = 10_000;
/// And for each worker that the state holds: a snapshot writes all of them, and this keeps its share of a record's cost the same.
const SNAPSHOT_RECORDS_PER_WORKER: u64 = 4;

impl Driver {
    /// Commits a turn and lets its effects go. Sessions are heard while it does not fit on the disk.
    pub(super) async fn close(&mut self, mut turn: Turn, sessions: Option<&mut mpsc::Receiver<FromSession>>) -> Result<(), DriverError> {
        let due = std::mem::take(&mut turn.due);
        self.plan(&mut turn, due);
        if !turn.batch.records.is_empty() {
            turn.batch.clock = Some(self.clock.mark());
            self.since_snapshot += turn.batch.records.len() as u64;
            let held = self.broker.state().workers.len() as u64;
            if self.since_snapshot >= SNAPSHOT_RECORDS_MIN.max(held * SNAPSHOT_RECORDS_PER_WORKER) {
                turn.batch.snapshot = self.snapshot();
                self.since_snapshot = 0;
            }
            // What a snapshot has in it is needed by nobody; the journal keeps what recovery may fall back on, and drops the rest
            // a little with every commit, so that its size has a bound however long the daemon runs.
            turn.batch.forget_records_to = Some(self.broker.state().seq);
        }
        let mut loaded: VecDeque<_> = self.commit(&mut turn, sessions).await?.loaded.into();
        for due in turn.due {
            self.perform(due, &mut loaded).await?;
        }
        self.show_progress(&turn.changed);
        self.note_idle();
        Ok(())
    }

    /// Adds effects to a turn, with what they need of the journal.
    pub(super) fn plan(&self, turn: &mut Turn, due: Vec<Due>) {
        for due in due {
            if let Due::Effect(Effect::Spawn(spawn)) = &due {
                turn.batch.load.push(spawn.worker);
            } else if let Due::Effect(Effect::RemoveFiles { workers, .. }) = &due {
                turn.batch.forget.extend(workers);
            }
            turn.due.push(due);
        }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let state = self.broker.state();
        match serde_json::to_vec(state) {
            Ok(bytes) => Some(Snapshot { seq: state.seq, bytes }),
            Err(error) => {
                tracing::error!(%error, "no snapshot could be made; the journal grows");
                None
            }
        }
    }

    /// Commits, however long the disk is full: what has happened must be written, and nothing of it has been told.
    async fn commit(&mut self, turn: &mut Turn, mut sessions: Option<&mut mpsc::Receiver<FromSession>>) -> Result<Committed, DriverError> {
        loop {
            match self.journal.commit(std::mem::take(&mut turn.batch)).await {
                Ok(committed) => return Ok(committed),
                Err(CommitError::NoSpace(again)) => {
                    turn.batch = *again;
                    if !self.ballast_released && self.journal.release_ballast() {
                        tracing::error!(
                            "the disk of the state directory is full: new work is refused, the ballast makes room for the rest"
                        );
                    } else {
                        self.wait_for_space(turn, sessions.as_deref_mut()).await?;
                    }
                    self.ballast_released = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
