//! What arrives at the driver: words of the supervisor, messages of connections. Each becomes a command, or waits for the commit.

use roost_core::command::{CallId, Caller, Command, Nature};
use roost_core::event::{Event, Owner, Record, Spoken};
use roost_core::rejection::Rejection;
use roost_proto::id::{TreeId, WorkerId};
use roost_proto::link::ToBroker;

use super::{Connection, Driver, DriverError, Due, Turn};
use crate::journal::Spec;
use crate::session::{Arrival, FromSession, Kept, Outgoing, Payload, Room, connection_of, translate};

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
                Command::Exited { incarnation, status, leftovers }
            }
            ToBroker::Emptied { incarnation } => Command::Emptied { incarnation },
            ToBroker::NeverStarted { incarnation } => Command::NeverStarted { incarnation },
            ToBroker::Terminate => Command::Drain { call: None, now: true, timeout_ms: None },
        };
        self.step(turn, command)
    }

    /// One message of a connection. What it holds may go into the batch, so its room is taken as long as the turn.
    pub(super) fn arrived(&mut self, turn: &mut Turn, arrival: Arrival) -> Result<(), DriverError> {
        let Arrival { message, room } = arrival;
        turn.rooms.extend(Some(room).filter(Room::is_taken));
        self.take(turn, message)
    }

    /// One message of a connection.
    fn take(&mut self, turn: &mut Turn, message: FromSession) -> Result<(), DriverError> {
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
        let call = command.call();
        if let Some(call) = call.filter(|_| self.refuses(&command)) {
            self.refuse_for_space(call.id);
            return Ok(());
        }
        turn.asks_for_more |= call.is_some_and(|call| call.nature == Nature::Asks);
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
            Payload::None | Payload::Observes => {}
            Payload::Said { text, context } => self.keep_said(turn, first, call.map(|call| call.caller), text, context),
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

    /// Whether this is refused for want of space whatever the core says of it.
    fn refuses(&mut self, command: &Command) -> bool {
        if matches!(command, Command::Open { .. }) {
            return self.has_no_space();
        }
        matches!(command, Command::Cap { cap: Some(_), .. } | Command::Pause { .. }) && self.has_no_ballast()
    }

    /// Whether new work must wait until there is space again.
    fn has_no_space(&mut self) -> bool {
        self.journal.space_is_low() || self.has_no_ballast()
    }

    /// Whether there is no room at all, or was none a moment ago.
    fn has_no_ballast(&mut self) -> bool {
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
    fn keep_said(&self, turn: &mut Turn, first: usize, speaker: Option<Caller>, text: Option<String>, context: Option<Kept>) {
        let Some(speaker) = speaker else { return };
        let Taken { text: said, context: saved } = taken_of(&turn.batch.records[first..], speaker);
        let tree = match speaker {
            Caller::Operator => None,
            Caller::Root(tree) => Some(tree),
            Caller::Worker { worker, .. } => self.broker.state().workers.get(&worker).map(|worker| worker.tree),
        };
        if let (Some(seq), Some(tree), Some(text)) = (said, tree, text) {
            turn.batch.texts.push((seq, tree, text.into_bytes()));
        }
        // A file was looked at before, or the call is refused.
        if let (Some(worker), Some(Kept::Bytes(bytes))) = (saved, context) {
            turn.batch.contexts.push((worker, bytes));
        }
    }
}

/// What a step has taken of what its caller said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Taken {
    /// The number of the record that its text lies beside.
    text: Option<u64>,
    /// Whose context it is.
    context: Option<WorkerId>,
}

/// A step records more than its caller's own: whom it makes park, say, whose context was saved long before.
fn taken_of(records: &[Record], speaker: Caller) -> Taken {
    let (owner, own) = match speaker {
        Caller::Operator => return Taken::default(),
        Caller::Root(_) => (Owner::Root, None),
        Caller::Worker { worker, .. } => (Owner::Worker(worker), Some(worker)),
    };
    let mut taken = Taken::default();
    for record in records {
        if let Event::Parked { worker, .. } = &record.event {
            taken.context = own.filter(|own| own == worker).or(taken.context);
        }
        let Event::Spoken(spoken) = &record.event else { continue };
        if let Spoken::Said { worker } = &**spoken {
            taken.text = own.filter(|own| own == worker).map(|_| record.seq).or(taken.text);
        } else if let Spoken::Settled { worker, context, answered, .. } | Spoken::Answered { worker, context, answered, .. } = &**spoken {
            if own != Some(*worker) {
                continue;
            }
            taken.text = answered.then_some(record.seq).or(taken.text);
            taken.context = context.and(own).or(taken.context);
        } else if let Spoken::WordsSent { from, .. } = &**spoken
            && *from == owner
        {
            taken.text = Some(record.seq);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use roost_core::event::{Context, Place};
    use roost_core::time::Now;
    use roost_proto::id::Epoch;

    use super::*;

    const A: WorkerId = WorkerId(1);
    const B: WorkerId = WorkerId(2);

    fn records(events: Vec<Event>) -> Vec<Record> {
        (7..).zip(events).map(|(seq, event)| Record { seq, at: Now::default(), event }).collect()
    }

    fn context(bytes: u64) -> Context {
        Context { digest: Default::default(), bytes, place: Place::Journal }
    }

    fn settled(worker: WorkerId, context: Option<Context>) -> Event {
        Event::Spoken(Box::new(Spoken::Settled { worker, context, request_id: "r".into(), answered: true }))
    }

    fn parked(worker: WorkerId) -> Event {
        Event::Parked { worker, context: context(9), held: None }
    }

    fn taken(events: Vec<Event>, worker: WorkerId) -> Taken {
        taken_of(&records(events), Caller::Worker { worker, epoch: Epoch(1) })
    }

    #[test]
    fn what_one_worker_saved_is_never_kept_as_the_context_of_one_that_its_step_made_park() {
        let own = Taken { text: Some(7), context: Some(A) };
        // A settles while it waits in a call too, and the pressure of that parks B, which had settled before.
        assert_eq!(taken(vec![settled(A, Some(context(3))), parked(B)], A), own);
        assert_eq!(taken(vec![settled(A, Some(context(3))), parked(B), settled(B, Some(context(4)))], A), own);
        assert_eq!(taken(vec![settled(A, None), parked(B)], A), Taken { text: Some(7), context: None });
        assert_eq!(taken(vec![parked(B), parked(A)], A), Taken { text: None, context: Some(A) });
        assert_eq!(taken(vec![parked(B)], A), Taken::default());
        // It is made to park by its own word.
        assert_eq!(taken(vec![settled(A, Some(context(3))), parked(A)], A), own);
    }

    #[test]
    fn words_lie_beside_the_record_of_who_said_them() {
        let said = |worker| Event::Spoken(Box::new(Spoken::Said { worker }));
        assert_eq!(taken(vec![said(B), said(A), said(B)], A), Taken { text: Some(8), context: None });
        assert_eq!(taken_of(&records(vec![said(A), settled(B, Some(context(3)))]), Caller::Root(TreeId(5))), Taken::default());
        assert_eq!(taken_of(&records(vec![settled(B, Some(context(3)))]), Caller::Operator), Taken::default());
    }
}
