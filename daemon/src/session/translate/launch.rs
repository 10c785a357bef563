//! A launch on its way in: what can be wrong with a task is found here, before anything is reserved, and named by its index.
//!
//! It does not know names, budgets, groups or how many tasks a launch may have; the core does. It looks at no directory: whether one
//! can be used is found in `session/look.rs`.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use roost_core::command::{self, CallId, Caller, Command};
use roost_core::event::{self, Digest};
use roost_core::rejection::Rejection;
use roost_proto::bytes::Bytes;
use roost_proto::id::Token;
use roost_proto::limits::{ARGUMENT_BYTES_MAX, EXEC_BYTES_MAX, TASKS_LOOKED_AT_MAX};
use roost_proto::message::launch::{Allowance, Launch, Rest, Runner, Submitter, Task};
use roost_proto::rpc::{ErrorKind, ErrorObject};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::{random, refusal, shortened};
use crate::session::{FromSession, Payload, TaskPayload};

/// What Linux counts for each of them besides its bytes: the NUL and a pointer.
const EXEC_BYTES_EACH: usize = 1 + size_of::<usize>();
/// Variables that Roost sets itself.
const OWN_VARIABLES: &[u8] = b"ROOST_";

/// What is wrong with a task, or with its submitter.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("argv is empty")]
    NoProgram,
    #[error("the program's name is empty")]
    EmptyProgram,
    #[error("{what} contains a NUL byte")]
    Nul { what: String },
    #[error("the name of a variable is empty")]
    EmptyVariable,
    #[error("the name of the variable {name} contains `=`")]
    EqualsSign { name: String },
    #[error("the variable {name} is set by Roost itself")]
    OwnVariable { name: String },
    #[error("{what} has {bytes} bytes, and Linux takes at most {ARGUMENT_BYTES_MAX}")]
    LongArgument { what: String, bytes: usize },
    #[error("arguments and environment have {bytes} bytes, and Linux takes at most {EXEC_BYTES_MAX}")]
    LongExec { bytes: usize },
    #[error("the umask must be at most 0o777, and 0o{umask:o} is not")]
    Umask { umask: u32 },
    #[error("the working directory {cwd} cannot be used: {why}")]
    Cwd { cwd: String, why: String },
}

impl Fault {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Cwd { .. } => ErrorKind::BadCwd,
            Self::NoProgram
            | Self::EmptyProgram
            | Self::Nul { .. }
            | Self::EmptyVariable
            | Self::EqualsSign { .. }
            | Self::OwnVariable { .. }
            | Self::LongArgument { .. }
            | Self::LongExec { .. }
            | Self::Umask { .. } => ErrorKind::BadValue,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoProgram | Self::EmptyProgram => Some("name a program and its arguments"),
            Self::LongArgument { .. } | Self::LongExec { .. } => {
                Some("pass long texts as the task's `task`: the worker finds it on its standard input, without a limit of this kind")
            }
            Self::OwnVariable { .. } => Some("choose a name that does not start with ROOST_"),
            Self::Cwd { .. } => Some("create it, or name another one"),
            Self::Nul { .. } | Self::EmptyVariable | Self::EqualsSign { .. } | Self::Umask { .. } => None,
        }
    }

    fn of(self, whose: &str) -> ErrorObject {
        ErrorObject::new(self.kind(), format!("{whose}: {self}"), self.hint().map(Into::into))
    }
}

