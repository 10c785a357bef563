//! The machine and the session: limits, cgroups, units of systemd.

use std::fs;
use std::path::Path;

use roost::Config;
use rustix::process::{Resource, getrlimit};

use super::Check;
use crate::commands::service::manager::{Manager, SERVICE, SOCKET, lingers};

/// A supervisor needs descriptors for each worker, a broker for each connection.
const FILES_LEAST: u64 = 1_024;
/// A worker is a process, and has more.
const PROCESSES_LEAST: u64 = 512;

/// What systemd has to do with it.
#[derive(Debug, Default)]
pub struct Units {
    installed: bool,
    /// `ActiveState` of the unit that listens, `Result` and process of the one that is the daemon.
    socket: String,
    result: String,
    pid: u32,
    lingers: Option<bool>,
    /// There are units and no manager that answers.
    trouble: Option<String>,
}

impl Units {
    /// Whether to connect would start the daemon.
    pub fn wakes_it(&self) -> bool {
        self.socket == "active" && self.pid == 0
    }
}

/// Asks only where there are units: without them systemd does not matter.
pub fn units(config: &Config) -> Units {
    let installed = config.by_unit || config.unit_directory.as_ref().is_some_and(|folder| folder.join(SOCKET).is_file());
    if !installed || !config.paths.is_default {
        return Units::default();
    }
    let ask = || {
        let manager = Manager::of_user()?;
        Ok::<_, crate::failure::Failure>(Units {
            installed,
            socket: manager.property(SOCKET, "ActiveState")?,
            result: manager.property(SERVICE, "Result")?,
            pid: manager.main_pid(SERVICE)?,
            lingers: lingers(),
            trouble: None,
        })
    };
    ask().unwrap_or_else(|failure| Units { installed, trouble: Some(failure.to_string()), ..Units::default() })
}

pub fn checks(units: &Units) -> Vec<Check> {
    let limit = |resource| getrlimit(resource).current;
    let version_2 = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    vec![
        enough("open-files", limit(Resource::Nofile), FILES_LEAST, "ulimit -n"),
        enough("processes", limit(Resource::Nproc), PROCESSES_LEAST, "ulimit -u"),
        cgroup(version_2, &own, units.installed),
        service(units),
        linger(units),
    ]
}

/// No limit at all is `None`.
fn enough(name: &'static str, limit: Option<u64>, least: u64, command: &str) -> Check {
    match limit {
        Some(limit) if limit < least => {
            let message = format!("at most {limit}, and a daemon that is started from here has no more either");
            Check::warning(name, message, format!("{command} {least} && roost daemon stop && roost daemon start"))
        }
        Some(limit) => Check::ok(name, format!("at most {limit}")),
        None => Check::ok(name, "no limit"),
    }
}

/// Only who has the daemon run as a unit counts on cgroups.
fn cgroup(version_2: bool, own: &str, by_unit: bool) -> Check {
    let place = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("none");
    if version_2 {
        return Check::ok("cgroup", format!("version 2; this shell is in {place}"));
    }
    let message = "no cgroups of version 2: a process of a worker that hides is not found";
    if by_unit { Check::warning("cgroup", message, "sudo mount -t cgroup2 none /sys/fs/cgroup") } else { Check::ok("cgroup", message) }
}

fn service(units: &Units) -> Check {
    if let Some(trouble) = &units.trouble {
        return Check::error("service", trouble, "loginctl enable-linger && systemctl --user status");
    }
    if !units.installed {
        return Check::ok("service", "no units are installed; commands start the daemon");
    }
    if !matches!(units.result.as_str(), "success" | "") || units.socket == "failed" {
        let mend = "systemctl --user reset-failed roostd.service roostd.socket && systemctl --user start roostd.socket";
        return Check::error("service", format!("systemd has given the daemon up: {}", units.result), mend);
    }
    if units.socket != "active" {
        return Check::error(
            "service",
            format!("units are installed, and {SOCKET} is {}", units.socket),
            "systemctl --user enable --now roostd.socket",
        );
    }
    Check::ok("service", format!("{SOCKET} is active"))
}

fn linger(units: &Units) -> Check {
    match (units.installed, units.lingers) {
        (true, Some(false)) => {
            Check::warning("linger", "systemd ends the daemon and its workers when you log out", "loginctl enable-linger")
        }
        (true, Some(true)) => Check::ok("linger", "the daemon stays when you log out"),
        (true, None) => Check::ok("linger", "nobody knows whether the daemon stays when you log out"),
        (false, _) => Check::ok("linger", "does not matter without units"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn limits_and_cgroups_are_told_where_they_do_harm() {
        let of = |limit| enough("open-files", limit, FILES_LEAST, "ulimit -n").level;
        assert_eq!([of(Some(256)), of(Some(1_024)), of(None)], [Level::Warning, Level::Ok, Level::Ok]);
        let of = |version_2, by_unit| cgroup(version_2, "0::/a\n", by_unit).level;
        assert_eq!([of(false, true), of(false, false), of(true, true)], [Level::Warning, Level::Ok, Level::Ok]);
    }
}
