//! What is owed to a lead: numbered items that stay until the lead has taken them in.

use std::collections::BTreeMap;

use roost_proto::id::WorkerId;
use serde::{Deserialize, Serialize};

/// The items of one lead, in order. An item is the completion of a child; what it says is the child's own record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outbox {
    next_seq: u64,
    items: BTreeMap<u64, WorkerId>,
    by_child: BTreeMap<WorkerId, u64>,
}

impl Outbox {
    /// Owes one more completion.
    pub fn push(&mut self, child: WorkerId) {
        self.next_seq += 1;
        self.items.insert(self.next_seq, child);
        self.by_child.insert(child, self.next_seq);
    }

    /// The lead knows of this child's end: nothing is owed for it any more. Says whether something was.
    pub fn take(&mut self, child: WorkerId) -> bool {
        self.by_child.remove(&child).is_some_and(|seq| self.items.remove(&seq).is_some())
    }

    /// The lead has taken in everything up to this number.
    pub fn take_to(&mut self, last: u64) {
        let later = self.items.split_off(&last.saturating_add(1));
        for child in std::mem::replace(&mut self.items, later).into_values() {
            self.by_child.remove(&child);
        }
    }

    /// Whether nothing is owed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether this child's completion is owed.
    pub fn owes(&self, child: WorkerId) -> bool {
        self.by_child.contains_key(&child)
    }

    /// The number of the newest item, 0 when nothing was ever owed.
    pub fn last_seq(&self) -> u64 {
        self.next_seq
    }

    /// How many items are newer than this number.
    pub fn items_after(&self, last: u64) -> usize {
        self.items.range(last.saturating_add(1)..).count()
    }

    /// The items up to this number, in order.
    pub fn items_to(&self, last: u64) -> impl Iterator<Item = (u64, WorkerId)> + '_ {
        self.items.range(..=last).map(|(seq, child)| (*seq, *child))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_goes_once_however_it_goes() {
        let mut outbox = Outbox::default();
        (1..=4).for_each(|n| outbox.push(WorkerId(n)));
        assert!(outbox.take(WorkerId(2)) && !outbox.take(WorkerId(2)));
        outbox.take_to(3);
        assert_eq!(outbox.items_to(u64::MAX).collect::<Vec<_>>(), [(4, WorkerId(4))]);
        assert!(!outbox.owes(WorkerId(3)) && outbox.owes(WorkerId(4)));
        assert_eq!(outbox.last_seq(), 4);
    }
}
