//! What calls take up on their way to the driver, and while it keeps them: counted in bytes, for each connection and for all. A
//! connection whose calls are too much is not read until some of them are done with; short calls never wait for those of others.

use std::sync::Arc;

use roost_proto::limits::CALL_BYTES_FREE;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::FromSession;

/// What bytes are counted in.
const UNIT_BYTES: usize = 1 << 10;

/// The room of one connection, within that of all.
#[derive(Debug)]
pub(super) struct Freight {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

/// What one call takes of it, until this is dropped.
#[derive(Debug, Default)]
pub struct Room {
    taken: Vec<OwnedSemaphorePermit>,
}

impl Room {
    /// Whether it is that of a call at all.
    pub fn is_taken(&self) -> bool {
        !self.taken.is_empty()
    }
}

/// A message with what it takes.
pub struct Arrival {
    /// The message.
    pub message: FromSession,
    /// Its room, to be kept as long as what it holds.
    pub room: Room,
}

impl From<FromSession> for Arrival {
    /// One that takes nothing.
    fn from(message: FromSession) -> Self {
        Self { message, room: Room::default() }
    }
}

/// Room for the calls of all connections.
pub(super) fn room_for_all(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes / UNIT_BYTES))
}

impl Freight {
    /// Of one connection, in bytes.
    pub(super) fn new(all: Arc<Semaphore>, own: usize) -> Self {
        Self { all, own: Arc::new(Semaphore::new(own / UNIT_BYTES)) }
    }

    /// Waits until there is room for so many bytes.
    pub(super) async fn room(&self, bytes: usize) -> Room {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let mut taken = Vec::new();
        // Neither is ever closed.
        taken.extend(Arc::clone(&self.own).acquire_many_owned(units).await);
        if bytes > CALL_BYTES_FREE {
            taken.extend(Arc::clone(&self.all).acquire_many_owned(units).await);
        }
        Room { taken }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn waits(freight: &Freight, bytes: usize) -> bool {
        timeout(Duration::from_millis(20), freight.room(bytes)).await.is_err()
    }

    #[tokio::test]
    async fn what_a_connection_or_all_have_under_way_is_bounded_and_short_calls_pass_others() {
        let all = room_for_all(100 << 10);
        let (one, other) = (Freight::new(Arc::clone(&all), 80 << 10), Freight::new(all, 80 << 10));
        let first = one.room(60 << 10).await;
        assert!(waits(&one, 30 << 10).await);
        let second = other.room(40 << 10).await;
        assert!(waits(&other, CALL_BYTES_FREE + 1).await);
        assert!(!waits(&other, CALL_BYTES_FREE).await && !waits(&one, CALL_BYTES_FREE).await);
        drop(first);
        assert!(!waits(&other, 40 << 10).await);
        drop(second);
        assert!(!waits(&one, 80 << 10).await);
    }
}
