//! Ends, and workers that come to another lead: what they mean for those above.

use roost_proto::id::WorkerId;
use roost_proto::outcome::{Failure, Outcome};

use crate::event::{Owner, StopCause};
use crate::state::State;
use crate::state::apply::Applied;
use crate::state::joins::Arrival;
use crate::state::outbox::{Item, Outbox};
use crate::state::seldom::Rare;
use crate::state::worker::Phase;
use crate::time::Now;

impl State {
    pub(super) fn ended(&mut self, id: WorkerId, outcome: &Outcome, at: Now) -> Applied {
        let mut of = None;
        let mut left = Vec::new();
        self.on_worker(id, at, |w| {
            let by_operator = w.stop.is_some_and(|stop| stop.cause == StopCause::Operator);
            of = Some((w.tree, w.owner, w.execution, w.joined, by_operator));
            w.ended_at = Some(at);
            left = w.outbox.used().map(Outbox::take_all).unwrap_or_default();
            w.answered = Rare::default();
            w.stops = Rare::default();
            w.held = None;
            w.joins = None;
            let alone = w.active_children == 0;
            w.pass(Phase::Ended { outcome: outcome.clone() }, |phase, _| {
                alone && matches!(phase, Phase::Gone { .. } | Phase::Finishing { .. })
            })
        })?;
        let (tree, owner, execution, joined, by_operator) = of.ok_or("it has no lead")?;
        // A lead that stopped its child, or ends with it, needs no word of it.
        let silent = matches!(outcome, Outcome::Stopped | Outcome::Failed(Failure::ParentFailed)) && !by_operator;
        let unread = self.keep_what_came_late(id, left);
        self.reset_join_timers(tree, Owner::Worker(id), &[]);
        let timing = self.trees.get(&tree).map(|tree| tree.settings.timing).unwrap_or_default();
        let mut timers = Vec::new();
        self.on_lead(tree, owner, at, |lead| {
            lead.children.remove(&id);
            *lead.active_children = lead.active_children.checked_sub(1).ok_or("its lead has no active child")?;
            if let Some(held) = &mut lead.held {
                held.note_end(id);
            }
            unread.into_iter().for_each(|message| lead.outbox.push(Item::Undelivered { message, to: id }));
            let arrival = joined.map_or(Arrival::Alone, |group| lead.joins().arrived(group, at.mono, &timing));
            let held = if let Arrival::Held(_) = arrival { joined } else { None };
            if !silent {
                lead.outbox.push(Item::Completion { child: id, execution, wakes: !by_operator, held });
            }
            if let (Arrival::Complete, Some(group)) = (arrival, joined) {
                lead.outbox.release(group);
            }
            timers = lead.joins_timers();
            Ok(())
        })?;
        self.reset_join_timers(tree, owner, &timers);
        Ok(())
    }

    pub(super) fn reowned(&mut self, id: WorkerId, owner: Owner, at: Now) -> Applied {
        let worker = self.workers.get(&id).ok_or("there is no such worker")?;
        let (tree, old) = (worker.tree, worker.owner);
        self.move_usage(id, old, owner);
        let mut unread = Vec::new();
        self.on_lead(tree, old, at, |lead| {
            lead.children.remove(&id);
            *lead.active_children = lead.active_children.checked_sub(1).ok_or("its lead has no active child")?;
            unread = lead.outbox.take_words_of(id);
            Ok(())
        })?;
        self.on_worker(id, at, |w| {
            w.owner = owner;
            // Its old lead reads nothing any more.
            if let Owner::Worker(to) = old {
                unread.into_iter().for_each(|message| w.outbox.push(Item::Undelivered { message, to }));
            }
            // It arrives at a lead that did not launch it, with nobody else.
            w.joined = None;
            Ok(())
        })?;
        self.on_lead(tree, owner, at, |lead| {
            lead.children.insert(id);
            *lead.active_children += 1;
            Ok(())
        })
    }
}