/// Checks a launch and takes it apart: what the core must know, and what only the process gets.
pub fn launch(call: CallId, caller: Caller, mut launch: Launch) -> Result<FromSession, ErrorObject> {
    if launch.tasks.len() > TASKS_LOOKED_AT_MAX {
        return Err(refusal(&Rejection::TaskCount { tasks: launch.tasks.len() }));
    }
    // Before the digest: a woken worker repeats its requests with another ROOST_EPOCH, and they must stay the same.
    launch.submitter.env.retain(|(name, _)| !name.0.starts_with(OWN_VARIABLES));
    let base = check_submitter(&launch.submitter).map_err(|fault| fault.of("the submitter"))?;
    let digest = digest(&launch);
    let Launch { request_id, tasks: asked, submitter, foreground, attended, generation } = launch;
    let env = Arc::new(submitter.env);
    let (mut tasks, mut payloads) = (Vec::with_capacity(asked.len()), Vec::with_capacity(asked.len()));
    for (index, task) in asked.into_iter().enumerate() {
        let cwd = check_task(&task, &submitter.cwd, base).map_err(|fault| fault.of(&format!("task {index}")))?;
        let stem = Path::new(task.argv.first().map(Bytes::as_os_str).unwrap_or_default()).file_name().unwrap_or_default();
        tasks.push(command::Task {
            name: task.name,
            stem: stem.to_string_lossy().into_owned(),
            token: Token::new(random()?),
            runner: match task.runner {
                Runner::Command => event::Runner::Command,
                Runner::Worker => event::Runner::Worker,
            },
            allowance: match task.max_subagents_allowed {
                Allowance::Exactly(allowance) => command::Allowance::Exactly(allowance),
                Allowance::Rest(Rest::Rest) => command::Allowance::Rest,
            },
            group: task.group,
            timeout_ms: task.timeout_ms,
        });
        payloads.push(TaskPayload {
            argv: task.argv,
            env: Arc::clone(&env),
            env_extra: task.env,
            cwd,
            umask: submitter.umask,
            task: task.task,
        });
    }
    let launch = Box::new(command::Launch { request_id, digest, tasks, foreground, attended, generation, unusable: None });
    Ok(FromSession::Command { command: Command::Launch { call, caller, launch }, payload: Payload::Launch(payloads) })
}

/// What makes a launch the same as another of its request id: everything but that id and the interrupt generation. The order in which
/// a submitter lists its environment says nothing.
fn digest(launch: &Launch) -> Digest {
    #[derive(Serialize)]
    struct Content<'a> {
        tasks: &'a [Task],
        env: Vec<&'a (Bytes, Bytes)>,
        cwd: &'a Bytes,
        umask: u32,
        foreground: bool,
    }
    let mut env: Vec<_> = launch.submitter.env.iter().collect();
    env.sort_by(|a, b| a.0.cmp(&b.0));
    // Whether somebody attends is no part of the work.
    let Launch { tasks, submitter, foreground, request_id: _, generation: _, attended: _ } = launch;
    let content = Content { tasks, env, cwd: &submitter.cwd, umask: submitter.umask, foreground: *foreground };
    let mut hash = Sha256::new();
    if let Err(error) = serde_json::to_writer(&mut hash, &content) {
        // Neither a hash nor these types can refuse; a digest of less would only make a repeated id less strict.
        tracing::error!(%error, "a launch could not be written down for its digest");
    }
    shortened(hash)
}

/// Returns how much of `execve` the environment takes.
fn check_submitter(submitter: &Submitter) -> Result<usize, Fault> {
    if submitter.umask > 0o777 {
        return Err(Fault::Umask { umask: submitter.umask });
    }
    no_nul(&submitter.cwd.0, || "the working directory".into())?;
    if !submitter.cwd.0.starts_with(b"/") {
        return Err(Fault::Cwd { cwd: shown(&submitter.cwd.0), why: "it is not absolute".into() });
    }
    submitter.env.iter().map(|(name, value)| variable(name, value)).sum()
}

/// Returns the working directory.
fn check_task(task: &Task, base_cwd: &Bytes, base: usize) -> Result<Bytes, Fault> {
    match task.argv.first() {
        None => return Err(Fault::NoProgram),
        Some(program) if program.0.is_empty() => return Err(Fault::EmptyProgram),
        Some(_) => {}
    }
    let mut bytes = base;
    for (number, argument) in task.argv.iter().enumerate() {
        no_nul(&argument.0, || format!("argv[{number}]"))?;
        not_long(argument.0.len(), || format!("argv[{number}]"))?;
        bytes += argument.0.len() + EXEC_BYTES_EACH;
    }
    for (name, value) in &task.env {
        bytes += variable(name, value)?;
        if name.0.starts_with(OWN_VARIABLES) {
            return Err(Fault::OwnVariable { name: shown(&name.0) });
        }
    }
    if bytes > EXEC_BYTES_MAX {
        return Err(Fault::LongExec { bytes });
    }
    no_nul(task.task.as_bytes(), || "the task text".into())?;
    working_directory(task.cwd.as_ref(), base_cwd)
}

/// Returns how much of `execve` it takes.
fn variable(name: &Bytes, value: &Bytes) -> Result<usize, Fault> {
    if name.0.is_empty() {
        return Err(Fault::EmptyVariable);
    }
    let what = || format!("the variable {}", shown(&name.0));
    no_nul(&name.0, what)?;
    no_nul(&value.0, what)?;
    if name.0.contains(&b'=') {
        return Err(Fault::EqualsSign { name: shown(&name.0) });
    }
    let bytes = name.0.len() + 1 + value.0.len();
    not_long(bytes, what)?;
    Ok(bytes + EXEC_BYTES_EACH)
}

