//! A process that speaks the worker protocol (runner `worker`): its task, its turns, its children, and how it parks.
//!
//! ```no_run
//! use roost::proto::message::worker::Next;
//! use roost::{Error, Turn, Worker, WorkerEvent};
//!
//! fn main() -> Result<(), Error> {
//!     let mut worker = Worker::connect()?;
//!     while let Some(event) = worker.next(None)? {
//!         match event {
//!             WorkerEvent::Items(items) => {
//!                 let input = worker.accept(items.items)?;
//!                 let answer = format!("{} items", input.len());
//!                 if worker.settle(&Turn { answer: Some(answer), ..Turn::default() })? == Next::Exit {
//!                     break;
//!                 }
//!             }
//!             WorkerEvent::Park(_) => worker.park_decline(1_000)?,
//!             WorkerEvent::Closing => break,
//!         }
//!     }
//!     Ok(())
//! }
//! ```

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use std::{env, fs, io};

use roost_proto::message::Request;
use roost_proto::message::deliver::{Item, ParkAsk};
use roost_proto::message::launch::{Launch, Receipt, Task};
use roost_proto::message::result::{ReadResult, ResultReply, Wait, WaitReply};
use roost_proto::message::session::{Capability, DeliveryMode, RoleAsked, WorkerWelcome};
use roost_proto::message::stop::{Stop, StopReply};
use roost_proto::message::words::{Message, MessageReply, TellLead, TellLeadReply};
use roost_proto::message::worker::{Next, ParkDecline, ParkReady, Report, SavedContext, Settle, TurnEnd};
use roost_proto::rpc::ErrorKind;
use roost_proto::usage::UsageReport;

use crate::calls::left_of;
use crate::config::Config;
use crate::connection::Connection;
use crate::error::Error;
use crate::inbox::{Inbox, Items, Seen};
use crate::submit;
use crate::voice::{Heard, Voice, Waiting};

mod saved;

/// The voice of a worker's process.
pub struct Worker {
    voice: Voice,
    me: WorkerWelcome,
    /// The waiting call that the process before this one was parked in, until it is made again.
    continues: Option<String>,
}

/// What a worker is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEvent {
    /// Something to take in: its task, ends of children, words. What entered the model's input is to be [accepted](Worker::accept).
    Items(Items),
    /// Others need the slot: [`Worker::park_ready`] with all that the next process needs, or [`Worker::park_decline`].
    Park(ParkAsk),
    /// The daemon wants it to exit, in an orderly way.
    Closing,
}

/// What came of a call that waits. Anything but `Done` has not ended the call: the same call goes on waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waited<T> {
    /// Its answer.
    Done(T),
    /// Others need the slot. Once [`Worker::park_ready`] has said yes the process exits; the next one makes the same call again.
    Park(ParkAsk),
    /// The daemon wants it to exit, in an orderly way.
    Closing,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Turn {
    /// What it answered, if it has said something new.
    pub answer: Option<String>,
    /// What another process needs to go on from here.
    pub context: Option<SavedContext>,
    /// What went wrong with it.
    pub ended: TurnEnd,
    /// What the process has used so far.
    pub usage: Option<UsageReport>,
}

impl Worker {
    /// Speaks for the worker that the environment names, and can be parked and steered.
    pub fn connect() -> Result<Self, Error> {
        let stdin = io::stdin().as_fd().try_clone_to_owned().map_err(Error::io("cannot watch standard input"))?;
        Self::connect_with(Config::from_env()?, vec![Capability::Park, Capability::Steer], Some(stdin))
    }

    /// The same with everything said: what it can do, and where the line `exit` means `Closing`.
    pub fn connect_with(config: Config, can: Vec<Capability>, stdin: Option<OwnedFd>) -> Result<Self, Error> {
        if config.identity.as_ref().is_none_or(|identity| identity.worker.is_none()) {
            let message = "it is not set: only a process that Roost has started as a worker speaks for one".into();
            return Err(Error::Environment { variable: "ROOST_WORKER", message });
        }
        let connection = Connection::dial_as(config, RoleAsked::Worker, can)?;
        let me = connection
            .welcome()
            .and_then(|welcome| welcome.worker.clone())
            .ok_or_else(|| Error::Protocol { method: "hello", message: "the welcome does not say which worker this is".into() })?;
        let continues = me.continues.clone();
        Ok(Self { voice: Voice::new(connection, Inbox::default(), stdin), me, continues })
    }

