//! Collects ended children: ours, and strangers that the kernel gave us because we are a subreaper.
//!
//! `wait` for any child is ours to use: the supervisor has one thread and starts no process behind its own back.

use roost_proto::link::ExitStatus;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};

/// A child that has ended and is reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// Its pid, free for reuse from now on.
    pub pid: u32,
    /// How it ended.
    pub status: ExitStatus,
}

/// Makes this process the parent of all orphans below it.
pub fn become_subreaper() -> std::io::Result<()> {
    // Any pid stands for "on"; rustix asks for one.
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// The next ended child, if there is one now.
pub fn reap() -> Option<Reaped> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                if let Some(status) = exit_status(status) {
                    return Some(Reaped { pid: raw(pid), status });
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            // No child at all is as good as none that has ended.
            Ok(None) | Err(_) => return None,
        }
    }
}

fn raw(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}

fn exit_status(status: WaitStatus) -> Option<ExitStatus> {
    status.exit_status().map(ExitStatus::Code).or_else(|| status.terminating_signal().map(ExitStatus::Signal))
}
