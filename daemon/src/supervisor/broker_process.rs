//! The broker as a process: started, watched over its link, restarted with a back-off.
//!
//! It does not know what is said over the link.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use roost_proto::link::{ExitStatus, ProcessIdentity};

use super::link::Link;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::config::{BROKER_BACK_OFF_MAX, BROKER_BACK_OFF_MIN, BROKER_EXIT, BROKER_HEALTHY, BROKER_SILENCES_MAX, scrubbed};
use crate::identity;
use crate::process::signal;
use crate::process::spawn::{Launch, launch};

/// The broker's number for the link.
pub const LINK_DESCRIPTOR: i32 = 3;
/// The broker's number for the listening socket.
pub const LISTENER_DESCRIPTOR: i32 = 4;
/// The broker's number for the instance lock. It only keeps it open: the lock is free when supervisor *and* broker are gone,
/// so two brokers never write one journal, even after a supervisor was killed.
pub const LOCK_DESCRIPTOR: i32 = 5;

/// What every start of a broker needs.
#[derive(Debug)]
pub struct Recipe {
    /// The file to execute, as it was named when the supervisor started: an upgrade replaces what is there.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
}

/// A running broker.
#[derive(Debug)]
pub struct Running {
    /// Who it is.
    pub process: ProcessIdentity,
    /// Our end of the link.
    pub link: Link,
    /// Whether its hello was read.
    pub said_hello: bool,
    /// Whether it said that it exits in order to be started anew.
    pub restarts: bool,
    /// When it is killed, once it is expected to exit.
    pub exit_by: Option<Instant>,
    /// When it last said that its loop turns, or was started.
    heard_at: Instant,
    /// How often its time to be heard was over.
    silences: u32,
    started_at: Instant,
}

/// What it means that a broker was not heard in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// It has said no hello: it still reads its journal.
    Reads,
    /// Its loop stands still.
    StandsStill,
}

impl Running {
    fn new(process: ProcessIdentity, link: Link, now: Instant) -> Self {
        let (said_hello, restarts, exit_by, silences) = (false, false, None, 0);
        Self { process, link, said_hello, restarts, exit_by, heard_at: now, silences, started_at: now }
    }
}

/// The one broker, or the time of the next.
#[derive(Debug)]
pub struct Broker {
    /// The process, if there is one.
    pub running: Option<Running>,
    /// When to start it, if there is none.
    pub start_at: Option<Instant>,
    /// Deaths in a row without a healthy life.
    pub failures: u32,
    /// How long it may say nothing, where somebody watches over that.
    silence_max: Option<Duration>,
}

impl Broker {
    /// To be started at once.
    pub fn new(now: Instant, silence_max: Option<Duration>) -> Self {
        Self { running: None, start_at: Some(now), failures: 0, silence_max }
    }

    /// Whether it is time to start it.
    pub fn is_due(&self, now: Instant) -> bool {
        self.running.is_none() && self.start_at.is_some_and(|at| at <= now)
    }

    /// Whether this pid is the broker's.
    pub fn is(&self, pid: u32) -> bool {
        self.running.as_ref().is_some_and(|running| running.process.pid == pid)
    }

    /// Starts it.
    pub fn start(&mut self, recipe: &Recipe, listener: impl AsFd, lock: impl AsFd, now: Instant) -> io::Result<()> {
        let (link, theirs) = Link::pair()?;
        let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
        let stderr = io::stderr();
        let descriptors = [
            (null.as_fd(), 0),
            (null.as_fd(), 1),
            (stderr.as_fd(), 2),
            (theirs.as_fd(), LINK_DESCRIPTOR),
            (listener.as_fd(), LISTENER_DESCRIPTOR),
            (lock.as_fd(), LOCK_DESCRIPTOR),
        ];
        let argv: Vec<_> = [recipe.program.as_os_str()].into_iter().chain(recipe.arguments.iter().map(OsString::as_os_str)).collect();
        let argv = argv.into_iter().map(|argument| CString::new(argument.as_bytes())).collect::<Result<Vec<_>, _>>()?;
        let program = argv.first().ok_or(io::ErrorKind::InvalidInput)?;
        let pid = launch(&Launch { program, argv: &argv, env: &environment()?, cwd: c"/", descriptors: &descriptors })?;
        let start_ticks = identity::stat(pid).map_or(0, |found| found.process.start_ticks);
        let process = ProcessIdentity { pid, start_ticks };
        self.running = Some(Running::new(process, link, now));
        self.start_at = None;
        Ok(())
    }

    /// It could not be started, or has ended: says when the next one starts.
    pub fn ended(&mut self, now: Instant) -> Duration {
        let running = self.running.take();
        let in_order = running.as_ref().is_some_and(|running| running.restarts);
        let healthy = running.is_some_and(|running| now.duration_since(running.started_at) >= BROKER_HEALTHY);
        if in_order || healthy {
            self.failures = 0;
        }
        let delay = back_off(self.failures);
        if !in_order {
            self.failures += 1;
        }
        self.start_at = Some(now + delay);
        delay
    }

    /// It is expected to exit soon; it is killed if it does not.
    pub fn expect_exit(&mut self, now: Instant) {
        if let Some(running) = &mut self.running {
            running.exit_by.get_or_insert(now + BROKER_EXIT);
        }
    }

    /// Kills it, if it runs. Its end is reaped like any other.
    pub fn kill(&mut self) {
        let Some(running) = &mut self.running else { return };
        running.exit_by = None;
        signal::send(running.process, &[rustix::process::Signal::KILL]);
    }

