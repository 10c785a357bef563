//! The end of a turn: examine what has ended, send what was asked for, press on with what is being ended.
//!
//! All looks of one stage share one reading of `/proc`, and the common end, with nothing left, needs none.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use roost_proto::id::Incarnation;
use roost_proto::limits::KILL_ROUNDS_MAX;
use roost_proto::link::{ProcessIdentity, Signal, ToBroker};
use rustix::process::Signal as Os;

use super::super::descendants::{Known, Orphans, Processes};
use super::super::signal::{OpenError, send};
use super::Children;
use super::table::{Ending, Phase, Remains, listed};

/// When to look again at what did not end after KILL, or could not be watched.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// When to look again at an orphan that is exiting, or in an `execve` that takes long: of that no signal tells.
const SETTLE: Duration = Duration::from_millis(10);

const TERM: &[Os] = &[Os::TERM, Os::CONT];
const KILL: &[Os] = &[Os::KILL];

impl Children {
    /// Does what this turn's orders and events ask for.
    pub fn turn(&mut self, now: Instant) {
        self.watch_again(now);
        self.examine(now);
        self.send_asked();
        self.press_on(now);
    }

    /// When [`turn`](Self::turn) is to be called even if nothing happens.
    pub fn next_deadline(&self) -> Option<Instant> {
        let deadlines = self.table.values().filter_map(|child| match &child.phase {
            Phase::Ended { remains: Remains::Ending(ending), .. } => Some(ending.look_at),
            Phase::Running | Phase::Ended { remains: Remains::Unexamined | Remains::Nothing, .. } => child.watch_at,
        });
        deadlines.chain(self.examine_at).min()
    }

    fn watch_again(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let due: Vec<_> = self.table.iter().filter(|(_, child)| due(child.watch_at)).map(|(key, child)| (*key, child.main)).collect();
        for (incarnation, main) in due {
            if let Some(child) = self.table.get_mut(&incarnation) {
                child.watch_at = None;
            }
            if let Some(main) = main {
                self.watch_main(incarnation, main, now);
            }
        }
    }

    /// Finds out what the processes that have ended left behind.
    fn examine(&mut self, now: Instant) {
        if self.unexamined.is_empty() {
            return;
        }
        let orphans = Orphans::read(&self.state_dir, |pid| self.by_pid.contains_key(&pid));
        self.examine_at = (!orphans.is_settled()).then_some(now + SETTLE);
        if self.examine_at.is_some() {
            return;
        }
        let mut processes = None;
        for incarnation in std::mem::take(&mut self.unexamined) {
            let Some(child) = self.table.get(&incarnation) else { continue };
            let known = Known { incarnation, main: child.main, tracked: &child.tracked };
            let left = if child.ours && !orphans.any_of(&known) {
                Vec::new()
            } else {
                processes.get_or_insert_with(|| Processes::read(&self.state_dir)).members(&known)
            };
            self.examined(incarnation, left, now);
        }
    }

    /// Reports an end, and begins to end what it left behind.
    pub(super) fn examined(&mut self, incarnation: Incarnation, left: Vec<ProcessIdentity>, now: Instant) {
        let Some(child) = self.table.get_mut(&incarnation) else { return };
        let Phase::Ended { status, remains } = &mut child.phase else { return };
        tracing::debug!(%incarnation, ?status, leftovers = left.len(), "ended");
        self.reports.push(ToBroker::Exited { incarnation, status: *status, leftovers: listed(&left) });
        let Some(grace_ms) = child.leftovers_grace_ms.filter(|_| !left.is_empty()) else {
            *remains = Remains::Nothing;
            self.watch.drop_all(incarnation);
            if !left.is_empty() {
                self.reports.push(ToBroker::Emptied { incarnation });
            }
            self.drop_forgotten(incarnation);
            return;
        };
        let kill_at = if child.killed { now } else { now + Duration::from_millis(grace_ms) };
        *remains = Remains::Ending(Ending { kill_at, look_at: kill_at, told: BTreeSet::new() });
        self.press(incarnation, left, now);
    }

