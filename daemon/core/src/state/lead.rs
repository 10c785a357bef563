//! The part of a lead that owns children and is owed things, to change it, whether it is the root or a worker.

use std::collections::BTreeSet;

use roost_proto::id::{TreeId, WorkerId};

use crate::event::Owner;
use crate::state::State;
use crate::state::apply::Applied;
use crate::state::budget::Ledger;
use crate::state::joins::Joins;
use crate::state::outbox::Outbox;
use crate::state::seldom::Rare;
use crate::state::speech::Held;
use crate::state::worker::{Answered, SentLog, StopLog};
use crate::time::{Mono, Now};

impl State {
    /// Changes what a lead owns, whether it is the root or a worker; a parked one may have become ready to wake.
    pub(super) fn on_lead(&mut self, tree: TreeId, owner: Owner, at: Now, change: impl FnOnce(&mut Owned<'_>) -> Applied) -> Applied {
        let tree = self.trees.get_mut(&tree).ok_or("there is no such tree")?;
        let lead = match owner {
            Owner::Root => {
                return change(&mut Owned {
                    ledger: &mut tree.ledger,
                    outbox: &mut tree.outbox,
                    answered: &mut tree.answered,
                    sent: &mut tree.sent,
                    stops: &mut tree.stops,
                    children: &mut tree.children,
                    active_children: &mut tree.active_children,
                    held: None,
                    joins: JoinsOf::Root(&mut tree.joins),
                });
            }
            Owner::Worker(lead) => lead,
        };
        let (admissions, wakes) = (tree.admissions, tree.settings.delivery.wakes());
        self.on_worker(lead, at, |w| {
            change(&mut Owned {
                ledger: &mut w.ledger,
                outbox: &mut w.outbox,
                answered: &mut w.answered,
                sent: &mut w.sent,
                stops: &mut w.stops,
                children: &mut w.children,
                active_children: &mut w.active_children,
                held: w.held.as_deref_mut(),
                joins: JoinsOf::Worker(&mut w.joins),
            })?;
            w.note_ready(at, admissions, wakes);
            Ok(())
        })
    }
}

/// What a lead owns, to change it.
pub(super) struct Owned<'a> {
    pub(super) ledger: &'a mut Ledger,
    pub(super) outbox: &'a mut Rare<Outbox>,
    pub(super) answered: &'a mut Rare<Answered>,
    pub(super) sent: &'a mut Rare<SentLog>,
    pub(super) stops: &'a mut Rare<StopLog>,
    pub(super) children: &'a mut Rare<BTreeSet<WorkerId>>,
    pub(super) active_children: &'a mut u32,
    pub(super) held: Option<&'a mut Held>,
    joins: JoinsOf<'a>,
}

/// Groups of launches: few workers have any.
enum JoinsOf<'a> {
    Root(&'a mut Joins),
    Worker(&'a mut Option<Box<Joins>>),
}

impl Owned<'_> {
    pub(super) fn joins(&mut self) -> &mut Joins {
        match &mut self.joins {
            JoinsOf::Root(joins) => joins,
            JoinsOf::Worker(joins) => joins.get_or_insert_default(),
        }
    }

    pub(super) fn joins_timers(&self) -> Vec<(Mono, u64)> {
        match &self.joins {
            JoinsOf::Root(joins) => joins.timers().collect(),
            JoinsOf::Worker(joins) => joins.iter().flat_map(|joins| joins.timers()).collect(),
        }
    }
}
