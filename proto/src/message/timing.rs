//! Times and tries of a tree: contract section 12, all settable.

use serde::{Deserialize, Serialize};

use crate::limits;

/// Times and tries that hold for a whole tree. 0 is off; times are milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(default)]
pub struct Timing {
    /// A process that has parked is killed if it has not exited by then; 0 is never.
    pub settle_to_exit_ms: u64,
    /// Between TERM and KILL of what a main process leaves behind; 0 is KILL at once.
    pub leftovers_grace_ms: u64,
    /// Further tries of a start that failed for want of something that may come back, or of a wake; 0 is none.
    pub start_retries: u32,
    /// Pause before the first further try; the n-th is n times as long.
    pub start_retry_ms: u64,
    /// How long a slot must have been to spare before an early wake takes it; 0 is at once.
    pub early_wake_dwell_ms: u64,
    /// Admissions that may pass over a ready final wake, at least 1.
    pub wake_bypass: u64,
    /// A worker that was asked to park and has not answered by then is left alone for a while; 0 is no deadline.
    pub park_deadline_ms: u64,
    /// For how long.
    pub park_again_ms: u64,
    /// A process that speaks the protocol is killed and started again if it has not said hello by then; 0 is never.
    pub startup_ms: u64,
    /// A worker that speaks and shows no sign of life for so long, outside of a tool, has failed; 0 is never.
    pub idle_ms: u64,
    /// How long a completion is held back before its lead takes it in, so that a reading of it comes first; 0 is not at all.
    pub hold_ms: u64,
    /// Launches of one lead without a longer pause between them are told of together, where `join` says so.
    pub join_window_ms: u64,
    /// How long the first completion of such a group waits for the others; 0 is not at all.
    pub join_hold_ms: u64,
    /// How long the first straggler waits for the others; 0 is not at all.
    pub join_straggler_ms: u64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            settle_to_exit_ms: limits::SETTLE_TO_EXIT_MS,
            leftovers_grace_ms: limits::LEFTOVERS_GRACE_MS,
            start_retries: limits::START_RETRIES,
            start_retry_ms: limits::START_RETRY_MS,
            early_wake_dwell_ms: limits::EARLY_WAKE_DWELL_MS,
            wake_bypass: limits::WAKE_BYPASS,
            park_deadline_ms: limits::PARK_DEADLINE_MS,
            park_again_ms: limits::PARK_AGAIN_MS,
            startup_ms: limits::STARTUP_MS,
            idle_ms: limits::IDLE_MS,
            hold_ms: limits::HOLD_MS,
            join_window_ms: limits::JOIN_WINDOW_MS,
            join_hold_ms: limits::JOIN_HOLD_MS,
            join_straggler_ms: limits::JOIN_STRAGGLER_MS,
        }
    }
}
