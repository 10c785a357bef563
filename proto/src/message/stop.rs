//! Stopping direct children and interrupting a tree: contract section 8.

use serde::{Deserialize, Serialize};

/// Stops direct children and all that descends from them. One bad name, and nothing is touched.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Repeating it gets the same answer, and stops nobody who was resumed since; with other names it is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Which children.
    pub names: Vec<String>,
    /// Answer as soon as the stop is on disk, not when the last process is gone.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub no_wait: bool,
}

/// Answer to [`Stop`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopReply {
    /// One entry per name, in order.
    pub workers: Vec<Stopped>,
}

/// What a stop did to one worker.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The worker's name.
    pub name: String,
    /// What was done.
    pub result: StopResult,
}

/// The two answers to a stop; what the journal says decides.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopResult {
    /// It was active and is stopped.
    Stopped,
    /// It had ended before.
    AlreadySettled,
}

/// Stops everything of the tree that runs, is queued or is parked (root only).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// Repeating it gets the same answer, and leaves alone what was launched in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Answer as soon as it is on disk, not when the last process is gone.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub no_wait: bool,
}

/// Answer to [`Interrupt`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptReply {
    /// How many workers were active; 0 means that there was nothing to do.
    pub stopped: u32,
    /// The tree's new interrupt generation.
    pub generation: u64,
}
