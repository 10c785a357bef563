//! The supervisor's loop: wait for an event, take in everything, let the children's turn happen, tell the broker.
//!
//! No polling: it sleeps until something happens or a real deadline is due.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use roost_proto::link::{ExitStatus, LINK_VERSION, ToBroker};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::SupervisorError;
use super::announce::Announcer;
use super::broker_process::{self, Broker, Recipe, Silence, describe};
use super::hold::Listening;
use super::signals::Signals;
use crate::config::{BROKER_BOOTS_MAX, EXIT_REFUSED, TERMINATE};
use crate::process::children::Children;

const SIGNALS: u64 = 0;
const WATCH: u64 = 1;
pub(super) const LINK: u64 = 2;

/// What makes this daemon the only one. Fields drop in this order: the lock goes last.
#[derive(Debug)]
pub(super) struct Holding {
    pub listening: Listening,
    pub lock: File,
}

/// Everything that the loop owns.
pub(super) struct Supervisor<'a> {
    pub(super) children: Children,
    pub(super) broker: Broker,
    pub(super) recipe: Recipe,
    pub(super) announcer: &'a mut Announcer,
    signals: Signals,
    pub(super) epoll: OwnedFd,
    /// Whether a broker was ever ready.
    pub(super) was_ready: bool,
    /// By when an orderly end must be over, once it was asked for.
    end_by: Option<Instant>,
    /// The exit code, once it is decided.
    pub(super) exit: Option<u8>,
    holding: Holding,
}

