//! The tree as it changes: one snapshot, then its numbered events for as long as the view is open, over breaks of any length.

use roost::proto::id::TreeId;
use roost::proto::message::events::{NumberedEvent, ReadEvents};
use roost::proto::message::status::Status;
use roost::proto::message::usage::ReadUsage;
use roost::proto::usage::{USAGE_MAX, UsageTotals};
use roost::rows::Rows;
use roost::{Connection, Error, EventReader, Followed};

use super::{News, Tell};
use crate::failure::Failure;

/// Most events that are handed over at once.
const BATCH: usize = 1_000;
/// How far back the list of events goes.
const HISTORY: u64 = 20_000;

/// What the thread has to say.
pub enum Feed {
    /// These happened.
    Events(Vec<NumberedEvent>),
    /// The connection is lost, and is being made again.
    Lost,
    /// There is no daemon; it is looked for again.
    NoDaemon(Failure),
    /// It is there again.
    Back,
    /// Nothing more will come.
    Over(Failure),
    /// These had happened before the view was opened.
    History(Vec<NumberedEvent>),
}

/// What there was at first.
pub struct Beginning {
    /// The tree.
    pub rows: Rows,
    /// What was used.
    pub totals: UsageTotals,
    /// The number of the next event.
    pub next: u64,
}

/// Looks at a tree. The number comes first: events that fall between it and the snapshot come again, which changes nothing.
pub fn begin(connection: &mut Connection, tree: TreeId) -> Result<Beginning, Failure> {
    let next = connection.events(&ReadEvents { tree: Some(tree), from: USAGE_MAX, follow: false })?.end;
    let status = connection.status_all(&Status { tree: Some(tree), name: None, after: None })?;
    let usage = connection.usage_all(&ReadUsage { tree: Some(tree), name: None, each: true, after: None })?;
    let mut rows = Rows::new(status).ok_or_else(Failure::no_tree)?;
    rows.set_usage(&usage);
    Ok(Beginning { rows, totals: usage.totals, next })
}

/// Follows the tree from this number on, on a thread of its own.
pub fn follow(connection: Connection, tree: TreeId, next: u64, news: Tell) {
    std::thread::spawn(move || {
        let mut reader = EventReader::new(connection, Some(tree), next, true);
        loop {
            match reader.next_or_break() {
                Ok(Followed::Event(event)) => {
                    let mut events = vec![event];
                    while reader.has_read()
                        && events.len() < BATCH
                        && let Ok(Followed::Event(event)) = reader.next_or_break()
                    {
                        events.push(event);
                    }
                    news.tell(News::Feed(Feed::Events(events)));
                }
                Ok(Followed::Broken) => news.tell(News::Feed(Feed::Lost)),
                Ok(Followed::Joined) => news.tell(News::Feed(Feed::Back)),
                Ok(Followed::End) => return,
                // A daemon that was stopped may be started again: the reader has waited for it a while, and goes on.
                Err(error @ (Error::NoDaemon { .. } | Error::Lost { .. } | Error::Unanswered { .. })) => {
                    news.tell(News::Feed(Feed::NoDaemon(error.into())));
                }
                Err(error) => return news.tell(News::Feed(Feed::Over(error.into()))),
            }
        }
    });
}

/// Reads what had happened before, once somebody wants to see it.
pub fn history(connection: Connection, tree: TreeId, before: u64, news: &Tell) {
    let mut reader = EventReader::new(connection, Some(tree), before.saturating_sub(HISTORY), false);
    let mut events = Vec::new();
    while let Ok(Some(event)) = reader.next_event()
        && event.number < before
    {
        events.push(event);
    }
    news.tell(News::Feed(Feed::History(events)));
}
