//! Carrying effects out, after the commit of their events: answers to connections, orders to the supervisor, files.
//!
//! It decides nothing. What can go wrong here comes back to the core as a command.

mod order;

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use roost_core::command::{CallId, Caller, Command};
use roost_core::effect::{Effect, Reply};
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::view;
use roost_proto::id::{TreeId, WorkerId};
use roost_proto::link::ToSupervisor;
use roost_proto::message::PROTOCOL_VERSION;
use roost_proto::message::daemon::{DaemonMetricsReply, DaemonRestartReply, DaemonStatusReply};
use roost_proto::message::tree::Progress;
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::sync::mpsc::error::TrySendError;

use crate::driver::{Driver, DriverError, Due, End};
use crate::journal::{LoadError, Loaded};
use crate::outputs::bytes_of;
use crate::session::{Outgoing, connection_of, translate};

/// What the journal handed back for the spawns of a turn, in their order.
pub(crate) type LoadedSpecs = VecDeque<(WorkerId, Result<Loaded, LoadError>)>;

/// Why no order for a process could be made.
enum NotOrdered {
    /// The start has failed; this says so.
    Failed(Command),
    /// There is no room for its files. It has not failed.
    NoSpace,
    /// The file that its worker keeps its context in must be looked at first.
    Unverified(PathBuf),
}

impl Driver {
    pub(crate) async fn perform(&mut self, due: Due, loaded: &mut LoadedSpecs) -> Result<(), DriverError> {
        match due {
            Due::Effect(effect) => self.carry_out(effect, loaded).await,
            Due::DaemonStatus(call) => {
                let status = self.daemon_status(self.broker.state());
                self.answer(call, &status);
                Ok(())
            }
            Due::Metrics(call) => {
                self.answer(call, &self.metrics(self.broker.state()));
                Ok(())
            }
            Due::Watch(call, caller) => {
                self.watch(call, progress_of(self.broker.state(), caller));
                Ok(())
            }
            // Answered with what the commit hands back.
            Due::Events(..) => Ok(()),
            Due::Restart(call) => {
                self.answer(call, &DaemonRestartReply { broker_pid: std::process::id() });
                self.end = Some(End::Restart);
                Ok(())
            }
        }
    }

    async fn carry_out(&mut self, effect: Effect, loaded: &mut LoadedSpecs) -> Result<(), DriverError> {
        let message = match effect {
            Effect::Reply { call, reply: Reply::Swept(swept) } => {
                let reply = translate::swept(*swept, (self.journal_bytes_before, self.journal.bytes()));
                self.answer(call, &reply);
                return Ok(());
            }
            Effect::Reply { call, reply } => {
                self.reply(call, reply);
                return Ok(());
            }
            Effect::Refuse { call, rejection } => {
                self.send(call, Outgoing::Refuse { call, error: translate::refusal(&rejection) });
                return Ok(());
            }
            Effect::Spawn(spawn) => match self.order(&spawn, loaded) {
                Ok(order) => ToSupervisor::Spawn(Box::new(order)),
                Err(NotOrdered::NoSpace) => {
                    self.hold_start(*spawn);
                    return Ok(());
                }
                Err(NotOrdered::Unverified(path)) => {
                    self.verify(*spawn, path);
                    return Ok(());
                }
                Err(NotOrdered::Failed(failed)) => {
                    self.backlog.push_back(failed);
                    return Ok(());
                }
            },
            Effect::Signal { incarnation, signal } => ToSupervisor::Signal { incarnation, signal },
            Effect::Forget { incarnation } => ToSupervisor::Forget { incarnation },
            Effect::Adopt { incarnation, process, leftovers_grace_ms } => {
                let stdout_path = bytes_of(&self.outputs.stdout(incarnation));
                ToSupervisor::Adopt { incarnation, process, stdout_path, leftovers_grace_ms }
            }
            spoken @ (Effect::Deliver(_) | Effect::Withdraw { .. } | Effect::LeaseLost { .. } | Effect::AskPark { .. }) => {
                self.notify(spoken);
                return Ok(());
            }
            // It went with the commit.
            Effect::ForgetText(_) => return Ok(()),
            Effect::RemoveFiles { tree, executions, workers, unread } => {
                tracing::info!(%tree, workers = workers.len(), unread, "forgotten: its time is over, or room was asked for");
                for (execution, last) in executions {
                    self.outputs.remove(execution, last);
                    self.transcripts.remove(execution);
                }
                return Ok(());
            }
            Effect::Leave => {
                self.end = Some(End::Leave);
                return Ok(());
            }
        };
        Ok(self.link.send(&message).await?)
    }

