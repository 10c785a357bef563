//! The broker process: boot, then the driver's loop, then one orderly exit.

use std::os::fd::OwnedFd;
use std::process::ExitCode;

use roost_proto::limits::DRIVER_INBOX_MAX;
use roost_proto::link::ToSupervisor;
use roost_proto::paths::Paths;
use tokio::sync::mpsc;

use crate::boot::{self, BootError};
use crate::config::EXIT_REFUSED;
use crate::driver::{Driver, DriverError, End};
use crate::link::SupervisorGone;
use crate::{link, logging, session};

/// What the supervisor hands to the broker that it starts.
#[derive(Debug)]
pub struct BrokerArgs {
    /// Where this daemon lives.
    pub paths: Paths,
    /// The socket pair to the supervisor, in blocking mode.
    pub link: OwnedFd,
    /// The listening socket, in non-blocking mode. Not ours to unlink.
    pub listener: OwnedFd,
    /// After how much time without tree and client the daemon leaves; 0 is never.
    pub idle_exit_ms: u64,
    /// The cap over all trees, if there is one.
    pub cap: Option<u32>,
    /// Most ended workers of closed trees that are kept.
    pub keep: usize,
    /// For how long closed trees are kept, in milliseconds; 0 is no end by age.
    pub retention_ms: u64,
}

/// Why a broker ended that should not have.
#[derive(Debug, thiserror::Error)]
enum BrokerError {
    #[error(transparent)]
    Boot(#[from] BootError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error(transparent)]
    Supervisor(#[from] SupervisorGone),
    #[error("the broker's runtime or its sockets do not work: {0}")]
    Io(#[from] std::io::Error),
}

/// Runs the broker. A line `error: ...` on standard error says why it did not, for the supervisor and for whoever waits on it.
pub fn run(args: BrokerArgs) -> ExitCode {
    match run_inner(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::line(&format!("error: {error}"));
            let is_final = matches!(&error, BrokerError::Boot(boot) if boot.is_final());
            ExitCode::from(if is_final { EXIT_REFUSED } else { 1 })
        }
    }
}

fn run_inner(args: BrokerArgs) -> Result<(), BrokerError> {
    let booted = boot::replay(&args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(serve(args, booted));
    // Whoever looks at a file system that hangs must not hold up the exit.
    runtime.shutdown_background();
    ended
}

async fn serve(args: BrokerArgs, booted: boot::Booted) -> Result<(), BrokerError> {
    let (link, mut supervisor) = link::start(args.link)?;
    let mut greeting = boot::greet(&link, &mut supervisor).await?;
    greeting.children.extend(booted.ended_with_their_boot(&greeting));
    let state_dir = args.paths.state_dir.clone();
    let mut driver = Driver::new(booted, link.clone(), args.paths, &greeting, args.idle_exit_ms);
    let (inbox, mut sessions) = mpsc::channel(DRIVER_INBOX_MAX);
    let listening = tokio::spawn(session::serve(args.listener, inbox, state_dir));
    driver.reconcile(greeting.children, &mut sessions).await?;
    let end = tokio::select! {
        end = driver.run(supervisor, sessions) => end?,
        failed = listening => return Err(failed.unwrap_or_else(std::io::Error::other).into()),
    };
    let last_word = match end {
        End::Leave => ToSupervisor::Shutdown,
        End::Restart => ToSupervisor::Restart,
    };
    link.send(&last_word).await?;
    // The exit itself would cut the word off.
    link.flushed().await;
    Ok(())
}
