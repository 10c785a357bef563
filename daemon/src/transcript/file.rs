//! One transcript: lines are appended whole or not at all, and a tail that is not whole is cut before anything is added.
//!
//! It knows no line by its meaning but the last one of a transcript that is full.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// How much is read at once while the end of the last whole line is looked for.
const CHUNK_BYTES: u64 = 64 << 10;
/// In the last line of a transcript that takes no more.
pub(super) const FULL: &str = r#""kind":"gap","why":"size""#;

/// What is known of the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    /// Bytes of whole lines.
    pub(super) len: u64,
    /// The last of them says that there will be no more.
    pub(super) is_full: bool,
}

/// A transcript that lines can be added to.
#[derive(Debug)]
pub(super) struct Transcript {
    file: File,
    pub(super) tail: Tail,
    /// A last line that was not whole was cut off.
    pub(super) was_torn: bool,
}

impl Transcript {
    /// Opens it, made if need be. The end is looked at unless the file is as long as it was when this process left it.
    pub(super) fn open(path: &Path, known: Option<Tail>) -> io::Result<Self> {
        // Nobody is followed elsewhere, and a pipe without a reader does not hold us up.
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        if let Some(tail) = known.filter(|tail| tail.len == found.len()) {
            return Ok(Self { file, tail, was_torn: false });
        }
        let len = whole(&file, found.len())?;
        let was_torn = len < found.len();
        if was_torn {
            file.set_len(len)?;
        }
        let is_full = says_full(&file, len)?;
        Ok(Self { file, tail: Tail { len, is_full }, was_torn })
    }

    /// Adds lines. When that fails, nothing of them stays if it can be helped; the next opening sees to the rest.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(lines) {
            if let Err(error) = self.file.set_len(self.tail.len) {
                tracing::debug!(%error, "half a line of a transcript stays for now");
            }
            return Err(error);
        }
        self.tail.len += lines.len() as u64;
        Ok(())
    }
}

/// How many bytes there are up to the last LF.
fn whole(file: &File, len: u64) -> io::Result<u64> {
    let mut end = len;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES);
        chunk.resize(usize::try_from(end - start).unwrap_or(0), 0);
        file.read_exact_at(&mut chunk, start)?;
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn says_full(file: &File, len: u64) -> io::Result<bool> {
    // The line that says so is short.
    let start = len.saturating_sub(super::LAST_LINE_BYTES);
    let mut end = vec![0; usize::try_from(len - start).unwrap_or(0)];
    file.read_exact_at(&mut end, start)?;
    let last = end.strip_suffix(b"\n").and_then(|end| end.rsplit(|byte| *byte == b'\n').next());
    Ok(last.is_some_and(|last| last.windows(FULL.len()).any(|part| part == FULL.as_bytes())))
}
