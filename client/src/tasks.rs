//! Tasks from the command line (`run`, `spawn`) and from JSON (`spawn --tasks`), with errors that name task and field.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use roost::proto::bytes::Bytes;
use roost::proto::message::launch::{Allowance, Runner, Task};
use roost_config::Asked;
use serde_json::{Map, Value, json};

use crate::conf::{Conf, Wish};
use crate::failure::Failure;
use crate::values;

/// One task.
#[derive(Debug, Args)]
#[command(next_help_heading = "The worker")]
pub struct TaskArgs {
    /// Its name, unique in the tree; one is made up when absent
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Its working directory
    #[arg(long, value_name = "DIR")]
    cwd: Option<OsString>,
    /// A variable on top of our environment; may be repeated
    #[arg(long, value_name = "K=V")]
    env: Vec<OsString>,
    /// Its wall time: 500ms, 30s, 5m, 2h
    #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true)]
    timeout: Option<u64>,
    /// The group whose cap it counts against as well
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// The text on its standard input
    #[arg(long, value_name = "TEXT", conflicts_with = "task_file")]
    task: Option<String>,
    /// The same from a file, or from standard input for `-`
    #[arg(long, value_name = "FILE")]
    task_file: Option<OsString>,
    /// How it speaks: any program, or one that speaks the worker protocol
    #[arg(long, value_name = "RUNNER", value_enum, default_value_t = RunnerArg::Command, conflicts_with = "agent")]
    runner: RunnerArg,
    /// What is run, by the name of a profile of your configuration
    #[arg(long, value_name = "PROFILE")]
    agent: Option<String>,
    /// The model of that agent
    #[arg(long, value_name = "MODEL", requires = "agent")]
    model: Option<String>,
    /// The thinking level of that agent
    #[arg(long, value_name = "LEVEL", requires = "agent")]
    thinking: Option<String>,
    /// The tools of that agent
    #[arg(long, value_name = "NAME,...", requires = "agent", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// How many descendants it may launch over its life: a number, or `rest`
    #[arg(long, value_name = "N", value_parser = values::allowance, allow_negative_numbers = true)]
    descendants: Option<Allowance>,
}

/// How a worker speaks.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum RunnerArg {
    /// Standard input is the task, standard output the answer
    Command,
    /// It says hello and speaks the worker protocol over the socket
    Worker,
}

impl TaskArgs {
    /// The task that runs `argv`, or the agent that was asked for.
    pub fn task(&self, argv: &[OsString], descendants: Allowance, conf: &Conf) -> Result<Task, Failure> {
        let text = match (&self.task, &self.task_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => String::from_utf8(values::read_input(path)?)
                .map_err(|_| Failure::usage("the task text is not UTF-8", Some("hand bytes over in a file and name it in an argument")))?,
            (None, None) => String::new(),
        };
        let task = Task {
            argv: argv.iter().cloned().map(Bytes::from).collect(),
            runner: match self.runner {
                RunnerArg::Command => Runner::Command,
                RunnerArg::Worker => Runner::Worker,
            },
            task: text,
            name: self.name.clone(),
            cwd: self.cwd.clone().map(Bytes::from),
            env: self.env.iter().map(|text| values::variable(text)).collect::<Result<_, _>>()?,
            max_subagents_allowed: self.descendants.unwrap_or(descendants),
            group: self.group.clone(),
            timeout_ms: self.timeout,
        };
        let Some(agent) = self.agent.clone() else { return Ok(task) };
        let (model, thinking, tools) = (self.model.clone(), self.thinking.clone(), self.tools.clone());
        let asked = Asked { model, thinking, tools, words: argv.to_vec() };
        conf.apply(&Wish { agent, asked, counts_descendants: self.descendants.is_some() }, task)
    }
}

/// Tasks as JSON: an array, or an object with the field `tasks`.
pub fn from_json(text: &[u8], conf: &Conf) -> Result<Vec<Task>, Failure> {
    const FORM: &str = "a task is {\"argv\":[\"sh\",\"-c\",\"...\"],\"name\":...}; see `roost spawn --help`";
    let bad = |message: String| Failure::usage(message, Some(FORM));
    let value: Value = serde_json::from_slice(text).map_err(|error| bad(format!("the tasks are not JSON: {error}")))?;
    let tasks = match value {
        Value::Array(tasks) => tasks,
        Value::Object(mut object) => match object.remove("tasks") {
            Some(Value::Array(tasks)) if object.is_empty() => tasks,
            Some(_) | None => return Err(bad("expected an array of tasks, or an object whose only field is `tasks`, an array".into())),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(bad("expected an array of tasks, or {\"tasks\": [...]}".into()));
        }
    };
    let one = |(index, task)| {
        one(task, conf).map_err(|failure| {
            // Which profile is wrong says enough; a wrong file is wrong for all of them.
            let Failure::Usage { kind, message, hint } = failure else { return failure };
            let message = if kind == "config" { message } else { format!("task {index}: {message}") };
            Failure::Usage { kind, message, hint: hint.or_else(|| Some(FORM.into())) }
        })
    };
    tasks.into_iter().enumerate().map(one).collect()
}

