//! Everything that can go wrong between a program and its daemon, each with a word for programs and a hint for people.
//!
//! It does not know exit codes: those are the command's.

use std::io;
use std::path::PathBuf;

use roost_proto::paths::PathError;
use roost_proto::rpc::{ErrorKind, ErrorObject};

/// Why a call did not get its reply.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no place for socket or state.
    #[error("{0}")]
    Path(#[from] PathError),
    /// A directory that should be ours belongs to somebody else.
    #[error("{variable} is {}, which belongs to uid {owner}, and we are uid {uid}", path.display())]
    ForeignDirectory {
        /// What named it.
        variable: &'static str,
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        uid: u32,
    },
    /// The process behind the socket is not ours.
    #[error("the process that listens on {} belongs to uid {owner}, and we are uid {uid}", socket.display())]
    ForeignServer {
        /// The socket.
        socket: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who we are.
        uid: u32,
    },
    /// Nobody listens, and a start was not wanted.
    #[error("no daemon listens on {}", socket.display())]
    NoDaemon {
        /// The socket.
        socket: PathBuf,
    },
    /// The program `roostd` was not found.
    #[error("`roostd` is neither in {} nor on PATH", beside.display())]
    DaemonMissing {
        /// The directory of our own program.
        beside: PathBuf,
    },
    /// The daemon did not start.
    #[error("the daemon did not start: {message}")]
    DaemonStart {
        /// What it said, or what is known of its end.
        message: String,
        /// Its log.
        log: PathBuf,
    },
    /// Systemd, which starts the daemon here, does not.
    #[error("systemd does not start {unit}: {message}")]
    Unit {
        /// Which unit.
        unit: &'static str,
        /// What it said.
        message: String,
    },
    /// Another daemon has the state directory, and it does not listen where we looked.
    #[error("another daemon{} holds {}, and it does not listen on {}", pid_text(*pid), state_dir.display(), socket.display())]
    LockHeld {
        /// Its process, as the lock file says.
        pid: Option<u32>,
        /// The state directory.
        state_dir: PathBuf,
        /// Where we looked.
        socket: PathBuf,
    },
    /// The daemon is there and says nothing.
    #[error("the daemon on {}{} did not answer `{method}` within {seconds} s", socket.display(), pid_text(*pid))]
    Unanswered {
        /// The method.
        method: &'static str,
        /// How long was waited.
        seconds: u64,
        /// The socket.
        socket: PathBuf,
        /// The daemon's process, as the lock file says.
        pid: Option<u32>,
    },
    /// The connection broke and did not come back.
    #[error("the connection to the daemon on {} is lost: {source}", socket.display())]
    Lost {
        /// The socket.
        socket: PathBuf,
        /// How it broke.
        source: io::Error,
    },
    /// The daemon refused.
    #[error("{}", .0.message)]
    Refused(ErrorObject),
    /// What came back is not the protocol.
    #[error("the daemon's answer to `{method}` cannot be read: {message}")]
    Protocol {
        /// The method.
        method: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// An environment variable that Roost sets does not hold what Roost set.
    #[error("{variable} is wrong: {message}")]
    Environment {
        /// Which.
        variable: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// Something that is sent is too large.
    #[error("{what} has {bytes} bytes, and the limit is {limit}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// Why not.
        source: io::Error,
    },
}

impl Error {
    /// An [`Error::Io`] that says what was tried.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// The kind of a refusal by the daemon.
    pub fn refusal(&self) -> Option<ErrorKind> {
        if let Self::Refused(object) = self { Some(object.data.kind) } else { None }
    }

    /// One word for a program: the daemon's own for a refusal.
    pub fn kind(&self) -> String {
        match self {
            Self::Path(_) => "path".into(),
            Self::ForeignDirectory { .. } => "foreign_directory".into(),
            Self::ForeignServer { .. } => "foreign_server".into(),
            Self::NoDaemon { .. } => "no_daemon".into(),
            Self::DaemonMissing { .. } => "daemon_missing".into(),
            Self::DaemonStart { .. } => "daemon_start".into(),
            Self::Unit { .. } => "unit".into(),
            Self::LockHeld { .. } => "lock_held".into(),
            Self::Unanswered { .. } => "unanswered".into(),
            Self::Lost { .. } => "lost".into(),
            Self::Refused(object) => kind_text(object.data.kind),
            Self::Protocol { .. } => "protocol".into(),
            Self::Environment { .. } => "environment".into(),
            Self::TooLarge { .. } => "too_large".into(),
            Self::Io { .. } => "io".into(),
        }
    }

    /// What to do next, when there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::ForeignDirectory { variable, .. } => {
                Some(format!("after su or sudo {variable} still names the other user's; unset it, or set ROOST_SOCKET and ROOST_STATE_DIR"))
            }
            Self::ForeignServer { socket, .. } => Some(format!("remove {} if nobody of yours needs it", socket.display())),
            Self::NoDaemon { .. } => Some("`roost daemon start` starts one".into()),
            Self::DaemonMissing { .. } => Some("install roostd beside roost".into()),
            Self::DaemonStart { log, .. } => Some(format!("its log is {}", log.display())),
            Self::Unit { .. } => {
                Some("`journalctl --user -u roostd` says why; then `systemctl --user reset-failed roostd.service roostd.socket`".into())
            }
            Self::LockHeld { .. } => Some(
                "was XDG_RUNTIME_DIR (or ROOST_SOCKET) another one when it was started? Set it to the same, or stop that daemon".into(),
            ),
            Self::Unanswered { pid, .. } => {
                pid.map(|pid| format!("see whether process {pid} hangs; `kill {pid}` ends it, and no work is lost"))
            }
            Self::Refused(object) => object.data.hint.clone().or_else(|| hint_of(object.data.kind).map(Into::into)),
            Self::Protocol { .. } => Some("are roost and roostd of the same version? See `roost daemon status`".into()),
            Self::Environment { .. } => Some(
                "Roost sets its variables together; unset ROOST_TREE to leave the tree, or open another one with: eval \"$(roost open)\""
                    .into(),
            ),
            Self::Path(_) | Self::Lost { .. } | Self::TooLarge { .. } | Self::Io { .. } => None,
        }
    }
}

/// Hints that hold whatever the call was, for refusals that came without one.
fn hint_of(kind: ErrorKind) -> Option<&'static str> {
    if kind == ErrorKind::NoTree {
        Some("open a tree first: eval \"$(roost open)\", or run the command under `roost run`")
    } else if kind == ErrorKind::UnknownWorker {
        Some("`roost status` lists the names")
    } else {
        None
    }
}

/// The word that stands for this kind on the wire.
pub fn kind_text(kind: ErrorKind) -> String {
    let json = serde_json::to_string(&kind).unwrap_or_default();
    json.trim_matches('"').to_owned()
}

fn pid_text(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}
