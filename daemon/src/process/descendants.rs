//! Which living processes belong to an incarnation: its session, its group, what descends from it, and what was re-parented
//! but still carries its marker.
//!
//! It only looks. What has cleared its environment, left the session *and* lost its parents before anyone looked cannot be
//! found by any of this; where there is a cgroup (`cgroup.rs`), it is found in that.

use std::collections::{BTreeSet, HashMap};
use std::fs;

use roost_proto::id::Incarnation;
use roost_proto::link::ProcessIdentity;

use crate::identity::{self, Marker, Stat};

/// A process and the incarnation that its environment names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// What the kernel says.
    pub stat: Stat,
    /// What its environment says.
    pub marker: Option<Incarnation>,
}

/// All processes of one moment.
#[derive(Debug, Default)]
pub struct Processes {
    list: Vec<Process>,
    own_pid: u32,
}

/// What is known of the incarnation whose processes are asked for.
#[derive(Debug)]
pub struct Known<'a> {
    /// Which one.
    pub incarnation: Incarnation,
    /// Its main process, alive or not.
    pub main: Option<ProcessIdentity>,
    /// Others that were found to belong to it before.
    pub tracked: &'a BTreeSet<ProcessIdentity>,
}

impl Processes {
    /// Reads `/proc`.
    pub fn read(state_dir: &[u8]) -> Self {
        let with_marker = |stat: Stat| Process { marker: identity::marker_of(&stat, state_dir).incarnation(), stat };
        Self { list: pids().filter_map(identity::stat).map(with_marker).collect(), own_pid: std::process::id() }
    }

    /// The living processes of an incarnation, in the order of their pids.
    pub fn members(&self, known: &Known<'_>) -> Vec<ProcessIdentity> {
        // Were the main process's pid in use by another process, then its session and its group would be empty by now: the
        // kernel hands out no number that a session or a group still has.
        let main = known.main.filter(|main| {
            let holder = self.list.iter().find(|process| process.stat.process.pid == main.pid);
            main.pid != 0 && holder.is_none_or(|holder| holder.stat.process == *main)
        });
        let mut children: HashMap<u32, Vec<&Process>> = HashMap::new();
        for process in &self.list {
            children.entry(process.stat.parent).or_default().push(process);
        }
        let mut found = BTreeSet::new();
        let mut next: Vec<&Process> = self.list.iter().filter(|process| process.belongs(known, main)).collect();
        while let Some(process) = next.pop() {
            // We may descend from a worker that started us; and a worker of ours is its own, whoever its parent is.
            let stranger = process.marker.is_some_and(|marker| marker != known.incarnation);
            if process.stat.process.pid == self.own_pid || stranger || !found.insert(process.stat.process) {
                continue;
            }
            next.extend(children.get(&process.stat.process.pid).into_iter().flatten());
        }
        let alive: BTreeSet<_> = self.list.iter().filter(|process| process.stat.alive).map(|process| process.stat.process).collect();
        found.intersection(&alive).copied().collect()
    }

    /// The oldest session leader that carries this marker: the main process, when no record says which it is.
    pub fn leader(&self, incarnation: Incarnation) -> Option<ProcessIdentity> {
        let leads = |process: &&Process| {
            let stat = &process.stat;
            process.marker == Some(incarnation) && stat.alive && stat.session == stat.process.pid && stat.process.pid != self.own_pid
        };
        self.list.iter().filter(leads).map(|process| process.stat.process).min_by_key(|process| (process.start_ticks, process.pid))
    }
}

impl Process {
    /// Whether it belongs by itself, not through its parent.
    fn belongs(&self, known: &Known<'_>, main: Option<ProcessIdentity>) -> bool {
        let of_main = main.is_some_and(|main| [self.stat.process.pid, self.stat.session, self.stat.group].contains(&main.pid));
        self.marker == Some(known.incarnation) || known.tracked.contains(&self.stat.process) || of_main
    }
}

/// Children of ours that we did not start: orphans that the kernel gave us. Every process that outlives its worker is
/// one of these or descends from one, so when none belongs to the worker, nothing is left of it.
#[derive(Debug)]
pub struct Orphans {
    list: Vec<Process>,
    is_settled: bool,
}

