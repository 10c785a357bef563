//! The layers on top of each other: a variable of the environment goes before the project's file, that before the user's, and that
//! before what holds without any of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use roost_proto::message::tree::Settings;

use crate::file::{self, Whose};
use crate::keys::{KEYS, Key, Section};
use crate::near::nearest;
use crate::parse::{Parsed, parse};
use crate::places;
use crate::problem::{Level, Problem};
use crate::profile::{Profile, ProfileError};
use crate::value::Value;

/// Where a configuration is looked for.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// Who we are.
    pub uid: u32,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<OsString>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// The working directory, where a project's file counts.
    pub cwd: Option<PathBuf>,
    /// The variables of the environment.
    pub variables: Vec<(OsString, OsString)>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A flag of the command.
    Flag(&'static str),
    /// A variable.
    Variable(String),
    /// A line of the project's file.
    Project(PathBuf, usize),
    /// A line of the user's file.
    User(PathBuf, usize),
    /// Nobody said anything.
    Default,
}

/// One file.
#[derive(Debug, Default)]
struct Layer {
    file: Option<PathBuf>,
    is_there: bool,
    parsed: Parsed,
}

/// A configuration.
#[derive(Debug, Default)]
pub struct Config {
    user: Layer,
    project: Layer,
    variables: BTreeMap<&'static str, Value>,
    of_variables: Vec<Problem>,
}

impl Around {
    /// Of this process.
    pub fn from_env() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            config_home: std::env::var_os("XDG_CONFIG_HOME"),
            // Falls back to the passwd entry.
            home: std::env::home_dir(),
            // One that is gone has no project.
            cwd: std::env::current_dir().ok(),
            variables: std::env::vars_os().collect(),
        }
    }

    /// The same without a project: the daemon is one per user.
    #[must_use]
    pub fn without_project(self) -> Self {
        Self { cwd: None, ..self }
    }
}

impl Config {
    /// Reads everything that is there. Whatever is wrong is among the problems.
    pub fn load(around: &Around) -> Self {
        let user = places::user_file(around.config_home.as_deref(), around.home.as_deref());
        let project = around.cwd.as_deref().and_then(|cwd| places::project_file(cwd, around.home.as_deref()));
        let (variables, of_variables) = read_variables(&around.variables);
        Self {
            user: Layer::load(user, Whose::User, around.uid),
            project: Layer::load(project, Whose::Project, around.uid),
            variables,
            of_variables,
        }
    }

    /// One file alone, to check it.
    pub fn check(file: &Path, whose: Whose, uid: u32) -> Vec<Problem> {
        let layer = Layer::load(Some(file.to_owned()), whose, uid);
        if layer.is_there {
            return layer.parsed.problems;
        }
        vec![Problem::of_file(Level::Error, file, "there is no such file", "name one that is there")]
    }

    /// Everything that is wrong: of the user's file, of the project's, of variables.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        self.user.parsed.problems.iter().chain(&self.project.parsed.problems).chain(&self.of_variables)
    }

    /// The first thing for which nothing is done with it.
    pub fn error(&self) -> Option<&Problem> {
        self.problems().find(|problem| problem.level == Level::Error)
    }

    /// The user's file, and whether it is there.
    pub fn user_file(&self) -> Option<(&Path, bool)> {
        self.user.file.as_deref().map(|file| (file, self.user.is_there))
    }

    /// The project's file, where there is one.
    pub fn project_file(&self) -> Option<&Path> {
        self.project.file.as_deref()
    }

    /// What holds for a key, and by whom.
    pub fn value(&self, key: &Key) -> (Value, Source) {
        if let Some(value) = self.variables.get(key.name) {
            return (value.clone(), Source::Variable(key.variable()));
        }
        let of = |layer: &Layer, source: fn(PathBuf, usize) -> Source| {
            let (value, line) = layer.parsed.values.get(key.name)?;
            Some((value.clone(), source(layer.file.clone()?, *line)))
        };
        let found = of(&self.project, Source::Project).or_else(|| of(&self.user, Source::User));
        found.unwrap_or_else(|| (key.default(), Source::Default))
    }

    /// The settings of a new tree.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        KEYS.iter().filter(|key| key.section == Section::Tree).for_each(|key| key.put(&mut settings, &self.value(key).0));
        settings
    }

    /// The names of all profiles that can be run.
    pub fn profiles(&self) -> Vec<String> {
        let parts = self.user.parsed.profiles.iter();
        parts.filter(|(_, part)| part.runs_something()).map(|(name, _)| name.clone()).collect()
    }

    /// Where a profile is said, the project's file first.
    pub fn profile_sources(&self, name: &str) -> Vec<Source> {
        let of =
            |layer: &Layer, source: fn(PathBuf, usize) -> Source| Some(source(layer.file.clone()?, layer.parsed.profiles.get(name)?.line));
        of(&self.project, Source::Project).into_iter().chain(of(&self.user, Source::User)).collect()
    }

    /// The profile of this name.
    ///
    /// # Errors
    /// When there is none that can be run.
    pub fn profile(&self, name: &str) -> Result<Profile, ProfileError> {
        let of = |layer: &Layer| layer.parsed.profiles.get(name).cloned();
        match (of(&self.user), of(&self.project)) {
            (None, None) => Err(ProfileError::Unknown { known: self.profiles() }),
            (user, project) => Profile::of(name, user.unwrap_or_default(), project.unwrap_or_default()),
        }
    }
}

impl Layer {
    fn load(file: Option<PathBuf>, whose: Whose, uid: u32) -> Self {
        let Some(path) = file else { return Self::default() };
        match file::read(&path, whose, uid) {
            Ok(None) => Self { file: Some(path), ..Self::default() },
            Ok(Some(text)) => Self { parsed: parse(&text, &path, whose), is_there: true, file: Some(path) },
            Err(problem) => {
                let parsed = Parsed { problems: vec![problem], ..Parsed::default() };
                Self { parsed, is_there: true, file: Some(path) }
            }
        }
    }
}

/// Variables that set a key; one that looks like it and is none is worth a word.
fn read_variables(all: &[(OsString, OsString)]) -> (BTreeMap<&'static str, Value>, Vec<Problem>) {
    let (mut values, mut problems) = (BTreeMap::new(), Vec::new());
    let known: BTreeSet<String> = KEYS.iter().map(Key::variable).collect();
    let ours = all.iter().filter(|(name, value)| {
        let name = name.to_string_lossy();
        !value.is_empty() && (name.starts_with("ROOST_TREE_") || name.starts_with("ROOST_DAEMON_"))
    });
    for (name, value) in ours {
        let name = name.to_string_lossy();
        let Some(key) = KEYS.iter().find(|key| key.variable() == name) else {
            let near = nearest(&name, known.iter().map(String::as_str)).map(|near| format!("did you mean {near}?"));
            problems.push(Problem { level: Level::Warning, hint: near, ..Problem::of_variable(&name, "there is no such variable") });
            continue;
        };
        let read = value.to_str().ok_or_else(|| "it is not UTF-8".to_owned());
        match read.and_then(|text| key.kind.read(text)).and_then(|value| key.kind.check(&value).map(|()| value)) {
            Ok(value) => drop(values.insert(key.name, value)),
            Err(why) => problems.push(Problem::of_variable(&name, why)),
        }
    }
    (values, problems)
}

#[cfg(test)]
mod tests;
