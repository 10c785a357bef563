//! Trees: opening, attaching, cap, pause, close, and the progress that a terminal shows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{Token, TreeId};
use crate::limits;
use crate::message::session::DeliveryMode;
pub use crate::message::timing::Timing;

/// Opens a tree, or attaches to the open one of the same key.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Repeating a request id returns the tree that it opened.
    pub request_id: String,
    /// A name by which a later session of the same root finds its tree again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Settings of a new tree; ignored when the key finds one.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(type = "Partial<Settings>", optional))]
    pub settings: Settings,
    /// Close the tree by itself once its root's connections are gone and nothing of it is active (`roost run`).
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub ephemeral: bool,
}

/// Attaches to an open tree as its root: the daemon's user may.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attach {
    /// Which tree.
    pub tree: TreeId,
}

/// Answer to [`Open`] and [`Attach`]. The connection speaks as the root of this tree from now on.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// The tree.
    pub tree: TreeId,
    /// The root's token.
    pub token: Token,
    /// Whether the tree is new.
    pub created: bool,
    /// Its settings.
    pub settings: Settings,
}

/// What holds for a whole tree. Only the cap can be changed later.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Most live worker processes, at least 1.
    pub cap: u32,
    /// Budget slots: most workers that may ever be launched, at most 2^53-1.
    pub budget: u64,
    /// What a blocked wait of a plain command does under pressure.
    pub blocked_wait: BlockedWait,
    /// What happens to processes that a worker leaves behind.
    pub leftovers: Leftovers,
    /// What happens to active descendants of a worker that fails.
    pub on_parent_failure: OnParentFailure,
    /// Milliseconds between TERM and KILL of a stop.
    pub stop_grace_ms: u64,
    /// Deepest nesting: a worker of the root has depth 1.
    pub depth_max: u32,
    /// What an interrupt reaches.
    pub interrupt_scope: InterruptScope,
    /// How completions reach a lead's model.
    pub delivery: DeliveryMode,
    /// Which completions are told together; never with `steer`.
    pub join: Join,
    /// Most live workers per group, for groups that are named here.
    pub group_caps: BTreeMap<String, u32>,
    /// Times and tries.
    pub timing: Timing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cap: 8,
            budget: 50,
            blocked_wait: BlockedWait::Lend,
            leftovers: Leftovers::End,
            on_parent_failure: OnParentFailure::Stop,
            stop_grace_ms: limits::STOP_GRACE_MS,
            depth_max: 4_096,
            interrupt_scope: InterruptScope::All,
            delivery: DeliveryMode::Steer,
            join: Join::Async,
            group_caps: BTreeMap::new(),
            timing: Timing::default(),
        }
    }
}

/// A plain command cannot be parked under its feet: what its blocked wait does when others need its slot.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedWait {
    /// The slot is lent; the call returns only after the worker has a slot again.
    Lend,
    /// The slot is kept; when nothing else can move, the newest wait fails with `deadlock`.
    Refuse,
}

/// Processes that outlive their worker's main process.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leftovers {
    /// They are ended: TERM, then KILL after [`Timing::leftovers_grace_ms`]; the slot is free when they are gone.
    End,
    /// They are listed and left alone; the slot is free at once.
    Keep,
}

/// Active descendants of a worker that failed.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnParentFailure {
    /// They are stopped with the failure `parent_failed`.
    Stop,
    /// The nearest living ancestor owns them.
    Adopt,
}

/// Which completions are told together. A group is what one lead launched without a longer pause than `join_window_ms`, two workers or
/// more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Each alone.
    Async,
    /// Those of a group.
    Group,
    /// The same: a single worker is never held back.
    Smart,
}

/// What an interrupt of the root reaches.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptScope {
    /// Everything that runs, is queued or is parked.
    All,
    /// What was launched in the foreground, and all below it.
    Foreground,
    /// Nothing: `interrupt` answers that there is nothing to do.
    None,
}

/// Reads or (root only) sets the cap.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// The new cap, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<u32>,
}

/// Answer to [`Cap`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapReply {
    /// The cap that holds now.
    pub cap: u32,
    /// Workers that hold a slot.
    pub live: u32,
    /// Workers in the queue.
    pub queued: u32,
}

/// Holds or releases admissions (root only). Nothing that runs is touched.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Whether admissions are held.
    pub paused: bool,
}

/// Answer to [`Pause`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseReply {
    /// Whether admissions are held now.
    pub paused: bool,
}

/// Closes the tree (root only): no launch is taken any more, its results stay readable.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Close {
    /// Stop what is active first; otherwise active work makes `close` fail with `active`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub now: bool,
}

/// Answer to [`Close`].
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// How many active workers were stopped for it.
    pub stopped: u32,
}

/// Asks for a [`Progress`] now and a `progress` notification after every change, until the connection ends.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {}

/// The method of the notification that carries a [`Progress`] to a watcher.
pub const PROGRESS: &str = "progress";

/// How a tree stands.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The tree.
    pub tree: TreeId,
    /// The cap.
    pub cap: u32,
    /// Workers that hold a slot.
    pub live: u32,
    /// Workers in the queue.
    pub queued: u32,
    /// Workers whose context is saved and whose process is gone.
    pub parked: u32,
    /// Live workers that wait and have lent their slot.
    pub blocked: u32,
    /// Workers that have answered while descendants are active.
    pub finishing: u32,
    /// Executions that completed.
    pub completed: u32,
    /// Executions that failed.
    pub failed: u32,
    /// Executions that were stopped.
    pub stopped: u32,
    /// Whether admissions are held.
    pub paused: bool,
}
