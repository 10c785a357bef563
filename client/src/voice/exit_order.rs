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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// After each piece: whether the order has come, and whether more is awaited.
    fn after(pieces: &[&str]) -> Vec<(bool, bool)> {
        let (read, mut write) = std::io::pipe().unwrap();
        let mut order = ExitOrder::new(Some(read.into()));
        let mut take = |piece: &str| {
            write.write_all(piece.as_bytes()).unwrap();
            order.read();
            (order.has_come(), order.descriptor().is_some())
        };
        let mut seen: Vec<_> = pieces.iter().map(|piece| take(piece)).collect();
        drop(write);
        order.read();
        seen.push((order.has_come(), order.descriptor().is_some()));
        seen
    }

    #[test]
    fn the_order_is_a_whole_line_however_it_comes_and_an_end_is_none() {
        let (nothing, come, over) = ((false, true), (true, false), (false, false));
        assert_eq!(after(&["exit\n"]), [come, come]);
        assert_eq!(after(&["e", "xi", "t", "\n", "more"]), [nothing, nothing, nothing, come, come, come]);
        assert_eq!(after(&["a\nexit\nb"]), [come, come]);
        assert_eq!(after(&["not\nex", "it\n"]), [nothing, come, come]);
        assert_eq!(after(&[]), [over]);
        assert_eq!(after(&["exit"]), [nothing, over]);
        for other in ["exit now\n", "an exit\n", "EXIT\n", " exit\n", "exit\r\n"] {
            assert_eq!(after(&[other]), [nothing, over], "{other:?}");
            let (first, rest) = other.split_at(4);
            assert_eq!(after(&[first, rest]), [nothing, nothing, over], "{other:?}");
        }
        let long = "exit".repeat(1_000);
        assert_eq!(after(&[&long[..500], &long[..12], "exit\n", "exit\n"]), [nothing, nothing, nothing, come, come]);
    }
}
