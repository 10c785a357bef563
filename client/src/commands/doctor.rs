//! `roost doctor`: looks at everything that a daemon needs, and says what is wrong and which command mends it, or what to do. It changes
//! nothing.

mod config;
mod daemon;
mod files;
mod host;

use clap::Args;
use roost::{Config, Start};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};
use crate::setup::Setup;
use crate::values;

/// Look for what is wrong with the daemon and its surroundings; exit 1 when something is
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost doctor\n  roost doctor --json\n\n\
    It changes nothing and starts no daemon. A warning is something that will do harm one day, or does some; an error is something that \
    does not work now. Below either stands the command that mends it, or what to do, where that is known.")]
pub struct DoctorArgs {}

/// How it stands with something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    Warning,
    Error,
}

/// What was looked at, and what was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    name: &'static str,
    level: Level,
    message: String,
    /// The command that mends it, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    mend: Option<String>,
}

impl Check {
    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self { name, level: Level::Ok, message: message.into(), mend: None }
    }

    fn warning(name: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { name, level: Level::Warning, message: message.into(), mend: Some(mend.into()) }
    }

    fn error(name: &'static str, message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::warning(name, message, mend) }
    }

    /// An error of which a hint says what to do, or nothing does.
    fn failed(name: &'static str, message: String, hint: Option<String>) -> Self {
        Self { name, level: Level::Error, message, mend: hint }
    }
}

#[derive(Serialize)]
struct Findings {
    ok: bool,
    checks: Vec<Check>,
}

impl DoctorArgs {
    /// Looks, and prints what was seen.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let checks = match setup.config() {
            Ok(config) => all(&Config { start: Start::Never, ..config.without_identity() }),
            // Where nothing can be looked for.
            Err(failure) => vec![Check::failed("places", failure.to_string(), failure.hint())],
        };
        let findings = Findings { ok: checks.iter().all(|check| check.level == Level::Ok), checks };
        if out.json {
            out.json(&findings)?;
        } else {
            for check in &findings.checks {
                let word = values::wire_word(&check.level);
                out.line(&format!("{word:<8} {:<12} {}", check.name, escape_line(&check.message)))?;
                if let Some(mend) = &check.mend {
                    out.line(&format!("{:21} mend: {}", "", escape_line(mend)))?;
                }
            }
        }
        Ok(if findings.ok { Exit::Ok } else { Exit::NotCompleted })
    }
}

fn all(config: &Config) -> Vec<Check> {
    let units = host::units(config);
    let mut checks = daemon::checks(config, units.wakes_it());
    checks.extend(files::checks(&config.paths));
    checks.extend(host::checks(&units));
    checks.push(config::check());
    checks
}

/// A path as a word of a shell.
fn quoted(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+@".contains(c));
    if is_plain { text } else { values::shell_quoted(path.as_os_str()).display().to_string() }
}
