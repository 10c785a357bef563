//! `roost daemon`: start, stop, restart, status of the process behind it all.

use std::ffi::OsString;
use std::os::fd::OwnedFd;

use clap::{Args, Subcommand};
use roost::proto::message::daemon::{DaemonStatusReply, DaemonStop};
use roost::{Config, Connection, Error, Start};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, note};
use crate::setup::Setup;
use crate::values;

/// How long a daemon that has said goodbye may take to be gone.
const GONE_WAIT: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

/// Start, stop, restart or look at the daemon
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost daemon status --json")]
pub struct DaemonArgs {
    #[command(subcommand)]
    verb: DaemonVerb,
}

#[derive(Debug, Subcommand)]
enum DaemonVerb {
    /// Start it, unless it is running
    #[command(after_help = "Examples:\n  roost daemon start\n  roost daemon start --cap 16 --idle-exit 0")]
    Start {
        /// Most live workers over all trees together, 1 to 100000 [default: no such cap]
        #[arg(long, value_name = "N", value_parser = values::cap, allow_negative_numbers = true)]
        cap: Option<u32>,
        /// Leave after so long without a tree and a client; 0 = never [default: 10m]
        #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true)]
        idle_exit: Option<u64>,
        /// Most ended workers of closed trees whose results are kept [default: 200000]
        #[arg(long, value_name = "N", value_parser = values::count, allow_negative_numbers = true)]
        keep: Option<u64>,
        /// Where each worker gets a cgroup2 of its own: a directory; own = in the daemon's own; auto = the same, if that is
        /// marked as delegated to it; off = nowhere [default: auto]
        #[arg(long, value_name = "auto|own|off|DIR", value_parser = values::cgroup_parser())]
        cgroup: Option<OsString>,
        /// How long a closed tree's results are kept at most; 0 = no end by age, --keep alone decides [default: 30d]
        #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true)]
        retention: Option<u64>,
    },
    /// End it; queued and parked work goes on at the next start
    #[command(after_help = "Examples:\n  roost daemon stop\n  roost daemon stop --now")]
    Stop {
        /// Stop live workers instead of waiting for them
        #[arg(long)]
        now: bool,
        /// Call it off when live workers have not ended after this long
        #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true)]
        timeout: Option<u64>,
    },
    /// Start its broker anew with the installed program; workers do not notice
    #[command(after_help = "Example:\n  roost daemon restart")]
    Restart,
    /// Say how it is; exit 4 when none is running
    #[command(after_help = "Example:\n  roost daemon status --json")]
    Status,
}

impl DaemonArgs {
    /// Does it.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let config = setup.config()?.without_identity();
        match self.verb {
            DaemonVerb::Start { cap, idle_exit, keep, retention, cgroup } => {
                let flag = |name: &str, value: Option<String>| value.map(|value| [name.into(), value.into()]);
                let flags = [
                    flag("--cap", cap.map(|n| n.to_string())),
                    flag("--idle-exit", idle_exit.map(|ms| ms.div_ceil(1_000).to_string())),
                    flag("--keep", keep.map(|n| n.to_string())),
                    flag("--retention", retention.map(|ms| format!("{ms}ms"))),
                ];
                let cgroup = cgroup.map(|cgroup| ["--cgroup".into(), cgroup]);
                let daemon_flags = flags.into_iter().chain([cgroup]).flatten().flatten().collect();
                start(Config { daemon_flags, ..config }, setup.no_start, out)
            }
            DaemonVerb::Stop { now, timeout } => stop(config, &DaemonStop { now, timeout_ms: timeout }, out),
            DaemonVerb::Restart => restart(config, out),
            DaemonVerb::Status => {
                let status = running(config)?.daemon_status()?;
                show(&status, out)
            }
        }
    }
}

fn running(config: Config) -> Result<Connection, Error> {
    Connection::dial(Config { start: Start::Never, ..config })
}

