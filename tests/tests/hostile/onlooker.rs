//! The good client: asks for `status` over and over from a thread of its own, and remembers how long it had to wait; and what the
//! daemon must be like before and after an attack.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use roost_tests::real::{DaemonPids, Home, Tree, Wire, find};
use serde_json::json;

/// What rule R1 of the public cases allows.
const PATIENCE_OF_OTHERS: Duration = Duration::from_secs(1);
/// How much the broker may grow by, in KiB (case B04).
const GROWTH_KIB_MAX: u64 = 32 << 10;

/// A daemon with a running worker, before an attack.
pub struct Peace<'a> {
    home: &'a Home,
    pub tree: Tree<'a>,
    pids: DaemonPids,
    worker: u32,
    resident_kib: u64,
    descriptors: (usize, usize),
    enough: Arc<AtomicBool>,
    onlooker: Option<JoinHandle<Duration>>,
}

impl<'a> Peace<'a> {
    pub fn new(home: &'a Home) -> Self {
        let tree = Tree::open(home, &["--budget", "100000"]);
        tree.spawn("witness", "exec sleep 600");
        tree.until_state("witness", "running");
        let (pids, worker) = (home.daemon(), tree.pid("witness"));
        let enough = Arc::new(AtomicBool::new(false));
        let descriptors = home.descriptors();
        let (stop, wire) = (Arc::clone(&enough), tree.wire());
        let resident_kib = find(pids.broker).unwrap().resident_kib();
        let onlooker = Some(std::thread::spawn(move || look(wire, &stop)));
        Self { home, tree, pids, worker, resident_kib, descriptors, enough, onlooker }
    }

    /// How much the broker has grown by until now.
    pub fn growth_kib(&self) -> u64 {
        find(self.pids.broker).expect("the broker lives").resident_kib().saturating_sub(self.resident_kib)
    }

    /// Rule R1: the same daemon, nobody else waited, the worker runs, memory and descriptors are as before.
    pub fn holds(self) {
        self.holds_within(GROWTH_KIB_MAX);
    }

    /// The same after an attack that may cost the broker this much memory, in KiB.
    pub fn holds_within(mut self, growth_kib_max: u64) {
        self.enough.store(true, Ordering::Relaxed);
        let longest = self.onlooker.take().unwrap().join().expect("the good client is answered all the time");
        eprintln!("the good client waited for {longest:?} at most");
        assert!(longest < PATIENCE_OF_OTHERS, "a good client waited for {longest:?}");
        let growth = self.growth_kib();
        assert!(growth < growth_kib_max, "the broker has grown by {growth} KiB");
        assert_eq!(self.home.daemon(), self.pids);
        assert_eq!((self.tree.pid("witness"), self.tree.worker("witness")["state"].as_str()), (self.worker, Some("running")));
        // A socket may be closed a moment after its connection is counted no more; nothing tells of that.
        let until = Instant::now() + PATIENCE_OF_OTHERS * 10;
        let more = |now: (usize, usize)| now.0 > self.descriptors.0 || now.1 > self.descriptors.1;
        while more(self.home.descriptors()) {
            assert!(Instant::now() < until, "supervisor and broker have more descriptors than before: {:?}", self.descriptors);
        }
    }
}

impl Drop for Peace<'_> {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
    }
}

fn look(mut wire: Wire, stop: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        wire.call("daemon.status", &json!({})).unwrap();
        wire.call("status", &json!({"name": "witness"})).unwrap();
        longest = longest.max(since.elapsed());
        // How often is looked; nothing waits for it.
        std::thread::sleep(Duration::from_millis(20));
    }
    longest
}