    /// Its name, its execution, and whether it goes on from a saved context.
    pub fn me(&self) -> &WorkerWelcome {
        &self.me
    }

    /// How completions are to be taken in.
    pub fn delivery(&self) -> DeliveryMode {
        self.voice.connection.welcome().and_then(|welcome| welcome.delivery).unwrap_or_default()
    }

    /// What the process before it saved; `None` for a first one.
    pub fn context(&self) -> Result<Option<Vec<u8>>, Error> {
        if !self.me.wakes {
            return Ok(None);
        }
        let path = env::var_os("ROOST_CONTEXT").ok_or_else(|| Error::Environment {
            variable: "ROOST_CONTEXT",
            message: "it is not set, although this process goes on from a saved context".into(),
        })?;
        fs::read(&path).map(Some).map_err(Error::io(format!("cannot read the context {}", path.display())))
    }

    /// The request id of the waiting call that the process before it was parked in. The first waiting call that is made without
    /// an id of its own takes it: it must be the same call.
    pub fn continues(&self) -> Option<&str> {
        self.continues.as_deref()
    }

    /// What was taken in so far, to be saved with the context and given to [`Worker::remember`] by the next process.
    pub fn seen(&self) -> &Seen {
        self.voice.inbox.seen()
    }

    /// Drops what processes before this one have taken in, as their saved context says. To be called before the first event.
    pub fn remember(&mut self, seen: Seen) {
        self.voice.inbox.remember(seen);
    }