fn no_nul(bytes: &[u8], what: impl FnOnce() -> String) -> Result<(), Fault> {
    if bytes.contains(&0) { Err(Fault::Nul { what: what() }) } else { Ok(()) }
}

fn not_long(bytes: usize, what: impl FnOnce() -> String) -> Result<(), Fault> {
    if bytes > ARGUMENT_BYTES_MAX { Err(Fault::LongArgument { what: what(), bytes }) } else { Ok(()) }
}

fn working_directory(of_task: Option<&Bytes>, of_submitter: &Bytes) -> Result<Bytes, Fault> {
    let mut cwd = PathBuf::from(of_submitter.as_os_str());
    if let Some(of_task) = of_task {
        no_nul(&of_task.0, || "the working directory".into())?;
        if of_task.0.is_empty() {
            return Err(Fault::Cwd { cwd: shown(b""), why: "it is empty".into() });
        }
        cwd.push(of_task.as_os_str());
    }
    Ok(Bytes(cwd.into_os_string().into_vec()))
}

/// A text of the peer, for an error: short, and without control characters.
pub fn shown(bytes: &[u8]) -> String {
    let text = OsStr::from_bytes(bytes).to_string_lossy();
    let start: String = text.chars().take(200).collect();
    let dots = if start.len() < text.len() { "..." } else { "" };
    format!("`{}{dots}`", start.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(tasks: Vec<Task>) -> Launch {
        let env = vec![("PATH".into(), "/bin".into()), ("ROOST_EPOCH".into(), "1".into()), ("A".into(), "1".into())];
        let submitter = Submitter { env, cwd: "/".into(), umask: 0o22 };
        Launch { request_id: "r".into(), tasks, submitter, foreground: false, attended: false, generation: None }
    }

    fn task() -> Task {
        Task { argv: vec!["true".into()], ..Task::default() }
    }

    fn taken(of: Launch) -> Result<(command::Launch, Vec<TaskPayload>), ErrorObject> {
        let FromSession::Command { command: Command::Launch { launch, .. }, payload: Payload::Launch(payload) } =
            launch(CallId(1), Caller::Operator, of)?
        else {
            panic!("no launch")
        };
        Ok((*launch, payload))
    }

    #[test]
    fn what_is_wrong_is_named_with_its_task() {
        let long = "x".repeat(ARGUMENT_BYTES_MAX + 1);
        type Change<'a> = &'a dyn Fn(&mut Task);
        let table: &[(Change<'_>, ErrorKind, &str)] = &[
            (&|t| t.argv.clear(), ErrorKind::BadValue, "argv is empty"),
            (&|t| t.argv[0] = "".into(), ErrorKind::BadValue, "program's name is empty"),
            (&|t| t.argv.push("a\0b".into()), ErrorKind::BadValue, "argv[1] contains a NUL byte"),
            (&|t| t.argv.push(long.as_str().into()), ErrorKind::BadValue, "argv[1] has 131072 bytes, and Linux takes at most 131071"),
            (&|t| t.argv = vec!["x".repeat(100_000).as_str().into(); 70], ErrorKind::BadValue, "arguments and environment have 7000"),
            (&|t| t.task = "a\0".into(), ErrorKind::BadValue, "the task text contains a NUL byte"),
            (&|t| t.env = vec![("".into(), "".into())], ErrorKind::BadValue, "variable is empty"),
            (&|t| t.env = vec![("A=B".into(), "".into())], ErrorKind::BadValue, "variable `A=B` contains `=`"),
            (&|t| t.env = vec![("A".into(), "\0".into())], ErrorKind::BadValue, "variable `A` contains a NUL byte"),
            (&|t| t.env = vec![("A\n".into(), long.as_str().into())], ErrorKind::BadValue, "variable `A\\n` has 131075 bytes"),
            (&|t| t.env = vec![("ROOST_TOKEN".into(), "".into())], ErrorKind::BadValue, "`ROOST_TOKEN` is set by Roost"),
            (&|t| t.cwd = Some("a\0".into()), ErrorKind::BadValue, "working directory contains a NUL byte"),
            (&|t| t.cwd = Some("".into()), ErrorKind::BadCwd, "it is empty"),
        ];
        for (change, kind, message) in table {
            let mut bad = task();
            change(&mut bad);
            let error = taken(some(vec![task(), bad])).map(drop).unwrap_err();
            assert!(error.data.kind == *kind && error.message.starts_with("task 1: ") && error.message.contains(message), "{error:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_the_submitter_is_named_too() {
        type Change<'a> = &'a dyn Fn(&mut Submitter);
        let table: &[(Change<'_>, ErrorKind, &str)] = &[
            (&|s| s.umask = 0o1000, ErrorKind::BadValue, "0o1000"),
            (&|s| s.cwd = "tmp".into(), ErrorKind::BadCwd, "not absolute"),
            (&|s| s.cwd = "/\0".into(), ErrorKind::BadValue, "NUL"),
            (&|s| s.env.push(("A=".into(), "".into())), ErrorKind::BadValue, "`A=`"),
        ];
        for (change, kind, message) in table {
            let mut bad = some(vec![task()]);
            change(&mut bad.submitter);
            let error = taken(bad).map(drop).unwrap_err();
            assert!(error.data.kind == *kind && error.message.starts_with("the submitter: "), "{error:?}");
            assert!(error.message.contains(message), "{error:?}");
        }
        // Where its directory is gone, tasks that name another one still start.
        let mut away = some(vec![Task { cwd: Some("/".into()), ..task() }]);
        away.submitter.cwd = "/no/such".into();
        assert_eq!(taken(away).unwrap().1[0].cwd, "/".into());
        let many = taken(some(vec![task(); 65])).map(drop).unwrap_err();
        assert_eq!(many.data.kind, ErrorKind::TaskCount);
    }

    #[test]
    fn what_is_odd_and_right_goes_through() {
        let long = Bytes(vec![0xff; ARGUMENT_BYTES_MAX]);
        let odd = Task {
            argv: vec![Bytes(b"/x/\xff-run".to_vec()), long.clone(), "".into()],
            cwd: Some("tmp/../tmp".into()),
            env: vec![("A".into(), "".into()), ("\u{e9} ".into(), "=".into())],
            max_subagents_allowed: Allowance::Rest(Rest::Rest),
            ..Task::default()
        };
        let (launch, payload) = taken(some(vec![odd.clone(), Task { argv: vec!["/".into()], ..Task::default() }])).unwrap();
        assert_eq!(launch.tasks[0].stem, "\u{fffd}-run");
        assert_eq!(launch.tasks[0].allowance, command::Allowance::Rest);
        assert_eq!((launch.tasks[1].stem.as_str(), launch.tasks[1].allowance), ("", command::Allowance::Exactly(0)));
        assert_ne!(launch.tasks[0].token, launch.tasks[1].token);
        assert_eq!((&payload[0].argv, &payload[0].env_extra, &payload[0].cwd), (&odd.argv, &odd.env, &"/tmp/../tmp".into()));
        assert_eq!(*payload[0].env, [("PATH".into(), "/bin".into()), ("A".into(), "1".into())]);
        assert!(Arc::ptr_eq(&payload[0].env, &payload[1].env));
    }

    #[test]
    fn the_digest_tells_contents_apart_and_nothing_else() {
        let of = |launch: Launch| taken(launch).unwrap().0.digest;
        let same = of(some(vec![task()]));
        // Written down in journals: it must not change from one release to the next.
        assert_eq!(format!("{:032x}", same.0), "68011bcc863648fc1ed30939d496d20c");
        let mut again = some(vec![task()]);
        again.request_id = "other".into();
        again.generation = Some(3);
        again.submitter.env.reverse();
        again.submitter.env.retain(|(name, _)| *name != "ROOST_EPOCH".into());
        again.submitter.env.push(("ROOST_EPOCH".into(), "2".into()));
        assert_eq!(of(again), same);
        let changes: [&dyn Fn(&mut Launch); 8] = [
            &|l| l.foreground = true,
            &|l| l.submitter.umask = 0,
            &|l| l.submitter.cwd = "/tmp".into(),
            &|l| l.submitter.env[0].1 = "/usr/bin".into(),
            &|l| l.tasks[0].argv[0] = Bytes(vec![0xff]),
            &|l| l.tasks[0].task = "x".into(),
            &|l| l.tasks[0].name = Some("x".into()),
            &|l| l.tasks.push(task()),
        ];
        let mut seen = vec![same];
        for change in changes {
            let mut other = some(vec![task()]);
            change(&mut other);
            let digest = of(other);
            assert!(!seen.contains(&digest));
            seen.push(digest);
        }
    }
}
