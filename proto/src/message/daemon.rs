//! The daemon itself.

use serde::{Deserialize, Serialize};

/// Asks how the daemon is.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {}

/// Answer to [`DaemonStatus`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatusReply {
    /// The supervisor's process.
    pub supervisor_pid: u32,
    /// The broker's process.
    pub broker_pid: u32,
    /// The daemon's version.
    pub version: String,
    /// The protocol version that it speaks.
    pub protocol: u32,
    /// The listening socket.
    pub socket: String,
    /// The state directory.
    pub state_dir: String,
    /// Open trees.
    pub trees: u32,
    /// Workers that hold a slot, over all trees.
    pub live: u32,
    /// Workers that wait for one, over all trees.
    pub queued: u32,
    /// Open connections, this one included.
    pub connections: u32,
    /// The cap over all trees, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
}

/// Asks for what is counted of the daemon's work.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonMetrics {}

/// Answer to [`DaemonMetrics`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonMetricsReply {
    /// OpenMetrics text. Counters begin at the start of the broker.
    pub text: String,
}

/// Ends the daemon. Queued and parked work stays on disk and goes on at the next start.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStop {
    /// Stop live workers (TERM, then KILL) instead of waiting for them.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub now: bool,
    /// Milliseconds to wait for live workers; then the stop is called off with `draining`, naming them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Answer to [`DaemonStop`]: nothing runs any more, and the daemon is leaving.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStopReply {
    /// How many live workers were stopped.
    pub stopped: u32,
}

/// Starts the broker anew with the installed binary. Workers and the supervisor stay.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonRestart {}

/// Answer to [`DaemonRestart`]: the old broker is leaving.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonRestartReply {
    /// The broker that leaves.
    pub broker_pid: u32,
}
