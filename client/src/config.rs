//! Where the daemon is and who we are, from the environment and what the caller asks for.
//!
//! The only reader of `ROOST_*`, `XDG_*` and `HOME`; it opens no connection.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use roost_proto::message::session::Identity;
use roost_proto::paths::{Paths, Surroundings};

use crate::error::Error;
use crate::owner;

/// What to do when nobody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Start the daemon.
    OnDemand,
    /// Fail at once.
    Never,
    /// Wait for it to come back, and for its answers, as long as that takes. Inside a worker: a daemon that it started would be one
    /// of its descendants and end with it, and the next daemon adopts the worker, whenever it comes.
    Await,
}

/// How to reach a daemon, and as whom.
#[derive(Debug, Clone)]
pub struct Config {
    /// Socket and state directory.
    pub paths: Paths,
    /// The tree and the worker that we speak for; `None` for an operator.
    pub identity: Option<Identity>,
    /// What to do when nobody listens.
    pub start: Start,
    /// Program and version, for the daemon's log.
    pub client: String,
    /// The program to start as the daemon; `None` for `roostd` beside our own program, else on `PATH`.
    pub daemon: Option<PathBuf>,
    /// Further flags of that program, when we start it.
    pub daemon_flags: Vec<OsString>,
    /// How long a call that does not block by nature, hello included, may stay unanswered. Not inside a worker: see [`Start::Await`].
    pub answer_within: Duration,
    /// How long a daemon that went away may take to come back, for the same calls and for a role. Not inside a worker either.
    pub back_within: Duration,
}

/// The usual [`Config::answer_within`].
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The usual [`Config::back_within`].
const BACK_WITHIN: Duration = Duration::from_secs(60);

/// Paths that were asked for; they win over the environment.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The socket.
    pub socket: Option<OsString>,
    /// The state directory.
    pub state_dir: Option<OsString>,
}

impl Config {
    /// What the environment says.
    pub fn from_env() -> Result<Self, Error> {
        Self::with_places(Places::default())
    }

    /// What the environment says, these paths first.
    pub fn with_places(places: Places) -> Result<Self, Error> {
        let uid = rustix::process::geteuid().as_raw();
        let surroundings = Surroundings {
            socket: places.socket.filter(|text| !text.is_empty()).or_else(|| variable("ROOST_SOCKET")),
            state_dir: places.state_dir.filter(|text| !text.is_empty()).or_else(|| variable("ROOST_STATE_DIR")),
            xdg_runtime_dir: variable("XDG_RUNTIME_DIR"),
            xdg_state_home: variable("XDG_STATE_HOME"),
            // Falls back to the passwd entry.
            home: env::home_dir().map(Into::into),
            uid,
        };
        owner::check(&surroundings)?;
        let paths = surroundings.paths()?;
        let identity = identity()?;
        let start = if variable("ROOST_NO_START").is_some_and(|value| value != "0") {
            Start::Never
        } else if identity.as_ref().is_some_and(|identity| identity.worker.is_some()) {
            Start::Await
        } else {
            Start::OnDemand
        };
        Ok(Self {
            paths,
            identity,
            start,
            client: concat!("roost ", env!("CARGO_PKG_VERSION")).into(),
            daemon: None,
            daemon_flags: Vec::new(),
            answer_within: ANSWER_WITHIN,
            back_within: BACK_WITHIN,
        })
    }

    /// The same daemon, as an operator: from there a tree can be opened or attached to.
    pub fn without_identity(self) -> Self {
        Self { identity: None, ..self }
    }
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// `ROOST_TREE`, `ROOST_WORKER`, `ROOST_TOKEN`, `ROOST_EPOCH`; nothing at all is fine, a half is not.
fn identity() -> Result<Option<Identity>, Error> {
    let Some(tree) = parsed("ROOST_TREE")? else { return Ok(None) };
    let token = parsed("ROOST_TOKEN")?.ok_or_else(|| missing("ROOST_TOKEN", "ROOST_TREE"))?;
    let worker = parsed("ROOST_WORKER")?;
    let epoch = match worker {
        Some(_) => Some(roost_proto::id::Epoch(parsed("ROOST_EPOCH")?.ok_or_else(|| missing("ROOST_EPOCH", "ROOST_WORKER"))?)),
        None => None,
    };
    Ok(Some(Identity { tree, worker, token, epoch }))
}

fn missing(variable: &'static str, other: &str) -> Error {
    Error::Environment { variable, message: format!("it is not set, although {other} is") }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &'static str) -> Result<Option<T>, Error> {
    let Some(value) = variable(name) else { return Ok(None) };
    let text = value.to_str().ok_or_else(|| Error::Environment { variable: name, message: "it is not UTF-8".into() })?;
    text.parse().map(Some).map_err(|error: T::Err| Error::Environment { variable: name, message: error.to_string() })
}
