//! The table of children: what was started or adopted, how it ended, whether anything of it is left.
//!
//! It answers the broker's orders with reports, and does not know the broker, its connection, or whether one is there: the
//! table is the truth, and a new broker gets it in the hello. What happens after an end is in `children/ending.rs`.

mod ending;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Instant;

use roost_proto::id::Incarnation;
use roost_proto::link::{ChildReport, EXIT_LINE, ExitStatus, ProcessIdentity, Signal, SpawnOrder, ToBroker};

use self::table::{Child, Phase, Remains, left_alone};
use super::adopt::{self, Found};
use super::cgroup::{Cgroup, Cgroups};
use super::reap::{self, Reaped};
use super::signal::OpenError;
use super::start;
use super::watch::{Watch, Watched};

/// A process that an earlier supervisor started, or may have started.
#[derive(Debug)]
pub struct Lost {
    /// What the journal knows of it.
    pub process: Option<ProcessIdentity>,
    /// Its standard output file: whether that exists tells if a start without a record may have happened.
    pub stdout_path: Vec<u8>,
    /// As in the order that started it.
    pub leftovers_grace_ms: Option<u64>,
}

/// Everything that this supervisor started or adopted and the broker has not forgotten.
///
/// A caller gives it orders and events, then calls [`turn`](Self::turn), then takes the reports.
#[derive(Debug)]
pub struct Children {
    state_dir: Vec<u8>,
    table: BTreeMap<Incarnation, Child>,
    /// Main processes that are our children and not reaped.
    by_pid: BTreeMap<u32, Incarnation>,
    watch: Watch,
    /// Where each incarnation has a cgroup, if they have.
    cgroups: Option<Cgroups>,
    /// Whose cgroup is empty and could not be removed: tried again with the next one that is.
    unremoved: BTreeSet<Incarnation>,
    /// Ended since the last turn: what they left behind is not known yet.
    unexamined: BTreeSet<Incarnation>,
    /// When to examine them if nothing happens before.
    examine_at: Option<Instant>,
    /// Signals asked for since the last turn; KILL replaces TERM.
    asked: BTreeMap<Incarnation, Signal>,
    reports: Vec<ToBroker>,
}

impl Children {
    /// An empty table for the workers of this state directory.
    pub fn new(state_dir: &Path) -> io::Result<Self> {
        Ok(Self {
            state_dir: state_dir.as_os_str().as_encoded_bytes().to_vec(),
            table: BTreeMap::new(),
            by_pid: BTreeMap::new(),
            watch: Watch::new()?,
            cgroups: None,
            unremoved: BTreeSet::new(),
            unexamined: BTreeSet::new(),
            examine_at: None,
            asked: BTreeMap::new(),
            reports: Vec::new(),
        })
    }

    /// The same, with a cgroup for each incarnation. What an earlier supervisor left there is removed, now or when it is empty.
    pub fn within(mut self, cgroups: Option<Cgroups>) -> Self {
        let left = cgroups.as_ref().map(Cgroups::left).unwrap_or_default();
        self.cgroups = cgroups;
        left.into_iter().for_each(|incarnation| self.close_cgroup(incarnation));
        self
    }

    /// Readable when [`watched`](Self::watched) has something to do.
    pub fn watch_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// Starts a process; once, however often it is asked for.
    pub fn spawn(&mut self, order: &SpawnOrder) {
        let incarnation = order.incarnation;
        if self.repeat(incarnation) {
            return;
        }
        let cgroup = self.cgroups.as_mut().and_then(|cgroups| cgroups.create(incarnation));
        match start::start(order, &self.state_dir, cgroup.as_ref()) {
            Ok(started) => {
                if let (Some(cgroups), Some(cgroup), Some(error)) = (&mut self.cgroups, &cgroup, &started.outside) {
                    cgroups.complain(cgroup, "cannot be entered", error);
                    self.close_cgroup(incarnation);
                }
                tracing::debug!(%incarnation, pid = started.process.pid, "started");
                self.by_pid.insert(started.process.pid, incarnation);
                self.table.insert(incarnation, Child::started(started.process, started.stdin, order.leftovers_grace_ms));
                self.reports.push(ToBroker::Spawned { incarnation, process: started.process });
            }
            Err(error) => {
                tracing::debug!(%incarnation, %error, "not started");
                if cgroup.is_some() {
                    self.close_cgroup(incarnation);
                }
                self.reports.push(ToBroker::SpawnFailed { incarnation, reason: error.to_string(), transient: error.is_transient() });
            }
        }
    }

