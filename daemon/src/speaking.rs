//! What connections are told without having asked: items, withdrawals, requests to park, events.
//!
//! Whoever does not take it in loses nothing: items are handed over again at the next hello, events are read again by number.

use roost_core::command::{CallId, Caller};
use roost_core::effect::{Delivery, Effect, Holder};
use roost_core::rejection::Rejection;
use roost_proto::id::TreeId;
use roost_proto::limits::EVENTS_BYTES_MAX;
use roost_proto::message::deliver::{DELIVER, LEASE_LOST, PARK, ParkAsk, WITHDRAW, Withdrawal};
use roost_proto::message::events::{EVENTS, EventsReply, NumberedEvent, ReadEvents};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc::error::TrySendError;

use crate::driver::Driver;
use crate::session::{ConnectionId, Outgoing, connection_of, translate};

impl Driver {
    /// Tells the holder of a lease something.
    pub(crate) fn notify(&mut self, effect: Effect) {
        match effect {
            Effect::Deliver(delivery) => self.deliver(&delivery),
            Effect::Withdraw { to, items } => self.tell(to, WITHDRAW, &Withdrawal { items }),
            Effect::AskPark { to, deadline_ms } => self.tell(to, PARK, &ParkAsk { deadline_ms }),
            Effect::LeaseLost { from } => {
                self.tell(from, LEASE_LOST, &serde_json::Map::new());
                if let Some(connection) = self.holders.remove(&from).and_then(|id| self.connections.get_mut(&id)) {
                    connection.holds = None;
                }
            }
            Effect::Reply { .. }
            | Effect::Refuse { .. }
            | Effect::Spawn(_)
            | Effect::Signal { .. }
            | Effect::ForgetText(_)
            | Effect::Forget { .. }
            | Effect::Adopt { .. }
            | Effect::RemoveFiles { .. }
            | Effect::Leave => tracing::error!("something was to be told that is told to nobody"),
        }
    }

    /// A connection holds this lease from now on. One that is gone already never did.
    pub(crate) fn hold(&mut self, call: CallId, holder: Holder) {
        let id = connection_of(call);
        match self.connections.get_mut(&id) {
            Some(connection) => {
                connection.holds = Some(holder);
                self.holders.insert(holder, id);
            }
            None => {
                let Holder { tree, owner, lease } = holder;
                self.backlog.push_back(roost_core::command::Command::LeaseGone { tree, owner, lease });
            }
        }
    }

    /// The connection of this lease is gone.
    pub(crate) fn let_go(&mut self, holder: Holder) {
        self.holders.remove(&holder);
    }

    fn deliver(&mut self, delivery: &Delivery) {
        for part in translate::deliveries(delivery, &self.shelf()) {
            self.tell(delivery.to, DELIVER, &part);
        }
    }

    fn tell<T: Serialize>(&mut self, to: Holder, method: &'static str, params: &T) {
        let Some(id) = self.holders.get(&to).copied() else { return };
        match to_raw_value(params) {
            Ok(params) => {
                self.transcripts.told(to.owner, method, &params);
                self.push(id, method, params);
            }
            Err(error) => tracing::error!(%error, method, "a notification cannot be written"),
        }
    }

    /// Hands a notification to a connection. One that does not read is cut; it may come back, and is told again.
    fn push(&mut self, id: ConnectionId, method: &'static str, params: Box<RawValue>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Err(TrySendError::Full(_)) = connection.outgoing.try_send(Outgoing::Notice { method, params }) {
            tracing::warn!(connection = id.0, method, "a client does not read what it is told: its connection is cut");
            let (dead, _) = tokio::sync::mpsc::channel(1);
            connection.outgoing = dead;
        }
    }

    /// The tree whose events a caller reads.
    pub(crate) fn tree_to_read(&self, caller: Caller, named: Option<TreeId>) -> Option<TreeId> {
        match caller {
            Caller::Operator => named,
            Caller::Root(tree) => Some(tree),
            // What happens in the tree is its root's to see.
            Caller::Worker { .. } => None,
        }
    }

    /// Answers with a part of a tree's stream, as it was written.
    pub(crate) fn show_events(&mut self, call: CallId, caller: Caller, read: &ReadEvents, part: Vec<String>) {
        let tree = self.tree_to_read(caller, read.tree);
        let found = tree.and_then(|tree| self.broker.state().trees.get(&tree));
        let Some(found) = found else {
            let rejection = match (caller, tree) {
                (Caller::Worker { .. }, _) => Rejection::NotRoot { what: "read the events of the tree" },
                (_, Some(tree)) => Rejection::UnknownTree { tree },
                (_, None) => Rejection::NoTree,
            };
            self.send(call, Outgoing::Refuse { call, error: translate::refusal(&rejection) });
            return;
        };
        let (tree, end) = (found.id, found.events + 1);
        let events = part.iter().filter_map(|body| serde_json::from_str::<NumberedEvent>(body).ok());
        // Who asks goes on by number, so the first page is enough.
        let events = translate::pages(events, EVENTS_BYTES_MAX).next().unwrap_or_default();
        let next = events.last().map_or(read.from.max(1).min(end), |event| event.number + 1);
        self.answer(call, &EventsReply { tree, events, next, end });
        // Who has not read all yet asks again, and follows then.
        if read.follow
            && next == end
            && let Some(connection) = self.connections.get_mut(&connection_of(call))
        {
            connection.follows = Some((tree, next));
        }
    }

    /// Whether anybody follows a stream.
    pub(crate) fn has_followers(&self) -> bool {
        self.connections.values().any(|connection| connection.follows.is_some())
    }

    /// Goes on with the streams that are followed. A follower that is behind is cut off, and goes on by number.
    pub(crate) fn tell_followers(&mut self, stream: Vec<(TreeId, NumberedEvent)>) {
        if stream.is_empty() {
            return;
        }
        let followers: Vec<(ConnectionId, TreeId, u64)> =
            self.connections.iter().filter_map(|(id, connection)| connection.follows.map(|(tree, next)| (*id, tree, next))).collect();
        for (id, tree, from) in followers {
            let new = |(of, event): &&(TreeId, NumberedEvent)| *of == tree && event.number >= from;
            let events: Vec<NumberedEvent> = stream.iter().filter(new).map(|(_, event)| event.clone()).collect();
            let Some(end) = events.last().map(|event| event.number + 1) else { continue };
            for events in translate::pages(events, EVENTS_BYTES_MAX) {
                let next = events.last().map_or(end, |event| event.number + 1);
                match to_raw_value(&EventsReply { tree, events, next, end }) {
                    Ok(params) => self.push(id, EVENTS, params),
                    Err(error) => tracing::error!(%error, "events cannot be written"),
                }
            }
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.follows = Some((tree, end));
            }
        }
    }
}