    /// For calls that have nothing to do with being a worker.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.voice.connection
    }

    /// The next event; `None` when the time is over. With a timeout of zero it is what has arrived.
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<WorkerEvent>, Error> {
        Ok(match self.voice.next(timeout)? {
            Some(Heard::Items(items)) => Some(WorkerEvent::Items(items)),
            Some(Heard::Park(ask)) => Some(WorkerEvent::Park(ask)),
            Some(Heard::Closing) => Some(WorkerEvent::Closing),
            // No worker has a lease.
            Some(Heard::LeaseLost) | None => None,
        })
    }

    /// Says that these have entered the model's input. Returns the ones to use: the others were read by another way meanwhile. A turn
    /// without items is accepted, too, with none: else it comes again.
    pub fn accept(&mut self, items: Vec<Item>) -> Result<Vec<Item>, Error> {
        self.voice.accept(items)
    }

    /// Says how the work stands.
    pub fn report(&mut self, report: &Report) -> Result<(), Error> {
        self.voice.connection.report(report)?;
        if report.activity.is_some() {
            self.voice.note_activity(report.activity);
        }
        Ok(())
    }

    /// Ends a turn. What was handed out and not accepted comes again.
    pub fn settle(&mut self, turn: &Turn) -> Result<Next, Error> {
        let Turn { answer, context, ended, usage } = turn.clone();
        let next = self.voice.connection.settle(&Settle { request_id: submit::request_id()?, answer, context, ended, usage })?.next;
        self.voice.note_activity(None);
        self.voice.inbox.give_back();
        Ok(next)
    }

    /// Answers a request to park: the context is saved. True: exit now. False: something came first, go on.
    pub fn park_ready(&mut self, context: Option<SavedContext>) -> Result<bool, Error> {
        self.voice.forget_park();
        let request_id = Some(submit::request_id()?);
        match self.voice.connection.park_ready(&ParkReady { context, request_id }) {
            Ok(reply) => Ok(reply.parked),
            // It was parked, and the answer was lost: another process speaks for the worker, or will.
            Err(error) if matches!(error.refusal(), Some(ErrorKind::Parked | ErrorKind::StaleEpoch)) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Answers a request to park: not now, and not for so many milliseconds.
    pub fn park_decline(&mut self, not_before_ms: u64) -> Result<(), Error> {
        self.voice.forget_park();
        self.voice.connection.park_decline(&ParkDecline { not_before_ms }).map(drop)
    }

    /// Launches children and returns at once.
    pub fn launch(&mut self, tasks: Vec<Task>) -> Result<Receipt, Error> {
        let launch = launch(submit::request_id()?, tasks, false)?;
        self.voice.connection.launch(&launch)
    }

    /// Launches children and waits for their results. A waiting call without an id of its own goes on with the one of its kind that
    /// has no answer yet, else with the one that the process before was parked in; else it is a new one.
    pub fn launch_foreground(&mut self, request_id: Option<String>, tasks: Vec<Task>) -> Result<Waited<Receipt>, Error> {
        let id = self.waiting_id(Launch::METHOD, request_id)?;
        let launch = launch(id.clone(), tasks, true)?;
        self.waited(&id, || launch.clone())
    }

    /// Waits for direct children to end. An empty id counts as none: see [`Worker::launch_foreground`].
    pub fn wait(&mut self, wait: &Wait) -> Result<Waited<WaitReply>, Error> {
        let id = self.waiting_id(Wait::METHOD, Some(wait.request_id.clone()).filter(|id| !id.is_empty()))?;
        let left = left_of(wait.timeout_ms);
        self.waited(&id, || Wait { request_id: id.clone(), timeout_ms: left(), ..wait.clone() })
    }

    /// Reads a result; with `wait` it blocks until there is one. For the id see [`Worker::launch_foreground`].
    pub fn result(&mut self, read: &ReadResult) -> Result<Waited<ResultReply>, Error> {
        if !read.wait {
            return self.voice.connection.result(read).map(Waited::Done);
        }
        let id = self.waiting_id(ReadResult::METHOD, read.request_id.clone())?;
        let left = left_of(read.timeout_ms);
        self.waited(&id, || ReadResult { request_id: Some(id.clone()), timeout_ms: left(), ..read.clone() })
    }

    /// Sends words to a direct child.
    pub fn message(&mut self, name: &str, text: &str, max_subagents_allowed: Option<u64>) -> Result<MessageReply, Error> {
        let request_id = submit::request_id()?;
        self.voice.connection.message(&Message { request_id, name: name.into(), text: text.into(), max_subagents_allowed })
    }

    /// Stops direct children and what descends from them.
    pub fn stop(&mut self, names: &[&str]) -> Result<StopReply, Error> {
        let (names, request_id) = (names.iter().map(|name| (*name).into()).collect(), Some(submit::request_id()?));
        self.voice.connection.stop(&Stop { names, no_wait: false, request_id })
    }

    /// Sends words to the lead.
    pub fn tell_lead(&mut self, text: &str) -> Result<TellLeadReply, Error> {
        self.voice.connection.tell_lead(&TellLead { request_id: submit::request_id()?, text: text.into() })
    }

    fn waiting_id(&mut self, method: &str, own: Option<String>) -> Result<String, Error> {
        match own.or_else(|| self.voice.outstanding(method)).or_else(|| self.continues.clone()) {
            Some(id) => {
                self.continues = self.continues.take().filter(|continues| *continues != id);
                Ok(id)
            }
            None => submit::request_id(),
        }
    }

    fn waited<R: Request>(&mut self, id: &str, make: impl FnMut() -> R) -> Result<Waited<R::Reply>, Error> {
        Ok(match self.voice.wait(id, make)? {
            Waiting::Done(reply) => Waited::Done(reply),
            Waiting::Park(ask) => Waited::Park(ask),
            Waiting::Closing => Waited::Closing,
        })
    }
}

fn launch(request_id: String, tasks: Vec<Task>, foreground: bool) -> Result<Launch, Error> {
    Ok(Launch { request_id, tasks, submitter: submit::submitter()?, foreground, attended: false, generation: None })
}
