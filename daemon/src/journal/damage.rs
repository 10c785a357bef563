//! What is done with a damaged journal: a copy beside it, once, and nothing else. It does not know what the damage is.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::error::{DamageCopy, OpenError};
use super::schema::sync_directory;

/// Copies the journal and its write-ahead log to the first `roost.db.damaged-N` that is free, unless there is such a copy already: the
/// supervisor starts a broker again and again, and that must not fill the disk.
pub(super) fn refuse(file: &Path, what: String) -> OpenError {
    let copy = keep(file).map_or_else(DamageCopy::Failed, DamageCopy::At);
    OpenError::Damaged { file: file.to_owned(), copy, what }
}

/// The write-ahead log of this file.
pub(super) fn wal_of(file: &Path) -> PathBuf {
    with_suffix(file, "-wal")
}

fn keep(file: &Path) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let target = with_suffix(file, &format!(".damaged-{number}"));
        if !target.try_exists()? && !wal_of(&target).try_exists()? {
            copy_both(file, &target).inspect_err(|_| remove_both(&target))?;
            return Ok(target);
        }
        if is_same(file, &target)? && is_same(&wal_of(file), &wal_of(&target))? {
            return Ok(target);
        }
        number += 1;
    }
}

fn copy_both(file: &Path, target: &Path) -> io::Result<()> {
    for (from, to) in [(file.to_owned(), target.to_owned()), (wal_of(file), wal_of(target))] {
        if from.try_exists()? {
            fs::copy(&from, &to)?;
            File::open(&to)?.sync_all()?;
        }
    }
    sync_directory(target)
}

fn remove_both(target: &Path) {
    for path in [target.to_owned(), wal_of(target)] {
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %path.display(), %error, "half a copy of a damaged journal stays");
        }
    }
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let open = |path: &Path| match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let (one, other) = match (open(one)?, open(other)?) {
        (Some(one), Some(other)) => (one, other),
        (None, None) => return Ok(true),
        (Some(_), None) | (None, Some(_)) => return Ok(false),
    };
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut one, mut other) = (BufReader::new(one), BufReader::new(other));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let bytes = left.len().min(right.len());
        if bytes == 0 {
            return Ok(left.len() == right.len());
        }
        if left[..bytes] != right[..bytes] {
            return Ok(false);
        }
        one.consume(bytes);
        other.consume(bytes);
    }
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
