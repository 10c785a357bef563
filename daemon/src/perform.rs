//! Carrying effects out, after the commit of their events: answers to connections, orders to the supervisor, files.
//!
//! It decides nothing. What can go wrong here comes back to the core as a command.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use roost_core::command::{CallId, Caller, Command};
use roost_core::effect::{Effect, Reply, Spawn};
use roost_core::event::Place;
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::view;
use roost_proto::bytes::Bytes;
use roost_proto::id::{TreeId, WorkerId};
use roost_proto::link::{SpawnOrder, Stdin, ToSupervisor};
use roost_proto::message::PROTOCOL_VERSION;
use roost_proto::message::daemon::{DaemonRestartReply, DaemonStatusReply};
use roost_proto::message::tree::Progress;
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::sync::mpsc::error::TrySendError;

use crate::driver::{Driver, DriverError, Due, End};
use crate::journal::{LoadError, Loaded, context_of};
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
            Effect::RemoveFiles { executions, .. } => {
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

    /// The order for a process, or why there is none.
    fn order(&mut self, spawn: &Spawn, loaded: &mut LoadedSpecs) -> Result<SpawnOrder, NotOrdered> {
        let incarnation = spawn.incarnation;
        let failed = |reason: String, transient| NotOrdered::Failed(Command::SpawnFailed { incarnation, reason, transient });
        let Some((_, loaded)) = loaded.pop_front() else { return Err(failed("nothing is stored about how it is started".into(), false)) };
        let Loaded { spec, context } = loaded.map_err(|error| match &error {
            LoadError::ContextDamaged { .. } => NotOrdered::Failed(Command::ContextCorrupt { incarnation, reason: error.to_string() }),
            LoadError::NoSpec { .. } | LoadError::SpecDamaged { .. } => failed(error.to_string(), false),
        })?;
        let mut env = (*spec.env).clone();
        for (name, value) in spec.env_extra {
            set(&mut env, name, value);
        }
        env.extend(self.own_variables(spawn));
        let written = |what: &str, error: io::Error| {
            let is_full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
            if is_full { NotOrdered::NoSpace } else { failed(format!("{what} cannot be written: {error}"), true) }
        };
        let stdin = match &spawn.wake {
            // One that speaks is handed its task and its items by its connection.
            None if spawn.speaks => Stdin::Pipe,
            None if spec.task.is_empty() => Stdin::Null,
            None => {
                let path =
                    self.outputs.write_stdin(incarnation, spec.task.as_bytes()).map_err(|error| written("its standard input", error))?;
                Stdin::File(bytes_of(&path))
            }
            Some(wake) => {
                let corrupt = |reason: &str| NotOrdered::Failed(Command::ContextCorrupt { incarnation, reason: reason.into() });
                let context = context.ok_or(corrupt("the journal has none"))?;
                let path = match wake.context.place {
                    Place::Journal if context_of(&context) != wake.context => return Err(corrupt("the journal has another one")),
                    Place::Journal => {
                        self.outputs.write_context(incarnation, &context).map_err(|error| written("its saved context", error))?
                    }
                    Place::Path => {
                        let path = PathBuf::from(OsString::from_vec(context));
                        if !self.verified.remove(&incarnation) {
                            return Err(NotOrdered::Unverified(path));
                        }
                        path
                    }
                };
                env.push(("ROOST_WAKE".into(), "1".into()));
                env.push(("ROOST_CONTEXT".into(), Bytes(bytes_of(&path))));
                if spawn.speaks {
                    Stdin::Pipe
                } else {
                    let shelf = self.shelf();
                    let mut items = serde_json::to_vec(&translate::wake(wake, &shelf)).map_err(|error| failed(error.to_string(), false))?;
                    items.push(b'\n');
                    self.transcripts.woken(spawn, &items);
                    let path = self.outputs.write_stdin(incarnation, &items).map_err(|error| written("its standard input", error))?;
                    Stdin::File(bytes_of(&path))
                }
            }
        };
        if spawn.wake.is_none() {
            self.transcripts.started(spawn, &spec.task);
        }
        Ok(SpawnOrder {
            incarnation,
            argv: spec.argv.into_iter().map(|argument| argument.0).collect(),
            env: env.into_iter().map(|(name, value)| (name.0, value.0)).collect(),
            cwd: spec.cwd.0,
            umask: spec.umask,
            stdin,
            stdout_path: bytes_of(&self.outputs.stdout(incarnation)),
            stderr_path: bytes_of(&self.outputs.stderr(incarnation)),
            leftovers_grace_ms: spawn.leftovers_grace_ms,
        })
    }

    /// What every worker learns about itself. The submitter's `ROOST_*` variables were left out when its launch was accepted.
    fn own_variables(&self, spawn: &Spawn) -> Vec<(Bytes, Bytes)> {
        let text = |name: &str, value: String| (Bytes::from(name), Bytes(value.into_bytes()));
        vec![
            ("ROOST_SOCKET".into(), Bytes::from(self.paths.socket.as_os_str())),
            ("ROOST_STATE_DIR".into(), Bytes::from(self.paths.state_dir.as_os_str())),
            text("ROOST_TREE", spawn.tree.to_string()),
            text("ROOST_WORKER", spawn.worker.to_string()),
            text("ROOST_TOKEN", spawn.token.reveal()),
            text("ROOST_EPOCH", spawn.incarnation.epoch.to_string()),
            text("ROOST_EXECUTION", spawn.incarnation.execution.to_string()),
        ]
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

/// Sets a variable, in place where it is set already.
fn set(env: &mut Vec<(Bytes, Bytes)>, name: Bytes, value: Bytes) {
    match env.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => env.push((name, value)),
    }
}
