//! What the driver keeps of a connection, and what one turn of its loop gathers.

use std::collections::{BTreeMap, BTreeSet};

use roost_core::broker::Broker;
use roost_core::command::{CallId, Caller, Command};
use roost_core::effect::{Effect, Holder};
use roost_proto::id::TreeId;
use roost_proto::message::events::ReadEvents;
use tokio::sync::mpsc;

use crate::journal::Batch;
use crate::session::{Outgoing, Room};
use crate::transcript::Drafts;

/// A connection as the driver sees it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) root_of: Option<TreeId>,
    pub(crate) watches: Option<TreeId>,
    /// The lease that it holds.
    pub(crate) holds: Option<Holder>,
    /// The tree whose events it follows, and the number of the next one.
    pub(crate) follows: Option<(TreeId, u64)>,
    /// It only reads.
    pub(crate) observes: bool,
}

/// What is to be done after the commit, in order.
#[derive(Debug)]
pub(crate) enum Due {
    Effect(Effect),
    DaemonStatus(CallId),
    Watch(CallId, Caller),
    Events(CallId, Caller, ReadEvents),
    Restart(CallId),
}

/// What one turn of the loop gathers.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) batch: Batch,
    pub(crate) due: Vec<Due>,
    pub(crate) changed: BTreeSet<TreeId>,
    /// What the messages in it take of the room for calls.
    pub(crate) rooms: Vec<Room>,
    pub(crate) has_begun: bool,
    /// Somebody waits for the answer to new work in it.
    pub(crate) asks_for_more: bool,
    /// What transcripts say of it, once it is committed.
    pub(crate) drafts: Drafts,
    /// The broker as it is on disk, while the disk is nearly full: if this turn does not fit, who looks is answered from it.
    pub(crate) on_disk: Option<Box<Broker>>,
    /// The looks of this turn, for the same case.
    pub(crate) looks: BTreeMap<CallId, Command>,
}
