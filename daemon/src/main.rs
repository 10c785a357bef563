//! `roostd`: which process am I, and the one exit.
//!
//! It knows the flags and the log; what the processes do is in the library.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use roost_config::Around;
use roostd::broker::{self, BrokerArgs};
use roostd::config::{BrokerFlags, Cli, Role};
use roostd::configured;
use roostd::logging;
use roostd::process::spawn;
use roostd::supervisor::broker_process::{LINK_DESCRIPTOR, LISTENER_DESCRIPTOR, LOCK_DESCRIPTOR};
use roostd::supervisor::{self, detach};

fn main() -> ExitCode {
    let given = Cli::command().get_matches();
    let mut cli = Cli::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    logging::to_stderr();
    // Whatever our starter left open or blocked stays with us, at most.
    if let Err(error) = spawn::seal_descriptors().and_then(|()| spawn::unblock_signals()) {
        tracing::warn!(%error, "inherited descriptors or blocked signals stay");
    }
    // Another process of this daemon has everything as flags.
    if cli.role.is_none()
        && !cli.daemon.detached
        && let Err(message) = configured::fill(&mut cli.daemon, &given, &Around::from_env().without_project())
    {
        return supervisor::refuse(&cli.daemon, &message);
    }
    match cli.role {
        Some(Role::Broker(flags)) => run_broker(&flags),
        None if cli.daemon.detach && !cli.daemon.detached => detach::start(&cli.daemon),
        None => supervisor::run(&cli.daemon),
    }
}

fn run_broker(flags: &BrokerFlags) -> ExitCode {
    // Held until the process ends, whatever the broker does: see `LOCK_DESCRIPTOR`.
    let lock = spawn::inherited(LOCK_DESCRIPTOR);
    let taken = spawn::inherited(LINK_DESCRIPTOR).and_then(|link| Ok((link, spawn::inherited(LISTENER_DESCRIPTOR)?)));
    let (Ok((link, listener)), Ok(_lock)) = (taken, lock) else {
        tracing::error!("`roostd broker` is started by the supervisor, with its descriptors; run `roostd`");
        return ExitCode::from(2);
    };
    let idle_exit_ms = flags.idle_exit.saturating_mul(1000);
    broker::run(BrokerArgs {
        paths: flags.paths(),
        link,
        listener,
        idle_exit_ms,
        cap: flags.cap,
        keep: flags.keep,
        retention_ms: flags.retention,
    })
}
