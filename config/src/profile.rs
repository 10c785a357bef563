//! Profiles: how a task's `agent` becomes the program that does it. The user's file says what is run; a project's file may only say
//! with which model, tools and bounds.

use std::ffi::OsString;

use roost_proto::limits::BUDGET_MAX;
use roost_proto::message::launch::{Allowance, Rest, Runner};
use toml::de::DeValue;

use crate::value::{Kind, Value, described, number};

/// What a profile of the user's file may say.
pub const FIELDS: [&str; 12] =
    ["argv", "runner", "env", "model_args", "thinking_args", "tools_args", "model", "thinking", "tools", "timeout", "group", "descendants"];
/// What a profile of a project's file may say: the last of the above.
pub const PROJECT_FIELDS: [&str; 6] = ["model", "thinking", "tools", "timeout", "group", "descendants"];

/// What one file says of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// The line of its section.
    pub line: usize,
    argv: Option<Vec<String>>,
    runner: Option<Runner>,
    env: Option<Vec<(String, String)>>,
    model_args: Option<Vec<String>>,
    thinking_args: Option<Vec<String>>,
    tools_args: Option<Vec<String>>,
    model: Option<String>,
    thinking: Option<String>,
    tools: Option<Vec<String>>,
    timeout_ms: Option<u64>,
    group: Option<String>,
    descendants: Option<Allowance>,
}

impl Part {
    /// One whose section begins at this line.
    pub(crate) fn at(line: usize) -> Self {
        Self { line, ..Self::default() }
    }

    /// Whether it says what is run.
    pub fn runs_something(&self) -> bool {
        self.argv.is_some()
    }

    /// Takes a field in.
    pub(crate) fn take(&mut self, name: &str, value: &DeValue<'_>) -> Result<(), String> {
        match name {
            "argv" => {
                self.argv = Some(
                    words(value)
                        .filter(|words| words.first().is_some_and(|program| !program.is_empty()))
                        .ok_or_else(|| not("a list of words, the program first", value))?,
                )
            }
            "runner" => self.runner = Some(runner(value)?),
            "env" => self.env = Some(variables(value)?),
            "model_args" => self.model_args = Some(arguments(value, "{model}")?),
            "thinking_args" => self.thinking_args = Some(arguments(value, "{thinking}")?),
            "tools_args" => self.tools_args = Some(arguments(value, "{tools}")?),
            "model" => self.model = Some(passed_on(value)?),
            "thinking" => self.thinking = Some(passed_on(value)?),
            "tools" => {
                let DeValue::Array(tools) = value else { return Err(not("a list of names", value)) };
                self.tools = Some(tools.iter().map(|tool| passed_on(tool.get_ref())).collect::<Result<_, _>>()?);
            }
            "timeout" => {
                let Value::Time(ms) = (Kind::Time { most_ms: u64::MAX }).take(value)? else { return Err(not("a time", value)) };
                self.timeout_ms = Some(ms);
            }
            "group" => self.group = Some(text(value).filter(|group| !group.is_empty()).ok_or_else(|| not("the name of a group", value))?),
            "descendants" => self.descendants = Some(allowance(value)?),
            _ => return Err("there is no such field".to_owned()),
        }
        Ok(())
    }
}

/// What a task asks of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// A model.
    pub model: Option<String>,
    /// A thinking level.
    pub thinking: Option<String>,
    /// Names of tools.
    pub tools: Option<Vec<String>>,
    /// Further arguments.
    pub words: Vec<OsString>,
}

/// A profile as both files together have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// How the worker speaks.
    pub runner: Runner,
    /// Variables that are set.
    pub env: Vec<(String, String)>,
    /// The usual model.
    pub model: Option<String>,
    /// The usual thinking level.
    pub thinking: Option<String>,
    /// The usual tools.
    pub tools: Option<Vec<String>>,
    /// Wall time in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The group.
    pub group: Option<String>,
    /// How many descendants.
    pub descendants: Option<Allowance>,
    model_args: Option<Vec<String>>,
    thinking_args: Option<Vec<String>>,
    tools_args: Option<Vec<String>>,
}

/// Why there is no profile of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileError {
    /// No file has it.
    Unknown {
        /// Those that there are.
        known: Vec<String>,
    },
    /// Only a project's file has it, which cannot say what it runs.
    RunsNothing,
    /// The project's file gives it tools that the user's file does not.
    MoreTools {
        /// Which.
        tools: Vec<String>,
    },
}

