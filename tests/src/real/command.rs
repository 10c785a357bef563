//! A command with a deadline: what it wrote, how it ended. One that hangs is killed and fails the test with what it had said.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::PATIENCE;

/// A command that is being made.
#[must_use]
pub struct Cmd {
    command: Command,
    stdin: Option<Vec<u8>>,
    within: Duration,
}

impl Cmd {
    /// This program with nothing but what is added. Standard input is empty.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear();
        Self { command, stdin: None, within: PATIENCE }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// More arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// A variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Without a variable.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// A working directory.
    pub fn cwd(mut self, directory: impl AsRef<Path>) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// What it finds on its standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// Another deadline.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// Starts it and waits for its end.
    pub fn run(self) -> Done {
        let within = self.within;
        self.start().end_within(within)
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let words = format!("{:?}", self.command.get_args().collect::<Vec<_>>());
        let title = format!("{} {words}", self.command.get_program().to_string_lossy());
        let stdin = if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
        self.command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{title}: {error}"));
        if let (Some(bytes), Some(mut pipe)) = (self.stdin, child.stdin.take()) {
            // A command that does not read its input is no failure of its own.
            std::thread::spawn(move || pipe.write_all(&bytes).ok());
        }
        let stdout = reader(child.stdout.take());
        let stderr = reader(child.stderr.take());
        Running { title, child, stdout, stderr, since: Instant::now(), ended: false }
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    let mut pipe = pipe?;
    Some(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is all there is.
        pipe.read_to_end(&mut bytes).ok();
        bytes
    }))
}

/// A command that runs. It is killed when this is dropped.
pub struct Running {
    title: String,
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    since: Instant,
    ended: bool,
}

impl Running {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("a pid");
        kill_process(pid, signal).expect("our own child can be signalled");
    }

    /// Waits for its end.
    pub fn end(self) -> Done {
        self.end_within(PATIENCE)
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our own child can be waited for").is_none()
    }

    /// Waits for its end, not longer than this.
    pub fn end_within(mut self, within: Duration) -> Done {
        let status = self.await_end(within);
        let in_time = status.is_some();
        let status = status.unwrap_or_else(|| {
            self.child.kill().ok();
            self.child.wait().expect("our own child can be waited for")
        });
        self.ended = true;
        let collect = |thread: Option<JoinHandle<Vec<u8>>>| thread.map(|thread| thread.join().expect("a reader")).unwrap_or_default();
        let (stdout, stderr) = (collect(self.stdout.take()), collect(self.stderr.take()));
        let done = Done { title: self.title.clone(), status, stdout, stderr, took: self.since.elapsed() };
        assert!(in_time, "not over after {within:?}: {done}");
        done
    }

    fn await_end(&mut self, within: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + within;
        let descriptor = super::pidfd(self.child.id())?;
        loop {
            if let Some(status) = self.child.try_wait().expect("our own child can be waited for") {
                return Some(status);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            readable(&descriptor, left);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

/// Waits until there is something to read, or the time is over.
pub(super) fn readable(descriptor: &impl AsFd, within: Duration) -> bool {
    any(&mut [PollFd::new(descriptor, PollFlags::IN)], within)
}

/// The same of one or the other.
pub(super) fn either_is_readable(one: &impl AsFd, other: &impl AsFd, within: Duration) -> bool {
    any(&mut [PollFd::new(one, PollFlags::IN), PollFd::new(other, PollFlags::IN)], within)
}

fn any(descriptors: &mut [PollFd<'_>], within: Duration) -> bool {
    let within = Timespec { tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(within.subsec_nanos()) };
    matches!(rustix::event::poll(descriptors, Some(&within)), Ok(1..))
}

/// A command that has ended.
#[derive(Debug)]
pub struct Done {
    title: String,
    status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// How long it ran.
    pub took: Duration,
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(4_000)]).into_owned();
        let (out, err) = (shown(&self.stdout), shown(&self.stderr));
        write!(f, "{} ended with {} after {:?}\n--- stdout\n{out}\n--- stderr\n{err}", self.title, self.status, self.took)
    }
}

impl Done {
    /// Its exit code, or minus the signal that ended it.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| -self.status.signal().unwrap_or(0))
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{self}");
        self
    }

    /// Fails unless it ended with 0.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.expect(0)
    }

    /// Standard output as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// Standard error as text, whatever is in it.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }
}