impl<'a> Supervisor<'a> {
    pub fn new(
        holding: Holding,
        children: Children,
        broker: Broker,
        recipe: Recipe,
        announcer: &'a mut Announcer,
    ) -> Result<Self, SupervisorError> {
        let signals = Signals::install().map_err(SupervisorError::system("installing signal handlers"))?;
        let make = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            epoll::add(&epoll, &signals, epoll::EventData::new_u64(SIGNALS), epoll::EventFlags::IN)?;
            epoll::add(&epoll, children.watch_fd(), epoll::EventData::new_u64(WATCH), epoll::EventFlags::IN)?;
            Ok::<_, Errno>(epoll)
        };
        let epoll = make().map_err(|error| SupervisorError::System { what: "epoll", source: error.into() })?;
        let (was_ready, end_by, exit) = (false, None, None);
        Ok(Self { children, broker, recipe, announcer, signals, epoll, was_ready, end_by, exit, holding })
    }

    /// Until the daemon ends. Live workers are left alone.
    pub fn run(mut self) -> Result<u8, SupervisorError> {
        let ended = self.until_exit();
        self.announcer.stopping();
        self.holding.listening.unlink();
        // So that the journal is closed when the lock goes.
        if let Some(running) = self.broker.running.take() {
            broker_process::finish(running);
        }
        tracing::info!(workers = self.children.running(), "leaving; live workers go on");
        ended
    }

    fn until_exit(&mut self) -> Result<u8, SupervisorError> {
        loop {
            let now = Instant::now();
            if self.broker.is_due(now) {
                self.start_broker(now)?;
            }
            self.broker.kill_if_late(now);
            if let Some(silence) = self.broker.silence(now) {
                self.end_silence(silence);
            }
            self.children.turn(now);
            self.tell_broker();
            if self.end_by.is_some_and(|by| by <= now) {
                tracing::warn!("the orderly end takes too long: leaving without it");
                self.exit = Some(1);
            }
            if let Some(code) = self.exit {
                return Ok(code);
            }
            let events = self.wait(now)?;
            self.take_in(&events)?;
        }
    }

    /// A broker whose loop stands still is killed; nothing is lost with it. One that still reads its journal is only slow.
    fn end_silence(&mut self, silence: Silence) {
        match silence {
            Silence::Reads => tracing::warn!("the broker still reads its journal"),
            Silence::StandsStill => {
                tracing::error!("the broker's loop stands still: killing it");
                self.broker.kill();
            }
        }
        self.announcer.alive();
    }

    fn wait(&self, now: Instant) -> Result<Vec<u64>, SupervisorError> {
        let deadlines = [self.children.next_deadline(), self.broker.next_deadline(), self.end_by];
        // Rounded up, so that a deadline is over when we wake for it.
        let timeout = deadlines.into_iter().flatten().min().map(|at| at.saturating_duration_since(now) + Duration::from_millis(1));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut events: Vec<epoll::Event> = Vec::with_capacity(8);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(events.iter().map(|event| event.data.u64()).collect()),
            Err(error) => Err(SupervisorError::System { what: "epoll_wait", source: error.into() }),
        }
    }

    fn take_in(&mut self, events: &[u64]) -> Result<(), SupervisorError> {
        let now = Instant::now();
        if events.contains(&LINK) {
            self.read_link(now)?;
        }
        if events.contains(&WATCH) {
            self.children.watched(now).map_err(SupervisorError::system("epoll_wait"))?;
        }
        if events.contains(&SIGNALS) {
            for _ in 0..self.signals.take().terminations {
                self.terminate(now);
            }
            for reaped in self.children.reap() {
                if self.broker.is(reaped.pid) {
                    self.broker_ended(reaped.status, now)?;
                }
            }
        }
        Ok(())
    }

    fn start_broker(&mut self, now: Instant) -> Result<(), SupervisorError> {
        self.announcer.mark_log();
        if let Err(error) = self.broker.start(&self.recipe, &self.holding.listening.socket, &self.holding.lock, now) {
            let delay = self.broker.ended(now);
            tracing::error!(program = %self.recipe.program.display(), %error, ?delay, "the broker cannot be started");
            return self.give_up_on_boot(&error.to_string());
        }
        let Some(running) = &self.broker.running else { return Ok(()) };
        tracing::info!(pid = running.process.pid, "broker started");
        // It has as long for its start as between two beats.
        self.announcer.alive();
        let data = epoll::EventData::new_u64(LINK);
        epoll::add(&self.epoll, &running.link, data, epoll::EventFlags::IN)
            .map_err(|error| SupervisorError::System { what: "epoll_ctl", source: error.into() })?;
        let boot_id = crate::identity::boot_id().map_err(SupervisorError::system("reading the boot id"))?;
        let children = self.children.hello();
        let manager = self.announcer.manager();
        self.send(&ToBroker::Hello { version: LINK_VERSION, supervisor_pid: std::process::id(), boot_id, children, manager });
        if self.end_by.is_some() {
            self.send(&ToBroker::Terminate);
        }
        Ok(())
    }

    fn broker_ended(&mut self, status: ExitStatus, now: Instant) -> Result<(), SupervisorError> {
        // Its last words, such as `Shutdown`, may still be unread.
        self.read_link(now)?;
        let how = describe(status);
        if status == ExitStatus::Code(i32::from(EXIT_REFUSED)) {
            self.broker.running = None;
            let reason = self.announcer.last_error();
            let reason = reason.unwrap_or_else(|| format!("the broker refuses to run ({how}); its last error line says why"));
            return Err(SupervisorError::BrokerRefused { reason });
        }
        let restarts = self.broker.running.as_ref().is_some_and(|running| running.restarts);
        let delay = self.broker.ended(now);
        if self.exit.is_some() {
            return Ok(());
        }
        if restarts {
            tracing::info!("the broker has ended to be started anew");
        } else {
            tracing::error!(status = how, ?delay, workers = self.children.running(), "the broker has died; starting it again");
        }
        self.give_up_on_boot(&how)
    }

    /// A daemon that never served and cannot is of no use to whoever waits for it.
    fn give_up_on_boot(&self, last: &str) -> Result<(), SupervisorError> {
        let times = self.broker.failures;
        if self.was_ready || times < BROKER_BOOTS_MAX {
            return Ok(());
        }
        // Its own words, where there are any: they name the file, and whoever waits for us sees no log.
        let last = self.announcer.last_error().map_or_else(|| last.to_owned(), |error| format!("{last}: {error}"));
        Err(SupervisorError::BrokerNeverReady { times, last })
    }

    fn terminate(&mut self, now: Instant) {
        if self.end_by.is_some() || self.broker.running.is_none() {
            tracing::warn!("leaving at once");
            self.exit = Some(1);
            return;
        }
        self.end_by = Some(now + TERMINATE);
        self.send(&ToBroker::Terminate);
    }
}