impl Orphans {
    /// Looks for them; `is_known` tells the children that we started.
    pub fn read(state_dir: &[u8], is_known: impl Fn(u32) -> bool) -> Self {
        let own_pid = std::process::id();
        let children: Box<dyn Iterator<Item = u32>> = match own_children() {
            Some(pids) => Box::new(pids.into_iter()),
            // A kernel without CONFIG_PROC_CHILDREN: all processes have to be asked for their parent.
            None => Box::new(pids()),
        };
        let stats = children.filter(|pid| !is_known(*pid)).filter_map(identity::stat);
        let mut orphans = Self { list: Vec::new(), is_settled: true };
        for stat in stats.filter(|stat| stat.parent == own_pid) {
            let marker = identity::marker_of(&stat, state_dir);
            orphans.is_settled &= stat.alive && marker != Marker::Unclear;
            orphans.list.push(Process { stat, marker: marker.incarnation() });
        }
        orphans
    }

    /// Whether this can be relied on. The children of one that was exiting, or ended after the list was read, came to us too
    /// late to be in the list. Its SIGCHLD tells when to look again.
    pub fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// Whether one of them belongs to this incarnation, whose main process was our child and is reaped.
    pub fn any_of(&self, known: &Known<'_>) -> bool {
        self.list.iter().any(|process| process.stat.alive && process.belongs(known, known.main))
    }
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Our children by the kernel's own list, of every thread. Reliable here: only we reap, so the list only grows meanwhile.
fn own_children() -> Option<Vec<u32>> {
    let mut pids = Vec::new();
    for task in fs::read_dir("/proc/self/task").ok()? {
        pids.extend(parse_children(&fs::read_to_string(task.ok()?.path().join("children")).ok()?));
    }
    Some(pids)
}

fn parse_children(text: &str) -> impl Iterator<Item = u32> {
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_proto::id::{Epoch, ExecutionId};

    fn incarnation(execution: u64) -> Incarnation {
        Incarnation { execution: ExecutionId(execution), epoch: Epoch(1) }
    }

    fn who(pid: u32) -> ProcessIdentity {
        ProcessIdentity { pid, start_ticks: u64::from(pid) * 10 }
    }

    fn process(pid: u32, parent: u32, session: u32, marker: Option<u64>) -> Process {
        let stat = Stat { process: who(pid), parent, group: session, session, alive: true, is_headless: false, is_kernel: false };
        Process { stat, marker: marker.map(incarnation) }
    }

    fn members(list: Vec<Process>, main: Option<ProcessIdentity>, tracked: &[ProcessIdentity]) -> Vec<u32> {
        let tracked = tracked.iter().copied().collect();
        let known = Known { incarnation: incarnation(1), main, tracked: &tracked };
        Processes { list, own_pid: 1 }.members(&known).into_iter().map(|process| process.pid).collect()
    }

    #[test]
    fn session_descent_marker_and_memory_all_count() {
        let list = vec![
            process(1, 0, 1, None),
            process(10, 1, 10, Some(1)),
            process(11, 10, 10, None),   // in the session, environment cleared
            process(12, 11, 12, None),   // a session of its own, known by its parent
            process(13, 1, 13, Some(1)), // re-parented, known by its marker
            process(14, 13, 14, None),
            process(15, 1, 15, None), // known from before
            process(16, 1, 16, None), // a stranger
        ];
        assert_eq!(members(list, Some(who(10)), &[who(15)]), [10, 11, 12, 13, 14, 15]);
    }

    #[test]
    fn a_daemon_that_a_worker_started_and_the_workers_of_others_are_spared() {
        let list = vec![process(10, 5, 10, Some(1)), process(1, 10, 1, None), process(20, 1, 20, Some(2)), process(21, 10, 21, Some(2))];
        assert_eq!(members(list, Some(who(10)), &[]), [10]);
    }

    #[test]
    fn a_recycled_pid_has_no_session_of_ours() {
        let list = vec![process(10, 1, 10, None), process(11, 10, 10, None)];
        assert_eq!(members(list, Some(ProcessIdentity { pid: 10, start_ticks: 1 }), &[]), [0_u32; 0]);
    }

    #[test]
    fn zombies_do_not_count_and_session_zero_matches_nothing() {
        let mut dead = process(11, 10, 10, Some(1));
        dead.stat.alive = false;
        assert_eq!(members(vec![dead, process(3, 2, 0, None)], Some(ProcessIdentity { pid: 0, start_ticks: 0 }), &[]), [0_u32; 0]);
    }

    #[test]
    fn the_leader_is_the_oldest_session_leader_with_the_marker() {
        let list = vec![process(12, 1, 12, Some(1)), process(10, 1, 10, Some(1)), process(9, 1, 5, Some(1)), process(8, 1, 8, Some(2))];
        assert_eq!(Processes { list, own_pid: 1 }.leader(incarnation(1)), Some(who(10)));
    }

    #[test]
    fn the_kernels_list_of_children_is_pids_between_spaces() {
        assert_eq!(parse_children("12 7 \n").collect::<Vec<_>>(), [12, 7]);
    }
}
