//! What a call says of the file system, held against it. It may take as long as the file system takes, so it is done apart, on a
//! thread that may wait, and given up after a while.
//!
//! What it finds travels with the call: the core answers a call that it has answered before, whatever became of the world since.

use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use roost_core::command::{Caller, Command, Speak};
use roost_core::event::Context;
use roost_core::rejection::Rejection;
use roost_proto::id::ExecutionId;
use roost_proto::limits::{CONTEXT_WITHIN, CWD_WITHIN, LOOKS_PER_TREE_MAX};
use roost_proto::rpc::{ErrorKind, ErrorObject};
use rustix::fs::{Access, access};

use super::translate::shown;
use super::{FromSession, Kept, Payload};
use crate::context_file;
use crate::lookouts::Look;

const NOT_BEGUN: &str = "looks at file systems that have not come to an end";
const NOT_BEGUN_HINT: &str = "look at the file systems that your tree works on, then try again";

/// What is to be looked at.
pub enum Question {
    /// The working directories of the tasks of a launch.
    Cwds(Vec<PathBuf>),
    /// The file of a context.
    Context(PathBuf),
    /// What the files of executions take.
    Sizes,
}

/// What was found.
pub enum Found {
    /// Why a task cannot be started, if one cannot.
    Cwds(Option<String>),
    /// Where the file really is, and what is in it.
    Context(Result<(PathBuf, Context), ErrorObject>),
    /// Bytes, by execution.
    Sizes(BTreeMap<ExecutionId, u64>),
}

impl Question {
    /// What this call asks, if anything.
    pub fn of(asked: &FromSession) -> Option<Self> {
        let FromSession::Command { command, payload } = asked else { return None };
        if let Command::Gc { .. } = command {
            return Some(Self::Sizes);
        }
        if let Payload::Launch(tasks) = payload {
            return Some(Self::Cwds(tasks.iter().map(|task| task.cwd.as_os_str().into()).collect()));
        }
        // Nobody but a worker can park, and is told so.
        let may_save = !matches!(command, Command::Park { caller: Caller::Root(_) | Caller::Operator, .. });
        match payload {
            Payload::Said { context: Some(Kept::File(path)), .. } if may_save => Some(Self::Context(path.clone())),
            Payload::Said { .. } | Payload::None | Payload::Observes | Payload::Launch(_) => None,
        }
    }

    /// How long the answer may take.
    pub fn within(&self) -> Duration {
        match self {
            Self::Cwds(_) => CWD_WITHIN,
            Self::Context(_) | Self::Sizes => CONTEXT_WITHIN,
        }
    }

    /// Looks. Blocks.
    pub fn look(self, state_dir: &Path) -> Found {
        match self {
            Self::Sizes => Found::Sizes(sizes(state_dir)),
            Self::Cwds(cwds) => {
                let faults = cwds.iter().enumerate().find_map(|(index, cwd)| Some(format!("task {index}: {}", unusable(cwd)?)));
                Found::Cwds(faults)
            }
            Self::Context(path) => Found::Context(context_file::take(&path).map_err(|why| {
                let message = format!("the file {} cannot be a context: {why}", shown(path.as_os_str().as_bytes()));
                let hint = "name a file of yours that can be read and stays as it is until the wake; nothing was saved";
                ErrorObject::new(ErrorKind::BadValue, message, Some(hint.into()))
            })),
        }
    }
}

