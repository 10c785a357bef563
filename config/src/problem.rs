//! What is wrong with a configuration, and what to do about it.

use std::path::{Path, PathBuf};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What it is about has no effect; the rest holds.
    Warning,
    /// Nothing is done with such a configuration.
    Error,
}

/// One of the things that are wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad.
    pub level: Level,
    /// The file; `None` for a variable of the environment.
    pub file: Option<PathBuf>,
    /// The line, from 1, where one can be told.
    pub line: Option<usize>,
    /// The key or variable, where it is about one.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Problem {
    /// About a file as a whole.
    pub fn of_file(level: Level, file: &Path, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { level, file: Some(file.to_owned()), line: None, key: None, message: message.into(), hint: Some(hint.into()) }
    }

    /// About a variable.
    pub fn of_variable(name: &str, message: impl Into<String>) -> Self {
        Self { level: Level::Error, file: None, line: None, key: Some(name.to_owned()), message: message.into(), hint: None }
    }

    /// Where, as people and editors write it.
    pub fn place(&self) -> String {
        match (&self.file, self.line, &self.key) {
            (Some(file), Some(line), _) => format!("{}:{line}", file.display()),
            (Some(file), None, _) => file.display().to_string(),
            (None, _, Some(key)) => key.clone(),
            (None, _, None) => "the environment".to_owned(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.place(), self.message)
    }
}
