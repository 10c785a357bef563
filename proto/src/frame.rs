//! Bytes to lines and back: one JSON object per LF, bounded. Splits on LF alone: CR, NEL, U+2028 and NUL inside a line are data.
//!
//! No I/O here; whoever reads the socket pushes what it got.

use crate::limits::LINE_BYTES_MAX;

/// A line was longer than [`LINE_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {LINE_BYTES_MAX} bytes")]
pub struct LineTooLong;

/// Bytes as they arrive, lines as they are complete. Empty lines, and a CR before the LF, are passed over.
#[derive(Debug, Default)]
pub struct Lines {
    buffer: Vec<u8>,
    start: usize,
    searched: usize,
}

impl Lines {
    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole line, without its end.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        loop {
            let Some(at) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                let waiting = self.buffer.len() - self.start;
                return if waiting > LINE_BYTES_MAX { Err(LineTooLong) } else { Ok(None) };
            };
            let (from, to) = (self.start, self.searched + at);
            self.start = to + 1;
            self.searched = to + 1;
            if to - from > LINE_BYTES_MAX {
                return Err(LineTooLong);
            }
            let line = self.buffer[from..to].strip_suffix(b"\r").unwrap_or(&self.buffer[from..to]);
            if !line.is_empty() {
                let end = from + line.len();
                return Ok(Some(&self.buffer[from..end]));
            }
        }
    }

    /// Whether the input ended in the middle of a line.
    pub fn has_rest(&self) -> bool {
        self.start < self.buffer.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_however_they_are_cut() {
        let input = "a\u{2028}b\n\n\r\nc\u{85}d\r\ne\0\rf\ng".as_bytes();
        for step in [1, 2, 7, input.len()] {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            for piece in input.chunks(step) {
                lines.push(piece);
                while let Some(line) = lines.next_line().unwrap() {
                    seen.push(line.to_vec());
                }
            }
            assert_eq!(seen, ["a\u{2028}b".as_bytes(), "c\u{85}d".as_bytes(), b"e\0\rf"]);
            assert!(lines.has_rest());
        }
    }

    #[test]
    fn a_line_over_the_limit_is_refused_before_its_end_arrives() {
        let mut lines = Lines::default();
        lines.push(&vec![b'a'; LINE_BYTES_MAX]);
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"a");
        assert_eq!(lines.next_line(), Err(LineTooLong));
    }
}