    /// Sends the signals that were asked for. KILL goes on until a look finds nobody new.
    fn send_asked(&mut self) {
        let mut asked = std::mem::take(&mut self.asked);
        let mut sent = BTreeSet::new();
        for _ in 0..KILL_ROUNDS_MAX {
            if asked.is_empty() {
                return;
            }
            let processes = Processes::read(&self.state_dir);
            asked.retain(|incarnation, signal| {
                let members = self.look(&processes, *incarnation);
                let new: Vec<_> = members.into_iter().filter(|process| sent.insert(*process)).collect();
                for process in &new {
                    send(*process, signals(*signal));
                }
                *signal == Signal::Kill && !new.is_empty()
            });
        }
        tracing::warn!("processes fork faster than they can be killed; going on when their main process has ended");
    }

    /// Looks again at leftovers of which one has ended, or whose time is up.
    fn press_on(&mut self, now: Instant) {
        let is_due = |phase: &Phase| match phase {
            Phase::Ended { remains: Remains::Ending(ending), .. } => ending.look_at <= now,
            Phase::Running | Phase::Ended { remains: Remains::Unexamined | Remains::Nothing, .. } => false,
        };
        let due: Vec<_> = self.table.iter().filter(|(_, child)| is_due(&child.phase)).map(|(incarnation, _)| *incarnation).collect();
        if due.is_empty() {
            return;
        }
        let processes = Processes::read(&self.state_dir);
        for incarnation in due {
            let left = self.look(&processes, incarnation);
            if left.is_empty() { self.emptied(incarnation) } else { self.press(incarnation, left, now) }
        }
    }

    /// TERM to those that have not had it, or KILL to all when their time is up.
    fn press(&mut self, incarnation: Incarnation, left: Vec<ProcessIdentity>, now: Instant) {
        let Some(child) = self.table.get_mut(&incarnation) else { return };
        let killed = child.killed;
        let Phase::Ended { remains: Remains::Ending(ending), .. } = &mut child.phase else { return };
        let kill = killed || ending.kill_at <= now;
        ending.look_at = if kill { now + LOOK_AGAIN } else { ending.kill_at };
        for process in &left {
            match self.watch.add(incarnation, *process) {
                Ok(()) => {}
                // It ended between the look and now: nobody will wake us for that, so look once more at once.
                Err(OpenError::Gone) => ending.look_at = now,
                Err(error @ OpenError::Kernel(_)) => tracing::warn!(%incarnation, %error, "cannot watch a leftover process"),
            }
            if kill {
                send(*process, KILL);
            } else if ending.told.insert(*process) {
                send(*process, TERM);
            }
        }
        child.tracked = left.into_iter().collect();
    }

    fn emptied(&mut self, incarnation: Incarnation) {
        tracing::debug!(%incarnation, "its leftovers are gone");
        self.reports.push(ToBroker::Emptied { incarnation });
        self.watch.drop_all(incarnation);
        if let Some(child) = self.table.get_mut(&incarnation)
            && let Phase::Ended { remains, .. } = &mut child.phase
        {
            *remains = Remains::Nothing;
        }
        self.drop_forgotten(incarnation);
    }

    fn drop_forgotten(&mut self, incarnation: Incarnation) {
        if self.table.get(&incarnation).is_some_and(|child| child.forgotten) {
            self.table.remove(&incarnation);
        }
    }

    /// The living processes of an incarnation, remembered for the next look.
    fn look(&mut self, processes: &Processes, incarnation: Incarnation) -> Vec<ProcessIdentity> {
        let Some(child) = self.table.get_mut(&incarnation) else { return Vec::new() };
        let members = processes.members(&Known { incarnation, main: child.main, tracked: &child.tracked });
        child.tracked = members.iter().copied().collect();
        members
    }
}

fn signals(signal: Signal) -> &'static [Os] {
    match signal {
        Signal::Term => TERM,
        Signal::Kill => KILL,
        // Closed at once in `Children::signal`; never asked for here.
        Signal::CloseStdin => &[],
    }
}
