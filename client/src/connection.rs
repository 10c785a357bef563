//! A connection that survives the broker: dial, hello, call; after a break it comes back and sends what was not answered again.
//!
//! It knows no method but `hello`; what may be sent twice and for how long is the method's policy. What a connection with a role is
//! told beside its answers is in `connection/role.rs`.

mod role;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use roost_proto::limits::LINE_BYTES_MAX;
use roost_proto::message::session::{Hello, Identity, Welcome};
use roost_proto::message::{PROTOCOL_VERSION, Request};
use roost_proto::rpc::{Answer, Call, ErrorKind, Version};
use serde_json::value::RawValue;

use crate::config::{Config, Start};
use crate::error::Error;
use crate::link::Link;
use crate::policy::{Outage, Patience, Policy};
use crate::start;

/// One conversation with a daemon. Calls are typed methods; see `calls.rs` for the list.
pub struct Connection {
    config: Config,
    link: Option<Link>,
    welcome: Option<Welcome>,
    last_id: u64,
    role: Option<role::Role>,
    /// Whether notifications that come while a call waits for its answer are kept: with a role, and for followers.
    keeps_pushed: bool,
    pushed: VecDeque<Answer>,
    /// How often a daemon has welcomed us.
    greetings: u64,
}

/// Why one try of a call did not bring its reply.
enum Attempt {
    /// The connection broke; the call may be tried again on a new one.
    Broken(io::Error),
    /// This is the answer.
    Final(Error),
}

impl From<Error> for Attempt {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl Connection {
    /// Connects and says hello. Starts the daemon or waits for it, as the configuration says.
    pub fn dial(config: Config) -> Result<Self, Error> {
        let mut connection = Self::new(config);
        let mut outage = connection.outage(Patience::Brief);
        connection.connect(&mut outage, connection.config.start == Start::Await)?;
        Ok(connection)
    }

    fn new(config: Config) -> Self {
        let pushed = VecDeque::new();
        Self { config, link: None, welcome: None, last_id: 0, role: None, keeps_pushed: false, pushed, greetings: 0 }
    }

    /// How it was reached, and as whom it speaks now.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// From now on it starts no daemon: it waits a while for the next one. For whoever only follows what happens; a daemon that was
    /// stopped stays so.
    pub fn start_no_more(&mut self) {
        if self.config.start == Start::OnDemand {
            self.config.start = Start::Never;
        }
    }

    /// What the daemon said to our last hello.
    pub fn welcome(&self) -> Option<&Welcome> {
        self.welcome.as_ref()
    }

    /// From now on the connection speaks for this identity, after a reconnect too.
    pub(crate) fn speak_as(&mut self, identity: Identity) {
        self.config.identity = Some(identity);
    }

    /// Sends a request until it is answered. `make` is asked again for each try, so that a time limit can shrink.
    pub(crate) fn call_with<R: Request>(&mut self, policy: Policy, mut make: impl FnMut() -> R) -> Result<R::Reply, Error> {
        let patience = self.patience(policy.patience);
        let mut outage = None;
        loop {
            let broken = match self.attempt(&make(), patience) {
                Ok(reply) => return Ok(reply),
                Err(Attempt::Final(error)) => return Err(error),
                Err(Attempt::Broken(error)) => error,
            };
            self.link = None;
            if !policy.resend {
                return Err(self.lost(broken));
            }
            let outage = outage.get_or_insert_with(|| self.outage(patience));
            if !outage.pause() {
                return Err(self.lost(broken));
            }
            self.connect(outage, true)?;
        }
    }

    /// The next notification with its parameters, or `None` when nothing whole has arrived. Blocks when `block` says so.
    /// A broken connection is an error here: who listens must ask anew.
    pub(crate) fn notification(&mut self, block: bool) -> io::Result<Option<Answer>> {
        if let Some(answer) = self.take_pushed()? {
            return Ok(Some(answer));
        }
        let Some(link) = &mut self.link else { return Err(io::ErrorKind::NotConnected.into()) };
        if block { link.receive(None).map(Some) } else { Ok(None) }
    }

    /// The socket, to poll it; `None` while the connection is down.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(AsFd::as_fd)
    }

    /// Gives the connection up; the next call makes a new one.
    pub(crate) fn drop_link(&mut self) {
        self.link = None;
    }

    /// How long a call may really take. To a worker the end of the broker is a pause, however long: the next daemon adopts it, and
    /// there is nothing else that it could do meanwhile.
    fn patience(&self, asked: Patience) -> Patience {
        if self.config.start == Start::Await { Patience::Unbounded } else { asked }
    }

    /// How long an answer may take; `None`: as long as it does.
    fn within(&self, patience: Patience) -> Option<Duration> {
        (patience == Patience::Brief).then_some(self.config.answer_within)
    }

    /// The same for a hello. Where a unit listens the socket is there before the daemon, so that this is what waits for its start.
    fn hello_within(&self) -> Option<Duration> {
        let within = self.within(self.patience(Patience::Brief));
        if self.config.by_unit { within.map(|within| within.max(start::READY_WAIT)) } else { within }
    }

    /// How long a daemon that went away is waited for.
    pub(crate) fn outage(&self, asked: Patience) -> Outage {
        Outage::new((self.patience(asked) == Patience::Brief).then_some(self.config.back_within))
    }

