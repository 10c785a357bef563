//! The daemon itself.

use serde::{Deserialize, Serialize};

use crate::id::TreeId;

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

/// Forgets closed trees with their results and files, the oldest first, and gives the journal's room back. A tree stays while its root
/// is owed a result that nobody has read.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonGc {
    /// Those that were closed at least so many milliseconds ago. Without this and `max_bytes`: those that retention says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than_ms: Option<u64>,
    /// The oldest, until outputs and transcripts of all closed trees that are left take no more bytes than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// Only say what would go.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub dry_run: bool,
}

/// Answer to [`DaemonGc`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonGcReply {
    /// The trees that are gone, or would be.
    pub trees: Vec<SweptTree>,
    /// There are more of them: the next call goes on.
    pub more: bool,
    /// How many there were in all, those that `more` stands for included.
    pub total: u64,
    /// How many workers those have.
    pub workers: u64,
    /// What their outputs and transcripts take.
    pub bytes: u64,
    /// How many trees stay for results that nobody has read.
    pub kept_unread: u64,
    /// What the journal's files took before.
    pub journal_bytes_before: u64,
    /// What they take now.
    pub journal_bytes: u64,
}

/// A tree that [`DaemonGc`] takes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweptTree {
    /// Which.
    pub tree: TreeId,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// When it was closed.
    pub closed_at_ms: u64,
    /// How many workers it has.
    pub workers: u64,
    /// What their outputs and transcripts take.
    pub bytes: u64,
}
