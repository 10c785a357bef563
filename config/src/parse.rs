//! One text: its values and profiles, each with its line, and everything that is wrong with it, not only the first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::file::Whose;
use crate::keys::{KEYS, Key, Section};
use crate::near::nearest;
use crate::problem::{Level, Problem};
use crate::profile::{FIELDS, PROJECT_FIELDS, Part};
use crate::value::{Value, described};

/// What one file says.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Values by key, with their lines.
    pub values: BTreeMap<&'static str, (Value, usize)>,
    /// Profiles by name.
    pub profiles: BTreeMap<String, Part>,
    /// What is wrong, in the order of the lines.
    pub problems: Vec<Problem>,
}

/// Names under which a program is meant, wherever they stand.
const RUNS: [&str; 12] =
    ["argv", "args", "program", "command", "exec", "path", "PATH", "env", "runner", "model_args", "thinking_args", "tools_args"];
/// Where they belong.
const USER_FILE: &str = "put it into your own file, $XDG_CONFIG_HOME/roost/config.toml (as a rule ~/.config/roost/config.toml)";
const SECTIONS: [&str; 3] = ["tree", "daemon", "profile"];

/// Reads a text.
pub fn parse(text: &str, file: &Path, whose: Whose) -> Parsed {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader { text, file, whose, parsed: Parsed::default() };
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        // One word per line is enough.
        if reader.parsed.problems.last().is_some_and(|last| last.line == Some(reader.line(at))) {
            continue;
        }
        reader.tell(Level::Error, at, None, format!("this is not TOML: {}", error.message()), None);
    }
    // What is left of a line that is no TOML would be wrong in its own way.
    let broken: BTreeSet<Option<usize>> = reader.parsed.problems.iter().map(|problem| problem.line).collect();
    let syntax = reader.parsed.problems.len();
    reader.whole(table.get_ref());
    let mut parsed = reader.parsed;
    let rest = parsed.problems.split_off(syntax);
    parsed.problems.extend(rest.into_iter().filter(|problem| !broken.contains(&problem.line)));
    parsed.problems.sort_by_key(|problem| problem.line);
    parsed
}

type Name<'n> = Spanned<std::borrow::Cow<'n, str>>;

struct Reader<'r> {
    text: &'r str,
    file: &'r Path,
    whose: Whose,
    parsed: Parsed,
}

impl Reader<'_> {
    fn whole(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let (at, word) = (name.span().start, &**name.get_ref());
            match (word, value.get_ref()) {
                ("tree", DeValue::Table(table)) => self.section(Section::Tree, table),
                ("daemon", DeValue::Table(table)) if self.whose == Whose::User => self.section(Section::Daemon, table),
                ("daemon", _) if self.whose == Whose::Project => {
                    let message = "the daemon is one per user, and a project's file cannot set its flags".to_owned();
                    self.tell(Level::Error, at, Some(word.into()), message, Some(USER_FILE.into()));
                }
                ("profile", DeValue::Table(table)) => {
                    for (name, value) in table {
                        self.profile(name, value.get_ref());
                    }
                }
                (word, other) if SECTIONS.contains(&word) => {
                    let message = format!("`{word}` is a section: write [{word}], and this is {}", described(other));
                    self.tell(Level::Error, at, Some(word.into()), message, None);
                }
                (word, _) => self.unknown(at, "", word, &SECTIONS),
            }
        }
    }

    fn section(&mut self, section: Section, table: &DeTable<'_>) {
        let keys: Vec<&'static Key> = KEYS.iter().filter(|key| key.section == section).collect();
        let prefix = if section == Section::Tree { "tree." } else { "daemon." };
        for (name, value) in table {
            let at = name.span().start;
            let Some(key) = keys.iter().find(|key| key.short() == name.get_ref()) else {
                let known: Vec<&str> = keys.iter().map(|key| key.short()).collect();
                self.unknown(at, prefix, name.get_ref(), &known);
                continue;
            };
            match key.kind.take(value.get_ref()).and_then(|value| key.kind.check(&value).map(|()| value)) {
                Ok(value) => drop(self.parsed.values.insert(key.name, (value, self.line(at)))),
                Err(why) => self.tell(Level::Error, at, Some(key.name.into()), format!("`{}`: {why}", key.name), None),
            }
        }
    }

    fn profile(&mut self, name: &Name<'_>, value: &DeValue<'_>) {
        let (at, word) = (name.span().start, name.get_ref());
        let whole = format!("profile.{}", word.escape_debug());
        let DeValue::Table(table) = value else {
            let message = format!("`{whole}` is a section: write [{whole}], and this is {}", described(value));
            self.tell(Level::Error, at, Some(whole), message, None);
            return;
        };
        let mut part = Part::at(self.line(at));
        let known: &[&str] = if self.whose == Whose::User { &FIELDS } else { &PROJECT_FIELDS };
        for (field, value) in table {
            let (at, field) = (field.span().start, &**field.get_ref());
            let key = format!("{whole}.{}", field.escape_debug());
            if !known.contains(&field) {
                self.unknown(at, &format!("{whole}."), field, known);
            } else if let Err(why) = part.take(field, value.get_ref()) {
                self.tell(Level::Error, at, Some(key.clone()), format!("`{key}`: {why}"), None);
            }
        }
        let is_broken = self.parsed.problems.iter().any(|problem| problem.key.as_ref().is_some_and(|key| key.starts_with(&whole)));
        if self.whose == Whose::User && !part.runs_something() && !is_broken {
            let message = format!("`{whole}` does not say what is run");
            self.tell(Level::Error, at, Some(whole), message, Some("add argv = [\"PROGRAM\", ...]".into()));
        }
        self.parsed.profiles.insert(word.to_string(), part);
    }

    fn unknown(&mut self, at: usize, prefix: &str, word: &str, known: &[&str]) {
        let key = format!("{prefix}{}", word.escape_debug());
        if self.whose == Whose::Project && RUNS.contains(&word) {
            let message =
                format!("`{key}` says what is run, and a project's file may not: whoever can change the project could run anything");
            self.tell(Level::Error, at, Some(key), message, Some(USER_FILE.into()));
            return;
        }
        // A setting without its section is a likely slip.
        let elsewhere = || KEYS.iter().find(|key| prefix.is_empty() && key.short() == word).map(|key| key.name);
        let hint =
            match nearest(word, known.iter().copied()).map(|near| format!("{prefix}{near}")).or_else(|| elsewhere().map(str::to_owned)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", known.join(", ")),
            };
        self.tell(Level::Warning, at, Some(key.clone()), format!("there is no key `{key}`"), Some(hint));
    }

    fn tell(&mut self, level: Level, at: usize, key: Option<String>, message: String, hint: Option<String>) {
        let line = Some(self.line(at));
        self.parsed.problems.push(Problem { level, file: Some(self.file.to_owned()), line, key, message, hint });
    }

    fn line(&self, at: usize) -> usize {
        self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
    }
}

#[cfg(test)]
mod tests;
