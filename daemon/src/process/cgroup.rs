//! Cgroups of version 2: one per incarnation, below a directory that is ours. Who is in it, ending it, removing it.
//!
//! No table is kept: a cgroup is found by its name, which is made of ids, so that the next supervisor finds it too. No
//! controller is switched on, so nothing is limited, and processes may be in the directory itself.

pub mod place;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use roost_proto::id::{Epoch, Incarnation};
use roost_proto::link::ProcessIdentity;
use sha2::{Digest, Sha256};

use self::place::{CgroupError, Setting};
use crate::identity;

/// What the names of all our cgroups begin with.
const PREFIX: &str = "roost-";
/// How many hexadecimal digits stand for the state directory.
const TAG_DIGITS: usize = 16;

/// The directory in which this daemon's cgroups are, among those of others perhaps.
#[derive(Debug)]
pub struct Cgroups {
    directory: PathBuf,
    /// `roost-TAG-`: two daemons may share a directory.
    prefix: String,
    /// Whether it was said that something does not work: each start would say it again.
    complained: bool,
}

/// The cgroup of one incarnation, which need not exist.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroups {
    /// Those of this state directory, as the setting has it.
    pub fn choose(setting: &Setting, state_dir: &Path) -> Result<Option<Self>, CgroupError> {
        let Some(directory) = place::choose(setting)? else { return Ok(None) };
        let digest = Sha256::digest(state_dir.as_os_str().as_encoded_bytes());
        let tag: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let cgroups = Self { directory, prefix: format!("{PREFIX}{}-", &tag[..TAG_DIGITS]), complained: false };
        tracing::info!(directory = %cgroups.directory.display(), "each worker gets a cgroup");
        Ok(Some(cgroups))
    }

    /// The cgroup of this incarnation, whether it exists or not.
    pub fn of(&self, incarnation: Incarnation) -> Cgroup {
        Cgroup { path: self.directory.join(format!("{}{incarnation}", self.prefix)) }
    }

    /// Makes it. Without one the process is started all the same, and found by what it is.
    pub fn create(&mut self, incarnation: Incarnation) -> Option<Cgroup> {
        let cgroup = self.of(incarnation);
        match fs::create_dir(&cgroup.path) {
            Ok(()) => Some(cgroup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Some(cgroup),
            Err(error) => {
                self.complain(&cgroup, "cannot be made", &error);
                None
            }
        }
    }

    /// Says once, and only once, that cgroups do not work as they should.
    pub fn complain(&mut self, cgroup: &Cgroup, what: &str, error: &io::Error) {
        if !std::mem::replace(&mut self.complained, true) {
            let cgroup = cgroup.path.display();
            tracing::warn!(%cgroup, %error, "the cgroup {what}: such workers are found by session, group, parents and mark; not said again");
        }
    }

    /// Whose cgroups there are.
    pub fn left(&self) -> Vec<Incarnation> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| incarnation_of(entry.file_name().to_str()?.strip_prefix(&self.prefix)?)).collect()
    }
}

impl Cgroup {
    /// For starting a process in it.
    pub fn open(&self) -> io::Result<OwnedFd> {
        Ok(File::open(&self.path)?.into())
    }

    /// Those that live in it and below it.
    pub fn members(&self) -> BTreeSet<ProcessIdentity> {
        // Whoever is still listed after its start time was read is the one that was listed, or has ended: its pid alone could
        // be that of a stranger by now, but then its start time fits nobody.
        let stats: Vec<_> = self.pids().into_iter().filter_map(identity::stat).filter(|stat| stat.alive).collect();
        let listed = if stats.is_empty() { BTreeSet::new() } else { self.pids() };
        stats.into_iter().map(|stat| stat.process).filter(|process| listed.contains(&process.pid)).collect()
    }

    /// Whether any process is alive in it or below it.
    pub fn is_populated(&self) -> bool {
        // Not knowing is no emptiness.
        Events::open(self).map_or(true, |events| events.is_some_and(|events| events.is_populated()))
    }

    /// Ends all that is in it and below it, whoever forks meanwhile. Kernels before 5.14 cannot; then it does nothing.
    pub fn kill(&self) {
        match fs::write(self.path.join("cgroup.kill"), "1") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(cgroup = %self.path.display(), %error, "cannot be killed at once; its processes are killed one by one");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Removes it with what workers made below it. False when it is in use.
    pub fn remove(&self) -> bool {
        if fs::remove_dir(&self.path).is_ok() {
            return true;
        }
        // Children stand behind their parents in the list, so from its end on each is empty when its turn comes.
        for path in self.tree().into_iter().rev() {
            match fs::remove_dir(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    tracing::debug!(cgroup = %path.display(), %error, "stays for now");
                    return false;
                }
            }
        }
        true
    }

