//! A cgroup2 directory of a test's own, where this machine lets one have it.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{SeekFrom, inotify, seek};

use super::{PATIENCE, not_tested};

/// Made for one test; all that is in it ends with it.
pub struct CgroupDirectory {
    path: PathBuf,
}

impl CgroupDirectory {
    /// Makes it. `None`, with a printed reason, where no cgroup2 file system can be written.
    pub fn make() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("roost-tests-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let of_type = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|fields| fields.get(2) == Some(&"cgroup2"));
        let made = of_type.map(|fields| Path::new(fields[1]).join(&name)).find(|path| fs::create_dir(path).is_ok());
        if made.is_none() {
            not_tested("no cgroup2 directory can be made");
        }
        made.map(|path| Self { path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As a flag's value.
    #[track_caller]
    pub fn text(&self) -> &str {
        self.path.to_str().expect("a path of text")
    }

    /// Waits until there is no cgroup in it.
    #[track_caller]
    pub fn await_none(&self) {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).expect("inotify");
        inotify::add_watch(&events, &self.path, inotify::WatchFlags::DELETE).expect("a watch");
        let patience = Timespec::try_from(PATIENCE).expect("a time");
        while !self.names().is_empty() {
            let heard = poll(&mut [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::IN)], Some(&patience)).expect("poll");
            assert!(heard > 0, "these stay: {:?}", self.names());
            while rustix::io::read(&events, &mut [0; 4096]).is_ok() {}
        }
    }

    /// The cgroups directly in it.
    pub fn names(&self) -> Vec<String> {
        below(&self.path).iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
    }
}

impl Drop for CgroupDirectory {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            eprintln!("{} stays: {error}", self.path.display());
        }
    }
}

fn below(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn remove(path: &Path) -> std::io::Result<()> {
    fs::write(path.join("cgroup.kill"), "1")?;
    let events = File::open(path.join("cgroup.events"))?;
    let patience = Timespec::try_from(PATIENCE).expect("a time");
    while std::io::read_to_string(&events)?.contains("populated 1") {
        if poll(&mut [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::PRI)], Some(&patience))? == 0 {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        seek(&events, SeekFrom::Start(0))?;
    }
    below(path).iter().try_for_each(|path| remove(path))?;
    fs::remove_dir(path)
}
