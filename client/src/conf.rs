//! The configuration of this process, read when something first needs it: settings of new trees, and profiles for tasks.

use std::cell::OnceCell;

use roost::proto::message::launch::Task;
use roost_config::{Around, Asked, Config, Problem, Profile, ProfileError, nearest};

use crate::failure::Failure;
use crate::output::{escape_line, note};

/// It.
#[derive(Debug, Default)]
pub struct Conf(OnceCell<Config>);

/// What a task says of its agent.
#[derive(Debug, Default)]
pub struct Wish {
    /// The profile.
    pub agent: String,
    /// What it is asked for; the words are the task's own arguments.
    pub asked: Asked,
    /// Whether the task itself says how many descendants it may have.
    pub counts_descendants: bool,
}

impl Conf {
    /// What holds. Warnings are told once.
    ///
    /// # Errors
    /// A configuration that is wrong in a place that matters: nothing is done with it.
    pub fn loaded(&self) -> Result<&Config, Failure> {
        if let Some(config) = self.0.get() {
            return Ok(config);
        }
        let config = Config::load(&Around::from_env());
        if let Some(error) = config.error() {
            return Err(failure(error));
        }
        config.problems().for_each(warn);
        Ok(self.0.get_or_init(|| config))
    }

    /// Makes the task one of this agent: what the task says itself goes before what the profile says.
    ///
    /// # Errors
    /// When there is no such profile, or it does not pass on what is asked.
    pub fn apply(&self, wish: &Wish, mut task: Task) -> Result<Task, Failure> {
        let profile = self.profile(&wish.agent)?;
        let words = profile.command(&wish.asked).map_err(|why| Failure::usage(why, Some("`roost config explain` shows the profiles")))?;
        task.argv = words.into_iter().map(Into::into).collect();
        task.runner = profile.runner;
        task.timeout_ms = task.timeout_ms.or(profile.timeout_ms);
        task.group = task.group.or(profile.group);
        if let Some(descendants) = profile.descendants.filter(|_| !wish.counts_descendants) {
            task.max_subagents_allowed = descendants;
        }
        let own = std::mem::take(&mut task.env);
        let usual = profile.env.into_iter().map(|(name, value)| (name.as_str().into(), value.as_str().into()));
        task.env = usual.filter(|(name, _)| own.iter().all(|(set, _)| set != name)).collect();
        task.env.extend(own);
        Ok(task)
    }

    fn profile(&self, name: &str) -> Result<Profile, Failure> {
        let config = self.loaded()?;
        config.profile(name).map_err(|error| unknown(name, error, config))
    }
}

/// Why a profile cannot be used.
fn unknown(name: &str, error: ProfileError, config: &Config) -> Failure {
    let shown = name.escape_debug();
    let file = config.user_file().map_or_else(|| "your file".to_owned(), |(file, _)| file.display().to_string());
    let (message, hint) = match error {
        ProfileError::Unknown { known } if known.is_empty() => {
            (format!("there is no agent `{shown}`: no profile is configured"), format!("add [profile.{shown}] to {file}"))
        }
        ProfileError::Unknown { known } => {
            let near = nearest(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`? "));
            let hint = format!("{}a profile is a section [profile.NAME] of {file}", near.unwrap_or_default());
            (format!("there is no agent `{shown}`; there are {}", known.join(", ")), hint)
        }
        ProfileError::RunsNothing => (
            format!("the agent `{shown}` is only in the project's file, which cannot say what is run"),
            format!("add [profile.{shown}] with argv to {file}"),
        ),
        ProfileError::MoreTools { tools } => {
            let message = format!("the project's file gives the agent `{shown}` tools that yours does not: {}", tools.join(", "));
            (message, format!("add them to its tools in {file}, if the project may have them"))
        }
    };
    Failure::Usage { kind: "unknown_agent", message, hint: Some(hint) }
}

/// A problem for which nothing is done.
fn failure(problem: &Problem) -> Failure {
    let all = "`roost config check` lists everything that is wrong";
    let hint = problem.hint.as_ref().map_or_else(|| all.to_owned(), |hint| format!("{hint}; {all}"));
    Failure::Usage { kind: "config", message: problem.to_string(), hint: Some(hint) }
}

/// A problem with which everything goes on.
pub fn warn(problem: &Problem) {
    let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    note(&escape_line(&format!("roost: {problem}{hint}")));
}
