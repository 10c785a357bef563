//! The listening half of a connection: bytes to lines, lines to calls, calls to the driver, one after the other.
//!
//! What the methods mean stands in `translate`; what is answered goes through `output`, which is served whenever this half waits.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interprocess::os::unix::uds_local_socket::tokio::Stream;
use roost_core::command::CallId;
use roost_proto::frame::LineTooLong;
use roost_proto::limits::{
    CALLS_PER_CONNECTION_MAX, HELLO_BYTES_MAX, LAST_WORDS_WITHIN, LINE_BYTES_MAX, LINES_BYTES_MAX, OUTGOING_MAX, RESULTS_PER_CONNECTION_MAX,
};
use roost_proto::message::Request;
use roost_proto::message::launch::Launch;
use roost_proto::rpc::{Call, ErrorKind, ErrorObject};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::envelope::read_call;
use super::freight::Freight;
use super::hang_up::HangUp;
use super::intake::{Intake, Read, Store};
use super::look::{self, Question};
use super::output::{Close, Output};
use super::weight::Weight;
use super::{Arrival, Bounds, ConnectionId, FromSession, call_of, line, peer, translate};
use crate::lookouts::Lookouts;

/// What a connection shares with the door.
pub(super) struct Place {
    /// Room for long lines.
    pub(super) store: Store,
    /// Room for its calls on their way.
    pub(super) freight: Freight,
    /// Threads for what its calls say of the file system.
    pub(super) lookouts: Lookouts,
    /// Where the files of executions are.
    pub(super) state_dir: Arc<Path>,
    /// Whether the peer has said who it is.
    pub(super) is_known: AtomicBool,
    /// Told when the place of a stranger is wanted.
    pub(super) wanted: Notify,
}

/// Serves a connection to its end.
pub(super) async fn serve(
    number: ConnectionId,
    stream: Stream,
    pid: Option<u32>,
    place: Arc<Place>,
    inbox: mpsc::Sender<Arrival>,
    bounds: Bounds,
) {
    let (sender, outgoing) = mpsc::channel(OUTGOING_MAX);
    let hello_by = Instant::now() + bounds.hello_within;
    if inbox.send(FromSession::Connected { connection: number, outgoing: sender }.into()).await.is_err() {
        return debug!(connection = number.0, "the driver is gone");
    }
    let mut connection = Connection {
        number,
        stream,
        pid,
        inbox,
        output: Output::new(outgoing, bounds.read_within),
        intake: Intake::new(place.store.clone(), bounds.line_within),
        place,
        counter: 0,
        hello_by,
    };
    let close = loop {
        if let Err(close) = connection.turn().await {
            break close;
        }
    };
    debug!(connection = number.0, %close, "a connection ends");
    let Connection { stream, inbox, mut output, .. } = connection;
    if !matches!(close, Close::Stuck) {
        output.last_words(&stream, LAST_WORDS_WITHIN).await;
    }
    drop(stream);
    if inbox.send(FromSession::Gone { connection: number, calls: output.unanswered() }.into()).await.is_err() {
        debug!(connection = number.0, "the driver is gone");
    }
}

struct Connection {
    number: ConnectionId,
    stream: Stream,
    pid: Option<u32>,
    inbox: mpsc::Sender<Arrival>,
    output: Output,
    intake: Intake,
    place: Arc<Place>,
    counter: u32,
    hello_by: Instant,
}

impl Connection {
    /// One line, or one piece of one.
    async fn turn(&mut self) -> Result<(), Close> {
        while self.output.is_held() || self.output.is_full() {
            self.output.turn(&self.stream).await?;
        }
        // A peer that never pauses must not starve the driver, which runs on the same thread.
        tokio::task::coop::consume_budget().await;
        match self.intake.next_line(read_call) {
            Ok(Some(Ok(call))) => self.call(call).await,
            Ok(Some(Err(unreadable))) => {
                self.output.refuse(unreadable.id, unreadable.error);
                Ok(())
            }
            Ok(None) => self.read().await,
            Err(LineTooLong) => Err(self.too_large(LINE_BYTES_MAX)),
        }
    }

