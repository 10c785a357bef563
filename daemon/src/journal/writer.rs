//! The thread that owns the connection: commits what is asked for, works the write-ahead log off when nobody asks, and ends for good at
//! the first error that is not a full disk. It does not know who asks.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use roost_proto::limits::{COMMITS_PER_TRANSACTION_MAX, LOG_BACKLOG_BYTES_MAX};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use super::batch::{Batch, Committed};
use super::environments::Environments;
use super::error::{CommitError, Meaning, meaning};
use super::head::{self, Head};
use super::load;
use super::open::checkpoint;
use super::write::{self, Reach};

/// About what a small commit adds to the write-ahead log: four pages.
const COMMIT_BYTES: usize = 16 << 10;

/// A file is written anew when at least this part of it is free: an eighth.
const SHRINK_SHARE: u64 = 8;
/// And when no more than this is in use.
const SHRINK_BYTES_MAX: u64 = 256 << 20;

type Reply = oneshot::Sender<Result<Committed, CommitError>>;

/// What the thread is asked for.
#[derive(Debug)]
pub(super) enum Request {
    /// One batch.
    Commit { batch: Box<Batch>, reply: Reply },
    /// To fall over.
    #[cfg(test)]
    Panic,
}

/// The thread's own.
#[derive(Debug)]
pub(super) struct Writer {
    connection: Connection,
    reach: Reach,
    environments: Environments,
    /// Why it ended, for those who still ask. Set before any reply is dropped.
    broken: Arc<OnceLock<String>>,
    idle: Duration,
    /// About how much lies in the write-ahead log.
    backlog_bytes: usize,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        head: Head,
        good_snapshot: Option<u64>,
        broken: Arc<OnceLock<String>>,
        idle: Duration,
    ) -> Self {
        connection.set_prepared_statement_cache_capacity(32);
        Self { connection, reach: Reach { head, good_snapshot }, environments: Environments::default(), broken, idle, backlog_bytes: 0 }
    }

    /// The thread: until the handle is gone, or the journal broken.
    pub(super) fn run(mut self, mut inbox: mpsc::Receiver<Request>) {
        let served = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| format!("its thread has no timer: {error}"))
            .and_then(|runtime| runtime.block_on(self.serve(&mut inbox)));
        match served {
            Ok(()) => {
                if let Err((_, error)) = self.connection.close() {
                    tracing::warn!(%error, "the journal was not closed in order; what is committed is on disk");
                }
            }
            Err(why) => {
                // What may or may not have reached the disk is judged at the next opening, from what is there then.
                if let Err(error) = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
                    tracing::warn!(%error, "closing the broken journal may still write to it");
                }
                tracing::error!(%why, "the journal is broken");
                self.broken.get_or_init(|| why);
            }
        }
        // `inbox` is dropped here, after `broken` was set: whoever still waits is told the reason.
    }

    async fn serve(&mut self, inbox: &mut mpsc::Receiver<Request>) -> Result<(), String> {
        loop {
            let first = if self.backlog_bytes == 0 {
                inbox.recv().await
            } else {
                match tokio::time::timeout(self.idle, inbox.recv()).await {
                    Ok(first) => first,
                    Err(_) => {
                        self.work_off()?;
                        continue;
                    }
                }
            };
            let Some(first) = first else {
                return Ok(());
            };
            let mut group = vec![first];
            while group.len() < COMMITS_PER_TRANSACTION_MAX
                && let Ok(next) = inbox.try_recv()
            {
                group.push(next);
            }
            self.commit(group)?;
            if self.backlog_bytes > LOG_BACKLOG_BYTES_MAX {
                self.work_off()?;
            }
        }
    }

    /// One transaction for all of them, then the replies. An error ends the journal.
    fn commit(&mut self, group: Vec<Request>) -> Result<(), String> {
        let mut reach = self.reach.clone();
        let mut accepted = Vec::with_capacity(group.len());
        for request in group {
            let (batch, reply) = match request {
                Request::Commit { batch, reply } => (batch, reply),
                #[cfg(test)]
                Request::Panic => panic!("asked to"),
            };
            match reach.after(&batch) {
                Ok(after) => {
                    let before = std::mem::replace(&mut reach, after);
                    accepted.push((batch, before, reply));
                }
                Err(error) => answer(reply, Err(error)),
            }
        }
        if let Err(error) = self.write(&accepted, &reach) {
            if meaning(&error) != Meaning::NoSpace {
                // Before the replies are dropped with `accepted`.
                let why = error.to_string();
                self.broken.get_or_init(|| why.clone());
                return Err(why);
            }
            for (batch, _, reply) in accepted {
                answer(reply, Err(CommitError::NoSpace(batch)));
            }
            return Ok(());
        }
        self.reach = reach;
        if accepted.iter().any(|(batch, _, _)| batch.shrink) {
            self.shrink()?;
        }
        for (batch, _, reply) in accepted {
            let load = |worker| (worker, load::load(&self.connection, worker, &mut self.environments));
            let loaded = batch.load.into_iter().map(load).collect();
            let texts = batch.load_texts.into_iter().filter_map(|seq| Some((seq, load::text(&self.connection, seq)?))).collect();
            let task = |worker| Some((worker, load::task(&self.connection, worker, &mut self.environments)?));
            let tasks = batch.load_tasks.into_iter().filter_map(task).collect();
            let part = |(tree, from, most)| load::stream(&self.connection, tree, from, most);
            let stream = batch.load_stream.into_iter().map(part).collect();
            answer(reply, Ok(Committed { loaded, texts, tasks, stream }));
        }
        Ok(())
    }

    fn write(&mut self, batches: &[(Box<Batch>, Reach, Reply)], reach: &Reach) -> rusqlite::Result<()> {
        if batches.iter().all(|(batch, _, _)| batch.writes_nothing()) {
            return Ok(());
        }
        // Dropped without a commit it rolls back, also where SQLite has done so already.
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (batch, before, _) in batches {
            write::write(&transaction, batch, before, &mut self.environments)?;
        }
        if reach.head != self.reach.head {
            head::write(&transaction, &reach.head)?;
        }
        transaction.commit()?;
        self.backlog_bytes += COMMIT_BYTES + batches.iter().map(|(batch, _, _)| batch.bulk()).sum::<usize>();
        Ok(())
    }

    /// Writes the file anew without its free pages, if those are worth it. Nobody else is served meanwhile, and what is written goes
    /// through memory, so a file of which much is in use stays as it is; its free pages are used again.
    fn shrink(&mut self) -> Result<(), String> {
        let number = |pragma: &str| self.connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map(i64::cast_unsigned);
        let counts = number("page_count").and_then(|pages| Ok((pages, number("freelist_count")?, number("page_size")?)));
        let (pages, free, page_bytes) = counts.map_err(|error| error.to_string())?;
        if free * SHRINK_SHARE < pages || (pages - free) * page_bytes > SHRINK_BYTES_MAX {
            return self.work_off();
        }
        match self.connection.execute_batch("VACUUM").and_then(|()| checkpoint(&self.connection, "TRUNCATE")) {
            Ok(()) => {
                self.backlog_bytes = 0;
                Ok(())
            }
            Err(error) => match meaning(&error) {
                Meaning::NoSpace | Meaning::InUse => {
                    tracing::warn!(%error, "the journal could not be written anew: it stays as large as it is");
                    Ok(())
                }
                Meaning::Storage | Meaning::Damage => Err(format!("writing it anew: {error}")),
            },
        }
    }

    /// Copies the write-ahead log into the file. For want of room it stays where it is, and is complete there.
    fn work_off(&mut self) -> Result<(), String> {
        self.backlog_bytes = 0;
        match checkpoint(&self.connection, "PASSIVE") {
            Ok(()) => Ok(()),
            Err(error) => match meaning(&error) {
                Meaning::NoSpace | Meaning::InUse => {
                    tracing::warn!(%error, "the journal's write-ahead log grows: it could not be worked off");
                    Ok(())
                }
                // After a failed sync nobody knows what a later one that succeeds has really written.
                Meaning::Storage | Meaning::Damage => Err(format!("working off its write-ahead log: {error}")),
            },
        }
    }
}

fn answer(reply: Reply, answer: Result<Committed, CommitError>) {
    if reply.send(answer).is_err() {
        tracing::debug!("nobody waits for this commit any more");
    }
}
