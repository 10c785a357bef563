//! A root that is told of its children: it holds the tree's lease, and what it takes in is not owed any more.
//!
//! ```no_run
//! use roost::proto::message::deliver::ItemKind;
//! use roost::{Config, Error, Lead, LeadEvent};
//!
//! fn main() -> Result<(), Error> {
//!     let mut lead = Lead::open(Config::from_env()?, Default::default(), Some("my session".into()))?;
//!     lead.launch(vec![roost::task(["sh", "-c", "echo hello"])])?;
//!     while let Some(event) = lead.next(None)? {
//!         match event {
//!             LeadEvent::Items(items) => {
//!                 for item in lead.accept(items.items)? {
//!                     if let ItemKind::Completion { result } = item.what {
//!                         println!("{}: {}", result.end.name, result.answer);
//!                         return Ok(());
//!                     }
//!                 }
//!             }
//!             LeadEvent::LeaseLost => break,
//!         }
//!     }
//!     Ok(())
//! }
//! ```

use std::os::fd::BorrowedFd;
use std::time::Duration;

use roost_proto::id::TreeId;
use roost_proto::message::deliver::Item;
use roost_proto::message::launch::{Launch, Receipt, Task};
use roost_proto::message::session::{DeliveryMode, RoleAsked};
use roost_proto::message::tree::{Attach, Settings};
use roost_proto::message::words::{Message, MessageReply};

use crate::config::Config;
use crate::connection::Connection;
use crate::error::Error;
use crate::inbox::{Inbox, Items, Seen};
use crate::submit;
use crate::voice::{Heard, Voice};

/// The holder of a root's lease.
pub struct Lead {
    voice: Voice,
    tree: TreeId,
}

/// What a lead is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeadEvent {
    /// Something to take in. What entered the model's input is to be [accepted](Lead::accept).
    Items(Items),
    /// Another connection has taken the lease: nothing is pushed here any more, and nothing can be accepted, until
    /// [`Lead::take_lease`].
    LeaseLost,
}

impl Lead {
    /// Opens a tree, or attaches to the open one of this key, and takes the lease.
    pub fn open(config: Config, settings: Settings, key: Option<String>) -> Result<Self, Error> {
        let mut connection = Connection::dial(config.without_identity())?;
        let tree = connection.open(settings, key, false)?.tree;
        Self::with_lease(connection, tree, Seen::default())
    }

    /// Attaches to an open tree and takes the lease. What an earlier process has taken in and saved is not told again.
    pub fn attach(config: Config, tree: TreeId, seen: Seen) -> Result<Self, Error> {
        let mut connection = Connection::dial(config.without_identity())?;
        connection.attach(&Attach { tree })?;
        Self::with_lease(connection, tree, seen)
    }

    /// Takes the lease of the tree whose root the configuration's identity is (`ROOST_TREE`, `ROOST_TOKEN`).
    pub fn connect(config: Config, seen: Seen) -> Result<Self, Error> {
        let not_root = |variable, message: &str| Error::Environment { variable, message: message.into() };
        let tree = match &config.identity {
            None => return Err(not_root("ROOST_TREE", "it is not set, and a lead has a tree")),
            Some(identity) if identity.worker.is_some() => {
                return Err(not_root("ROOST_WORKER", "it is set, and only the root has a lease"));
            }
            Some(identity) => identity.tree,
        };
        let connection = Connection::dial_as(config, RoleAsked::Root, Vec::new())?;
        Ok(Self { voice: Voice::new(connection, Inbox::new(seen), None), tree })
    }

    fn with_lease(mut connection: Connection, tree: TreeId, seen: Seen) -> Result<Self, Error> {
        connection.take_role(RoleAsked::Root, Vec::new())?;
        Ok(Self { voice: Voice::new(connection, Inbox::new(seen), None), tree })
    }

    /// Its tree.
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// When completions are to be taken in. Whether one should start a turn, its delivery says.
    pub fn delivery(&self) -> DeliveryMode {
        self.voice.connection.welcome().and_then(|welcome| welcome.delivery).unwrap_or_default()
    }

    /// What was taken in so far, to be saved and given to [`Lead::attach`] or [`Lead::connect`] by a later process.
    pub fn seen(&self) -> &Seen {
        self.voice.inbox.seen()
    }

    /// For all other calls: waits, results, stops.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.voice.connection
    }

    /// The socket, to poll it together with something else; `None` while the daemon is away. Ask [`Lead::next`] with a timeout of
    /// zero before: what has been read already makes no descriptor readable.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.voice.connection.descriptor()
    }

    /// The next event; `None` when the time is over. With a timeout of zero it is what has arrived.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<LeadEvent>, Error> {
        Ok(match self.voice.next(timeout)? {
            Some(Heard::Items(items)) => Some(LeadEvent::Items(items)),
            Some(Heard::LeaseLost) => Some(LeadEvent::LeaseLost),
            // A lead is no process of the daemon's: it is not parked, and nobody holds its standard input.
            Some(Heard::Park(_) | Heard::Closing) | None => None,
        })
    }

    /// Says that these have entered the model's input. Returns the ones to use: the others were read by another way meanwhile. All
    /// of them stay owed when it fails; with `stale_lease` they are another connection's.
    pub fn accept(&mut self, items: Vec<Item>) -> Result<Vec<Item>, Error> {
        self.voice.accept(items)
    }

    /// A turn has ended: what was handed out in it and not accepted comes again.
    pub fn give_back(&mut self) {
        self.voice.inbox.give_back();
    }

    /// Takes the lease (again). Whoever had it gets `LeaseLost`. What was handed out before and not accepted is not to be used any
    /// more: what is still owed of it comes again.
    pub fn take_lease(&mut self) -> Result<(), Error> {
        self.voice.take_lease()
    }

    /// Launches children and returns at once.
    pub fn launch(&mut self, tasks: Vec<Task>) -> Result<Receipt, Error> {
        let (request_id, submitter) = (submit::request_id()?, submit::submitter()?);
        let launch = Launch { request_id, tasks, submitter, foreground: false, attended: false, generation: None };
        self.voice.connection.launch(&launch)
    }

    /// Sends words to a direct child.
    pub fn message(&mut self, name: &str, text: &str, max_subagents_allowed: Option<u64>) -> Result<MessageReply, Error> {
        let request_id = submit::request_id()?;
        self.voice.connection.message(&Message { request_id, name: name.into(), text: text.into(), max_subagents_allowed })
    }
}
