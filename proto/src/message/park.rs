//! Parking by a plain command's own wish: `exec roost park`.

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;

/// Saves the caller's context. Once answered, the process must exit; the same argv is started again when there is something
/// to wake for: a child's completion, or no active descendant any more.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Park {
    /// What the next process finds in the file named by `ROOST_CONTEXT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Bytes>,
    /// Instead of it: the absolute path of a file of the worker's own, which `ROOST_CONTEXT` names then. Its length and digest are
    /// kept; it must be what it was when the worker is woken, and is never removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_path: Option<Bytes>,
}

/// Answer to [`Park`]: the context is on disk.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParkReply {}

/// What a woken command finds on its standard input, as one line of JSON.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// Why it was woken.
    pub reason: WakeReason,
    /// Direct children that have not ended yet.
    pub active_children: u32,
    /// What it is owed, in order; each is handed over once.
    pub items: Vec<crate::message::deliver::Item>,
}

/// Why a worker was woken.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WakeReason {
    /// Its subtree has settled.
    Settled,
    /// A completion is there and a slot was to spare; other descendants are still active.
    Completion,
}
