//! Makes the daemon's directories, or says why they cannot be used.
//!
//! A directory that holds nothing but Roost's files is made private; one that somebody uses for other things is never changed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use roost_proto::paths::{PathError, Paths, Surroundings};

use crate::config::{EXIT_HELD, EXIT_REFUSED};

/// Why this daemon does not run. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no place.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A variable leads to another user's directory, as after `su`.
    #[error("{variable} is {}, which belongs to uid {owner} and not to you (uid {uid}): unset it, or log in as that user", path.display())]
    VariableOfAnother {
        /// The variable.
        variable: &'static str,
        /// Its value.
        path: PathBuf,
        /// Whose.
        owner: u32,
        /// Who we are.
        uid: u32,
    },
    /// A directory is another user's.
    #[error("the {what} {} belongs to uid {owner} and not to you (uid {uid}): set {variable} to a directory of yours", path.display())]
    NotOurs {
        /// What it is for.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// What would name another.
        variable: &'static str,
        /// Whose.
        owner: u32,
        /// Who we are.
        uid: u32,
    },
    /// Something else has the name.
    #[error("the {what} {} is not a directory: move it away, or set {variable}", path.display())]
    NotDirectory {
        /// What it is for.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// What would name another.
        variable: &'static str,
    },
    /// It is open to others and has other things in it.
    #[error(
        "the {what} {} is open to others (mode {mode:o}) and holds other files: set {variable} to a path in a directory of its own, or chmod 700 it",
        path.display()
    )]
    Shared {
        /// What it is for.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// What would name another.
        variable: &'static str,
        /// Its mode.
        mode: u32,
    },
    /// The kernel said no.
    #[error("the {what} {} cannot be {action}: {source}; set {variable} to a place where that is possible", path.display())]
    Directory {
        /// What it is for.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What would name another.
        variable: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Another daemon is there.
    #[error("another roostd (pid {pid}) serves {}", state_dir.display())]
    Held {
        /// Its pid, or `unknown`.
        pid: String,
        /// What it serves.
        state_dir: PathBuf,
    },
    /// Locks do not work there (ENOLCK and the like), or the file cannot be made.
    #[error("the lock file {} cannot be locked: {source}; set ROOST_STATE_DIR to a directory on a local disk", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another daemon with another state directory listens there.
    #[error("another daemon listens on {}: set ROOST_SOCKET to another path", path.display())]
    SocketInUse {
        /// The socket.
        path: PathBuf,
    },
    /// A file that is no socket has its name.
    #[error("{} is in the way and is not a socket: move it away, or set ROOST_SOCKET", path.display())]
    NotSocket {
        /// The path.
        path: PathBuf,
    },
    /// It cannot be made.
    #[error("the socket {} cannot be made: {source}", path.display())]
    Socket {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Refusal {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Held { .. } => EXIT_HELD,
            Self::Path(_)
            | Self::VariableOfAnother { .. }
            | Self::NotOurs { .. }
            | Self::NotDirectory { .. }
            | Self::Shared { .. }
            | Self::Directory { .. }
            | Self::Lock { .. }
            | Self::SocketInUse { .. }
            | Self::NotSocket { .. }
            | Self::Socket { .. } => EXIT_REFUSED,
        }
    }
}

/// What a start has made. It goes again when the start is refused, as far as nobody else has put anything there.
#[derive(Debug, Default)]
pub struct Made {
    /// The outer ones first.
    directories: Vec<PathBuf>,
    /// In those directories.
    files: Vec<PathBuf>,
    /// Held until they are gone, so that nobody else begins meanwhile.
    lock: Option<File>,
}

impl Made {
    /// The daemon runs, or another one does that uses them: they stay.
    pub fn keep(&mut self) {
        self.directories.clear();
        self.files.clear();
        self.lock = None;
    }

    /// The lock is ours: its file is, and may go while it is held.
    pub fn hold(&mut self, paths: &Paths, lock: &File) -> io::Result<()> {
        self.lock = Some(lock.try_clone()?);
        self.file(paths.lock());
        // Whoever had the lock until now may have taken away what was there when we looked.
        self.directory(&paths.executions())
    }

    /// Makes a private directory with all above it.
    fn directory(&mut self, path: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = path.ancestors().take_while(|path| fs::symlink_metadata(path).is_err()).collect();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        self.directories.extend(missing.into_iter().rev().filter(|path| path.is_dir()).map(Path::to_owned));
        made
    }

