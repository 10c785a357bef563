//! `--detach`: starts the daemon in the background, passes on its one line, and ends as it did.
//!
//! The daemon is a new process in a new session with a scrubbed environment, so that neither its session, nor its parents, nor
//! `/proc/PID/environ` make it look like a part of the worker that may have started it.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::ExitCode;

use roost_proto::link::ExitStatus;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, geteuid, waitpid};

use super::broker_process::own_program;
use crate::config::{DaemonFlags, EXIT_REFUSED, scrubbed};
use crate::process::spawn::{Launch, launch};

/// Starts it and waits for its line.
pub fn start(flags: &DaemonFlags) -> ExitCode {
    match start_and_wait(flags) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&format!("error: the daemon cannot be started: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn start_and_wait(flags: &DaemonFlags) -> io::Result<u8> {
    // The process in the background gets all of it as flags, and could not say any more what had named a path.
    if let Err(error) = flags.surroundings(geteuid().as_raw()).paths() {
        say(&format!("error: {error}\n"));
        return Ok(EXIT_REFUSED);
    }
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let null = File::open("/dev/null")?;
    let stderr = io::stderr();
    let program = CString::new(own_program()?.into_os_string().into_vec())?;
    let mut arguments = flags.arguments();
    arguments.push("--detached".into());
    let arguments = arguments.iter().map(|argument| CString::new(argument.as_bytes()));
    let argv = std::iter::once(Ok(program.clone())).chain(arguments).collect::<Result<Vec<_>, _>>()?;
    let entry = |(name, value): (OsString, OsString)| CString::new([name.into_vec(), value.into_vec()].join(&b'='));
    let env = scrubbed(std::env::vars_os()).into_iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    let descriptors = [(null.as_fd(), 0), (write.as_fd(), 1), (stderr.as_fd(), 2)];
    let pid = launch(&Launch { program: &program, argv: &argv, env: &env, cwd: c"/", descriptors: &descriptors })?;
    drop(write);
    let mut line = String::new();
    BufReader::new(File::from(read)).read_line(&mut line)?;
    if line == "ready\n" {
        say(&line);
        return Ok(0);
    }
    let status = wait(pid)?;
    if line.is_empty() {
        line = format!("error: the daemon ended before it was ready ({})\n", super::broker_process::describe(status));
    }
    say(&line);
    Ok(match status {
        ExitStatus::Code(code) => u8::try_from(code).ok().filter(|code| *code != 0).unwrap_or(1),
        ExitStatus::Signal(_) | ExitStatus::Unknown => 1,
    })
}

fn wait(pid: u32) -> io::Result<ExitStatus> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let ended = waitpid(pid, WaitOptions::empty())?;
    let status = ended.map(|(_, status)| status);
    let code = status.and_then(|status| status.exit_status()).map(ExitStatus::Code);
    let signal = status.and_then(|status| status.terminating_signal()).map(ExitStatus::Signal);
    Ok(code.or(signal).unwrap_or(ExitStatus::Unknown))
}

/// That nobody listens is no reason to end otherwise.
fn say(line: &str) {
    let mut stdout = io::stdout();
    if let Err(error) = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()) {
        tracing::debug!(%error, "nobody reads standard output");
    }
}
