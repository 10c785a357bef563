//! Where the socket and the state directory are: a pure rule that the daemon and every client compute alike.
//!
//! This file reads no environment and touches no disk; its callers hand it what they found.

use crate::limits::SOCKET_PATH_BYTES_MAX;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::id::ExecutionId;
/// What the rule looks at. An empty variable counts as unset, as in the XDG specification.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `--socket`, else `ROOST_SOCKET`.
    pub socket: Option<OsString>,
    /// Whether it was the flag.
    pub socket_by_flag: bool,
    /// `--state-dir`, else `ROOST_STATE_DIR`.
    pub state_dir: Option<OsString>,
    /// Whether it was the flag.
    pub state_dir_by_flag: bool,
    /// `XDG_RUNTIME_DIR`.
    pub xdg_runtime_dir: Option<OsString>,
    /// `XDG_STATE_HOME`.
    pub xdg_state_home: Option<OsString>,
    /// `HOME`, else the home of the passwd entry.
    pub home: Option<OsString>,
    /// The effective user id.
    pub uid: u32,
}

/// Where one daemon lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// The listening socket.
    pub socket: PathBuf,
    /// The state directory: journal, output files, lock.
    pub state_dir: PathBuf,
    /// Whether these are the usual places: the user's one daemon.
    pub is_default: bool,
}

/// Why there is no such place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Neither a state directory nor a home is known.
    #[error("no place for the state: HOME and XDG_STATE_HOME are unset and the user has no passwd entry; set ROOST_STATE_DIR")]
    NoHome,
    /// A path must not depend on the current directory.
    #[error("{name} must be an absolute path, and `{}` is not", path.display())]
    Relative {
        /// The flag or variable that named it.
        name: &'static str,
        /// Its value.
        path: PathBuf,
    },
    /// The kernel takes no longer socket path.
    #[error("the socket path {} has {bytes} bytes, and the limit is {SOCKET_PATH_BYTES_MAX}; set ROOST_SOCKET to a shorter one", path.display())]
    SocketTooLong {
        /// The path.
        path: PathBuf,
        /// Its length.
        bytes: usize,
    },
}

impl Surroundings {
    /// The rule of `docs/operations.md`: what was asked for, else the XDG directories, else their documented fall-backs.
    ///
    /// A state directory alone puts the socket into it, a socket alone puts the state beside it (`SOCKET.state`): either
    /// gives a private daemon.
    pub fn paths(&self) -> Result<Paths, PathError> {
        let asked_socket = absolute(if self.socket_by_flag { "--socket" } else { "ROOST_SOCKET" }, &self.socket)?;
        let asked_state = absolute(if self.state_dir_by_flag { "--state-dir" } else { "ROOST_STATE_DIR" }, &self.state_dir)?;
        let default_socket = self.default_socket()?;
        let state_dir = match (&asked_state, &asked_socket) {
            (Some(state_dir), _) => state_dir.clone(),
            (None, Some(socket)) if *socket != default_socket => suffixed(socket, ".state"),
            (None, _) => self.default_state_dir()?,
        };
        let socket = match asked_socket {
            Some(socket) => socket,
            None if asked_state.is_some() => state_dir.join("roost.sock"),
            None => default_socket,
        };
        let bytes = socket.as_os_str().as_bytes().len();
        if bytes > SOCKET_PATH_BYTES_MAX {
            return Err(PathError::SocketTooLong { path: socket, bytes });
        }
        // Whoever asks for the usual places by name means the same daemon.
        let is_default = socket == self.default_socket()? && self.default_state_dir().is_ok_and(|usual| usual == state_dir);
        Ok(Paths { socket, state_dir, is_default })
    }

    fn default_socket(&self) -> Result<PathBuf, PathError> {
        let directory = match absolute("XDG_RUNTIME_DIR", &self.xdg_runtime_dir)? {
            Some(directory) => directory.join("roost"),
            None => PathBuf::from(format!("/tmp/roost-{}", self.uid)),
        };
        Ok(directory.join("roost.sock"))
    }

    fn default_state_dir(&self) -> Result<PathBuf, PathError> {
        if let Some(directory) = absolute("XDG_STATE_HOME", &self.xdg_state_home)? {
            return Ok(directory.join("roost"));
        }
        let home = absolute("HOME", &self.home)?.ok_or(PathError::NoHome)?;
        Ok(home.join(".local/state/roost"))
    }
}