    fn attempt<R: Request>(&mut self, request: &R, patience: Patience) -> Result<R::Reply, Attempt> {
        let Some(mut link) = self.link.take() else { return Err(Attempt::Broken(io::ErrorKind::NotConnected.into())) };
        let reply = self.exchange(&mut link, request, self.within(patience));
        // A call that was not answered leaves a connection that nobody can say anything of.
        if matches!(&reply, Ok(_) | Err(Attempt::Final(Error::Refused(_)))) {
            self.link = Some(link);
        }
        reply
    }

    fn exchange<R: Request>(&mut self, link: &mut Link, request: &R, within: Option<Duration>) -> Result<R::Reply, Attempt> {
        self.last_id += 1;
        let id = self.last_id;
        let deadline = within.map(|within| Instant::now() + within);
        let line = line(id, request)?;
        link.send(line).map_err(|error| self.broken::<R>(error, within))?;
        loop {
            let answer = link.receive(deadline).map_err(|error| self.broken::<R>(error, within))?;
            // Unless they are kept, notifications, and answers to calls that were given up, are passed over.
            if answer.method.is_some() || answer.id.is_some_and(|other| other != id) {
                self.set_aside(answer);
                continue;
            }
            if let (None, Some(error)) = (answer.id, &answer.error)
                && is_shown_out(error.data.kind, within.is_none())
            {
                return Err(Attempt::Broken(io::Error::other(error.message.clone())));
            }
            return Ok(reply::<R>(answer)?);
        }
    }

    fn broken<R: Request>(&self, error: io::Error, within: Option<Duration>) -> Attempt {
        let kind = error.kind();
        if let (io::ErrorKind::TimedOut, Some(within)) = (kind, within) {
            Attempt::Final(Error::Unanswered {
                method: R::METHOD,
                seconds: within.as_secs(),
                socket: self.config.paths.socket.clone(),
                pid: start::lock_pid(&self.config.paths),
            })
        } else if kind == io::ErrorKind::InvalidData {
            Attempt::Final(Error::Protocol { method: R::METHOD, message: error.to_string() })
        } else {
            Attempt::Broken(error)
        }
    }

    /// Until the daemon has welcomed us. `again` also waits for one that is not there.
    fn connect(&mut self, outage: &mut Outage, again: bool) -> Result<(), Error> {
        loop {
            match self.greet() {
                Ok(()) => return Ok(()),
                Err(Attempt::Final(error @ Error::NoDaemon { .. })) => {
                    if !again || !outage.pause() {
                        return Err(error);
                    }
                }
                // It hears us late: it reads a long journal, or stands still. A call that never ends by itself does not end here.
                Err(Attempt::Final(Error::Unanswered { .. })) if outage.is_unbounded() => {}
                Err(Attempt::Final(error)) => return Err(error),
                Err(Attempt::Broken(error)) => {
                    if !outage.pause() {
                        return Err(self.lost(error));
                    }
                }
            }
        }
    }

    fn greet(&mut self) -> Result<(), Attempt> {
        let mut link = start::reach(&self.config)?;
        self.forget_pushed();
        let hello = Hello {
            protocol_min: PROTOCOL_VERSION,
            protocol_max: PROTOCOL_VERSION,
            client: self.config.client.clone(),
            identity: self.config.identity.clone(),
            role: self.role.as_ref().map(|role| role.asked),
            capabilities: self.role.as_ref().map(|role| role.capabilities.clone()).unwrap_or_default(),
        };
        self.welcome = Some(self.exchange(&mut link, &hello, self.hello_within())?);
        self.link = Some(link);
        self.greetings += 1;
        Ok(())
    }

    fn lost(&self, source: io::Error) -> Error {
        Error::Lost { socket: self.config.paths.socket.clone(), source }
    }
}

/// Whether an error that answers no call is the end of a connection that may be made again: who was slow to say hello (it stood
/// still in between) was shown out, and somebody who has the time may come back when there is room.
fn is_shown_out(kind: ErrorKind, has_time: bool) -> bool {
    kind == ErrorKind::HelloFirst || (kind == ErrorKind::Limit && has_time)
}

fn line<R: Request>(id: u64, request: &R) -> Result<Vec<u8>, Error> {
    let unwritable = |error: serde_json::Error| Error::Protocol { method: R::METHOD, message: error.to_string() };
    let params = serde_json::to_string(request).and_then(RawValue::from_string).map_err(unwritable)?;
    let call = Call { jsonrpc: Version::V2, id: Some(id), method: R::METHOD.to_owned(), params: Some(params) };
    let line = serde_json::to_vec(&call).map_err(unwritable)?;
    if line.len() > LINE_BYTES_MAX {
        return Err(Error::TooLarge { what: "the request", bytes: line.len(), limit: LINE_BYTES_MAX });
    }
    Ok(line)
}

pub(crate) fn reply<R: Request>(answer: Answer) -> Result<R::Reply, Error> {
    if let Some(error) = answer.error {
        return Err(Error::Refused(error));
    }
    let unreadable = |message: String| Error::Protocol { method: R::METHOD, message };
    let result = answer.result.ok_or_else(|| unreadable("it has neither `result` nor `error`".into()))?;
    serde_json::from_str(result.get()).map_err(|error| unreadable(error.to_string()))
}
