//! The end of a turn: one commit, and then the effects.

use std::collections::VecDeque;
use std::time::Duration;

use roost_core::effect::Effect;

use super::{Driver, DriverError, Due, Turn};
use crate::journal::{Batch, CommitError, Committed, Snapshot};

/// Records between two snapshots.
const SNAPSHOT_RECORDS: u64 = 50_000;
/// How long a commit that found no space waits for some.
const NO_SPACE_RETRY: Duration = Duration::from_secs(1);

impl Driver {
    /// Commits a turn and lets its effects go.
    pub(super) async fn close(&mut self, mut turn: Turn) -> Result<(), DriverError> {
        for due in &turn.due {
            if let Due::Effect(Effect::Spawn(spawn)) = due {
                turn.batch.load.push(spawn.worker);
            } else if let Due::Effect(Effect::RemoveFiles { workers, .. }) = due {
                turn.batch.forget.extend(workers);
            }
        }
        if !turn.batch.records.is_empty() {
            turn.batch.clock = Some(self.clock.mark());
            self.since_snapshot += turn.batch.records.len() as u64;
            if self.since_snapshot >= SNAPSHOT_RECORDS {
                turn.batch.snapshot = self.snapshot();
                self.since_snapshot = 0;
            }
        }
        let mut loaded: VecDeque<_> = self.commit(turn.batch).await?.loaded.into();
        for due in turn.due {
            self.perform(due, &mut loaded).await?;
        }
        self.show_progress(&turn.changed);
        self.note_idle();
        Ok(())
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
    async fn commit(&mut self, mut batch: Batch) -> Result<Committed, DriverError> {
        loop {
            match self.journal.commit(batch).await {
                Ok(committed) => return Ok(committed),
                Err(CommitError::NoSpace(again)) => {
                    if !self.ballast_released && self.journal.release_ballast() {
                        tracing::error!(
                            "the disk of the state directory is full: new work is refused, the ballast makes room for the rest"
                        );
                    } else {
                        tokio::time::sleep(NO_SPACE_RETRY).await;
                    }
                    self.ballast_released = true;
                    batch = *again;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