/// The call with what has come of the look.
///
/// # Errors
/// What makes the call useless whatever the core knows of it.
pub fn answered(mut asked: FromSession, found: Look<Found>) -> Result<FromSession, ErrorObject> {
    let FromSession::Command { command, payload } = &mut asked else { return Ok(asked) };
    if let Command::Gc { sweep, .. } = command {
        match found {
            Look::Found(Found::Sizes(sizes)) => sweep.sizes = sizes,
            Look::Found(Found::Cwds(_) | Found::Context(_)) | Look::Silent => {
                let message = format!("the files of the state directory did not answer within {} s", CONTEXT_WITHIN.as_secs());
                return Err(ErrorObject::new(ErrorKind::BadValue, message, Some("look at its file system; nothing was forgotten".into())));
            }
            Look::NotBegun => {
                let message =
                    "the files of the state directory were not looked at, as too many looks have not come to an end; nothing was forgotten";
                return Err(ErrorObject::new(ErrorKind::Limit, message, Some("try again later".into())));
            }
        }
    } else if let Command::Launch { launch, .. } = command {
        launch.unusable = match found {
            Look::Found(Found::Cwds(what)) => what.map(|what| Rejection::BadCwd { what }),
            Look::Found(Found::Context(_) | Found::Sizes(_)) | Look::Silent => Some(Rejection::SilentCwd { seconds: CWD_WITHIN.as_secs() }),
            Look::NotBegun => Some(Rejection::Limit { what: NOT_BEGUN, limit: LOOKS_PER_TREE_MAX, next: NOT_BEGUN_HINT }),
        };
    } else if let Payload::Said { context: kept, .. } = payload {
        let (path, taken) = of_file(found)?;
        // The path lies beside the event, where the bytes of other contexts do.
        *kept = Some(Kept::Bytes(path.into_os_string().into_vec()));
        if let Command::Park { context, .. } = command {
            *context = taken;
            return Ok(asked);
        }
        let Command::Speak { speak, .. } = command else { return Ok(asked) };
        match &mut **speak {
            Speak::Settle { settle } => settle.context = Some(taken),
            Speak::ParkReady { context } => *context = Some(taken),
            Speak::Told { .. }
            | Speak::Report { .. }
            | Speak::ParkDecline { .. }
            | Speak::Ack { .. }
            | Speak::Inbox
            | Speak::Message { .. }
            | Speak::TellLead { .. } => {}
        }
    }
    Ok(asked)
}

fn of_file(found: Look<Found>) -> Result<(PathBuf, Context), ErrorObject> {
    match found {
        Look::Found(Found::Context(found)) => found,
        Look::Found(Found::Cwds(_) | Found::Sizes(_)) | Look::Silent => {
            let message = format!("the file of the context did not answer within {} s", CONTEXT_WITHIN.as_secs());
            Err(ErrorObject::new(ErrorKind::BadValue, message, Some("look at its file system; nothing was saved".into())))
        }
        Look::NotBegun => {
            let message = "the file of the context was not looked at, as too many looks have not come to an end; nothing was saved";
            Err(ErrorObject::new(ErrorKind::Limit, message, Some(NOT_BEGUN_HINT.into())))
        }
    }
}

/// What outputs and transcripts take on the disk, by the execution in their names.
fn sizes(state_dir: &Path) -> BTreeMap<ExecutionId, u64> {
    let mut sizes = BTreeMap::new();
    let folders = ["executions", "transcripts"].map(|folder| std::fs::read_dir(state_dir.join(folder)));
    for entry in folders.into_iter().flatten().flatten().flatten() {
        let name = entry.file_name();
        let execution = name.to_str().and_then(|name| name.split(['-', '.']).next()?.parse().ok());
        // One that has gone meanwhile takes nothing.
        if let (Some(execution), Ok(found)) = (execution, entry.metadata()) {
            *sizes.entry(execution).or_default() += found.blocks() * 512;
        }
    }
    sizes
}

