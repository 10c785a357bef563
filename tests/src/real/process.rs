//! Processes as the kernel shows them, and how to wait for or end exactly the one that was meant.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::command::readable;

/// A process at the moment when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its session.
    pub session: u32,
    /// Its controlling terminal; 0 is none.
    pub terminal: i32,
    /// `R`, `S`, `Z` and so on.
    pub state: char,
    /// When it began, in ticks since the boot: with the number, who it is.
    pub began: u64,
}

impl Process {
    /// Whether it can still do something.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    /// Whether it still is, and can.
    pub fn lives_on(&self) -> bool {
        find(self.pid).is_some_and(|now| now.began == self.began && now.is_alive())
    }

    /// Its environment, `K=V` by `K=V`.
    pub fn environment(&self) -> Vec<Vec<u8>> {
        let bytes = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        bytes.split(|byte| *byte == 0).filter(|pair| !pair.is_empty()).map(<[u8]>::to_vec).collect()
    }

    /// Its arguments.
    pub fn arguments(&self) -> Vec<Vec<u8>> {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
    }

    /// What its descriptors are.
    pub fn descriptors(&self) -> Vec<String> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter().flatten().flatten();
        entries.filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned())).collect()
    }

    /// Its resident memory in KiB.
    pub fn resident_kib(&self) -> u64 {
        self.kib("VmRSS:")
    }

    /// The most resident memory that it ever had, in KiB.
    pub fn peak_kib(&self) -> u64 {
        self.kib("VmHWM:")
    }

    fn kib(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }
}

/// All processes.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(find).collect()
}

/// One process, if it is there.
pub fn find(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in parentheses and may hold anything.
    let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(Process {
        pid,
        parent: rest.get(1)?.parse().ok()?,
        session: rest.get(3)?.parse().ok()?,
        terminal: rest.get(4)?.parse().ok()?,
        state: rest.first()?.chars().next()?,
        began: rest.get(19)?.parse().ok()?,
    })
}

/// A descriptor of a process: readable once it has ended.
pub fn pidfd(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

/// A process that is not our child, held so that its number cannot come to mean another one.
pub struct Watched {
    /// Who it is.
    pub process: Process,
    descriptor: OwnedFd,
}

impl Watched {
    /// The process of this number, which lives.
    #[track_caller]
    pub fn new(pid: u32) -> Self {
        Self::try_new(pid).unwrap_or_else(|| panic!("there is no process {pid}"))
    }

    /// The process of this number, if it lives.
    pub fn try_new(pid: u32) -> Option<Self> {
        let descriptor = pidfd(pid)?;
        let process = find(pid).filter(Process::is_alive)?;
        Some(Self { process, descriptor })
    }

    /// Sends it a signal; one that has ended gets none.
    pub fn signal(&self, signal: Signal) {
        pidfd_send_signal(&self.descriptor, signal).ok();
    }

    /// Ends it at once and waits until it is gone.
    #[track_caller]
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        self.await_end();
    }

    /// Waits for its end.
    #[track_caller]
    pub fn await_end(&self) {
        assert!(self.ends_within(super::PATIENCE), "process {} does not end", self.process.pid);
    }

    /// Whether it ends in this time.
    pub fn ends_within(&self, time: Duration) -> bool {
        readable(&self.descriptor, time)
    }
}
