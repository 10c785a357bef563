//! What a launch says of the process that submits it, and ids that make a repeated request the same request.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use roost_proto::bytes::Bytes;
use roost_proto::message::launch::{Runner, Submitter, Task};

use crate::error::Error;

/// A fresh request id: 32 random hexadecimal digits.
pub fn request_id() -> Result<String, Error> {
    let mut random = [0_u8; 16];
    let mut filled = 0;
    while filled < random.len() {
        let got = rustix::rand::getrandom(&mut random[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Error::Io { what: "cannot draw a random number".into(), source: error.into() })?;
        filled += got;
    }
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Environment, working directory and umask of this process.
pub fn submitter() -> Result<Submitter, Error> {
    // What Roost set for us is not passed on; a token least of all.
    let env = env::vars_os().filter(|(name, _)| !name.as_bytes().starts_with(b"ROOST_")).map(|(name, value)| (name.into(), value.into()));
    let cwd = env::current_dir().map_err(Error::io("the working directory cannot be used"))?;
    Ok(Submitter { env: env.collect(), cwd: cwd.into_os_string().into(), umask: umask()? })
}

/// A task that runs this program with these arguments; everything else at its default.
pub fn task<A: AsRef<OsStr>>(argv: impl IntoIterator<Item = A>) -> Task {
    Task { argv: argv.into_iter().map(|word| Bytes::from(word.as_ref())).collect(), ..Task::default() }
}

/// A task that speaks the worker protocol and is told this; everything else at its default.
pub fn worker_task<A: AsRef<OsStr>>(argv: impl IntoIterator<Item = A>, text: impl Into<String>) -> Task {
    Task { runner: Runner::Worker, task: text.into(), ..task(argv) }
}

/// Read from /proc: umask(2) can only tell it by changing it, which other threads would see.
fn umask() -> Result<u32, Error> {
    let status = fs::read_to_string("/proc/self/status").map_err(Error::io("cannot read /proc/self/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    Ok(line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o077))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_differ_and_the_submitter_is_ours() {
        assert_ne!(request_id().unwrap(), request_id().unwrap());
        let submitter = submitter().unwrap();
        assert_eq!(submitter.cwd.as_os_str(), env::current_dir().unwrap());
        assert!(submitter.umask <= 0o777);
        assert!(!submitter.env.iter().any(|(name, _)| name.0.starts_with(b"ROOST_")));
    }
}