impl Profile {
    /// What both files say together: the project's goes first.
    pub(crate) fn of(name: &str, user: Part, project: Part) -> Result<Self, ProfileError> {
        let argv = user.argv.ok_or(ProfileError::RunsNothing)?;
        if let (Some(may), Some(wants)) = (&user.tools, &project.tools) {
            let tools: Vec<String> = wants.iter().filter(|tool| !may.contains(tool)).cloned().collect();
            if !tools.is_empty() {
                return Err(ProfileError::MoreTools { tools });
            }
        }
        Ok(Self {
            name: name.to_owned(),
            argv,
            runner: user.runner.unwrap_or_default(),
            env: user.env.unwrap_or_default(),
            model: project.model.or(user.model),
            thinking: project.thinking.or(user.thinking),
            tools: project.tools.or(user.tools),
            timeout_ms: project.timeout_ms.or(user.timeout_ms),
            group: project.group.or(user.group),
            descendants: project.descendants.or(user.descendants),
            model_args: user.model_args,
            thinking_args: user.thinking_args,
            tools_args: user.tools_args,
        })
    }

    /// The command of a task: the profile's, then what it passes on, then the task's own words.
    ///
    /// # Errors
    /// When something is asked for that the profile does not pass on.
    pub fn command(&self, asked: &Asked) -> Result<Vec<OsString>, String> {
        let mut words: Vec<OsString> = self.argv.iter().map(Into::into).collect();
        let tools = asked.tools.as_ref().map(|tools| tools.join(","));
        let usual = self.tools.as_ref().map(|tools| tools.join(","));
        for (what, asked, usual, arguments) in [
            ("model", &asked.model, &self.model, &self.model_args),
            ("thinking", &asked.thinking, &self.thinking, &self.thinking_args),
            ("tools", &tools, &usual, &self.tools_args),
        ] {
            let Some(value) = asked.as_ref().or(usual.as_ref()) else { continue };
            let Some(arguments) = arguments else {
                return Err(format!("the profile `{}` passes no {what} on: it has no `{what}_args`", self.name.escape_debug()));
            };
            value.split(',').try_for_each(|word| sane(word).map(|_| ()))?;
            let placeholder = format!("{{{what}}}");
            words.extend(arguments.iter().map(|word| word.replace(&placeholder, value).into()));
        }
        words.extend(asked.words.iter().cloned());
        Ok(words)
    }
}

fn not(expected: &str, value: &DeValue<'_>) -> String {
    format!("expected {expected}, and this is {}", described(value))
}

fn text(value: &DeValue<'_>) -> Option<String> {
    if let DeValue::String(text) = value { Some(text.to_string()) } else { None }
}

/// A list of words, none of which a program could not be handed.
fn words(value: &DeValue<'_>) -> Option<Vec<String>> {
    let DeValue::Array(list) = value else { return None };
    list.iter().map(|word| text(word.get_ref()).filter(|word| !word.contains('\0'))).collect()
}

fn arguments(value: &DeValue<'_>, placeholder: &str) -> Result<Vec<String>, String> {
    let has_place = |words: &Vec<String>| words.iter().any(|word| word.contains(placeholder));
    words(value).filter(has_place).ok_or_else(|| not(&format!("a list of words with {placeholder} in one of them"), value))
}

/// A value that becomes a word of a command line, or a part of one.
fn passed_on(value: &DeValue<'_>) -> Result<String, String> {
    sane(&text(value).ok_or_else(|| not("a text", value))?)
}

/// It must stay the value that it is: no further flag, and no two of a list.
fn sane(word: &str) -> Result<String, String> {
    if word.is_empty() || word.starts_with('-') || word.contains(|c: char| c == ',' || c.is_control()) {
        return Err(format!(
            "`{}` is no name: it must not be empty, begin with `-`, or have a comma or a control character",
            word.escape_debug()
        ));
    }
    Ok(word.to_owned())
}

fn runner(value: &DeValue<'_>) -> Result<Runner, String> {
    match text(value).as_deref() {
        Some("command") => Ok(Runner::Command),
        Some("worker") => Ok(Runner::Worker),
        Some(_) | None => Err(not("\"command\" or \"worker\"", value)),
    }
}

fn allowance(value: &DeValue<'_>) -> Result<Allowance, String> {
    if text(value).as_deref() == Some("rest") {
        return Ok(Allowance::Rest(Rest::Rest));
    }
    let number = number(value).filter(|number| *number <= BUDGET_MAX);
    number.map(Allowance::Exactly).ok_or_else(|| not("a whole number, or \"rest\"", value))
}

/// Values may be secret: they are in no message.
fn variables(value: &DeValue<'_>) -> Result<Vec<(String, String)>, String> {
    let DeValue::Table(table) = value else { return Err(not("names with texts", value)) };
    let each = table.iter().map(|(name, value)| {
        let is_name = !name.get_ref().is_empty() && !name.get_ref().contains(['=', '\0']) && !name.get_ref().starts_with("ROOST_");
        let text = text(value.get_ref()).filter(|text| !text.contains('\0') && is_name);
        text.map(|text| (name.get_ref().to_string(), text)).ok_or_else(|| {
            format!("`{}` is no variable with a text; variables of Roost itself cannot be set", name.get_ref().escape_debug())
        })
    });
    each.collect()
}
