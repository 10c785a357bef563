//! Launching: contract section 4.

use serde::{Deserialize, Serialize};

use crate::bytes::Bytes;
use crate::id::{ExecutionId, JobId, WorkerId};
use crate::message::result::WorkerResult;

/// Launches 1 to 20 tasks as one job, all or nothing.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// The same id with the same content returns the same receipt; with other content it is an error.
    pub request_id: String,
    /// The tasks, in the order of their places.
    pub tasks: Vec<Task>,
    /// What the workers get from their submitter.
    pub submitter: Submitter,
    /// Answer only when all have ended, with their results, which count as consumed.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub foreground: bool,
    /// Answer at once, and yet somebody waits for it: it counts as launched in the foreground for interrupts.
    #[serde(default)]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub attended: bool,
    /// The interrupt generation that the caller knows; a launch of an older one is refused with `interrupted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u64>,
}

/// The surroundings of the process that submits.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitter {
    /// Its whole environment. `ROOST_*` variables in it are replaced, never passed on.
    pub env: Vec<(Bytes, Bytes)>,
    /// Its working directory, absolute.
    pub cwd: Bytes,
    /// Its file mode creation mask.
    pub umask: u32,
}

/// One task.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Program and arguments. The program is looked up on the task's `PATH`.
    pub argv: Vec<Bytes>,
    /// How the worker speaks.
    #[serde(default, skip_serializing_if = "Runner::is_command")]
    pub runner: Runner,
    /// The text that the worker finds on its standard input; for the runner `worker`, the first item that it is delivered.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// A name that is unique in the tree; one is made up when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Working directory, absolute or relative to the submitter's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Bytes>,
    /// Variables to set on top of the submitter's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "variables")]
    #[cfg_attr(feature = "schema", schemars(with = "variables::Variables"), ts(type = "{ [name in string]: Bytes } | [Bytes, Bytes][]"))]
    pub env: Vec<(Bytes, Bytes)>,
    /// How many descendants it may launch over its life.
    #[serde(default, skip_serializing_if = "Allowance::is_none")]
    pub max_subagents_allowed: Allowance,
    /// The group whose cap it counts against as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Wall time in milliseconds from its first start, parked time included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// How a worker speaks.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// Any program: standard input is the task, standard output the answer, exit 0 is success.
    #[default]
    Command,
    /// It says `hello` and speaks the worker protocol over the socket. When it should exit, the
    /// line `exit` comes on its standard input, and then the end; an end alone is no order.
    Worker,
}

impl Runner {
    fn is_command(&self) -> bool {
        *self == Self::Command
    }
}

/// A task's share of the budget: a number, or `"rest"` for all that the launcher has left (a job of one task only).
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Allowance {
    /// This many descendants.
    Exactly(u64),
    /// All that is left.
    Rest(Rest),
}

/// The word `rest`.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rest {
    /// The only value.
    Rest,
}

impl Allowance {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self::Exactly(0)
    }
}

/// The answer to [`Launch`]; on disk before it is sent.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The job.
    pub job: JobId,
    /// One entry per task, in order.
    pub tasks: Vec<TaskReceipt>,
    /// What the launcher should know, for instance that it takes in fewer results than it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// With `foreground`: the results, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<WorkerResult>,
}

/// What became of one task at acceptance.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReceipt {
    /// The worker's name.
    pub name: String,
    /// The worker.
    pub worker: WorkerId,
    /// Its execution.
    pub execution: ExecutionId,
    /// Started or queued.
    pub status: Placement,
    /// Its place in the queue, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// Why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a task went.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// It has a slot.
    Started,
    /// It waits for one.
    Queued,
}

/// Variables may be written as a JSON object (`{"A": "1"}`) or as a list of pairs, which also takes bytes.
mod variables {
    use super::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[derive(Deserialize)]
    #[serde(untagged)]
    pub(super) enum Variables {
        Object(BTreeMap<String, Bytes>),
        Pairs(Vec<(Bytes, Bytes)>),
    }

    pub(super) fn serialize<S: Serializer>(pairs: &[(Bytes, Bytes)], to: S) -> Result<S::Ok, S::Error> {
        pairs.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(Bytes, Bytes)>, D::Error> {
        Ok(match Variables::deserialize(from)? {
            Variables::Object(object) => object.into_iter().map(|(name, value)| (Bytes(name.into_bytes()), value)).collect(),
            Variables::Pairs(pairs) => pairs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_as_a_person_writes_it() {
        let task: Task =
            serde_json::from_str(r#"{"argv":["sh","-c","true"],"env":{"A":"1"},"max_subagents_allowed":"rest","timeout_ms":5000}"#)
                .unwrap();
        assert_eq!(task.env, [("A".into(), "1".into())]);
        assert_eq!(task.max_subagents_allowed, Allowance::Rest(Rest::Rest));
        assert_eq!(serde_json::from_str::<Task>(&serde_json::to_string(&task).unwrap()).unwrap(), task);
        // A misspelt field of a hand-written task is named, not ignored.
        let typo = serde_json::from_str::<Task>(r#"{"argv":["true"],"nmae":"x"}"#).unwrap_err();
        assert!(typo.to_string().contains("nmae"), "{typo}");
    }
}
