//! The settings of a new tree as flags, for `run` and `open` alike.

use clap::{Args, ValueEnum};
use roost::proto::message::session::DeliveryMode;
use roost::proto::message::tree::{BlockedWait, InterruptScope, Join, Leftovers, OnParentFailure, Settings};

use crate::values;
use timing::Change;

mod timing;

/// Settings of a new tree.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings of the new tree")]
pub struct SettingsArgs {
    /// Most live worker processes, 1 to 100000 [default: 8]
    #[arg(long, value_name = "N", value_parser = values::cap, allow_negative_numbers = true)]
    cap: Option<u32>,
    /// Most workers that may ever be launched [default: 50]
    #[arg(long, value_name = "N", value_parser = values::budget, allow_negative_numbers = true)]
    budget: Option<u64>,
    /// What a blocking wait of a worker does with its slot [default: lend]
    #[arg(long, value_name = "HOW")]
    blocked_wait: Option<Blocked>,
    /// What happens to processes that a worker leaves behind [default: end]
    #[arg(long, value_name = "HOW")]
    leftovers: Option<Left>,
    /// What happens to active descendants of a worker that fails [default: stop]
    #[arg(long, value_name = "HOW")]
    on_parent_failure: Option<Orphans>,
    /// Time between TERM and KILL of a stop [default: 5s]
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    stop_grace: Option<u64>,
    /// What `roost interrupt` and Ctrl-C reach [default: all]
    #[arg(long, value_name = "WHAT")]
    interrupt_scope: Option<Scope>,
    /// Deepest nesting; a worker of the root has depth 1 [default: 4096]
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Most live workers of a group, 1 to 100000; may be repeated
    #[arg(long, value_name = "NAME=N", value_parser = values::group_cap)]
    group_cap: Vec<(String, u32)>,
    /// A time or a number of tries; may be repeated: settle_to_exit=5s, leftovers_grace=1s, start_retries=2, start_retry=1s,
    /// early_wake_dwell=250ms, wake_bypass=32, park_deadline=10s, park_again=5s, startup=2m, idle=20m,
    /// hold=200ms, join_window=100ms, join_hold=30s, join_straggler=15s; 0 = off
    #[arg(long, value_name = "KEY=VALUE", value_parser = timing::change)]
    set: Vec<Change>,
    /// When ends of children reach a lead that speaks the protocol [default: steer]
    #[arg(long, value_name = "WHEN")]
    delivery: Option<Delivery>,
    /// Whether ends that come close together are announced as one; not for `--delivery steer` [default: async]
    #[arg(long, value_name = "HOW")]
    join: Option<Joined>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Delivery {
    /// Into the turn that is on; an idle lead is woken
    Steer,
    /// When the turn has nothing left to do; an idle lead is woken
    FollowUp,
    /// With the next turn that something else starts
    NextTurn,
    /// Not at all: results are fetched
    Passive,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Joined {
    /// Each alone
    Async,
    /// Those of two or more launches close to each other together
    Group,
    /// As `group`, where it pays
    Smart,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Blocked {
    /// Lend it to others while it waits
    Lend,
    /// Keep it; when nothing else can move, the wait fails
    Refuse,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Left {
    /// They are ended
    End,
    /// They are left alone
    Keep,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Orphans {
    /// They are stopped
    Stop,
    /// The nearest living ancestor takes them
    Adopt,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Scope {
    /// Everything that runs, is queued or is parked
    All,
    /// What was launched in the foreground, and all below it
    Foreground,
    /// Nothing
    None,
}

impl SettingsArgs {
    /// The first flag that was given, if any: they make sense for a new tree only.
    pub fn given(&self) -> Option<&'static str> {
        [
            ("--cap", self.cap.is_some()),
            ("--budget", self.budget.is_some()),
            ("--blocked-wait", self.blocked_wait.is_some()),
            ("--leftovers", self.leftovers.is_some()),
            ("--on-parent-failure", self.on_parent_failure.is_some()),
            ("--stop-grace", self.stop_grace.is_some()),
            ("--interrupt-scope", self.interrupt_scope.is_some()),
            ("--depth", self.depth.is_some()),
            ("--group-cap", !self.group_cap.is_empty()),
            ("--set", !self.set.is_empty()),
            ("--delivery", self.delivery.is_some()),
            ("--join", self.join.is_some()),
        ]
        .into_iter()
        .find_map(|(flag, given)| given.then_some(flag))
    }

    /// As the wire has them.
    pub fn settings(&self) -> Settings {
        let default = Settings::default();
        Settings {
            cap: self.cap.unwrap_or(default.cap),
            budget: self.budget.unwrap_or(default.budget),
            blocked_wait: self.blocked_wait.map_or(default.blocked_wait, |how| match how {
                Blocked::Lend => BlockedWait::Lend,
                Blocked::Refuse => BlockedWait::Refuse,
            }),
            leftovers: self.leftovers.map_or(default.leftovers, |how| match how {
                Left::End => Leftovers::End,
                Left::Keep => Leftovers::Keep,
            }),
            on_parent_failure: self.on_parent_failure.map_or(default.on_parent_failure, |how| match how {
                Orphans::Stop => OnParentFailure::Stop,
                Orphans::Adopt => OnParentFailure::Adopt,
            }),
            stop_grace_ms: self.stop_grace.unwrap_or(default.stop_grace_ms),
            depth_max: self.depth.unwrap_or(default.depth_max),
            interrupt_scope: self.interrupt_scope.map_or(default.interrupt_scope, |what| match what {
                Scope::All => InterruptScope::All,
                Scope::Foreground => InterruptScope::Foreground,
                Scope::None => InterruptScope::None,
            }),
            group_caps: self.group_cap.iter().cloned().collect(),
            delivery: self.delivery.map_or(default.delivery, |when| match when {
                Delivery::Steer => DeliveryMode::Steer,
                Delivery::FollowUp => DeliveryMode::FollowUp,
                Delivery::NextTurn => DeliveryMode::NextTurn,
                Delivery::Passive => DeliveryMode::Passive,
            }),
            join: self.join.map_or(default.join, |how| match how {
                Joined::Async => Join::Async,
                Joined::Group => Join::Group,
                Joined::Smart => Join::Smart,
            }),
            timing: timing::changed(default.timing, &self.set),
        }
    }
}
