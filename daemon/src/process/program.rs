//! Finds a worker's program as `execvp` would in the worker's own surroundings, and says what was at fault when it cannot run.
//!
//! It looks at files only; it starts nothing.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Where a program is looked for when the environment has no `PATH`.
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why a process could not be started. Paths are shown quoted and escaped: they are data.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// `argv` has no element.
    #[error("there is no program to start: the argument list is empty")]
    NoArguments,
    /// The kernel's strings end at a NUL.
    #[error("{what} has a NUL byte in it")]
    Nul {
        /// What.
        what: &'static str,
    },
    /// An environment entry that is not a `NAME` and a value.
    #[error("the environment variable name {name:?} is empty or has a `=` in it")]
    BadVariable {
        /// The name.
        name: String,
    },
    /// The daemon's own directory means nothing to the worker.
    #[error("the working directory {cwd:?} is not an absolute path")]
    CwdRelative {
        /// The directory.
        cwd: PathBuf,
    },
    /// Gone, or never there.
    #[error("the working directory {cwd:?} does not exist")]
    CwdMissing {
        /// The directory.
        cwd: PathBuf,
    },
    /// Something else has that name.
    #[error("the working directory {cwd:?} is not a directory")]
    CwdNotDirectory {
        /// The directory.
        cwd: PathBuf,
    },
    /// No search permission on it or above it.
    #[error("no permission to enter the working directory {cwd:?}")]
    CwdForbidden {
        /// The directory.
        cwd: PathBuf,
    },
    /// Anything else.
    #[error("the working directory {cwd:?} cannot be used: {source}")]
    Cwd {
        /// The directory.
        cwd: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A bare name that no directory of `PATH` has.
    #[error("the program {name:?} was not found on PATH ({path})")]
    NotFound {
        /// The name.
        name: PathBuf,
        /// Where it was looked for.
        path: String,
    },
    /// A path that leads nowhere.
    #[error("the program {program:?} does not exist")]
    Missing {
        /// The program.
        program: PathBuf,
    },
    /// A directory has that name.
    #[error("the program {program:?} is a directory")]
    IsDirectory {
        /// The program.
        program: PathBuf,
    },
    /// No exec bit, or no way to it.
    #[error("the program {program:?} is not executable (permission denied)")]
    NotExecutable {
        /// The program.
        program: PathBuf,
    },
    /// The interpreter of a script, or the loader of a binary.
    #[error("the program {program:?} needs the interpreter {interpreter}, which does not exist or cannot be executed")]
    Interpreter {
        /// The program.
        program: PathBuf,
        /// What its first line says.
        interpreter: String,
    },
    /// Neither a binary of this machine nor a script.
    #[error("the program {program:?} is not of a format that this machine can execute")]
    Format {
        /// The program.
        program: PathBuf,
    },
    /// E2BIG.
    #[error(
        "arguments and environment are too large together ({bytes} bytes; one argument may have 128 KiB): long texts go through standard input or a file"
    )]
    TooLarge {
        /// How large.
        bytes: usize,
    },
    /// A file of the worker's standard streams.
    #[error("the {what} file {path:?} cannot be opened: {source}")]
    File {
        /// Which.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Whatever else the kernel said.
    #[error("the program {program:?} cannot be started: {source}")]
    Other {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl SpawnError {
    /// Whether trying again later may help: memory, process slots, descriptors or disk space were short, or a file was busy.
    pub fn is_transient(&self) -> bool {
        let (Self::File { source, .. } | Self::Other { source, .. } | Self::Cwd { source, .. }) = self else { return false };
        let short = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::ENOSPC, libc::EDQUOT, libc::ETXTBSY];
        source.raw_os_error().is_some_and(|code| short.contains(&code))
    }
}

/// Whether a process may have this working directory.
pub fn check_cwd(cwd: &Path) -> Result<(), SpawnError> {
    if !cwd.is_absolute() {
        return Err(SpawnError::CwdRelative { cwd: cwd.into() });
    }
    let verdict = fs::metadata(cwd).and_then(|found| {
        if !found.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        }
        Ok(access(cwd, Access::EXEC_OK)?)
    });
    let Err(source) = verdict else { return Ok(()) };
    let cwd = cwd.to_path_buf();
    Err(match source.raw_os_error() {
        Some(libc::ENOENT) => SpawnError::CwdMissing { cwd },
        Some(libc::ENOTDIR) => SpawnError::CwdNotDirectory { cwd },
        Some(libc::EACCES) => SpawnError::CwdForbidden { cwd },
        Some(_) | None => SpawnError::Cwd { cwd, source },
    })
}

