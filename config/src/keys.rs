//! Every key that has a value, in one table: what it may be, what holds without it, and where it goes.

use roost_proto::limits::{
    BUDGET_MAX, CAP_MAX, CLOSED_WORKERS_MAX, DEPTH_MAX, IDLE_EXIT_SECONDS, RETENTION_MS, START_RETRIES_MAX, STOP_GRACE_MS_MAX,
    TIMING_MS_MAX, WAKE_BYPASS_MAX,
};
use roost_proto::message::tree::Settings;
use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer};

use crate::value::{Kind, Value};

/// What a key is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Settings of new trees: in both files.
    Tree,
    /// Flags of the daemon, which is one per user: in the user's file only.
    Daemon,
}

/// One key.
#[derive(Debug)]
pub struct Key {
    /// Its section and its name: `tree.cap`.
    pub name: &'static str,
    /// Its section.
    pub section: Section,
    /// The flag that says the same.
    pub flag: &'static str,
    /// What its values are.
    pub kind: Kind,
    slot: Slot,
}

/// Where a value goes.
#[derive(Debug)]
enum Slot {
    Large(fn(&mut Settings) -> &mut u64),
    Small(fn(&mut Settings) -> &mut u32),
    Word(fn(&mut Settings) -> &mut dyn Choice),
    Caps,
    Daemon(fn() -> Value),
}

/// A word of the protocol.
trait Choice {
    fn word(&self) -> String;
    fn choose(&mut self, word: &str);
}

impl<T: Serialize + DeserializeOwned> Choice for T {
    fn word(&self) -> String {
        serde_json::to_string(self).unwrap_or_default().trim_matches('"').to_owned()
    }

    fn choose(&mut self, word: &str) {
        let deserializer: serde::de::value::StrDeserializer<'_, serde::de::value::Error> = word.into_deserializer();
        // The words of a key are those of the type: a test tries them all.
        if let Ok(chosen) = T::deserialize(deserializer) {
            *self = chosen;
        }
    }
}

const fn tree(name: &'static str, flag: &'static str, kind: Kind, slot: Slot) -> Key {
    Key { name, section: Section::Tree, flag, kind, slot }
}

/// A time that `--set` knows.
const fn timing(name: &'static str, field: fn(&mut Settings) -> &mut u64) -> Key {
    tree(name, "--set", Kind::Time { most_ms: TIMING_MS_MAX }, Slot::Large(field))
}

const fn daemon(name: &'static str, flag: &'static str, kind: Kind, default: fn() -> Value) -> Key {
    Key { name, section: Section::Daemon, flag, kind, slot: Slot::Daemon(default) }
}

const fn number(unit: &'static str, least: u64, most: u64) -> Kind {
    Kind::Number { unit, least, most }
}

