//! Who is at the other end of a connection, by the kernel's word: user, process, ancestors.
//!
//! It does not know workers; the core compares. A pid is the one of the process that connected: by the time of a `hello` it may
//! have ended and its number may be somebody else's, which is why a worker's token is asked for as well.

use std::io;

use roost_proto::limits::ANCESTORS_MAX;
use roost_proto::link::ProcessIdentity;

use interprocess::local_socket::traits::StreamCommon;
use interprocess::os::unix::uds_local_socket::tokio::Stream;

use crate::identity;

/// The process that connected.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Its process, unless that is of another pid namespace.
    pub pid: Option<u32>,
    /// Whether it runs as our user.
    pub is_ours: bool,
}

/// Asks the kernel.
pub fn of(stream: &Stream) -> io::Result<Peer> {
    let credentials = stream.peer_creds()?;
    let pid = credentials.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    let is_ours = credentials.euid() == Some(rustix::process::geteuid().as_raw());
    Ok(Peer { pid, is_ours })
}

/// The process, what it descends from, and its session's leader. Empty when the process is gone.
pub fn lineage(pid: u32) -> Vec<ProcessIdentity> {
    let Some(first) = identity::stat(pid) else { return Vec::new() };
    let mut line = vec![first.process];
    let mut parent = first.parent;
    while parent > 1
        && line.len() < ANCESTORS_MAX
        && let Some(found) = identity::stat(parent)
    {
        line.push(found.process);
        parent = found.parent;
    }
    let leader = identity::stat(first.session).map(|leader| leader.process).filter(|leader| leader.pid > 1 && !line.contains(leader));
    line.extend(leader);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_descends_from_us() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let line = lineage(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        let pids: Vec<u32> = line.iter().map(|process| process.pid).collect();
        assert_eq!(pids[..2], [child.id(), std::process::id()]);
        assert!(!pids.contains(&1) && !pids.contains(&0));
        assert!(lineage(u32::MAX).is_empty());
    }
}
