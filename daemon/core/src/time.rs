//! Time as the core sees it: numbers that come in with every step. The core has no clock.

use std::ops::Add;

use serde::{Deserialize, Serialize};

/// Milliseconds on a clock that never goes back, not even over a restart of the daemon. All deadlines are on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mono(pub u64);

impl Add<u64> for Mono {
    type Output = Self;
    fn add(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }
}

/// The moment of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Now {
    /// For deadlines and order.
    pub mono: Mono,
    /// Unix milliseconds, for people only: this clock may jump.
    pub wall_ms: u64,
}
