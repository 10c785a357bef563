//! Signals as readable events.
//!
//! Handlers and not a mask: workers must not inherit a blocked signal by mistake.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;

/// Where signals arrive.
#[derive(Debug)]
pub struct Signals(SignalDelivery<UnixStream, WithOrigin>);

/// What arrived since the last look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// How many asked us to end.
    pub terminations: u32,
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }
}

impl Signals {
    /// Installs the handlers. SIGHUP is taken and ignored: a handler, unlike an ignored signal, is no legacy for children.
    pub fn install() -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        Ok(Self(SignalDelivery::with_pipe(read, write, WithOrigin::default(), [SIGCHLD, SIGHUP, SIGINT, SIGTERM])?))
    }

    /// Takes in what has arrived. Ended children are not counted: one signal may stand for many.
    pub fn take(&mut self) -> Arrived {
        let mut arrived = Arrived::default();
        for origin in self.0.pending() {
            if origin.signal == SIGTERM || origin.signal == SIGINT {
                let sender = origin.process.map(|process| process.pid);
                tracing::info!(signal = signal_hook::low_level::signal_name(origin.signal), sender, "told to end");
                arrived.terminations += 1;
            }
        }
        arrived
    }
}