    /// This file is ours, or may be made next.
    pub fn file(&mut self, path: PathBuf) {
        if path.parent().is_some_and(|parent| self.directories.iter().any(|made| made == parent)) {
            self.files.push(path);
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let files = self.files.iter().map(fs::remove_file);
        let directories = self.directories.iter().rev().map(fs::remove_dir);
        for error in files.chain(directories).filter_map(Result::err).filter(|error| error.kind() != io::ErrorKind::NotFound) {
            tracing::debug!(%error, "something that a refused start has made stays");
        }
    }
}

/// Applies the rule for paths and makes the directories, all private.
pub fn prepare(surroundings: &Surroundings) -> Result<(Paths, Made), Refusal> {
    let paths = surroundings.paths()?;
    let mut made = Made::default();
    check_variables(surroundings)?;
    let uid = surroundings.uid;
    let state = Directory { what: "state directory", variable: "ROOST_STATE_DIR", uid };
    state.make(&mut made, &paths.state_dir, &["lock", "start.lock", "daemon.log", "executions"])?;
    state.make(&mut made, &paths.executions(), &[])?;
    made.file(paths.daemon_log());
    if let (Some(directory), Some(name)) = (paths.socket.parent(), paths.socket.file_name().and_then(|name| name.to_str()))
        && directory != paths.state_dir
    {
        Directory { what: "socket directory", variable: "ROOST_SOCKET", uid }.make(&mut made, directory, &[name])?;
    }
    Ok((paths, made))
}

/// After `su` and the like these may still be the other user's.
fn check_variables(surroundings: &Surroundings) -> Result<(), Refusal> {
    let uid = surroundings.uid;
    let private = surroundings.socket.is_some() || surroundings.state_dir.is_some();
    // For a home, root is no other user: containers have HOME=/.
    let home_matters = surroundings.state_dir.is_none() && surroundings.xdg_state_home.as_ref().is_none_or(|value| value.is_empty());
    let variables = [
        ("XDG_RUNTIME_DIR", &surroundings.xdg_runtime_dir, !private, uid),
        ("XDG_STATE_HOME", &surroundings.xdg_state_home, !private, 0),
        ("HOME", &surroundings.home, !private && home_matters, 0),
    ];
    for (variable, value, matters, also) in variables {
        let Some(path) = value.as_ref().filter(|value| matters && !value.is_empty()).map(PathBuf::from) else { continue };
        // One that does not exist yet is made, or cannot be: both are told later.
        let Ok(owner) = fs::metadata(&path).map(|found| found.uid()) else { continue };
        if owner != uid && owner != also {
            return Err(Refusal::VariableOfAnother { variable, path, owner, uid });
        }
    }
    Ok(())
}

struct Directory {
    what: &'static str,
    variable: &'static str,
    uid: u32,
}

impl Directory {
    /// `files` are Roost's own: a directory with one of them was made for Roost.
    fn make(&self, made: &mut Made, path: &Path, files: &[&str]) -> Result<(), Refusal> {
        let Self { what, variable, uid } = *self;
        let failed = |action, source| Refusal::Directory { what, path: path.into(), action, variable, source };
        let making = made.directory(path);
        let found = fs::metadata(path).map_err(|error| failed("made", making.err().unwrap_or(error)))?;
        if !found.is_dir() {
            return Err(Refusal::NotDirectory { what, path: path.into(), variable });
        }
        // In a shared directory such as /tmp the link itself must be ours too, or its owner could turn it.
        let link = fs::symlink_metadata(path).map_err(|error| failed("looked at", error))?;
        if let Some(owner) = [found.uid(), link.uid()].into_iter().find(|owner| *owner != uid) {
            return Err(Refusal::NotOurs { what, path: path.into(), variable, owner, uid });
        }
        let mode = found.mode() & 0o7777;
        if mode & 0o077 == 0 {
            return Ok(());
        }
        let is_sticky = mode & 0o1000 != 0;
        if is_sticky || !is_for_roost(path, files).map_err(|error| failed("read", error))? {
            return Err(Refusal::Shared { what, path: path.into(), variable, mode });
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|error| failed("made private", error))?;
        let mode = fs::metadata(path).map_err(|error| failed("looked at", error))?.mode() & 0o7777;
        // Some file systems (drvfs, vfat) say yes and do nothing.
        if mode & 0o077 == 0 { Ok(()) } else { Err(failed("made private", io::Error::from(io::ErrorKind::Unsupported))) }
    }
}

fn is_for_roost(path: &Path, files: &[&str]) -> io::Result<bool> {
    let mut is_empty = true;
    for entry in fs::read_dir(path)? {
        is_empty = false;
        if entry?.file_name().to_str().is_some_and(|name| files.contains(&name)) {
            return Ok(true);
        }
    }
    Ok(is_empty)
}

#[cfg(test)]
mod tests {
    use super::super::hold;
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn private(dir: &Path) -> Surroundings {
        let uid = rustix::process::geteuid().as_raw();
        Surroundings { state_dir: Some(dir.join("a/state").into()), socket: Some(dir.join("b/s").into()), uid, ..Surroundings::default() }
    }

