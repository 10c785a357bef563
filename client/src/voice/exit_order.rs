//! The order to exit: a line on the standard input of a worker that speaks. It knows no socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use roost_proto::link::EXIT_LINE;

/// Where the order may come, and whether it has.
pub(super) struct ExitOrder {
    stdin: Option<OwnedFd>,
    /// What was read there and ends no line.
    word: Vec<u8>,
    has_come: bool,
}

impl ExitOrder {
    pub fn new(stdin: Option<OwnedFd>) -> Self {
        Self { stdin, word: Vec::new(), has_come: false }
    }

    pub fn has_come(&self) -> bool {
        self.has_come
    }

    /// Where it is to be awaited.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.stdin.as_ref().filter(|_| !self.has_come).map(AsFd::as_fd)
    }

    /// Reads what has come there. An end without the line is the death of the supervisor, and the next one goes on with us.
    pub fn read(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        let mut buffer = [0; 512];
        match rustix::io::read(stdin, &mut buffer) {
            Ok(0) => self.stdin = None,
            Ok(read) => {
                self.word.extend_from_slice(&buffer[..read]);
                self.has_come |= self.word.split_inclusive(|&byte| byte == b'\n').any(|line| line == EXIT_LINE);
                let line_start = self.word.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                self.word.drain(..line_start);
                self.word.truncate(EXIT_LINE.len());
            }
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => self.stdin = None,
        }
    }
}
