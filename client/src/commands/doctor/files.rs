//! What is on the disk: directories, room, the journal, copies that were left.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use roost::proto::paths::Paths;

use super::{Check, quoted};

const MIB: u64 = 1 << 20;
/// With less than this transcripts are not written any more, and soon nothing is.
const ROOM_LEAST: u64 = 16 * MIB;
/// With less than this it will not be long.
const ROOM_LOW: u64 = 256 * MIB;
/// A journal of this size makes starts slow.
const JOURNAL_LARGE: u64 = 1_024 * MIB;

pub fn checks(paths: &Paths) -> Vec<Check> {
    let mut checks = vec![directory("state", &paths.state_dir)];
    if let Some(folder) = paths.socket.parent().filter(|folder| *folder != paths.state_dir) {
        checks.push(directory("socket-dir", folder));
    }
    checks.extend([room(&paths.state_dir), journal(&paths.state_dir), copies(&paths.state_dir)]);
    checks
}

fn directory(name: &'static str, path: &Path) -> Check {
    let shown = path.display();
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Check::ok(name, format!("{shown} is not there yet")),
        Err(error) => return Check::error(name, format!("cannot look at {shown}: {error}"), format!("ls -ld {}", quoted(path))),
    };
    let (mode, uid) = (found.permissions().mode() & 0o777, rustix::process::geteuid().as_raw());
    if !found.is_dir() {
        return Check::error(name, format!("{shown} is not a directory"), format!("mv {0} {0}.moved-away", quoted(path)));
    }
    if found.uid() != uid {
        return Check::error(
            name,
            format!("{shown} belongs to uid {}, and you are uid {uid}", found.uid()),
            "unset ROOST_STATE_DIR ROOST_SOCKET",
        );
    }
    if mode != 0o700 {
        return Check::error(
            name,
            format!("{shown} has mode {mode:o}, and only 700 keeps it yours"),
            format!("chmod 700 {}", quoted(path)),
        );
    }
    Check::ok(name, format!("{shown} is yours alone"))
}

/// On the disk of the directory, or of where it will be.
fn room(state_dir: &Path) -> Check {
    let there = state_dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(found) => room_of(state_dir, found.f_bavail.saturating_mul(found.f_frsize)),
        Err(error) => Check::error(
            "disk",
            format!("cannot see how full the disk of {} is: {error}", there.display()),
            format!("df {}", quoted(there)),
        ),
    }
}

fn room_of(state_dir: &Path, free: u64) -> Check {
    let message = format!("{} MiB are free for {}", free / MIB, state_dir.display());
    let mend = format!("du -sh {}/*", quoted(state_dir));
    match free {
        0..ROOM_LEAST => Check::error("disk", message, mend),
        ROOM_LEAST..ROOM_LOW => Check::warning("disk", message, mend),
        _ => Check::ok("disk", message),
    }
}

fn journal(state_dir: &Path) -> Check {
    let size = |name: &str| fs::metadata(state_dir.join(name)).map_or(0, |found| found.len());
    let bytes = size("roost.db") + size("roost.db-wal");
    let message = format!("the journal has {} MiB", bytes.div_ceil(MIB));
    if bytes > JOURNAL_LARGE {
        return Check::warning("journal", message, "roost gc --older-than 7d");
    }
    Check::ok("journal", message)
}

/// Copies of a journal that was damaged, or of an older version. Nothing removes them by itself.
fn copies(state_dir: &Path) -> Check {
    let is_copy = |name: &str| name.starts_with("roost.db") && (name.contains(".damaged-") || name.ends_with("-backup"));
    let entries = fs::read_dir(state_dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.filter(|entry| is_copy(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect();
    found.sort();
    if found.is_empty() {
        return Check::ok("copies", "no copies of older or damaged journals are left");
    }
    let words: Vec<String> = found.iter().map(|path| quoted(path)).collect();
    Check::warning("copies", format!("{} copies of older or damaged journals are left", found.len()), format!("rm {}", words.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn a_disk_that_fills_is_told_before_it_is_full() {
        let level = |free| room_of(Path::new("/s"), free).level;
        assert_eq!([level(0), level(ROOM_LEAST), level(ROOM_LOW)], [Level::Error, Level::Warning, Level::Ok]);
    }
}
