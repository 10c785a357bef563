//! A [`SpawnOrder`] becomes a process: its files, its umask, its environment with the marker.
//!
//! It keeps no table of what it started.

use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use roost_proto::link::{ProcessIdentity, SpawnOrder, Stdin};
use rustix::fs::{Mode, OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::umask;

use super::cgroup::Cgroup;
use super::program::{self, SpawnError};
use super::spawn::{Launch, launch, launch_into};
use crate::identity::{self, MARKER_VARIABLES};

/// A process that was just started.
#[derive(Debug)]
pub struct Started {
    /// Who it is.
    pub process: ProcessIdentity,
    /// Our end of its standard input, when that is a pipe.
    pub stdin: Option<OwnedFd>,
    /// Why it is not in the cgroup that it was to be in.
    pub outside: Option<io::Error>,
}

/// Starts the process. After an error nothing of it is left, not even an empty output file: such a file would be evidence of
/// a start to `Adopt`. A cgroup that cannot be entered stops nobody.
pub fn start(order: &SpawnOrder, state_dir: &[u8], cgroup: Option<&Cgroup>) -> Result<Started, SpawnError> {
    let strings = Strings::of(order, state_dir)?;
    let cwd = Path::new(OsStr::from_bytes(&order.cwd));
    program::check_cwd(cwd)?;
    let name = order.argv.first().ok_or(SpawnError::NoArguments)?;
    let path = order.env.iter().find(|(name, _)| name == b"PATH").map(|(_, value)| value.as_slice());
    let program = program::resolve(name, cwd, path)?;
    let (input, stdin) = open_input(&order.stdin)?;
    let mut created = Created::default();
    let output = created.open("standard output", &order.stdout_path)?;
    let error = created.open("standard error", &order.stderr_path)?;
    let mut way = Way::to(cgroup);
    let pid = strings.launch(&program, cwd, order.umask, [input.as_fd(), output.as_fd(), error.as_fd()], &mut way)?;
    created.keep();
    // It cannot be reaped before we are asked to, so its entry in /proc is there even if it has ended already.
    let start_ticks = identity::stat(pid).map_or(0, |found| found.process.start_ticks);
    Ok(Started { process: ProcessIdentity { pid, start_ticks }, stdin, outside: way.blocked })
}

/// How a process gets into its cgroup, if it does.
struct Way {
    cgroup: Option<OwnedFd>,
    blocked: Option<io::Error>,
}

impl Way {
    fn to(cgroup: Option<&Cgroup>) -> Self {
        match cgroup.map(Cgroup::open).transpose() {
            Ok(cgroup) => Self { cgroup, blocked: None },
            Err(error) => Self { cgroup: None, blocked: Some(error) },
        }
    }

    /// Starts it there, or else where we are.
    fn launch(&mut self, order: &Launch<'_>) -> io::Result<u32> {
        if let Some(cgroup) = &self.cgroup {
            match launch_into(cgroup.as_fd(), order) {
                Ok(started) => return started,
                Err(error) => *self = Self { cgroup: None, blocked: Some(error) },
            }
        }
        launch(order)
    }
}

/// Everything that goes to `posix_spawn` as C strings.
struct Strings {
    argv: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
}

impl Strings {
    fn of(order: &SpawnOrder, state_dir: &[u8]) -> Result<Self, SpawnError> {
        let c = |bytes: &[u8], what| CString::new(bytes).map_err(|_| SpawnError::Nul { what });
        let argv = order.argv.iter().map(|argument| c(argument, "an argument")).collect::<Result<_, _>>()?;
        // The marker is ours to guarantee: without it a stray descendant could not be told from a stranger.
        let is_marker = |name: &[u8]| MARKER_VARIABLES.iter().any(|known| known.as_bytes() == name);
        let given = order.env.iter().filter(|(name, _)| !is_marker(name));
        let marker = identity::marker(order.incarnation, state_dir);
        let mut env = Vec::with_capacity(order.env.len() + marker.len());
        for (name, value) in given.chain(&marker) {
            if name.is_empty() || name.contains(&b'=') {
                return Err(SpawnError::BadVariable { name: String::from_utf8_lossy(name).into_owned() });
            }
            env.push(c(&[name.as_slice(), b"=", value].concat(), "the environment")?);
        }
        Ok(Self { argv, env, cwd: c(&order.cwd, "the working directory")? })
    }

    fn launch(&self, program: &Path, cwd: &Path, mask: u32, streams: [BorrowedFd<'_>; 3], way: &mut Way) -> Result<u32, SpawnError> {
        let [input, output, error] = streams;
        let descriptors = [(input, 0), (output, 1), (error, 2)];
        let mut with = |program: &Path, argv: &[CString]| {
            let program = CString::new(program.as_os_str().as_bytes())?;
            // The supervisor has one thread: nobody else creates a file while the worker's umask holds.
            let ours = umask(Mode::from_raw_mode(mask & 0o777));
            let started = way.launch(&Launch { program: &program, argv, env: &self.env, cwd: &self.cwd, descriptors: &descriptors });
            umask(ours);
            started
        };
        let source = match with(program, &self.argv) {
            Ok(pid) => return Ok(pid),
            Err(source) => source,
        };
        if source.raw_os_error() != Some(libc::ENOEXEC) || !program::is_shell_text(program) {
            return Err(program::diagnose(source, program, cwd, self.bytes()));
        }
        // A text without `#!` is a script of the shell, as execvp has it.
        let mut argv =
            vec![c"/bin/sh".to_owned(), CString::new(program.as_os_str().as_bytes()).map_err(|_| SpawnError::Nul { what: "the program" })?];
        argv.extend(self.argv.iter().skip(1).cloned());
        let shell = Path::new("/bin/sh");
        with(shell, &argv).map_err(|source| program::diagnose(source, shell, cwd, self.bytes()))
    }

    fn bytes(&self) -> usize {
        self.argv.iter().chain(&self.env).map(|string| string.as_bytes_with_nul().len()).sum()
    }
}

fn open_input(stdin: &Stdin) -> Result<(OwnedFd, Option<OwnedFd>), SpawnError> {
    let open = |path: &Path| {
        let opened = File::open(path).map(OwnedFd::from);
        opened.map_err(|source| SpawnError::File { what: "standard input", path: path.into(), source })
    };
    match stdin {
        Stdin::Null => Ok((open(Path::new("/dev/null"))?, None)),
        Stdin::File(path) => Ok((open(Path::new(OsStr::from_bytes(path)))?, None)),
        Stdin::Pipe => {
            // Only our end: a worker that has filled the pipe itself must not hold us up, and its own end is as it expects it.
            let made = pipe_with(PipeFlags::CLOEXEC).and_then(|pipe| fcntl_setfl(&pipe.1, OFlags::NONBLOCK).map(|()| pipe));
            let (read, write) =
                made.map_err(|error| SpawnError::File { what: "standard input", path: "(pipe)".into(), source: error.into() })?;
            Ok((read, Some(write)))
        }
    }
}

/// Output files that this start created; removed again unless it succeeds.
#[derive(Default)]
struct Created(Vec<PathBuf>);

impl Created {
    fn open(&mut self, what: &'static str, path: &[u8]) -> Result<OwnedFd, SpawnError> {
        let path = Path::new(OsStr::from_bytes(path));
        let mut options = OpenOptions::new();
        options.append(true).mode(0o600);
        let new = options.clone().create_new(true).open(path);
        let file = match new {
            Ok(file) => {
                self.0.push(path.into());
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => options.open(path),
            Err(error) => Err(error),
        };
        file.map(OwnedFd::from).map_err(|source| SpawnError::File { what, path: path.into(), source })
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Created {
    fn drop(&mut self) {
        for path in &self.0 {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(?path, %error, "an output file of a failed start stays");
            }
        }
    }
}
