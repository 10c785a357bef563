//! The broker's end of the link to its supervisor: frames in, frames out.
//!
//! It does not know what they mean. When the supervisor is gone the inbox ends, and with it the broker.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;

use roost_proto::limits::{LINK_INCOMING_MAX, LINK_OUTGOING_MAX};
use roost_proto::link::{Decoder, LinkError, ToBroker, ToSupervisor, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

/// The supervisor is gone.
#[derive(Debug, thiserror::Error)]
#[error("the supervisor is gone")]
pub struct SupervisorGone;

/// Sends to the supervisor.
#[derive(Debug, Clone)]
pub struct LinkSender(mpsc::Sender<Out>);

#[derive(Debug)]
enum Out {
    Frame(Vec<u8>),
    /// Tells when everything before it was written.
    Flush(oneshot::Sender<()>),
}

impl LinkSender {
    /// Sends one message.
    ///
    /// # Errors
    /// When the supervisor is gone. A message that is too long to send is a fault of the caller's, who has checked its parts.
    pub async fn send(&self, message: &ToSupervisor) -> Result<(), SupervisorGone> {
        match encode(message) {
            Ok(frame) => self.0.send(Out::Frame(frame)).await.map_err(|_| SupervisorGone),
            Err(error) => {
                tracing::error!(%error, "a message to the supervisor was not sent");
                Ok(())
            }
        }
    }

    /// Waits until everything sent so far was given to the socket. For the last word before an exit.
    pub async fn flushed(self) {
        let (written, wait) = oneshot::channel();
        if self.0.send(Out::Flush(written)).await.is_ok() && wait.await.is_err() {
            tracing::debug!("the supervisor was gone before the last word");
        }
    }
}

/// Starts to read and write. Must be called inside of the runtime.
///
/// # Errors
/// When the descriptor is no socket.
pub fn start(link: OwnedFd) -> std::io::Result<(LinkSender, mpsc::Receiver<ToBroker>)> {
    let stream = StdStream::from(link);
    stream.set_nonblocking(true)?;
    let (read, write) = UnixStream::from_std(stream)?.into_split();
    let (incoming, inbox) = mpsc::channel(LINK_INCOMING_MAX);
    let (outbox, outgoing) = mpsc::channel(LINK_OUTGOING_MAX);
    tokio::spawn(async move {
        if let Err(error) = receive(read, &incoming).await {
            tracing::error!(%error, "the link to the supervisor broke");
        }
    });
    tokio::spawn(transmit(write, outgoing));
    Ok((LinkSender(outbox), inbox))
}

async fn receive(mut read: OwnedReadHalf, incoming: &mpsc::Sender<ToBroker>) -> Result<(), LinkError> {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 64 << 10];
    while let Ok(bytes) = read.read(&mut buffer).await
        && bytes > 0
    {
        decoder.push(&buffer[..bytes]);
        while let Some(message) = decoder.next_message()? {
            if incoming.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

async fn transmit(mut write: OwnedWriteHalf, mut outgoing: mpsc::Receiver<Out>) {
    let mut frames = Vec::new();
    let mut flushes = Vec::new();
    while let Some(first) = outgoing.recv().await {
        // What has gathered meanwhile goes out with one call.
        let mut next = Some(first);
        while let Some(out) = next {
            match out {
                Out::Frame(frame) => frames.extend(frame),
                Out::Flush(written) => flushes.push(written),
            }
            next = outgoing.try_recv().ok();
        }
        if let Err(error) = write.write_all(&frames).await {
            tracing::error!(%error, "the supervisor does not read any more");
            return;
        }
        frames.clear();
        for written in flushes.drain(..) {
            if written.send(()).is_err() {
                tracing::debug!("nobody waits for the flush any more");
            }
        }
    }
}