    /// Takes over a process of an earlier supervisor, or finds out that there is none.
    pub fn adopt(&mut self, incarnation: Incarnation, lost: Lost, now: Instant) {
        if self.repeat(incarnation) {
            return;
        }
        let cgroup = self.cgroup(incarnation);
        match adopt::find(incarnation, lost.process, &lost.stdout_path, &self.state_dir, cgroup.as_ref()) {
            Found::Running(process) => {
                tracing::info!(%incarnation, pid = process.pid, "adopted");
                self.table.insert(incarnation, Child::adopted(process, lost.leftovers_grace_ms));
                self.reports.push(ToBroker::Spawned { incarnation, process });
                self.watch_main(incarnation, process, now);
            }
            Found::Ended { leftovers } => {
                tracing::info!(%incarnation, leftovers = leftovers.len(), "had ended before it could be adopted");
                self.table.insert(incarnation, Child::found_ended(lost.process, lost.leftovers_grace_ms));
                self.examined_unless_hidden(incarnation, leftovers, now);
            }
            Found::NeverStarted => self.reports.push(ToBroker::NeverStarted { incarnation }),
        }
    }

    /// Sends a signal to all processes of an incarnation, at the end of this turn.
    pub fn signal(&mut self, incarnation: Incarnation, signal: Signal) {
        let Some(child) = self.table.get_mut(&incarnation) else {
            tracing::debug!(%incarnation, ?signal, "a signal for an incarnation that is not held");
            return;
        };
        match signal {
            Signal::CloseStdin => {
                if let Some(stdin) = child.stdin.take() {
                    order_exit(stdin);
                }
            }
            Signal::Term => {
                self.asked.entry(incarnation).or_insert(Signal::Term);
            }
            Signal::Kill => {
                child.killed = true;
                self.asked.insert(incarnation, Signal::Kill);
            }
        }
    }

    /// Drops an ended child. What is being ended of it is ended all the same.
    pub fn forget(&mut self, incarnation: Incarnation) {
        let Some(child) = self.table.get_mut(&incarnation) else { return };
        match &child.phase {
            Phase::Running => tracing::warn!(%incarnation, "a living child cannot be forgotten"),
            Phase::Ended { remains: Remains::Kept(_), .. } => {
                self.table.remove(&incarnation);
            }
            Phase::Ended { remains: Remains::Unexamined | Remains::Ending(_), .. } => child.forgotten = true,
        }
    }

    /// Reaps all children that have ended. Those that are not workers come back, the broker and strangers: by pid and status.
    pub fn reap(&mut self) -> Vec<Reaped> {
        let mut others = Vec::new();
        while let Some(reaped) = reap::reap() {
            match self.by_pid.remove(&reaped.pid) {
                Some(incarnation) => self.ended(incarnation, reaped.status),
                None => others.push(reaped),
            }
        }
        others
    }

