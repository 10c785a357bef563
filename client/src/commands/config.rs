//! `roost config`: what holds and by whom, and what is wrong with the files. It speaks to no daemon.

mod explain;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use roost_config::{Around, Config, Level, Problem, Whose};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};

/// Say which settings hold and where they come from, or what is wrong with the files
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost config explain\n  roost config check\n\nThe keys are in docs/config.md.")]
pub struct ConfigArgs {
    #[command(subcommand)]
    verb: ConfigVerb,
}

#[derive(Debug, Subcommand)]
enum ConfigVerb {
    Explain(explain::ExplainArgs),
    Check(CheckArgs),
}

/// Look for everything that is wrong with your file, the project's and the variables; exit 1 when something is
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost config check\n  roost config check ./.roost.toml\n\n\
    A file of the name .roost.toml is checked as a project's, any other as your own.")]
struct CheckArgs {
    /// Only this file
    #[arg(value_name = "FILE")]
    file: Option<OsString>,
}

impl ConfigArgs {
    /// Does it.
    pub fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        match self.verb {
            ConfigVerb::Explain(args) => args.run(out),
            ConfigVerb::Check(args) => args.run(out),
        }
    }
}

/// A problem as programs read it.
#[derive(Serialize)]
struct Told<'p> {
    level: &'static str,
    message: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'p str>,
}

impl<'p> Told<'p> {
    fn of(problem: &'p Problem) -> Self {
        Self {
            level: word(problem.level),
            message: &problem.message,
            file: problem.file.as_ref().map(|file| file.display().to_string()),
            line: problem.line,
            key: problem.key.as_deref(),
            hint: problem.hint.as_deref(),
        }
    }
}

impl CheckArgs {
    fn run(self, out: &mut Out) -> Result<Exit, Failure> {
        let (files, problems) = match self.file {
            Some(file) => one_file(PathBuf::from(file)),
            None => {
                let config = Config::load(&Around::from_env());
                let user = config.user_file().filter(|(_, is_there)| *is_there).map(|(file, _)| file);
                let files = user.into_iter().chain(config.project_file()).map(Path::to_owned).collect();
                (files, config.problems().cloned().collect())
            }
        };
        let is_good = problems.is_empty();
        if out.json {
            let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
            let problems: Vec<Told<'_>> = problems.iter().map(Told::of).collect();
            out.json(&serde_json::json!({"ok": is_good, "files": files, "problems": problems}))?;
        } else {
            for problem in &problems {
                out.line(&escape_line(&format!("{}: {}: {}", problem.place(), word(problem.level), problem.message)))?;
                if let Some(hint) = &problem.hint {
                    out.line(&escape_line(&format!("  hint: {hint}")))?;
                }
            }
            if is_good {
                let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
                let line = if names.is_empty() {
                    "there are no files, and no variable is wrong".to_owned()
                } else {
                    format!("ok: {}", names.join(", "))
                };
                out.line(&escape_line(&line))?;
            }
        }
        Ok(if is_good { Exit::Ok } else { Exit::NotCompleted })
    }
}

fn one_file(file: PathBuf) -> (Vec<PathBuf>, Vec<Problem>) {
    let whose = if file.file_name().is_some_and(|name| name == ".roost.toml") { Whose::Project } else { Whose::User };
    let problems = Config::check(&file, whose, rustix::process::geteuid().as_raw());
    (vec![file], problems)
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Warning => "warning",
        Level::Error => "error",
    }
}