fn one(value: Value, conf: &Conf) -> Result<Task, Failure> {
    let bad = |message: String| Failure::usage(message, None);
    let Value::Object(mut fields) = value else { return Err(bad("it is not an object".into())) };
    let wish = wish(&mut fields).map_err(bad)?;
    let whole = serde_json::from_value::<Task>(Value::Object(fields.clone()));
    let task = whole.map_err(|error| bad(culprit(&fields).unwrap_or_else(|| error.to_string())))?;
    let Some(mut wish) = wish else { return Ok(task) };
    wish.asked.words = task.argv.iter().map(|word| word.as_os_str().to_owned()).collect();
    conf.apply(&wish, task)
}

/// The fields that only the client knows, taken out.
fn wish(fields: &mut Map<String, Value>) -> Result<Option<Wish>, String> {
    let agent = fields.remove("agent");
    let mut asked = Asked::default();
    for (name, place) in [("model", &mut asked.model), ("thinking", &mut asked.thinking)] {
        if let Some(value) = fields.remove(name) {
            *place = Some(value.as_str().ok_or_else(|| format!("field `{name}`: expected a text"))?.to_owned());
        }
    }
    if let Some(value) = fields.remove("tools") {
        asked.tools = Some(serde_json::from_value(value).map_err(|_| "field `tools`: expected a list of names".to_owned())?);
    }
    let Some(agent) = agent else {
        let stray = asked != Asked::default();
        return if stray {
            Err("`model`, `thinking` and `tools` are passed on by a profile: name it in `agent`".to_owned())
        } else {
            Ok(None)
        };
    };
    let agent = agent.as_str().ok_or("field `agent`: expected the name of a profile")?.to_owned();
    if fields.contains_key("runner") {
        return Err("field `runner`: the profile of the agent says it".to_owned());
    }
    fields.entry("argv").or_insert_with(|| json!([]));
    Ok(Some(Wish { agent, asked, counts_descendants: fields.contains_key("max_subagents_allowed") }))
}

/// serde says what is wrong but not in which field: each is tried alone.
fn culprit(fields: &Map<String, Value>) -> Option<String> {
    fields.iter().find_map(|(name, value)| {
        let mut alone = Map::from_iter([("argv".to_owned(), json!(["true"]))]);
        alone.insert(name.clone(), value.clone());
        let error = serde_json::from_value::<Task>(Value::Object(alone)).err()?;
        let expected = match name.as_str() {
            "argv" => "a list of words",
            "runner" => "\"command\" or \"worker\"",
            "task" | "name" | "group" => "a text",
            "cwd" => "a path",
            "env" => "an object of texts, or a list of pairs",
            "max_subagents_allowed" => "a number, or \"rest\"",
            "timeout_ms" => "a whole number of milliseconds",
            _ => return Some(error.to_string()),
        };
        Some(format!("field `{name}`: expected {expected}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let conf = Conf::default();
        assert_eq!(from_json(br#"[{"argv":["a"]}]"#, &conf).unwrap(), from_json(br#"{"tasks":[{"argv":["a"]}]}"#, &conf).unwrap());
    }

    #[test]
    fn an_error_names_task_and_field() {
        for (text, parts) in [
            (r#"[{"argv":["a"]},{"argv":["a"],"nmae":"x"}]"#, ["task 1", "nmae"]),
            (r#"[{"argv":["a"],"timeout_ms":"5s"}]"#, ["task 0", "timeout_ms"]),
            (r#"[{"argv":["a"],"env":3}]"#, ["task 0", "`env`"]),
            (r#"[{"argv":["a"],"runner":"pi"}]"#, ["task 0", "`runner`: expected \"command\" or \"worker\""]),
            (r#"[{"argv":["a"],"max_subagents_allowed":-1}]"#, ["task 0", "max_subagents_allowed"]),
            (r#"[{"name":"x"}]"#, ["task 0", "argv"]),
            (r#"[{"argv":["a"],"model":"m"}]"#, ["task 0", "`agent`"]),
            (r#"[{"agent":3}]"#, ["task 0", "`agent`"]),
            (r#"[{"agent":"a","tools":"x"}]"#, ["task 0", "`tools`"]),
            (r#"[{"agent":"a","runner":"worker"}]"#, ["task 0", "`runner`"]),
            (r#"[3]"#, ["task 0", "object"]),
            (r#"{"task":[]}"#, ["tasks", "array"]),
            ("[", ["not JSON", "line 1"]),
        ] {
            let error = from_json(text.as_bytes(), &Conf::default()).unwrap_err().to_string();
            assert!(parts.iter().all(|part| error.contains(part)), "{text}: {error}");
        }
    }
}