    fn pids(&self) -> BTreeSet<u32> {
        // A threaded one below cannot be read; its processes are listed above it.
        let texts = self.tree().into_iter().filter_map(|path| fs::read_to_string(path.join("cgroup.procs")).ok());
        texts.flat_map(|text| text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()).filter(|pid| *pid != 0).collect()
    }

    /// Itself and all below it, parents before their children.
    fn tree(&self) -> Vec<PathBuf> {
        let mut found = vec![self.path.clone()];
        let mut next = 0;
        while let Some(path) = found.get(next) {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let below: Vec<_> =
                entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect();
            found.extend(below);
            next += 1;
        }
        found
    }
}

/// `cgroup.events` of one cgroup: wakes an epoll when the first process comes or the last one goes.
#[derive(Debug)]
pub struct Events(File);

impl Events {
    /// `None` when there is no such cgroup.
    pub fn open(cgroup: &Cgroup) -> io::Result<Option<Self>> {
        match File::open(cgroup.path.join("cgroup.events")) {
            Ok(file) => Ok(Some(Self(file))),
            // The second: it was removed just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Also arms the file: changes after this one wake whoever polls it.
    pub fn is_populated(&self) -> bool {
        let mut text = [0; 256];
        let length = self.0.read_at(&mut text, 0).unwrap_or(0);
        text[..length].split(|byte| *byte == b'\n').any(|line| line == b"populated 1")
    }
}

impl From<Events> for OwnedFd {
    fn from(events: Events) -> Self {
        events.0.into()
    }
}

/// Whether a directory's name is that of an incarnation's cgroup, of this daemon or another.
fn is_ours(name: &str) -> bool {
    let Some((tag, rest)) = name.strip_prefix(PREFIX).and_then(|rest| rest.split_at_checked(TAG_DIGITS)) else { return false };
    tag.bytes().all(|byte| byte.is_ascii_hexdigit()) && rest.strip_prefix('-').and_then(incarnation_of).is_some()
}

/// The incarnation that is written like this at the end of a name.
fn incarnation_of(text: &str) -> Option<Incarnation> {
    let (execution, epoch) = text.split_once('-')?;
    let incarnation = Incarnation { execution: execution.parse().ok()?, epoch: Epoch(epoch.parse().ok()?) };
    // As we write it, and not otherwise.
    (incarnation.to_string() == text).then_some(incarnation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_proto::id::ExecutionId;
    use roost_proto::link::{SpawnOrder, Stdin};

    use super::super::children::Children;

    #[test]
    fn a_name_is_made_of_ids_and_known_again() {
        let cgroups = Cgroups { directory: "/c".into(), prefix: "roost-0123456789abcdef-".into(), complained: false };
        let path = cgroups.of(Incarnation { execution: ExecutionId(12), epoch: Epoch(3) }).path;
        assert_eq!(path, Path::new("/c/roost-0123456789abcdef-x12-3"));
        assert!(is_ours("roost-0123456789abcdef-x12-3"));
        for other in
            ["roost.service", "roost-x12-3", "roost-0123456789abcdef-x12-", "roost-0123456789abcdef-12-3", "roost-0123456789abcdég-x1-1"]
        {
            assert!(!is_ours(other), "{other}");
        }
    }

    /// Directories are enough for it: nobody is in them, and one with a file in it cannot be removed.
    #[test]
    fn one_that_cannot_be_removed_yet_goes_with_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let cgroups = Cgroups { directory: dir.path().into(), prefix: "roost-0123456789abcdef-".into(), complained: false };
        let incarnation = |execution| Incarnation { execution: ExecutionId(execution), epoch: Epoch(1) };
        let [first, second, third] = [1, 2, 3].map(|execution| cgroups.of(incarnation(execution)).path);
        for path in [&first, &second] {
            fs::create_dir(path).unwrap();
            fs::write(path.join("file"), "").unwrap();
        }
        let mut found = cgroups.left();
        found.sort();
        assert_eq!(found, [incarnation(1), incarnation(2)]);
        let mut children = Children::new(dir.path()).unwrap().within(Some(cgroups));
        assert!(first.exists() && second.exists());
        fs::remove_file(first.join("file")).unwrap();
        children.spawn(&SpawnOrder {
            incarnation: incarnation(3),
            argv: vec![b"/no/such/program".to_vec()],
            env: Vec::new(),
            cwd: b"/".to_vec(),
            umask: 0o77,
            stdin: Stdin::Null,
            stdout_path: dir.path().join("out").into_os_string().into_encoded_bytes(),
            stderr_path: dir.path().join("err").into_os_string().into_encoded_bytes(),
            leftovers_grace_ms: None,
        });
        assert_eq!((first.exists(), second.exists(), third.exists()), (false, true, false));
    }

    #[test]
    fn one_that_does_not_exist_is_empty_and_removed_already() {
        let cgroup = Cgroup { path: "/no/such/cgroup".into() };
        cgroup.kill();
        assert!(cgroup.members().is_empty() && !cgroup.is_populated() && cgroup.remove());
    }
}
