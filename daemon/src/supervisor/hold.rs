//! The two things that make a daemon the only one: the instance lock, and the listening socket that is bound under it.
//!
//! It accepts no connection; the broker does, on the same descriptor.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use roost_proto::limits::CONNECTIONS_WAITING_MAX;
use roost_proto::link::ProcessIdentity;
use roost_proto::paths::Paths;
use rustix::fs::{Mode, fchmod};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

use super::broker_process::LOCK_DESCRIPTOR;
use super::place::Refusal;
use crate::config::LOCK_ORPHAN;
use crate::identity;
use crate::process::signal;

/// Takes the instance lock and writes our pid into it.
///
/// The file is deleted only by who holds the lock, when its start is refused. Whoever had opened it before then gets the lock of a file
/// that nobody else can see, and begins anew.
pub fn lock(paths: &Paths) -> Result<File, Refusal> {
    let path = paths.lock();
    let failed = |source| Refusal::Lock { path: path.clone(), source };
    loop {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(failed)?;
        wait_for(&mut file, paths)?;
        if !is_at(&file, &path).map_err(failed)? {
            continue;
        }
        let own = format!("{}\n", std::process::id());
        file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(own.as_bytes())).map_err(failed)?;
        return Ok(file);
    }
}

/// Locks the file, unless somebody holds it who is there to stay.
fn wait_for(file: &mut File, paths: &Paths) -> Result<(), Refusal> {
    let failed = |source| Refusal::Lock { path: paths.lock(), source };
    let mut deadline = Instant::now() + LOCK_ORPHAN;
    let mut orphans_killed = false;
    loop {
        match fs2::FileExt::try_lock_exclusive(file) {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => {}
            Err(error) => return Err(failed(error)),
        }
        let pid = holder(file).map_err(failed)?;
        // The broker shares the lock, so that no second one writes the journal. When its supervisor was killed it is about to
        // notice and exit: worth a moment. There is no event for that, hence the short sleep.
        let is_over = Instant::now() >= deadline;
        if is_over && !orphans_killed && !is_running(&pid) {
            // It stands still, and nobody is left who would end it.
            kill_orphans(file).map_err(failed)?;
            orphans_killed = true;
            deadline = Instant::now() + LOCK_ORPHAN;
            continue;
        }
        if is_running(&pid) || is_over {
            let pid = if pid.is_empty() { "unknown" } else { &pid };
            return Err(Refusal::Held { pid: pid.escape_debug().to_string(), state_dir: paths.state_dir.clone() });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The pid that the lock's file names.
fn holder(mut lock: &File) -> io::Result<String> {
    let mut pid = String::new();
    lock.rewind()?;
    lock.read_to_string(&mut pid)?;
    Ok(pid.trim().to_owned())
}

/// Whether this file has this path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match file_identity(path) {
        Ok(found) => Ok(found == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Kills the brokers that hold the lock for a supervisor that is gone.
fn kill_orphans(lock: &File) -> io::Result<()> {
    for broker in identity::holding(lock, LOCK_DESCRIPTOR)?.into_iter().filter(is_broker) {
        // They may have ended meanwhile, and this one be that of another daemon.
        if is_running(&holder(lock)?) {
            return Ok(());
        }
        tracing::warn!(pid = broker.pid, "the broker of a supervisor that was killed does not exit: killing it");
        signal::send(broker, &[rustix::process::Signal::KILL]);
    }
    Ok(())
}

/// Whether it was started as a broker: anybody may have our file open, by this number too.
fn is_broker(process: &ProcessIdentity) -> bool {
    let arguments = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    arguments.split(|byte| *byte == 0).nth(1) == Some(b"broker")
}

fn is_running(pid: &str) -> bool {
    // One that has ended holds nothing, even if nobody has reaped it.
    pid.parse().ok().and_then(identity::stat).is_some_and(|found| found.alive)
}

/// The listening socket.
#[derive(Debug)]
pub struct Listening {
    /// Non-blocking.
    pub socket: OwnedFd,
    /// The file that we made for it; `None` when a service manager made it.
    made: Option<(PathBuf, (u64, u64))>,
}

impl Listening {
    /// Takes the socket that a service manager made. It is not ours to remove.
    pub fn taken(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self { socket, made: None })
    }

    /// Makes the socket. To be called under the lock: it replaces a file that nobody listens on.
    pub fn bind(path: &Path) -> Result<Self, Refusal> {
        remove_stale(path)?;
        let failed = |source| Refusal::Socket { path: path.into(), source };
        let make = || {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
            let address = SocketAddrUnix::new(path)?;
            // Before the bind, so that the file never has another mode.
            fchmod(&socket, Mode::from_raw_mode(0o600))?;
            bind(&socket, &address)?;
            listen(&socket, CONNECTIONS_WAITING_MAX)?;
            Ok::<_, rustix::io::Errno>(socket)
        };
        let socket = make().map_err(|error| failed(error.into()))?;
        let made = file_identity(path).map_err(failed)?;
        Ok(Self { socket, made: Some((path.into(), made)) })
    }

    /// Removes the socket's file if it still is the one that we made.
    pub fn unlink(&mut self) {
        let Some((path, made)) = self.made.take() else { return };
        match file_identity(&path) {
            Ok(found) if found == made => {
                if let Err(error) = fs::remove_file(&path) {
                    tracing::warn!(path = %path.display(), %error, "the socket's file stays");
                }
            }
            Ok(_) => tracing::warn!(path = %path.display(), "the socket's file was replaced by another; it is left alone"),
            Err(error) => tracing::debug!(path = %path.display(), %error, "the socket's file is gone already"),
        }
    }
}

fn file_identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

fn remove_stale(path: &Path) -> Result<(), Refusal> {
    let failed = |source| Refusal::Socket { path: path.into(), source };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(Refusal::NotSocket { path: path.into() }),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    }
    // The lock is of the state directory: a daemon with another one may listen on this path.
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path).map_err(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        // A full backlog says EAGAIN: somebody is there.
        Ok(_) | Err(_) => Err(Refusal::SocketInUse { path: path.into() }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    use super::*;

    fn paths(dir: &Path) -> Paths {
        Paths { socket: dir.join("s"), state_dir: dir.into(), is_default: false }
    }

    #[test]
    fn the_lock_is_held_once_and_names_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(&paths(dir.path())).unwrap();
        let refusal = lock(&paths(dir.path())).unwrap_err();
        assert_eq!(refusal.to_string(), format!("another roostd (pid {}) serves {}", std::process::id(), dir.path().display()));
        assert_eq!(refusal.exit_code(), 3);
        drop(held);
        lock(&paths(dir.path())).unwrap();
        assert!(dir.path().join("lock").exists());
    }

    #[test]
    fn a_lock_whose_file_was_deleted_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        let mut before = lock(&paths).unwrap();
        // Its holder is about to end: worth waiting for.
        before.set_len(0).and_then(|()| before.rewind()).and_then(|()| before.write_all(b"999999999")).unwrap();
        let open = || {
            let links = fs::read_dir("/proc/self/fd").unwrap().flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
            links.filter(|link| *link == paths.lock()).count()
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lock(&paths).unwrap());
            while open() < 2 {
                std::thread::yield_now();
            }
            fs::remove_file(paths.lock()).unwrap();
            drop(before);
            let _held = waiting.join().unwrap();
            assert!(matches!(lock(&paths), Err(Refusal::Held { .. })));
        });
    }

    #[test]
    fn of_those_who_have_the_lock_open_only_a_broker_without_its_supervisor_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let mut held = lock(&paths(dir.path())).unwrap();
        let [other, broker] = ["other", "broker"].map(|name| {
            fs::write(dir.path().join(name), "exec 5<lock; echo up; read x; exit 7").unwrap();
            let mut command = Command::new("sh");
            let mut child = command.arg(name).current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let mut up = [0; 3];
            child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
            child
        });
        // Their supervisor is there.
        kill_orphans(&held).unwrap();
        held.set_len(0).and_then(|()| held.rewind()).and_then(|()| held.write_all(b"999999999")).unwrap();
        assert!([&other, &broker].iter().all(|child| identity::stat(child.id()).unwrap().alive));
        kill_orphans(&held).unwrap();
        let ends = [other, broker].map(|child| child.wait_with_output().unwrap().status);
        assert_eq!(ends.map(|status| (status.code(), status.signal())), [(Some(7), None), (None, Some(9))]);
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(Listening::bind(&path).unwrap());
        assert!(path.exists());
        let mut live = Listening::bind(&path).unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(Listening::bind(&path), Err(Refusal::SocketInUse { .. })));
        UnixStream::connect(&path).unwrap();
        live.unlink();
        assert!(!path.exists());
    }

    #[test]
    fn the_socket_of_a_successor_and_other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let mut ours = Listening::bind(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _theirs = Listening::bind(&path).unwrap();
        ours.unlink();
        assert!(path.exists());
        let file = dir.path().join("f");
        fs::write(&file, "").unwrap();
        assert!(matches!(Listening::bind(&file), Err(Refusal::NotSocket { .. })));
    }
}
