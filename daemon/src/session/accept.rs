//! The door: accepts connections, shows strangers and the one too many out, and counts who is inside.
//!
//! It does not know what is said inside. No error of one connection, and no lack of descriptors, ends the loop.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interprocess::local_socket::traits::tokio::Listener as _;
use interprocess::os::unix::uds_local_socket::tokio::{Listener, Stream};
use roost_proto::limits::{ACCEPT_PAUSE, LOOKS_MAX, LOOKS_PER_CONNECTION_MAX, LOOKS_PER_TREE_MAX};
use roost_proto::rpc::{ErrorKind, ErrorObject};
use rustix::io::Errno;
use rustix::net::SendFlags;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::{self, JoinSet};
use tracing::{debug, error, warn};

use super::connection::Place;
use super::freight::{Freight, room_for_all};
use super::intake::Store;
use super::{Arrival, Bounds, ConnectionId, connection, envelope, peer};
use crate::lookouts::Lookouts;

/// Most strangers that are on their way out at one time: so many connections there may be beyond the limit.
const LEAVING_MAX: usize = 100;

/// Accepts until the listener or the driver is gone.
pub(super) async fn serve(listener: OwnedFd, inbox: mpsc::Sender<Arrival>, bounds: Bounds, state_dir: &Path) -> io::Error {
    let listener = match listening(listener) {
        Ok(listener) => listener,
        Err(error) => return error,
    };
    let mut inside = Inside {
        tasks: JoinSet::new(),
        guests: HashMap::new(),
        leaving: 0,
        arrivals: 0,
        store: Store::new(bounds.lines_bytes),
        freight: room_for_all(bounds.calls_bytes),
        lookouts: Lookouts::new(LOOKS_MAX, LOOKS_PER_TREE_MAX),
        last: ConnectionId(0),
        inbox,
        bounds,
        state_dir: state_dir.into(),
    };
    loop {
        tokio::select! {
            // Once the driver is gone nobody is let in any more: whoever comes back after its connection was closed is the next broker's.
            biased;
            () = inside.inbox.closed() => return io::Error::new(io::ErrorKind::BrokenPipe, "the driver is gone"),
            Some(ended) = inside.tasks.join_next_with_id() => inside.forget(ended),
            accepted = listener.accept() => match accepted {
                Ok(stream) => inside.admit(stream),
                Err(error) => match weight(&error) {
                    Weight::Passing => debug!(%error, "a connection was gone before it was accepted"),
                    Weight::Exhausted => {
                        warn!(%error, "accepting pauses");
                        inside.pause().await;
                    }
                    Weight::Fatal => return error,
                },
            },
        }
        // A flood at the door must not starve the driver, which runs on the same thread.
        task::coop::consume_budget().await;
    }
}

fn listening(socket: OwnedFd) -> io::Result<Listener> {
    if !rustix::net::sockopt::socket_acceptconn(&socket)? {
        // Accepting from it would wait for ever instead of failing.
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no listening socket"));
    }
    // Made from a descriptor, the listener never unlinks the socket's path: the supervisor's next broker goes on with it.
    Listener::try_from(socket)
}

/// What an error of `accept` means for the next one.
#[derive(Debug, PartialEq, Eq)]
enum Weight {
    /// It was about one connection.
    Passing,
    /// The next one will fail likewise until something is given back.
    Exhausted,
    /// This is no listening socket.
    Fatal,
}

fn weight(error: &io::Error) -> Weight {
    match Errno::from_io_error(error) {
        Some(Errno::CONNABORTED | Errno::INTR | Errno::AGAIN | Errno::PERM | Errno::PROTO) => Weight::Passing,
        Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) => Weight::Fatal,
        // Descriptors or memory ran out; an error that nobody has thought of is treated alike, so that it cannot spin.
        Some(_) | None => Weight::Exhausted,
    }
}

type Ended = Result<(task::Id, ()), task::JoinError>;

/// One connection.
struct Guest {
    number: ConnectionId,
    arrival: u64,
    is_leaving: bool,
    place: Arc<Place>,
}

/// Who is inside.
struct Inside {
    tasks: JoinSet<()>,
    guests: HashMap<task::Id, Guest>,
    /// Strangers that were asked to leave.
    leaving: usize,
    arrivals: u64,
    store: Store,
    freight: Arc<Semaphore>,
    lookouts: Lookouts,
    last: ConnectionId,
    inbox: mpsc::Sender<Arrival>,
    bounds: Bounds,
    state_dir: Arc<Path>,
}