    #[test]
    fn directories_are_made_private_with_their_parents() {
        let dir = tempfile::tempdir().unwrap();
        let (paths, mut made) = prepare(&private(dir.path())).unwrap();
        made.keep();
        drop(made);
        for made in [dir.path().join("a"), paths.state_dir.clone(), paths.executions(), dir.path().join("b")] {
            assert_eq!(mode(&made), 0o700, "{made:?}");
        }
    }

    #[test]
    fn an_empty_directory_is_made_private_and_one_in_use_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let socket_dir = dir.path().join("b");
        fs::create_dir(&socket_dir).unwrap();
        fs::set_permissions(&socket_dir, fs::Permissions::from_mode(0o755)).unwrap();
        prepare(&private(dir.path())).unwrap();
        assert_eq!(mode(&socket_dir), 0o700);
        fs::set_permissions(&socket_dir, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(socket_dir.join("letter"), "").unwrap();
        let refusal = prepare(&private(dir.path())).unwrap_err();
        assert!(matches!(refusal, Refusal::Shared { .. }) && refusal.exit_code() == 78, "{refusal}");
        assert_eq!(mode(&socket_dir), 0o755);
    }

    #[test]
    fn a_directory_or_a_variable_of_another_user_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let other = Surroundings { uid: 4242, ..private(dir.path()) };
        let text = prepare(&other).unwrap_err().to_string();
        assert!(text.contains("ROOST_STATE_DIR") && text.contains("uid 4242"), "{text}");
        let runtime = Some(dir.path().into());
        let after_su = Surroundings { uid: 4242, xdg_runtime_dir: runtime, home: Some(dir.path().into()), ..Surroundings::default() };
        let text = prepare(&after_su).unwrap_err().to_string();
        assert!(text.starts_with("XDG_RUNTIME_DIR is "), "{text}");
    }

    #[test]
    fn a_file_in_the_place_of_a_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("b"), "").unwrap();
        let refusal = prepare(&private(dir.path())).unwrap_err();
        assert!(matches!(&refusal, Refusal::NotDirectory { path, .. } if path.ends_with("b")), "{refusal}");
    }

    #[test]
    fn a_refused_start_leaves_nothing_that_it_has_made_and_everything_else() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("b"), "").unwrap();
        prepare(&private(dir.path())).unwrap_err();
        assert_eq!(fs::read_dir(dir.path().join("a")).unwrap().count(), 0);
        fs::remove_file(dir.path().join("b")).unwrap();
        let (paths, mut made) = prepare(&private(dir.path())).unwrap();
        made.hold(&paths, &hold::lock(&paths).unwrap()).unwrap();
        assert!(matches!(hold::lock(&paths), Err(Refusal::Held { .. })));
        drop(made);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["a"]);
        // What somebody else has put there stays, and so does a lock that is another's.
        let (paths, made) = prepare(&private(dir.path())).unwrap();
        let other = hold::lock(&paths).unwrap();
        drop(made);
        assert!(matches!(hold::lock(&paths), Err(Refusal::Held { .. })));
        // Nor does it miss what a refused start takes with it.
        assert!(!paths.executions().exists());
        let mut made = Made::default();
        made.hold(&paths, &other).unwrap();
        assert!(paths.executions().exists());
        drop(made);
        fs::remove_dir_all(&paths.state_dir).unwrap();
        drop(other);
        let (paths, made) = prepare(&private(dir.path())).unwrap();
        fs::write(paths.state_dir.join("letter"), "").unwrap();
        drop(made);
        assert!(paths.state_dir.join("letter").exists() && !paths.executions().exists() && !dir.path().join("b").exists());
    }
}
