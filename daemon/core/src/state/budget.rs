//! The ledger of contract section 5: what a launcher may still reserve. Nothing is ever refunded.

use serde::{Deserialize, Serialize};

use roost_proto::limits::BUDGET_MAX;

/// One launcher's budget. `limit = remaining + what was reserved`, always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    limit: u64,
    remaining: u64,
}

impl Ledger {
    /// A fresh ledger.
    pub fn new(limit: u64) -> Self {
        Self { limit, remaining: limit }
    }

    /// All that it ever had.
    pub fn limit(self) -> u64 {
        self.limit
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
}
