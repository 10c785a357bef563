//! A disk without any room: what has happened cannot be written, so nothing of it is told; whoever asks meanwhile is told why.
//! Starts whose files could not be written wait here as well.

use roost_core::command::{CallId, Caller, Command};
use roost_core::effect::{Effect, Reply, Spawn};
use roost_proto::limits::NO_SPACE_RETRY;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::{Driver, DriverError, Due, Turn};
use crate::session::FromSession;

impl Driver {
    /// Waits for a while with this turn, which does not fit on the disk.
    pub(super) async fn wait_for_space(
        &mut self,
        turn: &mut Turn,
        sessions: Option<&mut mpsc::Receiver<FromSession>>,
    ) -> Result<(), DriverError> {
        self.answer_the_turn(turn);
        let until = Instant::now() + NO_SPACE_RETRY;
        let Some(sessions) = sessions else {
            sleep_until(until).await;
            return Ok(());
        };
        loop {
            tokio::select! {
                biased;
                () = sleep_until(until) => return Ok(()),
                message = sessions.recv() => self.meanwhile(turn, message.ok_or(DriverError::Listener)?).await?,
            }
        }
    }

    /// Who had asked in this very turn how things stand is told as well: the answer would be of what is not on disk. Who had said
    /// hello in it is let in, to be told with its next call; a worker's process may be news of this turn itself.
    fn answer_the_turn(&mut self, turn: &mut Turn) {
        for due in std::mem::take(&mut turn.due) {
            match due {
                Due::Effect(Effect::Reply { call, reply: reply @ Reply::Welcome { caller: Caller::Operator | Caller::Root(_), .. } }) => {
                    self.reply(call, reply);
                }
                Due::Effect(Effect::Reply { call, reply: Reply::Status { .. } | Reply::Counts(_) | Reply::StillActive { .. } })
                | Due::DaemonStatus(call)
                | Due::Watch(call, _) => self.refuse_for_space(call),
                Due::Effect(_) | Due::Restart(_) => turn.due.push(due),
            }
        }
    }

    /// Hellos are answered; calls that expect an answer at once get an error; those that wait by nature wait.
    async fn meanwhile(&mut self, turn: &mut Turn, message: FromSession) -> Result<(), DriverError> {
        match message {
            FromSession::Connected { .. } => return self.take(turn, message),
            FromSession::Command { command: command @ Command::Hello { call, .. }, .. } => return self.greet(turn, call, command).await,
            FromSession::DaemonStatus { call } | FromSession::Restart { call } | FromSession::Watch { call, .. } => {
                self.refuse_for_space(call);
            }
            FromSession::Command { ref command, .. } => match expects_an_answer(command) {
                Some(call) => self.refuse_for_space(call),
                None => self.deferred.push_back(message),
            },
            FromSession::Gone { .. } => self.deferred.push_back(message),
        }
        Ok(())
    }

    /// Who somebody is does not depend on what could not be written. Everything else that comes of the step does.
    async fn greet(&mut self, turn: &mut Turn, call: CallId, hello: Command) -> Result<(), DriverError> {
        let mut step = Turn::default();
        self.step(&mut step, hello)?;
        let is_welcome =
            |due: &Due| matches!(due, Due::Effect(Effect::Reply { call: of, .. } | Effect::Refuse { call: of, .. }) if *of == call);
        let (now, later): (Vec<Due>, Vec<Due>) = step.due.into_iter().partition(is_welcome);
        turn.batch.records.extend(step.batch.records);
        turn.changed.extend(step.changed);
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
        | Command::Cap { call, .. }
        | Command::Pause { call, .. } => Some(*call),
        // A park is held: its client waits for a while, and is parked if there is room by then.
        Command::Park { .. }
        | Command::Hello { .. }
        | Command::Wait { .. }
        | Command::Result { .. }
        | Command::Stop { .. }
        | Command::Interrupt { .. }
        | Command::Close { .. }
        | Command::Settle { .. }
        | Command::ParkReady { .. }
        | Command::ParkDecline { .. }
        | Command::Ack { .. }
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
        | Command::Drain { .. } => None,
    }
}
