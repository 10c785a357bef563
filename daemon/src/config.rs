//! The daemon's flags and times, and what it takes from its environment.
//!
//! It starts nothing and touches no disk but the passwd database.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};
use roost_proto::duration;
use roost_proto::limits::CAP_MAX;
use roost_proto::paths::{Paths, Surroundings};

use crate::process::cgroup::place::Setting as CgroupSetting;

/// The first back-off of a broker that keeps dying. The first death costs nothing.
pub const BROKER_BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// The longest back-off.
pub const BROKER_BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// A broker that lived this long was healthy: its death is a first one.
pub const BROKER_HEALTHY: Duration = Duration::from_secs(10);
/// How long a broker has to exit after it said `Restart`, closed its link, or lost its supervisor.
pub const BROKER_EXIT: Duration = Duration::from_secs(10);
/// How often a broker may be silent for as long as a watchdog allows before its hello: with the watchdog of the unit, a quarter of an
/// hour for its journal.
pub const BROKER_SILENCES_MAX: u32 = 20;
/// How often in a row a broker may die before one was ever ready; then the daemon gives up.
pub const BROKER_BOOTS_MAX: u32 = 5;
/// How long an orderly end may take after SIGTERM.
pub const TERMINATE: Duration = Duration::from_secs(60);
/// How long the broker of a supervisor that was killed may hold the lock.
pub const LOCK_ORPHAN: Duration = Duration::from_secs(5);

/// Exit code: another daemon serves this state directory.
pub const EXIT_HELD: u8 = 3;
/// Exit code: refuses to run until something is put right (EX_CONFIG). Starting again does not help.
pub const EXIT_REFUSED: u8 = 78;

/// Flags of `roostd`.
#[derive(Debug, Parser)]
#[command(
    name = "roostd",
    version,
    about = "The Roost daemon: a per-user broker for trees of nested workers",
    after_help = "Flags that are not given come from ROOST_DAEMON_... and from [daemon] in ~/.config/roost/config.toml: docs/config.md"
)]
pub struct Cli {
    /// What this process is to be, if not the supervisor.
    #[command(subcommand)]
    pub role: Option<Role>,
    /// Where, and for how long.
    #[command(flatten)]
    pub daemon: DaemonFlags,
}

/// Flags of the supervisor.
#[derive(Debug, Clone, Args)]
pub struct DaemonFlags {
    /// The listening socket; its directory must be private to you [default: $XDG_RUNTIME_DIR/roost/roost.sock]
    #[arg(long, value_name = "PATH", env = "ROOST_SOCKET", hide_env_values = true)]
    pub socket: Option<OsString>,
    /// Where journal and outputs are kept [default: $XDG_STATE_HOME/roost, else ~/.local/state/roost]
    #[arg(long, value_name = "DIR", env = "ROOST_STATE_DIR", hide_env_values = true)]
    pub state_dir: Option<OsString>,
    /// Leave after so long without a tree and a client, a duration or seconds; 0 = never
    #[arg(long, value_name = "DURATION", value_parser = seconds, default_value_t = roost_proto::limits::IDLE_EXIT_SECONDS)]
    pub idle_exit: u64,
    /// Most live workers over all trees together, 1 to 100000 [default: no such cap]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(CAP_MAX)))]
    pub cap: Option<u32>,
    /// Most ended workers of closed trees whose results are kept; beyond it the tree that was closed first goes
    #[arg(long, value_name = "N", default_value_t = roost_proto::limits::CLOSED_WORKERS_MAX)]
    pub keep: usize,
    /// Where each worker gets a cgroup2 of its own: a directory; own = in the daemon's own; auto = the same, if that is marked as
    /// delegated to it; off = nowhere
    #[arg(long, value_name = "auto|own|off|DIR", default_value = "auto", value_parser = cgroup_parser())]
    pub cgroup: CgroupSetting,
    /// How long a closed tree's results are kept at most; 0 = no end by age, `--keep` alone decides
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "30d")]
    pub retention: u64,
    /// Go to the background; return when it serves, with the line `ready`, or `error: ...`
    #[arg(long)]
    pub detach: bool,
    /// Set by `--detach` for the process in the background.
    #[arg(long, hide = true)]
    pub detached: bool,
}

fn seconds(text: &str) -> Result<u64, String> {
    duration::parse(text).map(|ms| ms.div_ceil(1_000))
}

fn cgroup_parser() -> impl TypedValueParser<Value = CgroupSetting> {
    OsStringValueParser::new().try_map(CgroupSetting::parse)
}

/// What else a `roostd` process can be.
#[derive(Debug, Subcommand)]
pub enum Role {
    /// The broker, started by the supervisor.
    #[command(hide = true)]
    Broker(BrokerFlags),
}

/// Flags of the broker. The supervisor has applied the rules for paths already.
#[derive(Debug, Args)]
pub struct BrokerFlags {
    /// The listening socket's path.
    #[arg(long)]
    pub socket: PathBuf,
    /// The state directory.
    #[arg(long)]
    pub state_dir: PathBuf,
    /// Seconds; 0 = never.
    #[arg(long)]
    pub idle_exit: u64,
    /// The cap over all trees.
    #[arg(long)]
    pub cap: Option<u32>,
    /// Most ended workers of closed trees that are kept.
    #[arg(long)]
    pub keep: usize,
    /// How long a closed tree is kept.
    #[arg(long, value_parser = duration::parse)]
    pub retention: u64,
    /// Whether neither path was asked for.
    #[arg(long)]
    pub is_default: bool,
}

