//! Being written.

use std::os::fd::OwnedFd;
use std::process::ExitCode;

use roost_proto::paths::Paths;

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
}

/// Runs the broker.
pub fn run(args: BrokerArgs) -> ExitCode {
    drop(args);
    ExitCode::FAILURE
}
