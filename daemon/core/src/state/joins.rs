//! Launches that are told of together: contract section 10. It changes only when completions are told, never what they say.
//!
//! A group is what one lead launched without a longer pause than the tree's `join_window_ms`. From its first completion on the others have
//! `join_hold_ms` to arrive; then what is there goes, and stragglers have `join_straggler_ms` from the first of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::Timing;
use crate::time::Mono;

/// The groups of one lead.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Joins {
    last: u64,
    launched_at: Option<Mono>,
    groups: BTreeMap<u64, Group>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Group {
    members: u32,
    active: u32,
    /// When what has arrived goes without the rest.
    until: Option<Mono>,
    /// A part of it went.
    partial: bool,
}

/// What the end of a member means for its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It is told at once.
    Alone,
    /// It waits for the rest until then.
    Held(Mono),
    /// It was the last: all of its group are told.
    Complete,
}

impl Joins {
    /// So many were launched. Gives their group.
    pub fn launched(&mut self, count: u32, at: Mono, timing: &Timing) -> u64 {
        let joined = self.launched_at.is_some_and(|last| last + timing.join_window_ms >= at);
        self.launched_at = Some(at);
        if !joined {
            self.last += 1;
        }
        let group = self.groups.entry(self.last).or_default();
        group.members += count;
        group.active += count;
        self.last
    }

    /// A member has ended, in whatever way: every end counts as arrival.
    pub fn arrived(&mut self, number: u64, at: Mono, timing: &Timing) -> Arrival {
        let Some(group) = self.groups.get_mut(&number) else { return Arrival::Alone };
        group.active = group.active.saturating_sub(1);
        if group.active == 0 {
            let alone = group.members < 2;
            self.groups.remove(&number);
            return if alone { Arrival::Alone } else { Arrival::Complete };
        }
        let hold = if group.partial { timing.join_straggler_ms } else { timing.join_hold_ms };
        Arrival::Held(*group.until.get_or_insert(at + hold))
    }

    /// The time of a group is over: what has arrived goes.
    pub fn released(&mut self, number: u64) {
        if let Some(group) = self.groups.get_mut(&number) {
            group.until = None;
            group.partial = true;
        }
    }

    /// Groups whose time is over at some moment.
    pub fn timers(&self) -> impl Iterator<Item = (Mono, u64)> + '_ {
        self.groups.iter().filter_map(|(number, group)| Some((group.until?, *number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_forms_within_the_window_and_goes_with_its_last() {
        let (mut joins, timing) = (Joins::default(), Timing::default());
        let first = joins.launched(1, Mono(0), &timing);
        assert_eq!(joins.launched(1, Mono(100), &timing), first);
        assert_eq!(joins.arrived(first, Mono(1_000), &timing), Arrival::Held(Mono(31_000)));
        assert_eq!(joins.arrived(first, Mono(2_000), &timing), Arrival::Complete);
        let next = joins.launched(1, Mono(3_000), &timing);
        assert_ne!(next, first);
        assert_eq!(joins.arrived(next, Mono(3_100), &timing), Arrival::Alone);
    }

    #[test]
    fn stragglers_have_their_own_time() {
        let (mut joins, timing) = (Joins::default(), Timing::default());
        let group = joins.launched(3, Mono(0), &timing);
        assert_eq!(joins.arrived(group, Mono(5), &timing), Arrival::Held(Mono(30_005)));
        joins.released(group);
        assert_eq!(joins.timers().count(), 0);
        assert_eq!(joins.arrived(group, Mono(40_000), &timing), Arrival::Held(Mono(55_000)));
        assert_eq!(joins.arrived(group, Mono(41_000), &timing), Arrival::Complete);
        assert_eq!(joins.timers().count(), 0);
    }
}
