//! What arrives at the driver: words of the supervisor, messages of connections. Each becomes a command, or waits for the commit.

use roost_core::command::{CallId, Command};
use roost_core::event::{Event, Spoken};
use roost_core::rejection::Rejection;
use roost_proto::id::{TreeId, WorkerId};
use roost_proto::link::ToBroker;

use super::{Connection, Driver, DriverError, Due, Turn};
use crate::journal::Spec;
use crate::session::{FromSession, Kept, Outgoing, Payload, connection_of, translate};

impl Driver {
    /// One message of the supervisor.
    pub(super) fn hear(&mut self, turn: &mut Turn, message: ToBroker) -> Result<(), DriverError> {
        let command = match message {
            // A second hello would be a fault of the supervisor's; its word of its children is taken all the same.
            ToBroker::Hello { children, .. } => Command::Reconcile { children },
            ToBroker::Spawned { incarnation, process } => Command::Spawned { incarnation, process },
            ToBroker::SpawnFailed { incarnation, reason, transient } => Command::SpawnFailed { incarnation, reason, transient },
            ToBroker::Exited { incarnation, status, leftovers } => {
                if !leftovers.is_empty() {
                    tracing::info!(%incarnation, ?leftovers, "a worker left processes behind");
                }
                Command::Exited { incarnation, status, leftovers: !leftovers.is_empty() }
            }
            ToBroker::Emptied { incarnation } => Command::Emptied { incarnation },
            ToBroker::NeverStarted { incarnation } => Command::NeverStarted { incarnation },
            ToBroker::Terminate => Command::Drain { call: None, now: true, timeout_ms: None },
        };
        self.step(turn, command)
    }

    /// One message of a connection.
    pub(super) fn take(&mut self, turn: &mut Turn, message: FromSession) -> Result<(), DriverError> {
        match message {
            FromSession::Connected { connection, outgoing } => {
                self.connections
                    .insert(connection, Connection { outgoing, root_of: None, watches: None, holds: None, follows: None, observes: false });
                Ok(())
            }
            FromSession::Gone { connection, calls } => {
                let gone = self.connections.remove(&connection);
                let root_of = gone.as_ref().and_then(|connection| connection.root_of);
                if let Some(holder) = gone.and_then(|connection| connection.holds) {
                    self.let_go(holder);
                    self.step(turn, Command::LeaseGone { tree: holder.tree, owner: holder.owner, lease: holder.lease })?;
                }
                self.audit.forget(&calls);
                if !calls.is_empty() {
                    self.step(turn, Command::Abandon { calls })?;
                }
                root_of.map_or(Ok(()), |tree| self.count_roots(turn, tree))
            }
            FromSession::Command { command, payload } => self.command(turn, command, payload),
            FromSession::DaemonStatus { call } => {
                turn.due.push(Due::DaemonStatus(call));
                Ok(())
            }
            FromSession::Restart { call } => {
                turn.due.push(Due::Restart(call));
                Ok(())
            }
            FromSession::Events { call, caller, read } => {
                turn.due.push(Due::Events(call, caller, read));
                Ok(())
            }
            FromSession::Watch { call, caller } => {
                turn.due.push(Due::Watch(call, caller));
                Ok(())
            }
        }
    }

    fn command(&mut self, turn: &mut Turn, mut command: Command, payload: Payload) -> Result<(), DriverError> {
        if let Command::Open { call, .. } = &command
            && self.has_no_space()
        {
            self.refuse_for_space(*call);
            return Ok(());
        }
        // One that was accepted when there was room is answered as it was then.
        if let Command::Launch { launch, .. } = &mut command
            && self.has_no_space()
        {
            launch.unusable = Some(Rejection::NoSpace { directory: self.paths.state_dir.display().to_string() });
        }
        if let (Command::Hello { call, .. }, Payload::Observes) = (&command, &payload)
            && let Some(connection) = self.connections.get_mut(&connection_of(*call))
        {
            connection.observes = true;
        }
        let first = turn.batch.records.len();
        self.step(turn, command)?;
        match payload {
            // Its file was looked at before, or it is refused.
            Payload::None | Payload::Observes | Payload::ContextFile(_) => {}
            Payload::Context(bytes) => {
                let parked = turn.batch.records[first..]
                    .iter()
                    .find_map(|record| if let Event::Parked { worker, .. } = &record.event { Some(*worker) } else { None });
                turn.batch.contexts.extend(parked.map(|worker| (worker, bytes)));
            }
            Payload::Said { text, context } => self.keep_said(turn, first, text, context),
            Payload::Launch(tasks) => {
                let accepted = turn.batch.records[first..]
                    .iter()
                    .find_map(|record| if let Event::JobAccepted(job) = &record.event { Some(&job.tasks) } else { None });
                let workers: Vec<WorkerId> = accepted.into_iter().flatten().map(|task| task.worker).collect();
                let specs = workers.into_iter().zip(tasks).map(|(worker, task)| {
                    let spec = Spec {
                        argv: task.argv,
                        env: task.env,
                        env_extra: task.env_extra,
                        cwd: task.cwd,
                        umask: task.umask,
                        task: task.task,
                    };
                    (worker, spec)
                });
                turn.batch.specs.extend(specs);
            }
        }
        Ok(())
    }

    /// An ephemeral tree lives by the connections of its root.
    fn count_roots(&mut self, turn: &mut Turn, tree: TreeId) -> Result<(), DriverError> {
        let connections = self.connections.values().filter(|connection| connection.root_of == Some(tree)).count();
        let connections = u32::try_from(connections).unwrap_or(u32::MAX);
        self.step(turn, Command::RootPresence { tree, connections })
    }

    /// Whether new work must wait until there is space again.
    fn has_no_space(&mut self) -> bool {
        if self.journal.space_is_low() {
            return true;
        }
        if self.ballast_released && self.journal.restore_ballast() {
            self.ballast_released = false;
        }
        self.ballast_released
    }

    pub(super) fn refuse_for_space(&mut self, call: CallId) {
        let rejection = Rejection::NoSpace { directory: self.paths.state_dir.display().to_string() };
        self.send(call, Outgoing::Refuse { call, error: translate::refusal(&rejection) });
    }

    /// What was said lies beside the event that says so; where there is none, nothing was accepted.
    fn keep_said(&self, turn: &mut Turn, first: usize, text: Option<String>, context: Kept) {
        let tree_of = |worker: &WorkerId| self.broker.state().workers.get(worker).map(|worker| worker.tree);
        let mut said = None;
        let mut saved = None;
        for record in &turn.batch.records[first..] {
            if let Event::Parked { worker, .. } = &record.event {
                saved = Some(*worker);
            }
            let Event::Spoken(spoken) = &record.event else { continue };
            if let Spoken::Said { worker } = &**spoken {
                said = tree_of(worker).map(|tree| (record.seq, tree));
            } else if let Spoken::Settled { worker, context, answered, .. } | Spoken::Answered { worker, context, answered, .. } = &**spoken
            {
                said = tree_of(worker).filter(|_| *answered).map(|tree| (record.seq, tree)).or(said);
                saved = context.map(|_| *worker);
            } else if let Spoken::WordsSent { tree, .. } = &**spoken {
                said = Some((record.seq, *tree));
            }
        }
        if let (Some((seq, tree)), Some(text)) = (said, text) {
            turn.batch.texts.push((seq, tree, text.into_bytes()));
        }
        if let (Some(worker), Kept::Bytes(bytes)) = (saved, context) {
            turn.batch.contexts.push((worker, bytes));
        }
    }
}
