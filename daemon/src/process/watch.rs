//! Tells when processes end that are not ours to wait for, and when a cgroup is emptied: in an epoll of their own, which is
//! itself one descriptor.
//!
//! It does not know what such an end means.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use roost_proto::id::Incarnation;
use roost_proto::limits::WATCHED_PER_INCARNATION_MAX;
use roost_proto::link::ProcessIdentity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::cgroup::{Cgroup, Events};
use super::signal::{self, OpenError};

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    /// Whether the incarnation's cgroup has processes.
    Cgroup,
    /// The end of a process.
    Process(ProcessIdentity),
}

/// Processes and cgroups under watch.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
    watched: BTreeMap<(Incarnation, Watched), (u64, OwnedFd)>,
    next_key: u64,
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Watch {
    /// An empty watch.
    pub fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?, watched: BTreeMap::new(), next_key: 0 })
    }

    /// Watches a process. Over the limit it is not watched, and that is fine: the limit's worth of others will end too.
    pub fn add(&mut self, incarnation: Incarnation, process: ProcessIdentity) -> Result<(), OpenError> {
        let key = (incarnation, Watched::Process(process));
        if self.watched.contains_key(&key) || self.of(incarnation).count() >= WATCHED_PER_INCARNATION_MAX {
            return Ok(());
        }
        self.insert(key, signal::open(process)?, epoll::EventFlags::IN)
    }

    /// Watches a cgroup for the end of its last process. False when it is empty already.
    pub fn add_cgroup(&mut self, incarnation: Incarnation, cgroup: &Cgroup) -> Result<bool, OpenError> {
        let key = (incarnation, Watched::Cgroup);
        // One under watch may have changed since; a new one is armed by the look at it.
        self.watched.remove(&key);
        let kernel = |error: io::Error| OpenError::Kernel(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let Some(events) = Events::open(cgroup).map_err(kernel)?.filter(Events::is_populated) else { return Ok(false) };
        self.insert(key, events.into(), epoll::EventFlags::PRI)?;
        Ok(true)
    }

    fn insert(&mut self, which: (Incarnation, Watched), descriptor: OwnedFd, events: epoll::EventFlags) -> Result<(), OpenError> {
        self.next_key += 1;
        epoll::add(&self.epoll, &descriptor, epoll::EventData::new_u64(self.next_key), events).map_err(OpenError::Kernel)?;
        self.watched.insert(which, (self.next_key, descriptor));
        Ok(())
    }

    /// Watches nothing of this incarnation any more.
    pub fn drop_all(&mut self, incarnation: Incarnation) {
        let keys: Vec<_> = self.of(incarnation).copied().collect();
        for key in keys {
            self.watched.remove(&key);
        }
    }

    /// Processes that have ended and cgroups that have changed since the last call. Each is told once.
    pub fn ended(&mut self) -> io::Result<Vec<(Incarnation, Watched)>> {
        let mut all = Vec::new();
        loop {
            let mut events = Vec::with_capacity(64);
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&now)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if events.is_empty() {
                return Ok(all);
            }
            let keys: Vec<u64> = events.iter().map(|event: &epoll::Event| event.data.u64()).collect();
            // Dropping the descriptor takes it out of the epoll.
            self.watched.retain(|which, (key, _)| {
                let ended = keys.contains(key);
                all.extend(ended.then_some(*which));
                !ended
            });
        }
    }

    fn of(&self, incarnation: Incarnation) -> impl Iterator<Item = &(Incarnation, Watched)> {
        let first = (incarnation, Watched::Cgroup);
        self.watched.range(first..).map(|(key, _)| key).take_while(move |(of, _)| *of == incarnation)
    }
}
