//! The session wing: connections of the public socket in, commands for the driver out, and the answers back.
//!
//! It knows messages and who sends them. It knows no state of the broker, no journal and no process. What a call says of
//! the file system is looked at in `look`, before it goes on. Everything of a connection is bounded, by numbers of `limits.rs`.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use roost_core::command::{CallId, Caller, Command};
use roost_proto::bytes::Bytes;
use roost_proto::id::TreeId;
use roost_proto::limits::{
    CALLS_BYTES_MAX, CALLS_BYTES_PER_CONNECTION_MAX, CONNECTIONS_MAX, CONNECTIONS_MIN, DESCRIPTORS_KEPT, HELLO_WITHIN, LINE_WITHIN,
    LINES_BYTES_MAX, READ_WITHIN,
};
use roost_proto::message::events::ReadEvents;
use roost_proto::message::tree::Progress;
use roost_proto::rpc::ErrorObject;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

pub mod line;
pub mod translate;

mod accept;
mod connection;
mod envelope;
mod freight;
mod hang_up;
mod intake;
mod look;
mod output;
mod peer;
#[cfg(test)]
mod tests;
mod weight;

pub use freight::{Arrival, Room};

/// A connection. Numbers are not used again while their connection lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u32);

/// A call's number is its connection's number in the upper half and a counter in the lower one: the driver routes by it.
pub fn connection_of(call: CallId) -> ConnectionId {
    // The shift leaves 32 bits.
    ConnectionId(u32::try_from(call.0 >> 32).unwrap_or(u32::MAX))
}

/// The number of a connection's call.
fn call_of(connection: ConnectionId, counter: u32) -> CallId {
    CallId((u64::from(connection.0) << 32) | u64::from(counter))
}

/// What connections tell the driver.
pub enum FromSession {
    /// A peer of our user has connected. Dropping the sender ends the connection.
    Connected {
        /// Which.
        connection: ConnectionId,
        /// Where its answers go.
        outgoing: mpsc::Sender<Outgoing>,
    },
    /// A connection has ended.
    Gone {
        /// Which.
        connection: ConnectionId,
        /// Its calls that were not answered.
        calls: Vec<CallId>,
    },
    /// A call that the core answers.
    Command {
        /// For the core.
        command: Command,
        /// What of the call the core does not need to know.
        payload: Payload,
    },
    /// A call of `daemon.status`.
    DaemonStatus {
        /// The call.
        call: CallId,
    },
    /// A call of `daemon.metrics`.
    Metrics {
        /// The call.
        call: CallId,
    },
    /// A call of `daemon.restart`.
    Restart {
        /// The call.
        call: CallId,
    },
    /// A call of `events`.
    Events {
        /// The call.
        call: CallId,
        /// Who.
        caller: Caller,
        /// What of which tree.
        read: ReadEvents,
    },
    /// A call of `watch`.
    Watch {
        /// The call.
        call: CallId,
        /// Whose tree.
        caller: Caller,
    },
}

/// Texts that lie beside the journal's events.
pub enum Payload {
    /// None.
    None,
    /// Of a launch, by task index.
    Launch(Vec<TaskPayload>),
    /// Of a hello: the connection is to read only.
    Observes,
    /// Of a turn, a park or a message: what it says, and the context saved with it.
    Said {
        /// The text.
        text: Option<String>,
        /// The context.
        context: Option<Kept>,
    },
}

/// What is kept of a saved context.
pub enum Kept {
    /// What the journal keeps: its bytes, or where its file really is.
    Bytes(Vec<u8>),
    /// A file of the worker's, as it named it; it was not looked at yet.
    File(PathBuf),
}

/// As what a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// For whom.
    pub caller: Caller,
    /// The lease that it holds.
    pub lease: Option<u64>,
    /// It only reads.
    pub observes: bool,
    /// The tree that it belongs to.
    pub tree: Option<TreeId>,
}

impl Standing {
    /// Somebody who makes calls.
    pub fn of(caller: Caller) -> Self {
        let tree = if let Caller::Root(tree) = caller { Some(tree) } else { None };
        Self { caller, lease: None, observes: false, tree }
    }
}

/// What a task's process gets.
pub struct TaskPayload {
    /// Program and arguments.
    pub argv: Vec<Bytes>,
    /// The submitter's environment without `ROOST_*`, shared by the job.
    pub env: Arc<Vec<(Bytes, Bytes)>>,
    /// Variables on top of it.
    pub env_extra: Vec<(Bytes, Bytes)>,
    /// Working directory, absolute.
    pub cwd: Bytes,
    /// File mode creation mask.
    pub umask: u32,
    /// The task text.
    pub task: String,
}

/// What the driver tells a connection.
pub enum Outgoing {
    /// The reply to a call.
    Answer {
        /// Which.
        call: CallId,
        /// The reply.
        result: Box<RawValue>,
        /// As whom the connection speaks from now on.
        becomes: Option<Standing>,
    },
    /// The refusal of a call.
    Refuse {
        /// Which.
        call: CallId,
        /// Why.
        error: ErrorObject,
    },
    /// How the watched tree stands.
    Progress(Progress),
    /// Something that was not asked for.
    Notice {
        /// The method of the notification.
        method: &'static str,
        /// What it says.
        params: Box<RawValue>,
    },
}

/// What a session may cost; tests make it cheaper.
#[derive(Clone, Copy)]
struct Bounds {
    connections: usize,
    lines_bytes: usize,
    calls_bytes: usize,
    calls_bytes_each: usize,
    line_within: Duration,
    hello_within: Duration,
    read_within: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        Self {
            connections: connections_within(descriptors),
            lines_bytes: LINES_BYTES_MAX,
            calls_bytes: CALLS_BYTES_MAX,
            calls_bytes_each: CALLS_BYTES_PER_CONNECTION_MAX,
            line_within: LINE_WITHIN,
            hello_within: HELLO_WITHIN,
            read_within: READ_WITHIN,
        }
    }
}

/// How many connections this limit of descriptors allows. Who comes too late is told so, instead of waiting for a descriptor; and an
/// answer is never missing because its file could not be opened.
fn connections_within(descriptors: Option<u64>) -> usize {
    let allowed = descriptors.and_then(|descriptors| usize::try_from(descriptors).ok()).unwrap_or(usize::MAX);
    allowed.saturating_sub(DESCRIPTORS_KEPT).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// Accepts connections of the listening socket and serves them, until the socket or the driver is gone. Dropped, it ends them all.
pub async fn serve(listener: OwnedFd, inbox: mpsc::Sender<Arrival>, state_dir: PathBuf) -> std::io::Error {
    accept::serve(listener, inbox, Bounds::default(), &state_dir).await
}
