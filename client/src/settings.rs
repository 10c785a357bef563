//! The settings of a new tree as flags, for `run` and `open` alike. What is configured (`docs/config.md`) holds where no flag says more.

use clap::{Args, ValueEnum};
use roost::proto::message::tree::Settings;
#[cfg(test)]
use roost_config::KEYS;
use roost_config::{Config, Key, Value, key};

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
        self.values().first().map(|(key, _)| key.flag)
    }

    /// What the flags say, in the order in which it holds.
    pub fn values(&self) -> Vec<(&'static Key, Value)> {
        let count = |number: Option<u64>| number.map(Value::Number);
        let caps = (!self.group_cap.is_empty()).then(|| Value::Caps(self.group_cap.iter().cloned().collect()));
        let flags = [
            ("tree.cap", count(self.cap.map(Into::into))),
            ("tree.budget", count(self.budget)),
            ("tree.blocked_wait", word(self.blocked_wait)),
            ("tree.leftovers", word(self.leftovers)),
            ("tree.on_parent_failure", word(self.on_parent_failure)),
            ("tree.stop_grace", self.stop_grace.map(Value::Time)),
            ("tree.interrupt_scope", word(self.interrupt_scope)),
            ("tree.depth", count(self.depth.map(Into::into))),
            ("tree.group_cap", caps),
            ("tree.delivery", word(self.delivery)),
            ("tree.join", word(self.join)),
        ];
        let flags = flags.into_iter().filter_map(|(name, value)| Some((key(name)?, value?)));
        flags.chain(self.set.iter().map(|change| (change.key, change.value.clone()))).collect()
    }

    /// Tells whoever asked an open tree for other settings that it keeps its own.
    pub fn note_without_effect(&self, tree: &Settings) {
        let flags = self.without_effect_on(tree);
        if !flags.is_empty() {
            note(&format!("roost: the tree of this key is open already and keeps its settings: without effect: {}", flags.join(" ")));
            note("hint: `roost cap N` changes the cap; for the others close it first with `roost close`");
        }
    }

    /// The flags that were given and ask for something else than what an open tree has.
    fn without_effect_on(&self, tree: &Settings) -> Vec<&'static str> {
        let differs = |(key, value): &(&'static Key, Value)| key.get(&mut tree.clone()) != *value;
        let mut flags: Vec<&'static str> = self.values().into_iter().filter(differs).map(|(key, _)| key.flag).collect();
        flags.dedup();
        flags
    }

    /// As the wire has them: what the flags say on top of what is configured.
    pub fn settings(&self, configured: &Config) -> Settings {
        let mut settings = configured.settings();
        self.values().iter().for_each(|(key, value)| key.put(&mut settings, value));
        settings
    }
}

/// The word of a choice.
fn word<C: ValueEnum>(choice: Option<C>) -> Option<Value> {
    choice?.to_possible_value().map(|value| Value::Word(value.get_name().to_owned()))
}

#[cfg(test)]
mod tests {
    use clap::{Args, FromArgMatches};
    use roost::proto::message::tree::Timing;

    use super::*;

    fn parsed(words: &[&str]) -> SettingsArgs {
        let command = SettingsArgs::augment_args(clap::Command::new("x"));
        let matches = command.try_get_matches_from(std::iter::once(&"x").chain(words)).unwrap();
        SettingsArgs::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn every_flag_and_every_word_of_it_is_a_key_and_a_good_value() {
        let command = SettingsArgs::augment_args(clap::Command::new("x"));
        let mut keys = std::collections::BTreeSet::new();
        for argument in command.get_arguments() {
            let flag = format!("--{}", argument.get_long().unwrap());
            let words: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
            let values = match flag.as_str() {
                "--set" => KEYS.iter().filter(|key| key.flag == "--set").map(|key| format!("{}=1", key.short())).collect(),
                "--group-cap" => vec!["g=1".to_owned()],
                _ if words.is_empty() => vec!["1".to_owned()],
                _ => words,
            };
            for value in values {
                let given = parsed(&[&flag, &value]).values();
                let [(key, value)] = &given[..] else { panic!("{flag}: {given:?}") };
                assert!(key.flag == flag && key.kind.check(value).is_ok(), "{flag}: {value}");
                if let Value::Word(word) = value {
                    assert_eq!(key.kind.read(word), Ok(value.clone()), "{flag}");
                }
                keys.insert(key.name);
            }
        }
        let all = KEYS.iter().filter(|key| key.section == roost_config::Section::Tree);
        assert_eq!(keys, all.map(|key| key.name).collect());
    }

    #[test]
    fn of_two_for_one_key_the_later_holds_and_what_an_open_tree_has_is_no_difference() {
        let args = parsed(&["--set", "hold=1s", "--set", "hold=2s", "--cap", "3", "--set", "idle=9s"]);
        let settings = args.settings(&Config::default());
        assert_eq!((settings.cap, settings.timing.hold_ms, settings.timing.idle_ms), (3, 2_000, 9_000));
        assert_eq!(args.given(), Some("--cap"));
        assert_eq!(parsed(&["--cap", "3", "--set", "hold=2s"]).without_effect_on(&settings), Vec::<&str>::new());
        assert_eq!(parsed(&["--cap", "4", "--set", "hold=1s", "--set", "idle=1s"]).without_effect_on(&settings), ["--cap", "--set"]);
    }

    #[test]
    fn every_time_and_number_lands_where_its_name_says() {
        let asked = [
            "settle_to_exit=1ms",
            "leftovers_grace=2s",
            "start_retries=3",
            "start_retry=4ms",
            "early_wake_dwell=0",
            "wake_bypass=6",
            "park_deadline=7m",
            "park_again=8ms",
            "startup=9ms",
            "idle=10ms",
            "hold=11ms",
            "join_window=12ms",
            "join_hold=13ms",
            "join_straggler=14ms",
        ];
        let expected = Timing {
            settle_to_exit_ms: 1,
            leftovers_grace_ms: 2_000,
            start_retries: 3,
            start_retry_ms: 4,
            early_wake_dwell_ms: 0,
            wake_bypass: 6,
            park_deadline_ms: 420_000,
            park_again_ms: 8,
            startup_ms: 9,
            idle_ms: 10,
            hold_ms: 11,
            join_window_ms: 12,
            join_hold_ms: 13,
            join_straggler_ms: 14,
        };
        let words: Vec<&str> = asked.iter().flat_map(|change| ["--set", change]).collect();
        assert_eq!(parsed(&words).settings(&Config::default()).timing, expected);
        assert_eq!(KEYS.iter().filter(|key| key.flag == "--set").count(), asked.len());
    }
}
