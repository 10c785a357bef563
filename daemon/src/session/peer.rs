//! Who is at the other end of a connection, by the kernel's word: user, process, ancestors.
//!
//! It does not know workers; the core compares. A pid is the one of the process that connected: by the time of a `hello` it may
//! have ended and its number may be somebody else's, which is why a worker's token is asked for as well.

use std::io;

use roost_proto::limits::ANCESTORS_MAX;

use interprocess::local_socket::traits::StreamCommon;
use interprocess::os::unix::uds_local_socket::tokio::Stream;

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
pub fn lineage(pid: u32) -> Vec<u32> {
    let Some((mut parent, session)) = parent_and_session(pid) else { return Vec::new() };
    let mut line = vec![pid];
    while parent > 1 && line.len() < ANCESTORS_MAX {
        line.push(parent);
        match parent_and_session(parent) {
            Some((next, _)) => parent = next,
            None => break,
        }
    }
    if session > 1 && !line.contains(&session) {
        line.push(session);
    }
    line
}

fn parent_and_session(pid: u32) -> Option<(u32, u32)> {
    parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// `pid (comm) state ppid pgrp session ...`; the name of a program may hold anything, so fields count from its last parenthesis.
fn parse(stat: &[u8]) -> Option<(u32, u32)> {
    let after = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[after..]).ok()?.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    Some((parent, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        assert_eq!(parse(b"12 (a) R 9 (x) S 7 8 5 0 -1"), Some((7, 5)));
        assert_eq!(parse(b"12 (\xff sh) S 7 8 0 0 -1"), Some((7, 0)));
        for bad in [&b""[..], b"12 sh S 7", b"12 (sh) S", b"12 (sh) S x y z", b")"] {
            assert_eq!(parse(bad), None);
        }
    }

    #[test]
    fn a_child_descends_from_us() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let line = lineage(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(line[..2], [child.id(), std::process::id()]);
        assert!(!line.contains(&1) && !line.contains(&0));
        assert!(lineage(u32::MAX).is_empty());
    }
}
