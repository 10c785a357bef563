//! A connection with a role and all that is pushed to it, sorted: what a [`crate::Worker`] and a [`crate::Lead`] have in common.
//!
//! One thread, no reader in the background: what has arrived is looked at when something is asked. Blocking is poll(2) on the
//! socket, on a worker's standard input, and on the time at which a completion has been held back long enough.

mod exit_order;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use roost_proto::message::Request;
use roost_proto::message::deliver::{Ack, DELIVER, Delivery, Item, LEASE_LOST, PARK, ParkAsk, WITHDRAW, Withdrawal};
use roost_proto::message::session::RoleAsked;
use roost_proto::message::worker::{Activity, Report};
use roost_proto::rpc::{Answer, ErrorKind};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde::de::DeserializeOwned;

use crate::connection::{Connection, reply};
use crate::error::Error;
use crate::inbox::{Inbox, Items};
use crate::policy::{Outage, Patience, Policy};
use crate::submit;

use exit_order::ExitOrder;

/// What a role is told.
pub(crate) enum Heard {
    Items(Items),
    Park(ParkAsk),
    Closing,
    LeaseLost,
}

/// What came of a call that waits.
pub(crate) enum Waiting<T> {
    Done(T),
    Park(ParkAsk),
    Closing,
}

pub(crate) struct Voice {
    pub(crate) connection: Connection,
    pub(crate) inbox: Inbox,
    /// The welcome that everything here is from.
    greeted: u64,
    park: Option<(ParkAsk, Instant)>,
    lease_lost: bool,
    call: Option<Outstanding>,
    outage: Option<Outage>,
    exit_order: ExitOrder,
    activity: Option<Activity>,
    /// It was said on a connection that is gone.
    activity_is_news: bool,
}

/// A waiting call whose answer has not come. It outlives a question to park: asked for again, it is not sent again.
struct Outstanding {
    request_id: String,
    method: &'static str,
    /// The call on the wire; `None` after a break.
    id: Option<u64>,
    answer: Option<Answer>,
}

impl Voice {
    /// With a connection that has its role. The line `exit` on `stdin` means that the process should exit.
    pub(crate) fn new(connection: Connection, inbox: Inbox, stdin: Option<OwnedFd>) -> Self {
        let mut voice = Self {
            connection,
            inbox,
            greeted: 0,
            park: None,
            lease_lost: false,
            call: None,
            outage: None,
            exit_order: ExitOrder::new(stdin),
            activity: None,
            activity_is_news: false,
        };
        voice.take_note();
        voice
    }

