//! The user's systemd, asked by its own command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use roost::{Error, output_within};

use crate::failure::Failure;

/// The unit that listens.
pub const SOCKET: &str = "roostd.socket";
/// The unit that is the daemon.
pub const SERVICE: &str = "roostd.service";

/// How long a call may take: one that stops the daemon waits for it, and the unit gives it 90 s.
const CALL_WAIT: Duration = Duration::from_secs(150);
/// How long a question may take.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// A manager that answers.
pub struct Manager(());

impl Manager {
    /// That of this user, if there is one.
    pub fn of_user() -> Result<Self, Failure> {
        let manager = Self(());
        manager.property(SOCKET, "ActiveState")?;
        Ok(manager)
    }

    /// `systemctl --user` with these words.
    pub fn call(&self, words: &[&str]) -> Result<String, Failure> {
        self.call_within(words, CALL_WAIT)
    }

    fn call_within(&self, words: &[&str], within: Duration) -> Result<String, Failure> {
        let Output { status, stdout, stderr } = match output_within(Command::new("systemctl").arg("--user").args(words), within) {
            Ok(output) => output,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::service("this machine has no `systemctl`", "run `roost daemon start`: it needs no systemd"));
            }
            Err(error) => return Err(Failure::from(Error::io(format!("cannot run `systemctl --user {}`", words.join(" ")))(error))),
        };
        if !status.success() {
            let said = String::from_utf8_lossy(&stderr);
            let message = format!("`systemctl --user {}` failed: {}", words.join(" "), said.trim());
            let hint = "is there a user manager? It needs a login of yours (XDG_RUNTIME_DIR); `roost daemon start` needs none";
            return Err(Failure::service(message, hint));
        }
        Ok(String::from_utf8_lossy(&stdout).trim_end().to_owned())
    }

    /// After units were written or removed.
    pub fn reload(&self) -> Result<(), Failure> {
        self.call(&["daemon-reload"]).map(|_| ())
    }

    /// A property of a unit; empty where it has none.
    pub fn property(&self, unit: &str, name: &str) -> Result<String, Failure> {
        self.call_within(&["show", "--value", "--property", name, unit], ANSWER_WAIT)
    }

    /// Where both units come from, ours or a package's; `None` where one is missing.
    pub fn units(&self) -> Result<Option<PathBuf>, Failure> {
        let [service, socket] = [self.property(SERVICE, "FragmentPath")?, self.property(SOCKET, "FragmentPath")?];
        let is_missing = service.is_empty() || socket.is_empty();
        Ok(Path::new(&socket).parent().filter(|_| !is_missing).map(PathBuf::from))
    }

    /// The main process of a service; 0 when it has none.
    pub fn main_pid(&self, unit: &str) -> Result<u32, Failure> {
        Ok(self.property(unit, "MainPID")?.parse().unwrap_or(0))
    }
}

/// Whether what the user runs goes on after the last log-out; `None` where nobody knows.
pub fn lingers() -> Option<bool> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let mut command = Command::new("loginctl");
    let output = output_within(command.args(["show-user", &uid, "--value", "--property", "Linger"]), ANSWER_WAIT).ok()?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}