/// Why nothing can be started in this directory.
fn unusable(cwd: &Path) -> Option<String> {
    let why = match std::fs::metadata(cwd) {
        Err(error) => error.to_string(),
        Ok(found) if !found.is_dir() => "it is not a directory".into(),
        Ok(_) => match access(cwd, Access::EXEC_OK) {
            Ok(()) => return None,
            Err(error) => format!("it may not be entered: {error}"),
        },
    };
    Some(format!("the working directory {} cannot be used: {why}", shown(cwd.as_os_str().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Standing, translate};
    use roost_core::command::CallId;
    use roost_proto::id::TreeId;
    use serde_json::value::RawValue;

    fn launch(cwd: &str) -> FromSession {
        let task = format!(r#"{{"argv":["true"],"cwd":{}}}"#, serde_json::to_string(cwd).unwrap());
        let params =
            format!(r#"{{"request_id":"r","tasks":[{{"argv":["true"],"cwd":"/"}},{task}],"submitter":{{"env":[],"cwd":"/","umask":18}}}}"#);
        let params = RawValue::from_string(params).unwrap();
        translate::request(CallId(1), Standing::of(Caller::Root(TreeId(2))), "launch", Some(&params)).unwrap()
    }

    fn unusable(asked: FromSession) -> Option<Rejection> {
        let FromSession::Command { command: Command::Launch { launch, .. }, .. } = asked else { panic!("no launch") };
        launch.unusable
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named_with_its_task() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        for (cwd, why) in [
            ("no/such\u{1b}", "`/no/such\\u{1b}` cannot be used: No such file"),
            (file, "it is not a directory"),
            (&format!("{file}/x"), "Not a directory"),
        ] {
            let asked = launch(cwd);
            let found = Question::of(&asked).unwrap().look(Path::new("/"));
            // It is the core's to say so: it may know the call.
            let rejection = unusable(answered(asked, Look::Found(found)).unwrap()).unwrap();
            let text = rejection.to_string();
            assert!(text.starts_with("task 1: the working directory ") && text.contains(why), "{text}");
            assert_eq!(rejection.kind(), ErrorKind::BadCwd);
        }
        let asked = launch("tmp");
        let found = Question::of(&asked).unwrap().look(Path::new("/"));
        assert_eq!(unusable(answered(asked, Look::Found(found)).unwrap()), None);
    }

    #[test]
    fn what_executions_take_is_the_sum_of_their_files() {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("executions/x1-1.out", 5_000),
            ("executions/x1-2.err", 1),
            ("transcripts/x1.jsonl", 1),
            ("executions/x20-1.in", 1),
            ("executions/else", 1),
        ] {
            std::fs::create_dir_all(directory.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(directory.path().join(name), vec![1; bytes]).unwrap();
        }
        let found = sizes(directory.path());
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [ExecutionId(1), ExecutionId(20)]);
        assert!(found[&ExecutionId(1)] >= 5_002 && found[&ExecutionId(20)] >= 1, "{found:?}");
        assert!(sizes(&directory.path().join("none")).is_empty());
    }

    #[test]
    fn a_file_system_that_does_not_answer_is_said_to_be_silent() {
        let silent = Rejection::SilentCwd { seconds: CWD_WITHIN.as_secs() };
        assert_eq!(unusable(answered(launch("/"), Look::Silent).unwrap()), Some(silent));
        let params = RawValue::from_string(r#"{"context_path":"/x"}"#.into()).unwrap();
        let park = |caller| translate::request(CallId(1), Standing::of(caller), "park", Some(&params)).unwrap();
        let worker = Caller::Worker { worker: roost_proto::id::WorkerId(1), epoch: roost_proto::id::Epoch(1) };
        assert!(answered(park(worker), Look::Silent).is_err_and(|error| error.message.contains("did not answer")));
        // That of another may do so: nobody has looked.
        assert_eq!(unusable(answered(launch("/"), Look::NotBegun).unwrap()).unwrap().kind(), ErrorKind::Limit);
        assert!(answered(park(worker), Look::NotBegun).is_err_and(|error| error.data.kind == ErrorKind::Limit));
        assert!(matches!(Question::of(&park(worker)), Some(Question::Context(_))));
        // Nothing is read for those who cannot park.
        assert!(Question::of(&park(Caller::Root(TreeId(2)))).is_none() && Question::of(&park(Caller::Operator)).is_none());
    }
}
