//! Where the daemon is and who we are, from the environment and what the caller asks for.
//!
//! The only reader of `ROOST_*`, `XDG_*` and `HOME`, but for what is configured (`roost-config`); it opens no connection.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use roost_proto::id::Epoch;
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
    /// Where units of the user's systemd are written.
    pub unit_directory: Option<PathBuf>,
    /// Whether a unit of systemd listens for this daemon, once it is asked to.
    pub by_unit: bool,
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
        let [socket, state_dir] = [places.socket, places.state_dir].map(|place| place.filter(|text| !text.is_empty()));
        let surroundings = Surroundings {
            // What the variable says too was asked for by nobody in particular: a worker hands its own on as flags.
            socket_by_flag: socket.is_some() && socket != variable("ROOST_SOCKET"),
            state_dir_by_flag: state_dir.is_some() && state_dir != variable("ROOST_STATE_DIR"),
            socket: socket.or_else(|| variable("ROOST_SOCKET")),
            state_dir: state_dir.or_else(|| variable("ROOST_STATE_DIR")),
            xdg_runtime_dir: variable("XDG_RUNTIME_DIR"),
            xdg_state_home: variable("XDG_STATE_HOME"),
            // Falls back to the passwd entry.
            home: env::home_dir().map(Into::into),
            uid,
        };
        owner::check(&surroundings)?;
        let paths = surroundings.paths()?;
        let identity = identity()?;
        let start = if variable("ROOST_NO_START").is_some_and(|value| !is_no(&value)) {
            Start::Never
        } else if identity.as_ref().is_some_and(|identity| identity.worker.is_some()) {
            Start::Await
        } else {
            Start::OnDemand
        };
        let unit_directory = unit_directory(&surroundings);
        let by_unit = paths.is_default && has_unit(&surroundings, unit_directory.as_deref());
        Ok(Self {
            paths,
            identity,
            start,
            unit_directory,
            by_unit,
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

/// Where packages put units for the managers of all users.
const UNIT_DIRECTORIES: [&str; 3] = ["/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"];

fn unit_directory(surroundings: &Surroundings) -> Option<PathBuf> {
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| Some(Path::new(surroundings.home.as_ref()?).join(".config")));
    config.map(|config| config.join("systemd/user"))
}

/// Whether the user has a manager of units that knows our socket.
fn has_unit(surroundings: &Surroundings, own: Option<&Path>) -> bool {
    let runs = surroundings.xdg_runtime_dir.as_ref().is_some_and(|directory| Path::new(directory).join("systemd/private").exists());
    let unit = |directory: &Path| directory.join("roostd.socket");
    // The first one counts, and one that is masked is a link to /dev/null.
    let found = own.into_iter().chain(UNIT_DIRECTORIES.map(Path::new)).map(unit).find(|unit| unit.exists());
    runs && found.is_some_and(|unit| unit.is_file())
}

/// The usual words for no.
fn is_no(value: &OsStr) -> bool {
    ["0", "n", "no", "f", "false", "off"].iter().any(|no| value.eq_ignore_ascii_case(no))
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
        Some(_) => Some(epoch()?.ok_or_else(|| missing("ROOST_EPOCH", "ROOST_WORKER"))?),
        None => None,
    };
    Ok(Some(Identity { tree, worker, token, epoch }))
}

fn epoch() -> Result<Option<Epoch>, Error> {
    let bad = |_| Error::Environment { variable: "ROOST_EPOCH", message: "expected a whole number".into() };
    variable("ROOST_EPOCH").map(|value| value.to_string_lossy().parse().map(Epoch).map_err(bad)).transpose()
}

fn missing(variable: &'static str, other: &str) -> Error {
    Error::Environment { variable, message: format!("it is not set, although {other} is") }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &'static str) -> Result<Option<T>, Error> {
    let Some(value) = variable(name) else { return Ok(None) };
    let text = value.to_str().ok_or_else(|| Error::Environment { variable: name, message: "it is not UTF-8".into() })?;
    text.parse().map(Some).map_err(|error: T::Err| Error::Environment { variable: name, message: error.to_string() })
}