/// All of them, in the order in which they are shown.
pub const KEYS: &[Key] = &[
    tree("tree.cap", "--cap", number("workers", 1, CAP_MAX as u64), Slot::Small(|to| &mut to.cap)),
    tree("tree.budget", "--budget", number("workers", 1, BUDGET_MAX), Slot::Large(|to| &mut to.budget)),
    tree("tree.depth", "--depth", number("levels", 1, DEPTH_MAX as u64), Slot::Small(|to| &mut to.depth_max)),
    tree("tree.group_cap", "--group-cap", Kind::Caps, Slot::Caps),
    tree("tree.blocked_wait", "--blocked-wait", Kind::Word(&["lend", "refuse"]), Slot::Word(|to| &mut to.blocked_wait)),
    tree("tree.leftovers", "--leftovers", Kind::Word(&["end", "keep"]), Slot::Word(|to| &mut to.leftovers)),
    tree("tree.on_parent_failure", "--on-parent-failure", Kind::Word(&["stop", "adopt"]), Slot::Word(|to| &mut to.on_parent_failure)),
    tree("tree.interrupt_scope", "--interrupt-scope", Kind::Word(&["all", "foreground", "none"]), Slot::Word(|to| &mut to.interrupt_scope)),
    tree("tree.delivery", "--delivery", Kind::Word(&["steer", "follow_up", "next_turn", "passive"]), Slot::Word(|to| &mut to.delivery)),
    tree("tree.join", "--join", Kind::Word(&["async", "group", "smart"]), Slot::Word(|to| &mut to.join)),
    tree("tree.stop_grace", "--stop-grace", Kind::Time { most_ms: STOP_GRACE_MS_MAX }, Slot::Large(|to| &mut to.stop_grace_ms)),
    timing("tree.settle_to_exit", |to| &mut to.timing.settle_to_exit_ms),
    timing("tree.leftovers_grace", |to| &mut to.timing.leftovers_grace_ms),
    tree("tree.start_retries", "--set", number("tries", 0, START_RETRIES_MAX as u64), Slot::Small(|to| &mut to.timing.start_retries)),
    timing("tree.start_retry", |to| &mut to.timing.start_retry_ms),
    timing("tree.early_wake_dwell", |to| &mut to.timing.early_wake_dwell_ms),
    tree("tree.wake_bypass", "--set", number("admissions", 1, WAKE_BYPASS_MAX), Slot::Large(|to| &mut to.timing.wake_bypass)),
    timing("tree.park_deadline", |to| &mut to.timing.park_deadline_ms),
    timing("tree.park_again", |to| &mut to.timing.park_again_ms),
    timing("tree.startup", |to| &mut to.timing.startup_ms),
    timing("tree.idle", |to| &mut to.timing.idle_ms),
    timing("tree.hold", |to| &mut to.timing.hold_ms),
    timing("tree.join_window", |to| &mut to.timing.join_window_ms),
    timing("tree.join_hold", |to| &mut to.timing.join_hold_ms),
    timing("tree.join_straggler", |to| &mut to.timing.join_straggler_ms),
    daemon("daemon.cap", "--cap", number("workers", 1, CAP_MAX as u64), || Value::None),
    daemon("daemon.keep", "--keep", number("workers", 0, u64::MAX), || Value::Number(CLOSED_WORKERS_MAX as u64)),
    daemon("daemon.retention", "--retention", Kind::Time { most_ms: u64::MAX }, || Value::Time(RETENTION_MS)),
    daemon("daemon.idle_exit", "--idle-exit", Kind::Time { most_ms: u64::MAX }, || Value::Time(IDLE_EXIT_SECONDS * 1_000)),
    daemon("daemon.cgroup", "--cgroup", Kind::Cgroup, || Value::Word("auto".into())),
];