/// The file to execute for this name: with a `/` relative to `cwd`, else the first executable one on `PATH`.
pub fn resolve(name: &[u8], cwd: &Path, path: Option<&[u8]>) -> Result<PathBuf, SpawnError> {
    let name = Path::new(OsStr::from_bytes(name));
    if name.as_os_str().as_bytes().contains(&b'/') {
        let program = cwd.join(name);
        return check_program(&program).map(|()| program);
    }
    let path = path.unwrap_or(DEFAULT_PATH.as_bytes());
    let mut at_fault = None;
    if !name.as_os_str().is_empty() {
        for directory in path.split(|byte| *byte == b':') {
            // An empty element is the working directory; `join` does that, and takes an absolute one as it is.
            let program = cwd.join(OsStr::from_bytes(directory)).join(name);
            match check_program(&program) {
                Ok(()) => return Ok(program),
                // As in execvp: what is there and cannot be run is told only when nothing else can.
                Err(error @ SpawnError::NotExecutable { .. }) => at_fault = at_fault.or(Some(error)),
                Err(_) => {}
            }
        }
    }
    Err(at_fault
        .unwrap_or_else(|| SpawnError::NotFound { name: name.into(), path: String::from_utf8_lossy(path).escape_debug().to_string() }))
}

/// Whether this file can be executed as far as its name and its bits tell.
pub fn check_program(program: &Path) -> Result<(), SpawnError> {
    let found = fs::metadata(program);
    let program = program.to_path_buf();
    match found {
        Ok(found) if found.is_dir() => Err(SpawnError::IsDirectory { program }),
        Ok(found) if !found.is_file() || access(&program, Access::EXEC_OK).is_err() => Err(SpawnError::NotExecutable { program }),
        Ok(_) => Ok(()),
        Err(error) => Err(match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => SpawnError::Missing { program },
            Some(libc::EACCES) => SpawnError::NotExecutable { program },
            Some(_) | None => SpawnError::Other { program, source: error },
        }),
    }
}

/// Names the part at fault after `posix_spawn` said no.
pub fn diagnose(source: io::Error, program: &Path, cwd: &Path, argument_bytes: usize) -> SpawnError {
    if source.raw_os_error() == Some(libc::E2BIG) {
        return SpawnError::TooLarge { bytes: argument_bytes };
    }
    if let Err(error) = check_cwd(cwd).and_then(|()| check_program(program)) {
        return error;
    }
    let program = program.to_path_buf();
    let head = head_of(&program);
    match source.raw_os_error() {
        // The file is there, so it is what it asks for that is not.
        Some(libc::ENOENT | libc::EACCES | libc::ENOTDIR) => match interpreter(&head) {
            Some(interpreter) => SpawnError::Interpreter { program, interpreter },
            None if head.starts_with(b"\x7fELF") => SpawnError::Interpreter { program, interpreter: "that its ELF header names".into() },
            None => SpawnError::Other { program, source },
        },
        Some(libc::ENOEXEC) => SpawnError::Format { program },
        Some(_) | None => SpawnError::Other { program, source },
    }
}

/// Whether a file without a format that the kernel knows is a text for the shell, as `execvp` takes it.
pub fn is_shell_text(program: &Path) -> bool {
    let head = head_of(program);
    let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    !head.starts_with(b"#!") && !first_line.contains(&0)
}

fn head_of(program: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    // An unreadable program (mode 0111) has no diagnosis, and that is all that happens.
    let read = File::open(program).and_then(|file| file.take(256).read_to_end(&mut head));
    if read.is_ok() { head } else { Vec::new() }
}

/// What a `#!` line names, quoted.
fn interpreter(head: &[u8]) -> Option<String> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line);
    // A carriage return at the end is the usual culprit, so it must be seen.
    let name = text.trim_matches([' ', '\t']).split([' ', '\t']).next()?.to_owned();
    Some(format!("{name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(path: &Path, mode: u32, text: &[u8]) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_bare_name_is_the_first_executable_on_the_path_relative_to_the_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path();
        for name in ["a", "b", "a/dir"] {
            fs::create_dir(cwd.join(name)).unwrap();
        }
        file(&cwd.join("a/tool"), 0o644, b"");
        file(&cwd.join("b/tool"), 0o755, b"");
        file(&cwd.join("here"), 0o755, b"");
        let find = |name: &str, path: &str| resolve(name.as_bytes(), cwd, Some(path.as_bytes()));
        assert_eq!(find("tool", "a:b").unwrap(), cwd.join("b/tool"));
        assert_eq!(find("here", "a:").unwrap(), cwd.join("here"));
        assert!(matches!(find("tool", "a"), Err(SpawnError::NotExecutable { .. })));
        assert!(matches!(find("dir", "a"), Err(SpawnError::NotFound { .. })));
        assert!(matches!(find("", "a"), Err(SpawnError::NotFound { .. })));
        assert!(find("no", "/p:/q").unwrap_err().to_string().contains("(/p:/q)"));
        assert!(matches!(find("./a", ""), Err(SpawnError::IsDirectory { .. })));
        assert!(matches!(find("a/none", ""), Err(SpawnError::Missing { .. })));
        assert_eq!(resolve(b"sh", cwd, None).unwrap().file_name(), Some(OsStr::new("sh")));
    }

    #[test]
    fn an_interpreter_is_shown_with_its_carriage_return() {
        assert_eq!(interpreter(b"#! /bin/x -e\nrest"), Some("\"/bin/x\"".into()));
        assert_eq!(interpreter(b"#!/bin/sh\r\n"), Some("\"/bin/sh\\r\"".into()));
        assert_eq!(interpreter(b"\x7fELF"), None);
    }
}