    async fn read(&mut self) -> Result<(), Close> {
        let is_stranger = self.output.standing().is_none();
        if is_stranger && self.intake.unfinished() > HELLO_BYTES_MAX {
            return Err(self.too_large(HELLO_BYTES_MAX));
        }
        let place = Arc::clone(&self.place);
        place.is_known.store(!is_stranger, Ordering::Relaxed);
        let (hello_by, whole_by) = (self.hello_by, self.intake.whole_by());
        let waiting = async {
            tokio::select! {
                // Whoever has said something is heard first.
                biased;
                ready = self.stream.inner().readable() => Waited::Ready(ready),
                () = place.wanted.notified(), if is_stranger => Waited::Wanted,
                () = sleep_until(hello_by), if is_stranger => Waited::HelloLate,
                () = sleep_until(whole_by.unwrap_or(hello_by)), if whole_by.is_some() => Waited::LineLate,
            }
        };
        match self.output.meanwhile(&self.stream, waiting).await? {
            Waited::Ready(ready) => ready?,
            Waited::Wanted => return Err(self.gives_place()),
            Waited::HelloLate => return Err(self.hello_late()),
            Waited::LineLate => return Err(self.line_late()),
        }
        match self.intake.read(&self.stream)? {
            Read::Some => Ok(()),
            Read::End => Err(self.heard_all().await),
            Read::NoRoom => Err(self.no_room()),
        }
    }

    async fn call(&mut self, call: Call) -> Result<(), Close> {
        let Some(id) = call.id else {
            // Roost knows no notification from a client, and JSON-RPC wants no answer to an unknown one.
            debug!(connection = self.number.0, "a notification was ignored");
            return Ok(());
        };
        if self.output.waiting() >= CALLS_PER_CONNECTION_MAX {
            let message = format!("{CALLS_PER_CONNECTION_MAX} calls of this connection wait for their answer, and that is the limit");
            let hint = Some("read the answers, or open another connection".into());
            self.output.refuse(Some(id), ErrorObject::new(ErrorKind::Limit, message, hint));
            return Ok(());
        }
        let number = self.next_call();
        let bytes = call.params.as_ref().map_or(0, |params| params.get().len());
        let asked = match self.translate(number, call).await? {
            Ok(asked) => self.look(asked).await?,
            Err(error) => Err(error),
        };
        match asked {
            Ok(asked) => {
                let weight = Weight::of(&asked);
                if weight == Weight::Large && self.output.large() >= RESULTS_PER_CONNECTION_MAX {
                    let message = format!("{RESULTS_PER_CONNECTION_MAX} calls of this connection wait for results, and that is the limit");
                    let hint = Some("read the answers, or open another connection".into());
                    self.output.refuse(Some(id), ErrorObject::new(ErrorKind::Limit, message, hint));
                    return Ok(());
                }
                let sending = async {
                    let room = self.place.freight.room(bytes).await;
                    self.inbox.send(Arrival { message: asked, room }).await
                };
                let sent = self.output.meanwhile(&self.stream, sending).await?;
                sent.map_err(|_| Close::NoDriver)?;
                self.output.expect(number, id, weight);
            }
            Err(error) => self.output.refuse(Some(id), error),
        }
        Ok(())
    }

    async fn translate(&mut self, number: CallId, call: Call) -> Result<Result<FromSession, ErrorObject>, Close> {
        let Call { method, params, jsonrpc: _, id: _ } = call;
        debug!(call = number.0, method = translate::known(&method).unwrap_or("(unknown)"), "called");
        let (standing, pid) = (self.output.standing(), self.pid);
        let lineage = move || pid.map(peer::lineage).unwrap_or_default();
        if standing.is_none() || method != Launch::METHOD {
            return Ok(line::understand(number, standing, &method, params.as_deref(), lineage));
        }
        // A launch is large.
        let work = tokio::task::spawn_blocking(move || line::understand(number, standing, &method, params.as_deref(), lineage));
        let understood = self.output.meanwhile(&self.stream, work).await?;
        Ok(understood.unwrap_or_else(|failed| Err(unread(&failed))))
    }

