//! What holds for a whole tree, as its opening recorded it. Fields that came later have defaults, so that older journals load.

use serde::{Deserialize, Serialize};

/// What holds for a whole tree; see the message of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Most slots.
    pub cap: u32,
    /// Budget slots.
    pub budget: u64,
    /// Whether blocked waits lend their slot; otherwise they keep it and the newest may fail with `deadlock`.
    pub lend_slots: bool,
    /// Whether processes that a worker leaves behind are ended.
    pub end_leftovers: bool,
    /// Whether descendants of a worker that fails are adopted instead of stopped.
    pub adopt_orphans: bool,
    /// Milliseconds between TERM and KILL.
    pub stop_grace_ms: u64,
    /// Deepest nesting.
    pub depth_max: u32,
    /// What an interrupt reaches.
    #[serde(default)]
    pub interrupt_scope: InterruptScope,
    /// Groups with a cap, in the order of their names.
    pub group_caps: Vec<(String, u32)>,
    /// How completions reach a lead's model.
    #[serde(default)]
    pub delivery: Delivery,
    /// Which completions are told together.
    #[serde(default)]
    pub join: Join,
    /// Times and tries; the defaults in journals that are older than it.
    #[serde(default)]
    pub timing: Timing,
}

impl Settings {
    /// Milliseconds between TERM and KILL of what a main process leaves behind; `None` where that is left alone.
    pub fn leftovers_grace_ms(&self) -> Option<u64> {
        self.end_leftovers.then_some(self.timing.leftovers_grace_ms)
    }
}

/// Times and tries that hold for a whole tree; see the message of the same name. 0 is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// How long a process that has parked may take to exit.
    pub settle_to_exit_ms: u64,
    /// Milliseconds between TERM and KILL of what a main process leaves behind.
    pub leftovers_grace_ms: u64,
    /// Further tries of a start.
    pub start_retries: u32,
    /// Pause before the first of them; the n-th is n times as long.
    pub start_retry_ms: u64,
    /// How long a slot must have been to spare before an early wake takes it.
    pub early_wake_dwell_ms: u64,
    /// Admissions that may pass over a ready final wake.
    pub wake_bypass: u64,
    /// How long a worker may take to answer a park request.
    pub park_deadline_ms: u64,
    /// How long a worker that did not park in time is left alone.
    pub park_again_ms: u64,
    /// How long a process that speaks the protocol may take to say hello.
    pub startup_ms: u64,
    /// How long such a worker may show no sign of life outside of a tool.
    pub idle_ms: u64,
    /// How long a completion is held back before its lead takes it in.
    pub hold_ms: u64,
    /// Launches without a longer pause between them are told of together.
    pub join_window_ms: u64,
    /// How long the first completion of a group waits for the others.
    pub join_hold_ms: u64,
    /// How long the first straggler waits for the others.
    pub join_straggler_ms: u64,
}

impl Default for Timing {
    /// What a tree that was opened before there were such settings was opened with: replay depends on these numbers, so they never
    /// change, whatever `limits.rs` gives a new tree.
    fn default() -> Self {
        Self {
            settle_to_exit_ms: 5_000,
            leftovers_grace_ms: 1_000,
            start_retries: 2,
            start_retry_ms: 1_000,
            early_wake_dwell_ms: 250,
            wake_bypass: 32,
            park_deadline_ms: 10_000,
            park_again_ms: 5_000,
            startup_ms: 120_000,
            idle_ms: 1_200_000,
            hold_ms: 200,
            join_window_ms: 100,
            join_hold_ms: 30_000,
            join_straggler_ms: 15_000,
        }
    }
}

/// How completions reach a lead's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// Into its turn; an idle one is woken.
    #[default]
    Steer,
    /// After its turn; an idle one is woken.
    FollowUp,
    /// With the next turn that something else starts.
    NextTurn,
    /// Not at all.
    Passive,
}

impl Delivery {
    /// Whether a completion is a reason for a turn.
    pub fn wakes(self) -> bool {
        match self {
            Self::Steer | Self::FollowUp => true,
            Self::NextTurn | Self::Passive => false,
        }
    }

    /// Whether completions are pushed.
    pub fn pushes(self) -> bool {
        match self {
            Self::Steer | Self::FollowUp | Self::NextTurn => true,
            Self::Passive => false,
        }
    }
}

/// Which completions are told together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Each alone.
    #[default]
    Async,
    /// Those of launches that came together.
    Group,
}

/// What an interrupt reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptScope {
    /// Everything of the tree.
    #[default]
    All,
    /// What was launched in the foreground, and all below it.
    Foreground,
    /// Nothing.
    None,
}
