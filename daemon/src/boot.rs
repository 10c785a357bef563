//! How a broker begins: open the journal, replay it, hear from the supervisor what it holds. Only then are connections taken.
//!
//! It decides nothing: what is open after a crash follows from the state (`roost_core::recover`).

use roost_core::broker::Broker;
use roost_core::invariants;
use roost_core::state::State;
use roost_core::state::worker::Worker;
use roost_proto::link::{ChildReport, ExitStatus, LINK_VERSION, Manager, ToBroker, ToSupervisor};
use tokio::sync::mpsc;

use crate::broker::BrokerArgs;
use crate::clock::Clock;
use crate::journal::{Journal, OpenError, Recovered};
use crate::link::{LinkSender, SupervisorGone};

/// Why a broker did not begin.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The journal was not opened.
    #[error(transparent)]
    Journal(#[from] OpenError),
    /// It was read, and its records contradict each other.
    #[error(
        "the journal {} does not make sense: {why}. Nothing in it was changed. Move it (with its -wal) away to begin an empty one, \
         or report this with a copy of it", .file.display()
    )]
    Nonsense {
        /// The journal.
        file: std::path::PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The kernel does not say which boot this is.
    #[error("/proc cannot be read: {0}")]
    Proc(std::io::Error),
    /// The supervisor said nothing, or something else than hello.
    #[error("the supervisor did not say hello")]
    NoHello,
    /// Two builds.
    #[error("the supervisor speaks version {theirs} of the link and this broker {LINK_VERSION}: stop the daemon and start it again")]
    LinkVersion {
        /// Theirs.
        theirs: u32,
    },
    /// Gone already.
    #[error(transparent)]
    Supervisor(#[from] SupervisorGone),
}

impl BootError {
    /// Whether another try without a change would end alike.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Journal(error) => match error {
                OpenError::Damaged { .. } | OpenError::Newer { .. } | OpenError::NoSpace { .. } => true,
                OpenError::InUse { .. } | OpenError::Storage { .. } | OpenError::Io { .. } => false,
            },
            Self::Nonsense { .. } | Self::LinkVersion { .. } => true,
            Self::Proc(_) | Self::NoHello | Self::Supervisor(_) => false,
        }
    }
}

/// What a broker begins with.
pub struct Booted {
    /// The journal.
    pub journal: Journal,
    /// The broker, replayed.
    pub broker: Broker,
    /// The clock, going on.
    pub clock: Clock,
    /// Records since the last snapshot.
    pub since_snapshot: u64,
    /// The boot of the machine in which the journal was last written.
    pub written_in: Option<String>,
}

impl Booted {
    /// The processes of an earlier boot of the machine have ended with it, whoever has their pids now. A supervisor of this boot cannot
    /// know that: it is told of none of them. The commit of their ends is the one that writes the new boot down, so no later broker
    /// takes them for processes of this boot either.
    pub fn ended_with_their_boot(&self, greeting: &Greeting) -> Vec<ChildReport> {
        if self.written_in.as_ref().is_none_or(|boot| *boot == greeting.boot_id) {
            return Vec::new();
        }
        let is_held = |incarnation| greeting.children.iter().any(|child| child.incarnation == incarnation);
        let workers = self.broker.state().workers.values().filter(|worker| worker.has_process() && !is_held(worker.incarnation()));
        let ended = |worker: &Worker| {
            let (incarnation, process) = (worker.incarnation(), worker.process?);
            Some(ChildReport { incarnation, process, exited: Some(ExitStatus::Unknown), alive: false })
        };
        workers.filter_map(ended).collect()
    }
}

/// Opens the journal and replays it.
///
/// # Errors
/// When the journal is not certainly what this build wrote, or contradicts itself.
pub fn replay(args: &BrokerArgs) -> Result<Booted, BootError> {
    let (journal, recovered) = Journal::open(&args.paths.state_dir)?;
    for note in &recovered.notes {
        tracing::warn!(note, "journal");
    }
    let clock = Clock::resume(recovered.clock.as_ref()).map_err(BootError::Proc)?;
    let since_snapshot = recovered.records.len() as u64;
    let written_in = recovered.clock.as_ref().map(|mark| mark.boot_id.clone());
    let nonsense = |why| BootError::Nonsense { file: args.paths.state_dir.join("roost.db"), why };
    let state = state_of(recovered).map_err(nonsense)?;
    tracing::info!(events = state.seq, trees = state.open.len(), workers = state.workers.len(), "journal replayed");
    let broker = Broker::restore(state, args.cap).keeping(args.keep).retaining(args.retention_ms);
    Ok(Booted { journal, broker, clock, since_snapshot, written_in })
}

fn state_of(recovered: Recovered) -> Result<State, String> {
    let mut state = match recovered.snapshot {
        Some(snapshot) => serde_json::from_slice(&snapshot.bytes).map_err(|error| format!("its snapshot cannot be read: {error}"))?,
        None => State::default(),
    };
    for record in &recovered.records {
        state.apply(record).map_err(|error| error.to_string())?;
    }
    invariants::check(&state)?;
    Ok(state)
}

/// What the supervisor said first.
pub struct Greeting {
    /// Its process.
    pub supervisor_pid: u32,
    /// The boot that it runs in.
    pub boot_id: String,
    /// What it holds.
    pub children: Vec<ChildReport>,
    /// Who watches over the daemon.
    pub manager: Option<Manager>,
}

/// Exchanges hellos.
///
/// # Errors
/// When the supervisor is gone or of another build.
pub async fn greet(link: &LinkSender, inbox: &mut mpsc::Receiver<ToBroker>) -> Result<Greeting, BootError> {
    link.send(&ToSupervisor::Hello { version: LINK_VERSION }).await?;
    match inbox.recv().await {
        Some(ToBroker::Hello { version, .. }) if version != LINK_VERSION => Err(BootError::LinkVersion { theirs: version }),
        Some(ToBroker::Hello { version: _, supervisor_pid, boot_id, children, manager }) => {
            Ok(Greeting { supervisor_pid, boot_id, children, manager })
        }
        Some(_) | None => Err(BootError::NoHello),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_supervisor_that_speaks_another_link_is_refused() {
        let (ours, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (link, _) = crate::link::start(ours.into()).unwrap();
        let hello = |version| ToBroker::Hello { version, supervisor_pid: 7, boot_id: "b".into(), children: Vec::new(), manager: None };
        let (to, mut inbox) = mpsc::channel(2);
        to.send(hello(LINK_VERSION + 1)).await.unwrap();
        to.send(hello(LINK_VERSION)).await.unwrap();
        let refused = greet(&link, &mut inbox).await.err();
        assert!(matches!(refused, Some(BootError::LinkVersion { theirs }) if theirs == LINK_VERSION + 1), "{refused:?}");
        assert_eq!(greet(&link, &mut inbox).await.unwrap().supervisor_pid, 7);
    }
}
