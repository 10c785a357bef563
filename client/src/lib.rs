//! Client library of the Roost broker: dial (start the daemon on demand), say hello, call, survive a restart of the broker.
//!
//! ```no_run
//! use roost::proto::message::{launch::Launch, result::Wait, tree::Settings};
//!
//! fn main() -> Result<(), roost::Error> {
//!     let config = roost::Config::from_env()?;
//!     let mut root = roost::Connection::dial(config.without_identity())?;
//!     root.open(Settings { cap: 4, ..Settings::default() }, None, false)?;
//!     root.launch(&Launch {
//!         request_id: roost::request_id()?,
//!         tasks: vec![roost::task(["sh", "-c", "echo hello"])],
//!         submitter: roost::submitter()?,
//!         foreground: false,
//!         attended: false,
//!         generation: None,
//!     })?;
//!     let ends = root.wait(&Wait { request_id: roost::request_id()?, names: Vec::new(), any: false, timeout_ms: None, tell_later: false })?;
//!     assert_eq!(ends.ended.len(), 1);
//!     Ok(())
//! }
//! ```
//!
//! Everything blocks; there is no async runtime in here. A program that runs as a plain command of a tree finds what it needs
//! in [`plain`]; one that speaks the worker protocol is a [`Worker`], and a root that is told of its children is a [`Lead`].

mod answer;
mod bounded;
mod calls;
mod config;
mod connection;
pub mod details;
mod error;
mod follow;
mod inbox;
mod lead;
mod link;
mod meter;
mod owner;
pub mod plain;
mod policy;
pub mod rows;
mod start;
mod submit;
mod voice;
mod watch;
mod worker;

pub use answer::{AnswerBytes, open_answer};
pub use bounded::output_within;
pub use config::{Config, Places, Start};
pub use connection::Connection;
pub use error::{Error, kind_text};
pub use follow::{EventReader, Followed};
pub use inbox::{Inbox, Items, Seen};
pub use lead::{Lead, LeadEvent};
pub use meter::{UsageMeter, cached_apart, cached_within};
pub use roost_proto as proto;
pub use roost_proto::usage::nano_dollars;
pub use start::{daemon_program, lock_pid};
pub use submit::{request_id, submitter, task, worker_task};
pub use watch::Watcher;
pub use worker::{Turn, Waited, Worker, WorkerEvent};
