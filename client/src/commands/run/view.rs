//! What a person sees of a `roost run` that failed, on standard error.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::session::Done;
use crate::output::{escape_line, note};

/// How much of a failed worker's standard error is passed on.
const STDERR_BYTES_MAX: u64 = 8 << 10;

/// Says why it did not complete: the end of its standard error, then one line.
pub(super) fn failure(done: &Done) {
    let end = &done.result.end;
    if end.outcome.is_success() {
        return;
    }
    if let Some(path) = &done.stderr_path
        && let Ok(tail) = tail(path)
        && !tail.is_empty()
    {
        note(&format!("roost: standard error of {} (its end; all of it is in {}):", escape_line(&end.name), escape_line(path)));
        let mut stderr = io::stderr();
        let written = stderr.write_all(&tail).and_then(|()| if tail.ends_with(b"\n") { Ok(()) } else { stderr.write_all(b"\n") });
        // Without standard error there is nobody to tell.
        written.ok();
    }
    note(&format!("roost: {} {}", escape_line(&end.name), escape_line(&end.outcome.to_string())));
}

fn tail(path: &str) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.take(STDERR_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_file_is_its_last_8_kib() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[b'a'; 10_000]).unwrap();
        file.write_all(b"end").unwrap();
        let tail = tail(file.path().to_str().unwrap()).unwrap();
        assert_eq!((tail.len(), tail.ends_with(b"aend")), (8 << 10, true));
    }
}
