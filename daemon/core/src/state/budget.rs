//! The ledger of contract section 5: what a launcher may still reserve. Nothing is ever refunded.

use serde::{Deserialize, Serialize};

use roost_proto::limits::BUDGET_MAX;

/// One launcher's budget. `limit = remaining + what was reserved`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    limit: u64,
    remaining: u64,
    /// The highest limit so far, where it was higher than it is.
    #[serde(default)]
    high: u64,
}

impl Ledger {
    /// A fresh ledger.
    pub fn new(limit: u64) -> Self {
        Self { limit, remaining: limit, high: limit }
    }

    /// All that it may ever launch.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// The highest limit that it ever had: what its launcher has reserved for it.
    pub fn high(self) -> u64 {
        self.high.max(self.limit)
    }

    /// What its launcher must reserve on top for this new limit; `None` when more than that is reserved from it already.
    pub fn raise(self, limit: u64) -> Option<u64> {
        let spent = self.limit - self.remaining;
        (limit >= spent).then(|| limit.saturating_sub(self.high()))
    }

    /// Sets the limit, which [`Ledger::raise`] has allowed.
    pub fn set(&mut self, limit: u64) {
        let spent = self.limit - self.remaining;
        self.high = self.high().max(limit);
        self.remaining = limit.saturating_sub(spent);
        self.limit = limit;
    }

    /// What is left.
    pub fn remaining(self) -> u64 {
        self.remaining
    }

    /// What a job of tasks with these allowances takes: one slot for each worker and all that it may launch.
    /// `None` when the sum is larger than any budget.
    pub fn cost(allowances: impl Iterator<Item = u64>) -> Option<u64> {
        let mut sum = 0_u64;
        for allowance in allowances {
            sum = sum.checked_add(allowance)?.checked_add(1)?;
            if sum > BUDGET_MAX {
                return None;
            }
        }
        Some(sum)
    }

    /// Takes this many slots, or says that there are not as many.
    #[must_use]
    pub fn reserve(&mut self, slots: u64) -> bool {
        match self.remaining.checked_sub(slots) {
            Some(remaining) => {
                self.remaining = remaining;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tasks_with_allowances_3_and_0_take_five_slots() {
        assert_eq!(Ledger::cost([3, 0].into_iter()), Some(5));
    }

    #[test]
    fn hostile_numbers_are_refused_and_take_nothing() {
        assert_eq!(Ledger::cost([u64::MAX, 1].into_iter()), None);
        assert_eq!(Ledger::cost([BUDGET_MAX].into_iter()), None);
        assert_eq!(Ledger::cost([BUDGET_MAX - 1].into_iter()), Some(BUDGET_MAX));
        let mut ledger = Ledger::new(8);
        assert!(!ledger.reserve(9));
        assert!(ledger.reserve(8) && !ledger.reserve(1));
        assert_eq!((ledger.limit(), ledger.remaining()), (8, 0));
    }

    #[test]
    fn a_raise_costs_what_is_above_the_highest_so_far_and_a_cut_refunds_nothing() {
        let mut ledger = Ledger::new(5);
        assert!(ledger.reserve(2));
        assert_eq!((ledger.raise(8), ledger.raise(2), ledger.raise(1)), (Some(3), Some(0), None));
        ledger.set(8);
        ledger.set(2);
        assert_eq!((ledger.remaining(), ledger.high(), ledger.raise(8), ledger.raise(9)), (0, 8, Some(0), Some(1)));
    }
}