fn start(config: Config, no_start: bool, out: &mut Out) -> Result<Exit, Failure> {
    let flags_given = !config.daemon_flags.is_empty();
    let (mut connection, word) = match running(config.clone()) {
        Ok(connection) => {
            if flags_given {
                note("roost: the daemon is running already, and keeps the flags that it was started with; `roost daemon stop` ends it");
            }
            (connection, "running")
        }
        Err(Error::NoDaemon { .. }) if !no_start => (Connection::dial(Config { start: Start::OnDemand, ..config })?, "started"),
        Err(error) => return Err(error.into()),
    };
    let status = connection.daemon_status()?;
    if out.json {
        return show(&status, out);
    }
    out.line(&format!("{word} (process {})", status.supervisor_pid))?;
    Ok(Exit::Ok)
}

fn stop(config: Config, request: &DaemonStop, out: &mut Out) -> Result<Exit, Failure> {
    let mut connection = match running(config) {
        Ok(connection) => connection,
        Err(Error::NoDaemon { .. }) => {
            if out.json {
                out.json(&serde_json::json!({"running": false, "stopped": 0}))?
            } else {
                out.line("no daemon is running")?
            }
            return Ok(Exit::Ok);
        }
        Err(error) => return Err(error.into()),
    };
    let Some(stopped) = end(&mut connection, request)? else { return Ok(Exit::NotCompleted) };
    if out.json {
        out.json(&serde_json::json!({"running": false, "stopped": stopped}))?;
    } else if stopped > 0 {
        out.line(&format!("stopped, and {} with it", values::counted(stopped.into(), "worker")))?;
    } else {
        out.line("stopped")?;
    }
    Ok(Exit::Ok)
}

/// Has it end, and waits until it has. How many workers were stopped; `None`, and said so, when its process is still there.
pub fn end(connection: &mut Connection, request: &DaemonStop) -> Result<Option<u32>, Error> {
    let supervisor = descriptor_of(connection.daemon_status()?.supervisor_pid);
    let stopped = match connection.daemon_stop(request) {
        Ok(reply) => reply.stopped,
        // It left before its answer did; whether it left is seen below.
        Err(Error::Lost { .. }) => 0,
        Err(error) => return Err(error),
    };
    if !is_gone(supervisor) {
        note("roost: the daemon has stopped its work and its process is still there");
        return Ok(None);
    }
    Ok(Some(stopped))
}

fn restart(config: Config, out: &mut Out) -> Result<Exit, Failure> {
    let mut connection = running(config)?;
    let before = connection.daemon_status()?.broker_pid;
    let old = descriptor_of(before);
    match connection.daemon_restart() {
        // Without an answer the old one is leaving all the same.
        Ok(_) | Err(Error::Lost { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    if !is_gone(old) {
        note(&format!("roost: the old broker (process {before}) is still there"));
        return Ok(Exit::NotCompleted);
    }
    // The old connection is broken, and the call waits in the backlog until the new broker takes it.
    let status = connection.daemon_status()?;
    if out.json {
        return show(&status, out);
    }
    out.line(&format!("restarted: broker process {before} -> {}", status.broker_pid))?;
    Ok(Exit::Ok)
}

fn show(status: &DaemonStatusReply, out: &mut Out) -> Result<Exit, Failure> {
    if out.json {
        let mut object = serde_json::to_value(status).map_err(std::io::Error::from)?;
        object["versions"] =
            serde_json::json!({"client": env!("CARGO_PKG_VERSION"), "daemon": status.version, "protocol": status.protocol});
        out.json(&object)?;
        return Ok(Exit::Ok);
    }
    out.line(&format!("supervisor  process {}", status.supervisor_pid))?;
    out.line(&format!("broker      process {}", status.broker_pid))?;
    out.line(&format!("version     {} (client {}, protocol {})", status.version, env!("CARGO_PKG_VERSION"), status.protocol))?;
    out.line(&format!("socket      {}", status.socket))?;
    out.line(&format!("state       {}", status.state_dir))?;
    let cap = status.cap.map(|cap| format!(", at most {cap}")).unwrap_or_default();
    out.line(&format!("trees {}  live {}{cap}  queued {}  connections {}", status.trees, status.live, status.queued, status.connections))?;
    Ok(Exit::Ok)
}

/// Taken while the process certainly lives, so that a later process of the same number is never meant.
fn descriptor_of(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn is_gone(process: Option<OwnedFd>) -> bool {
    let Some(process) = process else { return true };
    loop {
        match rustix::event::poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&GONE_WAIT)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
