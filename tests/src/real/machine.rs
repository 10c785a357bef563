//! Parts of the machine that a test takes for itself and gives back: a small file system, a count of processes. Both need root;
//! a test that cannot have them says so and ends.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::not_tested;

/// Whether this test may be somebody else, or make something belong to somebody else; says so where it may not.
pub fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        not_tested("only root can be somebody else, or make something theirs");
    }
    is_root
}

/// A file system in memory of a size that can be filled.
pub struct SmallDisk {
    path: PathBuf,
    fill: PathBuf,
}

impl SmallDisk {
    /// Mounts it there. `None`, with a printed reason, where that is not possible.
    pub fn mount(path: &Path, kibibytes: u32) -> Option<Self> {
        fs::create_dir_all(path).expect("a directory");
        let options = format!("size={kibibytes}k,mode=0700");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "roost-tests"]).arg(path).output();
        match done {
            Ok(done) if done.status.success() => Some(Self { path: path.to_owned(), fill: path.join("fill") }),
            Ok(done) => {
                not_tested(&format!("no tmpfs can be mounted: {}", String::from_utf8_lossy(&done.stderr).trim()));
                None
            }
            Err(error) => {
                not_tested(&format!("no tmpfs can be mounted: {error}"));
                None
            }
        }
    }

    /// Writes until this many bytes are free; 0 is until nothing can be written any more.
    pub fn fill_up_to(&self, free: u64) {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&self.fill).expect("the filler");
        let zeros = vec![0; 64 << 10];
        while self.free() > free + zeros.len() as u64 && file.write_all(&zeros).is_ok() {}
        // The last pages one by one.
        while free == 0 && file.write_all(&zeros[..4096]).is_ok() {}
    }

    /// Gives all of it back.
    pub fn make_room(&self) {
        fs::remove_file(&self.fill).expect("the filler");
    }

    /// How many bytes are free.
    pub fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(&self.path).expect("a file system");
        stat.f_bavail * stat.f_frsize
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a daemon that is still there keeps it until it ends.
        if let Err(error) = Command::new("umount").arg("-l").arg(&self.path).status() {
            eprintln!("{} stays mounted: {error}", self.path.display());
        }
    }
}

/// A group of processes whose number can be limited, below those of this machine.
pub struct ProcessLimit {
    directory: PathBuf,
}

impl ProcessLimit {
    /// Makes a group and puts this process into it. `None`, with a printed reason, where that is not possible.
    pub fn around(pid: u32) -> Option<Self> {
        let parent = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new).into_iter().find(|path| path.join("cgroup.procs").exists());
        let directory = parent?.join(format!("roost-tests-{pid}"));
        let made = fs::create_dir(&directory).and_then(|()| {
            let limit = Self { directory: directory.clone() };
            fs::metadata(directory.join("pids.max"))?;
            fs::write(directory.join("cgroup.procs"), pid.to_string())?;
            Ok(limit)
        });
        made.inspect_err(|error| not_tested(&format!("the number of processes cannot be limited: {error}"))).ok()
    }

    /// No more than there are now.
    pub fn close(&self) {
        let current = fs::read_to_string(self.directory.join("pids.current")).expect("a number");
        fs::write(self.directory.join("pids.max"), current).expect("a limit");
    }

    /// As many as they like.
    pub fn open(&self) {
        fs::write(self.directory.join("pids.max"), "max").expect("a limit");
    }

    /// How often a fork was refused.
    pub fn refusals(&self) -> u64 {
        let events = fs::read_to_string(self.directory.join("pids.events")).unwrap_or_default();
        events.split_whitespace().last().and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

impl Drop for ProcessLimit {
    fn drop(&mut self) {
        self.open();
        // Whoever is still in it goes back to the group above; an empty group can be removed.
        let members = fs::read_to_string(self.directory.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines() {
            let above = self.directory.parent().unwrap_or(&self.directory).join("cgroup.procs");
            fs::write(above, pid).ok();
        }
        if let Err(error) = fs::remove_dir(&self.directory) {
            eprintln!("{} stays: {error}", self.directory.display());
        }
    }
}
