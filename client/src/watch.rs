//! Following a tree: its progress now and after every change, over breaks of the connection too.
//!
//! It does not know what a change was; who needs to know asks `status`.

use std::io;
use std::os::fd::BorrowedFd;

use roost_proto::message::tree::Progress;

use crate::config::Config;
use crate::connection::Connection;
use crate::error::Error;

/// A connection of its own that carries nothing but progress. It starts a daemon for its first word, never again after that.
pub struct Watcher {
    connection: Connection,
    missed: Option<Progress>,
}

impl Watcher {
    /// Connects and asks for progress. The configuration's identity says which tree.
    pub fn new(config: Config) -> Result<Self, Error> {
        let mut connection = Connection::dial(config)?;
        connection.start_no_more();
        let first = connection.watch()?;
        Ok(Self { connection, missed: Some(first) })
    }

    /// Blocks until there is something new.
    pub fn next_progress(&mut self) -> Result<Progress, Error> {
        loop {
            if let Some(progress) = self.read(true)? {
                return Ok(progress);
            }
        }
    }

    /// The newest progress that has arrived whole, without touching the socket. Ask before polling [`Watcher::descriptor`]:
    /// what has been read already makes no descriptor readable.
    pub fn arrived(&mut self) -> Result<Option<Progress>, Error> {
        let mut newest = None;
        while let Some(newer) = self.read(false)? {
            newest = Some(newer);
        }
        Ok(newest)
    }

    /// The socket, to poll it together with something else.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.connection.descriptor()
    }

    fn read(&mut self, block: bool) -> Result<Option<Progress>, Error> {
        if let Some(missed) = self.missed.take() {
            return Ok(Some(missed));
        }
        match self.connection.notification(block) {
            Ok(Some(answer)) => Ok(progress(answer)),
            Ok(None) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(Error::Protocol { method: "progress", message: error.to_string() })
            }
            // What happened in between is in the answer to the new `watch`.
            Err(_) => self.again().map(Some),
        }
    }

    fn again(&mut self) -> Result<Progress, Error> {
        self.connection.drop_link();
        self.connection.watch()
    }
}

fn progress(answer: roost_proto::rpc::Answer) -> Option<Progress> {
    if answer.method.as_deref() != Some("progress") {
        return None;
    }
    serde_json::from_str(answer.params?.get()).ok()
}