/// The key of this name.
pub fn key(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

impl Key {
    /// Its name in its section.
    pub fn short(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, short)| short)
    }

    /// The variable of the environment that sets it.
    pub fn variable(&self) -> String {
        format!("ROOST_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// What holds when nobody says anything.
    pub fn default(&self) -> Value {
        self.get(&mut Settings::default())
    }

    /// What these settings have. They are not changed.
    pub fn get(&self, settings: &mut Settings) -> Value {
        let number = |value: u64| if let Kind::Time { .. } = self.kind { Value::Time(value) } else { Value::Number(value) };
        match self.slot {
            Slot::Large(field) => number(*field(settings)),
            Slot::Small(field) => number(u64::from(*field(settings))),
            Slot::Word(field) => Value::Word(field(settings).word()),
            Slot::Caps => Value::Caps(settings.group_caps.clone()),
            Slot::Daemon(default) => default(),
        }
    }

    /// Puts a value where it belongs. A key of the daemon has no place there.
    pub fn put(&self, settings: &mut Settings, value: &Value) {
        match (&self.slot, value) {
            (Slot::Large(field), Value::Number(value) | Value::Time(value)) => *field(settings) = *value,
            // What is too much for the field is too much for the daemon, which says so.
            (Slot::Small(field), Value::Number(value) | Value::Time(value)) => *field(settings) = u32::try_from(*value).unwrap_or(u32::MAX),
            (Slot::Word(field), Value::Word(word)) => field(settings).choose(word),
            (Slot::Caps, Value::Caps(caps)) => settings.group_caps.clone_from(caps),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_a_tree_can_be_set_and_every_word_is_one_of_the_protocol() {
        let mut settings = Settings::default();
        for key in KEYS.iter().filter(|key| key.section == Section::Tree) {
            assert_eq!(key.kind.check(&key.default()), Ok(()), "{}", key.name);
            let values = match key.kind {
                Kind::Number { least, .. } => vec![Value::Number(least + 1)],
                Kind::Time { .. } => vec![Value::Time(7)],
                Kind::Word(words) => words.iter().rev().map(|word| Value::Word((*word).into())).collect(),
                Kind::Caps => vec![Value::Caps([("g".to_owned(), 1)].into())],
                Kind::Cgroup => unreachable!(),
            };
            for value in &values {
                key.put(&mut settings, value);
                assert_eq!(key.get(&mut settings), *value, "{}", key.name);
            }
            assert!(values.last().is_some_and(|last| matches!(last, Value::Word(_)) || *last != key.default()), "{}", key.name);
        }
        // None was forgotten: with another value in every field nothing of the default is left but words.
        let (mut changed, default) = (serde_json::to_value(&settings).unwrap(), serde_json::to_value(Settings::default()).unwrap());
        let timing = changed["timing"].take();
        assert!(timing.as_object().unwrap().iter().all(|(name, value)| default["timing"][name] != *value), "{timing}");
        let numbers = changed.as_object().unwrap().iter().filter(|(_, value)| value.is_number());
        assert!(numbers.clone().count() >= 4);
        numbers.for_each(|(name, value)| assert_ne!(default[name], *value, "{name}"));
    }

    #[test]
    fn names_and_variables_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for key in KEYS {
            assert!(seen.insert(key.variable()), "{}", key.name);
            assert!(key.name.starts_with(if key.section == Section::Tree { "tree." } else { "daemon." }));
        }
    }

    /// The cells of a key's row in `docs/config.md`, but for the last.
    fn row(key: &Key) -> String {
        let values = match key.kind {
            Kind::Number { unit, least, most: u64::MAX } => format!("{unit}, from {least}"),
            Kind::Number { unit, least, most } => format!("{unit}, {least} to {most}"),
            Kind::Time { most_ms: u64::MAX } => "time".to_owned(),
            Kind::Time { most_ms } => format!("time up to {}", Value::Time(most_ms)),
            Kind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            Kind::Cgroup => "`auto`, `own`, `off`, an absolute path".to_owned(),
            Kind::Caps => format!("names with 1 to {CAP_MAX}"),
        };
        format!("| `{}` | {values} | {} | `{}` |", key.name, key.default(), key.flag)
    }

    #[test]
    fn the_page_for_people_lists_every_key_as_it_is_and_its_examples_are_good() {
        let page = include_str!("../../docs/config.md");
        let listed: Vec<&str> = page.lines().filter(|line| line.starts_with("| `tree.") || line.starts_with("| `daemon.")).collect();
        let expected: Vec<String> = KEYS.iter().map(row).collect();
        for (line, row) in listed.iter().zip(&expected) {
            assert!(line.starts_with(row.as_str()), "{line}\n{row}");
        }
        assert_eq!(listed.len(), expected.len(), "{}", expected.join("\n"));
        let fields = crate::FIELDS.iter().filter(|field| !page.contains(&format!("| `{field}` |")));
        assert_eq!(fields.collect::<Vec<_>>(), Vec::<&&str>::new());
        for field in crate::FIELDS {
            let line = page.lines().find(|line| line.starts_with(&format!("| `{field}` |"))).unwrap();
            let is_for_projects = crate::PROJECT_FIELDS.contains(&field);
            assert_eq!(line.contains("| yes |"), is_for_projects, "{line}");
        }
        let examples: Vec<&str> = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(examples.len() >= 3);
        for text in examples {
            let whose = if text.starts_with("# .roost.toml") { crate::Whose::Project } else { crate::Whose::User };
            let parsed = crate::parse(text, std::path::Path::new("x"), whose);
            assert_eq!(parsed.problems, [], "{text}");
        }
    }
}
