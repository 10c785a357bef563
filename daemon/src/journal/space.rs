//! Room on the file system: 4 MiB that are ours already, for the day when there is none, and a look at how much is free.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use roost_proto::limits::{BALLAST_BYTES, SPACE_LOW_BYTES};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

/// A file that can be given up.
#[derive(Debug)]
pub(super) struct Ballast {
    directory: PathBuf,
}

impl Ballast {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self { directory: state_dir.to_owned() }
    }

    /// Makes it whole, if it is not.
    pub(super) fn fill(&self) -> io::Result<()> {
        let path = self.path();
        if fs::metadata(&path).is_ok_and(|it| it.len() == BALLAST_BYTES) {
            return Ok(());
        }
        let filled = allocate(&path);
        if filled.is_err() {
            // Half a ballast would take the room that it is there to give.
            self.release();
        }
        filled
    }

    /// Gives it up. Says whether there was one.
    pub(super) fn release(&self) -> bool {
        match fs::remove_file(self.path()) {
            Ok(()) => true,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(%error, "the ballast could not be released");
                }
                false
            }
        }
    }

    /// A file system that does not say how full it is counts as roomy: a commit finds out.
    pub(super) fn space_is_low(&self) -> bool {
        fs2::available_space(&self.directory).is_ok_and(|free| free < SPACE_LOW_BYTES)
    }

    /// What the journal's files take.
    pub(super) fn journal_bytes(&self) -> u64 {
        let of = |name: &str| fs::metadata(self.directory.join(name)).map_or(0, |found| found.len());
        of("roost.db") + of("roost.db-wal")
    }

    fn path(&self) -> PathBuf {
        self.directory.join("ballast")
    }
}

fn allocate(path: &Path) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, BALLAST_BYTES) {
        Ok(()) => {}
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => write_out(&mut file)?,
        Err(error) => return Err(error.into()),
    }
    file.sync_all()
}

/// Not zeros: a file system that compresses would keep nothing of them.
fn write_out(file: &mut File) -> io::Result<()> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut block = Vec::with_capacity(1 << 16);
    for _ in 0..BALLAST_BYTES >> 16 {
        block.clear();
        while block.len() < 1 << 16 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            block.extend_from_slice(&state.to_le_bytes());
        }
        file.write_all(&block)?;
    }
    Ok(())
}