impl Inside {
    fn admit(&mut self, stream: Stream) {
        let peer = match peer::of(&stream) {
            Ok(peer) if peer.is_ours => peer,
            Ok(peer) => {
                warn!(pid = peer.pid, "a process of another user was refused");
                return refuse(
                    &stream,
                    ErrorKind::UnknownIdentity,
                    "this daemon serves another user",
                    "start one of your own: `roost` does it",
                );
            }
            Err(error) => {
                warn!(%error, "the user of a connection could not be found out");
                return refuse(&stream, ErrorKind::UnknownIdentity, "your user could not be found out", "connect again");
            }
        };
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.forget(ended);
        }
        if self.tasks.len() - self.leaving >= self.bounds.connections && !self.make_room() {
            warn!(limit = self.bounds.connections, "a connection too many was refused");
            let message = format!("the daemon has {} connections, and that is the limit", self.bounds.connections);
            return refuse(&stream, ErrorKind::Limit, &message, "end some, then connect again");
        }
        let number = self.next_number();
        let place = Arc::new(Place {
            store: self.store.clone(),
            freight: Freight::new(Arc::clone(&self.freight), self.bounds.calls_bytes_each),
            lookouts: self.lookouts.of_one(LOOKS_PER_CONNECTION_MAX),
            state_dir: Arc::clone(&self.state_dir),
            is_known: AtomicBool::new(false),
            wanted: Notify::new(),
        });
        let serving = connection::serve(number, stream, peer.pid, Arc::clone(&place), self.inbox.clone(), self.bounds);
        let id = self.tasks.spawn(serving).id();
        self.arrivals += 1;
        self.guests.insert(id, Guest { number, arrival: self.arrivals, is_leaving: false, place });
    }

    /// Asks the stranger that has said nothing for the longest time to leave: who is silent keeps nobody out.
    fn make_room(&mut self) -> bool {
        if self.leaving >= LEAVING_MAX {
            return false;
        }
        let strangers = self.guests.values_mut().filter(|guest| !guest.is_leaving && !guest.place.is_known.load(Ordering::Relaxed));
        let Some(guest) = strangers.min_by_key(|guest| guest.arrival) else { return false };
        guest.is_leaving = true;
        guest.place.wanted.notify_one();
        self.leaving += 1;
        true
    }

    /// Numbers go round after 2^32 connections; one that is still inside keeps its own.
    fn next_number(&mut self) -> ConnectionId {
        loop {
            self.last = ConnectionId(self.last.0.wrapping_add(1));
            if self.guests.values().all(|guest| guest.number != self.last) {
                return self.last;
            }
        }
    }

    fn forget(&mut self, ended: Ended) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(failed) => {
                error!(error = %failed, "a connection's task failed");
                failed.id()
            }
        };
        if self.guests.remove(&id).is_some_and(|guest| guest.is_leaving) {
            self.leaving -= 1;
        }
    }

    /// Until a connection gives its descriptor back. Others may hold them all, so not for ever.
    async fn pause(&mut self) {
        tokio::select! {
            Some(ended) = self.tasks.join_next_with_id() => self.forget(ended),
            () = tokio::time::sleep(ACCEPT_PAUSE) => {}
        }
    }
}

/// One line, as far as it fits, without waiting: the buffer of a fresh socket is empty. The stream is closed by its drop.
fn refuse(stream: &Stream, kind: ErrorKind, message: &str, hint: &str) {
    let error = ErrorObject::new(kind, message, Some(hint.into()));
    let line = envelope::error_line(None, error);
    if let Err(error) = rustix::net::send(stream.as_fd(), &line, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
        debug!(%error, "a refused connection was gone before it was told");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_listener_ends_the_loop() {
        let of = |errno: Errno| weight(&io::Error::from(errno));
        for passing in [Errno::CONNABORTED, Errno::INTR, Errno::PERM] {
            assert_eq!(of(passing), Weight::Passing);
        }
        for exhausted in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::IO] {
            assert_eq!(of(exhausted), Weight::Exhausted);
        }
        assert_eq!(of(Errno::INVAL), Weight::Fatal);
        assert_eq!(weight(&io::Error::other("x")), Weight::Exhausted);
    }
}
