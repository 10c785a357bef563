//! The supervisor's talk with its broker: obey what arrives, say what there is to say.
//!
//! It starts and ends no broker, but kills one that cannot be talked to.

use std::time::Instant;

use roost_proto::link::{LINK_VERSION, ToBroker, ToSupervisor};
use rustix::event::epoll;

use super::SupervisorError;
use super::link::LinkFailure;
use super::looping::{LINK, Supervisor};

impl Supervisor<'_> {
    pub(super) fn read_link(&mut self, now: Instant) -> Result<(), SupervisorError> {
        loop {
            let Some(running) = &mut self.broker.running else { return Ok(()) };
            match running.link.receive() {
                Ok(Some(message)) => self.obey(message, now)?,
                Ok(None) => break,
                Err(failure) => {
                    self.link_failed(&failure);
                    return Ok(());
                }
            }
        }
        self.after_link(now);
        Ok(())
    }

    /// Asks for the events that still make sense: a closed link has none, one with a backlog must be writable.
    fn after_link(&mut self, now: Instant) {
        let Some(running) = &self.broker.running else { return };
        if running.link.is_closed {
            // Its end arrives as that of a child; it has a while to come.
            drop_error(epoll::delete(&self.epoll, &running.link));
            self.broker.expect_exit(now);
        }
    }

    fn obey(&mut self, message: ToSupervisor, now: Instant) -> Result<(), SupervisorError> {
        let Some(running) = &mut self.broker.running else { return Ok(()) };
        let is_hello = matches!(message, ToSupervisor::Hello { .. });
        if is_hello == running.said_hello {
            tracing::error!("the broker does not begin with one hello: killing it");
            self.broker.kill();
            return Ok(());
        }
        match message {
            ToSupervisor::Hello { version: LINK_VERSION } => self.broker.said_hello(now),
            ToSupervisor::Hello { version } => return Err(SupervisorError::LinkVersion { theirs: version, ours: LINK_VERSION }),
            ToSupervisor::Spawn(order) => self.children.spawn(&order),
            ToSupervisor::Signal { incarnation, signal } => self.children.signal(incarnation, signal),
            ToSupervisor::Forget { incarnation } => self.children.forget(incarnation),
            ToSupervisor::Adopt { incarnation, process, stdout_path, leftovers_grace_ms } => {
                self.children.adopt(incarnation, crate::process::children::Lost { process, stdout_path, leftovers_grace_ms }, now);
            }
            ToSupervisor::Status { line } => self.announcer.status(&line),
            ToSupervisor::Ready => {
                tracing::info!("serving");
                self.was_ready = true;
                self.announcer.ready();
            }
            ToSupervisor::Alive => {
                self.broker.heard(now);
                self.announcer.alive();
            }
            ToSupervisor::Shutdown => self.exit = Some(0),
            ToSupervisor::Restart => {
                tracing::info!(program = %self.recipe.program.display(), "the broker asks to be started anew");
                running.restarts = true;
                self.broker.expect_exit(now);
            }
        }
        Ok(())
    }

    pub(super) fn tell_broker(&mut self) {
        // Without a broker they are dropped: the next one gets the whole table.
        for report in self.children.take_reports() {
            self.send(&report);
        }
        let Some(running) = &mut self.broker.running else { return };
        if running.link.is_closed {
            return;
        }
        if let Err(failure) = running.link.flush() {
            self.link_failed(&failure);
            return;
        }
        let mut interest = epoll::EventFlags::IN;
        interest.set(epoll::EventFlags::OUT, running.link.wants_write());
        drop_error(epoll::modify(&self.epoll, &running.link, epoll::EventData::new_u64(LINK), interest));
    }

    pub(super) fn send(&mut self, message: &ToBroker) {
        let Some(running) = &mut self.broker.running else { return };
        if let Err(failure) = running.link.send(message) {
            self.link_failed(&failure);
        }
    }

    /// A broker that cannot be talked to is no broker: the next one gets the whole table in its hello.
    fn link_failed(&mut self, failure: &LinkFailure) {
        tracing::error!(error = %failure, "killing the broker");
        if let Some(running) = &mut self.broker.running {
            running.link.is_closed = true;
            drop_error(epoll::delete(&self.epoll, &running.link));
        }
        self.broker.kill();
    }
}

/// For calls whose failure changes nothing: the descriptor is about to go, or the next turn tries again.
fn drop_error<E: std::fmt::Display>(result: Result<(), E>) {
    if let Err(error) = result {
        tracing::debug!(%error, "ignored");
    }
}
