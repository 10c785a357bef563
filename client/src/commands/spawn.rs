//! `roost spawn`: launches one task, or up to 20 from JSON, and prints the receipt.

use std::ffi::OsString;

use clap::Args;
use roost::proto::message::launch::{Allowance, Launch, Placement, TaskReceipt};

use crate::conf::Conf;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};
use crate::setup::Setup;
use crate::tasks::{self, TaskArgs};
use crate::values;

/// Launch a task (or several, all or nothing) and print the receipt at once
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  roost spawn --name build -- make -j4\n  roost spawn --descendants 10 --timeout 5m -- ./crawl.sh /data\n  \
    echo '[{\"argv\":[\"true\"],\"name\":\"a\"},{\"argv\":[\"sleep\",\"1\"],\"env\":{\"K\":\"V\"}}]' | roost spawn --tasks -\n\n\
    Fields of a task in JSON: argv, runner (\"command\" or \"worker\"), task, name, cwd, env, max_subagents_allowed, group, timeout_ms; \
    or, instead of argv and runner, agent (the name of a profile, docs/config.md), with model, thinking, tools."
)]
pub struct SpawnArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// 1 to 20 tasks as JSON, from a file or from standard input for `-`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "runner", "name", "cwd", "env", "timeout", "group", "task", "task_file", "descendants", "agent", "model", "thinking", "tools"])]
    tasks: Option<OsString>,
    /// Repeating a launch with the same id returns the same receipt [default: a random one]
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// The program and its arguments; with --agent further arguments of its program
    #[arg(value_name = "CMD", trailing_var_arg = true, required_unless_present_any = ["tasks", "agent"])]
    command: Vec<OsString>,
}

impl SpawnArgs {
    /// Launches and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let conf = Conf::default();
        let tasks = match &self.tasks {
            Some(path) => tasks::from_json(&values::read_input(path)?, &conf)?,
            None => vec![self.task.task(&self.command, Allowance::default(), &conf)?],
        };
        let request_id = self.request_id.map_or_else(roost::request_id, Ok)?;
        let launch = Launch { request_id, tasks, submitter: roost::submitter()?, foreground: false, attended: false, generation: None };
        let receipt = setup.in_tree()?.launch(&launch)?;
        if out.json {
            out.json(&receipt)?;
        } else {
            for task in &receipt.tasks {
                out.line(&line(task))?;
            }
        }
        Ok(Exit::Ok)
    }
}

fn line(task: &TaskReceipt) -> String {
    let name = escape_line(&task.name);
    match task.status {
        Placement::Started => format!("{name} started"),
        Placement::Queued => {
            let place = task.place.map(|place| format!(" {place}")).unwrap_or_default();
            let reason = task.reason.as_ref().map(|reason| format!(" ({})", escape_line(reason))).unwrap_or_default();
            format!("{name} queued{place}{reason}")
        }
    }
}
