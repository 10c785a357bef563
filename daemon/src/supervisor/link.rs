//! The supervisor's end of the link: frames in, frames out, never blocking.
//!
//! It does not know what the frames are about.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use roost_proto::link::{Decoder, LinkError, ToBroker, ToSupervisor, encode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};

/// Why a link is of no use any more.
#[derive(Debug, thiserror::Error)]
pub enum LinkFailure {
    /// The other end speaks another language.
    #[error(transparent)]
    Frame(#[from] LinkError),
    /// The kernel said no.
    #[error("the link to the broker failed: {0}")]
    Io(#[from] io::Error),
}

/// One end of the socket pair.
#[derive(Debug)]
pub struct Link {
    socket: OwnedFd,
    decoder: Decoder,
    /// Bytes that the other end has not taken. Bounded by what there is to report: a few frames for each child.
    unsent: Vec<u8>,
    /// Whether the other end is closed and all that it sent has been read.
    pub is_closed: bool,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Link {
    /// A pair: ours, non-blocking, and the broker's.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((Self { socket: ours, decoder: Decoder::default(), unsent: Vec::new(), is_closed: false }, theirs))
    }

    /// Queues a message and sends what can be sent now.
    pub fn send(&mut self, message: &ToBroker) -> Result<(), LinkFailure> {
        self.unsent.extend(encode(message)?);
        self.flush()
    }

    /// Whether there is something to send when the socket is writable.
    pub fn wants_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Sends what can be sent now. That nobody reads any more is told by reading, not here.
    pub fn flush(&mut self) -> Result<(), LinkFailure> {
        while !self.unsent.is_empty() {
            match send(&self.socket, &self.unsent, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => self.unsent.clear(),
                Err(error) => return Err(LinkFailure::Io(error.into())),
            }
        }
        Ok(())
    }

    /// The next message that has arrived whole.
    pub fn receive(&mut self) -> Result<Option<ToSupervisor>, LinkFailure> {
        loop {
            if let Some(message) = self.decoder.next_message()? {
                return Ok(Some(message));
            }
            if self.is_closed {
                return Ok(None);
            }
            let mut buffer = [0; 64 << 10];
            match recv(&self.socket, &mut buffer, RecvFlags::empty()) {
                Ok((0, _)) | Err(Errno::CONNRESET) => self.is_closed = true,
                Ok((count, _)) => self.decoder.push(&buffer[..count]),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(LinkFailure::Io(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roost_proto::link::LINK_VERSION;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_was_sent_before_the_end_is_read_before_the_end() {
        let (mut link, theirs) = Link::pair().unwrap();
        let mut theirs = UnixStream::from(theirs);
        assert!(link.receive().unwrap().is_none());
        for message in [ToSupervisor::Hello { version: LINK_VERSION }, ToSupervisor::Shutdown] {
            theirs.write_all(&encode(&message).unwrap()).unwrap();
        }
        drop(theirs);
        assert_eq!(link.receive().unwrap(), Some(ToSupervisor::Hello { version: LINK_VERSION }));
        assert_eq!(link.receive().unwrap(), Some(ToSupervisor::Shutdown));
        assert!(link.receive().unwrap().is_none() && link.is_closed);
        link.send(&ToBroker::Terminate).unwrap();
        assert!(!link.wants_write());
    }

    #[test]
    fn a_reader_that_does_not_read_blocks_nobody() {
        let (mut link, _theirs) = Link::pair().unwrap();
        while !link.wants_write() {
            link.send(&ToBroker::Terminate).unwrap();
        }
        assert!(link.receive().unwrap().is_none() && !link.is_closed);
    }
}
