//! `roost service`: the daemon as units of the user's systemd: written, switched on, looked at, taken away.
//!
//! It knows systemd by `systemctl --user` alone, and the daemon by its status.

pub mod manager;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use roost::proto::message::daemon::DaemonStop;
use roost::proto::rpc::ErrorKind;
use roost::{Config, Connection, Error, Start};
use serde_json::json;

use crate::commands::daemon;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, note};
use crate::setup::Setup;
use manager::{Manager, SERVICE, SOCKET};

/// The units as they are packaged: only where the programs are is written into them.
const UNITS: [(&str, &str); 2] =
    [(SOCKET, include_str!("../../../systemd/roostd.socket")), (SERVICE, include_str!("../../../systemd/roostd.service"))];

/// Run the daemon as a unit of your systemd
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  roost service install")]
pub struct ServiceArgs {
    #[command(subcommand)]
    verb: ServiceVerb,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum ServiceVerb {
    /// Write the units for the programs beside this one, and listen
    #[command(after_help = "Example:\n  roost service install")]
    Install,
    /// Stop listening and remove the units; what is queued or parked stays on disk
    #[command(after_help = "Example:\n  roost service uninstall --now")]
    Uninstall {
        /// Stop live workers; without it they are an error
        #[arg(long)]
        now: bool,
    },
    /// Say what is installed and running
    #[command(after_help = "Example:\n  roost service status --json")]
    Status,
}

impl ServiceArgs {
    /// Does it.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let config = setup.config()?.without_identity();
        if !config.paths.is_default {
            let hint = "leave out --socket and --state-dir, and unset ROOST_SOCKET and ROOST_STATE_DIR";
            return Err(Failure::usage("the service is the daemon of the usual places, and others were asked for", Some(hint)));
        }
        let config = Config { start: Start::Never, ..config };
        match self.verb {
            ServiceVerb::Install => install(config, out),
            ServiceVerb::Uninstall { now } => uninstall(config, now, out),
            ServiceVerb::Status => status(config, out),
        }
    }
}

fn install(config: Config, out: &mut Out) -> Result<Exit, Failure> {
    let manager = Manager::of_user()?;
    let roost = std::env::current_exe().map_err(Error::io("cannot see where our own program is"))?;
    let roostd = roost.with_file_name("roostd");
    if !roostd.is_file() {
        return Err(Failure::from(Error::DaemonMissing { beside: roost.parent().map(PathBuf::from).unwrap_or_default() }));
    }
    if let Some(pid) = running(&config)?
        && manager.main_pid(SERVICE)? != pid
    {
        let hint = "stop it with `roost daemon stop`, and install again: what is queued or parked goes on there";
        return Err(Failure::service(format!("a daemon that systemd did not start is running (process {pid})"), hint));
    }
    let directory = unit_directory(&config)?;
    fs::create_dir_all(&directory).map_err(Error::io(format!("cannot make {}", directory.display())))?;
    for (name, text) in UNITS {
        let path = directory.join(name);
        fs::write(&path, placed(text, &roost, &roostd)).map_err(Error::io(format!("cannot write {}", path.display())))?;
    }
    manager.reload()?;
    manager.call(&["enable", "--now", SOCKET])?;
    let lingers = manager::lingers();
    if out.json {
        out.json(&json!({"units": directory, "socket": config.paths.socket, "lingers": lingers}))?;
        return Ok(Exit::Ok);
    }
    out.line(&format!("installed in {}; listening on {}", directory.display(), config.paths.socket.display()))?;
    out.flush()?;
    if lingers == Some(false) {
        note("roost: without lingering systemd ends the daemon and its workers when you log out");
        note("hint: `loginctl enable-linger` keeps them");
    }
    Ok(Exit::Ok)
}

