//! Finds out what became of a process that an earlier supervisor started, or may have started.
//!
//! It watches and signals nothing; `children.rs` acts on what is found.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use roost_proto::id::Incarnation;
use roost_proto::link::ProcessIdentity;

use super::cgroup::Cgroup;
use super::descendants::{Known, Processes};
use crate::identity;

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It runs.
    Running(ProcessIdentity),
    /// It has ended; perhaps it left processes behind.
    Ended {
        /// Those.
        leftovers: Vec<ProcessIdentity>,
    },
    /// There is no trace of a start.
    NeverStarted,
}

/// Looks for the incarnation: by its identity when one is on record, else by its marker, its cgroup and its output file.
pub fn find(
    incarnation: Incarnation,
    recorded: Option<ProcessIdentity>,
    stdout_path: &[u8],
    state_dir: &[u8],
    cgroup: Option<&Cgroup>,
) -> Found {
    if let Some(process) = recorded
        && identity::is_alive(process)
    {
        return Found::Running(process);
    }
    let processes = Processes::read(state_dir);
    if recorded.is_none()
        && let Some(process) = processes.leader(incarnation)
    {
        return Found::Running(process);
    }
    // Session and group are no evidence here: nobody watched the pid since the process ended, so others may have them now.
    let inside = cgroup.map(Cgroup::members).unwrap_or_default();
    let found = processes.members(&Known { incarnation, main: None, tracked: &inside });
    let leftovers: Vec<_> = BTreeSet::from_iter(found).union(&inside).copied().collect();
    let trace = recorded.is_some() || !leftovers.is_empty() || Path::new(OsStr::from_bytes(stdout_path)).exists();
    if trace { Found::Ended { leftovers } } else { Found::NeverStarted }
}
