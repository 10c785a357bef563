//! Tells when processes end that are not ours to wait for: pidfds in an epoll of their own, which is itself one descriptor.
//!
//! It does not know what such an end means.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use roost_proto::id::Incarnation;
use roost_proto::limits::WATCHED_PER_INCARNATION_MAX;
use roost_proto::link::ProcessIdentity;
use rustix::event::{Timespec, epoll};

use super::signal::{self, OpenError};

/// The processes under watch.
#[derive(Debug)]
pub struct Watch {
    epoll: OwnedFd,
    watched: BTreeMap<(Incarnation, ProcessIdentity), (u64, OwnedFd)>,
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
        if self.watched.contains_key(&(incarnation, process)) || self.of(incarnation).count() >= WATCHED_PER_INCARNATION_MAX {
            return Ok(());
        }
        let descriptor = signal::open(process)?;
        self.next_key += 1;
        let data = epoll::EventData::new_u64(self.next_key);
        epoll::add(&self.epoll, &descriptor, data, epoll::EventFlags::IN).map_err(OpenError::Kernel)?;
        self.watched.insert((incarnation, process), (self.next_key, descriptor));
        Ok(())
    }

    /// Watches nothing of this incarnation any more.
    pub fn drop_all(&mut self, incarnation: Incarnation) {
        let keys: Vec<_> = self.of(incarnation).copied().collect();
        for key in keys {
            self.watched.remove(&key);
        }
    }

    /// Those that have ended since the last call. Each is told once.
    pub fn ended(&mut self) -> io::Result<Vec<(Incarnation, ProcessIdentity)>> {
        let mut all = Vec::new();
        loop {
            let mut events = Vec::with_capacity(64);
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&now)) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
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

    fn of(&self, incarnation: Incarnation) -> impl Iterator<Item = &(Incarnation, ProcessIdentity)> {
        let first = (incarnation, ProcessIdentity { pid: 0, start_ticks: 0 });
        self.watched.range(first..).map(|(key, _)| key).take_while(move |(of, _)| *of == incarnation)
    }
}
