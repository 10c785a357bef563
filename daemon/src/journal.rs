//! The journal: what must survive a crash, in one SQLite file, `STATE_DIR/roost.db`.
//!
//! One writer thread owns the connection; [`Journal`] is the handle to it. It stores what it is given and hands it back unchanged or
//! not at all. It deliberately does not know what an event means, when a snapshot is due, or who reads a context: the driver does.
//! `docs/journal.md` describes the format.

mod batch;
mod crc;
mod damage;
mod environments;
mod error;
mod head;
mod load;
mod open;
mod recover;
mod schema;
mod space;
#[cfg(test)]
mod tests;
mod wal;
mod write;
mod writer;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use roost_proto::limits::COMMITS_WAITING_MAX;
use tokio::sync::{mpsc, oneshot};

pub use batch::{Batch, ClockMark, Committed, Environment, Loaded, Record, Recovered, Snapshot, Spec, context_of};
pub use error::{CommitError, DamageCopy, LoadError, OpenError};

use open::Options;
use space::Ballast;
use writer::{Request, Writer};

/// The handle. Dropping it ends the thread after what was sent and waits for that, so that afterwards the file is free.
#[derive(Debug)]
pub struct Journal {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    broken: Arc<OnceLock<String>>,
    ballast: Ballast,
}

impl Journal {
    /// Opens the journal of this directory, or begins one, and reads back what it holds. Blocks: for boot, before the loop runs.
    ///
    /// # Errors
    /// Whenever the file is not certainly what this build wrote last. Nothing in it is changed then.
    pub fn open(state_dir: &Path) -> Result<(Journal, Recovered), OpenError> {
        Self::open_with(state_dir, &Options::default())
    }

    fn open_with(state_dir: &Path, options: &Options) -> Result<(Journal, Recovered), OpenError> {
        let mut opened = open::open(state_dir, options)?;
        let ballast = Ballast::new(state_dir);
        if let Err(error) = ballast.fill() {
            opened.recovered.notes.push(format!("no ballast for a full disk: {error}"));
        }
        let broken = Arc::new(OnceLock::new());
        let (requests, inbox) = mpsc::channel(COMMITS_WAITING_MAX);
        let writer = Writer::new(opened.connection, opened.head, opened.good_snapshot, Arc::clone(&broken), options.idle);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(inbox))
            .map_err(|source| OpenError::Io { path: state_dir.to_owned(), doing: "starting the thread of", source })?;
        let journal = Journal { requests: Some(requests), thread: Some(thread), broken, ballast };
        Ok((journal, opened.recovered))
    }

    /// Writes this batch in one transaction with one sync; when it returns `Ok`, the batch is on disk. Then loads what the batch asks for.
    /// Dropping the future after its first poll does not take the batch back.
    ///
    /// Batches whose records follow each other may be sent without waiting, but then a batch after one that failed fails too.
    ///
    /// # Errors
    /// See [`CommitError`]: in each case but `Broken` nothing of the batch is in.
    pub async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        let (reply, answer) = oneshot::channel();
        self.send(Request::Commit { batch: Box::new(batch), reply }).await?;
        answer.await.unwrap_or_else(|_| Err(self.ended()))
    }

    /// Gives the ballast's space back to the file system, so that terminal records still find room. Says whether there was any.
    pub fn release_ballast(&self) -> bool {
        self.ballast.release()
    }

    /// Takes the ballast's space again. `false`: there is no room for it yet.
    pub fn restore_ballast(&self) -> bool {
        self.ballast.fill().is_ok()
    }

    /// Whether new work should be refused because the file system is nearly full.
    pub fn space_is_low(&self) -> bool {
        self.ballast.space_is_low()
    }

    /// What its files take.
    pub fn bytes(&self) -> u64 {
        self.ballast.journal_bytes()
    }

    async fn send(&self, request: Request) -> Result<(), CommitError> {
        match &self.requests {
            Some(requests) => requests.send(request).await.map_err(|_| self.ended()),
            None => Err(self.ended()),
        }
    }

    fn ended(&self) -> CommitError {
        CommitError::Broken(self.broken.get().cloned().unwrap_or_else(|| "the writer thread has ended unexpectedly".to_owned()))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.requests = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the journal's writer thread had panicked");
        }
    }
}
