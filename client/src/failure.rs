//! What ends a command other than its own result, and how it is shown: a line and a hint, or one JSON object.

use std::io;

use roost::Error;

use crate::exit::Exit;

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library says why.
    #[error("{0}")]
    Client(#[from] Error),
    /// The command line, or the place where it was used, is wrong.
    #[error("{message}")]
    Usage {
        /// One word for a program.
        kind: &'static str,
        /// What is wrong.
        message: String,
        /// What to do instead.
        hint: Option<String>,
    },
    /// The user's systemd, or what runs under it, does not allow it.
    #[error("{message}")]
    Service {
        /// What is wrong.
        message: String,
        /// What to do next.
        hint: &'static str,
    },
    /// Something that was to be read cannot be.
    #[error("cannot read {what}: {source}")]
    Input {
        /// What.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// Standard output does not take what we write.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// A wrong value or combination on the command line.
    pub fn usage(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Usage { kind: "usage", message: message.into(), hint: hint.map(Into::into) }
    }

    /// Something about the units of systemd.
    pub fn service(message: impl Into<String>, hint: &'static str) -> Self {
        Self::Service { message: message.into(), hint }
    }

    /// The command needs a tree and there is none.
    pub fn no_tree() -> Self {
        Self::Usage {
            kind: "no_tree",
            message: "this command works in a tree, and ROOST_TREE is not set".into(),
            hint: Some("open one with  eval \"$(roost open)\"  or name one with --tree ID (`roost status` lists them)".into()),
        }
    }

    /// One word for a program.
    pub fn kind(&self) -> String {
        match self {
            Self::Client(error) => error.kind(),
            Self::Usage { kind, .. } => (*kind).into(),
            Self::Service { .. } => "service".into(),
            Self::Input { .. } => "input".into(),
            Self::Output(_) => "output".into(),
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Client(error) => error.hint(),
            Self::Usage { hint, .. } => hint.clone(),
            Self::Service { hint, .. } => Some((*hint).into()),
            Self::Input { .. } | Self::Output(_) => None,
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Client(error) => of_client(error),
            Self::Usage { .. } => Exit::Usage,
            Self::Input { .. } | Self::Service { .. } => Exit::NotCompleted,
            // Whoever read it has seen enough.
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Ok,
            Self::Output(_) => Exit::NotCompleted,
        }
    }
}

fn of_client(error: &Error) -> Exit {
    match error {
        Error::NoDaemon { .. }
        | Error::DaemonMissing { .. }
        | Error::DaemonStart { .. }
        | Error::Unit { .. }
        | Error::LockHeld { .. }
        | Error::Unanswered { .. }
        | Error::Lost { .. }
        | Error::ForeignServer { .. } => Exit::NoDaemon,
        Error::Path(_) | Error::ForeignDirectory { .. } | Error::Environment { .. } | Error::TooLarge { .. } => Exit::Usage,
        Error::Refused(_) | Error::Protocol { .. } | Error::Io { .. } => Exit::NotCompleted,
    }
}