impl Paths {
    /// The lock that makes a daemon the only one on its state directory.
    pub fn lock(&self) -> PathBuf {
        self.state_dir.join("lock")
    }

    /// The lock under which clients start a daemon, one at a time.
    pub fn start_lock(&self) -> PathBuf {
        self.state_dir.join("start.lock")
    }

    /// What went into an execution and came out of it, as JSON lines.
    pub fn transcript(&self, execution: ExecutionId) -> PathBuf {
        self.state_dir.join("transcripts").join(format!("{execution}.jsonl"))
    }

    /// Where an on-demand daemon writes its log.
    pub fn daemon_log(&self) -> PathBuf {
        self.state_dir.join("daemon.log")
    }

    /// The directory of standard output, error and input files, `x12-1.out` and so on.
    pub fn executions(&self) -> PathBuf {
        self.state_dir.join("executions")
    }
}

fn absolute(name: &'static str, value: &Option<OsString>) -> Result<Option<PathBuf>, PathError> {
    let Some(value) = value.as_ref().filter(|value| !value.is_empty()) else { return Ok(None) };
    let path = PathBuf::from(value);
    if path.is_absolute() { Ok(Some(path)) } else { Err(PathError::Relative { name, path }) }
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> Surroundings {
        Surroundings { xdg_runtime_dir: Some("/run/user/7".into()), home: Some("/home/u".into()), uid: 7, ..Surroundings::default() }
    }

    #[test]
    fn the_default_is_the_xdg_directories() {
        let paths = user().paths().unwrap();
        assert_eq!(paths.socket, Path::new("/run/user/7/roost/roost.sock"));
        assert_eq!(paths.state_dir, Path::new("/home/u/.local/state/roost"));
        assert!(paths.is_default);
    }

    #[test]
    fn without_a_runtime_directory_the_socket_is_in_tmp() {
        let paths = Surroundings { xdg_runtime_dir: Some("".into()), ..user() }.paths().unwrap();
        assert_eq!(paths.socket, Path::new("/tmp/roost-7/roost.sock"));
    }

    #[test]
    fn either_path_alone_makes_a_private_daemon() {
        let by_state = Surroundings { state_dir: Some("/p".into()), ..user() }.paths().unwrap();
        assert_eq!((by_state.socket.as_path(), by_state.is_default), (Path::new("/p/roost.sock"), false));
        let by_socket = Surroundings { socket: Some("/q/s".into()), ..user() }.paths().unwrap();
        assert_eq!(by_socket.state_dir, Path::new("/q/s.state"));
        // A worker of the default daemon sees ROOST_SOCKET, and still means the default daemon.
        let in_worker = Surroundings { socket: Some("/run/user/7/roost/roost.sock".into()), ..user() }.paths().unwrap();
        assert_eq!(in_worker.state_dir, Path::new("/home/u/.local/state/roost"));
    }

    #[test]
    fn a_socket_path_may_have_107_bytes_and_no_more() {
        let of = |bytes: usize| Surroundings { socket: Some(format!("/{}", "a".repeat(bytes - 1)).into()), ..user() }.paths();
        assert!(of(107).is_ok());
        assert_eq!(of(108).map_err(|e| matches!(e, PathError::SocketTooLong { bytes: 108, .. })), Err(true));
        // Bytes, not characters.
        let wide = format!("/{}{}", "é".repeat(40), "a".repeat(27));
        assert!(Surroundings { socket: Some(wide.into()), ..user() }.paths().is_err());
    }

    #[test]
    fn no_path_depends_on_the_current_directory() {
        for (asked, name) in [
            (Surroundings { state_dir: Some("x".into()), ..user() }, "ROOST_STATE_DIR"),
            (Surroundings { state_dir: Some("x".into()), state_dir_by_flag: true, ..user() }, "--state-dir"),
            (Surroundings { socket: Some("x".into()), ..user() }, "ROOST_SOCKET"),
            (Surroundings { socket: Some("x".into()), socket_by_flag: true, ..user() }, "--socket"),
            (Surroundings { home: Some("x".into()), ..user() }, "HOME"),
        ] {
            assert_eq!(asked.paths(), Err(PathError::Relative { name, path: "x".into() }));
        }
        assert_eq!(Surroundings::default().paths(), Err(PathError::NoHome));
    }
}
