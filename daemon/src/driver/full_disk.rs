//! A disk without any room: what has happened cannot be written, so nothing of it is told; whoever looks meanwhile sees what is on
//! disk, and whoever asks for more is told why. Starts whose files could not be written wait here as well.

use roost_core::command::{CallId, Caller, Command, Speak};
use roost_core::effect::{Effect, Reply, Spawn};
use roost_core::state::worker::Worker;
use roost_proto::limits::NO_SPACE_RETRY;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{Driver, DriverError, Due, Turn};
use crate::perform::progress_of;
use crate::session::{Arrival, FromSession, Outgoing, translate};
use crate::shelf::Needs;

impl Driver {
    /// Waits for a while with this turn, which does not fit on the disk.
    pub(super) async fn wait_for_space(&mut self, turn: &mut Turn, sessions: &mut mpsc::Receiver<Arrival>) -> Result<(), DriverError> {
        self.say_ready().await?;
        self.beat().await?;
        self.answer_the_turn(turn);
        let until = Instant::now() + NO_SPACE_RETRY;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(until) => return Ok(()),
                message = sessions.recv() => self.meanwhile(turn, message.ok_or(DriverError::Listener)?).await?,
            }
        }
    }

    /// Before the first step of a turn that may not fit: keeps what is on disk, for those who look.
    pub(super) fn prepare_for_no_space(&self, turn: &mut Turn, command: &Command) {
        if !std::mem::replace(&mut turn.has_begun, true) && self.journal.space_is_low() {
            turn.on_disk = Some(Box::new(self.broker.clone()));
        }
        if turn.on_disk.is_some()
            && let Command::Status { call, .. } | Command::Count { call, .. } | Command::Result { call, wait: false, .. } = command
        {
            turn.looks.insert(*call, command.clone());
        }
    }

    /// Who had looked in this very turn is answered from what is on disk; a result that was there before is told even though nobody
    /// will know that it was read. Who had said hello in it is let in; a worker's process may be news of this turn itself.
    fn answer_the_turn(&mut self, turn: &mut Turn) {
        for due in std::mem::take(&mut turn.due) {
            match due {
                Due::Effect(Effect::Reply { call, reply: reply @ Reply::Welcome { caller: Caller::Operator | Caller::Root(_), .. } }) => {
                    self.reply(call, reply);
                }
                Due::Effect(Effect::Reply { call, reply: Reply::Result(end) })
                    if turn
                        .on_disk
                        .as_ref()
                        .is_some_and(|broker| broker.state().workers.get(&end.worker).is_some_and(Worker::has_ended))
                        && end.said.is_none() =>
                {
                    self.reply(call, Reply::Result(end));
                }
                Due::Effect(Effect::Reply {
                    call,
                    reply: Reply::Status { .. } | Reply::Counts(_) | Reply::StillActive { .. } | Reply::Result(_),
                }) if turn.looks.contains_key(&call) => {
                    if let Some(look) = turn.looks.remove(&call) {
                        self.look(turn, call, &look);
                    }
                }
                Due::Effect(Effect::Reply { call, reply: Reply::Status { .. } | Reply::Counts(_) | Reply::StillActive { .. } }) => {
                    self.refuse_for_space(call);
                }
                Due::DaemonStatus(call) => self.show_daemon_status(turn, call),
                Due::Watch(call, caller) => self.show_watch(turn, call, caller),
                Due::Effect(_) | Due::Restart(_) | Due::Events(..) => turn.due.push(due),
            }
        }
    }

    /// Answers a look from what is on disk.
    fn look(&mut self, turn: &mut Turn, call: CallId, look: &Command) {
        let now = self.clock.now();
        match turn.on_disk.as_mut().and_then(|broker| broker.look(now, look)) {
            // A text lies in the journal, which has no time for it now.
            Some(Effect::Reply { call, reply }) if Needs::of_reply(&reply) => self.refuse_for_space(call),
            Some(Effect::Reply { call, reply }) => self.reply(call, reply),
            Some(Effect::Refuse { call, rejection }) => {
                self.send(call, Outgoing::Refuse { call, error: translate::refusal(&rejection) });
            }
            Some(_) | None => self.refuse_for_space(call),
        }
    }

    fn show_daemon_status(&mut self, turn: &Turn, call: CallId) {
        match &turn.on_disk {
            Some(broker) => {
                let status = self.daemon_status(broker.state());
                self.answer(call, &status);
            }
            None => self.refuse_for_space(call),
        }
    }

    fn show_watch(&mut self, turn: &Turn, call: CallId, caller: Caller) {
        match &turn.on_disk {
            Some(broker) => self.watch(call, progress_of(broker.state(), caller)),
            None => self.refuse_for_space(call),
        }
    }

    /// Looks and hellos are answered; calls that expect an answer at once get an error; those that wait by nature wait.
    async fn meanwhile(&mut self, turn: &mut Turn, arrival: Arrival) -> Result<(), DriverError> {
        match &arrival.message {
            FromSession::Connected { .. } => return self.arrived(turn, arrival),
            FromSession::Command { command: Command::Hello { call, .. }, .. } => return self.greet(turn, *call, arrival).await,
            FromSession::DaemonStatus { call } => self.show_daemon_status(turn, *call),
            FromSession::Watch { call, caller } => self.show_watch(turn, *call, *caller),
            FromSession::Restart { call } | FromSession::Events { call, .. } => self.refuse_for_space(*call),
            FromSession::Command {
                command:
                    look @ (Command::Status { call, .. }
                    | Command::Count { call, .. }
                    | Command::Result { call, caller: Caller::Root(_) | Caller::Operator, wait: false, .. }),
                ..
            } => self.look(turn, *call, look),
            FromSession::Command { command, .. } => match expects_an_answer(command) {
                Some(call) => self.refuse_for_space(call),
                None => self.deferred.push_back(arrival),
            },
            FromSession::Gone { .. } => self.deferred.push_back(arrival),
        }
        Ok(())
    }

    /// Who somebody is does not depend on what could not be written. Everything else that comes of the step does.
    async fn greet(&mut self, turn: &mut Turn, call: CallId, hello: Arrival) -> Result<(), DriverError> {
        let before = std::mem::take(&mut turn.due);
        self.arrived(turn, hello)?;
        let is_welcome =
            |due: &Due| matches!(due, Due::Effect(Effect::Reply { call: of, .. } | Effect::Refuse { call: of, .. }) if *of == call);
        let (now, later): (Vec<Due>, Vec<Due>) = std::mem::replace(&mut turn.due, before).into_iter().partition(is_welcome);
        self.plan(turn, later);
        for due in now {
            self.perform(due, &mut Default::default()).await?;
        }
        Ok(())
    }

    /// A start whose files found no room is not a failed start: it is tried again until there is some.
    pub(crate) fn hold_start(&mut self, spawn: Spawn) {
        if self.held.is_empty() {
            tracing::error!("the disk of the state directory is full: starts wait until there is room");
            self.held_until = Some(Instant::now() + NO_SPACE_RETRY);
        }
        self.held.push(spawn);
    }

    /// Lets the held starts go when it is time.
    pub(super) fn release_held(&mut self, turn: &mut Turn) {
        if self.held_until.is_none_or(|until| until > Instant::now()) {
            return;
        }
        self.held_until = None;
        for spawn in std::mem::take(&mut self.held) {
            self.start_after_all(turn, spawn, "there was room for its files");
        }
    }
}

