//! Sends a signal to a process that is verified to be the one that is meant: a recycled pid is never signalled.
//!
//! It does not know which processes belong together.

use std::os::fd::OwnedFd;

use roost_proto::link::ProcessIdentity;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::identity;

/// Why there is no descriptor of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It has ended and is reaped, or its pid belongs to another process now.
    #[error("the process is gone")]
    Gone,
    /// The kernel has a reason, such as no free descriptor.
    #[error("no descriptor of the process: {0}")]
    Kernel(Errno),
}

/// A descriptor of this very process. The start time is read after the pid is pinned, so it cannot be that of a successor.
pub fn open(process: ProcessIdentity) -> Result<OwnedFd, OpenError> {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or(OpenError::Gone)?;
    let descriptor = pidfd_open(pid, PidfdFlags::NONBLOCK).map_err(|error| match error {
        Errno::SRCH => OpenError::Gone,
        other => OpenError::Kernel(other),
    })?;
    match identity::stat(process.pid) {
        Some(found) if found.process == process => Ok(descriptor),
        Some(_) | None => Err(OpenError::Gone),
    }
}

/// Sends the signals, in order. That it is gone already is what a signal was to bring about, so it is no error.
pub fn send(process: ProcessIdentity, signals: &[Signal]) {
    let descriptor = match open(process) {
        Ok(descriptor) => descriptor,
        Err(OpenError::Gone) => return,
        Err(error @ OpenError::Kernel(_)) => {
            tracing::error!(pid = process.pid, %error, "cannot signal");
            return;
        }
    };
    for signal in signals {
        match pidfd_send_signal(&descriptor, *signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            // A set-user-id descendant is not ours to signal; everyone else still is.
            Err(error) => tracing::warn!(pid = process.pid, ?signal, %error, "cannot signal"),
        }
    }
}
