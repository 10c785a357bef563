//! What news change in the view, and what is to be asked then. Pure.

use roost::proto::message::events::{NumberedEvent, TreeEvent};
use roost::proto::message::stop::StopResult;

use super::calls::Answer;
use super::feed::Feed;
use super::pane::Tab;
use super::state::{Link, Order, View};
use super::tail::Piece;
use super::text::safe;
use super::words;
use crate::commands::message;
use crate::failure::Failure;

/// Most events that are kept of each worker.
const EVENTS_MAX: usize = 300;

impl View {
    /// Something of the tree.
    pub fn feed(&mut self, feed: Feed) -> Vec<Order> {
        match feed {
            Feed::Events(events) => return self.happened(&events),
            Feed::Lost => self.link = Link::Lost,
            Feed::NoDaemon(failure) => self.link = Link::NoDaemon(complaint(&failure)),
            Feed::Over(failure) => self.link = Link::Over(complaint(&failure)),
            Feed::Back => {
                self.link = Link::Up;
            }
            Feed::History(events) => {
                for event in events.iter().rev() {
                    let Some(worker) = words::subject(&event.event) else { continue };
                    let known = self.events.entry(worker).or_default();
                    if known.len() < EVENTS_MAX && known.front().is_none_or(|first| first.number > event.number) {
                        known.push_front(event.clone());
                    }
                }
                if self.pane.tab == Tab::Events {
                    self.show_events();
                }
            }
        }
        Vec::new()
    }

    fn happened(&mut self, events: &[NumberedEvent]) -> Vec<Order> {
        let (before, was_active, mut touched) = (self.rows.len(), self.rows.is_active(), false);
        let mut ended = false;
        for event in events {
            self.rows.take(event);
            ended |= matches!(event.event, TreeEvent::Ended { .. });
            self.stale |= matches!(event.event, TreeEvent::Reowned { .. });
            let Some(worker) = words::subject(&event.event) else { continue };
            let known = self.events.entry(worker).or_default();
            known.push_back(event.clone());
            if known.len() > EVENTS_MAX {
                known.pop_front();
            }
            if self.selected == Some(worker) {
                touched = true;
                if self.pane.tab == Tab::Events {
                    self.pane.push(words::event(event));
                }
            }
        }
        self.stale |= self.rows.len() != before || (self.active_only && ended);
        let mut orders = Vec::new();
        if self.selected.is_none() {
            self.refresh();
            orders.extend(self.begin());
        } else if touched {
            orders.extend(self.look());
        }
        if was_active && !self.rows.is_active() {
            orders.push(self.ask_usage());
        }
        orders
    }

    /// Something that was asked for.
    pub fn answered(&mut self, answer: Answer) -> Vec<Order> {
        match answer {
            Answer::Looked(status) => {
                self.rows.set_process_of(&status);
                if self.selected == Some(status.worker) {
                    self.details = Some(*status);
                    return self.follow();
                }
            }
            Answer::Used(all, one) => {
                self.totals = all.totals;
                if let Some((worker, usage)) = one {
                    self.rows.set_usage_of(worker, usage.totals);
                }
            }
            Answer::Said(worker, reply) => {
                self.drafts.remove(&worker);
                let name = self.rows.get(worker).map(|row| safe(&row.name)).unwrap_or_default();
                self.said = Some((format!("{name} {}", message::line(&reply)), false));
            }
            Answer::NotSaid(worker, text, failure) => {
                self.drafts.insert(worker, text);
                self.said = Some((format!("{} | the words are kept: m", complaint(&failure)), true));
            }
            Answer::Stopped(reply) => {
                let word = |result| match result {
                    StopResult::Stopped => "is being stopped",
                    StopResult::AlreadySettled => "had settled already",
                };
                let all: Vec<String> = reply.workers.iter().map(|one| format!("{} {}", safe(&one.name), word(one.result))).collect();
                self.said = Some((all.join(", "), false));
            }
            Answer::Refused(failure) => self.said = Some((complaint(&failure), true)),
        }
        Vec::new()
    }

    /// A part of a file.
    pub fn piece(&mut self, piece: Piece) {
        if piece.request != self.following.0 {
            return;
        }
        if piece.cut {
            self.pane.clear(self.pane.tab, true);
        }
        self.pane.take(&piece.bytes);
        if let Some(error) = piece.error {
            self.pane.push(safe(&format!("cannot be read: {error}")));
        }
    }
}

/// An error, what it is called, and what to do next.
pub fn complaint(failure: &Failure) -> String {
    let hint = failure.hint().map(|hint| format!(" | {hint}")).unwrap_or_default();
    safe(&format!("{failure:#} ({}){hint}", failure.kind()))
}
