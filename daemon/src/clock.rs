//! The clock of the core: milliseconds that never go back, over restarts of the broker and of the machine.
//!
//! Within one boot it runs with the system's monotonic clock, so that no step of the wall clock moves a deadline. Over a boot it
//! goes on where the journal left it. It knows nothing of what the time is for.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use roost_core::time::{Mono, Now};
use rustix::time::{ClockId, clock_gettime};

use crate::journal::ClockMark;

/// The running clock.
#[derive(Debug)]
pub struct Clock {
    boot_id: String,
    offset_ms: i64,
    last: Mono,
}

impl Clock {
    /// Goes on from where the journal left it.
    ///
    /// # Errors
    /// When the kernel does not tell its boot id.
    pub fn resume(mark: Option<&ClockMark>) -> io::Result<Self> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Self::resume_in(boot_id, mark, monotonic_ms()))
    }

    fn resume_in(boot_id: String, mark: Option<&ClockMark>, monotonic_ms: i64) -> Self {
        let (offset_ms, last) = match mark {
            Some(mark) if mark.boot_id == boot_id => (mark.offset_ms, mark.mono_ms),
            Some(mark) => (i64::try_from(mark.mono_ms).unwrap_or(i64::MAX).saturating_sub(monotonic_ms), mark.mono_ms),
            // A first clock starts at 0, so that its numbers are easy to read.
            None => (-monotonic_ms, 0),
        };
        Self { boot_id, offset_ms, last: Mono(last) }
    }

    /// The moment.
    pub fn now(&mut self) -> Now {
        self.now_at(monotonic_ms())
    }

    fn now_at(&mut self, monotonic_ms: i64) -> Now {
        let mono = u64::try_from(monotonic_ms.saturating_add(self.offset_ms)).unwrap_or(0);
        self.last = self.last.max(Mono(mono));
        Now { mono: self.last, wall_ms: wall_ms() }
    }

    /// What the next broker needs to go on.
    pub fn mark(&self) -> ClockMark {
        ClockMark { boot_id: self.boot_id.clone(), mono_ms: self.last.0, offset_ms: self.offset_ms }
    }
}

fn monotonic_ms() -> i64 {
    let at = clock_gettime(ClockId::Monotonic);
    at.tv_sec.saturating_mul(1_000).saturating_add(at.tv_nsec / 1_000_000)
}

/// Unix milliseconds, for people only.
pub(crate) fn wall_ms() -> u64 {
    // A clock that is set before 1970 shows people a strange time and does no other harm.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_over_a_broker_and_over_a_boot_and_never_back() {
        let mut first = Clock::resume_in("a".into(), None, 5_000);
        assert_eq!(first.now_at(5_000).mono, Mono(0));
        assert_eq!(first.now_at(7_000).mono, Mono(2_000));
        let mut same_boot = Clock::resume_in("a".into(), Some(&first.mark()), 9_000);
        assert_eq!(same_boot.now_at(9_000).mono, Mono(4_000));
        let mut next_boot = Clock::resume_in("b".into(), Some(&same_boot.mark()), 10);
        assert_eq!(next_boot.now_at(10).mono, Mono(4_000));
        assert_eq!(next_boot.now_at(1_010).mono, Mono(5_000));
        assert_eq!(next_boot.now_at(500).mono, Mono(5_000));
    }
}
