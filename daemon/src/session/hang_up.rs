//! Whether a peer that writes no more is still there to read.
//!
//! It knows no call and no line.

use std::io;
use std::os::fd::AsFd;

use interprocess::os::unix::uds_local_socket::tokio::Stream;
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Tells a peer that is gone from one that only writes no more (`printf ... | socat - UNIX:...`): both end the input, but only the
/// former hangs up, and only its calls are abandoned at once.
pub(super) struct HangUp(UnixStream);

impl HangUp {
    /// Watched on a descriptor of its own, so that its readiness can be cleared without confusing whoever writes.
    pub(super) fn of(stream: &Stream) -> io::Result<Self> {
        UnixStream::from_std(stream.as_fd().try_clone_to_owned()?.into()).map(Self)
    }

    /// Waits for it.
    pub(super) async fn happens(&self) -> io::Result<()> {
        while !self.0.ready(Interest::WRITABLE).await?.is_write_closed() {
            // Room to write is no news. Told that there is none, tokio waits for the next event; the end of a peer is one.
            let cleared = self.0.try_io(Interest::WRITABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
            debug_assert!(cleared.is_err(), "the closure says so");
        }
        Ok(())
    }
}
