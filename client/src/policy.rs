//! How long a call may take and whether it may be sent twice; how the pauses of a reconnect grow.

use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What a method needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Answered at once, or when something has happened.
    pub(crate) patience: Patience,
    /// Whether it is sent again when the connection broke before the answer.
    pub(crate) resend: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Unanswered for `Config::answer_within` is an error.
    Brief,
    /// Never ends by itself.
    Unbounded,
}

impl Policy {
    pub(crate) const BRIEF: Self = Self { patience: Patience::Brief, resend: true };
    pub(crate) const WAITS: Self = Self { patience: Patience::Unbounded, resend: true };
    pub(crate) const ONCE: Self = Self { patience: Patience::Unbounded, resend: false };
}

/// One spell of trying to come back.
#[derive(Debug)]
pub(crate) struct Outage {
    since: Instant,
    pause: Duration,
    /// `None`: until it is over.
    longest: Option<Duration>,
}

impl Outage {
    pub(crate) fn new(longest: Option<Duration>) -> Self {
        Self { since: Instant::now(), pause: PAUSE_MIN, longest }
    }

    /// Whether it ends only with what it waits for.
    pub(crate) fn is_unbounded(&self) -> bool {
        self.longest.is_none()
    }

    /// Sleeps a growing while; false when it has lasted too long.
    pub(crate) fn pause(&mut self) -> bool {
        if self.longest.is_some_and(|longest| self.since.elapsed() > longest) {
            return false;
        }
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}