impl BrokerFlags {
    /// As the supervisor computed them.
    pub fn paths(&self) -> Paths {
        Paths { socket: self.socket.clone(), state_dir: self.state_dir.clone(), is_default: self.is_default }
    }

    /// The arguments that parse to these paths, and to what the daemon's flags say for the broker.
    pub fn arguments(paths: &Paths, flags: &DaemonFlags) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["broker".into(), "--socket".into(), paths.socket.clone().into()];
        arguments.extend(["--state-dir".into(), paths.state_dir.clone().into()]);
        arguments.extend(["--idle-exit".into(), flags.idle_exit.to_string().into()]);
        arguments.extend(["--keep".into(), flags.keep.to_string().into()]);
        arguments.extend(["--retention".into(), format!("{}ms", flags.retention).into()]);
        if let Some(cap) = flags.cap {
            arguments.extend(["--cap".into(), cap.to_string().into()]);
        }
        if paths.is_default {
            arguments.push("--is-default".into());
        }
        arguments
    }
}

impl DaemonFlags {
    /// What the rule for paths looks at.
    pub fn surroundings(&self, uid: u32) -> Surroundings {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        // What is the same as the variable may have been either.
        let by_flag = |value: &Option<OsString>, variable: &str| value.is_some() && *value != std::env::var_os(variable);
        Surroundings {
            socket_by_flag: by_flag(&self.socket, "ROOST_SOCKET"),
            state_dir_by_flag: by_flag(&self.state_dir, "ROOST_STATE_DIR"),
            socket: self.socket.clone(),
            state_dir: self.state_dir.clone(),
            xdg_runtime_dir: std::env::var_os("XDG_RUNTIME_DIR"),
            xdg_state_home: std::env::var_os("XDG_STATE_HOME"),
            home: home.or_else(|| crate::process::spawn::passwd_home(uid).map(Into::into)),
            uid,
        }
    }

    /// The same flags for another process of this daemon whose environment says nothing of Roost.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        for (flag, value) in [("--socket", &self.socket), ("--state-dir", &self.state_dir)] {
            if let Some(value) = value {
                arguments.extend([flag.into(), value.clone()]);
            }
        }
        arguments.extend(["--idle-exit".into(), self.idle_exit.to_string().into()]);
        arguments.extend(["--keep".into(), self.keep.to_string().into()]);
        arguments.extend(["--cgroup".into(), self.cgroup.word()]);
        arguments.extend(["--retention".into(), format!("{}ms", self.retention).into()]);
        if let Some(cap) = self.cap {
            arguments.extend(["--cap".into(), cap.to_string().into()]);
        }
        arguments
    }
}

/// Variables by which a service manager speaks to one process and not to its children.
const OF_THE_SERVICE_MANAGER: [&str; 9] = [
    "NOTIFY_SOCKET",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "JOURNAL_STREAM",
    "INVOCATION_ID",
    "MAINPID",
];

/// Whether this variable says that its holder is a worker, or belongs to one. The log filter does not.
pub fn is_of_a_worker(name: &OsString) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("ROOST_") && name != "ROOST_LOG")
}

/// An environment for a process that is neither a worker nor the service's main process.
pub fn scrubbed(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
    let is_of_the_service_manager = |name: &OsString| name.to_str().is_some_and(|name| OF_THE_SERVICE_MANAGER.contains(&name));
    environment.into_iter().filter(|(name, _)| !is_of_a_worker(name) && !is_of_the_service_manager(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_broker_reads_the_arguments_that_the_supervisor_writes() {
        let paths = Paths { socket: "/s".into(), state_dir: "/d".into(), is_default: true };
        for cap in [None, Some(3)] {
            let cgroup = CgroupSetting::Directory("/c".into());
            let daemon = DaemonFlags {
                socket: None,
                state_dir: None,
                idle_exit: 7,
                cap,
                keep: 9,
                retention: 8,
                cgroup,
                detach: false,
                detached: false,
            };
            let again = Cli::try_parse_from(std::iter::once("roostd".into()).chain(daemon.arguments())).unwrap().daemon;
            assert_eq!((again.idle_exit, again.cap, again.keep, again.retention, &again.cgroup), (7, cap, 9, 8, &daemon.cgroup));
            let words = std::iter::once("roostd".into()).chain(BrokerFlags::arguments(&paths, &daemon));
            let Some(Role::Broker(flags)) = Cli::try_parse_from(words).unwrap().role else { panic!("no broker") };
            assert_eq!((flags.paths(), flags.idle_exit, flags.cap, flags.keep, flags.retention), (paths.clone(), 7, cap, 9, 8));
        }
    }

    #[test]
    fn closed_trees_are_kept_for_as_long_as_the_limits_say() {
        assert_eq!(Cli::try_parse_from(["roostd"]).unwrap().daemon.retention, roost_proto::limits::RETENTION_MS);
        assert_eq!(Cli::try_parse_from(["roostd", "--retention", "0"]).unwrap().daemon.retention, 0);
        assert!(Cli::try_parse_from(["roostd", "--retention", "soon"]).is_err());
    }

    #[test]
    fn nothing_of_a_worker_or_of_systemd_stays_in_the_environment() {
        let pair = |name: &str| (OsString::from(name), OsString::from("1"));
        let kept = scrubbed(["ROOST_TOKEN", "PATH", "ROOST_LOG", "NOTIFY_SOCKET", "ROOSTER"].map(pair));
        assert_eq!(kept, ["PATH", "ROOST_LOG", "ROOSTER"].map(pair));
    }
}