/// The call of a command whose client does not expect to wait.
fn expects_an_answer(command: &Command) -> Option<CallId> {
    match command {
        Command::Open { call, .. }
        | Command::Attach { call, .. }
        | Command::Launch { call, .. }
        | Command::Status { call, .. }
        | Command::Count { call, .. }
        | Command::Usage { call, .. }
        | Command::Cap { call, .. }
        | Command::Pause { call, .. } => Some(*call),
        // The texts that it shows lie in the journal, and its connection is not read before it is answered.
        Command::Speak { call, speak, .. } => (**speak == Speak::Inbox).then_some(*call),
        // A park is held: its client waits for a while, and is parked if there is room by then.
        Command::Park { .. }
        | Command::Hello { .. }
        | Command::Wait { .. }
        | Command::Result { .. }
        | Command::Stop { .. }
        | Command::Interrupt { .. }
        | Command::Close { .. }
        | Command::LeaseGone { .. }
        | Command::Abandon { .. }
        | Command::RootPresence { .. }
        | Command::Reconcile { .. }
        | Command::Spawned { .. }
        | Command::SpawnFailed { .. }
        | Command::ContextCorrupt { .. }
        | Command::Exited { .. }
        | Command::Emptied { .. }
        | Command::NeverStarted { .. }
        | Command::Tick
        | Command::Gc { .. }
        | Command::Drain { .. } => None,
    }
}
