//! The loop around the core: take what has arrived, step each, commit once, then let the effects go.
//!
//! Nothing leaves before it is on disk. The driver knows all wings and no rule: what a command means is the core's business, how
//! an effect is carried out is `perform.rs`'s.

mod commit;
mod error;
mod full_disk;
mod heartbeat;
mod intake;
mod turn;
mod verify;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use roost_core::broker::Broker;
use roost_core::command::Command;
use roost_core::effect::{Holder, Spawn};
use roost_core::invariants;
use roost_core::time::Now;
use roost_proto::id::Incarnation;
use roost_proto::limits::{BATCH_INPUTS_MAX, FAREWELL, VERIFICATIONS_MAX, VERIFICATIONS_PER_TREE_MAX};
use roost_proto::link::{ChildReport, ToBroker, ToSupervisor};
use roost_proto::paths::Paths;
use tokio::sync::mpsc;

use crate::audit::Audit;
use crate::boot::{Booted, Greeting};
use crate::clock::Clock;
use crate::journal::Journal;
use crate::link::{LinkSender, SupervisorGone};
use crate::lookouts::Lookouts;
use crate::metrics::{self, Metrics};
use crate::outputs::Outputs;
use crate::session::{Arrival, ConnectionId, FromSession};
use crate::shelf::Texts;
use crate::transcript::Transcripts;
use verify::Verified;

/// How the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The daemon leaves.
    Leave,
    /// A new broker takes over.
    Restart,
}

pub use error::DriverError;
use heartbeat::Heartbeat;
use turn::Turn;
pub(crate) use turn::{Connection, Due};

/// The driver.
pub struct Driver {
    pub(crate) broker: Broker,
    pub(crate) connections: BTreeMap<ConnectionId, Connection>,
    pub(crate) outputs: Outputs,
    pub(crate) transcripts: Transcripts,
    /// Texts that the effects of this turn need.
    pub(crate) texts: Texts,
    /// Which connection holds a lease.
    pub(crate) holders: BTreeMap<Holder, ConnectionId>,
    pub(crate) link: LinkSender,
    pub(crate) paths: Paths,
    pub(crate) supervisor_pid: u32,
    /// Commands that carrying out an effect led to; they go before everything else.
    pub(crate) backlog: VecDeque<Command>,
    pub(crate) end: Option<End>,
    heartbeat: Heartbeat,
    audit: Audit,
    pub(crate) metrics: Metrics,
    /// Starts whose files found no room, and when they are tried again.
    held: Vec<Spawn>,
    held_until: Option<tokio::time::Instant>,
    /// What arrived while the disk was full and can wait.
    deferred: VecDeque<Arrival>,
    /// Starts whose saved context, a file of the worker's own, is as it was saved; until their order is given.
    pub(crate) verified: BTreeSet<Incarnation>,
    lookouts: Lookouts,
    verifying: mpsc::UnboundedSender<Verified>,
    verifications: mpsc::UnboundedReceiver<Verified>,
    pub(crate) journal: Journal,
    clock: Clock,
    since_snapshot: u64,
    /// What the journal took when it was last asked to forget.
    pub(crate) journal_bytes_before: u64,
    idle_exit_ms: u64,
    idle_since: Option<Now>,
    ballast_released: bool,
    is_ready: bool,
}

impl Driver {
    /// A driver over what boot has found.
    pub fn new(booted: Booted, link: LinkSender, paths: Paths, greeting: &Greeting, idle_exit_ms: u64) -> Self {
        let (verifying, verifications) = mpsc::unbounded_channel();
        Self {
            transcripts: Transcripts::start(&paths, booted.broker.state()),
            broker: booted.broker,
            connections: BTreeMap::new(),
            outputs: Outputs::new(paths.executions()),
            texts: Texts::default(),
            holders: BTreeMap::new(),
            link,
            paths,
            supervisor_pid: greeting.supervisor_pid,
            heartbeat: Heartbeat::new(greeting.manager, tokio::time::Instant::now()),
            backlog: VecDeque::new(),
            end: None,
            audit: Audit::default(),
            metrics: Metrics::new(),
            held: Vec::new(),
            held_until: None,
            deferred: VecDeque::new(),
            verified: BTreeSet::new(),
            lookouts: Lookouts::new(VERIFICATIONS_MAX, VERIFICATIONS_PER_TREE_MAX),
            verifying,
            verifications,
            // The one before may have needed it.
            ballast_released: !booted.journal.restore_ballast(),
            journal: booted.journal,
            clock: booted.clock,
            since_snapshot: booted.since_snapshot,
            journal_bytes_before: 0,
            idle_exit_ms,
            idle_since: None,
            is_ready: false,
        }
    }

    /// The first turn: what the supervisor holds against what the journal says. On a disk without room who looks is answered
    /// meanwhile.
    ///
    /// # Errors
    /// As for [`Driver::run`].
    pub async fn reconcile(&mut self, children: Vec<ChildReport>, sessions: &mut mpsc::Receiver<Arrival>) -> Result<(), DriverError> {
        let mut turn = Turn::default();
        self.step(&mut turn, Command::Reconcile { children })?;
        self.close(turn, sessions).await?;
        Ok(self.say_ready().await?)
    }

    /// Tells the supervisor that connections are served, once.
    async fn say_ready(&mut self) -> Result<(), SupervisorGone> {
        if std::mem::replace(&mut self.is_ready, true) {
            return Ok(());
        }
        self.link.send(&ToSupervisor::Ready).await
    }

