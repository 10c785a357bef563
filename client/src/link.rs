//! One open socket: lines out, answers in, with deadlines. It knows no calls, no hello and no second try.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use interprocess::local_socket::traits::{Stream as _, StreamCommon as _};
use interprocess::local_socket::{GenericFilePath, Stream, ToFsName};
use roost_proto::frame::Lines;
use roost_proto::rpc::Answer;

/// How long a daemon may leave bytes of ours unread.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// The smallest timeout that a socket takes; zero would mean none.
const TICK: Duration = Duration::from_millis(1);

pub(crate) struct Link {
    stream: Stream,
    lines: Lines,
}

impl Link {
    /// Connects. `NotFound` and `ConnectionRefused` mean that nobody listens.
    pub(crate) fn dial(socket: &Path) -> io::Result<Self> {
        let stream = Stream::connect(socket.to_fs_name::<GenericFilePath>()?)?;
        stream.set_send_timeout(Some(SEND_TIMEOUT))?;
        Ok(Self { stream, lines: Lines::default() })
    }

    /// The user of the process behind the socket.
    pub(crate) fn peer_uid(&self) -> io::Result<u32> {
        self.stream.peer_creds()?.euid().ok_or_else(|| io::Error::other("the system does not say whose the socket is"))
    }

    /// Sends one line; the LF is added.
    pub(crate) fn send(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        self.stream.write_all(&line).map_err(as_timeout)
    }

    /// The next answer or notification. `TimedOut` after the deadline, `UnexpectedEof` when the daemon is gone, `InvalidData`
    /// when it speaks something else.
    pub(crate) fn receive(&mut self, deadline: Option<Instant>) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.buffered()? {
                return Ok(answer);
            }
            let timeout = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if timeout == Some(Duration::ZERO) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.stream.set_recv_timeout(timeout.map(|left| left.max(TICK)))?;
            self.fill()?;
        }
    }

    /// An answer that has already arrived whole, without touching the socket.
    pub(crate) fn buffered(&mut self) -> io::Result<Option<Answer>> {
        let line = self.lines.next_line().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        line.map(|line| serde_json::from_slice(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))).transpose()
    }

    /// Takes in what has arrived; blocks when nothing has.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.lines.push(&buffer[..read]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            // The deadline is looked at by the caller's loop.
            Err(error) if as_timeout_kind(error.kind()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let Stream::UdSocket(stream) = &self.stream;
        stream.as_fd()
    }
}

/// Whether nobody listens there, as opposed to something being wrong.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn as_timeout_kind(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn as_timeout(error: io::Error) -> io::Error {
    if as_timeout_kind(error.kind()) { io::ErrorKind::TimedOut.into() } else { error }
}
