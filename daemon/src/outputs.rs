//! The files of executions: `x12-1.out`, `.err`, `.in` and `.ctx`, named by incarnation, never by what a user chose.
//!
//! It reads answers and writes what a process finds on its standard input. It knows no journal and no session.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use roost_core::effect::End;
use roost_proto::id::{Epoch, ExecutionId, Incarnation};
use roost_proto::limits::ANSWER_TEXT_BYTES_MAX;

use crate::session::translate::{Answer, Outputs as OutputPaths};

/// The directory of them all.
#[derive(Debug, Clone)]
pub struct Outputs {
    directory: PathBuf,
}

impl Outputs {
    /// The files below this directory, which is there.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Standard output of an incarnation.
    pub fn stdout(&self, incarnation: Incarnation) -> PathBuf {
        self.path(incarnation, "out")
    }

    /// Standard error of an incarnation.
    pub fn stderr(&self, incarnation: Incarnation) -> PathBuf {
        self.path(incarnation, "err")
    }

    /// Writes what an incarnation finds on its standard input.
    ///
    /// # Errors
    /// When it cannot be written. It is not synced: the journal holds the text.
    pub fn write_stdin(&self, incarnation: Incarnation, text: &[u8]) -> io::Result<PathBuf> {
        self.write(incarnation, "in", text)
    }

    /// Writes the context that a woken incarnation finds by `ROOST_CONTEXT`.
    ///
    /// # Errors
    /// As for [`Outputs::write_stdin`].
    pub fn write_context(&self, incarnation: Incarnation, context: &[u8]) -> io::Result<PathBuf> {
        self.write(incarnation, "ctx", context)
    }

    /// Keeps what a worker that speaks has answered in a file, for whoever wants all of it. It is not synced: the journal holds the text.
    ///
    /// # Errors
    /// As for [`Outputs::write_stdin`].
    pub fn keep_answer(&self, incarnation: Incarnation, text: &[u8]) -> io::Result<PathBuf> {
        let path = self.path(incarnation, "ans");
        match std::fs::metadata(&path) {
            Ok(found) if found.len() == text.len() as u64 => Ok(path),
            Ok(_) | Err(_) => self.write(incarnation, "ans", text),
        }
    }

    /// Removes all files of an execution.
    pub fn remove(&self, execution: ExecutionId, last: Epoch) {
        for epoch in 1..=last.0 {
            for kind in ["out", "err", "in", "ctx", "ans"] {
                let path = self.path(Incarnation { execution, epoch: Epoch(epoch) }, kind);
                if let Err(error) = std::fs::remove_file(&path)
                    && error.kind() != io::ErrorKind::NotFound
                {
                    tracing::warn!(path = %path.display(), %error, "a file that is not needed any more stays");
                }
            }
        }
    }

    fn path(&self, incarnation: Incarnation, kind: &str) -> PathBuf {
        self.directory.join(format!("{incarnation}.{kind}"))
    }

    fn write(&self, incarnation: Incarnation, kind: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path(incarnation, kind);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        // Half a file is of no use to anybody, and on a full disk it takes the room of the journal.
        file.write_all(bytes).inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(path)
    }
}

impl Outputs {
    /// What a plain command has answered: its standard output.
    pub fn answer(&self, end: &End) -> Answer {
        if end.epoch == Epoch(0) {
            return Answer { text: String::new(), bytes: 0, truncated: false, path: None };
        }
        let path = self.stdout(Incarnation { execution: end.execution, epoch: end.epoch });
        match read_text(&path) {
            Ok((text, bytes, truncated)) => Answer { text, bytes, truncated, path: Some(path.to_string_lossy().into_owned()) },
            Err(error) => {
                // A start that failed has no file; anything else is worth a line, and never changes an outcome.
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(path = %path.display(), %error, "an answer cannot be read");
                }
                Answer { text: String::new(), bytes: 0, truncated: false, path: None }
            }
        }
    }

    /// The output files of an execution, up to this incarnation.
    pub fn outputs(&self, execution: ExecutionId, epoch: Epoch) -> OutputPaths {
        let of = |kind: &str| {
            (1..=epoch.0)
                .map(|epoch| self.path(Incarnation { execution, epoch: Epoch(epoch) }, kind).to_string_lossy().into_owned())
                .collect()
        };
        OutputPaths { stdout: of("out"), stderr: of("err") }
    }
}

/// The first part of a file as text, how many bytes the whole has, and whether there is more.
fn read_text(path: &Path) -> io::Result<(String, u64, bool)> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut start = Vec::new();
    file.take(ANSWER_TEXT_BYTES_MAX + 1).read_to_end(&mut start)?;
    let (text, truncated) = text_of(start);
    Ok((text, bytes, truncated))
}

/// The first part of some bytes as text, and whether there is more.
pub fn text_of(mut start: Vec<u8>) -> (String, bool) {
    let most = usize::try_from(ANSWER_TEXT_BYTES_MAX).unwrap_or(usize::MAX);
    let truncated = start.len() > most;
    if truncated {
        start.truncate(most);
        // A character that the limit cut in two is left out, not replaced.
        let end = match std::str::from_utf8(&start) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Ok(_) | Err(_) => start.len(),
        };
        start.truncate(end);
    }
    (String::from_utf8_lossy(&start).into_owned(), truncated)
}

/// A path as bytes, for the link.
pub fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_of(bytes: &[u8]) -> Answer {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x7-2.out"), bytes).unwrap();
        let end = End {
            name: "a".into(),
            worker: roost_proto::id::WorkerId(1),
            execution: ExecutionId(7),
            job: roost_proto::id::JobId(1),
            task_index: 0,
            epoch: Epoch(2),
            outcome: roost_proto::outcome::Outcome::Completed,
            said: None,
            speaks: false,
            told_before: false,
            usage: None,
            leftovers: Vec::new(),
        };
        Outputs::new(directory.path().to_owned()).answer(&end)
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_and_counted_as_they_are() {
        let answer = answer_of(b"ok\xff\xfeend");
        assert_eq!((answer.text.as_str(), answer.bytes, answer.truncated), ("ok\u{fffd}\u{fffd}end", 7, false));
    }

    #[test]
    fn a_long_answer_is_cut_between_characters_and_says_so() {
        let long = "你".repeat(50_000);
        let answer = answer_of(long.as_bytes());
        assert_eq!((answer.bytes, answer.truncated), (150_000, true));
        assert!(long.starts_with(&answer.text) && answer.text.len() > 65_000);
    }
}
