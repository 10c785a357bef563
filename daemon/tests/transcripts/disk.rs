//! A small file system of a test's own, and patience with what another thread or process does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::not_tested::not_tested;

const PATIENCE: Duration = Duration::from_secs(20);

/// A file system in memory. It needs root; a test that cannot have it says so and ends.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts it there.
    pub fn mount(path: &Path, kibibytes: u32) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let options = format!("size={kibibytes}k,mode=0700");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "roost-transcripts"]).arg(path).output().unwrap();
        if !done.status.success() {
            not_tested(&format!("no tmpfs can be mounted: {}", String::from_utf8_lossy(&done.stderr).trim()));
            return None;
        }
        Some(Self { path: path.to_owned() })
    }

    /// Until nothing can be written any more.
    pub fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.path.join("fill")).unwrap();
        while file.write_all(&[0; 4_096]).is_ok() {}
    }

    /// Gives all of it back.
    pub fn make_room(&self) {
        fs::remove_file(self.path.join("fill")).unwrap();
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

/// Waits for what no descriptor tells of.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
