//! A child process that is waited for so long and no longer. It knows no particular program.

use std::io;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What the program says until its end, without anything to read. One that has not ended in time is killed, and `TimedOut`.
pub fn output_within(command: &mut Command, within: Duration) -> io::Result<Output> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // It stands for this child even when another has its number.
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let (tell, ended) = mpsc::channel();
    // Whatever still has the pipes after that is waited for by this thread alone.
    std::thread::spawn(move || tell.send(child.wait_with_output()));
    match ended.recv_timeout(within) {
        Ok(output) => output,
        Err(_) => {
            // It may have ended in this moment.
            pidfd_send_signal(&process, Signal::KILL).ok();
            Err(io::Error::new(io::ErrorKind::TimedOut, format!("it has not ended within {} s", within.as_secs())))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed_and_one_that_does_has_said_something() {
        let said = output_within(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), Duration::from_secs(30)).unwrap();
        assert_eq!((said.status.code(), &said.stdout[..], &said.stderr[..]), (Some(3), &b"out\n"[..], &b"err\n"[..]));
        let (mut reader, writer) = io::pipe().unwrap();
        // It has the pipe for as long as it lives.
        let mut endless = Command::new("sh");
        endless.args(["-c", &format!("exec sleep 1000 3>/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd())]);
        assert_eq!(output_within(&mut endless, Duration::from_millis(10)).unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(writer);
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }
}
