//! How a daemon tells whoever started it that it serves, or why it does not: a line to the client that waits at `--detach`,
//! a datagram to a service manager.
//!
//! It does not decide when that is.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use roost_proto::link::Manager;
use roost_proto::paths::Paths;

use crate::process::spawn::redirect;

/// The most of the log that is searched for the last error of a broker.
const TAIL_BYTES_MAX: u64 = 64 << 10;

/// Whom to tell.
#[derive(Debug, Default)]
pub struct Announcer {
    /// A client waits for one line on our standard output.
    client_waits: bool,
    /// Standard error is this file.
    log: Option<File>,
    /// Where the current broker's part of the log begins.
    log_mark: u64,
    /// `NOTIFY_SOCKET`.
    manager: Option<SocketAddr>,
    /// By when the manager wants to hear again that we live (`WATCHDOG_USEC`), in milliseconds.
    watchdog_ms: Option<u64>,
}

impl Announcer {
    /// In the foreground, perhaps under a service manager.
    pub fn foreground() -> Self {
        let manager = std::env::var_os("NOTIFY_SOCKET").and_then(|name| {
            let name = name.as_bytes();
            // systemd writes an abstract name with `@`.
            let address = name.strip_prefix(b"@").map_or_else(
                || SocketAddr::from_pathname(std::path::Path::new(std::ffi::OsStr::from_bytes(name))),
                SocketAddr::from_abstract_name,
            );
            address.inspect_err(|error| tracing::warn!(%error, "NOTIFY_SOCKET cannot be used")).ok()
        });
        Self { manager, watchdog_ms: watchdog_ms(), ..Self::default() }
    }

    /// In the background: a client waits.
    pub fn background() -> Self {
        Self { client_waits: true, ..Self::default() }
    }

    /// From now on the log of a daemon in the background is a file.
    pub fn log_to(&mut self, paths: &Paths) -> io::Result<()> {
        if self.client_waits {
            let file = OpenOptions::new().append(true).read(true).create(true).mode(0o600).open(paths.daemon_log())?;
            redirect(&file, 2)?;
            self.log = Some(file);
        }
        Ok(())
    }

    /// What is logged from now on is the next broker's.
    pub fn mark_log(&mut self) {
        self.log_mark = self.log.as_ref().and_then(|log| log.metadata().ok()).map_or(0, |found| found.len());
    }

    /// The last line `error: ...` that the broker has written, without its beginning. In the foreground it was seen already.
    pub fn last_error(&self) -> Option<String> {
        let mut log = self.log.as_ref()?;
        let length = log.metadata().ok()?.len();
        log.seek(SeekFrom::Start(self.log_mark.max(length.saturating_sub(TAIL_BYTES_MAX)))).ok()?;
        let mut tail = Vec::new();
        log.take(TAIL_BYTES_MAX).read_to_end(&mut tail).ok()?;
        last_error_in(&String::from_utf8_lossy(&tail))
    }

    /// The daemon serves.
    pub fn ready(&mut self) {
        self.tell_client("ready");
        self.tell_manager("READY=1");
    }

    /// The daemon does not run. Also in the log, and on the terminal of a daemon in the foreground.
    pub fn failed(&mut self, error: &str) {
        let line = format!("error: {}", error.replace('\n', " "));
        if let Err(lost) = writeln!(io::stderr(), "{line}") {
            tracing::debug!(%lost, "nobody reads standard error");
        }
        self.tell_client(&line);
    }

    /// One line about the daemon, for a service manager to show.
    pub fn status(&self, line: &str) {
        self.tell_manager(&format!("STATUS={}", line.replace('\n', " ")));
    }

    /// Who watches over the daemon. Two beats in its time: one may be late.
    pub fn manager(&self) -> Option<Manager> {
        self.manager.as_ref().map(|_| Manager { beat_ms: self.watchdog_ms.map(|ms| ms / 2) })
    }

    /// How long the broker may say nothing, before the manager loses its patience with all of us.
    pub fn silence_max(&self) -> Option<Duration> {
        self.watchdog_ms.map(|ms| Duration::from_millis(ms / 4 * 3))
    }

    /// The broker's loop turns, or the supervisor sees to it.
    pub fn alive(&self) {
        if self.watchdog_ms.is_some() {
            self.tell_manager("WATCHDOG=1");
        }
    }

    /// The daemon is about to leave.
    pub fn stopping(&self) {
        self.tell_manager("STOPPING=1");
    }

    /// One line, once; afterwards the client's pipe is closed, so that `$(roostd --detach)` ends.
    fn tell_client(&mut self, line: &str) {
        if !std::mem::take(&mut self.client_waits) {
            return;
        }
        let mut stdout = io::stdout();
        if let Err(error) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
            tracing::info!(%error, "the client that started this daemon does not wait any more");
        }
        let null = File::options().write(true).open("/dev/null");
        if let Err(error) = null.and_then(|null| redirect(null, 1)) {
            tracing::warn!(%error, "standard output stays with the client");
        }
    }

    fn tell_manager(&self, message: &str) {
        let Some(manager) = &self.manager else { return };
        let sent = UnixDatagram::unbound().and_then(|socket| socket.send_to_addr(message.as_bytes(), manager));
        if let Err(error) = sent {
            tracing::warn!(%error, "the service manager cannot be told {message}");
        }
    }
}

/// The variables are for the process that they name, or for whoever has them.
fn watchdog_ms() -> Option<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let is_ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|_| is_ours).map(|us| us / 1_000).filter(|ms| *ms > 0)
}

fn last_error_in(text: &str) -> Option<String> {
    text.lines().rev().find_map(|line| line.strip_prefix("error: ")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_line_is_found_among_others() {
        let log = "error: old\n2026 INFO x\nerror: the journal is damaged\n2026 WARN error: not this\n";
        assert_eq!(last_error_in(log), Some("the journal is damaged".into()));
        assert_eq!(last_error_in("fine\n"), None);
    }
}