    pub(crate) fn reply(&mut self, call: CallId, reply: Reply) {
        let holder = if let Reply::Welcome { standing: Some(standing), .. } = &reply { Some(standing.holder) } else { None };
        let observes = self.connections.get(&connection_of(call)).is_some_and(|connection| connection.observes);
        let (result, becomes) = translate::reply_to(reply, observes, &self.shelf());
        self.send(call, Outgoing::Answer { call, result, becomes });
        if let Some(holder) = holder {
            self.hold(call, holder);
        }
        let Some(Caller::Root(tree)) = becomes.map(|becomes| becomes.caller) else { return };
        let Some(connection) = self.connections.get_mut(&connection_of(call)) else { return };
        connection.root_of = Some(tree);
        let connections = self.connections.values().filter(|connection| connection.root_of == Some(tree)).count();
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        self.backlog.push_back(Command::RootPresence { tree, connections });
    }

    pub(crate) fn answer<T: Serialize>(&mut self, call: CallId, reply: &T) {
        match to_raw_value(reply) {
            Ok(result) => self.send(call, Outgoing::Answer { call, result, becomes: None }),
            Err(error) => tracing::error!(%error, "an answer cannot be written"),
        }
    }

    /// Hands something to a connection. One that does not read is cut; it may come back and ask again.
    pub(crate) fn send(&mut self, call: CallId, outgoing: Outgoing) {
        let id = connection_of(call);
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Err(TrySendError::Full(_)) = connection.outgoing.try_send(outgoing) {
            tracing::warn!(connection = id.0, "a client does not read its answers: its connection is cut");
            let (dead, _) = tokio::sync::mpsc::channel(1);
            connection.outgoing = dead;
        }
    }

    /// From now on the connection of this call is told how the tree stands.
    pub(crate) fn watch(&mut self, call: CallId, stands: Option<(TreeId, Progress)>) {
        let Some((id, progress)) = stands else {
            self.send(call, Outgoing::Refuse { call, error: translate::refusal(&Rejection::NoTree) });
            return;
        };
        self.answer(call, &progress);
        if let Some(connection) = self.connections.get_mut(&connection_of(call)) {
            connection.watches = Some(id);
        }
    }

    /// Tells watchers how their tree stands. A watcher that is behind gets the next one.
    pub(crate) fn show_progress(&self, changed: &BTreeSet<TreeId>) {
        for connection in self.connections.values() {
            let Some(tree) = connection.watches.filter(|tree| changed.contains(tree)) else { continue };
            let Some(tree) = self.broker.state().trees.get(&tree) else { continue };
            // Half of the room is kept for answers.
            if connection.outgoing.capacity() * 2 > connection.outgoing.max_capacity()
                && let Err(error) = connection.outgoing.try_send(Outgoing::Progress(translate::progress(&view::counts(tree))))
            {
                tracing::debug!(%error, "a watcher is gone");
            }
        }
    }

    pub(crate) fn metrics(&self, state: &State) -> DaemonMetricsReply {
        DaemonMetricsReply { text: self.metrics.text(state, self.connections.len()) }
    }

    pub(crate) fn daemon_status(&self, state: &State) -> DaemonStatusReply {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        DaemonStatusReply {
            supervisor_pid: self.supervisor_pid,
            broker_pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL_VERSION,
            socket: self.paths.socket.to_string_lossy().into_owned(),
            state_dir: self.paths.state_dir.to_string_lossy().into_owned(),
            trees: count(state.open.len()),
            live: state.live,
            queued: state.open_trees().map(|tree| count(tree.queued())).sum(),
            connections: count(self.connections.len()),
            cap: self.broker.cap_of_all(),
        }
    }
}

/// How the caller's tree stands.
pub(crate) fn progress_of(state: &State, caller: Caller) -> Option<(TreeId, Progress)> {
    let tree = match caller {
        Caller::Operator => None,
        Caller::Root(tree) => Some(tree),
        Caller::Worker { worker, .. } => state.workers.get(&worker).map(|worker| worker.tree),
    };
    let tree = state.trees.get(&tree?)?;
    Some((tree.id, translate::progress(&view::counts(tree))))
}