    /// Kills it when its time is up.
    pub fn kill_if_late(&mut self, now: Instant) {
        if self.running.as_ref().and_then(|running| running.exit_by).is_some_and(|by| by <= now) {
            tracing::warn!("the broker does not exit: killing it");
            self.kill();
        }
    }

    /// Its loop turns.
    pub fn heard(&mut self, now: Instant) {
        if let Some(running) = &mut self.running {
            running.heard_at = now;
        }
    }

    /// Its hello was read: from now on it has to be heard.
    pub fn said_hello(&mut self, now: Instant) {
        self.heard(now);
        if let Some(running) = &mut self.running {
            running.said_hello = true;
        }
    }

    /// Whether its time to be heard is over, and what that means. It begins anew with this question.
    pub fn silence(&mut self, now: Instant) -> Option<Silence> {
        if self.silent_at()? > now {
            return None;
        }
        let running = self.running.as_mut()?;
        running.heard_at = now;
        running.silences += 1;
        let reads = !running.said_hello && running.silences <= BROKER_SILENCES_MAX;
        Some(if reads { Silence::Reads } else { Silence::StandsStill })
    }

    fn silent_at(&self) -> Option<Instant> {
        Some(self.running.as_ref()?.heard_at + self.silence_max?)
    }

    /// When [`is_due`](Self::is_due), [`kill_if_late`](Self::kill_if_late) or [`silence`](Self::silence) will have something to say.
    pub fn next_deadline(&self) -> Option<Instant> {
        let ending = self.running.as_ref().map_or(self.start_at, |running| running.exit_by);
        ending.into_iter().chain(self.silent_at()).min()
    }
}

/// Waits for the exit of a broker whose link is closed; kills it when it takes too long.
pub fn finish(running: Running) {
    let process = running.process;
    drop(running);
    if wait_gone(process, BROKER_EXIT).is_ok() {
        return;
    }
    tracing::warn!("the broker does not exit: killing it");
    signal::send(process, &[rustix::process::Signal::KILL]);
    if let Err(error) = wait_gone(process, BROKER_EXIT) {
        tracing::error!(%error, "the broker stays; the lock stays with it");
    }
}

fn wait_gone(process: ProcessIdentity, limit: Duration) -> io::Result<()> {
    let Ok(descriptor) = signal::open(process) else { return Ok(()) };
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Nothing after the first death, then doubling up to a limit.
fn back_off(failures: u32) -> Duration {
    match failures.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => BROKER_BACK_OFF_MIN.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(BROKER_BACK_OFF_MAX),
    }
}

/// For the log.
pub fn describe(status: ExitStatus) -> String {
    match status {
        ExitStatus::Code(code) => format!("exit code {code}"),
        ExitStatus::Signal(signal) => format!("signal {signal}"),
        ExitStatus::Unknown => "unknown".into(),
    }
}

/// The name that the program was started by when that is a path, so that a symlink to the installed version is followed anew at
/// each start; `/proc/self/exe` would name a deleted file after an upgrade.
pub fn own_program() -> io::Result<PathBuf> {
    let named = std::env::args_os().next().map(PathBuf::from).filter(|name| name.is_absolute() && is_executable(name));
    named.map_or_else(std::env::current_exe, Ok)
}

fn is_executable(path: &Path) -> bool {
    crate::process::program::check_program(path).is_ok()
}

fn environment() -> io::Result<Vec<CString>> {
    let entry = |(name, value): (OsString, OsString)| CString::new([name.into_vec(), value.into_vec()].join(&b'='));
    Ok(scrubbed(std::env::vars_os()).into_iter().map(entry).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_the_others_wait_longer_and_longer() {
        let waits: Vec<u128> = (0..9).chain([u32::MAX]).map(|failures| back_off(failures).as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
    }

    #[test]
    fn a_start_that_fails_counts_as_a_death() {
        let now = Instant::now();
        let mut broker = Broker::new(now, None);
        assert!(broker.is_due(now));
        assert_eq!(broker.ended(now), Duration::ZERO);
        assert_eq!(broker.ended(now), BROKER_BACK_OFF_MIN);
        assert!(!broker.is_due(now) && broker.is_due(now + BROKER_BACK_OFF_MIN));
        assert_eq!(broker.next_deadline(), Some(now + BROKER_BACK_OFF_MIN));
    }

    const SILENCE: Duration = Duration::from_secs(45);

    fn watched(now: Instant) -> Broker {
        let mut broker = Broker::new(now, Some(SILENCE));
        let process = ProcessIdentity { pid: 0, start_ticks: 0 };
        broker.running = Some(Running::new(process, Link::pair().unwrap().0, now));
        broker
    }

    #[test]
    fn after_its_hello_a_broker_has_its_whole_time_and_no_more() {
        let start = Instant::now();
        let mut broker = watched(start);
        let hello = start + SILENCE - Duration::from_secs(1);
        broker.said_hello(hello);
        assert_eq!(broker.silence(start + SILENCE), None);
        assert_eq!(broker.next_deadline(), Some(hello + SILENCE));
        assert_eq!(broker.silence(hello + SILENCE), Some(Silence::StandsStill));
    }

    #[test]
    fn a_long_journal_is_waited_for_and_a_hello_that_never_comes_is_not() {
        let start = Instant::now();
        let mut broker = watched(start);
        for round in 1..=BROKER_SILENCES_MAX {
            assert_eq!(broker.silence(start + SILENCE * round - Duration::from_millis(1)), None);
            assert_eq!(broker.silence(start + SILENCE * round), Some(Silence::Reads), "{round}");
        }
        assert_eq!(broker.silence(start + SILENCE * (BROKER_SILENCES_MAX + 1)), Some(Silence::StandsStill));
    }
}
