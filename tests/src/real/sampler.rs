//! The kernel's view of a cap: how many workers live at one moment, looked at again and again while a test runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::PATIENCE;
use super::process::{self, Process};

/// Looks from a thread of its own until it is asked what it saw.
pub struct Sampler {
    enough: Arc<AtomicBool>,
    /// The most, each time that it grows.
    grows: Receiver<usize>,
    thread: Option<JoinHandle<Samples>>,
}

/// What was seen.
#[derive(Debug, Default, Clone)]
pub struct Samples {
    /// How often was looked.
    pub count: usize,
    /// The most workers that lived at one moment.
    pub most: usize,
    /// Every incarnation that was seen alive.
    pub seen: BTreeSet<String>,
}

impl Sampler {
    /// Begins.
    pub fn start(state_dir: &Path) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let (stop, state_dir) = (Arc::clone(&enough), state_dir.to_owned());
        let (grown, grows) = mpsc::channel();
        let thread = std::thread::spawn(move || look(&state_dir, &stop, &grown));
        Self { enough, grows, thread: Some(thread) }
    }

    /// Waits until so many were seen at one moment.
    #[track_caller]
    pub fn until(&self, count: usize) {
        while self.grows.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("there are never {count} workers")) < count {}
    }

    /// Ends.
    pub fn stop(mut self) -> Samples {
        self.enough.store(true, Ordering::Relaxed);
        self.thread.take().map(|thread| thread.join().expect("the sampler")).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
    }
}

fn look(state_dir: &Path, stop: &AtomicBool, grown: &Sender<usize>) -> Samples {
    let mut samples = Samples::default();
    while !stop.load(Ordering::Relaxed) {
        let alive = at_one_moment(state_dir);
        samples.count += 1;
        if alive.len() > samples.most {
            samples.most = alive.len();
            // Most tests do not wait for it.
            grown.send(samples.most).ok();
        }
        samples.seen.extend(alive.into_keys());
        // It sets how often is looked, and nothing waits for it.
        std::thread::sleep(Duration::from_millis(10));
    }
    samples
}

/// The incarnations that live in this very moment, with their processes.
pub(super) fn at_one_moment(state_dir: &Path) -> BTreeMap<String, Vec<Process>> {
    let mut workers = workers(state_dir);
    // Reading /proc takes a while. Who was there and still is was there together with all others of that kind.
    for processes in workers.values_mut() {
        processes.retain(Process::lives_on);
    }
    workers.retain(|_, processes| !processes.is_empty());
    workers
}

fn workers(state_dir: &Path) -> BTreeMap<String, Vec<Process>> {
    let home = [b"ROOST_STATE_DIR=", state_dir.as_os_str().as_encoded_bytes()].concat();
    let mut found: BTreeMap<String, Vec<Process>> = BTreeMap::new();
    for process in process::all().into_iter().filter(Process::is_alive) {
        let environment = process.environment();
        if !environment.contains(&home) {
            continue;
        }
        let value = |name: &str| {
            let pair = environment.iter().find_map(|pair| pair.strip_prefix(name.as_bytes()))?;
            Some(String::from_utf8_lossy(pair).into_owned())
        };
        if let (Some(execution), Some(epoch)) = (value("ROOST_EXECUTION="), value("ROOST_EPOCH=")) {
            found.entry(format!("{execution}-{epoch}")).or_default().push(process);
        }
    }
    found
}
