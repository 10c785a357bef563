//! Reading directories for `tally`: what is in one, and how many are below it. Knows no workers.
//!
//! Names are bytes. Long paths are opened piece by piece, so that a tree may be deeper than one path can say; symbolic links are not
//! followed, and only regular files count.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use roost::proto::bytes::Bytes;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use serde::{Deserialize, Serialize};

/// How much of a path is opened at once; the kernel takes 4095 bytes.
const PIECE_BYTES: usize = 2_000;

/// What was counted.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub files: u64,
    pub lines: u64,
    pub bytes: u64,
    pub largest: Option<Largest>,
}

/// The largest file; of several of one size the first in byte order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {
    pub bytes: u64,
    pub path: Bytes,
}

/// A path, and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.as_os_str().display())]
pub struct Unreadable {
    path: Bytes,
    source: io::Error,
}

impl Unreadable {
    /// Whether it is not there any more.
    pub fn is_gone(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

impl Totals {
    /// Takes another count in.
    pub fn add(&mut self, other: Totals) {
        self.files += other.files;
        self.lines += other.lines;
        self.bytes += other.bytes;
        let ours = self.largest.take();
        self.largest = match (ours, other.largest) {
            (Some(a), Some(b)) if (b.bytes, &a.path) > (a.bytes, &b.path) => Some(b),
            (Some(a), _) => Some(a),
            (None, b) => b,
        };
    }
}

/// The regular files directly in a directory, and the paths of its sub-directories in byte order.
pub fn scan(directory: &Bytes, follow: bool) -> Result<(Totals, Vec<Bytes>), Unreadable> {
    let fd = open(directory, follow)?;
    let mut totals = Totals::default();
    let mut below = Vec::new();
    for (name, kind) in entries(&fd, directory)? {
        let path = join(directory, &name);
        if kind == FileType::Directory {
            below.push(path);
        } else if kind == FileType::RegularFile {
            match count(&fd, &name) {
                Ok((bytes, lines)) => totals.add(Totals { files: 1, lines, bytes, largest: Some(Largest { bytes, path }) }),
                // Removed since the directory was read: it is not there to be counted.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Unreadable { path, source }),
            }
        }
    }
    below.sort();
    Ok((totals, below))
}

/// How many directories are below this one, and how many levels of them.
pub fn directories_below(directory: &Bytes, follow: bool) -> Result<(u64, u32), Unreadable> {
    let (mut found, mut deepest) = (0, 0);
    let mut open_ones = vec![(directory.clone(), 0)];
    while let Some((path, level)) = open_ones.pop() {
        deepest = deepest.max(level);
        let fd = match open(&path, follow && level == 0) {
            Err(error) if level > 0 && error.is_gone() => continue,
            opened => opened?,
        };
        for (name, kind) in entries(&fd, &path)? {
            if kind == FileType::Directory {
                found += 1;
                open_ones.push((join(&path, &name), level + 1));
            }
        }
    }
    Ok((found, deepest))
}

fn open(path: &Bytes, follow: bool) -> Result<OwnedFd, Unreadable> {
    let unreadable = |error: rustix::io::Errno| Unreadable { path: path.clone(), source: error.into() };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let last_flags = if follow { flags } else { flags | OFlags::NOFOLLOW };
    let mut rest = path.0.as_slice();
    let mut at: Option<OwnedFd> = None;
    loop {
        // Cut at the last slash that fits; what is before it are directories.
        let cut = if rest.len() <= PIECE_BYTES { None } else { rest[..PIECE_BYTES].iter().rposition(|byte| *byte == b'/') };
        let (piece, flags) = cut.map_or((rest, last_flags), |cut| (&rest[..=cut], flags));
        let opened = match &at {
            Some(at) => openat(at, piece, flags, Mode::empty()),
            None => openat(CWD, piece, flags, Mode::empty()),
        };
        let opened = opened.map_err(unreadable)?;
        if cut.is_none() {
            return Ok(opened);
        }
        at = Some(opened);
        rest = &rest[piece.len()..];
        // A second slash would make the rest absolute.
        rest = &rest[rest.iter().take_while(|byte| **byte == b'/').count()..];
    }
}

fn entries(fd: &OwnedFd, directory: &Bytes) -> Result<Vec<(Vec<u8>, FileType)>, Unreadable> {
    let unreadable = |error: rustix::io::Errno| Unreadable { path: directory.clone(), source: error.into() };
    let mut found = Vec::new();
    for entry in Dir::read_from(fd).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        // Some file systems do not say it in the listing.
        let kind = if entry.file_type() == FileType::Unknown {
            FileType::from_raw_mode(statat(fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).map_err(unreadable)?.st_mode)
        } else {
            entry.file_type()
        };
        found.push((name.to_vec(), kind));
    }
    Ok(found)
}

/// Bytes and newlines of a file.
fn count(directory: &OwnedFd, name: &[u8]) -> io::Result<(u64, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(openat(directory, name, flags, Mode::empty())?);
    let (mut bytes, mut lines) = (0, 0);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, lines)),
            read => {
                bytes += read as u64;
                lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count() as u64;
            }
        }
    }
}

fn join(directory: &Bytes, name: &[u8]) -> Bytes {
    let slash: &[u8] = if directory.0.ends_with(b"/") { b"" } else { b"/" };
    Bytes([&directory.0, slash, name].concat())
}
