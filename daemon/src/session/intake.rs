//! Bytes of a peer on their way to lines: what one line may cost, and what all of them together may.
//!
//! A connection that is idle holds no buffer. A line that is short costs nobody anything; long ones share one store of bytes, so that
//! many peers that each send a long line without an end are bounded like one.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use interprocess::os::unix::uds_local_socket::tokio::Stream;
use roost_proto::frame::{LineTooLong, Lines};
use roost_proto::limits::{LINE_BYTES_FREE, LINE_BYTES_MAX};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How much is read at once.
const CHUNK_BYTES: usize = 32 << 10;
/// What the store is counted in.
const UNIT_BYTES: usize = 16 << 10;

thread_local! {
    /// All connections are served by one thread, and none keeps bytes here while it waits.
    static CHUNK: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK_BYTES].into_boxed_slice());
}

/// What the unfinished lines of all connections may take.
#[derive(Debug, Clone)]
pub struct Store(Arc<Semaphore>);

impl Store {
    /// A store of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT_BYTES)))
    }
}

/// What reading came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// Some bytes, or none yet.
    Some,
    /// The peer writes no more.
    End,
    /// The store is empty.
    NoRoom,
}

/// The listening half's bytes.
#[derive(Debug)]
pub struct Intake {
    lines: Lines,
    /// Bytes of a line whose end is not there yet.
    unfinished: usize,
    store: Store,
    taken: Option<OwnedSemaphorePermit>,
    /// Until when a line that counts must be whole.
    whole_by: Option<Instant>,
    within: Duration,
}

impl Intake {
    /// Nothing has arrived.
    pub fn new(store: Store, within: Duration) -> Self {
        Self { lines: Lines::default(), unfinished: 0, store, taken: None, whole_by: None, within }
    }

    /// The next whole line, read by `read`. What it took from the store is given back when the next one is asked for.
    pub fn next_line<T>(&mut self, read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, LineTooLong> {
        if self.unfinished == 0 {
            (self.taken, self.whole_by) = (None, None);
        }
        let line = self.lines.next_line()?.map(read);
        if line.is_some() {
            self.unfinished = 0;
        } else if !self.lines.has_rest() {
            // What a long line took is given back.
            self.lines = Lines::default();
        }
        Ok(line)
    }

    /// Whether the input ended in the middle of a line.
    pub fn has_rest(&self) -> bool {
        self.lines.has_rest()
    }

    /// Bytes of a line whose end is not there yet.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Until when the line must be whole, when it is a long one.
    pub fn whole_by(&self) -> Option<Instant> {
        self.whole_by
    }

    /// Takes in what there is, without waiting.
    pub fn read(&mut self, stream: &Stream) -> io::Result<Read> {
        let count = CHUNK.with_borrow_mut(|chunk| {
            let count = match stream.inner().try_read(chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => count,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => return Ok(Some(0)),
                Err(error) => return Err(error),
            };
            self.lines.push(&chunk[..count]);
            Ok(Some(count))
        })?;
        let Some(count) = count else { return Ok(Read::End) };
        self.unfinished += count;
        Ok(if self.has_room() { Read::Some } else { Read::NoRoom })
    }

    fn has_room(&mut self) -> bool {
        // A line over the limit ends its connection by that.
        let counts = self.unfinished.min(LINE_BYTES_MAX).saturating_sub(LINE_BYTES_FREE).div_ceil(UNIT_BYTES);
        let missing = counts.saturating_sub(self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        if missing == 0 {
            return true;
        }
        self.whole_by.get_or_insert_with(|| Instant::now() + self.within);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&self.store.0).try_acquire_many_owned(missing) else { return false };
        match &mut self.taken {
            Some(taken) => taken.merge(more),
            None => self.taken = Some(more),
        }
        true
    }
}
