//! One row of the table of children.
//!
//! Plain data; it knows no system call.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::Instant;

use roost_proto::id::Incarnation;
use roost_proto::limits::LEFTOVERS_LISTED_MAX;
use roost_proto::link::{ChildReport, ExitStatus, ProcessIdentity, ToBroker};

#[derive(Debug)]
pub(super) struct Child {
    /// The main process, while its pid is good evidence for its session and group: not when it was gone before we looked.
    pub main: Option<ProcessIdentity>,
    /// The main process as it is reported.
    pub process: ProcessIdentity,
    /// Whether it is our child, so that orphans of it come to us.
    pub ours: bool,
    /// Our end of its standard input.
    pub stdin: Option<OwnedFd>,
    /// TERM, then KILL after so many milliseconds, for what it leaves behind; `None`: that is left alone.
    pub leftovers_grace_ms: Option<u64>,
    /// Its processes at the last look: so that those are still known which clear their environment and lose their parents.
    pub tracked: BTreeSet<ProcessIdentity>,
    /// Whether KILL was asked for: what is left then gets no TERM first.
    pub killed: bool,
    /// Whether the broker needs to hear of it no more.
    pub forgotten: bool,
    /// When to try again to watch an adopted process that could not be watched.
    pub watch_at: Option<Instant>,
    pub phase: Phase,
}

#[derive(Debug)]
pub(super) enum Phase {
    Running,
    Ended { status: ExitStatus, remains: Remains },
}

#[derive(Debug)]
pub(super) enum Remains {
    /// Ended in this turn.
    Unexamined,
    /// Processes of it are being ended.
    Ending(Ending),
    /// Nothing that we care for: at most what is left alone.
    Kept(Vec<u32>),
}

#[derive(Debug)]
pub(super) struct Ending {
    /// From when on they get KILL.
    pub kill_at: Instant,
    /// When to look at them next, should none of them end before.
    pub look_at: Instant,
    /// Those that had their TERM.
    pub told: BTreeSet<ProcessIdentity>,
}

/// The pids that a report names.
pub(super) fn listed<'a>(processes: impl IntoIterator<Item = &'a ProcessIdentity>) -> Vec<u32> {
    processes.into_iter().take(LEFTOVERS_LISTED_MAX).map(|process| process.pid).collect()
}

/// The reports of an end of which nothing is being ended.
pub(super) fn left_alone(incarnation: Incarnation, status: ExitStatus, pids: &[u32]) -> impl Iterator<Item = ToBroker> + use<> {
    let emptied = (!pids.is_empty()).then_some(ToBroker::Emptied { incarnation });
    [ToBroker::Exited { incarnation, status, leftovers: pids.to_vec() }].into_iter().chain(emptied)
}

impl Child {
    pub fn started(main: ProcessIdentity, stdin: Option<OwnedFd>, leftovers_grace_ms: Option<u64>) -> Self {
        Self {
            main: Some(main),
            process: main,
            ours: true,
            stdin,
            leftovers_grace_ms,
            tracked: BTreeSet::new(),
            killed: false,
            forgotten: false,
            watch_at: None,
            phase: Phase::Running,
        }
    }

    pub fn adopted(main: ProcessIdentity, leftovers_grace_ms: Option<u64>) -> Self {
        Self { ours: false, ..Self::started(main, None, leftovers_grace_ms) }
    }

    pub fn found_ended(recorded: Option<ProcessIdentity>, leftovers_grace_ms: Option<u64>) -> Self {
        Self {
            main: None,
            ours: false,
            phase: Phase::Ended { status: ExitStatus::Unknown, remains: Remains::Unexamined },
            ..Self::started(recorded.unwrap_or(NOBODY), None, leftovers_grace_ms)
        }
    }

    pub fn report(&self, incarnation: Incarnation) -> ChildReport {
        let (exited, alive) = match &self.phase {
            Phase::Running => (None, true),
            Phase::Ended { status, remains: Remains::Unexamined | Remains::Ending(_) } => (Some(*status), true),
            Phase::Ended { status, remains: Remains::Kept(pids) } => (Some(*status), !pids.is_empty()),
        };
        ChildReport { incarnation, process: self.process, exited, alive }
    }
}

/// Stands in a report for a process whose identity nobody knows.
const NOBODY: ProcessIdentity = ProcessIdentity { pid: 0, start_ticks: 0 };
