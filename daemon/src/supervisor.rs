//! The supervisor: holds the lock, the listening socket and the children, starts the broker and starts it again.
//!
//! One thread, one loop, no state but the children. It does not know what a worker is for, who owns it, or what a tree is.

pub mod announce;
pub mod broker_process;
pub mod detach;
pub mod hold;
pub mod link;
mod looping;
pub mod place;
pub mod signals;
mod talking;

use std::io;
use std::process::ExitCode;
use std::time::Instant;

use rustix::fs::Mode;
use rustix::process::{geteuid, umask};

use self::announce::Announcer;
use self::broker_process::{Broker, Recipe, own_program};
use self::hold::Listening;
use self::looping::{Holding, Supervisor};
use self::place::Refusal;
use crate::config::{BrokerFlags, DaemonFlags, is_of_a_worker};
use crate::process::cgroup::Cgroups;
use crate::process::cgroup::place::CgroupError;
use crate::process::children::Children;
use crate::process::{reap, spawn};

/// Runs the supervisor until the daemon ends.
pub fn run(flags: &DaemonFlags) -> ExitCode {
    if ["ROOST_EXECUTION", "ROOST_TOKEN"].iter().any(|name| std::env::var_os(name).is_some()) {
        // Started from inside a worker: become a process that cannot be mistaken for a part of it.
        let environment: Vec<_> = std::env::vars_os().filter(|(name, _)| !is_of_a_worker(name)).collect();
        let mut arguments = flags.arguments();
        arguments.extend(flags.detached.then(|| "--detached".into()));
        let error = own_program().map(|program| spawn::reexec(&program, &arguments, &environment));
        tracing::warn!(error = %error.unwrap_or_else(|error| error), "cannot start anew without the worker's environment");
    }
    umask(Mode::from_raw_mode(0o077));
    let mut announcer = if flags.detached { Announcer::background() } else { Announcer::foreground() };
    match serve(flags, &mut announcer) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            announcer.failed(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// Says why this daemon cannot be started as it is configured.
pub fn refuse(flags: &DaemonFlags, message: &str) -> ExitCode {
    let mut announcer = if flags.detach { Announcer::background() } else { Announcer::foreground() };
    announcer.failed(message);
    ExitCode::from(crate::config::EXIT_REFUSED)
}

/// Why the supervisor does not run, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// It must not, until something is put right.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The cgroup directory that was named.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The log file of a daemon in the background.
    #[error("the log {} cannot be written: {source}", path.display())]
    Log {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A system call that has no reason to fail.
    #[error("{what} failed: {source}")]
    System {
        /// Which.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The broker refuses to run.
    #[error("{reason}")]
    BrokerRefused {
        /// Its own words, where there are any.
        reason: String,
    },
    /// No broker ever came up.
    #[error("the broker ended {times} times before it was ready, last with {last}; see the log")]
    BrokerNeverReady {
        /// How often.
        times: u32,
        /// How.
        last: String,
    },
    /// The installed broker does not speak our language.
    #[error(
        "the installed roostd speaks link version {theirs} and this supervisor {ours}: it ends so that the installed one can take over"
    )]
    LinkVersion {
        /// The broker's.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
}

impl SupervisorError {
    fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Refused(refusal) => refusal.exit_code(),
            Self::BrokerRefused { .. } | Self::Cgroup(_) => crate::config::EXIT_REFUSED,
            Self::Log { .. } | Self::System { .. } | Self::BrokerNeverReady { .. } | Self::LinkVersion { .. } => 1,
        }
    }
}

fn serve(flags: &DaemonFlags, announcer: &mut Announcer) -> Result<u8, SupervisorError> {
    let activated = activated_socket();
    let (paths, mut made) = place::prepare(&flags.surroundings(geteuid().as_raw()))?;
    announcer.log_to(&paths).map_err(|source| SupervisorError::Log { path: paths.daemon_log(), source })?;
    // The lock first; everything after it is ours alone.
    let lock = hold::lock(&paths).inspect_err(|refusal| {
        if matches!(refusal, Refusal::Held { .. }) {
            made.keep();
        }
    })?;
    made.hold(&paths, &lock).map_err(SupervisorError::system("keeping the lock"))?;
    let listening = match activated {
        Some(taken) => taken.map_err(SupervisorError::system("taking the service manager's socket"))?,
        None => Listening::bind(&paths.socket)?,
    };
    let holding = Holding { listening, lock };
    made.file(paths.socket.clone());
    let now = Instant::now();
    let program = own_program().map_err(SupervisorError::system("finding this program"))?;
    let recipe = Recipe { program, arguments: BrokerFlags::arguments(&paths, flags) };
    reap::become_subreaper().map_err(SupervisorError::system("becoming a subreaper"))?;
    let cgroups = Cgroups::choose(&flags.cgroup, &paths.state_dir)?;
    let children = Children::new(&paths.state_dir).map_err(SupervisorError::system("epoll_create"))?.within(cgroups);
    tracing::info!(pid = std::process::id(), state = %paths.state_dir.display(), socket = %paths.socket.display(), "supervising");
    let supervisor = Supervisor::new(holding, children, Broker::new(now, announcer.silence_max()), recipe, announcer)?;
    made.keep();
    supervisor.run()
}

/// The listening socket that systemd made for us (`LISTEN_FDS`), if it did.
fn activated_socket() -> Option<io::Result<Listening>> {
    let is = |name: &str, value: String| std::env::var(name).is_ok_and(|found| found == value);
    let is_ours = is("LISTEN_PID", std::process::id().to_string()) && is("LISTEN_FDS", "1".into());
    is_ours.then(|| spawn::inherited(3).and_then(Listening::taken))
}
