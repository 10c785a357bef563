//! Bounds for what a test waits for: a child or a peer that fails to do its part ends the test with an error, and hangs nothing.

use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Long enough for any machine; nothing waits for it but a test that fails.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Whether there is something to read in time.
pub fn readable(descriptor: impl AsFd, within: Duration) -> bool {
    let within = Timespec::try_from(within).unwrap();
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&within)).unwrap() > 0
}

/// Starts it. When it has not ended in time it is killed, so that neither its end nor its output is waited for without an end.
pub fn start(command: &mut Command) -> Child {
    let child = command.spawn().unwrap();
    let watched = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
    std::thread::spawn(move || {
        if !readable(&watched, PATIENCE) {
            // It may have ended in this moment.
            pidfd_send_signal(&watched, Signal::KILL).ok();
        }
    });
    child
}

/// Runs it to its end.
pub fn output(command: &mut Command) -> Output {
    start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).wait_with_output().unwrap()
}
