//! Reading the numbered events of a tree from any number on, page by page, and following what comes, over breaks too.
//!
//! Numbers have no gaps: what is missing is asked for again, what came before is dropped. It does not know what an event means.

use std::collections::VecDeque;
use std::io;

use roost_proto::id::TreeId;
use roost_proto::message::events::{EVENTS, EventsReply, NumberedEvent, ReadEvents};

use crate::connection::Connection;
use crate::error::Error;

/// What a reader meets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
pub enum Followed {
    /// The next event.
    Event(NumberedEvent),
    /// A daemon has answered, at first and after each break.
    Joined,
    /// The connection is gone. To read on is to make it again.
    Broken,
    /// There is no more.
    End,
}

/// A reader of events with a connection of its own.
///
/// ```no_run
/// let connection = roost::Connection::dial(roost::Config::from_env()?)?;
/// let mut events = roost::EventReader::new(connection, None, 1, true);
/// while let Some(event) = events.next_event()? {
///     println!("{} {:?}", event.number, event.event);
/// }
/// # Ok::<(), roost::Error>(())
/// ```
pub struct EventReader {
    connection: Connection,
    tree: Option<TreeId>,
    follow: bool,
    /// The number that is read next.
    next: u64,
    read: VecDeque<NumberedEvent>,
    /// Whether the last answer was all there was, and its follower goes on.
    caught_up: bool,
}

impl EventReader {
    /// From this number on (the first is 1); with `follow` it never ends by itself. An operator names the tree.
    pub fn new(mut connection: Connection, tree: Option<TreeId>, from: u64, follow: bool) -> Self {
        connection.keep_pushed();
        if follow {
            connection.start_no_more();
        }
        Self { connection, tree, follow, next: from.max(1), read: VecDeque::new(), caught_up: false }
    }

    /// The next event; blocks for it when following. `None` at the end.
    pub fn next_event(&mut self) -> Result<Option<NumberedEvent>, Error> {
        loop {
            match self.next_or_break()? {
                Followed::Event(event) => return Ok(Some(event)),
                Followed::Joined | Followed::Broken => {}
                Followed::End => return Ok(None),
            }
        }
    }

    /// The next event, or that there is none for now: for whoever shows how the connection is. After an error it may be asked again.
    pub fn next_or_break(&mut self) -> Result<Followed, Error> {
        loop {
            if let Some(event) = self.read.pop_front() {
                return Ok(Followed::Event(event));
            }
            if !self.caught_up {
                let request = ReadEvents { tree: self.tree, from: self.next, follow: self.follow };
                let page = self.connection.events(&request)?;
                self.caught_up = page.next >= page.end;
                if page.events.is_empty() && !self.caught_up && page.next <= self.next {
                    let message = format!("event {} of {} is missing", self.next, page.end);
                    return Err(Error::Protocol { method: EVENTS, message });
                }
                self.take(page);
                return Ok(Followed::Joined);
            }
            if !self.follow {
                return Ok(Followed::End);
            }
            self.listen()?;
            if !self.caught_up {
                return Ok(Followed::Broken);
            }
        }
    }

    /// All events that are there, from the first one on.
    pub fn all(connection: Connection, tree: Option<TreeId>) -> Result<Vec<NumberedEvent>, Error> {
        let mut reader = Self::new(connection, tree, 1, false);
        let mut events = Vec::new();
        while let Some(event) = reader.next_event()? {
            events.push(event);
        }
        Ok(events)
    }

    /// Whether an event can be had without blocking.
    pub fn has_read(&self) -> bool {
        !self.read.is_empty()
    }

    fn listen(&mut self) -> Result<(), Error> {
        let unreadable = |message: String| Error::Protocol { method: EVENTS, message };
        match self.connection.notification(true) {
            Ok(Some(answer)) if answer.method.as_deref() == Some(EVENTS) => {
                let text = answer.params.as_ref().map_or("null", |params| params.get());
                let page: EventsReply = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
                self.take(page);
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(unreadable(error.to_string())),
            // We were too slow, or the broker is gone: on by number.
            Err(_) => self.again(),
        }
        Ok(())
    }

    fn take(&mut self, page: EventsReply) {
        for event in page.events {
            if event.number < self.next {
                continue;
            }
            if event.number > self.next {
                return self.again();
            }
            self.next += 1;
            self.read.push_back(event);
        }
        // Numbers that a sweep has taken away are not waited for.
        self.next = self.next.max(page.next);
    }

    fn again(&mut self) {
        self.connection.drop_link();
        self.caught_up = false;
    }
}
