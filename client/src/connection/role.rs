//! A connection with a role is told things: they are kept until somebody asks for them, and a new hello takes the role again.
//!
//! What the notifications mean is not known here, but for one: who has lost the lease must not take it back by reconnecting.

use std::io;
use std::time::Instant;

use roost_proto::message::Request;
use roost_proto::message::deliver::LEASE_LOST;
use roost_proto::message::session::{Capability, RoleAsked};
use roost_proto::rpc::Answer;

use super::{Attempt, Connection, line};
use crate::config::{Config, Start};
use crate::error::Error;
use crate::policy::{Outage, Patience};

/// What every hello of the connection asks to be.
pub(super) struct Role {
    pub(super) asked: RoleAsked,
    pub(super) capabilities: Vec<Capability>,
}

impl Connection {
    /// Connects, and says hello with this role.
    pub(crate) fn dial_as(config: Config, asked: RoleAsked, capabilities: Vec<Capability>) -> Result<Self, Error> {
        let mut connection = Self::new(config);
        connection.take_role(asked, capabilities)?;
        Ok(connection)
    }

    /// Says hello anew, with this role.
    pub(crate) fn take_role(&mut self, asked: RoleAsked, capabilities: Vec<Capability>) -> Result<(), Error> {
        self.pushed.clear();
        self.keeps_pushed = true;
        self.role = Some(Role { asked, capabilities });
        self.link = None;
        let mut outage = self.outage(Patience::Brief);
        self.connect(&mut outage, self.config.start == Start::Await)
    }

    /// From the next hello on it is a mere caller.
    pub(crate) fn leave_role(&mut self) {
        self.role = None;
    }

    /// How often a daemon has welcomed us: what was said before the last time holds no more.
    pub(crate) fn greetings(&self) -> u64 {
        self.greetings
    }

    /// Sends a call and does not wait for its answer; `None` when the connection is broken.
    pub(crate) fn begin<R: Request>(&mut self, request: &R) -> Result<Option<u64>, Error> {
        let id = self.last_id + 1;
        let line = line(id, request)?;
        let Some(link) = &mut self.link else { return Ok(None) };
        self.last_id = id;
        if link.send(line).is_err() {
            self.link = None;
            return Ok(None);
        }
        Ok(Some(id))
    }

    /// The oldest notification or late answer that has arrived whole.
    pub(crate) fn take_pushed(&mut self) -> io::Result<Option<Answer>> {
        if let Some(answer) = self.pushed.pop_front() {
            return Ok(Some(answer));
        }
        match &mut self.link {
            Some(link) => link.buffered(),
            None => Ok(None),
        }
    }

    /// Takes in what the socket has; a connection that is over is dropped.
    pub(crate) fn take_in(&mut self) {
        if let Some(link) = &mut self.link
            && link.fill().is_err()
        {
            // What came whole before the end still counts.
            while let Ok(Some(answer)) = link.buffered() {
                self.pushed.push_back(answer);
            }
            self.link = None;
        }
    }

    /// One or more tries to come back, not begun after `until`; false when it has not come back.
    pub(crate) fn revive(&mut self, outage: &mut Outage, until: Option<Instant>) -> Result<bool, Error> {
        loop {
            let error = match self.greet() {
                Ok(()) => return Ok(true),
                Err(Attempt::Final(error @ Error::NoDaemon { .. })) => error,
                Err(Attempt::Final(error)) => return Err(error),
                Err(Attempt::Broken(error)) => self.lost(error),
            };
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(false);
            }
            if !outage.pause() {
                return Err(error);
            }
        }
    }

    /// From now on notifications are kept as with a role, although there is none.
    pub(crate) fn keep_pushed(&mut self) {
        self.keeps_pushed = true;
    }

    pub(super) fn set_aside(&mut self, answer: Answer) {
        if self.keeps_pushed {
            self.pushed.push_back(answer);
        }
    }

    /// Before a new hello: all that is owed comes again after it.
    pub(super) fn forget_pushed(&mut self) {
        self.pushed.retain(|answer| answer.method.as_deref() == Some(LEASE_LOST));
        if !self.pushed.is_empty() {
            self.role = None;
        }
    }
}
