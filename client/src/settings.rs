//! The settings of a new tree as flags, for `run` and `open` alike.

use clap::{Args, ValueEnum};
use roost::proto::message::session::DeliveryMode;
use roost::proto::message::tree::{BlockedWait, InterruptScope, Join, Leftovers, OnParentFailure, Settings};

use crate::output::note;
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
    #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true)]
    stop_grace: Option<u64>,
    /// What `roost interrupt` and Ctrl-C reach [default: all]
    #[arg(long, value_name = "WHAT")]
    interrupt_scope: Option<Scope>,
    /// Deepest nesting; a worker of the root has depth 1 [default: 4096]
    #[arg(long, value_name = "N", value_parser = values::depth, allow_negative_numbers = true)]
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
        self.given_where(|_| true).first().copied()
    }

    /// The flags that were given and ask for something else than what an open tree has.
    fn without_effect_on(&self, tree: &Settings) -> Vec<&'static str> {
        let asked = self.over(tree.clone());
        self.given_where(|differs| differs(&asked, tree))
    }

    fn given_where(&self, wanted: impl Fn(fn(&Settings, &Settings) -> bool) -> bool) -> Vec<&'static str> {
        type Differs = fn(&Settings, &Settings) -> bool;
        let flags: [(&'static str, bool, Differs); 12] = [
            ("--cap", self.cap.is_some(), |a, b| a.cap != b.cap),
            ("--budget", self.budget.is_some(), |a, b| a.budget != b.budget),
            ("--blocked-wait", self.blocked_wait.is_some(), |a, b| a.blocked_wait != b.blocked_wait),
            ("--leftovers", self.leftovers.is_some(), |a, b| a.leftovers != b.leftovers),
            ("--on-parent-failure", self.on_parent_failure.is_some(), |a, b| a.on_parent_failure != b.on_parent_failure),
            ("--stop-grace", self.stop_grace.is_some(), |a, b| a.stop_grace_ms != b.stop_grace_ms),
            ("--interrupt-scope", self.interrupt_scope.is_some(), |a, b| a.interrupt_scope != b.interrupt_scope),
            ("--depth", self.depth.is_some(), |a, b| a.depth_max != b.depth_max),
            ("--group-cap", !self.group_cap.is_empty(), |a, b| a.group_caps != b.group_caps),
            ("--set", !self.set.is_empty(), |a, b| a.timing != b.timing),
            ("--delivery", self.delivery.is_some(), |a, b| a.delivery != b.delivery),
            ("--join", self.join.is_some(), |a, b| a.join != b.join),
        ];
        flags.into_iter().filter(|(_, given, differs)| *given && wanted(*differs)).map(|(flag, ..)| flag).collect()
    }

    /// Tells whoever asked an open tree for other settings that it keeps its own.
    pub fn note_without_effect(&self, tree: &Settings) {
        let flags = self.without_effect_on(tree);
        if !flags.is_empty() {
            note(&format!("roost: the tree of this key is open already and keeps its settings: without effect: {}", flags.join(" ")));
            note("hint: `roost cap N` changes the cap; for the others close it first with `roost close`");
        }
    }

    /// As the wire has them.
    pub fn settings(&self) -> Settings {
        self.over(Settings::default())
    }

    /// These settings, with what was asked for.
    fn over(&self, default: Settings) -> Settings {
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
            group_caps: default.group_caps.into_iter().chain(self.group_cap.iter().cloned()).collect(),
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: SettingsArgs,
    }

    fn asked(line: &str) -> SettingsArgs {
        Line::try_parse_from(line.split(' ')).unwrap().settings
    }

    #[test]
    fn what_an_open_tree_has_already_is_not_without_effect_and_what_was_not_asked_for_is_not_compared() {
        let tree =
            asked("roost --cap 3 --group-cap a=1 --group-cap b=2 --set hold=1s --set idle=1m --join group --delivery follow_up").settings();
        for same in ["roost", "roost --cap 3", "roost --group-cap b=2", "roost --set idle=60s", "roost --join group --set hold=1s"] {
            assert_eq!(asked(same).without_effect_on(&tree), Vec::<&str>::new(), "{same}");
        }
        let others =
            [("--cap 4 --budget 50", "--cap"), ("--group-cap b=3", "--group-cap"), ("--set startup=1s", "--set"), ("--depth 7", "--depth")];
        for (line, flag) in others {
            assert_eq!(asked(&format!("roost {line}")).without_effect_on(&tree), [flag], "{line}");
        }
    }
}
