//! Starting the daemon on demand: one client at a time, under a lock, and only when nobody listens.
//!
//! It never removes a socket: whoever holds the daemon's own lock does that.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use roost_proto::paths::Paths;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::bounded::output_within;
use crate::config::{Config, Start};
use crate::error::Error;
use crate::link::{Link, is_absent};

/// `roostd` ends with it when another daemon holds the state directory.
const EXIT_LOCK_HELD: i32 = 3;
/// How long a daemon that holds the lock and does not listen may take to do either: it is starting, or leaving.
const LOCK_HELD_WAIT: Duration = Duration::from_secs(5);
/// How long a start may take: replaying a long journal counts.
pub(crate) const READY_WAIT: Duration = Duration::from_secs(120);
/// How long systemd may take to listen.
const UNIT_WAIT: Duration = Duration::from_secs(30);
/// Identities and wishes of the caller that are none of the daemon's.
const NOT_INHERITED: [&str; 7] =
    ["ROOST_TREE", "ROOST_WORKER", "ROOST_TOKEN", "ROOST_EPOCH", "ROOST_CONTEXT", "ROOST_WAKE", "ROOST_NO_START"];

/// Connects to the daemon, and starts it when nobody listens and the configuration says so.
pub(crate) fn reach(config: &Config) -> Result<Link, Error> {
    let socket = &config.paths.socket;
    match dial(config)? {
        Some(link) => Ok(link),
        None if config.start == Start::OnDemand => start(config),
        None => Err(Error::NoDaemon { socket: socket.clone() }),
    }
}

/// The process that the daemon's lock file names.
pub fn lock_pid(paths: &Paths) -> Option<u32> {
    fs::read_to_string(paths.lock()).ok()?.split_whitespace().next()?.parse().ok()
}

fn dial(config: &Config) -> Result<Option<Link>, Error> {
    let socket = &config.paths.socket;
    let link = match Link::dial(socket) {
        Ok(link) => link,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(source) => return Err(Error::Io { what: format!("cannot connect to {}", socket.display()), source }),
    };
    let uid = rustix::process::geteuid().as_raw();
    match link.peer_uid() {
        Ok(owner) if owner != uid => Err(Error::ForeignServer { socket: socket.clone(), owner, uid }),
        Ok(_) => Ok(Some(link)),
        Err(source) => Err(Error::Io { what: format!("cannot see whose {} is", socket.display()), source }),
    }
}

fn start(config: &Config) -> Result<Link, Error> {
    // Dropping the file releases the lock; the next in line finds a daemon that listens.
    let _lock = start_lock(&config.paths)?;
    let since = Instant::now();
    loop {
        // Somebody else may have started one while we waited for the lock. A unit that began to listen then would take its socket.
        if let Some(link) = dial(config)? {
            return Ok(link);
        }
        let started =
            if config.by_unit && config.daemon_flags.is_empty() { unit_listens()? } else { launch(config, &daemon_program(config)?)? };
        match started {
            Started::Ready => {
                let socket = config.paths.socket.clone();
                return dial(config)?.ok_or(Error::NoDaemon { socket });
            }
            Started::LockHeld if since.elapsed() > LOCK_HELD_WAIT => {
                let Paths { socket, state_dir, .. } = config.paths.clone();
                return Err(Error::LockHeld { pid: lock_pid(&config.paths), state_dir, socket });
            }
            Started::LockHeld => std::thread::sleep(Duration::from_millis(200)),
        }
    }
}

/// Has systemd listen, which then starts the daemon. Where it does not want to nobody else starts one: it may have given it up.
fn unit_listens() -> Result<Started, Error> {
    let unit = "roostd.socket";
    let started = output_within(Command::new("systemctl").args(["--user", "start", unit]), UNIT_WAIT);
    let output = started.map_err(Error::io("cannot have systemctl start it"))?;
    if output.status.success() {
        return Ok(Started::Ready);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::Unit { unit, message: said.lines().next().unwrap_or("it did not say why").to_owned() })
}

fn start_lock(paths: &Paths) -> Result<File, Error> {
    let state_dir = &paths.state_dir;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state_dir)
        .map_err(Error::io(format!("cannot make the state directory {}", state_dir.display())))?;
    let path = paths.start_lock();
    let what = || format!("cannot lock {}", path.display());
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(Error::io(what()))?;
    fs2::FileExt::lock_exclusive(&file).map_err(Error::io(what()))?;
    Ok(file)
}

