//! Events between a test and its workers, by named pipe: a worker writes a line and the test reads it, or a worker blocks in
//! `read` until the test lets it go. No one sleeps.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::PATIENCE;
use super::command::readable;

/// One named pipe, open at both ends on our side: nobody who opens it ever blocks for want of a partner.
pub struct Fifo {
    file: File,
    path: PathBuf,
    buffer: Vec<u8>,
}

impl Fifo {
    /// Makes it.
    pub fn new(path: &Path) -> Self {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag");
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
        Self { file: file.unwrap_or_else(|error| panic!("{}: {error}", path.display())), path: path.to_owned(), buffer: Vec::new() }
    }

    /// The next line that a worker wrote.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.line_within(PATIENCE).unwrap_or_else(|| panic!("nothing was written to {}", self.path.display()))
    }

    /// The next lines.
    #[track_caller]
    pub fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    /// The next line, if one comes in this time.
    pub fn line_within(&mut self, within: Duration) -> Option<String> {
        let until = Instant::now() + within;
        loop {
            if let Some(at) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=at).collect();
                return Some(String::from_utf8_lossy(&line[..at]).into_owned());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            self.fill(left);
        }
    }

    /// Reads what there is, or comes in this time.
    fn fill(&mut self, within: Duration) {
        if readable(&self.file, within) {
            let mut bytes = [0; 4096];
            // Empty again is no error: somebody else was faster.
            if let Ok(read) = self.file.read(&mut bytes) {
                self.buffer.extend_from_slice(&bytes[..read]);
            }
        }
    }

    /// All that is written up to this text and with it.
    #[track_caller]
    pub fn until(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.buffer.windows(text.len()).position(|part| part == text.as_bytes()) {
                let bytes: Vec<u8> = self.buffer.drain(..at + text.len()).collect();
                return String::from_utf8_lossy(&bytes).into_owned();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{text:?} was not written: {:?}", String::from_utf8_lossy(&self.buffer));
            self.fill(left);
        }
    }

    /// Lets so many blocked `read`s go: each takes exactly one empty line.
    pub fn release(&mut self, readers: usize) {
        self.file.write_all(&vec![b'\n'; readers]).expect("the pipe has room");
    }
}
