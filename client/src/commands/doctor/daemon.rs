//! The daemon as it runs or does not: its socket, its lock, the versions of what runs and of what is installed.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::process::Command;
use std::time::Duration;

use roost::proto::message::daemon::DaemonStatusReply;
use roost::{Config, Connection, Error, daemon_program, lock_pid, output_within};

use super::{Check, quoted};

/// Longer than this a daemon that is well takes for no answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// `wakes`: to connect would have systemd start the daemon.
pub fn checks(config: &Config, wakes: bool) -> Vec<Check> {
    // By a unit its first answer would have the time of a start; that it takes one is what is to be seen.
    let config = Config { by_unit: false, answer_within: ANSWER_WITHIN, back_within: ANSWER_WITHIN, ..config.clone() };
    let asked = if wakes { Ok(None) } else { ask(&config) };
    let status = asked.as_ref().ok().and_then(Option::as_ref);
    vec![socket(&config, &asked, wakes), lock(&config, &asked), versions(status), program(&config, status)]
}

fn ask(config: &Config) -> Result<Option<DaemonStatusReply>, Error> {
    match Connection::dial(config.clone()).and_then(|mut connection| connection.daemon_status()) {
        Ok(status) => Ok(Some(status)),
        Err(Error::NoDaemon { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn socket(config: &Config, asked: &Result<Option<DaemonStatusReply>, Error>, wakes: bool) -> Check {
    let path = &config.paths.socket;
    let there = fs::symlink_metadata(path);
    match (asked, there) {
        (Ok(Some(status)), _) => Check::ok("socket", format!("a daemon answers at {} (process {})", path.display(), status.supervisor_pid)),
        (Ok(None), _) if wakes => Check::ok("socket", "systemd listens, and starts the daemon for the first command"),
        (_, Ok(found)) if !found.file_type().is_socket() => {
            let kept = path.with_extension("moved-away");
            Check::error("socket", format!("{} is not a socket", path.display()), format!("mv {} {}", quoted(path), quoted(&kept)))
        }
        (Err(error), _) => Check::failed("socket", error.to_string(), error.hint()),
        (Ok(None), Ok(_)) => {
            let message = format!("nobody listens at {}: a daemon was killed, and its workers may still run", path.display());
            Check::warning("socket", message, "roost daemon start")
        }
        (Ok(None), Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            Check::ok("socket", "no daemon is running; commands start one")
        }
        (Ok(None), Err(error)) => Check::error("socket", format!("cannot look at {}: {error}", path.display()), "roost daemon start"),
    }
}

/// The lock itself is not tried: a daemon that starts just now would find it held.
fn lock(config: &Config, asked: &Result<Option<DaemonStatusReply>, Error>) -> Check {
    let path = config.paths.lock();
    let file = match fs::File::open(&path).and_then(|file| file.metadata()) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Check::ok("lock", "nobody has locked the state directory"),
        Err(error) => {
            return Check::error("lock", format!("cannot read {}: {error}", path.display()), format!("chmod 600 {}", quoted(&path)));
        }
    };
    let named = lock_pid(&config.paths);
    let held = named.filter(|pid| has_open(*pid, &file));
    let has_socket = || fs::symlink_metadata(&config.paths.socket).is_ok_and(|found| found.file_type().is_socket());
    match (asked, held, named) {
        (Ok(Some(status)), _, Some(pid)) if pid == status.supervisor_pid => {
            Check::ok("lock", format!("held by the daemon (process {pid})"))
        }
        (Ok(Some(status)), ..) => {
            let message = format!("{} does not name the daemon (process {})", path.display(), status.supervisor_pid);
            Check::warning("lock", message, "roost daemon stop")
        }
        (Ok(None), Some(pid), _) => {
            let message = format!("process {pid} holds the state directory, and does not listen at {}", config.paths.socket.display());
            Check::error("lock", message, format!("kill {pid}"))
        }
        // It may be the one that does not answer; what is wrong with that one is said of its socket.
        (Err(_), Some(pid), _) => Check::ok("lock", format!("held by process {pid}")),
        (Ok(None), None, Some(pid)) if has_socket() => {
            Check::warning("lock", format!("process {pid}, which held it, has died and left its socket"), "roost daemon start")
        }
        (Ok(None) | Err(_), None, _) => Check::ok("lock", "nobody holds the state directory"),
    }
}

/// Whether the process has this file open: a number alone may be that of another by now.
fn has_open(pid: u32, file: &fs::Metadata) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::metadata(entry.path()).ok()).any(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()))
}

/// What runs against what is installed.
fn versions(status: Option<&DaemonStatusReply>) -> Check {
    let client = env!("CARGO_PKG_VERSION");
    let Some(status) = status else { return Check::ok("versions", format!("client {client}; no daemon is running")) };
    let message = format!("client {client}, broker {}, protocol {}", status.version, status.protocol);
    if status.version != client {
        return Check::warning("versions", message, "roost daemon restart");
    }
    let is_replaced = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)"));
    match (is_replaced(status.broker_pid), is_replaced(status.supervisor_pid)) {
        (true, _) => Check::warning("versions", format!("{message}; the broker's program was replaced since"), "roost daemon restart"),
        (_, true) => {
            let message = format!("{message}; the supervisor's program was replaced since");
            Check::warning("versions", message, "roost daemon stop && roost daemon start")
        }
        _ => Check::ok("versions", message),
    }
}

/// The daemon that would be started.
fn program(config: &Config, status: Option<&DaemonStatusReply>) -> Check {
    let path = match daemon_program(config) {
        Ok(path) => path,
        Err(error) => {
            let mend = "cargo install --path daemon";
            return if status.is_some() {
                Check::warning("program", error.to_string(), mend)
            } else {
                Check::error("program", error.to_string(), mend)
            };
        }
    };
    let said = output_within(Command::new(&path).arg("--version"), ANSWER_WITHIN);
    let version = said.ok().filter(|said| said.status.success()).map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    match version {
        Some(version) if version.split(' ').nth(1) == Some(env!("CARGO_PKG_VERSION")) => {
            Check::ok("program", format!("{} is {version}", path.display()))
        }
        Some(version) => Check::warning(
            "program",
            format!("{} is {version}, and this is {}", path.display(), env!("CARGO_PKG_VERSION")),
            "cargo install --path daemon",
        ),
        None => Check::error("program", format!("{} does not run", path.display()), format!("{} --version", quoted(&path))),
    }
}