    /// Runs until the daemon leaves or a new broker takes over.
    ///
    /// # Errors
    /// A journal that cannot be written, a supervisor that is gone, or a fault of this program. The supervisor starts another broker.
    pub async fn run(
        &mut self,
        mut supervisor: mpsc::Receiver<ToBroker>,
        mut sessions: mpsc::Receiver<Arrival>,
    ) -> Result<End, DriverError> {
        loop {
            let mut turn = Turn::default();
            self.wait(&mut turn, &mut supervisor, &mut sessions).await?;
            // Whatever else has arrived meanwhile shares the commit.
            for _ in 0..BATCH_INPUTS_MAX {
                if let Some(command) = self.backlog.pop_front() {
                    self.step(&mut turn, command)?;
                } else if let Some(message) = self.deferred.pop_front() {
                    self.arrived(&mut turn, message)?;
                } else if let Ok(verified) = self.verifications.try_recv() {
                    self.verified(&mut turn, verified)?;
                } else if let Ok(message) = supervisor.try_recv() {
                    self.hear(&mut turn, message)?;
                } else if let Ok(message) = sessions.try_recv() {
                    self.arrived(&mut turn, message)?;
                } else {
                    break;
                }
            }
            self.release_held(&mut turn);
            self.close(turn, &mut sessions).await?;
            self.beat().await?;
            if let Some(end) = self.end {
                self.say_farewell(&mut sessions).await;
                return Ok(end);
            }
        }
    }

    /// Waits for the first input of a turn, or for the next deadline.
    async fn wait(
        &mut self,
        turn: &mut Turn,
        supervisor: &mut mpsc::Receiver<ToBroker>,
        sessions: &mut mpsc::Receiver<Arrival>,
    ) -> Result<(), DriverError> {
        if let Some(command) = self.backlog.pop_front() {
            return self.step(turn, command);
        }
        if let Some(message) = self.deferred.pop_front() {
            return self.arrived(turn, message);
        }
        let pause = self.until_deadline();
        tokio::select! {
            biased;
            Some(verified) = self.verifications.recv() => self.verified(turn, verified),
            message = supervisor.recv() => self.hear(turn, message.ok_or(SupervisorGone)?),
            message = sessions.recv() => self.arrived(turn, message.ok_or(DriverError::Listener)?),
            () = tokio::time::sleep(pause) => {
                if self.is_idle_for_long() {
                    tracing::info!("no tree and no client for long: leaving");
                    self.end = Some(End::Leave);
                }
                self.step(turn, Command::Tick)
            }
        }
    }

    fn until_deadline(&mut self) -> Duration {
        let now = self.clock.now();
        let idle = self.idle_since.filter(|_| self.idle_exit_ms > 0).map(|since| since.mono + self.idle_exit_ms);
        let next = self.broker.next_deadline().into_iter().chain(idle).min();
        // Without a deadline nothing has to happen; the sleep only needs some length.
        let pause = next.map_or(Duration::from_secs(3_600), |at| Duration::from_millis(at.0.saturating_sub(now.mono.0)));
        let held = self.held_until.map(|until| until.saturating_duration_since(tokio::time::Instant::now()));
        let beat = self.heartbeat.next().map(|at| at.saturating_duration_since(tokio::time::Instant::now()));
        held.into_iter().chain(beat).fold(pause, Duration::min)
    }

    fn is_idle_for_long(&mut self) -> bool {
        let now = self.clock.now();
        self.idle_exit_ms > 0 && self.idle_since.is_some_and(|since| since.mono + self.idle_exit_ms <= now.mono)
    }

    fn note_idle(&mut self) {
        let state = self.broker.state();
        let idle = self.connections.is_empty() && state.open.is_empty() && state.live == 0;
        if !idle {
            self.idle_since = None;
        } else if self.idle_since.is_none() {
            self.idle_since = Some(self.clock.now());
        }
    }

    fn step(&mut self, turn: &mut Turn, command: Command) -> Result<(), DriverError> {
        self.prepare_for_no_space(turn, &command);
        self.audit.asks(self.broker.state(), &command);
        let declined = metrics::declines(&command);
        let outcome = self.broker.step(self.clock.now(), command).map_err(Box::new)?;
        self.metrics.observe(&outcome, declined);
        self.audit.told(self.broker.state(), &outcome.effects);
        for tree in &outcome.changed {
            if let Some(tree) = self.broker.state().trees.get(tree) {
                invariants::check_tree(tree).map_err(DriverError::Inconsistent)?;
            }
        }
        turn.batch.records.extend(outcome.records);
        turn.batch.stream.extend(outcome.stream);
        turn.due.extend(outcome.effects.into_iter().map(Due::Effect));
        turn.changed.extend(outcome.changed);
        self.heartbeat.note();
        Ok(())
    }

    /// Lets clients read their last answers.
    async fn say_farewell(&mut self, sessions: &mut mpsc::Receiver<Arrival>) {
        let mut open: BTreeSet<ConnectionId> = std::mem::take(&mut self.connections).into_keys().collect();
        let all_gone = async {
            while !open.is_empty() {
                match sessions.recv().await.map(|arrival| arrival.message) {
                    Some(FromSession::Gone { connection, .. }) => drop(open.remove(&connection)),
                    Some(_) => {}
                    None => return,
                }
            }
        };
        if tokio::time::timeout(FAREWELL, all_gone).await.is_err() {
            tracing::debug!("some clients did not read their last answer");
        }
    }
}
