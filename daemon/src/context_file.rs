//! Contexts that a worker keeps in a file of its own: looked at when it parks, and again when it is woken.
//!
//! Both may take as long as the disk takes, so neither is called on the driver's thread. It never writes to such a file and never
//! removes one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use roost_core::event::{Context, Digest, Place};
use roost_proto::limits::CONTEXT_FILE_BYTES_MAX;
use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

/// How much is read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Why a file is no context.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    /// Relative to what?
    #[error("its path is not absolute")]
    Relative,
    /// It, or a directory above it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A directory, a pipe.
    #[error("it is not a regular file")]
    NoFile,
    /// Somebody else could change it.
    #[error("it belongs to another user")]
    Foreign,
    /// Beyond the bound.
    #[error("it has {bytes} bytes, and the limit is {CONTEXT_FILE_BYTES_MAX}")]
    Large {
        /// How many, at least.
        bytes: u64,
    },
}

/// Takes a file as a context: syncs it, and says where it really is and what is in it.
///
/// # Errors
/// When it is none.
pub fn take(path: &Path) -> Result<(PathBuf, Context), Unfit> {
    if !path.is_absolute() {
        return Err(Unfit::Relative);
    }
    let path = path.canonicalize()?;
    let file = open(&path)?;
    file.sync_all()?;
    // Its name must be as durable as its bytes.
    File::open(path.parent().unwrap_or(&path))?.sync_all()?;
    let (bytes, digest) = read(file)?;
    Ok((path, Context { digest, bytes, place: Place::Path }))
}

/// Whether the file is what it was when it was taken.
///
/// # Errors
/// What is wrong with it, in words.
pub fn verify(path: &Path, context: Context) -> Result<(), String> {
    let wrong = |why: String| format!("{}: {why}", path.display().to_string().escape_debug());
    let file = open(path).map_err(|error| match &error {
        Unfit::Io(error) if error.kind() == io::ErrorKind::NotFound => wrong("it is gone".into()),
        Unfit::Io(_) | Unfit::Relative | Unfit::NoFile | Unfit::Foreign | Unfit::Large { .. } => wrong(error.to_string()),
    })?;
    let (bytes, digest) = read(file).map_err(|error| wrong(error.to_string()))?;
    if bytes != context.bytes {
        let how = if bytes < context.bytes { "shorter" } else { "longer" };
        return Err(wrong(format!("it is {how} than when it was saved, {bytes} bytes and not {}", context.bytes)));
    }
    if digest != context.digest {
        return Err(wrong("its content is not what it was when it was saved".into()));
    }
    Ok(())
}

fn open(path: &Path) -> Result<File, Unfit> {
    // A pipe without a writer must not hold us up; what it is is seen on the descriptor.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(Unfit::NoFile);
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(Unfit::Foreign);
    }
    if found.len() > CONTEXT_FILE_BYTES_MAX { Err(Unfit::Large { bytes: found.len() }) } else { Ok(file) }
}

/// How many bytes there are, and the first half of their SHA-256.
fn read(mut file: File) -> Result<(u64, Digest), Unfit> {
    let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK_BYTES]);
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        bytes += read as u64;
        // It may grow while it is read.
        if bytes > CONTEXT_FILE_BYTES_MAX {
            return Err(Unfit::Large { bytes });
        }
        hash.update(&chunk[..read]);
    }
    let hash: [u8; 32] = hash.finalize().into();
    Ok((bytes, Digest(hash[..16].iter().fold(0, |number, byte| (number << 8) | u128::from(*byte)))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_by_its_real_path_and_whole() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap().join("real");
        std::fs::write(&real, vec![7; CHUNK_BYTES + 1]).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("real", &link).unwrap();
        let (path, context) = take(&link).unwrap();
        let digest = crate::session::translate::digest_of(&vec![7; CHUNK_BYTES + 1]);
        assert_eq!((path, context), (real.clone(), Context { digest, bytes: CHUNK_BYTES as u64 + 1, place: Place::Path }));
        assert_eq!(verify(&real, context), Ok(()));
        std::fs::write(&real, vec![8; CHUNK_BYTES + 1]).unwrap();
        assert!(verify(&real, context).is_err_and(|why| why.contains("content")));
        std::fs::write(&real, "").unwrap();
        assert!(verify(&real, context).is_err_and(|why| why.contains("shorter")));
        std::fs::write(&real, vec![7; CHUNK_BYTES + 2]).unwrap();
        assert!(verify(&real, context).is_err_and(|why| why.contains("longer")));
        std::fs::remove_file(&real).unwrap();
        assert!(verify(&real, context).is_err_and(|why| why.contains("gone")));
        std::fs::create_dir(&real).unwrap();
        assert!(verify(&real, context).is_err_and(|why| why.contains("regular")));
    }

    #[test]
    fn what_is_no_context_says_why() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert!(matches!(take(Path::new("here")), Err(Unfit::Relative)));
        assert!(matches!(take(&at("missing")), Err(Unfit::Io(error)) if error.kind() == io::ErrorKind::NotFound));
        assert!(matches!(take(directory.path()), Err(Unfit::NoFile)));
        let pipe = at("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert!(matches!(take(&pipe), Err(Unfit::NoFile)));
        let large = File::create(at("large")).unwrap();
        large.set_len(CONTEXT_FILE_BYTES_MAX + 1).unwrap();
        assert!(matches!(take(&at("large")), Err(Unfit::Large { .. })));
        // Nothing keeps the superuser from reading.
        if !rustix::process::geteuid().is_root() {
            std::fs::write(at("closed"), "").unwrap();
            std::fs::set_permissions(at("closed"), std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
            assert!(matches!(take(&at("closed")), Err(Unfit::Io(error)) if error.kind() == io::ErrorKind::PermissionDenied));
        }
    }
}
