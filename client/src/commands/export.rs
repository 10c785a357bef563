//! `roost export`: a whole tree as one JSON file that can be given away, for reports of bugs. Secrets are left out.

use clap::Args;
use roost::proto::id::TreeId;
use roost::proto::message::events::{NumberedEvent, TreeEvent};
use roost::proto::message::status::{Status, TreeStatus, WorkerStatus};
use roost::proto::message::tree::{Attach, Settings};
use roost::proto::message::usage::{ReadUsage, UsageReply};
use roost::proto::outcome::{Failure as Fault, Outcome};
use roost::{Connection, EventReader};
use serde::Serialize;
use serde_json::{Value, json};

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;
use crate::values;

/// Changes when a field is renamed or removed.
const FORMAT: u32 = 1;
/// Stands for a text that may hold anything.
const LEFT_OUT: &str = "left out";

/// Print all that is known of a tree as one JSON document, for a report of a bug
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost export > tree.json\n  roost export t123 > tree.json\n\n\
    In it are versions, settings, states, events, use and outcomes, and the names of workers and groups. Left out are tokens, arguments, \
    environments, tasks, answers, messages, contexts, paths, the tree's key, and the texts of failures: in their place stands `left out`.")]
pub struct ExportArgs {
    /// The tree; without it that of the environment
    // `tree` is the global option.
    #[arg(id = "exported", value_name = "TREE", add = candidates::trees())]
    tree: Option<TreeId>,
}

#[derive(Serialize)]
struct Document {
    format: u32,
    at_ms: u64,
    versions: Value,
    daemon: Value,
    tree: TreeStatus,
    /// Nobody knows those of a closed tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<Settings>,
    usage: UsageReply,
    workers: Vec<WorkerStatus>,
    events: Vec<NumberedEvent>,
}

impl ExportArgs {
    /// Reads and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let named = self.tree.or(setup.tree);
        let setup = Setup { tree: named, ..setup.clone() };
        let mut connection = setup.looking()?;
        if named.is_none() && connection.config().identity.is_none() {
            return Err(Failure::no_tree());
        }
        let status = connection.status_all(&Status { tree: named, name: None, after: None })?;
        let tree = status.trees.into_iter().next().ok_or_else(Failure::no_tree)?;
        let usage = connection.usage_all(&ReadUsage { tree: named, name: None, each: true, after: None })?;
        let daemon = connection.daemon_status()?;
        let document = Document {
            format: FORMAT,
            at_ms: values::now_ms(),
            versions: json!({"client": env!("CARGO_PKG_VERSION"), "daemon": daemon.version, "protocol": daemon.protocol}),
            daemon: json!({
                "trees": daemon.trees, "live": daemon.live, "queued": daemon.queued, "connections": daemon.connections, "cap": daemon.cap,
            }),
            settings: settings(&setup, tree.progress.tree, tree.closed_at_ms.is_some())?,
            tree: TreeStatus { key: None, ..tree },
            usage,
            workers: status.workers.into_iter().map(without_places).collect(),
            events: EventReader::all(connection, named)?.into_iter().map(without_texts).collect(),
        };
        out.json(&document)?;
        Ok(Exit::Ok)
    }
}

/// On a connection of its own, which speaks as the root from then on.
fn settings(setup: &Setup, tree: TreeId, is_closed: bool) -> Result<Option<Settings>, Failure> {
    if is_closed {
        return Ok(None);
    }
    let mut connection = Connection::dial(setup.config()?.without_identity())?;
    Ok(Some(connection.attach(&Attach { tree })?.settings))
}

fn without_texts(mut event: NumberedEvent) -> NumberedEvent {
    if let TreeEvent::Ended { outcome, .. } = &mut event.event {
        without_text(outcome);
    }
    event
}

fn without_places(mut worker: WorkerStatus) -> WorkerStatus {
    worker.outcome.iter_mut().for_each(without_text);
    WorkerStatus { stdout_paths: Vec::new(), stderr_paths: Vec::new(), ..worker }
}

/// A worker, its model or the kernel wrote these: they may quote an argument or a key.
fn without_text(outcome: &mut Outcome) {
    let text = match outcome {
        Outcome::Aborted { reason: text }
        | Outcome::Failed(
            Fault::Spawn { reason: text }
            | Fault::Startup { reason: text }
            | Fault::ContextCorrupt { reason: text }
            | Fault::Protocol { reason: text }
            | Fault::Provider { message: text }
            | Fault::TurnLimit { message: text },
        ) => text,
        Outcome::Completed
        | Outcome::WrappedUp
        | Outcome::Stopped
        | Outcome::Failed(
            Fault::Exit { .. }
            | Fault::Crash { .. }
            | Fault::Timeout
            | Fault::Lost
            | Fault::ParentFailed
            | Fault::Truncated
            | Fault::IdleTimeout
            | Fault::NoAnswer,
        ) => return,
    };
    *text = LEFT_OUT.into();
}
