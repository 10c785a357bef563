//! The speaking half of a connection: takes what the driver sends, knows which calls wait for it, and writes lines.
//!
//! It does not know what is asked. Its buffer is bounded: while that is full nothing is taken in, and a peer that reads nothing for
//! too long is given up.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::pin;
use std::time::Duration;

use interprocess::os::unix::uds_local_socket::tokio::Stream;
use roost_core::command::CallId;
use roost_proto::limits::OUTPUT_BYTES_MAX;
use roost_proto::rpc::ErrorObject;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, error};

use super::envelope::{answer_line, error_line, notice_line, progress_line};
use super::weight::Weight;
use super::{Outgoing, Standing};

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub enum Close {
    /// The peer has hung up.
    #[error("the peer is gone")]
    Peer,
    /// The peer said nothing that counts as a `hello` in time.
    #[error("no hello came in time")]
    HelloLate,
    /// A stranger's place was wanted.
    #[error("the place was wanted by somebody else")]
    Wanted,
    /// Too many long lines at a time.
    #[error("there is no room for one more long line")]
    NoRoom,
    /// A long line did not end.
    #[error("a long line was not whole in time")]
    LineLate,
    /// A line was too long.
    #[error("a line was too long")]
    TooLarge,
    /// The peer does not read.
    #[error("the peer reads nothing")]
    Stuck,
    /// The driver has dropped the connection.
    #[error("the driver has dropped the connection")]
    Cut,
    /// The driver is gone.
    #[error("the driver is gone")]
    NoDriver,
    /// The socket failed.
    #[error("the socket failed: {0}")]
    Socket(#[from] io::Error),
}

/// The speaking half.
pub struct Output {
    outgoing: mpsc::Receiver<Outgoing>,
    calls: BTreeMap<CallId, u64>,
    large: BTreeSet<CallId>,
    standing: Option<Standing>,
    held: Option<CallId>,
    buffer: Vec<u8>,
    written: usize,
    within: Duration,
    give_up: Instant,
}

impl Output {
    /// Nothing is asked yet. A peer that reads nothing for `within` is given up.
    pub fn new(outgoing: mpsc::Receiver<Outgoing>, within: Duration) -> Self {
        let give_up = Instant::now();
        Self {
            outgoing,
            calls: BTreeMap::new(),
            large: BTreeSet::new(),
            standing: None,
            held: None,
            buffer: Vec::new(),
            written: 0,
            within,
            give_up,
        }
    }

    /// As whom the connection speaks.
    pub fn standing(&self) -> Option<Standing> {
        self.standing
    }

    /// A call is with the driver.
    pub fn expect(&mut self, call: CallId, id: u64, weight: Weight) {
        self.calls.insert(call, id);
        match weight {
            Weight::Small => {}
            Weight::First => self.held = Some(call),
            Weight::Large => drop(self.large.insert(call)),
        }
    }

    /// How many calls wait whose answers are large.
    pub fn large(&self) -> usize {
        self.large.len()
    }

    /// Whether a call of this number waits.
    pub fn expects(&self, call: CallId) -> bool {
        self.calls.contains_key(&call)
    }

    /// How many calls wait.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// Whether the answer to the last call must come first.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Whether nothing more is taken in before something is written.
    pub fn is_full(&self) -> bool {
        self.buffer.len() - self.written > OUTPUT_BYTES_MAX
    }

    /// The calls that nobody has answered.
    pub fn unanswered(self) -> Vec<CallId> {
        self.calls.into_keys().collect()
    }

    /// Refuses what never went to the driver.
    pub fn refuse(&mut self, id: Option<u64>, error: ErrorObject) {
        debug!(kind = ?error.data.kind, "refused");
        self.append(error_line(id, error));
    }

    /// Does one thing: takes one item of the driver, or writes a piece. Nothing is lost when it is dropped half-way.
    pub async fn turn(&mut self, stream: &Stream) -> Result<(), Close> {
        let full = self.is_full();
        let waits = self.has_unwritten();
        let give_up = self.give_up;
        tokio::select! {
            // Whoever reads, however late we look, is not given up.
            biased;
            writable = stream.inner().writable(), if waits => {
                writable?;
                self.write_piece(stream)?;
            }
            item = self.outgoing.recv(), if !full => self.take(item.ok_or(Close::Cut)?),
            () = sleep_until(give_up), if waits => return Err(Close::Stuck),
        }
        Ok(())
    }

    /// Waits for something else and goes on answering meanwhile.
    pub async fn meanwhile<T>(&mut self, stream: &Stream, other: impl Future<Output = T>) -> Result<T, Close> {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return Ok(done),
                turn = self.turn(stream) => turn?,
            }
        }
    }

    /// Writes what is left, in the time that it may take.
    pub async fn last_words(&mut self, stream: &Stream, within: Duration) {
        let writing = async {
            while self.has_unwritten() {
                stream.inner().writable().await?;
                self.write_piece(stream)?;
            }
            Ok::<(), io::Error>(())
        };
        match timeout(within, writing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, "the last words were not heard"),
            Err(_) => debug!("the last words were not read in time"),
        }
    }

    fn has_unwritten(&self) -> bool {
        self.written < self.buffer.len()
    }

    fn take(&mut self, item: Outgoing) {
        match item {
            Outgoing::Answer { call, result, becomes } => {
                let Some(id) = self.answered(call) else { return };
                self.standing = becomes.or(self.standing);
                self.append(answer_line(id, result));
            }
            Outgoing::Refuse { call, error } => {
                let Some(id) = self.answered(call) else { return };
                self.append(error_line(Some(id), error));
            }
            Outgoing::Progress(progress) => self.append(progress_line(&progress)),
            Outgoing::Notice { method, params } => self.append(notice_line(method, params)),
        }
    }

    fn answered(&mut self, call: CallId) -> Option<u64> {
        let id = self.calls.remove(&call);
        self.large.remove(&call);
        if id.is_none() {
            error!(call = call.0, "a call that does not wait was answered");
        }
        if self.held == Some(call) {
            self.held = None;
        }
        debug!(call = call.0, "answered");
        id
    }

    fn append(&mut self, line: Vec<u8>) {
        if self.has_unwritten() {
            self.buffer.drain(..self.written);
            self.buffer.extend_from_slice(&line);
        } else {
            // The line's own memory takes the place of what a large answer may have left behind.
            self.buffer = line;
            self.give_up = Instant::now() + self.within;
        }
        self.written = 0;
    }

    fn write_piece(&mut self, stream: &Stream) -> io::Result<()> {
        match stream.inner().try_write(&self.buffer[self.written..]) {
            Ok(bytes) => {
                self.written += bytes;
                self.give_up = Instant::now() + self.within;
                if !self.has_unwritten() {
                    self.buffer = Vec::new();
                    self.written = 0;
                }
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
