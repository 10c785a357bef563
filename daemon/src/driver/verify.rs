//! Wakes whose context lies in a file of the worker's own: it is verified apart, and the loop goes on meanwhile.

use std::path::PathBuf;

use roost_core::command::Command;
use roost_core::effect::{Effect, Spawn};
use roost_core::state::worker::Phase;
use roost_proto::limits::CONTEXT_WITHIN;

use super::{Driver, DriverError, Due, Turn};
use crate::context_file;
use crate::lookouts::Look;

/// What was found of the context of a start.
#[derive(Debug)]
pub(super) struct Verified {
    spawn: Spawn,
    found: Found,
}

#[derive(Debug)]
enum Found {
    /// It is what it was.
    Same,
    /// It is not: this is why.
    Other(String),
    /// Nobody knows: this is why.
    Unknown(String),
}

impl Driver {
    /// Has the file of a start verified. Of each start that waits for it there is one word in the channel, so it needs no bound.
    pub(crate) fn verify(&self, spawn: Spawn, path: PathBuf) {
        let Some(context) = spawn.wake.as_ref().map(|wake| wake.context) else { return };
        let done = self.verifying.clone();
        let looking = self.lookouts.look(Some(spawn.tree), CONTEXT_WITHIN, move || context_file::verify(&path, context));
        tokio::spawn(async move {
            let found = match looking.await {
                Ok(Look::Found(Ok(()))) => Found::Same,
                Ok(Look::Found(Err(why))) => Found::Other(why),
                Ok(Look::Silent) => Found::Unknown(format!("did not answer within {} s", CONTEXT_WITHIN.as_secs())),
                Ok(Look::NotBegun) => Found::Unknown("could not be looked at: too many others of the tree do not answer".into()),
                Err(error) => Found::Unknown(format!("could not be looked at: {error}")),
            };
            if done.send(Verified { spawn, found }).is_err() {
                tracing::debug!("the driver is gone");
            }
        });
    }

    /// Goes on with a start whose context was verified.
    pub(super) fn verified(&mut self, turn: &mut Turn, verified: Verified) -> Result<(), DriverError> {
        let Verified { spawn, found } = verified;
        let incarnation = spawn.incarnation;
        match found {
            Found::Same => {
                self.verified.insert(incarnation);
                self.start_after_all(turn, spawn, "its saved context was read");
                Ok(())
            }
            Found::Other(reason) => self.step(turn, Command::ContextCorrupt { incarnation, reason }),
            Found::Unknown(why) => {
                let reason = format!("the file of its saved context {why}");
                self.step(turn, Command::SpawnFailed { incarnation, reason, transient: true })
            }
        }
    }

    /// Lets a start go that had to wait for something. One that was stopped meanwhile has failed, one that is none any more is
    /// forgotten.
    pub(super) fn start_after_all(&mut self, turn: &mut Turn, spawn: Spawn, waited_for: &str) {
        let incarnation = spawn.incarnation;
        let worker = self.broker.state().workers.get(&spawn.worker);
        let worker = worker.filter(|worker| worker.incarnation() == incarnation && matches!(worker.phase, Phase::Starting(_)));
        let Some(worker) = worker else {
            self.verified.remove(&incarnation);
            return;
        };
        if worker.stop.is_some() {
            self.verified.remove(&incarnation);
            let reason = format!("it was stopped before {waited_for}");
            self.backlog.push_back(Command::SpawnFailed { incarnation, reason, transient: false });
        } else {
            turn.due.push(Due::Effect(Effect::Spawn(Box::new(spawn))));
        }
    }
}
