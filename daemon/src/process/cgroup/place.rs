//! Which cgroup directory is ours: the one that was named, or our own when it was delegated to us.
//!
//! It makes no cgroup. It may move this process: out of the cgroup of a worker that started it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, getxattr, statfs};

/// `f_type` of a cgroup2 file system.
const CGROUP2_MAGIC: u64 = 0x6367_7270;

/// By these the system's systemd marks a cgroup that was handed over (`Delegate=yes`); the second is for root's eyes. User
/// managers do not mark theirs (seen with 252).
const DELEGATE_ATTRIBUTES: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// Where the daemon's cgroups are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// In the supervisor's own cgroup, if that was delegated to it.
    Auto,
    /// There in any case: user managers of systemd hand over a cgroup and leave no mark on it.
    Own,
    /// Nowhere.
    Off,
    /// In this directory.
    Directory(PathBuf),
}

impl Setting {
    /// As it stands on the command line.
    pub fn parse(word: OsString) -> Result<Self, &'static str> {
        match word.to_str() {
            Some("auto") => Ok(Self::Auto),
            Some("own") => Ok(Self::Own),
            Some("off") => Ok(Self::Off),
            Some(_) | None if Path::new(&word).is_absolute() => Ok(Self::Directory(word.into())),
            Some(_) | None => Err("write auto, own, off, or the absolute path of a cgroup2 directory"),
        }
    }

    /// The word that parses to it.
    pub fn word(&self) -> OsString {
        match self {
            Self::Auto => "auto".into(),
            Self::Own => "own".into(),
            Self::Off => "off".into(),
            Self::Directory(path) => path.clone().into(),
        }
    }
}

/// Why the directory that was named cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the cgroup directory {} {reason}: name a cgroup2 directory that is yours, or start with --cgroup auto or --cgroup off", path.display())]
pub struct CgroupError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug, thiserror::Error)]
enum Reason {
    #[error("is shown by no cgroup2 file system that is mounted here")]
    NotMounted,
    #[error("cannot be used ({0})")]
    Unusable(io::Error),
    #[error("is not on a cgroup2 file system")]
    NotCgroup2,
    #[error("cannot be written: {} ({source})", file.display())]
    NotWritable { file: PathBuf, source: io::Error },
    #[error("cannot be used, because this daemon was started by a worker and cannot leave its cgroup ({0})")]
    InWorker(io::Error),
}

/// The directory to use; `None` is none.
pub fn choose(setting: &Setting) -> Result<Option<PathBuf>, CgroupError> {
    let left = leave_worker();
    let own = Own::find().map(|own| own.directory());
    let path = match setting {
        Setting::Auto | Setting::Off => {
            if let Err(error) = left {
                tracing::warn!(%error, "started by a worker, and its cgroup cannot be left: this daemon ends with it, and uses none");
                return Ok(None);
            }
            let is_given = |directory: &PathBuf| is_delegated(directory) && is_writable(directory).is_ok();
            let chosen = own.filter(|directory| *setting == Setting::Auto && is_given(directory));
            if chosen.is_none() {
                tracing::info!(?setting, "no cgroups: workers are found by session, group, parents and mark");
            }
            return Ok(chosen);
        }
        Setting::Own => own.ok_or(CgroupError { path: "own".into(), reason: Reason::NotMounted })?,
        Setting::Directory(path) => path.clone(),
    };
    match checked(&path).and_then(|directory| left.map(|()| directory).map_err(Reason::InWorker)) {
        Ok(directory) => Ok(Some(directory)),
        Err(reason) => Err(CgroupError { path, reason }),
    }
}

fn checked(path: &Path) -> Result<PathBuf, Reason> {
    let directory = fs::canonicalize(path).map_err(Reason::Unusable)?;
    let found = statfs(&directory).map_err(|error| Reason::Unusable(error.into()))?;
    if u64::try_from(found.f_type).ok() != Some(CGROUP2_MAGIC) {
        return Err(Reason::NotCgroup2);
    }
    is_writable(&directory)?;
    // To put a process there from here, the kernel asks for the right to write where both paths meet.
    let own = Own::find().map(|own| own.directory());
    let above = own.and_then(|own| directory.ancestors().find(|above| own.starts_with(above)).map(Path::to_owned));
    if let Some(procs) = above.map(|above| above.join("cgroup.procs")).filter(|procs| procs.exists()) {
        writable(&procs)?;
    }
    Ok(directory)
}

fn is_writable(directory: &Path) -> Result<(), Reason> {
    writable(directory)?;
    writable(&directory.join("cgroup.procs"))
}

fn writable(file: &Path) -> Result<(), Reason> {
    access(file, Access::WRITE_OK).map_err(|error| Reason::NotWritable { file: file.into(), source: error.into() })
}

fn is_delegated(directory: &Path) -> bool {
    DELEGATE_ATTRIBUTES.iter().any(|name| {
        let mut value = [0_u8; 8];
        getxattr(directory, *name, &mut value).is_ok_and(|length| value.get(..length) == Some(b"1"))
    })
}

