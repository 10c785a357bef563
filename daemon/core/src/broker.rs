//! The machine: [`Broker::step`] takes a command and says what happened and what is to be done.
//!
//! ```text
//!   command --> verb (lifecycle/) --> events --> State::apply
//!                                        |
//!               waiting calls (calls.rs) <-- ends, starts, time
//!                                        |
//!               schedule.rs  --> grants, parks --> events --> ... until nothing moves
//!                                        |
//!               answers, spawns, signals  --> effects, for the driver to release after the commit
//! ```
//!
//! It knows no clock, no disk and no socket, and the same commands at the same moments give the same events.

mod settle;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::id::{TreeId, WorkerId};
use roost_proto::limits::{CLOSED_WORKERS_MAX, REATTACH_MS, RETENTION_MS};
use roost_proto::message::events::NumberedEvent;

use crate::calls::Calls;
use crate::command::{Caller, Command};
use crate::effect::Effect;
use crate::event::Record;
use crate::holders::Holders;
use crate::lifecycle::deliver::next_group;
use crate::lifecycle::wait::{self, Read};
use crate::schedule::{self, Rules};
use crate::state::{IllegalEvent, State};
use crate::step::{Step, tree_of};
use crate::time::{Mono, Now};
use crate::view;
use turn::{Turn, answered};

/// What a step came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Events, for the journal.
    pub records: Vec<Record>,
    /// The same as everybody may see it, numbered within its tree; for the journal.
    pub stream: Vec<(TreeId, NumberedEvent)>,
    /// Effects, to be released after the commit of the events.
    pub effects: Vec<Effect>,
    /// Trees whose counts may have changed.
    pub changed: Vec<TreeId>,
    /// Wakes that went before the head of the queue, which had been let pass too often: for whoever counts.
    pub promoted: u64,
}

/// The broker of one state directory.
#[derive(Debug, Clone)]
pub struct Broker {
    state: State,
    calls: Calls,
    rules: Rules,
    /// The last moment at which everything due was done.
    ticked: Mono,
    /// Until when clients of blocked workers may come back after a restart.
    reattach_until: Option<Mono>,
    /// Ephemeral trees: connections of the root, and since when there is none.
    roots: BTreeMap<TreeId, Presence>,
    /// Who holds leases.
    holders: Holders,
    /// Closed trees whose time has run out while something of them was still ending.
    overdue: BTreeSet<TreeId>,
}

#[derive(Debug, Clone, Copy)]
struct Presence {
    connections: u32,
    since: Mono,
}

impl Broker {
    /// A broker over a state that was replayed.
    pub fn restore(state: State, cap_of_all: Option<u32>) -> Self {
        Self {
            state,
            calls: Calls::default(),
            rules: Rules { cap_of_all, draining: false, closed_workers_max: CLOSED_WORKERS_MAX, retention_ms: RETENTION_MS },
            ticked: Mono(0),
            reattach_until: None,
            roots: BTreeMap::new(),
            holders: Holders::default(),
            overdue: BTreeSet::new(),
        }
    }

    /// The same, keeping at most so many ended workers of closed trees.
    #[must_use]
    pub fn keeping(mut self, closed_workers_max: usize) -> Self {
        self.rules.closed_workers_max = closed_workers_max;
        self
    }

    /// The same, keeping closed trees for so many milliseconds; 0 is no end by age.
    #[must_use]
    pub fn retaining(mut self, retention_ms: u64) -> Self {
        self.rules.retention_ms = retention_ms;
        self
    }

    /// Answers a look at the state and does nothing else of a step: no time passes, nothing is decided, and a root that reads a
    /// result has not consumed it. `None` for a command that is no look.
    pub fn look(&mut self, now: Now, command: &Command) -> Option<Effect> {
        let mut step = Step::new(now, &mut self.state);
        if let Command::Status { call, caller, tree, name, after } = command {
            answered(&mut step, *call, |step| view::status(step, *call, *caller, *tree, name.as_deref(), *after));
        } else if let Command::Count { call, caller } = command {
            answered(&mut step, *call, |step| view::count(step, *call, *caller));
        } else if let Command::Result { call, caller, tree, of, wait: false, .. } = command {
            let tree = match caller {
                Caller::Operator => *tree,
                Caller::Root(tree) => Some(*tree),
                Caller::Worker { .. } => return None,
            };
            let read = Read { tree, of: of.clone(), wait: false, request_id: None, timeout_ms: None };
            answered(&mut step, *call, |step| wait::result(step, &mut Calls::default(), *call, Caller::Operator, read));
        }
        debug_assert!(step.records.is_empty(), "a look changes nothing");
        step.effects.pop()
    }

    /// The state, to look at.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether a drain is on.
    pub fn is_draining(&self) -> bool {
        self.rules.draining
    }

    /// The cap over all trees.
    pub fn cap_of_all(&self) -> Option<u32> {
        self.rules.cap_of_all
    }

    /// When `Tick` must be sent at the latest, if nothing else comes before.
    pub fn next_deadline(&self) -> Option<Mono> {
        let after = self.ticked;
        let timers = self.state.timers.range((after + 1, WorkerId(0))..).next().map(|(at, _)| *at);
        let early = self.state.open_trees().filter_map(|tree| schedule::next_early_wake(&self.state, tree)).filter(|at| *at > after);
        // Those that are overdue for want of a reader have no deadline.
        let first = Mono((after.0 + 1).saturating_sub(self.rules.retention_ms));
        let closed = self.state.closed.range((first, TreeId(0))..).next().filter(|_| self.rules.retention_ms > 0);
        let retention = closed.map(|(closed, _)| *closed + self.rules.retention_ms).filter(|at| *at > after);
        let absent = self.roots.values().filter(|root| root.connections == 0).map(|root| root.since + REATTACH_MS).filter(|at| *at > after);
        timers
            .into_iter()
            .chain(early)
            .chain(retention)
            .chain(absent)
            .chain(self.calls.next_deadline())
            .chain(self.reattach_until)
            .chain(self.holders.next_deadline())
            .chain(next_group(&self.state))
            .min()
    }

    /// One step. An error is a fault of this program: nothing of the step may be written, and the broker must not go on.
    pub fn step(&mut self, now: Now, command: Command) -> Result<Outcome, IllegalEvent> {
        let mut step = Step::new(now, &mut self.state);
        let mut calls = std::mem::take(&mut self.calls);
        let since = self.ticked;
        let mut turn = Turn {
            step: &mut step,
            calls: &mut calls,
            rules: &mut self.rules,
            roots: &mut self.roots,
            holders: &mut self.holders,
            overdue: &mut self.overdue,
        };
        if matches!(command, Command::Reconcile { .. }) {
            self.reattach_until = Some(now.mono + REATTACH_MS);
        }
        turn.perform(command);
        if self.reattach_until.is_some_and(|until| until <= now.mono) {
            self.reattach_until = None;
            turn.give_up_on_lost_waits();
        }
        turn.pass_time(since);
        turn.settle();
        self.ticked = self.ticked.max(now.mono);
        let Step { records, stream, effects, fault, promoted, .. } = step;
        self.calls = calls;
        match fault {
            Some(fault) => Err(fault),
            None => {
                let changed = changed(&self.state, &records);
                Ok(Outcome { records, stream, effects, changed, promoted })
            }
        }
    }
}

fn changed(state: &State, records: &[Record]) -> Vec<TreeId> {
    let mut trees: Vec<TreeId> = records.iter().filter_map(|record| tree_of(state, &record.event)).collect();
    trees.sort_unstable();
    trees.dedup();
    trees
}
