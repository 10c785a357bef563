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
use super::table::{Ending, Phase, Remains, left_alone, listed};

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
            Phase::Running | Phase::Ended { remains: Remains::Unexamined | Remains::Kept(_), .. } => child.watch_at,
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
            let is_empty = child.ours && !orphans.any_of(&known) && !self.cgroup(incarnation).is_some_and(|cgroup| cgroup.is_populated());
            if is_empty {
                self.examined(incarnation, Vec::new(), now);
                continue;
            }
            let processes = processes.get_or_insert_with(|| Processes::read(&self.state_dir));
            let left = self.look(processes, incarnation);
            self.examined_unless_hidden(incarnation, left, now);
        }
    }

    /// Where the cgroup still has somebody whom nobody sees, such as one in the last steps of its end, the examination waits.
    pub(super) fn examined_unless_hidden(&mut self, incarnation: Incarnation, left: Vec<ProcessIdentity>, now: Instant) {
        if left.is_empty() && self.watch_cgroup(incarnation, now) {
            self.unexamined.insert(incarnation);
        } else {
            self.examined(incarnation, left, now);
        }
    }

    /// Reports an end, and begins to end what it left behind.
    fn examined(&mut self, incarnation: Incarnation, left: Vec<ProcessIdentity>, now: Instant) {
        let Some(child) = self.table.get_mut(&incarnation) else { return };
        let Phase::Ended { status, remains } = &mut child.phase else { return };
        tracing::debug!(%incarnation, ?status, leftovers = left.len(), "ended");
        let Some(grace_ms) = child.leftovers_grace_ms.filter(|_| !left.is_empty()) else {
            let pids = listed(&left);
            self.reports.extend(left_alone(incarnation, *status, &pids));
            *remains = Remains::Kept(pids);
            self.watch.drop_all(incarnation);
            self.close_cgroup(incarnation);
            self.drop_forgotten(incarnation);
            return;
        };
        self.reports.push(ToBroker::Exited { incarnation, status: *status, leftovers: listed(&left) });
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
                if *signal == Signal::Kill
                    && let Some(cgroup) = self.cgroup(*incarnation)
                {
                    cgroup.kill();
                }
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
            Phase::Running | Phase::Ended { remains: Remains::Unexamined | Remains::Kept(_), .. } => false,
        };
        let due: Vec<_> = self.table.iter().filter(|(_, child)| is_due(&child.phase)).map(|(incarnation, _)| *incarnation).collect();
        if due.is_empty() {
            return;
        }
        let processes = Processes::read(&self.state_dir);
        for incarnation in due {
            let left = self.look(&processes, incarnation);
            let is_empty = left.is_empty() && !self.cgroup(incarnation).is_some_and(|cgroup| cgroup.is_populated());
            if is_empty { self.emptied(incarnation) } else { self.press(incarnation, left, now) }
        }
    }

    /// TERM to those that have not had it, or KILL to all when their time is up.
    fn press(&mut self, incarnation: Incarnation, left: Vec<ProcessIdentity>, now: Instant) {
        let cgroup = self.cgroup(incarnation);
        let Some(child) = self.table.get_mut(&incarnation) else { return };
        let killed = child.killed;
        let Phase::Ended { remains: Remains::Ending(ending), .. } = &mut child.phase else { return };
        let kill = killed || ending.kill_at <= now;
        ending.look_at = if kill { now + LOOK_AGAIN } else { ending.kill_at };
        if let Some(cgroup) = &cgroup {
            if kill {
                cgroup.kill();
            }
            match self.watch.add_cgroup(incarnation, cgroup) {
                Ok(true) => {}
                // Emptied between the look and now, as below.
                Ok(false) if left.is_empty() => ending.look_at = now,
                Ok(false) => {}
                Err(error) => tracing::warn!(%incarnation, %error, "cannot watch the cgroup of leftovers"),
            }
        }
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

    /// Watches the cgroup until it is empty; false when it is.
    fn watch_cgroup(&mut self, incarnation: Incarnation, now: Instant) -> bool {
        let Some(cgroup) = self.cgroup(incarnation) else { return false };
        self.watch.add_cgroup(incarnation, &cgroup).unwrap_or_else(|error| {
            tracing::warn!(%incarnation, %error, "cannot watch a cgroup now; looking again");
            self.examine_at = Some(now + LOOK_AGAIN);
            true
        })
    }

    /// Removes the cgroup, now or when those have ended who were left alone in it, and with it those that could not be removed before.
    pub(super) fn close_cgroup(&mut self, incarnation: Incarnation) {
        self.unremoved.insert(incarnation);
        for incarnation in std::mem::take(&mut self.unremoved) {
            let Some(cgroup) = self.cgroup(incarnation) else { return };
            if cgroup.remove() {
                continue;
            }
            match self.watch.add_cgroup(incarnation, &cgroup) {
                Ok(true) => continue,
                // Emptied between the two; if not, somebody holds it who is no process.
                Ok(false) if cgroup.remove() => continue,
                Ok(false) => tracing::debug!(%incarnation, "an empty cgroup stays for now"),
                Err(error) => tracing::warn!(%incarnation, %error, "a cgroup cannot be watched now and stays"),
            }
            self.unremoved.insert(incarnation);
        }
    }

    fn emptied(&mut self, incarnation: Incarnation) {
        tracing::debug!(%incarnation, "its leftovers are gone");
        self.reports.push(ToBroker::Emptied { incarnation });
        self.watch.drop_all(incarnation);
        if let Some(child) = self.table.get_mut(&incarnation)
            && let Phase::Ended { remains, .. } = &mut child.phase
        {
            *remains = Remains::Kept(Vec::new());
        }
        self.close_cgroup(incarnation);
        self.drop_forgotten(incarnation);
    }

    fn drop_forgotten(&mut self, incarnation: Incarnation) {
        if self.table.get(&incarnation).is_some_and(|child| child.forgotten) {
            self.table.remove(&incarnation);
        }
    }

    /// The living processes of an incarnation, remembered for the next look.
    fn look(&mut self, processes: &Processes, incarnation: Incarnation) -> Vec<ProcessIdentity> {
        let inside = self.cgroup(incarnation).map(|cgroup| cgroup.members()).unwrap_or_default();
        let Some(child) = self.table.get_mut(&incarnation) else { return Vec::new() };
        child.tracked.extend(&inside);
        let members = processes.members(&Known { incarnation, main: child.main, tracked: &child.tracked });
        // The cgroup may have some that were forked after that reading.
        child.tracked = members.into_iter().chain(inside).collect();
        child.tracked.iter().copied().collect()
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
