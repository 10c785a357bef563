//! Threads that look at file systems, which may never answer. How many there are is bounded, for all, for each tree and for each who
//! asks: a thread that hangs is given up by whoever waits for it and still counts, so that the others go on with the rest.
//!
//! It does not know what is looked at.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use roost_proto::id::TreeId;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

/// The threads of all, or of one who asks.
#[derive(Debug, Clone)]
pub struct Lookouts {
    all: Arc<Semaphore>,
    each_tree: usize,
    /// Those that somebody asks for, or that look for longer than anybody waits.
    trees: Arc<Mutex<BTreeMap<TreeId, Weak<Semaphore>>>>,
    own: Option<Arc<Semaphore>>,
}

/// What has come of a look.
#[derive(Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// This was found.
    Found(T),
    /// The file system does not say.
    Silent,
    /// Nothing was looked at: all threads that there may be look elsewhere.
    NotBegun,
}

impl Lookouts {
    /// So many for all, and for each tree.
    pub fn new(all: usize, each_tree: usize) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), each_tree, trees: Arc::default(), own: None }
    }

    /// The same for one who asks, who has so many of them at most.
    pub fn of_one(&self, at_most: usize) -> Self {
        Self { own: Some(Arc::new(Semaphore::new(at_most))), ..self.clone() }
    }

    /// Looks for this tree, on a thread of its own. It has this time to begin, and as much to come to an end.
    ///
    /// # Errors
    /// When looking has panicked.
    pub fn look<T: Send + 'static>(
        &self,
        tree: Option<TreeId>,
        within: Duration,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<Look<T>, JoinError>> + Send + 'static {
        // Those of all last: who waits for its own keeps nobody out.
        let bounds = self.own.clone().into_iter().chain(tree.map(|tree| self.of_tree(tree))).chain([Arc::clone(&self.all)]);
        let bounds: Vec<Arc<Semaphore>> = bounds.collect();
        async move {
            let taking = async {
                let mut taken = Vec::new();
                for bound in bounds {
                    // They are never closed.
                    taken.extend(bound.acquire_owned().await);
                }
                taken
            };
            let Ok(taken) = timeout(within, taking).await else { return Ok(Look::NotBegun) };
            let looking = spawn_blocking(move || {
                let found = look();
                // The thread itself gives them back: it may go on when nobody waits for it any more.
                drop(taken);
                found
            });
            timeout(within, looking).await.map_or(Ok(Look::Silent), |found| found.map(Look::Found))
        }
    }

    fn of_tree(&self, tree: TreeId) -> Arc<Semaphore> {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        trees.retain(|_, threads| threads.strong_count() > 0);
        trees.get(&tree).and_then(Weak::upgrade).unwrap_or_else(|| {
            let threads = Arc::new(Semaphore::new(self.each_tree));
            trees.insert(tree, Arc::downgrade(&threads));
            threads
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const AT_ONCE: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    /// Looks that hang until the sender says so.
    struct Hanging(mpsc::Sender<()>, Arc<Mutex<mpsc::Receiver<()>>>);

    impl Hanging {
        fn new() -> Self {
            let (free, hangs) = mpsc::channel();
            Self(free, Arc::new(Mutex::new(hangs)))
        }

        fn look(&self) -> impl FnOnce() -> i32 + Send + 'static {
            let hangs = Arc::clone(&self.1);
            move || hangs.lock().unwrap().recv().map_or(0, |()| 1)
        }

        fn free(&self, count: usize) {
            (0..count).for_each(|_| self.0.send(()).unwrap());
        }
    }

    #[tokio::test]
    async fn a_thread_that_hangs_counts_until_it_ends_and_others_go_on() {
        let all = Lookouts::new(3, 3);
        let (one, other, hanging) = (all.of_one(2), all.of_one(2), Hanging::new());
        for _ in 0..2 {
            assert_eq!(one.look(None, AT_ONCE, hanging.look()).await.unwrap(), Look::Silent);
        }
        // It has used its own up, and nobody else's.
        assert_eq!(one.look(None, AT_ONCE, || 7).await.unwrap(), Look::NotBegun);
        assert_eq!(other.look(None, LONG, || 7).await.unwrap(), Look::Found(7));
        assert_eq!(other.look(None, AT_ONCE, hanging.look()).await.unwrap(), Look::Silent);
        assert_eq!(other.look(None, AT_ONCE, || 7).await.unwrap(), Look::NotBegun);
        hanging.free(3);
        for asks in [one, other] {
            assert_eq!(asks.look(None, LONG, || 7).await.unwrap(), Look::Found(7));
        }
    }

    #[tokio::test]
    async fn a_tree_whose_file_system_hangs_takes_none_of_anothers_threads_whoever_asks_for_it() {
        let (all, hanging, [tree, other]) = (Lookouts::new(3, 2), Hanging::new(), [1, 2].map(TreeId));
        for _ in 0..2 {
            assert_eq!(all.of_one(1).look(Some(tree), AT_ONCE, hanging.look()).await.unwrap(), Look::Silent);
        }
        assert_eq!(all.of_one(1).look(Some(tree), AT_ONCE, || 7).await.unwrap(), Look::NotBegun);
        assert_eq!(all.of_one(1).look(Some(other), LONG, || 7).await.unwrap(), Look::Found(7));
        hanging.free(2);
        assert_eq!(all.look(Some(tree), LONG, || 7).await.unwrap(), Look::Found(7));
    }

    #[tokio::test]
    async fn nothing_is_kept_of_trees_for_which_nobody_looks() {
        let all = Lookouts::new(1, 1);
        for tree in 0..9 {
            assert_eq!(all.look(Some(TreeId(tree)), LONG, || 7).await.unwrap(), Look::Found(7));
        }
        assert_eq!(all.trees.lock().unwrap().len(), 1);
    }
}