    /// Holds a call against the file system, which may not answer at all.
    async fn look(&mut self, asked: FromSession) -> Result<Result<FromSession, ErrorObject>, Close> {
        let Some(question) = Question::of(&asked) else { return Ok(Ok(asked)) };
        let (within, state_dir) = (question.within(), Arc::clone(&self.place.state_dir));
        let tree = self.output.standing().and_then(|standing| standing.tree);
        let looking = self.place.lookouts.look(tree, within, move || question.look(&state_dir));
        Ok(match self.output.meanwhile(&self.stream, looking).await? {
            Ok(found) => look::answered(asked, found),
            Err(failed) => Err(unread(&failed)),
        })
    }

    /// Counters go round after 2^32 calls; a call that still waits keeps its own.
    fn next_call(&mut self) -> CallId {
        loop {
            self.counter = self.counter.wrapping_add(1);
            let call = call_of(self.number, self.counter);
            if !self.output.expects(call) {
                return call;
            }
        }
    }

    /// The peer says nothing more. What it has asked is still answered, unless it is gone altogether.
    async fn heard_all(&mut self) -> Close {
        if self.intake.has_rest() {
            let hint = Some("end every line with a line feed".into());
            self.output.refuse(None, ErrorObject::new(ErrorKind::Parse, "the input ended in the middle of a line", hint));
        }
        let hang_up = match HangUp::of(&self.stream) {
            Ok(hang_up) => hang_up,
            Err(error) => return Close::Socket(error),
        };
        while self.output.waiting() > 0 {
            tokio::select! {
                gone = hang_up.happens() => return gone.map_or_else(Close::Socket, |()| Close::Peer),
                turn = self.output.turn(&self.stream) => if let Err(close) = turn { return close },
            }
        }
        Close::Peer
    }

    fn too_large(&mut self, limit: usize) -> Close {
        let hint = Some("pass large things as files; this connection ends here".into());
        self.output.refuse(None, ErrorObject::new(ErrorKind::TooLarge, format!("a line is longer than {limit} bytes"), hint));
        Close::TooLarge
    }

    fn no_room(&mut self) -> Close {
        let message = format!("the daemon takes in {} MiB of long lines at a time, and they are taken", LINES_BYTES_MAX >> 20);
        let hint = Some("try again in a moment, or pass large things as files".into());
        self.output.refuse(None, ErrorObject::new(ErrorKind::Limit, message, hint));
        Close::NoRoom
    }

    fn line_late(&mut self) -> Close {
        let hint = Some("write long lines without a pause, or pass large things as files".into());
        self.output.refuse(None, ErrorObject::new(ErrorKind::Limit, "a long line was not whole in time", hint));
        Close::LineLate
    }

    fn gives_place(&mut self) -> Close {
        let hint = Some("connect again, and say hello at once".into());
        self.output.refuse(None, ErrorObject::new(ErrorKind::Limit, "the daemon has no room left for peers that say nothing", hint));
        Close::Wanted
    }

    fn hello_late(&mut self) -> Close {
        let hint = Some("connect again, and say hello at once".into());
        self.output.refuse(None, ErrorObject::new(ErrorKind::HelloFirst, "no hello came in time", hint));
        Close::HelloLate
    }
}

fn unread(failed: &tokio::task::JoinError) -> ErrorObject {
    tracing::error!(error = %failed, "reading a call failed");
    ErrorObject::new(ErrorKind::Internal, "reading the call failed", None)
}

/// What ended a wait for bytes.
enum Waited {
    Ready(io::Result<()>),
    Wanted,
    HelloLate,
    LineLate,
}