fn uninstall(config: Config, now: bool, out: &mut Out) -> Result<Exit, Failure> {
    let manager = Manager::of_user()?;
    let directory = unit_directory(&config)?;
    let installed: Vec<PathBuf> = UNITS.iter().map(|(name, _)| directory.join(name)).filter(|path| path.is_file()).collect();
    if installed.is_empty() {
        return Err(match manager.units()?.filter(|packaged| *packaged != directory) {
            Some(packaged) => Failure::service(
                format!("the units in {} came with a package, which removes them", packaged.display()),
                "`roost daemon stop && systemctl --user mask --now roostd.socket roostd.service` switches them off for you alone",
            ),
            None => Failure::service(format!("no units of Roost are in {}", directory.display()), "`roost service install` writes them"),
        });
    }
    // Before systemd stops anything: its stop ends workers, and asks nobody.
    let stopped = if manager.main_pid(SERVICE)? == 0 { Some(0) } else { stop(config, now)? };
    let Some(stopped) = stopped else { return Ok(Exit::NotCompleted) };
    manager.call(&["disable", "--now", SOCKET])?;
    manager.call(&["stop", SERVICE])?;
    for path in &installed {
        fs::remove_file(path).map_err(Error::io(format!("cannot remove {}", path.display())))?;
    }
    manager.reload()?;
    if out.json {
        out.json(&json!({"removed": installed, "stopped": stopped}))?;
    } else {
        out.line(&format!("removed from {}", directory.display()))?;
    }
    if let Some(packaged) = manager.units()? {
        out.flush()?;
        note(&format!("roost: from now on those in {} hold, which came with a package", packaged.display()));
    }
    Ok(Exit::Ok)
}

/// Ends the daemon, unless something is live that may not be stopped.
fn stop(config: Config, now: bool) -> Result<Option<u32>, Failure> {
    let request = DaemonStop { now, timeout_ms: (!now).then_some(1) };
    match daemon::end(&mut Connection::dial(config)?, &request) {
        Err(Error::Refused(error)) if error.data.kind == ErrorKind::Draining => {
            Err(Failure::service(error.message, "wait for their end, or use `roost service uninstall --now` to stop them"))
        }
        ended => Ok(ended?),
    }
}

fn status(config: Config, out: &mut Out) -> Result<Exit, Failure> {
    let manager = Manager::of_user()?;
    let found = manager.units()?;
    let installed = found.is_some();
    let directory = found.map_or_else(|| unit_directory(&config), Ok)?;
    let state = |unit| manager.property(unit, "ActiveState");
    let (socket, service, result) = (state(SOCKET)?, state(SERVICE)?, manager.property(SERVICE, "Result")?);
    let text = manager.property(SERVICE, "StatusText")?;
    let pid = manager.main_pid(SERVICE)?;
    let lingers = manager::lingers();
    if out.json {
        out.json(&json!({
            "installed": installed, "units": directory, "socket": socket, "service": service, "result": result, "pid": pid,
            "status": text, "lingers": lingers,
        }))?;
    } else {
        out.line(&format!("units    {}", if installed { directory.display().to_string() } else { "not installed".into() }))?;
        out.line(&format!("socket   {socket}"))?;
        let process = if pid == 0 { String::new() } else { format!(" (process {pid})") };
        out.line(&format!("service  {service}{process}{}", if text.is_empty() { text } else { format!(": {text}") }))?;
        let linger = lingers.map_or("unknown", |lingers| if lingers { "yes" } else { "no: the daemon ends when you log out" });
        out.line(&format!("linger   {linger}"))?;
    }
    if result != "success" && !result.is_empty() {
        note(&format!("roost: the service has failed: {result}"));
        note(
            "hint: `journalctl --user -u roostd` says why; `systemctl --user reset-failed roostd.service roostd.socket` lets it start again",
        );
    }
    Ok(if installed && socket == "active" { Exit::Ok } else { Exit::NotCompleted })
}

/// The process of the daemon that listens in the usual place.
fn running(config: &Config) -> Result<Option<u32>, Failure> {
    match Connection::dial(config.clone()) {
        Ok(mut connection) => Ok(Some(connection.daemon_status()?.supervisor_pid)),
        Err(Error::NoDaemon { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn unit_directory(config: &Config) -> Result<PathBuf, Failure> {
    let missing = || Failure::usage("no place for units: HOME and XDG_CONFIG_HOME are unset", Some("set HOME"));
    config.unit_directory.clone().ok_or_else(missing)
}

/// The unit with the programs where they are.
fn placed(text: &str, roost: &Path, roostd: &Path) -> String {
    // The longer one first: the other is its beginning.
    text.replace("/usr/bin/roostd", &escaped(roostd)).replace("/usr/bin/roost ", &format!("{} ", escaped(roost)))
}

/// A path as a word of a unit: quoted, and `%` and `$` stand for themselves.
fn escaped(path: &Path) -> String {
    let text = path.display().to_string();
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_units_name_the_programs_where_they_are() {
        let service = placed(UNITS[1].1, "/a b/roost".as_ref(), "/a b/roost%d".as_ref());
        assert!(service.contains("ExecStart=\"/a b/roost%%d\" --cgroup own\n"), "{service}");
        assert!(service.contains("ExecReload=\"/a b/roost\" daemon restart\n"), "{service}");
        assert!(!service.contains("/usr/bin"), "{service}");
    }
}
