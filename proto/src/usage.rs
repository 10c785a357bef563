//! What work has cost: contract section 11. Integers only, so that sums are exact; money in nano-dollars (10^-9 USD).
//!
//! It does not know whose usage it is: own and recursive totals are the core's business.

use serde::{Deserialize, Serialize};

/// The largest counter: what a JSON number carries exactly.
pub const USAGE_MAX: u64 = (1 << 53) - 1;

/// Nano-dollars of one US dollar.
pub const NANO_DOLLARS: f64 = 1e9;

/// An amount of US dollars in nano-dollars; `None` when it is no amount.
pub fn nano_dollars(usd: f64) -> Option<u64> {
    let nanos = (usd * NANO_DOLLARS).round();
    // Below 2^53 the conversion is exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    (nanos >= 0.0 && nanos <= USAGE_MAX as f64).then_some(nanos as u64)
}

/// Counters of what was used so far. All of them only grow within one process.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens that no cache served.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// Cost in nano-dollars, of what has a known price.
    pub cost: u64,
    /// Whether some of it has no known price: then `cost` is less than the true cost, and 0 is not "free".
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub cost_unknown: bool,
    /// Model turns.
    pub turns: u64,
    /// Tool calls, delegation included.
    pub tool_calls: u64,
}

impl Usage {
    /// Both together; `None` when a counter would be larger than [`USAGE_MAX`].
    pub fn plus(self, other: Self) -> Option<Self> {
        let add = |a: u64, b: u64| a.checked_add(b).filter(|sum| *sum <= USAGE_MAX);
        Some(Self {
            input: add(self.input, other.input)?,
            output: add(self.output, other.output)?,
            cache_read: add(self.cache_read, other.cache_read)?,
            cache_write: add(self.cache_write, other.cache_write)?,
            cost: add(self.cost, other.cost)?,
            cost_unknown: self.cost_unknown || other.cost_unknown,
            turns: add(self.turns, other.turns)?,
            tool_calls: add(self.tool_calls, other.tool_calls)?,
        })
    }

    /// Both together, where every counter stops at [`USAGE_MAX`]: for totals, which must have an answer.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let add = |a: u64, b: u64| a.saturating_add(b).min(USAGE_MAX);
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            cache_read: add(self.cache_read, other.cache_read),
            cache_write: add(self.cache_write, other.cache_write),
            cost: add(self.cost, other.cost),
            cost_unknown: self.cost_unknown || other.cost_unknown,
            turns: add(self.turns, other.turns),
            tool_calls: add(self.tool_calls, other.tool_calls),
        }
    }

    /// What this one has more than an earlier one; `None` when it has less of something.
    pub fn minus(self, earlier: Self) -> Option<Self> {
        Some(Self {
            input: self.input.checked_sub(earlier.input)?,
            output: self.output.checked_sub(earlier.output)?,
            cache_read: self.cache_read.checked_sub(earlier.cache_read)?,
            cache_write: self.cache_write.checked_sub(earlier.cache_write)?,
            cost: self.cost.checked_sub(earlier.cost)?,
            cost_unknown: self.cost_unknown,
            turns: self.turns.checked_sub(earlier.turns)?,
            tool_calls: self.tool_calls.checked_sub(earlier.tool_calls)?,
        })
    }

    /// Whether every counter is within [`USAGE_MAX`].
    pub fn is_bounded(&self) -> bool {
        self.plus(Self::default()).is_some()
    }

    /// Whether nothing was used.
    pub fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// All tokens: input, output, and both sides of the cache, each counted once.
    pub fn tokens(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().fold(0, u64::saturating_add)
    }
}

/// What a worker says it has used, cumulative over its process.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageReport {
    /// Numbers the reports of one process, from 1. One that is not newer than the last changes nothing.
    pub sequence: u64,
    /// All that this process has used since it started.
    #[serde(flatten)]
    pub usage: Usage,
    /// How large its context is now, in tokens: a snapshot, never summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// What a worker has used, alone and with all below it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UsageTotals {
    /// Its own, over all its executions and processes.
    pub own: Usage,
    /// The same with all its descendants, each execution once.
    pub total: Usage,
    /// How many workers the total is of: identities, itself included, the root never.
    pub workers: u64,
    /// Whether some process of them was ended before it could report the last of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The context size that it last reported, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_count_once() {
        let reported = Usage { input: 100, cache_read: 900, cache_write: 50, output: 20, ..Usage::default() };
        assert_eq!(reported.tokens(), 1_070);
    }

    #[test]
    fn sums_are_exact_or_refused() {
        let most = Usage { input: USAGE_MAX, ..Usage::default() };
        let one = Usage { input: 1, ..Usage::default() };
        assert_eq!(most.plus(one), None);
        assert_eq!(most.with(one).input, USAGE_MAX);
        assert!(most.is_bounded() && !Usage { cost: USAGE_MAX + 1, ..Usage::default() }.is_bounded());
        let unknown = Usage { cost_unknown: true, cost: 5, ..Usage::default() };
        assert_eq!(one.plus(unknown), Some(Usage { input: 1, cost: 5, cost_unknown: true, ..Usage::default() }));
    }
}