/// The program that is started as the daemon: beside our own, else on the path.
pub fn daemon_program(config: &Config) -> Result<PathBuf, Error> {
    if let Some(program) = &config.daemon {
        return Ok(program.clone());
    }
    let own = std::env::current_exe().map_err(Error::io("cannot see where our own program is"))?;
    let beside = own.parent().map(PathBuf::from).unwrap_or_default();
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    std::iter::once(beside.clone())
        .chain(std::env::split_paths(&on_path).filter(|directory| directory.is_absolute()))
        .map(|directory| directory.join("roostd"))
        .find(|candidate| candidate.is_file())
        .ok_or(Error::DaemonMissing { beside })
}

enum Started {
    Ready,
    LockHeld,
}

fn launch(config: &Config, program: &PathBuf) -> Result<Started, Error> {
    let log = config.paths.daemon_log();
    let mut command = Command::new(program);
    command
        .arg("--detach")
        .arg("--socket")
        .arg(&config.paths.socket)
        .arg("--state-dir")
        .arg(&config.paths.state_dir)
        .args(&config.daemon_flags);
    command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped()).current_dir("/");
    for variable in NOT_INHERITED {
        command.env_remove(variable);
    }
    keep_descriptors_back(&mut command);
    let failed = |message: String| Error::DaemonStart { message, log: log.clone() };
    let mut child = command.spawn().map_err(|error| failed(format!("{}: {error}", program.display())))?;
    let line = first_line(&mut child).map_err(|error| failed(error.to_string()))?;
    let ended = reap(child);
    match line.as_str() {
        "ready" => Ok(Started::Ready),
        "" => match ended.recv_timeout(LOCK_HELD_WAIT) {
            Ok(status) if status.code() == Some(EXIT_LOCK_HELD) => Ok(Started::LockHeld),
            Ok(status) => Err(failed(format!("it ended without a word ({status})"))),
            Err(_) => Err(failed("it closed its output without a word".into())),
        },
        said => match ended.recv_timeout(LOCK_HELD_WAIT) {
            Ok(status) if status.code() == Some(EXIT_LOCK_HELD) => Ok(Started::LockHeld),
            Ok(_) | Err(_) => Err(failed(said.strip_prefix("error: ").unwrap_or(said).to_owned())),
        },
    }
}

/// The daemon outlives us, and whatever our own parent left open here (a pipe that somebody reads to its end, say) must not
/// stay open with it. `std` closes its own descriptors on exec, not those.
fn keep_descriptors_back(command: &mut Command) {
    let open: Vec<RawFd> = fs::read_dir("/proc/self/fd")
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
        .unwrap_or_default();
    // SAFETY: between fork and exec only fcntl is called, which is async-signal-safe; nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            for fd in open.iter().copied().filter(|fd| *fd > 2) {
                // SAFETY: the descriptor is only named to fcntl; one that is closed by now is EBADF and of no interest.
                let fd = BorrowedFd::borrow_raw(fd);
                if let Err(rustix::io::Errno::BADF) = rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC) {
                    continue;
                }
            }
            Ok(())
        });
    }
}

/// The first line of its standard output, without its end; empty when it ended without one.
fn first_line(child: &mut Child) -> io::Result<String> {
    let Some(stdout) = child.stdout.take() else { return Ok(String::new()) };
    let deadline = Instant::now() + READY_WAIT;
    let mut line = Vec::new();
    while !line.contains(&b'\n') && line.len() < 4096 {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(left.subsec_nanos()) };
        let ready = rustix::event::poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&left));
        match ready {
            Ok(0) => return Err(io::Error::other(format!("it is not ready after {} s", READY_WAIT.as_secs()))),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0; 1024];
        match rustix::io::read(stdout.as_fd(), &mut buffer)? {
            0 => break,
            read => line.extend_from_slice(&buffer[..read]),
        }
    }
    let text = String::from_utf8_lossy(&line);
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Waits for the process in the background: a detaching daemon leaves at once, one that stays in place leaves with us.
fn reap(mut child: Child) -> mpsc::Receiver<ExitStatus> {
    let (tell, ended) = mpsc::channel();
    std::thread::spawn(move || {
        if let Ok(status) = child.wait()
            && tell.send(status).is_err()
        {
            // Nobody asks any more; being reaped was the point.
        }
    });
    ended
}