    /// Takes in which of the watched processes have ended, and which cgroups may be empty now.
    pub fn watched(&mut self, now: Instant) -> io::Result<()> {
        for (incarnation, what) in self.watch.ended()? {
            match (what, self.table.get_mut(&incarnation).map(|child| (child.main, &mut child.phase))) {
                (Watched::Process(process), Some((main, Phase::Running))) => {
                    if main == Some(process) {
                        self.ended(incarnation, ExitStatus::Unknown);
                    }
                }
                (_, Some((_, Phase::Ended { remains: Remains::Ending(ending), .. }))) => ending.look_at = now,
                // Examined in this turn anyway.
                (_, Some((_, Phase::Running | Phase::Ended { remains: Remains::Unexamined, .. }))) => {}
                (Watched::Cgroup, Some((_, Phase::Ended { remains: Remains::Kept(_), .. })) | None) => self.close_cgroup(incarnation),
                (Watched::Process(_), Some((_, Phase::Ended { remains: Remains::Kept(_), .. })) | None) => {}
            }
        }
        Ok(())
    }

    /// What there is to tell the broker since the last call.
    pub fn take_reports(&mut self) -> Vec<ToBroker> {
        std::mem::take(&mut self.reports)
    }

    /// The whole table, for the hello. Reports that were not taken are in it, so they are dropped; but it does not list what is left alone:
    /// that is reported again.
    pub fn hello(&mut self) -> Vec<ChildReport> {
        self.reports.clear();
        for (incarnation, child) in &self.table {
            if let Phase::Ended { status, remains: Remains::Kept(pids) } = &child.phase
                && !pids.is_empty()
            {
                self.reports.extend(left_alone(*incarnation, *status, pids));
            }
        }
        self.table.iter().filter(|(_, child)| !child.forgotten).map(|(incarnation, child)| child.report(*incarnation)).collect()
    }

    /// How many main processes are alive.
    pub fn running(&self) -> usize {
        self.table.values().filter(|child| matches!(child.phase, Phase::Running)).count()
    }

    /// Tells again what is known of an incarnation; false when nothing is.
    fn repeat(&mut self, incarnation: Incarnation) -> bool {
        let Some(child) = self.table.get(&incarnation) else { return false };
        tracing::debug!(%incarnation, "asked for again");
        if let Some(process) = child.main {
            self.reports.push(ToBroker::Spawned { incarnation, process });
        }
        match &child.phase {
            Phase::Running | Phase::Ended { remains: Remains::Unexamined, .. } => {}
            Phase::Ended { status, remains: Remains::Kept(pids) } => self.reports.extend(left_alone(incarnation, *status, pids)),
            Phase::Ended { status, remains: Remains::Ending(_) } => {
                self.reports.push(ToBroker::Exited { incarnation, status: *status, leftovers: table::listed(&child.tracked) });
            }
        }
        true
    }

    /// The cgroup of an incarnation, if they have any. It may not exist.
    fn cgroup(&self, incarnation: Incarnation) -> Option<Cgroup> {
        self.cgroups.as_ref().map(|cgroups| cgroups.of(incarnation))
    }

    fn ended(&mut self, incarnation: Incarnation, status: ExitStatus) {
        let Some(child) = self.table.get_mut(&incarnation) else { return };
        child.stdin = None;
        child.phase = Phase::Ended { status, remains: Remains::Unexamined };
        self.unexamined.insert(incarnation);
    }

    fn watch_main(&mut self, incarnation: Incarnation, process: ProcessIdentity, now: Instant) {
        match self.watch.add(incarnation, process) {
            Ok(()) => {}
            Err(OpenError::Gone) => self.ended(incarnation, ExitStatus::Unknown),
            Err(error @ OpenError::Kernel(_)) => {
                tracing::error!(%incarnation, %error, "cannot watch an adopted process now; trying again");
                let Some(child) = self.table.get_mut(&incarnation) else { return };
                child.watch_at = Some(now + ending::LOOK_AGAIN);
            }
        }
    }
}

/// The word before the end tells an order from the death of a supervisor, which the worker outlives.
fn order_exit(stdin: OwnedFd) {
    // Nothing else is ever written, so there is room; a worker that closed its end needs no word.
    if let Err(error) = rustix::io::write(&stdin, EXIT_LINE) {
        tracing::debug!(%error, "nobody reads the order to exit");
    }
}