    /// The next thing, or `None` when the time is over.
    pub(crate) fn next(&mut self, timeout: Option<Duration>) -> Result<Option<Heard>, Error> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        // What lies in the socket may say that something which we hold is not owed any more.
        self.listen(Some(Instant::now()))?;
        loop {
            self.sort()?;
            let now = Instant::now();
            if let Some(heard) = self.heard(now) {
                return Ok(Some(heard));
            }
            let wake_at = [until, self.inbox.ripe_at()].into_iter().flatten().min();
            let came = self.listen(wake_at)?;
            if !came && until.is_some_and(|until| until <= now) {
                return Ok(None);
            }
        }
    }

    /// Makes a call that waits, or goes on waiting for the answer to the one with this id.
    pub(crate) fn wait<R: Request>(&mut self, request_id: &str, mut make: impl FnMut() -> R) -> Result<Waiting<R::Reply>, Error> {
        if self.call.as_ref().is_none_or(|call| call.request_id != request_id) {
            self.call = Some(Outstanding { request_id: request_id.to_owned(), method: R::METHOD, id: None, answer: None });
        }
        loop {
            self.sort()?;
            if let Some(answer) = self.call.as_mut().and_then(|call| call.answer.take()) {
                self.call = None;
                return reply::<R>(answer).map(Waiting::Done);
            }
            if self.exit_order.has_come() {
                return Ok(Waiting::Closing);
            }
            if let Some(ask) = self.park_asked(Instant::now()) {
                return Ok(Waiting::Park(ask));
            }
            if let Some(call) = self.call.as_mut().filter(|call| call.id.is_none()) {
                call.id = self.connection.begin(&make())?;
            }
            self.listen(None)?;
        }
    }

    /// The id of the waiting call of this method that has no answer yet.
    pub(crate) fn outstanding(&self, method: &str) -> Option<String> {
        self.call.as_ref().filter(|call| call.method == method).map(|call| call.request_id.clone())
    }

    /// Says that these have entered the caller's input; returns the ones that have, in their order. The others were read by
    /// another way.
    pub(crate) fn accept(&mut self, items: Vec<Item>) -> Result<Vec<Item>, Error> {
        // On a connection that is known to be there: a second try must mean that the first may have arrived.
        self.listen(Some(Instant::now()))?;
        self.sort()?;
        while self.connection.descriptor().is_none() {
            self.listen(None)?;
        }
        // Without one it is said all the same: the turn itself is owed, too, and would come again.
        let owed = self.inbox.still_owed(&items);
        let request_id = Some(submit::request_id()?);
        // Where the first try took them in and its answer was lost, the second gets the same one.
        let ack = self.connection.call_with(Policy::BRIEF, || Ack { items: owed.clone(), request_id: request_id.clone() })?;
        let taken = ack.accepted;
        self.inbox.accepted(&taken);
        self.inbox.withdraw(&ack.gone);
        Ok(items.into_iter().filter(|item| taken.contains(&item.seq)).collect())
    }

    /// The request to park has been answered, or is out of place now.
    pub(crate) fn forget_park(&mut self) {
        self.park = None;
    }

    /// Takes the lease, whoever had it meanwhile.
    pub(crate) fn take_lease(&mut self) -> Result<(), Error> {
        self.connection.take_role(RoleAsked::Root, Vec::new())?;
        self.lease_lost = false;
        self.inbox.start_over();
        Ok(())
    }

    fn heard(&mut self, now: Instant) -> Option<Heard> {
        if self.exit_order.has_come() {
            return Some(Heard::Closing);
        }
        if std::mem::take(&mut self.lease_lost) {
            return Some(Heard::LeaseLost);
        }
        // Items first: with something to take in there is no parking.
        if let Some(items) = self.inbox.ready(now) {
            return Some(Heard::Items(items));
        }
        self.park_asked(now).map(Heard::Park)
    }

    /// A request to park whose time is not over.
    fn park_asked(&mut self, now: Instant) -> Option<ParkAsk> {
        let (ask, since) = self.park.take()?;
        let over = ask.deadline_ms.is_some_and(|deadline| now.saturating_duration_since(since) >= Duration::from_millis(deadline));
        (!over).then_some(ask)
    }

    /// Puts everything that has arrived where it belongs.
    fn sort(&mut self) -> Result<(), Error> {
        loop {
            self.take_note();
            self.repeat_activity()?;
            let pushed = self.connection.take_pushed();
            match pushed.map_err(|error| Error::Protocol { method: "deliver", message: error.to_string() })? {
                Some(answer) => self.sort_one(answer)?,
                None => return Ok(()),
            }
        }
    }

    fn sort_one(&mut self, answer: Answer) -> Result<(), Error> {
        let Some(method) = answer.method.clone() else {
            if let Some(call) = self.call.as_mut().filter(|call| call.id.is_some() && call.id == answer.id) {
                call.answer = Some(answer);
            }
            return Ok(());
        };
        match method.as_str() {
            DELIVER => {
                let delivery: Delivery = params(DELIVER, &answer)?;
                let again = self.inbox.deliver(delivery, Instant::now());
                if !again.is_empty() {
                    let acked = self.connection.call_with(Policy::BRIEF, || Ack { items: again.clone(), request_id: None });
                    acked.map(drop).or_else(unless_lease_lost)?;
                }
            }
            WITHDRAW => self.inbox.withdraw(&params::<Withdrawal>(WITHDRAW, &answer)?.items),
            PARK => self.park = Some((params(PARK, &answer)?, Instant::now())),
            LEASE_LOST => {
                self.lease_lost = true;
                self.inbox.forget();
                self.connection.leave_role();
            }
            // A newer daemon says more than we know.
            _ => {}
        }
        Ok(())
    }

    /// What its host does, for a daemon that forgets it with its connections.
    pub(crate) fn note_activity(&mut self, activity: Option<Activity>) {
        self.activity = activity;
        self.activity_is_news = false;
    }

    /// A daemon that has just heard of us takes us for busy.
    fn repeat_activity(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.activity_is_news) {
            return Ok(());
        }
        let report = Report { activity: self.activity, usage: None, text: None };
        self.connection.call_with(Policy::BRIEF, || report.clone()).map(drop)
    }

    /// After a new welcome: what an older broker asked is asked again if it still holds.
    fn take_note(&mut self) {
        if self.greeted == self.connection.greetings() {
            return;
        }
        self.greeted = self.connection.greetings();
        self.park = None;
        self.activity_is_news = self.activity.is_some();
        if let Some(call) = &mut self.call {
            call.id = None;
        }
        // All that is owed comes again, and what was read by another way meanwhile does not. What the caller has it may yet accept:
        // the answer to that may have been lost.
        self.inbox.forget();
        if let Some(hold) = self.connection.welcome().and_then(|welcome| welcome.hold_ms) {
            self.inbox.set_hold(Duration::from_millis(hold));
        }
    }

    /// Blocks until something has come, or until then; whether something has.
    fn listen(&mut self, until: Option<Instant>) -> Result<bool, Error> {
        let Some(socket) = self.connection.descriptor() else {
            let outage = self.outage.get_or_insert_with(|| self.connection.outage(Patience::Brief));
            let back = self.connection.revive(outage, until)?;
            if back {
                self.outage = None;
            }
            return Ok(back);
        };
        let mut ready = vec![PollFd::from_borrowed_fd(socket, PollFlags::IN)];
        ready.extend(self.exit_order.descriptor().map(|stdin| PollFd::from_borrowed_fd(stdin, PollFlags::IN)));
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now())).and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(&mut ready, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Error::io("cannot listen to the daemon")(error.into())),
        }
        let [from_daemon, from_stdin] = [0, 1].map(|at: usize| ready.get(at).is_some_and(|one| !one.revents().is_empty()));
        if from_daemon {
            self.connection.take_in();
        }
        if from_stdin {
            self.exit_order.read();
        }
        Ok(from_daemon || from_stdin)
    }
}

/// A duplicate that cannot be acknowledged any more is the new holder's.
fn unless_lease_lost(error: Error) -> Result<(), Error> {
    if error.refusal() == Some(ErrorKind::StaleLease) { Ok(()) } else { Err(error) }
}

fn params<T: DeserializeOwned>(method: &'static str, answer: &Answer) -> Result<T, Error> {
    let text = answer.params.as_ref().map_or("{}", |params| params.get());
    serde_json::from_str(text).map_err(|error: serde_json::Error| Error::Protocol { method, message: io::Error::from(error).to_string() })
}
