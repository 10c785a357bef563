//! The calls of `roost run`, in their order, on a thread of their own. Prints nothing.

use std::sync::mpsc::Sender;

use roost::proto::id::TreeId;
use roost::proto::message::launch::{Launch, Task};
use roost::proto::message::result::{ReadResult, ResultReply, WorkerResult};
use roost::proto::message::status::Status;
use roost::proto::message::stop::{Interrupt, Stop};
use roost::proto::message::tree::{Attach, Close, Settings};
use roost::{Config, Connection, Error};

use super::{Event, send};

/// Where the command is going to run.
pub(super) enum Place {
    /// In a tree of its own.
    NewTree(Settings),
    /// In this tree, as its root's child.
    Attached(TreeId),
    /// In the tree whose worker we are, as our child.
    SameTree,
}

/// All that is known before the first call.
pub(super) struct Plan {
    pub config: Config,
    pub place: Place,
    pub task: Task,
}

/// All that is known after the last one.
pub(super) struct Done {
    pub result: WorkerResult,
    /// The standard error of its last process, when it did not complete.
    pub stderr_path: Option<String>,
    pub not_closed: Option<Error>,
}

/// Opens, launches, waits, closes.
///
/// The launch itself is not a foreground one: its name is needed to stop it, and a waiting `result` consumes in the same way.
pub(super) fn work(plan: &Plan, tell: &Sender<Event>) -> Result<Done, Error> {
    let mut connection = Connection::dial(plan.config.clone())?;
    match &plan.place {
        Place::NewTree(settings) => drop(connection.open(settings.clone(), None, true)?),
        Place::Attached(tree) => drop(connection.attach(&Attach { tree: *tree })?),
        Place::SameTree => {}
    }
    send(tell, Event::InTree(connection.config().clone()));
    let receipt = connection.launch(&Launch {
        request_id: roost::request_id()?,
        tasks: vec![plan.task.clone()],
        submitter: roost::submitter()?,
        foreground: false,
        attended: true,
        generation: None,
    })?;
    let name = receipt.tasks.into_iter().next().map(|task| task.name).ok_or_else(|| odd("launch", "the receipt has no task"))?;
    send(tell, Event::Launched(name.clone()));
    let result = match connection.result(&ReadResult { name: name.clone(), wait: true, ..ReadResult::default() })? {
        ResultReply::Ended(result) => result,
        ResultReply::Active { .. } => return Err(odd("result", "the wait is over and the worker has not ended")),
    };
    let stderr_path = if result.end.outcome.is_success() { None } else { stderr_path(&mut connection, name) };
    let not_closed = match plan.place {
        Place::NewTree(_) => connection.close(&Close { now: false }).err(),
        Place::Attached(_) | Place::SameTree => None,
    };
    Ok(Done { result, stderr_path, not_closed })
}

/// What the first Ctrl-C means: everything of a tree that is ours, else our child alone.
pub(super) fn stop(config: Config, owns_tree: bool, name: String) -> Result<(), Error> {
    let mut connection = Connection::dial(config)?;
    if owns_tree {
        connection.interrupt(&Interrupt { request_id: Some(roost::request_id()?), no_wait: false })?;
    } else {
        connection.stop(&Stop { request_id: Some(roost::request_id()?), names: vec![name], no_wait: false })?;
    }
    Ok(())
}

/// Only a help for the reader of the failure: none is fine.
fn stderr_path(connection: &mut Connection, name: String) -> Option<String> {
    let status = connection.status(&Status { name: Some(name.clone()), ..Status::default() }).ok()?;
    status.workers.into_iter().find(|worker| worker.name == name)?.stderr_paths.pop()
}

fn odd(method: &'static str, message: &str) -> Error {
    Error::Protocol { method, message: message.into() }
}
