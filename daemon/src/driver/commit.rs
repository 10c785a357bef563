//! The end of a turn: one commit, and then the effects.

use std::collections::VecDeque;

use roost_core::effect::{Effect, Reply};
use roost_proto::id::TreeId;
use roost_proto::limits::{EVENTS_PAGE_MAX, NO_SPACE_ANSWER};
use roost_proto::message::events::NumberedEvent;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Driver, DriverError, Due, Turn};
use crate::journal::{CommitError, Committed, Snapshot};
use crate::session::Arrival;
use crate::shelf::{Needs, Texts};

/// Records between two snapshots, at least.
const SNAPSHOT_RECORDS_MIN: u64 = 10_000;
/// And for each worker that the state holds: a snapshot writes all of them, and this keeps its share of a record's cost the same.
const SNAPSHOT_RECORDS_PER_WORKER: u64 = 4;
/// So many records later a snapshot that found no room is tried again.
const SNAPSHOT_RETRY_RECORDS: u64 = 1_000;

impl Driver {
    /// Commits a turn and lets its effects go. Sessions are heard while it does not fit on the disk.
    pub(super) async fn close(&mut self, mut turn: Turn, sessions: &mut mpsc::Receiver<Arrival>) -> Result<(), DriverError> {
        let due = std::mem::take(&mut turn.due);
        self.plan(&mut turn, due);
        if !turn.batch.records.is_empty() {
            turn.batch.clock = Some(self.clock.mark());
            self.since_snapshot += turn.batch.records.len() as u64;
            // What was forgotten is in the records until a snapshot is without it.
            if self.since_snapshot >= self.snapshot_records() || turn.batch.shrink {
                self.since_snapshot = 0;
                turn.batch.snapshot = self.snapshot();
            }
            // What a snapshot has in it is needed by nobody; the journal keeps what recovery may fall back on, and drops the rest
            // a little with every commit, so that its size has a bound however long the daemon runs.
            turn.batch.forget_records_to = Some(self.broker.state().seq);
        }
        let (Committed { loaded, texts, tasks, stream: parts }, stream) = self.commit(&mut turn, sessions).await?;
        self.texts = Texts { texts, tasks };
        let (mut loaded, mut parts) = (VecDeque::from(loaded), VecDeque::from(parts));
        for due in turn.due {
            match due {
                Due::Events(call, caller, read) => self.show_events(call, caller, &read, parts.pop_front().unwrap_or_default()),
                due @ Due::Effect(_)
                | due @ Due::DaemonStatus(_)
                | due @ Due::Metrics(_)
                | due @ Due::Watch(..)
                | due @ Due::Restart(_) => self.perform(due, &mut loaded).await?,
            }
        }
        self.texts = Texts::default();
        self.tell_followers(stream);
        self.show_progress(&turn.changed);
        self.note_idle();
        Ok(())
    }

    /// Adds effects to a turn, with what they need of the journal.
    pub(super) fn plan(&mut self, turn: &mut Turn, due: Vec<Due>) {
        for due in due {
            if let Due::Effect(Effect::Spawn(spawn)) = &due {
                turn.batch.load.push(spawn.worker);
            } else if let Due::Effect(Effect::RemoveFiles { tree, workers, .. }) = &due {
                turn.batch.forget.extend(workers);
                turn.batch.forget_trees.push(*tree);
            } else if let Due::Effect(Effect::Reply { reply: Reply::Swept(swept), .. }) = &due {
                self.journal_bytes_before = self.journal.bytes();
                // Of several calls in a row the last.
                turn.batch.shrink |= !swept.dry_run && !swept.more;
            } else if let Due::Effect(Effect::ForgetText(text)) = &due {
                turn.batch.forget_texts.push(text.0);
            } else if let Due::Events(_, caller, read) = &due {
                let tree = self.tree_to_read(*caller, read.tree).unwrap_or(TreeId(0));
                turn.batch.load_stream.push((tree, read.from.max(1), EVENTS_PAGE_MAX));
            }
            turn.due.push(due);
        }
        let needs = Needs::of(turn.due.iter().filter_map(|due| if let Due::Effect(effect) = due { Some(effect) } else { None }));
        turn.batch.load_texts = needs.texts.into_iter().collect();
        turn.batch.load_tasks = needs.tasks.into_iter().collect();
    }

    fn snapshot_records(&self) -> u64 {
        SNAPSHOT_RECORDS_MIN.max(self.broker.state().workers.len() as u64 * SNAPSHOT_RECORDS_PER_WORKER)
    }

    /// What is left of the room is for records: without a snapshot the next start only takes longer.
    fn put_off_snapshot(&mut self, why: &str) {
        self.since_snapshot = self.snapshot_records() - SNAPSHOT_RETRY_RECORDS;
        tracing::warn!(why, "no snapshot was written; it is tried again {SNAPSHOT_RETRY_RECORDS} records later");
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        if self.journal.space_is_low() {
            self.put_off_snapshot("the disk of the state directory is nearly full");
            return None;
        }
        let state = self.broker.state();
        match serde_json::to_vec(state) {
            Ok(bytes) => Some(Snapshot { seq: state.seq, bytes }),
            Err(error) => {
                tracing::error!(%error, "no snapshot could be made; the journal grows");
                None
            }
        }
    }

    /// Commits, however long the disk is full: what has happened must be written, and nothing of it has been told. Only new work does not
    /// have to be: it cannot be taken out of the turn any more, but the next broker begins without it. Hands back as well
    /// what followers are to be told, that of hellos in the meantime included.
    async fn commit(
        &mut self,
        turn: &mut Turn,
        sessions: &mut mpsc::Receiver<Arrival>,
    ) -> Result<(Committed, Vec<(TreeId, NumberedEvent)>), DriverError> {
        let mut refused_at = None;
        loop {
            let stream = if self.has_followers() { turn.batch.stream.clone() } else { Vec::new() };
            self.transcripts.draft(&mut turn.drafts, &turn.batch.records, &turn.batch.texts);
            let (begun, writes) = (Instant::now(), !turn.batch.records.is_empty());
            match self.journal.commit(std::mem::take(&mut turn.batch)).await {
                Ok(committed) => {
                    if writes {
                        self.metrics.committed(begun.elapsed());
                    }
                    self.transcripts.tell(std::mem::take(&mut turn.drafts));
                    return Ok((committed, stream));
                }
                Err(CommitError::NoSpace(again)) => {
                    turn.batch = *again;
                    if turn.batch.snapshot.take().is_some() {
                        self.put_off_snapshot("there is no room for it");
                        continue;
                    }
                    if !std::mem::replace(&mut self.ballast_released, true) {
                        tracing::error!("the disk of the state directory is full: new work is refused");
                        if self.journal.release_ballast() {
                            tracing::error!("the ballast makes room for the rest");
                            continue;
                        }
                    }
                    let now = Instant::now();
                    if turn.asks_for_more && now.duration_since(*refused_at.get_or_insert(now)) >= NO_SPACE_ANSWER {
                        return Err(DriverError::NoRoom);
                    }
                    self.wait_for_space(turn, sessions).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