/// A daemon that a worker started is no part of it: it must not end with the worker's cgroup.
fn leave_worker() -> io::Result<()> {
    let Some(above) = Own::find().and_then(|own| own.above_worker()) else { return Ok(()) };
    tracing::info!(to = %above.display(), "started by a worker: leaving its cgroup");
    fs::write(above.join("cgroup.procs"), "0")
}

/// The cgroup that this process is in.
#[derive(Debug, PartialEq, Eq)]
struct Own {
    /// Where the file system is mounted.
    mount: PathBuf,
    /// The cgroup, relative to that.
    below: PathBuf,
}

impl Own {
    fn find() -> Option<Self> {
        Self::parse(&fs::read("/proc/self/cgroup").ok()?, &fs::read("/proc/self/mountinfo").ok()?)
    }

    /// From the line `0::/PATH` and the mount of type `cgroup2` that shows this path.
    fn parse(cgroups: &[u8], mounts: &[u8]) -> Option<Self> {
        let path = cgroups.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        // Outside of our cgroup namespace: no mount of ours shows it.
        if path.components().any(|part| part == std::path::Component::ParentDir) {
            return None;
        }
        mounts.split(|byte| *byte == b'\n').find_map(|line| {
            let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            let separator = fields.iter().position(|field| field == b"-")?;
            if fields.get(separator + 1) != Some(&b"cgroup2".as_slice()) {
                return None;
            }
            let below = path.strip_prefix(unescaped(fields.get(3)?)).ok()?.to_owned();
            Some(Self { mount: unescaped(fields.get(4)?), below })
        })
    }

    fn directory(&self) -> PathBuf {
        // Joined with nothing it would end in `/`, which is no other path but compares badly.
        if self.below.as_os_str().is_empty() { self.mount.clone() } else { self.mount.join(&self.below) }
    }

    /// The directory above the outermost worker's cgroup that this one is in.
    fn above_worker(&self) -> Option<PathBuf> {
        let parts: Vec<_> = self.below.components().collect();
        let at = parts.iter().position(|part| part.as_os_str().to_str().is_some_and(super::is_ours))?;
        Some(parts[..at].iter().fold(self.mount.clone(), |path, part| path.join(part)))
    }
}

/// A path of mountinfo: blanks and the like are written as three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal =
            after.get(..3).filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    const HYBRID: &[u8] = b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:4 - cgroup2 cgroup2 rw\n";

    fn own(cgroups: &str, mounts: &[u8]) -> Option<String> {
        Own::parse(cgroups.as_bytes(), mounts).map(|own| own.directory().to_str().unwrap().to_owned())
    }

    #[test]
    fn our_own_directory_is_where_the_mount_shows_it() {
        assert_eq!(own("1:cpu:/a\n0::/user/b c\n", HYBRID).as_deref(), Some("/sys/fs/cgroup/uni fied/user/b c"));
        assert_eq!(own("0::/\n", HYBRID).as_deref(), Some("/sys/fs/cgroup/uni fied"));
        // A container that sees only a part of the file system.
        let part = b"9 8 0:38 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        assert_eq!(own("0::/docker/1/x\n", part).as_deref(), Some("/sys/fs/cgroup/x"));
        assert_eq!(own("0::/docker/2\n", part), None);
        assert_eq!(own("0::/../x\n", HYBRID), None);
        assert_eq!(own("1:cpu:/a\n", HYBRID), None);
        assert_eq!(own("0::/\n", b"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"), None);
    }

    #[test]
    fn a_daemon_in_a_workers_cgroup_knows_the_way_out() {
        let above = |path: &str| Own { mount: "/c".into(), below: path.into() }.above_worker();
        assert_eq!(above("user/roost-0123456789abcdef-x1-1/deep/roost-0123456789abcdef-x2-1"), Some("/c/user".into()));
        assert_eq!(above("roost-0123456789abcdef-x1-1"), Some("/c".into()));
        assert_eq!(above("user/roost.service"), None);
    }

    #[test]
    fn a_directory_that_is_no_cgroup_is_refused_in_words() {
        for (path, reason) in [("/no/such/place", "No such file"), ("/proc", "not on a cgroup2 file system")] {
            let said = choose(&Setting::Directory(path.into())).unwrap_err().to_string();
            assert!(said.contains(path) && said.contains(reason) && said.contains("--cgroup off"), "{said}");
        }
    }

    #[test]
    fn settings_are_three_words_or_an_absolute_path() {
        for word in ["auto", "own", "off", "/sys/fs/cgroup/x"] {
            assert_eq!(Setting::parse(word.into()).map(|setting| setting.word()), Ok(word.into()));
        }
        assert!(Setting::parse("Auto".into()).is_err() && Setting::parse("".into()).is_err());
        let odd = OsString::from_vec(b"/\xff".to_vec());
        assert_eq!(Setting::parse(odd.clone()).map(|setting| setting.word().as_bytes().to_vec()), Ok(odd.into_vec()));
    }
}
