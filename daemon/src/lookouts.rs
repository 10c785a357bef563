//! Threads that look at file systems, which may never answer. How many there are is bounded, for all and for each who asks: a thread
//! that hangs is given up by whoever waits for it and still counts, so that the others go on with the rest.
//!
//! It does not know what is looked at.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

/// The threads of one who asks, among those of all.
#[derive(Debug)]
pub struct Lookouts {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
    each: usize,
}

impl Lookouts {
    /// So many for all, and for each.
    pub fn new(all: usize, each: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), own: Arc::new(Semaphore::new(each)), each }
    }

    /// Those of another who asks.
    pub fn of_another(&self) -> Self {
        Self { all: Arc::clone(&self.all), own: Arc::new(Semaphore::new(self.each)), each: self.each }
    }

    /// Looks on a thread of its own; `None` when that does not come to an end, or does not begin, in this time.
    ///
    /// # Errors
    /// When looking has panicked.
    pub fn look<T: Send + 'static>(
        &self,
        within: Duration,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<Option<T>, JoinError>> + Send + 'static {
        let (all, own) = (Arc::clone(&self.all), Arc::clone(&self.own));
        let looking = async move {
            // They are never closed. The thread itself gives them back: it may go on when nobody waits for it any more.
            let taken = (own.acquire_owned().await, all.acquire_owned().await);
            spawn_blocking(move || {
                let found = look();
                drop(taken);
                found
            })
            .await
        };
        async move { timeout(within, looking).await.map_or(Ok(None), |found| found.map(Some)) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const AT_ONCE: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_thread_that_hangs_counts_until_it_ends_and_others_go_on() {
        let one = Lookouts::new(3, 2);
        let other = one.of_another();
        let (free, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(std::sync::Mutex::new(hangs));
        let hang = || {
            let hangs = Arc::clone(&hangs);
            move || hangs.lock().unwrap().recv().unwrap_or_default()
        };
        for _ in 0..2 {
            assert_eq!(one.look(AT_ONCE, hang()).await.unwrap(), None);
        }
        // It has used its own up, and nobody else's.
        assert_eq!(one.look(AT_ONCE, || 7).await.unwrap(), None);
        assert_eq!(other.look(LONG, || 7).await.unwrap(), Some(7));
        assert_eq!(other.look(AT_ONCE, hang()).await.unwrap(), None);
        assert_eq!(other.look(AT_ONCE, || 7).await.unwrap(), None);
        for _ in 0..3 {
            free.send(()).unwrap();
        }
        assert_eq!((one.look(LONG, || 7).await.unwrap(), other.look(LONG, || 8).await.unwrap()), (Some(7), Some(8)));
    }
}
